"""Reading a run, also while another process writes it: the one interface for exports, vectors, indices and datasets."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from enum import Enum, auto
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import msgspec

from pagemill._version import __version__
from pagemill.document.identity import PageKey
from pagemill.document.page import DocumentInfo, ImageCrop, PageResult
from pagemill.document.structure import (
    MOST_PAGES,
    Overlay,
    apply,
    decode_overlay,
    derive,
    encode_overlay,
    facts_from,
    facts_of,
    is_current,
)
from pagemill.errors import DamagedRunError, OutputError
from pagemill.export.markdown import page_markdown
from pagemill.store import paths
from pagemill.store.database import REPAIR, Database
from pagemill.store.holding import require_run
from pagemill.store.lock import Owner, owner_of
from pagemill.store.records import decode_page, decompress
from pagemill.store.rows import PAGE_ROWS, PageRow, PageState, page_row, state_is, unescaped
from pagemill.store.summary import RunSummary

_RECENT_S = 120.0
_CHUNK_ROWS = 1_000
_HELD_OVERLAYS = 4
"""Structures of documents that a reader holds: pages come document by document, or those of a few."""
_MET_LAST = 64
"""Sources; more than are open at once."""
_PAGE_ORDER = "AND p.record IS NOT NULL ORDER BY p.page_number, p.page_idx"
HAS_RECORD = "EXISTS (SELECT 1 FROM pages p WHERE p.document = d.document AND p.record IS NOT NULL)"
"""SQL condition on ``documents``, called ``d``."""
_FAILED = state_is(PageState.FAILED)


class FailedPage(msgspec.Struct, frozen=True):
    """A page that failed."""

    page_id: str
    message: str
    attempts: int


class FailureKind(msgspec.Struct, frozen=True):
    """Failures of one category."""

    category: str
    pages: int
    examples: list[FailedPage]


class Structures(Enum):
    """Which structure of documents records are read through."""

    CURRENT = auto()
    """The one that is kept, derived again if it comes from another version or other pages."""
    KEPT = auto()
    """The one that is kept, whatever it was derived from; where none is, as above."""
    DERIVED = auto()
    """Derived from the records, whatever is kept."""


class RunReader(Database):
    """A run, opened with :meth:`open` for reading only.

    Records are read through the structure of their document, as far as its pages are there, unless they are asked for
    as they are stored (``stored``).
    """

    structures = Structures.CURRENT

    @classmethod
    def open(cls, path: Path) -> RunReader:
        """Open a run directory for reading.

        Raises:
            OutputError: There is no run in it, or it cannot be read.
            DamagedRunError: Its database is damaged or missing.
        """
        require_run(path)
        file = path / paths.DATABASE
        if not file.exists():
            raise DamagedRunError(f"{path} has lost its database", remedy=REPAIR)
        with ExitStack() as opened:
            reader = RunReader(file, read_only=True)
            opened.callback(reader.close)
            if not reader.has_started:
                raise OutputError(f"{path} contains no run yet", remedy="Start it with pagemill parse.")
            opened.pop_all()
        return reader

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.file.parents[1]

    @property
    def has_started(self) -> bool:
        """Whether there is a run in the database."""
        return bool(self.one("SELECT 1 FROM run"))

    @property
    def summary(self) -> RunSummary:
        """Settings and counts as of now."""
        names = ("version", "started", "finished", "interrupted")
        ((counters, identity, settings, *others),) = self.query(
            f"SELECT counters, identity, settings, {', '.join(names)} FROM run, counts"
        )
        fields = msgspec.json.decode(counters) | dict(zip(names, others, strict=True))
        fields["identity"] = msgspec.json.decode(identity)
        fields["settings"] = msgspec.json.decode(settings)
        fields["documents"] = self.one("SELECT count(*) FROM documents WHERE written = 1")
        return msgspec.convert(fields, RunSummary, strict=False)

    def complete_documents(self) -> int:
        """Documents whose files are written and whose pages are all done, as far as they were asked for."""
        unfinished = " UNION ".join(
            f"SELECT document FROM pages WHERE {state_is(state)}"
            for state in (PageState.FAILED, PageState.RUNNING, PageState.WAITING)
        )
        finished, interrupted = self.query("SELECT finished, interrupted FROM run")[0]
        if finished is None or interrupted:  # pages that were not read yet belong to the sources that were read last
            unfinished += (
                " UNION SELECT document FROM pages JOIN"
                f" (SELECT source, pages AS held FROM sources ORDER BY source DESC LIMIT {_MET_LAST}) USING (source)"
                " GROUP BY source HAVING count(*) < held"
            )
        found = self.one(f"SELECT count(*) FROM documents WHERE written = 1 AND document NOT IN ({unfinished})")
        return int(found)

    def stamp(self) -> tuple[int, int]:
        """Changes whenever a record does: the number of records, and that of the last one. Cheap."""
        return self.summary.pages, self.one("SELECT ifnull(max(record), 0) FROM records")

    @property
    def is_finished(self) -> bool:
        """Whether the last invocation has finished. Pages that none has met yet are in no state, and not counted."""
        counts, summary = self.counts(), self.summary
        left = counts[PageState.RUNNING] + counts[PageState.WAITING]
        return not left and summary.finished is not None and not summary.interrupted

    @property
    def total(self) -> int | None:
        """Pages in the input, where the run knew."""
        total: int | None = self.one("SELECT total FROM run")
        return total

    def counts(self) -> dict[PageState, int]:
        """Pages by state."""
        summary = self.summary
        open_pages = {
            state: self.one(f"SELECT count(*) FROM pages WHERE {state_is(state)}")
            for state in (PageState.RUNNING, PageState.WAITING)
        }
        return open_pages | {
            PageState.DONE: summary.pages - summary.failed,
            PageState.FAILED: summary.failed,
            PageState.SKIPPED: summary.skipped,
        }

    def rows(self, where: str = "TRUE", parameters: Sequence[Any] = ()) -> Iterator[PageRow]:
        """State of each page, by source and page.

        Args:
            where: SQL condition on the table ``pages``, called ``p``; never made of untrusted text.
            parameters: For the question marks in it.
        """
        return map(page_row, self.each(f"{PAGE_ROWS} WHERE {where} ORDER BY p.source, p.page", parameters))

    def row(self, key: PageKey) -> PageRow | None:
        """State of a page."""
        where = "s.digest = ? AND s.copy = ? AND p.page = ?"
        rows = self.query(f"{PAGE_ROWS} WHERE {where}", (bytes.fromhex(key.digest), key.copy, key.page))
        return page_row(rows[0]) if rows else None

    def pages(
        self,
        *,
        on_damage: Callable[[DamagedRunError], None] | None = None,
        stored: bool = False,
        markdown: bool = True,
    ) -> Iterator[PageResult]:
        """All records in input order, one at a time.

        Args:
            on_damage: Called with what is wrong with a record, which is then left out, instead of raising it.
            stored: Give the records as stored, without the structure of their document.
            markdown: Their Markdown follows the structure of the document, which takes as long as all else; they may
                have none without.

        Raises:
            DamagedRunError: A record is damaged.
        """
        order = "p.record IS NOT NULL ORDER BY p.page_idx, p.source, p.page"
        return self._records(order, on_damage=on_damage, stored=stored, markdown=markdown)

    def documents(
        self, *, on_damage: Callable[[DamagedRunError], None] | None = None
    ) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """Each document's id with its records in page order; documents in the order in which they were found.

        Args:
            on_damage: See :meth:`pages`.
        """
        for document, doc_id in self.each("SELECT document, doc_id FROM documents ORDER BY document"):
            yield doc_id, self._records(f"p.document = ? {_PAGE_ORDER}", (document,), on_damage=on_damage)

    def document(self, doc_id: str, *, markdown: bool = True) -> Iterator[PageResult]:
        """The records of one document in page order; none for an unknown one. ``markdown`` as in :meth:`pages`."""
        where = f"p.document = (SELECT document FROM documents WHERE name = ?) {_PAGE_ORDER}"
        return self._records(where, (doc_id.casefold(),), markdown=markdown)

    def page(self, page_id: str, *, stored: bool = False) -> PageResult:
        """The record of a page by its id.

        Raises:
            DamagedRunError: It is damaged, or there is none.
        """
        for page in list(self._records("p.name = ?", (page_id.casefold(),), stored=stored)):
            return page
        raise DamagedRunError(f"the record of page {page_id} is missing", remedy=REPAIR)

    def record(self, number: int | None) -> Iterator[PageResult]:
        """The record of a number as it is stored; nothing if it was removed."""
        return self._records("p.record = ?", (number,), stored=True)

    def info(self, doc_id: str) -> DocumentInfo:
        """The metadata of a document."""
        data = self.one("SELECT data FROM about WHERE name = ?", (doc_id.casefold(),))
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(data or b"{}", type=DocumentInfo)
        return DocumentInfo()

    def has_open_pages(self, doc_id: str) -> bool:
        """Whether a document has unfinished pages."""
        document = "(SELECT document FROM documents WHERE name = ?)"
        states = " OR ".join(f"({state_is(state)})" for state in (PageState.RUNNING, PageState.WAITING))
        found = self.one(
            f"SELECT 1 FROM pages WHERE document = {document} AND ({states}) LIMIT 1", (doc_id.casefold(),)
        )
        return found is not None

    def is_provisional(self, doc_id: str) -> bool:
        """Whether pages of a document may be missing, which may change its structure."""
        if self.has_open_pages(doc_id):
            return True
        written = self.one("SELECT written FROM documents WHERE name = ?", (doc_id.casefold(),))
        return not written and self.one("SELECT finished FROM run") is None

    def overlay(self, document: int) -> Overlay:
        """The structure of a document by its number in the database; see :mod:`pagemill.document.structure`."""
        if self.structures is Structures.KEPT:
            data = self.one("SELECT data FROM overlays WHERE document = ?", (document,))
            with suppress(msgspec.DecodeError):
                return decode_overlay(data or b"")
        if (found := self._evidence(document)) is None:
            return Overlay()
        digest, facts, info = found
        if self.structures is Structures.DERIVED:
            return derive(map(facts_from, facts), info)
        held = self._overlays.pop(document, None)
        if held is None or held[0] != digest:
            data = self.one("SELECT data FROM overlays WHERE document = ? AND digest = ?", (document, digest))
            known = None
            with suppress(msgspec.DecodeError):
                known = None if data is None else decode_overlay(data)
            if known is None:
                known = derive(map(facts_from, facts), info)
                self._keep(document, digest, known)
            held = digest, known
        self._overlays[document] = held
        # Few: a structure grows with its document, and pages come document by document.
        while len(self._overlays) > _HELD_OVERLAYS:
            self._overlays.popitem(last=False)
        return held[1]

    def structure(self, doc_id: str) -> Overlay:
        """The structure of a document by its id; empty for an unknown document."""
        document = self.one("SELECT document FROM documents WHERE name = ?", (doc_id.casefold(),))
        return Overlay() if document is None else self.overlay(document)

    def wrong_overlays(self) -> Iterator[str]:
        """Ids of documents whose stored structure is not the one that is derived from their pages."""
        kept = "SELECT document, doc_id, digest, data FROM overlays JOIN documents USING (document) ORDER BY document"
        for document, doc_id, digest, data in self.each(kept):
            found = self._evidence(document)
            # A structure of an earlier state has another digest: it is not used, and replaced when it is needed.
            is_of_now = found is not None and found[0] == digest
            if found and is_of_now and encode_overlay(derive(map(facts_from, found[1]), found[2])) != data:
                yield doc_id

    def _evidence(self, document: int) -> tuple[bytes, list[bytes], DocumentInfo] | None:
        """What a structure is derived from: digest, facts and metadata; None if there are too many pages."""
        order = f"SELECT p.record FROM pages p WHERE p.document = ? {_PAGE_ORDER} LIMIT {MOST_PAGES + 1}"
        records = [record for (record,) in self.query(order, (document,))]
        if len(records) > MOST_PAGES:
            return None
        info = self.info(self.one("SELECT name FROM documents WHERE document = ?", (document,)) or "")
        facts = [self._facts(record) for record in records]
        # With the version: another one may derive another structure from the same facts.
        digest = hashlib.sha256(__version__.encode() + msgspec.json.encode(info))
        for fact in facts:
            digest.update(len(fact).to_bytes(4) + fact)
        return digest.digest(), facts, info

    def _keep(self, document: int, digest: bytes, overlay: Overlay) -> None:
        """Store a derived structure. A reader stores nothing."""

    def _facts(self, record: int) -> bytes:
        """The facts of the page of a record; empty if the record is damaged, or from before facts were stored."""
        data = self.one("SELECT data FROM facts WHERE record = ?", (record,))
        if self.structures is Structures.DERIVED or (data is not None and not is_current(data)):
            with suppress(DamagedRunError):
                return b"".join(facts_of(page) for page in self.record(record))
        return data or b""

    def has_facts_of(self, record: int, page: PageResult) -> bool:
        """Whether the facts of a record match its page. Missing facts and those of another version are accepted."""
        data = self.one("SELECT data FROM facts WHERE record = ?", (record,))
        return not data or not is_current(data) or data == facts_of(page)

    @cached_property
    def _overlays(self) -> OrderedDict[int, tuple[bytes, Overlay]]:
        return OrderedDict()

    def recorded_documents(self) -> Iterator[tuple[str, bool]]:
        """Id of every document that has a record, and whether its files are marked as up to date."""
        last = 0
        # In chunks: a single long read would keep the writer from truncating the journal.
        while rows := self.query(
            f"SELECT document, doc_id, written FROM documents d WHERE document > ? AND {HAS_RECORD}"
            " ORDER BY document LIMIT ?",
            (last, _CHUNK_ROWS),
        ):
            for last, doc_id, written in rows:  # noqa: B007
                yield doc_id, bool(written)

    def each_record(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """Number and stored form of every record with a higher number than ``after``, in the order of writing."""
        return self.each("SELECT record, data FROM records WHERE record > ? ORDER BY record", (after,))

    def source_addresses(self) -> dict[str, str]:
        """Last known path or URL of each source by its digest; that of the first copy if there are several."""
        rows = self.query("SELECT digest, uri FROM sources ORDER BY source DESC")
        return {bytes(digest).hex(): unescaped(uri) for digest, uri in rows}

    def remembered_digests(self) -> dict[tuple[bytes, int, int], str]:
        """Stored digests by path as bytes, size and modification time in ns."""
        rows = self.query("SELECT path, size, modified_ns, digest FROM digests")
        return {(bytes(path), size, modified_ns): bytes(digest).hex() for path, size, modified_ns, digest in rows}

    def garbage(self) -> list[str]:
        """Files of removed pages that are to be deleted, relative to the run directory."""
        return [path for (path,) in self.query("SELECT path FROM garbage")]

    def preview(self, page_id: str) -> bytes | None:
        """The small image of a page for the report; None if none is stored."""
        image = self.one(
            "SELECT image FROM previews WHERE record = (SELECT record FROM pages WHERE name = ?)", (page_id.casefold(),)
        )
        return None if image is None else bytes(image)

    def crop(self, crop: ImageCrop) -> bytes:
        """The file of a crop.

        Raises:
            DamagedRunError: It is missing, or differs from the digest in the record.
        """
        try:
            data = paths.crop_file(self.path, crop.path).read_bytes()
        except FileNotFoundError:
            fault = "is missing"
        except (OSError, ValueError) as error:
            fault = f"cannot be read: {error}"
        else:
            if not crop.sha256 or hashlib.sha256(data).hexdigest() == crop.sha256:
                return data
            fault = "is not the image that its record names"
        raise DamagedRunError(f"{crop.path} {fault}", remedy=REPAIR)

    def has_previews(self) -> bool:
        """Whether page images are stored for a report."""
        return bool(self.one("SELECT 1 FROM previews LIMIT 1"))

    def failures(self, examples: int = 3) -> list[FailureKind]:
        """Failed pages by category, the most frequent first, with the first examples of each."""
        pages = (
            f"SELECT page_id, message, attempts FROM pages WHERE {_FAILED} AND category = ? ORDER BY page_idx LIMIT ?"
        )
        kinds = self.query(f"SELECT category, count(*) FROM pages WHERE {_FAILED} GROUP BY category ORDER BY 2 DESC, 1")
        return [
            FailureKind(category, count, [FailedPage(*row) for row in self.query(pages, (category, examples))])
            for category, count in kinds
        ]

    def rate(self) -> float | None:
        """Finished pages per second, over the last two minutes of work; None until there are two samples."""
        recent = self.session(since=time.time() - _RECENT_S)
        return recent[0] / recent[1] if recent else None

    def session(self, *, since: float = 0.0) -> tuple[int, float] | None:
        """Pages finished by the last invocation, and its duration in seconds; None until there are two samples."""
        ((start, before, end, ended),) = self.query(
            "SELECT min(time), min(ended), max(time), max(ended) FROM samples"
            " WHERE session = (SELECT session FROM run) AND time >= ?",
            (since,),
        )
        return None if start == end else (ended - before, end - start)

    def in_flight(self) -> list[str]:
        """Ids of the pages in flight."""
        rows = self.query(f"SELECT page_id FROM pages WHERE {state_is(PageState.RUNNING)} ORDER BY page_idx")
        return [page_id for (page_id,) in rows]

    def owner(self) -> Owner | None:
        """The process that is using the directory; None if there is none."""
        return owner_of(self.path / paths.LOCK)

    def _records(
        self,
        where: str,
        parameters: Sequence[Any] = (),
        *,
        on_damage: Callable[[DamagedRunError], None] | None = None,
        stored: bool = False,
        markdown: bool = True,
    ) -> Iterator[PageResult]:
        # Until this iterator is exhausted, all answers come from one snapshot, including the structure of each
        # document.
        overlay = lru_cache(_HELD_OVERLAYS)(self.overlay)
        # In two steps: sorting the records themselves would write all of them to a temporary file.
        rows = self.each(f"SELECT p.page_id, p.record, p.document FROM pages p WHERE {where}", parameters)
        for page_id, record, document in rows:
            data = self.one("SELECT data FROM records WHERE record = ?", (record,))
            try:
                if data is None:
                    raise ValueError("it is missing")
                page = decode_page(decompress(data))
            except ValueError as fault:  # the base class of msgspec's errors
                error = DamagedRunError(f"the record of page {page_id} is damaged: {fault}", remedy=REPAIR)
                if on_damage is None:
                    raise error from fault
                on_damage(error)
            else:
                if not stored:
                    seen = apply(page, overlay(document))
                    if seen is not page:
                        seen.markdown = page_markdown(seen) if markdown else ""
                    page = seen
                yield page
