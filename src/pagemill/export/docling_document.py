"""A document as a DoclingDocument: the JSON that docling-core loads, written without it and in bounded memory.

Lengths are in points (1/72 inch) where the resolution of a page is known, as Docling's own are, else in pixels; the
origin is the top-left corner.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import IO, Any, Final, NamedTuple

import msgspec

from pagemill.document.geometry import Box, clip
from pagemill.document.identity import PageKey
from pagemill.document.json_text import json_text
from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.marks import safe_target
from pagemill.document.page import DocumentInfo, Mark, PageResult, Region, Span
from pagemill.document.spans import cut
from pagemill.export.blocks import Block, Kind, blocks
from pagemill.export.html_lists import ORDINAL, OWN_MARK, without_bullet
from pagemill.export.markdown import plain_content
from pagemill.export.parts import is_in_text
from pagemill.tables.table import Cell, Table

VERSION = "1.8.0"
"""Version of the schema: the oldest with all that is used here, so that older releases of docling-core load it, too."""
_LISTS = ("groups", "texts", "pictures", "tables")
_IN_MEMORY = 2**20
"""Bytes of each list that are held in memory."""
_POINTS = 72
_LABELS = {
    Label.FIGURE_TITLE: "caption",
    Label.FOOTNOTE: "footnote",
    Label.VISION_FOOTNOTE: "footnote",
    Label.REFERENCE_CONTENT: "reference",
    Label.HEADER: "page_header",
    Label.FOOTER: "page_footer",
}
_CLASSES = {Label.CHART: "other_chart", Label.SEAL: "stamp"}
"""The class of a picture by layout detection, in Docling's words."""
_MIME_TYPES = {
    **dict.fromkeys((".jpg", ".jpeg"), "image/jpeg"),
    **dict.fromkeys((".tif", ".tiff"), "image/tiff"),
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
}
"""Those that every Python knows: docling-core refuses others."""
_DEEPEST_LIST = 8
_FORMATS = {Mark.BOLD: "bold", Mark.ITALIC: "italic", Mark.STRIKE: "strikethrough"}
"""Docling's names. Its Markdown puts a space between the pieces of a text, so scripts stay in the piece around them."""


class _Ref(msgspec.Struct, frozen=True):
    ref: str = msgspec.field(name="$ref")


class _Box(msgspec.Struct, frozen=True):
    l: float  # noqa: E741 - Docling's name
    t: float
    r: float
    b: float
    coord_origin: str = "TOPLEFT"


class _Provenance(msgspec.Struct, frozen=True):
    page_no: int
    bbox: _Box
    charspan: tuple[int, int]


class _Size(msgspec.Struct, frozen=True):
    width: float
    height: float


class _Image(msgspec.Struct, frozen=True):
    mimetype: str
    dpi: int
    size: _Size
    uri: str


class _Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    start_row_offset_idx: int
    end_row_offset_idx: int
    start_col_offset_idx: int
    end_col_offset_idx: int
    row_span: int = 1
    col_span: int = 1
    column_header: bool = False
    row_header: bool = False


class _TableData(msgspec.Struct, frozen=True):
    table_cells: list[_Cell]
    num_rows: int
    num_cols: int


