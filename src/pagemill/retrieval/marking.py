"""The region of a page that matches a query best, and its snippet."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from pagemill.retrieval.tokens import TOKENIZER, Token, tokens

_MARK = "\x01"
_ELLIPSIS = "…"
SNIPPET_WIDTH = 160
"""Maximum characters of a snippet: two lines of a terminal."""


class Snippet(NamedTuple):
    """A snippet with its hits."""

    text: str
    """On one line."""
    marks: tuple[tuple[int, int], ...]
    """Start and end of each hit in characters, in order, not overlapping."""

    def marked(self, before: str, after: str) -> str:
        """The text with something before and after each hit."""
        parts, end = [], 0
        for start, stop in self.marks:
            parts += [self.text[end:start], before, self.text[start:stop], after]
            end = stop
        return "".join([*parts, self.text[end:]])


def matches(texts: Iterable[tuple[int, str]], expression: str) -> dict[int, list[Token]]:
    """The matching texts, best first (by BM25 among them), with their hits in order; pairs of characters overlap.

    SQLite matches with the tokens of the index, so that only text that can be found is marked.

    Args:
        texts: Texts by key.
        expression: FTS5 expression (:func:`pagemill.retrieval.tokens.match_expression`).
    """
    known: dict[int, list[Token]] = {}
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        # By SQLite itself, in memory: only so are the hits those of the search, with its stems and its ranking.
        connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(words, tokenize='{TOKENIZER}')")
        for key, text in texts:
            known[key] = list(tokens(text))
            words = " ".join(token.text for token in known[key])
            connection.execute("INSERT INTO texts (rowid, words) VALUES (?, ?)", (key, words))
        found = connection.execute(
            f"SELECT rowid, highlight(texts, 0, '{_MARK}', '') FROM texts WHERE texts MATCH ? ORDER BY rank",
            (expression,),
        )
        return {
            key: [token for token, word in zip(known[key], words.split(" "), strict=True) if word.startswith(_MARK)]
            for key, words in found
        }


def snippet(text: str, hits: Iterable[Token]) -> Snippet:
    """The snippet of a text with the most hits; its start without hits. Unprintable characters become spaces.

    Args:
        text: Text of a region.
        hits: Its hits in order.
    """
    spans = _joined(hits)
    start = _densest(spans, SNIPPET_WIDTH)
    if start:  # start with a whole word if one starts soon
        space = max(text.rfind(" ", start - 20, start), text.rfind("\n", start - 20, start))
        start = space + 1 if space >= 0 else start
    end = min(len(text), start + SNIPPET_WIDTH)
    before, after = (_ELLIPSIS if start else ""), (_ELLIPSIS if end < len(text) else "")
    shown = before + "".join(character if character.isprintable() else " " for character in text[start:end]) + after
    shift = len(before) - start
    marks = tuple((max(a, start) + shift, min(b, end) + shift) for a, b in spans if a < end and b > start)
    return Snippet(shown, marks)


def _joined(hits: Iterable[Token]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for hit in hits:
        if spans and hit.start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], hit.end))
        else:
            spans.append((hit.start, hit.end))
    return spans


def _densest(spans: list[tuple[int, int]], width: int) -> int:
    """Start of the snippet of this width with the most characters of hits; slightly before its first hit."""

    def shown(first: tuple[int, int]) -> int:
        return sum(min(end, first[0] + width) - start for start, end in spans if 0 <= start - first[0] < width)

    best, _ = max(spans, key=shown, default=(0, 0))
    return max(0, best - width // 8) if best > width // 2 else 0
