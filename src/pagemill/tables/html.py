"""Parse untrusted table HTML (a model's answer) into a `Table`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pagemill.document.marks import TAGS, safe_target
from pagemill.document.page import Mark, Span
from pagemill.document.spans import carried
from pagemill.late import etree, html
from pagemill.tables.table import Cell, Table, build_table, clean_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_CHARACTERS = 4_000_000
MAX_CELLS = 20_000
MAX_SLOTS = 200_000
"""Most grid slots (rows times columns); a page's table has hundreds."""
MAX_COLUMN_SPAN = 1000
"""The HTML standard's limit."""
MAX_OPEN_ROW_SPANS = 1000
"""Cells that may reach down from above at a time; those beyond stay in their row."""

_BREAKS = frozenset({"br", "p", "div", "li", "tr", "caption"})
_SEPARATORS = frozenset({"td", "th"})
_MARKS = {tag: mark for mark, tag in TAGS.items()} | {
    "strong": Mark.BOLD,
    "em": Mark.ITALIC,
    "del": Mark.STRIKE,
    "strike": Mark.STRIKE,
    "a": Mark.LINK,
}
_SILENT = frozenset({"script", "style", "template", "head"})


def parse_table(text: str, *, marks: bool = True) -> Table | None:
    """Read the first table of an HTML text.

    Only rows, cells, spans, the caption, plain text and inline marks survive. Malformed spans count as 1, longer ones
    end with the table; rows and columns that exist in spans only are squeezed out; a table in a cell becomes the cell's
    text. Links lead to where :func:`pagemill.document.marks.safe_target` allows.

    Args:
        text: HTML.
        marks: Read inline marks.

    Returns:
        The table; None if there is none, or if it is beyond the limits of this module.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    # libxml2 ends at a NUL, and refuses lone surrogates and, in str input, an encoding declaration.
    data = text.replace("\0", "").encode("utf-8", errors="replace")
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
    try:
        root = html.document_fromstring(data, parser=parser)
    except etree.ParserError:  # empty, or nothing but comments
        return None
    table = next(root.iter("table"), None)
    if table is None:
        return None
    rows = list(_rows(table))
    if sum(len(cells) for _, cells in rows) > MAX_CELLS:
        return None
    cells = _place(rows, marks)
    if not cells or len({cell.row for cell in cells}) * len({cell.column for cell in cells}) > MAX_SLOTS:
        return None
    caption = next((_cell_text(found)[0] for found in table.iterchildren("caption")), "")
    return replace(build_table(cells), caption=" ".join(caption.split()))


def _rows(table: HtmlElement) -> Iterator[tuple[bool, list[HtmlElement]]]:
    """Rows of the table itself, not of tables inside: whether in ``thead``, and the cells."""
    pending: list[tuple[HtmlElement, bool]] = [(table, False)]
    while pending:
        element, in_head = pending.pop()
        if element.tag == "tr":
            yield in_head, [child for child in element.iterchildren(etree.Element) if child.tag in _SEPARATORS]
        elif element is table or element.tag in ("thead", "tbody", "tfoot"):
            head = in_head or element.tag == "thead"
            pending += [(child, head) for child in reversed(list(element.iterchildren(etree.Element)))]


def _place(rows: list[tuple[bool, list[HtmlElement]]], marks: bool) -> list[Cell]:
    """Put cells on the grid as browsers do: each in the first column that no cell from above covers."""
    placed: list[Cell] = []
    open_spans: list[tuple[int, int, int]] = []  # first column, end column, end row; by column
    for row, (in_head, elements) in enumerate(rows):
        if not elements:  # of which there may be millions
            continue
        open_spans = [span for span in open_spans if span[2] > row]
        new_spans: list[tuple[int, int, int]] = []
        ahead = 0
        column = 0
        for element in elements:
            while ahead < len(open_spans) and open_spans[ahead][0] <= column:
                column = max(column, open_spans[ahead][1])
                ahead += 1
            width = _span(element, "colspan", MAX_COLUMN_SPAN)
            if ahead < len(open_spans):  # browsers let such cells overlap; here the one from above wins
                width = min(width, open_spans[ahead][0] - column)
            height = _span(element, "rowspan", len(rows) - row)
            # They are filtered and sorted for every row: without a bound a hostile table would take quadratic time.
            if len(open_spans) + len(new_spans) >= MAX_OPEN_ROW_SPANS:
                height = 1
            text, spans = _cell_text(element)
            placed.append(
                Cell(
                    row=row,
                    column=column,
                    row_span=height,
                    column_span=width,
                    text=text,
                    spans=spans if marks else (),
                    header=in_head or element.tag == "th",
                )
            )
            if height > 1:
                new_spans.append((column, column + width, row + height))
            column += width
        open_spans = sorted(open_spans + new_spans)
    return placed


def _span(element: HtmlElement, name: str, limit: int) -> int:
    value = (element.get(name) or "").strip()
    # Longer strings of digits would only be clamped, and slow to convert.
    return max(1, min(int(value), limit)) if value.isascii() and value.isdigit() and len(value) < 10 else 1


def _cell_text(element: HtmlElement) -> tuple[str, tuple[Span, ...]]:
    """The text of an element and its inline marks."""
    pieces: list[str] = []
    spans: list[Span] = []
    opened: list[tuple[int, Mark | None, str | None]] = []
    at = 0
    for piece in _texts(element):
        if isinstance(piece, str):
            pieces.append(piece)
            at += len(piece)
        elif piece is not None:
            mark = _MARKS.get(piece.tag)
            target = safe_target(piece.get("href")) if mark is Mark.LINK else None
            known = mark in (inner[1] for inner in opened) or (mark is Mark.LINK and target is None)
            opened.append((at, None if known else mark, target))
        else:
            start, mark, target = opened.pop()
            if mark is not None and start < at:
                spans.append(Span(start, at, mark, target))
    text = "".join(pieces)
    # Marks refer to the text before it is cleaned; white space inside them is folded with it.
    cleaned = clean_text(text)
    return cleaned, carried(spans, text, cleaned)


def _texts(element: HtmlElement) -> Iterator[str | HtmlElement | None]:
    """Pieces of an element's text: white space collapses, blocks and ``br`` break lines.

    An element that marks its text comes before that, and None after it.
    """
    yield " ".join((element.text or "").split("\n"))
    for child in element.iterchildren(etree.Element):
        if child.tag not in _SILENT:
            edge = "\n" if child.tag in _BREAKS else " " if child.tag in _SEPARATORS else ""
            yield edge
            if child.tag in _MARKS:
                yield child
            yield from _texts(child)
            if child.tag in _MARKS:
                yield None
            yield edge
        yield " ".join((child.tail or "").split("\n"))