class _Item(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A text, group, picture or table; missing values are left out."""

    self_ref: str
    parent: _Ref
    label: str
    children: list[_Ref] = []
    content_layer: str = "body"
    prov: list[_Provenance] = []
    name: str | None = None
    text: str | None = None
    orig: str | None = None
    formatting: dict[str, bool] | None = None
    hyperlink: str | None = None
    level: int | None = None
    enumerated: bool = False
    marker: str = "-"
    captions: list[_Ref] = []
    image: _Image | None = None
    meta: dict[str, Any] | None = None
    data: _TableData | None = None


class _Piece(NamedTuple):
    """A piece of a text with its marks."""

    text: str
    start: int
    formatting: dict[str, bool] | None
    hyperlink: str | None
    code: bool


@dataclass(slots=True)
class _Level:
    """An open list: the indent of its items, and the last one."""

    indent: int
    group: _Item
    item: _Item


class PageImage(msgspec.Struct, frozen=True):
    """The saved image of a page."""

    uri: str
    """Address of a ``.jpg`` or ``.png``, relative to the document's file."""
    width: int
    height: int


_BODY: Final = _Ref("#/body")


def docling_document(
    pages: Iterable[PageResult],
    info: DocumentInfo | None = None,
    provisional: bool = False,
    *,
    page_image: Callable[[PageResult], PageImage | None] | None = None,
) -> Iterator[str]:
    """A document as a DoclingDocument, in pieces to be written one after the other.

    Args:
        pages: In page order, all of one document; at least one.
        info: Metadata of the document.
        provisional: Pages of it are missing, and may follow.
        page_image: Gives the image of a page.
    """
    with ExitStack() as stack:
        files = {
            name: stack.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY)) for name in (*_LISTS, "pages", "body")
        }
        writer = _Writer({name: _Spool(file) for name, file in files.items()}, page_image)
        for block in blocks(writer.numbered(pages), furniture=True):
            writer.add(block)
        yield from writer.json(_document_meta(info or DocumentInfo(), provisional))


class _Spool:
    """The elements of a JSON list or object, on the disk if they are many."""

    def __init__(self, file: IO[bytes]) -> None:
        self.count = 0
        self._file = file

    def add(self, text: str) -> None:
        self._file.write((",\n" if self.count else "").encode() + text.encode())
        self.count += 1

    def read(self) -> Iterator[str]:
        self._file.seek(0)
        for line in self._file:
            yield line.decode()


