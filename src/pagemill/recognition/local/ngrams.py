"""Which tokens would repeat an n-gram: kept up to date as a sequence grows, at a cost independent of n and window."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Iterable

_PRIME = 2**61 - 1
_BASE = random.SystemRandom().randrange(2**32, _PRIME)
"""Base of the rolling hash. Two prefixes collide with a probability below 1e-14; as the base is random, no text can be
made in which they do."""


class NGramHistory:
    """The n-grams of one sequence that start in its last ``window`` tokens, by their first n - 1 tokens.

    Bans what vLLM's processor for DeepSeek-OCR bans (``ngram_size``, ``window_size``, ``whitelist_token_ids``): a token
    that would complete an n-gram which already starts in the window, unless it is on the whitelist.

    Args:
        size: Tokens of an n-gram, from 1.
        window: How many of the last tokens an n-gram may start in. If it is below ``size``, nothing is banned.
        allowed: Tokens that are never banned.
    """

    def __init__(self, size: int, window: int, allowed: Collection[int] = ()) -> None:
        if size < 1 or window < 1:
            raise ValueError(f"n-grams of {size} tokens in a window of {window}")
        self._size = size
        self._window = window
        self._allowed = frozenset(allowed)
        self._last: deque[int] = deque(maxlen=size)  # the last n tokens: those of the prefix, and the one that left it
        self._length = 0
        self._key = 0
        self._leaving = pow(_BASE, size - 1, _PRIME)
        # Prefix -> token that follows -> where the latest such n-gram starts.
        self._followers: dict[int, dict[int, int]] = {}
        self._starts: deque[tuple[int, int, int]] = deque()  # start, prefix, token: oldest first

    def extend(self, tokens: Iterable[int]) -> None:
        """The sequence goes on with these tokens: each takes constant time."""
        for token in tokens:
            start = self._length - self._size + 1
            if start >= 0 and token not in self._allowed:
                self._followers.setdefault(self._key, {})[token] = start
                self._starts.append((start, self._key, token))
            self._length += 1
            self._last.append(token)
            self._roll(token)
            self._forget()

    def banned(self) -> Collection[int]:
        """The tokens that must not come next."""
        return self._followers.get(self._key, ())

    def _roll(self, token: int) -> None:
        """The hash of the last n - 1 tokens; 0 for n = 1, where every token follows on nothing."""
        if self._size == 1:
            return
        key = self._key * _BASE + token + 1
        if self._length >= self._size:
            key -= (self._last[0] + 1) * self._leaving
        self._key = key % _PRIME

    def _forget(self) -> None:
        """Drop the n-grams that start before the window."""
        while self._starts and self._starts[0][0] < self._length - self._window:
            start, key, token = self._starts.popleft()
            followers = self._followers[key]
            if followers[token] == start:  # else it has come again since
                del followers[token]
                if not followers:
                    del self._followers[key]
