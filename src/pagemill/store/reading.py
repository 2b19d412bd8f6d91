"""Reading a run, also while another process writes it: the one interface for exports, vectors, indices and datasets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pagemill.document.page import PageResult
from pagemill.errors import DamagedRunError, OutputError
from pagemill.store import paths
from pagemill.store.database import REPAIR, Snapshots
from pagemill.store.lock import Owner, owner_of
from pagemill.store.opening import require_run
from pagemill.store.records import decode_page, decompress
from pagemill.store.rows import PAGE_ROWS, PageRow, PageState, page_row, state_is
from pagemill.store.run_database import SUMMARY, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from pagemill.document.identity import PageKey
    from pagemill.store.summary import RunSummary

_RECENT_S = 120.0
_ORDERS = {"input": "ORDER BY p.page_idx, p.source, p.page", "written": "ORDER BY p.record"}
_PAGE_ORDER = "AND p.record IS NOT NULL ORDER BY p.page_number, p.page_idx"
_FAILED = state_is(PageState.FAILED)


class FailedPage(NamedTuple):
    """An example of a failure."""

    page_id: str
    message: str
    attempts: int


class Failures(NamedTuple):
    """Failed pages of one category."""

    category: str
    pages: int
    examples: list[FailedPage]


class Rate(NamedTuple):
    """How fast a run goes."""

    ended: int
    """Pages done or failed in total."""
    pages_per_second: float | None
    """Over the last minutes of work; None while too little is known."""


class Session(NamedTuple):
    """What the last invocation did, from its start to its end, or to now."""

    pages: int
    """Done or failed in it."""
    seconds: float


class Running(NamedTuple):
    """What is in flight."""

    pages: list[str]
    """Ids."""
    owner: Owner | None
    """The process that works on the directory; None when there is none."""


class RunReader:
    """A run as its database has it. A context manager; for one thread at a time.

    Every answer is of one moment: a page is either there with all that belongs to it, or not. While an iterator is not
    exhausted, other answers are of its moment, too.
    """

    def __init__(self, path: Path) -> None:
        """Use :meth:`open`."""
        self.path = path
        self._view = Snapshots(path / paths.DATABASE)

    @classmethod
    def open(cls, path: Path) -> RunReader:
        """Open a run directory for reading.

        Raises:
            OutputError: There is no run in it, or it cannot be read.
            DamagedRunError: Its database is damaged or missing.
        """
        require_run(path)
        if not (path / paths.DATABASE).exists():
            raise DamagedRunError(f"{path} has lost its database", remedy=REPAIR)
        reader = cls(path)
        try:
            if reader._view.one("SELECT count(*) FROM run") != 1:
                raise OutputError(f"{path} holds no run yet", remedy="Start it with pagemill parse.")
        except BaseException:
            reader.close()
            raise
        return reader

    @property
    def summary(self) -> RunSummary:
        """Settings and counts as of now."""
        summary = summary_of(self._view.all(SUMMARY)[0])
        summary.documents = self._view.one("SELECT count(*) FROM documents WHERE written = 1")
        return summary

    def stamp(self) -> tuple[int, int]:
        """Changes whenever a record does: the number of records, and that of the last one. Cheap."""
        return self.summary.pages, self._view.one("SELECT ifnull(max(record), 0) FROM records")

    @property
    def total(self) -> int | None:
        """Pages in the input, where the run knew."""
        total = self._view.one("SELECT total FROM run")
        return None if total is None else int(total)

    def counts(self) -> dict[PageState, int]:
        """Pages by state."""
        summary = self.summary
        open_pages = {
            state: self._view.one(f"SELECT count(*) FROM pages WHERE {state_is(state)}")
            for state in (PageState.RUNNING, PageState.WAITING)
        }
        return open_pages | {
            PageState.DONE: summary.pages - summary.failed,
            PageState.FAILED: summary.failed,
            PageState.SKIPPED: summary.skipped,
        }

    def rows(self, where: str = "TRUE", parameters: Sequence[Any] = ()) -> Iterator[PageRow]:
        """What the database knows of each page, by source and page.

        Args:
            where: Which ones: an SQL condition on the table ``pages``, called ``p``; never made of untrusted text.
            parameters: For the question marks in it.
        """
        return map(page_row, self._view.each(f"{PAGE_ROWS} WHERE {where} ORDER BY p.source, p.page", parameters))

    def pages(
        self,
        order: Literal["input", "written"] = "input",
        *,
        on_damage: Callable[[DamagedRunError], None] | None = None,
    ) -> Iterator[PageResult]:
        """All records, one at a time.

        Args:
            order: That of the pages in the input, or that in which they were written.
            on_damage: Called with what is wrong with a record, which is then left out, instead of raising it.

        Raises:
            DamagedRunError: A record is damaged.
        """
        return self._records(f"p.record IS NOT NULL {_ORDERS[order]}", on_damage=on_damage)

    def documents(
        self, *, on_damage: Callable[[DamagedRunError], None] | None = None
    ) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """Each document's id with its records in page order; documents in the order in which they were found.

        Args:
            on_damage: As in :meth:`pages`.
        """
        for document, doc_id in self._view.each("SELECT document, doc_id FROM documents ORDER BY document"):
            yield doc_id, self._records(f"p.document = ? {_PAGE_ORDER}", (document,), on_damage=on_damage)

    def document(self, doc_id: str) -> Iterator[PageResult]:
        """The records of one document in page order; none for an unknown one."""
        return self._records(
            f"p.document = (SELECT document FROM documents WHERE name = ?) {_PAGE_ORDER}", (doc_id.casefold(),)
        )

    def each_record(self) -> Iterator[tuple[int, bytes]]:
        """Number and stored form of every record, in the order of writing."""
        return self._view.each("SELECT record, data FROM records ORDER BY record")

    def source_addresses(self) -> dict[str, str]:
        """Path or URL of each source when it was last in the input, by its digest; the first of several copies."""
        addresses: dict[str, str] = {}
        for digest, uri in self._view.all("SELECT digest, uri FROM sources ORDER BY source"):
            addresses.setdefault(bytes(digest).hex(), uri)
        return addresses

    def remembered_digests(self) -> dict[tuple[bytes, int, int], str]:
        """Digests of files by what they had then: path as bytes, size, time of modification in ns."""
        rows = self._view.all("SELECT path, size, modified_ns, digest FROM digests")
        return {(bytes(path), size, modified_ns): bytes(digest).hex() for path, size, modified_ns, digest in rows}

    def moment(self) -> AbstractContextManager[None]:
        """While entered, all answers are of one moment."""
        return self._view.moment()

    def fault(self, *, quick: bool = False) -> str | None:
        """What SQLite finds wrong with the database; None for nothing."""
        fault = self._view.one(f"PRAGMA {'quick' if quick else 'integrity'}_check(1)")
        return None if fault == "ok" else str(fault)

    def row(self, key: PageKey) -> PageRow | None:
        """What is known of a page."""
        where = "s.digest = ? AND s.copy = ? AND p.page = ?"
        rows = self._view.all(f"{PAGE_ROWS} WHERE {where}", (bytes.fromhex(key.digest), key.copy, key.page))
        return page_row(rows[0]) if rows else None

    def page_id_of(self, record: int) -> str | None:
        """Id of the page that has a record. Looks at every page: for the few that are damaged."""
        rows = self._view.all("SELECT page_id FROM pages WHERE record = ?", (record,))
        return rows[0][0] if rows else None

    def without_record(self) -> Iterator[tuple[PageKey, str]]:
        """Key and id of pages that are done or failed, and whose record is gone."""
        where = f"p.state IN ({PageState.DONE:d}, {PageState.FAILED:d}) AND r.record IS NULL"
        statement = f"{PAGE_ROWS} LEFT JOIN records r ON r.record = p.record WHERE {where}"
        return ((row.key, row.page_id) for row in map(page_row, self._view.each(statement)))

    def crops_of(self, record: int) -> set[tuple[str, int, str]]:
        """Path, size and SHA-256 of the crops of a record."""
        return set(self._view.all("SELECT path, size, sha256 FROM crops WHERE record = ?", (record,)))

    def is_crop(self, path: str) -> bool:
        """Whether a record names a file."""
        return bool(self._view.all("SELECT 1 FROM crops WHERE path = ?", (path,)))

    def garbage(self) -> list[str]:
        """Files of removed pages that are about to be deleted."""
        return [path for (path,) in self._view.all("SELECT path FROM garbage")]

    def page_ids(self) -> Iterator[tuple[str, int]]:
        """Every page's id, and the number of its records (0 or 1)."""
        return self._view.each("SELECT page_id, record IS NOT NULL FROM pages")

    def document_ids(self) -> Iterator[tuple[str, int]]:
        """Every document's id, and whether it has a record (0 or 1)."""
        has_record = "EXISTS (SELECT 1 FROM pages p WHERE p.document = d.document AND p.record IS NOT NULL)"
        return self._view.each(f"SELECT doc_id, {has_record} FROM documents d")

    def recorded_documents(self) -> int:
        """Documents of which there is a record."""
        return sum(records for _, records in self.document_ids())

    def is_written(self, doc_id: str) -> bool:
        """Whether a document's files are said to be up to date."""
        return bool(self._view.all("SELECT 1 FROM documents WHERE name = ? AND written = 1", (doc_id.casefold(),)))

    def counted_states(self) -> dict[PageState, int]:
        """Pages by state, counted one by one; :meth:`counts` asks the counts that the run keeps."""
        rows = self._view.all("SELECT state, count(*) FROM pages GROUP BY state")
        return {PageState(state): pages for state, pages in rows}

    def preview(self, page_id: str) -> bytes | None:
        """The small image of a page for the report; None where none was kept."""
        rows = self._view.all(
            "SELECT image FROM previews WHERE record = (SELECT record FROM pages WHERE name = ?)", (page_id.casefold(),)
        )
        return bytes(rows[0][0]) if rows else None

    def has_previews(self) -> bool:
        """Whether page images were kept for a report."""
        return bool(self._view.all("SELECT 1 FROM previews LIMIT 1"))

    def failures(self, examples: int = 3) -> list[Failures]:
        """Failed pages by category, the most frequent first, with the first examples of each."""
        kinds = self._view.all(
            f"SELECT category, count(*) FROM pages WHERE {_FAILED} GROUP BY category ORDER BY 2 DESC, 1"
        )
        return [
            Failures(
                category,
                pages,
                [
                    FailedPage(*row)
                    for row in self._view.all(
                        f"SELECT page_id, message, attempts FROM pages WHERE {_FAILED} AND category = ?"
                        " ORDER BY page_idx LIMIT ?",
                        (category, examples),
                    )
                ],
            )
            for category, pages in kinds
        ]

    def rate(self) -> Rate:
        """Pages that ended, and how many a second of late."""
        ended = self.summary.pages
        samples = self._view.all(
            "SELECT time, ended FROM samples WHERE session = (SELECT session FROM run) AND time >= ? ORDER BY time",
            (time.time() - _RECENT_S,),
        )
        if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
            return Rate(ended, None)
        return Rate(ended, (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0]))

    def session(self) -> Session | None:
        """The last invocation; None while too little is known."""
        samples = self._view.all(
            "SELECT time, ended FROM samples WHERE session = (SELECT session FROM run) ORDER BY time"
        )
        if len(samples) < 2:
            return None
        (start, before), (end, ended) = samples[0], samples[-1]
        return Session(max(0, ended - before), end - start)

    def running(self) -> Running:
        """Pages in flight, and who works on them."""
        owner = owner_of(self.path / paths.LOCK)
        if owner is not None and owner.alive() is False:
            owner = None
        rows = self._view.all(f"SELECT page_id FROM pages WHERE {state_is(PageState.RUNNING)} ORDER BY page_idx")
        return Running([row[0] for row in rows], owner)

    def close(self) -> None:
        """Close the database. Idempotent."""
        self._view.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _records(
        self,
        where: str,
        parameters: Sequence[Any] = (),
        *,
        on_damage: Callable[[DamagedRunError], None] | None = None,
    ) -> Iterator[PageResult]:
        # Two steps: a sort of the records themselves would write all of them to a temporary file.
        for page_id, record in self._view.each(f"SELECT p.page_id, p.record FROM pages p WHERE {where}", parameters):
            try:
                page = self._record(page_id, record)
            except DamagedRunError as error:
                if on_damage is None:
                    raise
                on_damage(error)
            else:
                yield page

    def _record(self, page_id: str, record: int) -> PageResult:
        rows = self._view.all("SELECT data FROM records WHERE record = ?", (record,))
        try:
            if not rows:
                raise ValueError("it is missing")
            return decode_page(decompress(rows[0][0]))
        except ValueError as error:  # msgspec's are some
            raise DamagedRunError(f"the record of page {page_id} is damaged: {error}", remedy=REPAIR) from error
