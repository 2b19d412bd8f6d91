"""The result of a document reader: parts, which become pages, of blocks, which become regions.

A reader is a function ``read(path, password) -> Document``. It runs in a child process with limits, gets
untrusted files, and fetches nothing. Readers of others are entry points of the group
:data:`pagemill.imaging.formats.READERS`, named after the suffix of their files without its dot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, DocumentInfo, Furniture, Mark, Span
from pagemill.document.shown import count
from pagemill.document.spans import shifted, tidy
from pagemill.errors import TooLargeError
from pagemill.tables.table import Cell, build_table, clean_text

PAGE_SIZE = (816, 1056)
"""Pixels of a page that has no size of its own: letter paper at 96 dpi. Regions without a place have all of it."""
DPI = 96.0
PART_CHARACTERS = 20_000
"""Approximate characters of a part of a document without pages: about seven printed pages."""
TABLE_CELLS = 4_000
"""Maximum number of cells of a table on one page; the rest of it is on the next ones. Exports refuse tables of over
20,000."""
_TABLE_SLOTS = 40_000
"""Places of a table's grid from which it continues on the next page: its cells may be far from each other."""
_MOST_SLOTS = 1_000_000
"""Maximum cell positions of a grid that cannot be cut, as its cells span all rows."""
MOST_PARTS = 20_000
"""Parts of a document: its structure is derived from as many pages at most."""
MOST_HEADINGS = 200
"""Headings in a row after which a part may end. Not measured."""
MOST_DEPTH = 8
"""Maximum distinct levels of nested lists."""

Marks = tuple[tuple[Mark, str | None], ...]
"""Marks with the targets of links."""


class Picture(msgspec.Struct, frozen=True):
    """An encoded image inside a document, and its description there."""

    data: bytes
    alternative: str = ""
    name: str = ""


