"""Reading a run directory, also while a run writes it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pagemill.document.page import PageResult
from pagemill.errors import DamagedRunError, OutputError
from pagemill.store import paths
from pagemill.store.ledger import summary_of
from pagemill.store.lock import Owner, owner_of
from pagemill.store.previous import refuse_earlier_version
from pagemill.store.records import ParsedText, decode_page, decode_text
from pagemill.store.rows import PAGE_ROWS, PageRow, PageState, Span, page_row
from pagemill.store.view import LedgerView, RunFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from pagemill.store.summary import RunSummary

_RECENT_S = 120.0
_ORDERS = {"input": "ORDER BY p.page_idx, p.source, p.page", "written": "ORDER BY p.offset"}


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
    """Pages done or failed, all told."""
    pages_per_second: float | None
    """Over the last minutes of work; None while too little is known."""


class Sitting(NamedTuple):
    """What the last sitting did: the time from a start or resume to the end, or to now."""

    pages: int
    """Done or failed in it."""
    seconds: float


class Running(NamedTuple):
    """What is under way."""

    pages: list[str]
    """Ids."""
    owner: Owner | None
    """The process that works on the directory; None when there is none."""


class RunReader:
    """A run as its ledger and records tell it. A context manager; for one thread at a time.

    Reads are of one moment each: a page is either there with all that belongs to it, or not. While one is under way
    (an iterator that has not come to its end) others are of its moment, too.
    """

    def __init__(self, path: Path) -> None:
        """Use :meth:`open`."""
        self.path = path
        self._view = LedgerView(path / paths.LEDGER)
        self._opened: list[RunFiles] = []

    @classmethod
    def open(cls, path: Path) -> RunReader:
        """Open a run directory for reading.

        Raises:
            OutputError: There is no run in it, or it cannot be read.
            DamagedRunError: Its ledger is damaged.
        """
        refuse_earlier_version(path)
        if not (path / paths.LEDGER).is_file():
            raise OutputError(f"{path} holds no run", remedy="Name a directory that pagemill parse has written to.")
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
        statement = "SELECT identity, settings, started, finished, interrupted, counters FROM run, written"
        return summary_of(self._view.all(statement)[0])

    @property
    def total(self) -> int | None:
        """Pages in the input, where the run knew."""
        total = self._view.one("SELECT total FROM run")
        return None if total is None else int(total)

    def counts(self) -> dict[PageState, int]:
        """Pages by state."""
        summary = self.summary
        under_way = dict(
            self._view.all("SELECT state, count(*) FROM pages WHERE state < 3 AND state <> 3 GROUP BY state")
        )
        return {
            PageState.RUNNING: under_way.get(PageState.RUNNING, 0),
            PageState.WAITING: under_way.get(PageState.WAITING, 0),
            PageState.DONE: summary.pages - summary.failed,
            PageState.FAILED: summary.failed,
            PageState.SKIPPED: summary.skipped,
        }

    def rows(self, where: str = "TRUE", parameters: Sequence[Any] = ()) -> Iterator[PageRow]:
        """What the ledger knows of each page, by source and page.

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
        """All records, one at a time, in input order or that of the file.

        Args:
            order: Of the pages in the input, or of the lines in the file.
            on_damage: Called with what is wrong with a record, which is then passed over, instead of raising it.

        Raises:
            DamagedRunError: A record is not as it was written.
        """
        return self._records(f"WHERE p.offset IS NOT NULL {_ORDERS[order]}", on_damage=on_damage)

    def texts(self, order: Literal["input", "written"] = "input") -> Iterator[ParsedText]:
        """The texts of all pages, likewise."""
        for files, row in self._rows_with_files(
            "SELECT p.text_offset, p.text_length, p.text_crc FROM pages p WHERE p.text_offset IS NOT NULL"
            f" {_ORDERS[order]}"
        ):
            yield decode_text(files.read(paths.TEXTS, Span(*row)))

    def documents(
        self, *, on_damage: Callable[[DamagedRunError], None] | None = None
    ) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """Each document's id with its records in page order; documents in the order in which they were met.

        Args:
            on_damage: As in :meth:`pages`.
        """
        rows = self._rows_with_files("SELECT document, doc_id FROM documents ORDER BY document")
        for _, (document, doc_id) in rows:
            yield (
                doc_id,
                self._records(
                    "WHERE p.document = ? AND p.offset IS NOT NULL ORDER BY p.page_number, p.page_idx",
                    (document,),
                    on_damage=on_damage,
                ),
            )

    def document(self, doc_id: str) -> Iterator[PageResult]:
        """The records of one document in page order; none for an unknown one."""
        return self._records(
            "WHERE p.document = (SELECT document FROM documents WHERE name = ?) AND p.offset IS NOT NULL"
            " ORDER BY p.page_number, p.page_idx",
            (doc_id.casefold(),),
        )

    def source_addresses(self) -> dict[str, str]:
        """Where each source lay when it was last met (a path or URL), by its digest; the first of several copies."""
        addresses: dict[str, str] = {}
        for digest, uri in self._view.all("SELECT digest, uri FROM sources ORDER BY source"):
            addresses.setdefault(bytes(digest).hex(), uri)
        return addresses

    def remembered_digests(self) -> dict[tuple[bytes, int, int], str]:
        """Digests of files by what they had then: path as bytes, size, time of modification in ns."""
        rows = self._view.all("SELECT path, size, modified_ns, digest FROM digests")
        return {(bytes(path), size, modified_ns): bytes(digest).hex() for path, size, modified_ns, digest in rows}

    def preview(self, page_id: str) -> bytes | None:
        """The small image of a page for the report; None where none was kept."""
        rows = self._view.all(
            "SELECT preview_offset, preview_length, preview_crc FROM pages"
            " WHERE name = ? AND preview_offset IS NOT NULL",
            (page_id.casefold(),),
        )
        if not rows:
            return None
        with contextlib.suppress(DamagedRunError):  # the report does without it
            return self._files().read(paths.PREVIEWS, Span(*rows[0]))
        return None

    def failures(self, examples: int = 3) -> list[Failures]:
        """Failed pages by category, the most frequent first, with the first examples of each."""
        kinds = self._view.all(
            "SELECT category, count(*) FROM pages WHERE state = 4 AND state <> 3 GROUP BY category ORDER BY 2 DESC, 1"
        )
        return [
            Failures(
                category,
                pages,
                [
                    FailedPage(*row)
                    for row in self._view.all(
                        "SELECT page_id, message, attempts FROM pages WHERE state = 4 AND state <> 3 AND category = ?"
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

    def sitting(self) -> Sitting | None:
        """The last sitting; None while too little is known."""
        samples = self._view.all(
            "SELECT time, ended FROM samples WHERE session = (SELECT session FROM run) ORDER BY time"
        )
        if len(samples) < 2:
            return None
        (start, before), (end, ended) = samples[0], samples[-1]
        return Sitting(max(0, ended - before), end - start)

    def running(self) -> Running:
        """Pages under way, and who works on them."""
        owner = owner_of(self.path / paths.LOCK)
        if owner is not None and owner.alive() is False:
            owner = None
        rows = self._view.all("SELECT page_id FROM pages WHERE state = 1 AND state <> 3 ORDER BY page_idx")
        return Running([row[0] for row in rows], owner)

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        self._view.close()
        for files in self._opened:
            files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _records(
        self,
        clauses: str,
        parameters: Sequence[Any] = (),
        *,
        on_damage: Callable[[DamagedRunError], None] | None = None,
    ) -> Iterator[PageResult]:
        for files, row in self._rows_with_files(f"SELECT p.offset, p.length, p.crc FROM pages p {clauses}", parameters):
            try:
                page = decode_page(files.read(paths.RESULTS, Span(*row)))
            except DamagedRunError as error:
                if on_damage is None:
                    raise
                on_damage(error)
            else:
                yield page

    def _rows_with_files(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[RunFiles, Any]]:
        """Rows of the ledger, with the files as they were at the same moment."""
        while True:
            files = self._files()
            rows = self._view.each(statement, parameters)
            row = next(rows, None)  # from now on it is the moment of this answer
            if row is None:
                return
            if self._view.one("SELECT generation FROM run") == files.generation:
                break
        yield files, row
        for row in rows:
            yield files, row

    def _files(self) -> RunFiles:
        """The files of now. Earlier ones stay open for those who read them."""
        generation, renaming = self._view.all("SELECT generation, renaming FROM run")[0]
        last = self._opened[-1] if self._opened else None
        if last is None or (last.generation, last.renaming) != (generation, bool(renaming)):
            self._opened.append(RunFiles(self.path, generation, renaming=bool(renaming)))
        return self._opened[-1]