class _Writer:
    def __init__(self, spools: dict[str, _Spool], page_image: Callable[[PageResult], PageImage | None] | None) -> None:
        self._spools = spools
        self._page_image = page_image
        self._numbers: dict[str, int] = {}
        self._taken: set[int] = set()
        self._last = 0
        """The highest number."""
        self._first: PageResult | None = None
        self._pending: list[tuple[str, _Item]] = []
        self._counts = dict.fromkeys(_LISTS, 0)
        """Counts of items, including pending ones."""
        self._levels: list[_Level] = []
        """The open lists, the outermost first."""
        self._in_item = False
        """The last block is inside of an item."""

    def numbered(self, pages: Iterable[PageResult]) -> Iterator[PageResult]:
        """The pages; each gets its number and entry. Pages of datasets may have duplicate numbers, or none."""
        for page in pages:
            self._first = self._first or page
            number = page.page_number
            # docling keys pages by their number, so that one would hide the other.
            if number is None or number in self._taken:
                number = self._last + 1
            self._taken.add(number)
            self._last = max(self._last, number)
            self._numbers[page.page_id] = number
            scale = _scale(page)
            entry = {"page_no": number, "size": _Size(page.width * scale, page.height * scale)}
            image = self._page_image(page) if self._page_image else None
            if image is not None:
                dpi = round((page.dpi or _POINTS) * image.width / max(page.width, 1))
                mime_type = _MIME_TYPES[PurePosixPath(image.uri).suffix]
                entry["image"] = _Image(mime_type, dpi, _Size(image.width, image.height), image.uri)
            self._spools["pages"].add(f'"{number}":{json_text(entry)}')
            yield page

    def json(self, meta: dict[str, Any]) -> Iterator[str]:
        """All that was added, with the metadata of the document as a whole."""
        self._flush()
        assert self._first is not None
        name = PurePosixPath(self._first.source).name or self._first.doc_id
        origin = {
            "mimetype": _MIME_TYPES.get(PurePosixPath(name.lower()).suffix, "application/octet-stream"),
            "binary_hash": int(PageKey.parse(self._first.page_key).digest[-16:], 16) if self._first.page_key else 0,
            "filename": name,
        }
        head = {"schema_name": "DoclingDocument", "version": VERSION, "name": self._first.doc_id, "origin": origin}
        yield json_text(head)[:-1]
        yield ',"body":{"self_ref":"#/body","label":"unspecified","name":"_root_",'
        yield (f'"meta":{json_text(meta)},' if meta else "") + '"children":[\n'
        yield from self._spools["body"].read()
        yield "]}"
        for kind in _LISTS:
            yield f',"{kind}":[\n'
            yield from self._spools[kind].read()
            yield "]"
        yield ',"pages":{\n'
        yield from self._spools["pages"].read()
        yield "}}\n"

    def add(self, block: Block) -> None:
        """Add the items of a block to the body, or to the list item that it is inside of."""
        inside = bool(self._levels) and block.depth > 0 and block.kind is not Kind.LIST
        goes_on = block.kind is Kind.LIST and self._in_item
        if not inside and not goes_on:
            self._flush()
        parent = self._levels[min(block.depth, len(self._levels)) - 1].item if inside else None
        if block.kind is Kind.LIST:
            first = self._list(block)
        else:
            write = self._float if block.kind in (Kind.PICTURE, Kind.TABLE) else self._text
            first = write(block, parent)
        if not inside and not goes_on:
            self._spools["body"].add(json_text(_Ref(first.self_ref)))
        self._in_item = inside

    def _flush(self) -> None:
        """Write what is pending: a list is, while blocks inside of its items may follow."""
        for kind, item in self._pending:
            self._spools[kind].add(json_text(item))
        self._pending.clear()
        self._levels.clear()

    def _new(self, kind: str, label: str, parent: _Item | None, **fields: Any) -> _Item:
        index = self._counts[kind]
        self._counts[kind] += 1
        above = _BODY if parent is None else _Ref(parent.self_ref)
        item = _Item(self_ref=f"#/{kind}/{index}", parent=above, label=label, **fields)
        if parent is not None:
            parent.children.append(_Ref(item.self_ref))
        self._pending.append((kind, item))
        return item

    def _text(self, block: Block, parent: _Item | None) -> _Item:
        region = block.region
        label = _LABELS.get(region.label, "text")
        level = None
        if block.kind is Kind.HEADING:
            # Docling counts section headers from 1 below the title, and we count the title as 1.
            level = max((region.level or 2) - 1, 1)
            label, level = ("title", None) if region.label is Label.DOC_TITLE else ("section_header", level)
        elif block.kind in (Kind.FORMULA, Kind.CODE):
            label = block.kind.value
        elif region.label is Label.NUMBER:
            # Docling has no label for a page number: by the half of the page in which it is.
            label = "page_header" if region.bbox[1] + region.bbox[3] < block.page.height else "page_footer"
        text = block.text.strip()
        # Of joined paragraphs no single content is the original.
        orig = (region.content or "") if len(block.pieces) == 1 else text
        at = len(block.text) - len(block.text.lstrip())
        pieces = _pieces(text, cut(block.spans, at, at + len(text)))
        if block.kind is Kind.HEADING:  # whose text is asked for as a whole
            pieces = pieces[:1] if len(pieces) == 1 else []
        if len(pieces) > 1:
            return self._inline(block, pieces, parent, at, label)
        item = self._new("texts", label, parent, text=text, orig=orig, level=level, **_layer(block))
        item.prov = self._places(block)
        item.meta = _meta(region, pictured=False) if block.kind is Kind.FORMULA else None
        self._mark(item, block, pieces, at)
        return item

    def _mark(self, item: _Item, block: Block, pieces: Sequence[_Piece], at: int) -> None:
        """Apply marks to an item: to all of it, or to pieces, which replace its text."""
        if len(pieces) > 1:
            item.text = ""
            self._inline(block, pieces, item, at)
        elif pieces:
            item.formatting, item.hyperlink = pieces[0].formatting, pieces[0].hyperlink

    def _inline(
        self, block: Block, pieces: Sequence[_Piece], parent: _Item | None, at: int, label: str = "text"
    ) -> _Item:
        """Pieces of a text that begins at an offset of a block."""
        group = self._new("groups", "inline", parent, name="group")
        for piece in pieces:
            self._new(
                "texts",
                "code" if piece.code else label,
                group,
                text=piece.text,
                orig=piece.text,
                prov=self._places(block, at + piece.start, at + piece.start + len(piece.text)),
                formatting=piece.formatting,
                hyperlink=piece.hyperlink,
                **_layer(block),
            )
        return group

    def _list(self, block: Block) -> _Item:
        levels = self._levels if self._in_item else []
        group = levels[0].group if levels else self._new("groups", "list", None, name="list")
        at, item = 0, levels[-1].item if levels else group
        for line in block.text.split("\n"):
            text = line.lstrip()
            indent = len(line) - len(text)
            while len(levels) > 1 and indent < levels[-1].indent:
                levels.pop()
            if not levels:
                levels.append(_Level(indent, group, item))
            # docling-core follows lists by recursion.
            elif indent > levels[-1].indent and len(levels) < _DEEPEST_LIST:
                levels.append(_Level(indent, self._new("groups", "list", item, name="list"), item))
            marker, body = _marked(text)
            item = self._new(
                *("texts", "list_item", levels[-1].group),
                text=body,
                orig=text,
                prov=self._places(block, at, at + len(line), len(body)),
                enumerated=bool(marker),
                marker=marker or "-",
            )
            levels[-1].item = item
            start = at + len(line.rstrip()) - len(body)
            self._mark(item, block, _pieces(body, cut(block.spans, start, start + len(body))), start)
            at += len(line) + 1
        self._levels = levels
        return group

    def _float(self, block: Block, parent: _Item | None) -> _Item:
        region = block.region
        kind = "tables" if block.table else "pictures"
        item = self._new(kind, kind[:-1], parent, prov=self._places(block), **_layer(block))
        for caption in block.captions:
            text = plain_content(caption)
            node = self._new("texts", "caption", item, text=text, orig=caption.content or "", **_layer(block))
            node.prov = [self._place(block.page, caption.bbox, len(text))]
            item.captions = [*item.captions, _Ref(node.self_ref)]
        if block.table:
            item.data, item.meta = _table_data(block.table), _meta(region, pictured=False)
            if block.table.caption:
                text = block.table.caption
                node = self._new("texts", "caption", item, text=text, orig=text, prov=item.prov)
                item.captions = [*item.captions, _Ref(node.self_ref)]
            return item
        if block.text.strip():
            self._new("texts", "text", item, text=block.text, orig=block.text, prov=item.prov, **_layer(block))
        item.image = _picture(block)
        item.meta = _meta(region, pictured=True)
        return item

    def _places(
        self, block: Block, start: int = 0, end: int | None = None, most: int | None = None
    ) -> list[_Provenance]:
        """The position of some characters of a block; the whole block if it has no text."""
        end = len(block.text) if end is None else end
        most = end - start if most is None else most
        places = []
        for piece in block.pieces:
            first, last = max(start, piece.start), min(end, piece.end)
            if first < last or not block.text:
                place = self._place(piece.page, piece.box(first, last), min(last - start, most), first - start)
                places.append(place)
        return places

    def _place(self, page: PageResult, box: Box, end: int, start: int = 0) -> _Provenance:
        scale = _scale(page)
        left, top, right, bottom = (round(side * scale, 3) for side in clip(box, page.width, page.height))
        return _Provenance(self._numbers[page.page_id], _Box(left, top, right, bottom), (min(start, end), end))