class Block(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What becomes a region; its fields are those of :class:`pagemill.document.page.Content`."""

    label: Label = Label.TEXT
    content: str | None = None
    content_format: ContentFormat = ContentFormat.TEXT
    level: int | None = None
    list_item: bool = False
    list_depth: int = 0
    spans: tuple[Span, ...] = ()
    furniture: Furniture | None = None
    box: tuple[float, float, float, float] | None = None
    """In pixels of its page; None for a block without a position."""
    picture: Picture | None = None
    continues: bool = False
    """The block continues with the first one of the next part."""


class Part(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What becomes a page: a slide, a sheet, a chapter, or a piece of a document without pages."""

    blocks: list[Block] = []
    width: int = PAGE_SIZE[0]
    height: int = PAGE_SIZE[1]
    metadata: dict[str, Any] = {}
    """Metadata for the record, such as the name of a sheet. Plain JSON values."""
    notes: list[str] = []
    """Notes for the user that are not failures: a sheet is hidden."""
    warnings: list[str] = []
    """Unreadable parts of the page."""


class Document(msgspec.Struct, kw_only=True):
    """A document that was read."""

    parts: list[Part]
    info: DocumentInfo = DocumentInfo()


class Inline:
    """Text with marks while it is collected: in pieces, which are joined on demand."""

    __slots__ = ("_length", "_pieces", "has_formula", "spans")

    def __init__(self, text: str = "", spans: Iterable[Span] = (), has_formula: bool = False) -> None:
        self._pieces = [text] if text else []
        self._length = len(text)
        self.spans = list(spans)
        self.has_formula = has_formula

    @classmethod
    def of(cls, block: Block) -> Inline:
        """The text of a block."""
        return cls(block.content or "", block.spans, block.content_format is ContentFormat.MARKDOWN)

    @property
    def text(self) -> str:
        """All of it."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @text.setter
    def text(self, text: str) -> None:
        self._pieces, self._length = [text] if text else [], len(text)

    @property
    def last(self) -> str:
        """Its last character, in constant time; empty if there is none."""
        return self._pieces[-1][-1] if self._pieces else ""

    def add(self, text: str, marks: Iterable[tuple[Mark, str | None]] = ()) -> None:
        """Append text that has these marks."""
        if not text:
            return
        start, self._length = self._length, self._length + len(text)
        self._pieces.append(text)
        self.spans += (Span(start, self._length, mark, target) for mark, target in marks)

    def end_line(self, mark: str = "\n") -> None:
        """Append a line break, or another mark, instead of the spaces at the end."""
        while self.last == " ":
            piece = self._pieces.pop()
            kept = piece.rstrip(" ")
            self._length -= len(piece) - len(kept)
            self._pieces += [kept] if kept else []
        self.add(mark)

    def formula(self, latex: str) -> None:
        """Append a formula inside of the text."""
        self.add(f"${latex.strip().replace('$', '')}$")
        self.has_formula = True

    def extend(self, other: Inline) -> None:
        """Append what another one holds."""
        start = self._length
        self.add(other.text)
        self.spans += shifted(other.spans, start)
        self.has_formula |= other.has_formula

    def add_line(self, other: Inline) -> None:
        """Append the content of another one, on its own line."""
        self.add("\n" if self.last else "")
        self.extend(other)

    def behind(self, lead: str) -> Inline:
        """The same behind a number, a bullet or a name."""
        whole = Inline(lead)
        whole.extend(self)
        return whole

    def blocks(self, **fields: Any) -> list[Block]:
        """The text as one block, without white space at its ends; no block where nothing is left."""
        lead = self._length - len(self.text.lstrip())
        text = self.text.strip()
        if not text:
            return []
        if self.has_formula:
            fields.setdefault("content_format", ContentFormat.MARKDOWN)
        return [Block(content=text, spans=tidy(text, shifted(self.spans, -lead)), **fields)]


def heading(inline: Inline, level: int) -> list[Block]:
    """A heading of a level from 1, which is that of the title; as :meth:`Inline.blocks`."""
    inline.text = inline.text.replace("\n", " ")
    label = Label.DOC_TITLE if level == 1 else Label.PARAGRAPH_TITLE
    return inline.blocks(label=label, level=min(max(level, 1), 6))


def list_item(inline: Inline, depth: int, marker: str) -> list[Block]:
    """An item of a list, ``depth`` levels below the outermost, with its marker as displayed."""
    inline.text = inline.text.replace("\n", " ")
    items = inline.behind(f"{marker.strip() or '•'} ").blocks(list_item=True)
    indent = "  " * min(depth, MOST_DEPTH)
    for item in items:
        # Put in front of the block: as text it would go with the white space at the ends.
        item.content, item.spans = indent + (item.content or ""), shifted(item.spans, len(indent))
    return items


def display_formula(latex: str) -> Block:
    """A formula that is a paragraph by itself."""
    return Block(label=Label.DISPLAY_FORMULA, content=latex, content_format=ContentFormat.LATEX)


def displayed(text: str, formulas: Sequence[str]) -> list[Block]:
    """The formulas of a paragraph that holds nothing else, a block each; none of another paragraph."""
    alone = Inline()
    for latex in formulas:
        alone.formula(latex)
    is_alone = "".join(text.split()) == "".join(alone.text.split())
    return [display_formula(latex) for latex in formulas if is_alone]


def note(text: Inline, label: Label, *, number: str = "", author: str = "") -> list[Block]:
    """A note behind its raised number, or a comment behind its author's name."""
    body = Inline(f"{author}: " if author else "")
    if number:
        body.add(number, [(Mark.SUPERSCRIPT, None)])
        body.add(" ")
    body.extend(text)
    return body.blocks(label=label)


class Nesting:
    """Depth of the items of a list, from their indents."""

    __slots__ = ("_indents",)

    def __init__(self) -> None:
        self._indents: list[int] = []

    def depth(self, indent: int) -> int:
        """How many levels an item is below the outermost of its list: by the indents of the items before it."""
        while self._indents and self._indents[-1] > indent:
            self._indents.pop()
        if not self._indents or self._indents[-1] < indent:
            self._indents.append(indent)
        return len(self._indents) - 1

    def end(self) -> None:
        """End the list."""
        self._indents.clear()


def cell(
    inline: Inline, row: int, column: int, row_span: int = 1, column_span: int = 1, *, header: bool = False
) -> Cell:
    """A cell of a table."""
    text = "\n".join(line.strip() for line in inline.text.split("\n")) if "\n" in inline.text else inline.text
    # Where white space went, the offsets of the spans are those of another text.
    spans = tidy(text, inline.spans if text == inline.text else ())
    return Cell(
        row=row, column=column, row_span=row_span, column_span=column_span, text=text, spans=spans, header=header
    )


def tables(cells: Sequence[Cell], caption: str = "", **fields: Any) -> Iterator[Block]:
    """A table as a block, or one of over :data:`TABLE_CELLS` as several that continue with each other.

    It is cut between rows that no cell spans.
    """
    ordered = sorted(cells, key=lambda each: (each.row, each.column))
    if not any(each.text for each in ordered):
        return
    # Exports lay a table out as a grid: what counts is its places, as two cells far apart leave millions between them.
    wide = Counter(each.row for each in ordered)
    pieces: list[list[Cell]] = [[]]
    reach = rows = 0
    columns: set[int] = set()
    for each in ordered:
        piece = pieces[-1]
        is_large = len(piece) >= TABLE_CELLS or rows * max(len(columns), wide[each.row]) >= _TABLE_SLOTS
        # Only where no cell spans both sides, which would be missing on one of them.
        if is_large and each.row >= reach and each.row > piece[-1].row:
            pieces.append(piece := [])
            columns, rows = set(), 0
        elif rows * len(columns) >= _MOST_SLOTS:
            raise TooLargeError(f"a table has over {_MOST_SLOTS:,} cell positions", remedy="Split the table.")
        rows += not piece or each.row > piece[-1].row
        columns.add(each.column)
        piece.append(each)
        reach = max(reach, each.row + each.row_span)
    for number, piece in enumerate(pieces, 1):
        table = replace(build_table(piece), caption=clean_text(caption))
        yield Block(
            label=Label.TABLE,
            content=table.to_html(),
            content_format=ContentFormat.HTML,
            continues=number < len(pieces),
            **fields,
        )


def unread(lost: Mapping[str, int]) -> list[str]:
    """Notes about omissions of a reader: their number, by noun."""
    return [f"not read: {count(number, noun)}" for noun, number in lost.items() if number]


def in_parts(blocks: Iterable[Block], **fields: Any) -> Iterator[Part]:
    """A run of blocks as parts of bounded size. A heading starts the next part rather than ending one."""
    part, size, has_text = Part(**fields), 0, False
    for block in blocks:
        length = len(block.content or "")
        if has_text and (size + length > PART_CHARACTERS or part.blocks[-1].continues):
            part, carried = _cut(part)
            yield part
            part, size = Part(blocks=carried, metadata=dict(part.metadata), width=part.width, height=part.height), 0
            has_text = False
        part.blocks.append(block)
        size += length
        has_text = has_text or not block.level or len(part.blocks) >= MOST_HEADINGS
    yield part


def _cut(part: Part) -> tuple[Part, list[Block]]:
    """A part that ends here, and the headings at its end, which belong to what follows."""
    blocks, end = part.blocks, len(part.blocks)
    while end and blocks[end - 1].level:
        end -= 1
    end = end or len(blocks)  # headings alone
    kept, rest = blocks[:end], blocks[end:]
    if kept[-1].list_item and not rest:
        kept[-1] = msgspec.structs.replace(kept[-1], continues=True)
    part.blocks = kept
    return part, rest
