"""Chunks of a document for retrieval: passages of bounded size with their headings and positions."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os import PathLike
from typing import BinaryIO, Protocol

import msgspec

from pagemill.config.chunking import ChunkSettings
from pagemill.config.options import build
from pagemill.document.geometry import Box, normalise_1000, union_box
from pagemill.document.json_text import json_text
from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Region
from pagemill.export.blocks import Block, Kind, blocks
from pagemill.export.embedding_text import description_text
from pagemill.export.formats import Content, ExportFormat
from pagemill.export.markdown import plain_content
from pagemill.export.parquet import write_structs
from pagemill.export.sentences import sentences
from pagemill.export.token_count import token_counter
from pagemill.tables.table import Table

_WORD = re.compile(r"\s*\S+\s*")
_ID_DIGITS = 32
_EXACT = 16
"""The last 1/16 of a chunk is filled by exact counts: a whole may have a few more tokens than its parts."""
_MOST_EMPTY = 2
"""Consecutive empty lines of code that are kept."""
_LONGEST_REPEATED = 200
"""Characters of a cell that each of its rows repeats: a label has fewer, and a text would be there many times."""
_LETTERS = 16
"""Characters a token, at most, up to which the end of a chunk is sought inside a sentence that is too long."""


class HasPages(Protocol):
    """A :class:`pagemill.Document`."""

    @property
    def pages(self) -> list[PageResult]:
        """In page order."""


class ChunkPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A region of which a chunk holds text."""

    page: int | None
    """Page in the document, as in the record."""
    page_id: str
    element: str
    """``<page id>/<region index>``, as in DocJSON."""
    label: Label
    bbox_2d: tuple[int, int, int, int]
    """In thousandths of the page: the lines that the chunk holds, or the whole region."""


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A passage of a document."""

    id: str
    """32 hex digits, made of the document's id and the text: the same in every export."""
    doc_id: str
    source: str
    index: int
    """Position in the document, from 0."""
    text: str
    """Text of the document; heads and captions of a table that was divided are in each of its chunks."""
    contextualized: str
    """Text to embed: the text after its headings, unless they are in it."""
    headings: tuple[str, ...]
    """The headings above, from the title down."""
    tokens: int
    """Tokens of ``contextualized``."""
    pages: tuple[int, ...]
    places: tuple[ChunkPlace, ...]
    """Positions to cite, in reading order."""


def cut(pages: Iterable[PageResult], count: Callable[[str], int], max_tokens: int, overlap: int) -> Iterator[Chunk]:
    """Cut a document into chunks, in bounded memory.

    Args:
        pages: In page order, all of one document.
        count: Counts the tokens of a text.
        max_tokens: Most tokens of a chunk with the headings above it. Headings over half of it lose the outermost ones.
        overlap: At most so many tokens of sentences and items are repeated from the chunk before, in one section.
    """
    cutter = _Cutter(count, max_tokens, overlap)
    for block in blocks(pages):
        yield from cutter.add(block)
    yield from cutter.flush()


def chunks(
    document: HasPages | Iterable[PageResult],
    *,
    max_tokens: int | None = None,
    tokenizer: str | PathLike[str] | None = None,
    overlap: int | None = None,
) -> Iterator[Chunk]:
    """Cut a document into chunks for retrieval, in bounded memory.

    A chunk ends with its section. It is cut between paragraphs, items, rows of tables or sentences; inside a sentence
    only where that alone is too long. Running heads and feet, page numbers and marginal notes are left out.

    Args:
        document: A document as returned by :func:`pagemill.parse`; or all pages of one document in page order.
        max_tokens: Most tokens of a chunk with the headings above it; 512 by default.
        tokenizer: The ``tokenizer.json`` of the model that will read the chunks; tokens are estimated without it.
        overlap: At most so many tokens of sentences and items are repeated from the chunk before, in one section.

    Raises:
        UsageError: A number is not valid.
        MissingDependencyError: The package tokenizers is missing.
        InputError: The tokenizer cannot be read.
    """
    settings = build(ChunkSettings, {"max_tokens": max_tokens, "tokenizer": tokenizer, "overlap": overlap})
    pages = document if isinstance(document, Iterable) else document.pages
    return cut(pages, token_counter(settings.tokenizer), settings.max_tokens, settings.overlap)


