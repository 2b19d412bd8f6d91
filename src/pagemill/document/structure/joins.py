"""Paragraphs, lists, tables and code that continue over a page break, code also over a break between columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise

from pagemill.document.joining import goes_on
from pagemill.document.labels import RUNNING_TEXT, Label
from pagemill.document.page import Furniture
from pagemill.document.structure.book import Book, Draft
from pagemill.late import re

log = logging.getLogger(__name__)

_SAME_EDGE = 15
"""Thousandths of the page's width by which the same edge differs on two pages: the pages of a book have other margins,
but then all edges differ. Not measured."""
_FOOT = 200
"""Thousandths of the page's height that may be empty below a table that continues: the next row was too high for it.
Not measured."""
_DEEPEST_MARGIN = 150
"""Likewise the deepest margin at the foot: where no page is full, none shows where its text would end. Not measured."""
_CLOSE = 1.5
"""Gap below a text at the head of a page, in heights of its own, up to which it is the name of the table there: running
heads are farther away. Not measured."""
_HEAD = 100
"""Likewise above its rest."""
_FULL = 40
"""The same below code that continues: two of its rows, as any may be the last of a page. Not measured."""
_SAME_EDGES = 0.5
"""Share of the left edges of a row's texts that must be at those of a row on the next page."""
_WHOLE = (0, 0, 1000, 1000)
"""The box of regions without a position on their page."""
_ITEM = re.compile(r"[(\[]?(?:(?P<number>\d{1,3})|(?P<letter>[a-zA-Z]))[.)\]]\s|(?P<bullet>[^\w\s\"'“‘«(\[])\s")
_PASSED_OVER = frozenset({Label.FOOTNOTE, Label.VISION_FOOTNOTE})
"""Labels that may follow the last text of a page."""


def join(book: Book) -> None:
    """Join regions to the region of the page before that they continue."""
    # Edges of the text over all pages: a page that ends early would otherwise look full to its last line.
    tops = [draft.facts.box[1] for draft in book.each() if draft.is_content]
    bottoms = [draft.facts.box[3] for draft in book.each() if draft.is_content]
    top, bottom = min(tops, default=0), max(bottoms, default=1000)
    foot = max(bottom, 1000 - _DEEPEST_MARGIN) - _FOOT
    for drafts in book.drafts:
        for last, first in pairwise(_contents(drafts)):
            if first.facts.box[1] < last.facts.box[3] and first.facts.box[0] >= last.facts.box[2]:
                _join_code(book, last, first, bottom)
    for position, (page, following) in enumerate(pairwise(book.pages)):
        if page is None or following is None or not (page.done and following.done):
            continue
        if page.number is not None and following.number != page.number + 1:
            continue  # a page between them is missing
        before, after = _contents(book.drafts[position]), _contents(book.drafts[position + 1])
        if not before or not after:
            continue
        last, first = before[-1], after[0]
        if last.facts.tag and last.facts.box == first.facts.box == _WHOLE:  # the reader of the document cut it here
            same = last.label is first.label and last.facts.is_list == first.facts.is_list
            if last.facts.continues and same:
                _join(book, last, first)
        elif last.label is Label.TABLE and first.label is Label.TABLE:
            at_break = last.facts.box[3] >= foot and first.facts.box[1] <= top + _HEAD
            if at_break and not _has_name(book, first) and _is_one_table(book, last, first):
                _join(book, last, first)
        elif last.label is first.label is Label.ALGORITHM:
            if first.facts.box[1] <= top + _FULL:
                _join_code(book, last, first, bottom)
        elif last.facts.is_list and last.label in RUNNING_TEXT:
            if first.label in RUNNING_TEXT and _list_goes_on(last, first):
                _join(book, last, first)
        else:
            _join_paragraph(book, before, after)


def _join(book: Book, last: Draft, first: Draft) -> None:
    first.joined_to = book.name(last)
    log.info("%s: %s joined to %s, which it continues", book.name(first), first.label, first.joined_to)


