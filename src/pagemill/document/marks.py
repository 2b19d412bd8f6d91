"""Inline marks on their way out: nested without crossing, targets of links that may be named, HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import Content, Mark, Span
from pagemill.late import re

_TARGET = re.compile(r"(?:https?://|mailto:|tel:)[^\s<>\"\x00-\x1f\x7f]+|#[^\s<>\"\x00-\x1f\x7f]+", re.IGNORECASE)
_PAGE = re.compile(r"#page=(\d+)(?:&.*)?")
_LONGEST_TARGET = 4000
"""Characters of an address; browsers and servers take about 2,000 to 8,000."""
_ORDER = (Mark.LINK, Mark.BOLD, Mark.ITALIC, Mark.STRIKE, Mark.SUPERSCRIPT, Mark.SUBSCRIPT, Mark.CODE)
"""Order of marks on the same characters, from the outside in."""
_WHOLE = (Mark.LINK, Mark.CODE)
"""Marks that are not cut in two where another one crosses them."""
TAGS = {
    Mark.BOLD: "b",
    Mark.ITALIC: "i",
    Mark.STRIKE: "s",
    Mark.CODE: "code",
    Mark.SUPERSCRIPT: "sup",
    Mark.SUBSCRIPT: "sub",
}
"""HTML elements, except that of links."""


class Marked(msgspec.Struct, frozen=True):
    """What is inside of a mark."""

    mark: Mark
    target: str | None
    children: list[Inline]


Inline = str | Marked


class _Segment(msgspec.Struct):
    """Characters that all have the same marks."""

    text: str
    marks: dict[Mark, Span]


def safe_target(target: str | None) -> str | None:
    """The target of a link, if it is one of the web, an address, a telephone number or a place in the document."""
    if target is None or len(target) > _LONGEST_TARGET or not _TARGET.fullmatch(target):
        return None
    return target


def page_of_target(target: str) -> int | None:
    """The page number of a target, from 1; None for other targets."""
    match = _PAGE.fullmatch(target)
    # No document has more pages, and longer numbers are slow to convert.
    return int(match[1][:9]) if match else None


def shown_spans(content: Content) -> tuple[Span, ...]:
    """The marks that a region is shown with: bold letters that make a heading say nothing more in it, code is plain."""
    if content.label is Label.ALGORITHM:
        return ()
    return without_bold(content.content or "", content.spans) if content.level else content.spans


def without_bold(text: str, spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """The marks of a text that is a heading by itself: without those of bold letters, where most are bold."""
    bold = [text[span.start : span.end] for span in spans if span.mark is Mark.BOLD]
    if not bold or 2 * sum(map(_inked, bold)) < _inked(text):
        return spans
    return tuple(span for span in spans if span.mark is not Mark.BOLD)


def _inked(text: str) -> int:
    return len("".join(text.split()))


def nested(text: str, spans: Iterable[Span]) -> list[Inline]:
    """A text as a tree of its marks. Where two cross, one that is not a link and no code is cut in two."""
    last: dict[Mark, int] = {}
    own: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        # Records may come from elsewhere: spans that overlap one of their mark, or are outside of the text, are left
        # out.
        if max(last.get(span.mark, 0), 0) <= span.start < span.end <= len(text):
            last[span.mark] = span.end
            own.append(span)
    cuts = sorted({0, len(text), *(span.start for span in own), *(span.end for span in own)})
    segments = [_Segment(text[start:end], {}) for start, end in pairwise(cuts)]
    number = {cut: index for index, cut in enumerate(cuts)}
    for span in own:
        for segment in segments[number[span.start] : number[span.end]]:
            segment.marks[span.mark] = span
    for span in own:  # in code, only what marks all of it
        if span.mark is Mark.CODE:
            inside = segments[number[span.start] : number[span.end]]
            whole = {id(mark) for mark in inside[0].marks.values()}.intersection(
                *({id(mark) for mark in segment.marks.values()} for segment in inside)
            )
            for segment in inside:
                segment.marks = {k: each for k, each in segment.marks.items() if id(each) in whole or k is Mark.LINK}
    return _tree(segments, frozenset(), {id(span): number[span.start] for span in own})


def _tree(segments: Sequence[_Segment], opened: frozenset[Mark], starts: dict[int, int], at: int = 0) -> list[Inline]:
    """The tree of segments, the first of which is number ``at`` of all."""
    out: list[Inline] = []
    place = 0
    while place < len(segments):
        marks = [mark for mark in _ORDER if mark in segments[place].marks and mark not in opened]
        if not marks:
            piece = segments[place].text
            out.append(piece) if not out or not isinstance(out[-1], str) else out.__setitem__(-1, out[-1] + piece)
            place += 1
            continue
        mark = max(marks, key=lambda mark: (_end(segments, place, mark), -_ORDER.index(mark)))
        end = _end(segments, place, mark)
        for whole in _WHOLE:
            crossing = segments[end].marks.get(whole) if end < len(segments) else None
            # A link or code that begins in here and continues behind it stays whole: this mark ends before it.
            if crossing is not None and crossing is segments[end - 1].marks.get(whole) and whole not in {mark, *opened}:
                end = max(place + 1, min(end, starts[id(crossing)] - at))
        span = segments[place].marks[mark]
        children = _tree(segments[place:end], opened | {mark}, starts, at + place)
        out.append(Marked(mark, span.target, children))
        place = end
    return out


def _end(segments: Sequence[_Segment], start: int, mark: Mark) -> int:
    """Where a mark ends that holds in the segment ``start``; code ends where a link does or begins."""
    alike = (mark, Mark.LINK) if mark is Mark.CODE else (mark,)
    end = start + 1
    while end < len(segments) and all(segments[end].marks.get(k) is segments[start].marks.get(k) for k in alike):
        end += 1
    return end


def inline_html(text: str, spans: Sequence[Span] = (), *, pages: str | None = None) -> str:
    """A text as HTML with its marks; what a link may not lead to stays text.

    Args:
        text: Without markup.
        spans: Its marks.
        pages: Prefix of page anchors (``#page-``); None leaves them as in the record.
    """
    return _html(nested(text, spans), pages) if spans else escape(text, quote=False)


def _html(nodes: Iterable[Inline], pages: str | None) -> str:
    out: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            out.append(escape(node, quote=False))
            continue
        inside = _html(node.children, pages)
        if node.mark is not Mark.LINK:
            out.append(f"<{TAGS[node.mark]}>{inside}</{TAGS[node.mark]}>")
        elif (target := safe_target(node.target)) is None:
            out.append(inside)
        else:
            page = page_of_target(target) if pages is not None else None
            out.append(f'<a href="{escape(target if page is None else f"{pages}{page}")}">{inside}</a>')
    return "".join(out)