def _document_meta(info: DocumentInfo, provisional: bool) -> dict[str, Any]:
    """The metadata, under names of our own: Docling has none for them."""
    fields: dict[str, Any] = {f"pagemill__{name}": value for name, value in msgspec.to_builtins(info).items()}
    return fields | ({"pagemill__provisional": True} if provisional else {})


def _pieces(text: str, spans: Sequence[Span]) -> list[_Piece]:
    """A text cut where its marks begin and end; marks of parts of words are left out, as words stay whole."""
    shown = [
        span
        for span in spans
        if span.mark in (*_FORMATS, Mark.CODE, Mark.LINK)
        and not (text[span.start - 1 : span.start].isalnum() or text[span.end : span.end + 1].isalnum())
    ]
    cuts = sorted({0, len(text), *(span.start for span in shown), *(span.end for span in shown)})
    pieces: list[_Piece] = []
    for start, end in pairwise(cuts):
        inner = text[start:end].strip()
        # White space between two marks is not a piece.
        if not inner:
            continue
        own = [span for span in shown if span.start <= start and span.end >= end]
        formats = {_FORMATS[span.mark]: True for span in own if span.mark in _FORMATS}
        target = next((safe_target(span.target) for span in own if span.mark is Mark.LINK), None)
        code = any(span.mark is Mark.CODE for span in own)
        start += len(text[start:end]) - len(text[start:end].lstrip())
        pieces.append(_Piece(inner, start, formats or None, target, code))
    return pieces


