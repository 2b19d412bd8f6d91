"""Facts: the data of a page from which the structure of its document is derived, some hundred bytes per region."""

from __future__ import annotations

import html
from collections.abc import Iterator

import msgspec

from pagemill.document.json_text import json_bytes
from pagemill.document.labels import FORMULAS, PICTURES, Label
from pagemill.document.page import ContentFormat, Furniture, Mark, PageResult, Region, Status, Style, TextLine
from pagemill.late import re

FACTS_VERSION = 2
"""Below 128. Facts of another version are derived again from the record."""
HEAD = 200
"""Stored characters of a heading or running head; of longer texts fewer are stored."""
TAIL = 40
"""Characters of its end: enough for the last word, and for whether a sentence ends there."""
_MOST_LINKS = 1000
"""Internal targets of a page that are kept; an index of a book has some hundreds."""
_MOST_EDGES = 40
"""Left edges of a table's row that are kept: columns of the widest tables."""
_MOST_ROW = 500
"""Characters of the first row of a table that are kept."""
_MOST_CELLS = 4000
"""Cells of a table that are looked at: its columns are known by then."""

_ROW = re.compile(r"<tr\b[^>]*>(.*?)(?=<tr\b|</table|$)", re.DOTALL | re.IGNORECASE)
_CELL = re.compile(r"<t([dh])\b([^>]*)>(.*?)(?=</?t[dhr]\b|</table|$)", re.DOTALL | re.IGNORECASE)
_SPAN = re.compile(r"colspan\s*=\s*[\"']?(\d{1,3})", re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_PLACE = re.compile(r"#page=\d{1,9}(?:&top=\d{1,4})?")
_TARGET = re.compile(r'href="(#page=[^"]{1,40})"')


class TableFacts(msgspec.Struct, frozen=True, array_like=True):
    """Facts that show whether a table continues on the next page."""

    columns: int
    first: str
    """Texts of the first row's cells."""
    last: str
    """Likewise of the last row."""
    header: bool
    """The first row consists of header cells: of a table without its head most likely a guess."""
    head_edges: tuple[int, ...]
    """Left edges of the first row's lines, in thousandths of the page's width; empty where they are unknown."""
    foot_edges: tuple[int, ...]
    """Likewise of the last row."""
    head_style: int | None
    """Style of the first row: an index into the page's styles."""
    foot_style: int | None
    """Likewise of the last row."""


class RegionFacts(msgspec.Struct, frozen=True, array_like=True):
    """Stored facts of a region."""

    label: Label
    box: tuple[int, int, int, int]
    """In thousandths of the page."""
    head: str
    """Its text, in one line; of a long one the start."""
    tail: str
    """End of its text, likewise."""
    length: int
    """Characters of its text."""
    rows: int
    """Number of its lines."""
    height: int
    """Median height of these, in ten-thousandths of the page's height."""
    level: int | None
    style: int | None
    """Index into the page's styles."""
    tag: str
    furniture: Furniture | None
    is_list: bool
    depth: int
    continues: bool
    guessed: bool
    """A layout model found it."""
    caption: bool
    """Whether it is a caption, or the number of a formula."""
    table: TableFacts | None


class Facts(msgspec.Struct, frozen=True, array_like=True):
    """Stored facts of a page."""

    version: int
    page_id: str
    number: int | None
    """Number of the page in its document."""
    done: bool
    """Whether it was read."""
    width: int
    height: int
    styles: tuple[Style, ...]
    regions: tuple[RegionFacts, ...]
    """By index, all of them."""
    targets: tuple[str, ...]
    """Link targets of the page in the document."""


_decoder = msgspec.msgpack.Decoder(Facts)


def facts_of(page: PageResult) -> bytes:
    """The facts of a page, as they are stored beside its record."""
    facts = Facts(
        FACTS_VERSION,
        page.page_id,
        page.page_number,
        page.status is Status.DONE,
        page.width,
        page.height,
        page.styles,
        tuple(_region(page, region) for region in page.regions),
        tuple(_targets(page)),
    )
    try:
        return msgspec.msgpack.encode(facts)
    except UnicodeEncodeError:  # text that UTF-8 cannot hold: facts are those of the record as it is written
        return facts_of(msgspec.json.decode(json_bytes(page), type=PageResult))


def is_current(data: bytes) -> bool:
    """Whether stored facts were derived by this version."""
    # In MessagePack the header of the array is one byte, and a number below 128 the next one: nothing has to be
    # decoded.
    return data[1:2] == bytes([FACTS_VERSION])


def facts_from(data: bytes) -> Facts | None:
    """Stored facts; None for those of another version, and for damaged ones."""
    try:
        facts = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return facts if is_current(data) else None


def one_line(text: str) -> str:
    """A text without line breaks and double spaces."""
    return " ".join(text.split())


def _region(page: PageResult, region: Region) -> RegionFacts:
    text = region.content or ""
    is_prose = region.content_format in (ContentFormat.TEXT, ContentFormat.MARKDOWN)
    # Markup and LaTeX would pass for words of the text.
    silent = not is_prose or region.label in FORMULAS or region.label in PICTURES
    heights = sorted(line.box[3] - line.box[1] for line in region.lines)
    height = heights[len(heights) // 2] if heights else 0.0
    return RegionFacts(
        region.label,
        region.bbox_2d,
        "" if silent else one_line(text[: 2 * HEAD])[: HEAD if len(text) <= HEAD else 2 * TAIL],
        "" if silent else one_line(text[-2 * TAIL :])[-TAIL:],
        len(text),
        len(region.lines),
        round(10_000 * height / max(page.height, 1)),
        region.level,
        region.style,
        region.tag,
        region.furniture,
        region.list_item,
        region.list_depth,
        region.continues,
        region.score is not None,
        region.caption_of is not None,
        _table(page, region) if region.label is Label.TABLE and region.content_format is ContentFormat.HTML else None,
    )


def _table(page: PageResult, region: Region) -> TableFacts | None:
    columns, first, last, header, cells = 0, "", "", False, 0
    for number, row in enumerate(_ROW.finditer(region.content or "")):
        found = _CELL.findall(row[1])
        spans = (_SPAN.search(attributes) for _, attributes, _ in found)
        columns = max(columns, sum(int(span[1]) if span else 1 for span in spans))
        cells += len(found)
        texts = (one_line(html.unescape(_TAG.sub("", text[:_MOST_ROW]))) for _, _, text in found)
        last = "\n".join(texts)[:_MOST_ROW]
        if number == 0:
            first = last
            header = bool(found) and all(kind.lower() == "h" for kind, _, _ in found)
        # Its columns are known already; a huge table is not read to its end for the rest.
        if cells > _MOST_CELLS:
            break
    if not columns:
        return None
    lines = sorted(region.lines, key=lambda line: line.box[1])
    styles = (lines[0].style, lines[-1].style) if lines else (None, None)
    return TableFacts(columns, first, last, header, _edges(page, lines), _edges(page, lines[::-1]), *styles)


def _edges(page: PageResult, lines: list[TextLine]) -> tuple[int, ...]:
    """Left edges of the lines in a row with the first one."""
    if not lines:
        return ()
    top, bottom = lines[0].box[1], lines[0].box[3]
    row = (line for line in lines[: 2 * _MOST_EDGES] if line.box[1] < bottom and line.box[3] > top)
    return tuple(sorted({round(1000 * line.box[0] / max(page.width, 1)) for line in row})[:_MOST_EDGES])


def _targets(page: PageResult) -> Iterator[str]:
    found: dict[str, None] = {}
    for region in page.regions:
        for span in region.spans:
            if span.mark is Mark.LINK and span.target and _PLACE.fullmatch(span.target):
                found[span.target] = None
        if region.content_format is ContentFormat.HTML and "#page=" in (region.content or ""):
            targets = (html.unescape(target) for target in _TARGET.findall(region.content or ""))
            found |= dict.fromkeys(target for target in targets if _PLACE.fullmatch(target))
    yield from list(found)[:_MOST_LINKS]