@dataclass(frozen=True, slots=True)
class _Atom:
    """The smallest unit of a chunk: a sentence, an item, a row of a table; cut only if it alone is too long."""

    block: Block
    text: str
    glue: str
    """What precedes it in a chunk."""
    span: tuple[int, int] | None = None
    """Its characters in the block; None for the whole."""
    repeat: str = ""
    """Head of the table, which goes before it where nothing of the table does."""


class _Cutter:
    def __init__(self, count: Callable[[str], int], max_tokens: int, overlap: int) -> None:
        self._count = count
        self._most = max_tokens
        self._overlap = overlap
        self._atoms: list[_Atom] = []
        self._carried = 0
        """Atoms at the start that the chunk before holds as well."""
        self._tokens = 0
        """Upper bound of the tokens of the atoms with the headings above them."""
        self._section: tuple[str, ...] | None = None
        """Section of the first atom that is not a heading; None while there are only headings."""
        self._index = 0
        self._seen: Counter[str] = Counter()

    def add(self, block: Block) -> Iterator[Chunk]:
        """Add a block and return the chunks that are complete."""
        heading = block.kind is Kind.HEADING
        # A chunk belongs to one section, so that its headings are true of all of it.
        if self._section is not None and (heading or block.section != self._section):
            yield from self.flush()
        for atom in self._atoms_of(block):
            if not self._takes(atom):
                yield from self._next()
                if not self._takes(atom):
                    self._drop_carried()
                    for part in self._divided(atom):
                        if not self._takes(part):
                            yield from self.flush()
                            self._takes(part, is_known_to_fit=True)
        if not heading and self._atoms:
            self._section = block.section

    def flush(self) -> Iterator[Chunk]:
        """The chunk that was started, if any."""
        if any(atom.text.strip() for atom in self._atoms[self._carried :]):
            yield self._chunk()
        self._atoms, self._carried, self._section, self._tokens = [], 0, None, 0

    def _takes(self, atom: _Atom, *, is_known_to_fit: bool = False) -> bool:
        """Append an atom, if it fits.

        Counting the whole text for each atom would take time with the square of their number. So up to near the end of
        a chunk the sum of what is counted for each one is enough: a whole has no more tokens than its parts.
        """
        tokens = self._most
        if self._atoms:
            repeat = atom.repeat if self._atoms[-1].block is not atom.block else ""
            tokens = self._tokens + self._count(f"{atom.glue}{repeat}\n{atom.text}")
        # Counting the whole for each sentence would be quadratic: near the end alone it is worth it.
        if tokens > self._most - self._most // _EXACT and not is_known_to_fit:
            tokens = self._count(self._contextualized([*self._atoms, atom]))
            if tokens > self._most:
                return False
        self._atoms.append(atom)
        self._tokens = tokens
        return True

    def _next(self) -> Iterator[Chunk]:
        """End a chunk inside a section; the overlap starts the next one."""
        tail: list[_Atom] = []
        tokens = 0
        for atom in reversed(self._atoms):
            tail.append(atom)
            tokens += self._count(atom.glue + atom.text)
            if tokens > self._overlap:
                tokens = self._count(_text(reversed(tail)))
            # Half a table or formula at the start of a chunk would be read as another one.
            if atom.block.kind not in (Kind.TEXT, Kind.LIST) or tokens > self._overlap:
                tail.pop()
                break
        yield from self.flush()
        self._atoms, self._carried = tail[::-1], len(tail)
        self._tokens = self._most  # to be counted

    def _drop_carried(self) -> None:
        del self._atoms[: self._carried]
        self._carried = 0

    def _fits(self, atoms: Sequence[_Atom]) -> bool:
        return self._count(self._contextualized(atoms)) <= self._most

    def _contextualized(self, atoms: Sequence[_Atom]) -> str:
        return "\n".join([*self._context(atoms[0].block.section), _text(atoms)])

    def _context(self, section: tuple[str, ...]) -> tuple[str, ...]:
        # Headings must leave half of the chunk to its text; the nearest ones say the most.
        while section and 2 * self._count("\n".join(section)) > self._most:
            section = section[1:]
        return section

    def _divided(self, atom: _Atom) -> Iterator[_Atom]:
        """An atom that is too long for a chunk, in pieces that fit: between words, or anywhere."""
        if atom.repeat and 2 * self._count(atom.repeat) > self._most:
            atom = replace(atom, repeat="")
        text, at = atom.text, 0
        window = _LETTERS * self._most
        while at < len(text):
            ends = [match.end() for match in _WORD.finditer(text, at, at + window)] or [len(text)]
            # Not even one word fits, as in scripts without spaces: cut anywhere.
            if not self._fits([replace(atom, text=text[at : ends[0]])]):
                ends = list(range(at + 1, min(len(text), at + window) + 1))
            best, step = 0, 1
            while step:  # in ever larger steps, then in smaller ones
                if best + step < len(ends) and self._fits([replace(atom, text=text[at : ends[best + step]])]):
                    best, step = best + step, step * 2
                else:
                    step //= 2
            end = ends[best]
            span = None if atom.span is None else (atom.span[0] + at, atom.span[0] + end)
            yield replace(atom, text=text[at:end], span=span, glue=atom.glue if at == 0 else "")
            at = end

    def _atoms_of(self, block: Block) -> Iterator[_Atom]:
        glue = "\n\n"
        if block.kind is Kind.TABLE and block.table is not None:
            yield from self._rows(block, block.table)
            return
        if block.kind in (Kind.PICTURE, Kind.FORMULA):
            formula = f"$${block.text}$$" if block.kind is Kind.FORMULA else block.text
            text = "\n".join(filter(None, [*_captions(block), description_text(block.region), formula.strip()]))
            if text:
                yield _Atom(block, text, glue)
            return
        lines = block.kind in (Kind.LIST, Kind.CODE)
        at = empty = 0
        for part in block.text.split("\n") if lines else [block.text]:
            empty = 0 if part.strip() else empty + 1
            # Listings may hold thousands of empty lines, each of which would be a token.
            if empty > _MOST_EMPTY:
                at += len(part) + 1
                continue
            inside: Iterable[tuple[int, int]] = (
                sentences(part) if block.kind in (Kind.LIST, Kind.TEXT) else [(0, len(part))]
            )
            whole = _Atom(block, part, glue, (at, at + len(part)))
            if lines and self._fits([whole]):
                inside = [(0, len(part))]
            for start, end in inside:
                yield _Atom(block, part[start:end], glue, (at + start, at + end))
                glue = ""
            glue = "\n"
            at += len(part) + 1

    def _rows(self, block: Block, table: Table) -> Iterator[_Atom]:
        """The rows of a table, its head with its first row, as far as they go together."""
        rows = _row_texts(table)
        captions = [*_captions(block), *filter(None, [table.caption])]
        head = [*captions, *filter(None, rows[: table.header_rows])]
        repeat = "\n".join(head)
        first = "\n".join([*filter(None, [description_text(block.region)]), repeat]).strip()
        glue = "\n\n"
        for row in filter(None, rows[table.header_rows :]):
            together = _Atom(block, f"{first}\n{row}" if first else row, glue)
            if first and not self._fits([together]):
                yield _Atom(block, first, glue)
                glue, first = "\n", ""
            yield replace(
                together, text=f"{first}\n{row}" if first else row, glue=glue, repeat=self._short(repeat, first)
            )
            glue, first = "\n", ""
        if first:
            yield _Atom(block, first, glue)

    def _short(self, repeat: str, first: str) -> str:
        """The head to repeat before a row: none before the first row, and none longer than half a chunk."""
        return "" if first or 2 * self._count(repeat) > self._most else repeat

    def _chunk(self) -> Chunk:
        atoms = self._atoms
        last = atoms[-1].block
        headings = self._section
        if headings is None:
            headings = (*last.section, " ".join(last.text.split())) if last.kind is Kind.HEADING else last.section
        contextualized = self._contextualized(atoms).strip()
        page = atoms[0].block.page
        key = json_text([page.doc_id, contextualized])
        self._seen[key_digest := hashlib.sha256(key.encode()).hexdigest()] += 1
        # The same passage again, as on forms: ids must differ, and stay the same in the next export.
        number = self._seen[key_digest]
        if number > 1:
            key_digest = hashlib.sha256(f"{key_digest} {number}".encode()).hexdigest()
        places = tuple(_places(atoms))
        self._index += 1
        return Chunk(
            id=key_digest[:_ID_DIGITS],
            doc_id=page.doc_id,
            source=page.source,
            index=self._index - 1,
            text=_text(atoms).strip(),
            contextualized=contextualized,
            headings=headings,
            tokens=self._count(contextualized),
            pages=tuple(dict.fromkeys(place.page for place in places if place.page is not None)),
            places=places,
        )