def _scale(page: PageResult) -> float:
    """Units of length per pixel."""
    return _POINTS / page.dpi if page.dpi else 1.0


def _layer(block: Block) -> dict[str, str]:
    return {} if is_in_text(block.region, block.page.leaves_out) else {"content_layer": "furniture"}


def _marked(text: str) -> tuple[str, str]:
    """The number or letter of a list item, empty for a bullet, and the text after it."""
    mark = ORDINAL.match(text) or OWN_MARK.match(text)
    # A check box or dash numbers nothing.
    if mark and any(map(str.isalnum, mark[0])):
        return mark[0].strip(), text[mark.end() :].strip()
    return "", without_bullet(text).strip()


def _table_data(table: Table) -> _TableData:
    """A table; a header cell is above its column in the rows at the top, elsewhere before its row."""
    top = max(table.header_rows, 1)
    cells = [
        _Cell(
            text=cell.text,
            start_row_offset_idx=cell.row,
            end_row_offset_idx=cell.row + cell.row_span,
            start_col_offset_idx=cell.column,
            end_col_offset_idx=cell.column + cell.column_span,
            row_span=cell.row_span,
            col_span=cell.column_span,
            column_header=cell.header and cell.row < top,
            row_header=cell.header and cell.row >= top,
        )
        for cell in table.cells
    ]
    return _TableData(cells, table.rows, table.columns)


def _picture(block: Block) -> _Image | None:
    """The saved crop of a picture."""
    for crop in block.page.image_crops:
        if crop.region == block.region.index:
            x1, y1, x2, y2 = block.region.bbox
            return _Image(
                "image/jpeg", round(block.page.dpi or _POINTS), _Size(round(x2 - x1), round(y2 - y1)), crop.path
            )
    return None


def _meta(region: Region, *, pictured: bool) -> dict[str, Any] | None:
    """The class of a picture, and descriptions of any element. Only pictures may have a classification."""
    meta: dict[str, Any] = {}
    if pictured and region.label in _CLASSES:
        found: dict[str, Any] = {"class_name": _CLASSES[region.label], "created_by": region.source or None}
        if region.score is not None:
            found["confidence"] = min(max(region.score, 0.0), 1.0)
        meta["classification"] = {"predictions": [found]}
    if described := region.description:
        text = "\n".join(filter(None, [described.summary, ", ".join(described.keywords)]))
        kind = "summary" if region.label in FORMULAS else "description"
        meta[kind] = {"text": text, "created_by": described.engine or None}
        if described.chart and region.label in FIGURES:
            cells = tuple(
                Cell(text=text, row=row, column=column, header=row == 0)
                for row, texts in enumerate(described.chart)
                for column, text in enumerate(texts)
            )
            data = _table_data(Table(cells=cells, rows=len(described.chart), columns=len(described.chart[0])))
            meta["tabular_chart"] = {"chart_data": data, "created_by": described.engine or None}
    return meta or None
