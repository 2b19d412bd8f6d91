"""Spans of inline marks: carried from lines to the text that is made of them, cut, moved and joined."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec

from pagemill.document.page import Mark, Span, TextLine
from pagemill.late import re

_SAME = 4
"""Characters that must agree before two texts count as aligned again. Not measured."""
_REACH = 200
"""Characters that may be added or left out at one place: leaders, a formula. Not measured."""
_SCRIPTS = {Mark.SUPERSCRIPT, Mark.SUBSCRIPT}
_RAISED = str.maketrans("0123456789+-−–=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻⁼⁽⁾ⁿⁱ")
_LOWERED = str.maketrans("0123456789+-−–=()ni", "₀₁₂₃₄₅₆₇₈₉₊₋₋₋₌₍₎ₙᵢ")
_IN_UNICODE = re.compile(r"[0-9+\-−–=()ni]+")
_SIGNED = re.compile(r"[-−–][0-9n]+|[0-9]{0,2}[+\-−–]")
"""A power, or the charge of an ion: no note is named so."""
_NUMBER = re.compile(r"[0-9]+$")
_LENGTH = re.compile(r"(?<![^\W\d_])[kcdmµμn]?m$")
_QUANTITY = re.compile(r"(?:[0-9]\s?|[/·])[A-Za-zµμ]{2,3}$")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_LOW_SIGNS = re.compile(r"[.,;:_'’\s]+")
"""Signs that are low or high by themselves: smaller ones behind a raised note look like scripts."""
_BASE = 24
"""Characters before a superscript that are examined."""


def spans_of(content: str, lines: Sequence[TextLine]) -> tuple[Span, ...]:
    """The marks of a text that is made of lines, in their order.

    White space may differ, hyphens at line ends and bullets may be gone, leaders and formulas written otherwise. A mark
    that continues in the next line is one span; none runs over a line break of the content.
    """
    if not any(line.spans for line in lines):
        return ()
    starts = accumulate((len(line.text) + 1 for line in lines), initial=0)
    spans = [
        span
        for start, line in zip(starts, lines, strict=False)
        for span in shifted(cut(line.spans, 0, len(line.text)), start)
    ]
    return _over_code(content, carried(spans, "\n".join(line.text for line in lines), content))


def _over_code(text: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Bold and italic spans with nothing but code between them as one: fonts of fixed pitch often lack those cuts."""
    code = {place for span in spans if span.mark is Mark.CODE for place in range(span.start, span.end)}
    result = [span for span in spans if span.mark not in (Mark.BOLD, Mark.ITALIC)]
    for mark in (Mark.BOLD, Mark.ITALIC) if code else ():
        joined: list[Span] = []
        for span in (span for span in spans if span.mark is mark):
            gap = range(joined[-1].end, span.start) if joined else range(0)
            if gap and "\n" not in text[gap.start : gap.stop] and all(i in code or text[i].isspace() for i in gap):
                joined[-1] = msgspec.structs.replace(joined[-1], end=span.end)
            else:
                joined.append(span)
        result += joined
    return tuple(sorted(result, key=lambda span: (span.start, span.end, span.mark))) if code else spans


def reworded(line: TextLine, text: str, **changed: Any) -> TextLine:
    """A line with an equivalent or shorter text, and its own marks."""
    return msgspec.structs.replace(line, text=text, spans=carried(line.spans, line.text, text), **changed)


def carried(spans: Iterable[Span], source: str, target: str) -> tuple[Span, ...]:
    """The spans of a text, mapped to an equivalent text in the same order."""
    spans = list(spans)
    if not spans:
        return ()
    if source != target:
        found = _places(source, target)
        kept: list[Span] = []
        for span in spans:
            start, end = max(0, span.start), max(0, span.end)
            own = [place for place in found[start:end] if place >= 0]
            if own:
                # What its last character became, as a vowel made of two, ends where the next character stands.
                near = found[end : end + _REACH] if found[end - 1 : end] == [-1] else ()
                last = next((place for place in near if place >= 0), own[-1] + 1)
                kept.append(msgspec.structs.replace(span, start=own[0], end=last))
        spans = kept
    return tidy(target, spans)


def _places(source: str, target: str) -> list[int]:
    """For each character of ``source`` its position in ``target``; -1 for white space and missing characters."""
    inked = [i for i, char in enumerate(source) if not char.isspace()]
    there = [i for i, char in enumerate(target) if not char.isspace()]
    if source.split() == target.split():
        places = [-1] * len(source)
        for i, j in zip(inked, there, strict=True):
            places[i] = j
        return places
    a, b = ("".join(_folded(text[i]) for i in places) for text, places in ((source, inked), (target, there)))
    found = [-1] * len(source)
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found[inked[i]] = there[j]
            i, j = i + 1, j + 1
        else:
            left, added = _difference(a, b, i, j)
            i, j = i + left, j + added
    return found