def _text(atoms: Iterable[_Atom]) -> str:
    text = ""
    before: Block | None = None
    for atom in atoms:
        text += atom.glue if text else ""
        if atom.repeat and before is not atom.block:
            text += f"{atom.repeat}\n"
        text += atom.text
        before = atom.block
    return text


def _captions(block: Block) -> list[str]:
    return [plain_content(caption).strip() for caption in block.captions]


def _row_texts(table: Table) -> list[str]:
    """The rows of a table as lines; a short cell over several rows is in each, so that each is complete by itself."""
    rows: list[list[str]] = [[] for _ in range(table.rows)]
    for cell in sorted(table.cells, key=lambda cell: cell.column):
        text = " ".join(cell.text.split())
        span = cell.row_span if len(text) <= _LONGEST_REPEATED else 1
        for row in rows[cell.row : cell.row + span]:
            row.append(text)
    return [" | ".join(row) if any(row) else "" for row in rows]


def _places(atoms: Iterable[_Atom]) -> Iterator[ChunkPlace]:
    """The regions of atoms, without duplicates, with the box of their part in the chunk."""
    found: dict[tuple[str, int], tuple[PageResult, Region, list[Box]]] = {}

    def note(page: PageResult, region: Region, box: Box) -> None:
        found.setdefault((page.page_id, region.index), (page, region, []))[2].append(box)

    for _, grouped in groupby(atoms, key=lambda atom: id(atom.block)):
        held = list(grouped)
        block = held[0].block
        for caption in block.captions:
            note(block.page, caption, caption.bbox)
        spans = [atom.span or (0, len(block.text)) for atom in held]
        start, end = min(start for start, _ in spans), max(end for _, end in spans)
        for piece in block.pieces:
            first, last = max(start, piece.start), min(end, piece.end)
            # Tables and pictures have no characters here, so they are in the chunk as a whole.
            if first < last or not block.text:
                note(piece.page, piece.region, piece.box(first, last))
    for page, region, boxes in found.values():
        yield ChunkPlace(
            page=page.page_number,
            page_id=page.page_id,
            element=f"{page.page_id}/{region.index}",
            label=region.label,
            bbox_2d=normalise_1000(union_box(boxes), page.width, page.height),
        )


def _write(content: Content, stream: BinaryIO, crops_root: str) -> None:
    settings = content.options.chunks
    count = token_counter(settings.tokenizer)
    made = (
        chunk for _, pages in content.documents() for chunk in cut(pages, count, settings.max_tokens, settings.overlap)
    )
    if content.options.parquet:
        write_structs(stream, Chunk, made)
    else:
        stream.writelines(f"{json_text(chunk)}\n".encode("utf-8", "replace") for chunk in made)


FORMAT = ExportFormat(ending=".chunks.jsonl", to_file=_write)
