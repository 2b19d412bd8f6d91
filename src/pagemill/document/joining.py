"""Joining pieces of running text that a line, column or page break cut apart."""

from __future__ import annotations

import re

_HYPHENS = "-\u2010\u2011"
_KEPT_PREFIXES = frozenset(
    {"all", "cross", "ever", "ex", "full", "half", "high", "long", "low", "mid", "near", "new", "quasi", "self", "semi"}
    | {"short", "so", "two", "three", "well"}
)
"""First parts after which a hyphen at a line's end most likely belongs to the word."""
_NO_SPACE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff01-\uff65\U00020000-\U0003ffff]"
)
"""Scripts that write no space between words: Thai, Lao, Burmese, Khmer, Chinese, Japanese."""
_KOREAN_PARTICLE = re.compile(
    "(?:은|는|이|가|을|를|의|에|에서|에게|께|으로|로|와|과|도|만|까지|부터|보다|처럼|마다|이나|나|이며|며|하여|하고|한|할|함|하는|하기|된|될|됨|되는|"
    "되어|다|이다|한다|된다|합니다|됩니다|입니다|습니다|니다)(?=[\\s.,;:)」』”’]|$)"
)
"""What cannot stand as a word of its own at the start of a line: the word was broken there."""


def join_pair(before: str, after: str) -> str:
    """Join two consecutive pieces of a running text at a line's end."""
    last, first = before[-1], after[0]
    if last in _HYPHENS and len(before) > 1 and before[-2].isalpha():
        return before[:-1] + after if first.islower() and not _keeps_hyphen(before) else before + after
    if _NO_SPACE.match(last) and _NO_SPACE.match(first):
        return before + after
    if "\uac00" <= last <= "\ud7a3" and _KOREAN_PARTICLE.match(after):
        return before + after
    if last == "/" and len(before) > 1 and not before[-2].isspace():
        return before + after
    return f"{before} {after}"


def _keeps_hyphen(before: str) -> bool:
    """Whether the hyphen that ends a line is part of the word: ``state-of-the-`` ``art``, ``well-`` ``known``."""
    word = before.rsplit(None, 1)[-1][:-1].lstrip("([{\"'“‘")
    return any(hyphen in word for hyphen in _HYPHENS) or word.lower() in _KEPT_PREFIXES or word.isupper()


def goes_on(before: str, after: str) -> bool:
    """Whether ``after`` reads as the rest of the sentence that ``before`` leaves open."""
    first = after.lstrip()[:1]
    if before.endswith(tuple(_HYPHENS)):
        return first.isalpha()
    return first.islower() or (_is_east_asian(before[-1:]) and _is_east_asian(first))


def _is_east_asian(char: str) -> bool:
    return "\u3040" <= char <= "\ud7a3"