@lru_cache(4096)
def _folded(char: str) -> str:
    """A character for comparison: its compatibility form if that is one character."""
    form = char if char.isascii() else unicodedata.normalize("NFKC", char)
    return form if len(form) == 1 else char


def _difference(a: str, b: str, i: int, j: int) -> tuple[int, int]:
    """Number of characters to skip in each text until both agree again; one each if they do not agree soon."""
    ways = (
        (a.find(b[j : j + _SAME], i + 1, i + _REACH) - i, 0),  # left out
        (0, b.find(a[i : i + _SAME], j + 1, j + _REACH) - j),  # added
        (a.find(b[j + 1 : j + 1 + _SAME], i + 1, i + _REACH) - i, 1),  # written as one sign
        (1, b.find(a[i + 1 : i + 1 + _SAME], j + 1, j + _REACH) - j),  # one sign written out
    )
    return min((way for way in ways if min(way) >= 0), key=sum, default=(1, 1))


def tidy(text: str, spans: Iterable[Span]) -> tuple[Span, ...]:
    """Spans without white space at their ends, cut at line breaks, in order; those of one mark that touch are one.

    White space between equal marks belongs to them, but for scripts: two notes may be named at one place.
    """
    last: dict[Mark, Span] = {}
    done: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        for start, end in _in_lines(text, max(0, span.start), min(span.end, len(text))):
            before = last.get(span.mark)
            if before is not None and span.target == before.target:
                between = text[before.end : start]
                if not between or (between.isspace() and "\n" not in between and span.mark not in _SCRIPTS):
                    last[span.mark] = msgspec.structs.replace(before, end=max(before.end, end))
                    continue
            if before is not None:
                while start < end and (start < before.end or text[start].isspace()):
                    start += 1
                if start == end:
                    continue
                done.append(before)
            last[span.mark] = msgspec.structs.replace(span, start=start, end=end)
    return tuple(sorted((*done, *last.values()), key=lambda span: (span.start, span.end, span.mark)))


def _in_lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a span in each line, without white space at their ends."""
    for piece in re.finditer(r"[^\s](?:[^\n]*[^\s])?", text[start:end]):
        yield start + piece.start(), start + piece.end()


def cut(spans: Iterable[Span], start: int, end: int) -> tuple[Span, ...]:
    """The spans of a part of a text, with offsets into that part."""
    return tuple(
        msgspec.structs.replace(span, start=max(span.start, start) - start, end=min(span.end, end) - start)
        for span in spans
        if max(span.start, start) < min(span.end, end)
    )


def lines_of(text: str, spans: Sequence[Span]) -> Iterator[tuple[str, tuple[Span, ...]]]:
    """The lines of a text, each with its spans; those are in order, and none runs over a line break."""
    at, first = 0, 0
    for line in text.split("\n"):
        last = first
        while last < len(spans) and spans[last].start < at + len(line):
            last += 1
        yield line, cut(spans[first:last], at, at + len(line))
        at, first = at + len(line) + 1, last


def shifted(spans: Iterable[Span], by: int) -> tuple[Span, ...]:
    """The spans of a text at a later position in another one."""
    return tuple(msgspec.structs.replace(span, start=span.start + by, end=span.end + by) for span in spans)


def with_scripts(text: str, spans: tuple[Span, ...], notes: Collection[str] = ()) -> tuple[str, tuple[Span, ...]]:
    """A text with scripts as Unicode characters (10⁵, m², H₂O), and the remaining spans; the length is unchanged.

    What names a note stays a span: a superscript after a word or a sign, or after a number where such a note exists.

    Args:
        text: With its scripts as plain characters.
        spans: Its marks.
        notes: Prefix of the page's notes.
    """
    kept: list[Span] = []
    for span in spans:
        marked = text[span.start : span.end]
        before = text[max(0, span.start - _BASE) : span.start]
        raised = span.mark is Mark.SUPERSCRIPT
        if span.mark in _SCRIPTS and _IN_UNICODE.fullmatch(marked) and _is_script(before, marked, raised, notes):
            text = text[: span.start] + marked.translate(_RAISED if raised else _LOWERED) + text[span.end :]
        elif span.mark not in _SCRIPTS or not _LOW_SIGNS.fullmatch(marked):
            kept.append(span)
    return text, tuple(kept)


def _is_script(before: str, marked: str, raised: bool, notes: Collection[str]) -> bool:
    """Whether a script belongs to the text before it, rather than naming a note."""
    if not raised:
        return bool(before) and (before[-1].isalnum() or before[-1] in ")]")
    if number := _NUMBER.search(before):
        return marked not in notes or number[0] == "10"
    word = _LAST_WORD.search(before)
    if word is None:
        return False
    alone = len(word[0]) == 1 and word[0] < "\u0590"  # Latin, Greek, Cyrillic; elsewhere one letter is a word
    alone = alone and (marked in ("2", "3") or marked not in notes)
    return alone or bool(_SIGNED.fullmatch(marked) or _LENGTH.search(before) or _QUANTITY.search(before))