def _join_code(book: Book, last: Draft, first: Draft, bottom: int) -> None:
    alike = last.label is first.label is Label.ALGORITHM and book.style(last) == book.style(first) is not None
    if alike and last.facts.box[3] >= bottom - _FULL:
        _join(book, last, first)


def _contents(drafts: Iterable[Draft]) -> list[Draft]:
    return [draft for draft in drafts if draft.is_content and draft.label not in _PASSED_OVER]


def _join_paragraph(book: Book, before: Iterable[Draft], after: Iterable[Draft]) -> None:
    """Pictures and tables may stand between a paragraph and its rest; a heading ends it."""
    last = next((draft for draft in reversed(list(before)) if draft.is_heading or draft.label in RUNNING_TEXT), None)
    first = next((draft for draft in after if draft.is_heading or draft.label in RUNNING_TEXT), None)
    if last is None or first is None or last.is_heading or first.is_heading:
        return
    is_open = last.facts.continues and not last.facts.is_list and not first.facts.is_list
    if is_open and goes_on(last.facts.tail, first.facts.head):
        _join(book, last, first)


def _list_goes_on(last: Draft, first: Draft) -> bool:
    if abs(last.facts.box[0] - first.facts.box[0]) > _SAME_EDGE and not last.facts.box[0] < first.facts.box[0]:
        return False
    if not first.facts.is_list:  # the rest of an item
        return first.facts.head[:1].islower() and goes_on(last.facts.tail, first.facts.head)
    ours, theirs = _ITEM.match(last.facts.head), _ITEM.match(first.facts.head)
    if ours is None or theirs is None:
        return ours is theirs
    if ours.lastgroup != theirs.lastgroup:
        return False
    if ours["number"]:
        return int(theirs["number"]) > int(ours["number"])
    return ours["bullet"] == theirs["bullet"] if ours["bullet"] else theirs["letter"] > ours["letter"]


def _has_name(book: Book, table: Draft) -> bool:
    """Whether a text above the first table of a page names it, which no other page shows to be a running head."""
    top = table.facts.box[1]
    above = [
        draft
        for draft in book.drafts[table.page]
        if draft.facts.length and draft.furniture is not Furniture.PROVEN and draft.facts.box[3] <= top
    ]
    nearest = max(above, key=lambda draft: draft.facts.box[3], default=None)
    if nearest is None:
        return False
    _, upper, _, lower = nearest.facts.box
    return nearest.facts.caption or top - lower < _CLOSE * (lower - upper)


def _is_one_table(book: Book, last: Draft, first: Draft) -> bool:
    ours, theirs = last.facts.table, first.facts.table
    if ours is None or theirs is None or ours.columns != theirs.columns:
        return False
    (left, _, right, _), (left_too, _, right_too, _) = last.facts.box, first.facts.box
    shift = left_too - left  # of the margins, as in a book
    repeated = theirs.first == ours.first
    edges = theirs.foot_edges if repeated else theirs.head_edges
    is_known = bool(ours.foot_edges and edges)
    # Without rules a table is as wide as the longest text of its last column.
    if abs((right_too - left_too) - (right - left)) > (4 if is_known else 2) * _SAME_EDGE:
        return False
    if theirs.header and not repeated:
        head: object = book.style_of(last, ours.head_style)
        foot: object = book.style_of(last, ours.foot_style)
        row: object = book.style_of(first, theirs.head_style)
        if head == foot:  # then by what the cells hold
            head, foot, row = _kinds(ours.first), _kinds(ours.last), _kinds(theirs.first)
        if row != foot and (row == head or head != foot):
            return False  # a table with a head of its own
        if head == foot and not is_known:
            return False
    if not is_known:
        return True
    # Empty cells have no text and so no edge: the row with fewer edges is looked up in the other.
    few, many = sorted((ours.foot_edges, [edge - shift for edge in edges]), key=len)
    same = sum(any(abs(one - other) <= _SAME_EDGE for other in many) for one in few)
    return same >= _SAME_EDGES * len(few)


def _kinds(row: str) -> list[bool]:
    """For each cell of a row, whether it is a number."""
    return [any(map(str.isdigit, cell)) for cell in row.split("\n")]
