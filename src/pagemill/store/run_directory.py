"""The output directory of a run, written page by page from one thread."""

from __future__ import annotations

import contextlib
import time
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from pagemill.document.identity import PageKey
from pagemill.document.page import PageResult, Status
from pagemill.errors import OutputError
from pagemill.store import paths
from pagemill.store.catalogue import LedgerCatalogue
from pagemill.store.files import AppendFile, output_errors, sync_directory, sync_file, write_whole
from pagemill.store.ledger import Ledger, PageState, Place, Span
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.records import ParsedText, encode_line
from pagemill.store.summary import RunSummary, failure_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from pagemill.document.page import PageError

PREVIEW_PAGES = 2000
"""Pages, counted from the start of the input, whose preview is kept for the report."""
PREVIEW_BYTES = 300 * 2**20
"""Most bytes of previews that a run keeps."""
SYNC_EVERY_S = 5.0
"""A power cut costs what was written since the last sync."""


class OpenMode(Enum):
    """What to do with what an output directory holds."""

    AUTO = "auto"
    """Go on with a run of the same settings; start one where there is none."""
    RESUME = "resume"
    """Go on; an error where there is no run."""
    FRESH = "fresh"
    """Delete what a run wrote, and start."""


class ReportWriter(Protocol):
    """Writes ``report.html`` into the directory; see :func:`pagemill.export.report.write_report`."""

    def __call__(
        self,
        out: Path,
        pages: Iterator[PageResult],
        previews: Callable[[str], bytes | None],
        summary: Mapping[str, Any],
    ) -> None:
        """Write the report of all pages, which come in input order; previews by page id."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporters:
    """How pages become text; the store knows files, not formats."""

    embedding_text: Callable[[PageResult], str]
    document_markdown: Callable[[Iterable[PageResult]], str | Iterable[str]]
    """Called with a document's pages in page order."""
    document_json: Callable[[Iterable[PageResult]], str | bytes | Iterable[str]]
    report: ReportWriter | None = None
    """None leaves the report out; then no previews are kept either."""


