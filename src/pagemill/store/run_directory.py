"""The output directory of a run, written page by page from one thread."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import msgspec

from pagemill.document.identity import PageKey
from pagemill.errors import OutputError
from pagemill.store import paths
from pagemill.store.catalogue import LedgerCatalogue
from pagemill.store.compaction import compact
from pagemill.store.documents import doubt_missing_documents
from pagemill.store.dropping import delete_leftovers
from pagemill.store.files import encoded, output_errors, sync_directory, sync_files, write_whole
from pagemill.store.ledger import NO_LONGER_IN_THE_INPUT, Ledger
from pagemill.store.lock import RunLock
from pagemill.store.opening import OpenMode, open_ledger, refuse
from pagemill.store.page_files import PageFiles, append
from pagemill.store.reading import RunReader
from pagemill.store.records import encode_line
from pagemill.store.recovery import text_line
from pagemill.store.roll import Roll
from pagemill.store.rows import PageState, Place

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from pagemill.document.page import PageError, PageResult
    from pagemill.store.exporters import Exporters
    from pagemill.store.summary import RunSummary

PREVIEW_PAGES = 2000
"""Pages, counted from the start of the input, whose preview is kept for the report."""
PREVIEW_BYTES = 300 * 2**20
"""Most bytes of previews that a run keeps."""
SYNC_EVERY_S = 5.0
"""A power cut costs what was written since the last sync."""


class RunDirectory:
    """Everything a run writes, and what it knows of earlier times that it was opened.

    What writes is called from one thread at a time; the catalogue from any. Memory does not grow with the pages.
    """

    def __init__(self, path: Path, exporters: Exporters, ledger: Ledger, lock: RunLock, summary: RunSummary) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.summary = summary
        """Of the whole directory, over all the times that it was opened."""
        self.resumed = summary.pages + summary.skipped - ledger.unopened()
        """Pages that had ended when the directory was opened."""
        self._exporters = exporters
        self._ledger = ledger
        self._lock = lock
        self._roll = Roll(path, ledger, summary)
        self._unsynced: set[Path] = set()
        self._last_sync = time.monotonic()
        self._sync_failed = False
        self._closed = False
        self._reader: RunReader | None = None
        self._catalogue = LedgerCatalogue(ledger, self._roll.replace_source)
        for name in (paths.CROPS, paths.DOCUMENTS):
            with output_errors(path / name):
                (path / name).mkdir(exist_ok=True)
        self._files = PageFiles(path)

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
        parse_duplicates: bool = False,
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
            parse_duplicates: Pages that were skipped as duplicates are to be parsed after all.
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
            refuse(path, mode)  # before anything is made there
            (path / paths.FOLDER).mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            lock = RunLock(path / paths.LOCK)
            opened.callback(lock.release)
            ledger, summary = open_ledger(
                path,
                identity=identity,
                settings=settings,
                mode=mode,
                embedding_text=exporters.embedding_text,
                retry_failed=retry_failed,
                parse_duplicates=parse_duplicates,
                death=death,
            )
            opened.callback(ledger.close)
            directory = cls(path, exporters, ledger, lock, summary)
            opened.callback(directory._close_files)
            # Now, not when the first seconds have passed: a process that dies sooner, again and again, would leave the
            # next one ever more to look at, and the ledger's journal would grow without end.
            directory.sync()
            opened.pop_all()
        return directory

    @property
    def catalogue(self) -> LedgerCatalogue:
        """What is known of sources, and the names that are given out; may be called from any thread."""
        return self._catalogue

    def wants_preview(self, page_idx: int) -> bool:
        """Whether the report will show this page's image, so that making a preview is worth the while."""
        return (
            self._exporters.report is not None
            and page_idx < PREVIEW_PAGES
            and self._files.previews.size < PREVIEW_BYTES
        )

    def start_page(self, key: PageKey, place: Place, *, alone: bool = False) -> None:
        """Note that a page is under way.

        Args:
            key: The page.
            place: Its names are from the catalogue.
            alone: No other page is under way.

        Raises:
            OutputError: The ledger cannot be written; NoSpaceError when the disk is full.
            ValueError: The page has ended already.
        """
        with self._ledger.database.lock:
            self._roll.admit(key)
            with self._ledger.database.transaction() as connection:
                self._ledger.set_state(connection, key, place, PageState.RUNNING, alone=alone)
            self._roll.begun(key)

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
        text = text_line(page, self._exporters.embedding_text)
        place = Place.of(page)
        self._roll.admit(key)
        with contextlib.ExitStack() as undo:
            for path, data in files:
                undo.callback(path.unlink, missing_ok=True)
                write_whole(path, (data,))
            preview_span = None
            if preview is not None and self.wants_preview(page.page_idx):
                preview_span = append(undo, self._files.previews, preview)
            record_span = append(undo, self._files.results, encode_line(page))
            text_span = append(undo, self._files.texts, text)
            with self._counting() as connection:
                self.summary.add(page)
                self._ledger.end_page(connection, key, place, page)
                self._ledger.note_lines(connection, key, record=record_span, text=text_span, preview=preview_span)
                self._ledger.keep_files(connection, (name for name, _ in crops))
                if self._ledger.document_changed(connection, place):
                    self.summary.documents -= 1
            undo.pop_all()
        self._roll.ended(key)
        self._unsynced.update(path for path, _ in files)
        self._sync_when_due()

    def skip_page(self, key: PageKey, place: Place, *, reason: str) -> None:
        """Note that a page is passed over for good; arguments as in :meth:`start_page`.

        Raises:
            OutputError: The ledger cannot be written; NoSpaceError when the disk is full.
            ValueError: The page has ended already.
        """
        self._roll.admit(key)
        with self._counting() as connection:
            self.summary.add_skipped(reason)
            self._ledger.set_state(connection, key, place, PageState.SKIPPED, category=reason)
        self._roll.ended(key)
        self._sync_when_due()

    def finish_document(self, doc_id: str) -> None:
        """Write a document's Markdown and DocJSON from its pages; does nothing for one that has no pages here.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
            DamagedRunError: A record is not as it was written.
        """
        reader = self._reading()
        if next(reader.document(doc_id), None) is None:
            return
        markdown, docjson = paths.document_files(self.path, doc_id)
        write_whole(markdown, encoded(self._exporters.document_markdown(reader.document(doc_id))))
        write_whole(docjson, encoded(self._exporters.document_json(reader.document(doc_id))))
        self._unsynced.update((markdown, docjson))
        files = (path.relative_to(self.path).as_posix() for path in (markdown, docjson))
        self._ledger.document_written(doc_id, self.summary, files)
        self._sync_when_due()

    def set_total(self, pages: int | None) -> None:
        """Note how many pages the input holds, for those who look on."""
        self._ledger.set_total(pages)

    def sync(self) -> None:
        """Wait until all that was written is on the disk, and note it: a power cut does not take it any more.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        try:
            self._files.sync()
            sync_files(self._unsynced)
            self._write_run_json()
            for name in (paths.CROPS, paths.DOCUMENTS, paths.FOLDER, "."):
                sync_directory(self.path / name)
        except OutputError:
            self._sync_failed = True  # a second try may succeed without what the first one lost
            raise
        self._unsynced.clear()
        if not self._sync_failed:
            self._ledger.synced(self._files.results.size, self.summary.pages)
        self._last_sync = time.monotonic()

    def finish(self, *, interrupted: bool = False, complete: bool = True) -> None:
        """End the run: write the documents that changed or are missing, the report and ``run.json``.

        Without a report in the exporters, one of an earlier time is deleted, as it would be out of date, with the
        previews that were kept for it.

        Args:
            interrupted: The run was told to stop.
            complete: The input was read to its end, so that what was not met is no longer in it: such pages are
                skipped when they have not ended, and sources that did not open are forgotten.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
            DamagedRunError: A record is not as it was written.
        """
        if complete:
            self._roll.forget_broken()
            for row in self._roll.absent():
                self.skip_page(row.key, row.place, reason=NO_LONGER_IN_THE_INPUT)
        if self._ledger.has_leftovers:
            delete_leftovers(self.path, self._ledger)
        self._compact()
        doubt_missing_documents(self.path, self._ledger, self.summary)
        for doc_id in self._ledger.unwritten_documents():
            self.finish_document(doc_id)
        self.summary.finished = datetime.now(UTC)
        self.summary.interrupted = interrupted
        if self._exporters.report is None:
            self._leave_out_report()
        else:
            reader = self._reading()
            with output_errors(self.path / paths.REPORT):
                self._exporters.report(self.path, reader.pages(), reader.preview, msgspec.to_builtins(self.summary))
            self._unsynced.add(self.path / paths.REPORT)
        # run.json first: whoever dies before the ledger says so leaves an unfinished run, of which it may say anything.
        self.sync()
        self._ledger.finish(self.summary)

    def close(self) -> None:
        """Close all files and let others in; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._close_files()
        try:
            with contextlib.suppress(OutputError):  # then it looks as if the process had died: no harm
                self._ledger.rest()
            self._ledger.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _sync_when_due(self) -> None:
        """After whatever there may be thousands of, so that neither the ledger's journal nor memory grows with them."""
        if time.monotonic() - self._last_sync >= SYNC_EVERY_S:
            self.sync()

    def _reading(self) -> RunReader:
        if self._reader is None:
            self._reader = RunReader.open(self.path)
        return self._reader

    @contextlib.contextmanager
    def _counting(self) -> Iterator[sqlite3.Connection]:
        """A transaction in which the counts change; they are as before when it fails."""
        with self._ledger.database.lock:
            before = self.summary.copy()
            try:
                with self._ledger.database.transaction() as connection:
                    yield connection
                    self._ledger.count(connection, self.summary, self._files.sizes)
            except BaseException:
                self.summary.restore(before)
                raise

    def _leave_out_report(self) -> None:
        """Delete what an earlier time made and kept for the report."""
        with output_errors(self.path / paths.REPORT):
            (self.path / paths.REPORT).unlink(missing_ok=True)
        if self._files.previews.size:
            self._ledger.forget_previews()
            self._files.previews.truncate(0)

    def _compact(self) -> None:
        """Cut out the lines of pages that were taken out."""
        self._close_reader()
        with self._files.lines_closed():
            compact(self.path, self._ledger)

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _close_files(self) -> None:
        self._close_reader()
        self._files.close()

    def _write_run_json(self) -> None:
        content = msgspec.json.format(msgspec.json.encode(self.summary), indent=2) + b"\n"
        write_whole(self.path / paths.RUN_JSON, (content,), durable=True)
