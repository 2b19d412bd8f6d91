"""The structure of a run by this version, and the chunks that it changes, for those who keep an index elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

import msgspec

from pagemill.app.exporters import default_exporters
from pagemill.config.chunking import ChunkSettings
from pagemill.document.page import PageResult
from pagemill.export.chunks import Chunk, cut
from pagemill.export.token_count import token_counter
from pagemill.store.reading import RunReader, Structures
from pagemill.store.repair import restructure


class Change(StrEnum):
    """What becomes of a chunk."""

    ADDED = "added"
    CHANGED = "changed"
    DELETED = "deleted"


class ChunkChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chunk that another index has to add, replace or delete."""

    change: Change
    id: str
    """Id of the chunk now; of a deleted one its former id."""
    was: str | None = None
    """Id of the chunk that a changed one replaces: both begin at the same region."""
    doc_id: str
    element: str
    """``<page id>/<region index>`` of the region that it begins with."""


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild changed."""

    documents: int
    chunks: int
    changes: list[ChunkChange]

    def counts(self) -> Counter[Change]:
        """Changes of each kind."""
        return Counter(change.change for change in self.changes)


_Place = tuple[str, str]
"""Id and first element of a chunk."""


def rebuild(out: Path, chunks: ChunkSettings, keep: Callable[[Rebuilt], None] = lambda _: None) -> Rebuilt:
    """Derive the structure of all documents of a run again, without decoding or recognition, and write its files.

    The records stay as they are. What is compared is how the documents are cut into chunks before and after.

    Args:
        out: The run directory.
        chunks: Chunk settings of the other index.
        keep: Is given the changes before the run is changed: should it fail, or the process be killed, the next call
            finds the same ones.

    Raises:
        LockedError: A process works on the run.
        OutputError: There is no run, or a file cannot be written; NoSpaceError when the disk is full.
        DamagedRunError: A record is damaged.
    """
    count = token_counter(chunks.tokenizer)
    found: list[Rebuilt] = []

    def compare() -> None:
        before = _chunks(out, Structures.KEPT, chunks, count)
        after = _chunks(out, Structures.DERIVED, chunks, count)
        changes = [change for doc_id in after for change in _changes(doc_id, before[doc_id], after[doc_id])]
        found.append(Rebuilt(documents=len(after), chunks=sum(map(len, after.values())), changes=changes))
        # Called before anything is stored: once the old chunks are gone, nobody knows what an index has to delete.
        keep(found[0])

    restructure(out, default_exporters(), compare)
    return found[0]


def _chunks(
    out: Path, structures: Structures, settings: ChunkSettings, count: Callable[[str], int]
) -> dict[str, list[_Place]]:
    def places(pages: Iterable[PageResult]) -> Iterator[_Place]:
        for chunk in cut(pages, count, settings.max_tokens, settings.overlap):
            yield chunk.id, _element(chunk)

    with RunReader.open(out) as reader:
        reader.structures = structures
        return {doc_id: list(places(pages)) for doc_id, pages in reader.documents()}


def _element(chunk: Chunk) -> str:
    return chunk.places[0].element if chunk.places else ""


def _changes(doc_id: str, before: Iterable[_Place], after: Iterable[_Place]) -> Iterator[ChunkChange]:
    """A chunk replaces the one that started at the same region and is no more."""
    was, now = dict(before), dict(after)
    gone: dict[str, list[str]] = {}
    for chunk, element in was.items():
        if chunk not in now:
            gone.setdefault(element, []).append(chunk)
    for chunk, element in now.items():
        # The id is a digest of the content, so nothing in it has changed.
        if chunk in was:
            continue
        replaced = gone.get(element)
        kind = Change.CHANGED if replaced else Change.ADDED
        yield ChunkChange(
            change=kind, id=chunk, was=replaced.pop(0) if replaced else None, doc_id=doc_id, element=element
        )
    for element, chunks in gone.items():
        for chunk in chunks:
            yield ChunkChange(change=Change.DELETED, id=chunk, doc_id=doc_id, element=element)