class RunDirectory:
    """Everything a run writes, and what it knows of earlier times that it was opened.

    What it writes is called from one thread; the catalogue from any. Memory does not grow with the pages.
    """

    def __init__(self, path: Path, exporters: Exporters, ledger: Ledger, lock: RunLock, summary: RunSummary) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.summary = summary
        """Of the whole directory, over all the times that it was opened."""
        self.resumed = 0
        """Pages that had ended when the directory was opened."""
        self._exporters = exporters
        self._ledger = ledger
        self._lock = lock
        self._unsynced: set[Path] = set()
        self._last_sync = time.monotonic()
        self._reader: RunReader | None = None
        with contextlib.ExitStack() as opened:  # closes what is open when a later one fails
            self._results = AppendFile(path / paths.RESULTS)
            opened.callback(self._results.close)
            self._texts = AppendFile(path / paths.TEXTS)
            opened.callback(self._texts.close)
            self._previews = AppendFile(path / paths.PREVIEWS)
            opened.callback(self._previews.close)
            for name in (paths.CROPS, paths.DOCUMENTS):
                with output_errors(path / name):
                    (path / name).mkdir(exist_ok=True)
            self._files = opened.pop_all()
        self._catalogue = LedgerCatalogue(ledger, lambda source: None)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        exporters: Exporters,
        identity: Mapping[str, Any],
        settings: Mapping[str, Any],
        mode: OpenMode = OpenMode.AUTO,
        retry_failed: bool = False,
        death: str | None = None,
    ) -> RunDirectory:
        """Open a directory, which is made where it is missing, and put right what an earlier process left behind.

        Args:
            path: The output directory.
            exporters: Formats of texts, documents and report.
            identity: Plain JSON values: the settings that decide about results. A run goes on with the same ones only.
            settings: Plain JSON values that describe the run, kept in ``run.json``. No secrets.
            mode: What to do with a run that is there.
            retry_failed: Failed pages are to be tried again.
            death: How the process ended that had the directory open before, where somebody saw it: ``SIGSEGV``.

        Raises:
            LockedError: Another process works on the directory.
            DifferentRunError: It holds a run with another identity.
            DamagedRunError: It holds a run that cannot be put right.
            OutputError: It cannot be written, holds files by our names that are not ours, or no run to resume;
                NoSpaceError when the disk is full.
        """
        with output_errors(path):
            if path.is_file():
                raise OutputError(f"{path} is a file, not a directory", remedy="Choose a directory with -o.")
            (path / paths.FOLDER).mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            lock = RunLock(path / paths.LOCK)
            opened.callback(lock.release)
            ledger = Ledger(path / paths.LEDGER)
            opened.callback(ledger.close)
            summary = ledger.summary()
            if summary is None:
                summary = RunSummary(started=datetime.now(UTC), identity=dict(identity))
                ledger.begin(summary)
            ledger.session(settings)
            summary.settings, summary.finished, summary.interrupted = dict(settings), None, False
            directory = cls(path, exporters, ledger, lock, summary)
            opened.pop_all()
        directory.resumed = summary.pages + summary.skipped
        directory._write_run_json()
        return directory

    @property
    def catalogue(self) -> LedgerCatalogue:
        """What is known of sources, and the names that are given out; may be called from any thread."""
        return self._catalogue

    def wants_preview(self, page_idx: int) -> bool:
        """Whether the report will show this page's image, so that making a preview is worth the while."""
        return self._exporters.report is not None and page_idx < PREVIEW_PAGES and self._previews.size < PREVIEW_BYTES

    def start_page(
        self,
        key: PageKey,
        *,
        page_id: str,
        doc_id: str,
        uri: str,
        page_number: int | None,
        page_idx: int,
        alone: bool = False,
    ) -> None:
        """Note that a page is under way.

        Args:
            key: The page.
            page_id: Its id, from the catalogue.
            doc_id: Its document's id, from the catalogue.
            uri: The document as the user named it.
            page_number: In the document, from 1.
            page_idx: In the run's input, from 0.
            alone: No other page is under way.

        Raises:
            OutputError: The ledger cannot be written; NoSpaceError when the disk is full.
        """
        place = Place(page_id, doc_id, uri, page_number, page_idx)
        with self._ledger.database.transaction() as connection:
            self._ledger.set_state(connection, key, place, PageState.RUNNING, alone=alone)

    def postpone_page(self, key: PageKey, *, attempts: int, error: PageError) -> None:
        """Note that an attempt at a page ended badly, and that there will be another.

        Args:
            key: The page.
            attempts: That ended badly, this one included.
            error: Of this one.

        Raises:
            OutputError: The ledger cannot be written; NoSpaceError when the disk is full.
        """
        self._ledger.postpone(key, attempts=attempts, category=error.category, message=error.message)

    def write_page(
        self, page: PageResult, crops: Sequence[tuple[str, bytes]] = (), preview: bytes | None = None
    ) -> None:
        """Write a page that has ended: its crops, then a line in each of the two JSONL files, then the ledger.

        Args:
            page: The record; ``page.page_key`` says which page it is.
            crops: Path relative to the output directory (:func:`pagemill.document.names.crop_path`) and encoded image.
            preview: Encoded image (WebP or JPEG) of the page for the report.

        Raises:
            OutputError: The page could not be written; there is no trace of it then, and it is still to be done.
                NoSpaceError when the disk is full.
            ValueError: The key is none, the page has ended already, or a crop's path is not of the form that
                ``crop_path`` makes.
        """
        key = PageKey.parse(page.page_key)
        files = [(paths.crop_file(self.path, name), data) for name, data in crops]
        text = ParsedText(
            page_id=page.page_id,
            page_idx=page.page_idx,
            doc_id=page.doc_id,
            text=self._exporters.embedding_text(page),
        )
        failed = page.status is Status.FAILED
        with contextlib.ExitStack() as undo:
            for path, data in files:
                undo.callback(path.unlink, missing_ok=True)
                write_whole(path, (data,))
            preview_span = None
            if preview is not None and self.wants_preview(page.page_idx):
                preview_span = _append(undo, self._previews, preview)
            record_span = _append(undo, self._results, encode_line(page))
            text_span = _append(undo, self._texts, encode_line(text))
            self.summary.add(page)
            undo.callback(self.summary.remove, page)
            with self._ledger.database.transaction() as connection:
                self._ledger.set_state(
                    connection,
                    key,
                    Place(page.page_id, page.doc_id, page.source, page.page_number, page.page_idx),
                    PageState.FAILED if failed else PageState.DONE,
                    attempts=page.attempts,
                    category=failure_kind(page) if failed else None,
                    message=page.errors[0].message if failed and page.errors else None,
                )
                self._ledger.record(
                    connection,
                    key,
                    record=record_span,
                    text=text_span,
                    preview=preview_span,
                    summary=self.summary,
                    sizes=(self._results.size, self._texts.size, self._previews.size),
                )
            undo.pop_all()
        self._unsynced.update(path for path, _ in files)
        self._sync_now_and_then()

    def skip_page(
        self,
        key: PageKey,
        *,
        page_id: str,
        doc_id: str,
        uri: str,
        page_number: int | None,
        page_idx: int,
        reason: str,
    ) -> None:
        """Note that a page is passed over for good; arguments as in :meth:`start_page`.

        Raises:
            OutputError: The ledger cannot be written; NoSpaceError when the disk is full.
        """
        place = Place(page_id, doc_id, uri, page_number, page_idx)
        self.summary.add_skipped(reason)
        try:
            with self._ledger.database.transaction() as connection:
                self._ledger.set_state(connection, key, place, PageState.SKIPPED, category=reason)
                self._ledger.count(connection, self.summary)
        except BaseException:
            self.summary.add_skipped(reason, -1)
            raise

    def finish_document(self, doc_id: str) -> None:
        """Write a document's Markdown and DocJSON from its pages; does nothing for one that has no pages here.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
        """
        reader = self._reading()
        if next(reader.document(doc_id), None) is None:
            return
        markdown, docjson = paths.document_files(self.path, doc_id)
        write_whole(markdown, _encoded(self._exporters.document_markdown(reader.document(doc_id))))
        write_whole(docjson, _encoded(self._exporters.document_json(reader.document(doc_id))))
        self._unsynced.update((markdown, docjson))
        self.summary.documents += 1

    def set_total(self, pages: int | None) -> None:
        """Note how many pages the input holds, for those who look on."""
        self._ledger.set_total(pages)

    def sync(self) -> None:
        """Wait until all that was written is on the disk, and note it: a power cut does not take it any more.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        for file in (self._results, self._texts, self._previews):
            file.sync()
        for path in self._unsynced:
            sync_file(path)
        for name in (paths.CROPS, paths.DOCUMENTS, "."):
            sync_directory(self.path / name)
        self._unsynced.clear()
        self._ledger.synced(self._results.size, self.summary.pages)
        self._write_run_json()
        self._last_sync = time.monotonic()

    def finish(self, *, interrupted: bool = False, complete: bool = True) -> None:
        """End the run: write the documents that changed, the report and ``run.json``.

        Args:
            interrupted: The run was told to stop.
            complete: The input was read to its end, so that what was not met is no longer in it.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
        """
        for doc_id in [row[0] for row in self._ledger.database.query("SELECT doc_id FROM documents WHERE written = 0")]:
            self.finish_document(doc_id)
        self.summary.finished = datetime.now(UTC)
        self.summary.interrupted = interrupted
        self._ledger.finish(self.summary)
        if self._exporters.report is not None:
            reader = self._reading()
            with output_errors(self.path / paths.REPORT):
                self._exporters.report(self.path, reader.pages(), reader.preview, msgspec.to_builtins(self.summary))
        self.sync()

    def close(self) -> None:
        """Close all files and let others in; a second call does nothing."""
        if self._reader is not None:
            self._reader.close()
        self._files.close()
        try:
            self._ledger.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _reading(self) -> RunReader:
        self._ledger.database.flush()
        if self._reader is None:
            self._reader = RunReader.open(self.path)
        return self._reader

    def _sync_now_and_then(self) -> None:
        if time.monotonic() - self._last_sync >= SYNC_EVERY_S:
            self.sync()

    def _write_run_json(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(self.summary), indent=2) + b"\n"
        write_whole(self.path / paths.RUN_JSON, (content,), durable=True)


def _append(undo: contextlib.ExitStack, file: AppendFile, data: bytes) -> Span:
    undo.callback(file.truncate, file.size)
    return Span(file.append(data), len(data), zlib.crc32(data))


def _encoded(text: str | bytes | Iterable[str]) -> Iterator[bytes]:
    if isinstance(text, bytes):
        yield text
        return
    for chunk in (text,) if isinstance(text, str) else text:
        yield chunk.encode("utf-8", "replace")  # lone surrogates
