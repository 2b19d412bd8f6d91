"""The output directory of a run, written page by page from one thread."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self

from pagemill.document.identity import PageKey
from pagemill.document.page import PageError, PageResult
from pagemill.errors import LockedError, OutputError
from pagemill.store import paths
from pagemill.store.catalogue import RunCatalogue
from pagemill.store.derived import (
    Exporters,
    LineFile,
    has_document,
    report_of,
    result_lines,
    text_lines,
    write_document,
    write_run_json,
)
from pagemill.store.descriptions import DescriptionStore
from pagemill.store.files import output_errors, sync_directory, sync_files, write_whole
from pagemill.store.lock import DERIVED_WAIT_S, RunLock
from pagemill.store.opening import OpenMode, clear_folder, crops_of, delete_own, open_run, refuse
from pagemill.store.records import encode_line
from pagemill.store.rows import PageRow, PageState, Place, state_is
from pagemill.store.run_database import NO_LONGER_IN_THE_INPUT, RunDatabase

PREVIEW_PAGES = 2000
"""Pages, counted from the start of the input, whose preview is kept for the report."""
SYNC_EVERY_S = 5.0
"""Seconds between syncs: a power cut loses what was written since the last one."""
_DROPPED_TOGETHER = 10_000
"""Pages of a changed source: a dataset shard can have millions."""


class RunDirectory:
    """The files of a run, and the state of earlier invocations.

    Methods that write are called from one thread at a time; the catalogue from any. Memory grows with the pages in
    flight or postponed and with sources that do not open, not with the pages of the run.
    """

    def __init__(self, path: Path, exporters: Exporters, run: RunDatabase, lock: RunLock) -> None:
        """Use :meth:`open`."""
        self.path = path
        self.summary = run.summary
        """Counts of the whole directory, over all invocations."""
        self.resumed = 0
        """Pages that were finished when the directory was opened."""
        self._exporters = exporters
        self._run = run
        self._lock = lock
        self._present: set[PageKey] = set()
        """Pages that this process has started and not finished; for sources that do not open, finished ones, too."""
        self._new_documents: set[str] = set()
        """Documents written since the last sync."""
        self._unsynced_crops: set[Path] = set()
        self._sync_failed = False
        self._last_sync = time.monotonic()
        self._closed = False
        self.catalogue = RunCatalogue(run, self._replace_source)
        """Known sources and assigned names. Thread-safe."""
        self._results = LineFile(path / paths.RESULTS, run, result_lines)
        self.descriptions = DescriptionStore(path / paths.DESCRIPTIONS)
        """Answers about elements of pages, stored before their pages are."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        exporters: Exporters,
        identity: Mapping[str, Any],
        settings: Mapping[str, Any] | None,
        mode: OpenMode = OpenMode.AUTO,
        retry_failed: bool = False,
        death: str | None = None,
        task: str = "",
    ) -> RunDirectory:
        """Open a directory, which is created where it is missing, and clean up after an earlier process.

        Args:
            path: The output directory.
            exporters: Formats of texts, documents and report.
            identity: Plain JSON values: the settings that change results. A run is only resumed with the same ones.
            settings: Plain JSON values that describe the run, kept in ``run.json``. No secrets. None only brings
                derived files up to date.
            mode: How to treat an existing run.
            retry_failed: Retry failed pages.
            death: Death of the last process that had the directory open, if its parent saw it, such as ``SIGSEGV``.
            task: Task of this process other than parsing, shown by ``pagemill status``.

        Raises:
            LockedError: Another process is using the directory.
            DifferentRunError: It holds a run with another identity.
            DamagedRunError: It holds a run that cannot be restored.
            OutputError: It cannot be written, holds foreign files with names that we use, or no run to resume;
                NoSpaceError when the disk is full.
        """
        with output_errors(path):
            if path.is_file():
                raise OutputError(f"{path} is a file, not a directory", remedy="Choose a directory with -o.")
            refuse(path, mode)  # before anything is created there
            (path / paths.FOLDER).mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opened:
            lock = opened.enter_context(RunLock(path / paths.LOCK, task=task))
            run, cut_off = open_run(path, identity=identity, settings=settings, mode=mode)
            opened.enter_context(run)
            directory = cls(path, exporters, run, lock)
            opened.callback(directory._results.close)
            directory._recover(death, cut_off=cut_off, retry_failed=retry_failed)
            # Now, not after the first seconds: processes that die sooner, one after the other, would let the journal
            # grow without bound.
            directory.sync()
            opened.pop_all()
        return directory

    def start_page(self, key: PageKey, place: Place, *, alone: bool = False) -> None:
        """Record that a page is in flight.

        Args:
            key: The page.
            place: Its names are from the catalogue.
            alone: No other page is in flight.

        Raises:
            OutputError: The database cannot be written; NoSpaceError when the disk is full.
            ValueError: The page has finished already.
        """
        with self._run.lock:
            self._admit(key)
            with self._run.transaction() as connection:
                self._run.set_state(connection, key, place, PageState.RUNNING, alone=alone)
            self._present.add(key)

    def postpone_page(self, key: PageKey, *, attempts: int, error: PageError) -> None:
        """Record that an attempt at a page failed and will be followed by another.

        Args:
            key: The page.
            attempts: Failed attempts, including this one.
            error: Error of this attempt.

        Raises:
            OutputError: The database cannot be written; NoSpaceError when the disk is full.
        """
        self._run.postpone(key, attempts=attempts, category=error.category, message=error.message)

    def forget_started_page(self, key: PageKey, doc_id: str) -> str:
        """Delete a page that was started, as its source does not open; return the id of the page for the source.

        Raises:
            OutputError: The database cannot be written; NoSpaceError when the disk is full.
        """
        with self._run.lock:
            earlier = self._run.row(key._replace(page=0))
            self._run.forget_started(key)
            self._present.discard(key)
            return self.catalogue.page_id(doc_id) if earlier is None else earlier.page_id

    def write_page(
        self, page: PageResult, crops: Sequence[tuple[str, bytes]] = (), preview: bytes | None = None
    ) -> None:
        """Write a finished page: its crops, then everything else in one transaction.

        Args:
            page: The record; ``page.page_key`` identifies the page.
            crops: Path relative to the output directory (:func:`pagemill.document.names.crop_path`) and encoded image.
            preview: Encoded image (WebP or JPEG) of the page for the report; dropped if no report is written.

        Raises:
            OutputError: The page could not be written and stays unfinished, or its line did not fit into
                ``ocr_results.jsonl``, which the next process repairs. NoSpaceError when the disk is full.
            ValueError: The key is invalid, the page is already finished, or a crop's path is not of the form that
                ``crop_path`` makes.
        """
        key = PageKey.parse(page.page_key)
        files = [(paths.crop_file(self.path, name), data) for name, data in crops]
        line = encode_line(page)
        self._admit(key)
        # Crops first: a process that dies in between leaves files that nothing names, which are deleted; the other way
        # round it would leave a record of crops that do not exist.
        with contextlib.ExitStack() as undo:
            for path, data in files:
                undo.callback(path.unlink, missing_ok=True)
                with output_errors(path):
                    path.write_bytes(data)
            kept = None if self._exporters.report is None else preview
            with self._counting() as connection:
                self.summary.add(page)
                number = self._run.end_page(connection, page, key, line, kept)
            undo.pop_all()
        # Only now: a crop that was undone must not be synced.
        self._unsynced_crops.update(path for path, _ in files)
        self._new_documents.discard(page.doc_id)
        self._ended(key)
        self._results.append(number, line)
        self._sync_when_due()

    def replace_page(self, page: PageResult) -> None:
        """Replace the record of a finished page; its crops and preview stay.

        Raises:
            OutputError: It could not be written; the page is unchanged. NoSpaceError when the disk is full.
            ValueError: The page has no record.
        """
        key = PageKey.parse(page.page_key)
        row = self._run.row(key)
        if row is None or row.record is None:
            raise ValueError(f"page {key} has no record")
        # Its counts are subtracted; the row alone does not know regions and warnings.
        (earlier,) = self._run.record(row.record)
        with self._counting() as connection:
            self.summary.add(earlier, -1)
            self.summary.add(page)
            preview = self._run.preview(row.page_id)
            self._run.end_page(connection, page, key, encode_line(page), preview)  # takes over the crops
            for table in ("previews", "facts", "records"):
                connection.execute(f"DELETE FROM {table} WHERE record = ?", (row.record,))
            connection.execute("DELETE FROM derived")  # the JSONL files hold the old record
        self._new_documents.discard(page.doc_id)
        self._results.distrust()
        self._sync_when_due()

    def skip_page(self, key: PageKey, place: Place, *, reason: str) -> None:
        """Record that a page is skipped permanently; arguments as in :meth:`start_page`.

        Raises:
            OutputError: The database cannot be written; NoSpaceError when the disk is full.
            ValueError: The page has finished already.
        """
        self._admit(key)
        with self._counting() as connection:
            self.summary.add_skipped(reason)
            self._run.set_state(connection, key, place, PageState.SKIPPED, category=reason)
        self._ended(key)
        self._sync_when_due()

    def finish_document(self, doc_id: str) -> None:
        """Write a document's Markdown and DocJSON from its pages; does nothing for one that has no pages here.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
            DamagedRunError: A record is damaged.
        """
        # While an export holds the lock, the document is left to the end of the run: pages must not wait for it.
        with contextlib.suppress(LockedError), RunLock(self.path / paths.DERIVED_LOCK, wait_s=0):
            self._write_document(doc_id)
        self._sync_when_due()

    def set_total(self, pages: int | None) -> None:
        """Store the number of pages in the input, for observers."""
        self._run.change("UPDATE run SET total = ?", (pages,))

    def sync(self) -> None:
        """Make everything that was written durable, so that it survives a power cut.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        documents = list(self._new_documents)
        self._new_documents.clear()  # if this fails, they are written again
        try:
            sync_files(self._unsynced_crops)
            sync_files([file for doc_id in documents for file in paths.document_files(self.path, doc_id)])
            self._results.sync()
            for name in (paths.CROPS, paths.DOCUMENTS, paths.FOLDER, "."):
                sync_directory(self.path / name)
        except OutputError:
            # After a failed fsync the kernel may drop the pages: a second one succeeds although they are lost. So the
            # crops are never reported as durable by this process.
            self._sync_failed = True
            raise
        self._unsynced_crops.clear()
        if documents:
            self._run.set_written(documents, written=True)
        # After the crops: this transaction makes the records durable that name them.
        self._run.synced(self.summary.pages, crops=not self._sync_failed)
        self._run.checkpoint()
        self._last_sync = time.monotonic()

    def finish(self, *, interrupted: bool = False, complete: bool = True) -> None:
        """End the run: bring all derived files up to date.

        Without a report in the exporters, one of an earlier invocation is deleted, as it would be out of date, with
        the previews that were kept for it.

        Args:
            interrupted: The run was stopped early.
            complete: The input was read to its end, so that pages it did not yield are no longer in it: unfinished ones
                are skipped, and failures of sources that did not recur are deleted.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
            DamagedRunError: A record is damaged.
        """
        if complete:
            self._forget_failed_sources()
            for row in list(self._run.rows(f"p.{state_is(PageState.WAITING)}")):
                if row.key not in self._present:
                    self.skip_page(row.key, row.place, reason=NO_LONGER_IN_THE_INPUT)
        self.summary.finished = datetime.now(UTC)
        self.summary.interrupted = interrupted
        self.write_derived()
        self._run.finish(self.summary)

    def write_derived(self) -> None:
        """Bring all derived files up to date.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
            DamagedRunError: A record is damaged.
        """
        with RunLock(self.path / paths.DERIVED_LOCK, wait_s=DERIVED_WAIT_S), self._run.lock:
            self._results.update()
            texts = partial(text_lines, embedding_text=self._exporters.embedding_text)
            LineFile(self.path / paths.TEXTS, self._run, texts).update()
            for doc_id, written in self._run.recorded_documents():
                # Those of a small run have just been written, which the next sync records.
                if not ((written or doc_id in self._new_documents) and has_document(self.path, doc_id)):
                    if written:
                        self._run.set_written([doc_id], written=False)
                    self._write_document(doc_id)
                    self._sync_when_due()
            self.sync()
            self.summary.documents = self._run.summary.documents
            self._write_report()
            # Before the database: if we die in between, the run is unfinished, and its run.json need not be right.
            write_run_json(self.path, self.summary)
            self.sync()

    def close(self) -> None:
        """Close all files and release the lock. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._results.close()
        self.descriptions.close()
        try:
            with contextlib.suppress(OutputError):  # the pages then look as if the process had died, which is harmless
                self._run.release_in_flight()
            self._run.close()
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recover(self, death: str | None, *, cut_off: bool, retry_failed: bool) -> None:
        """Clean up after a process that died, in time proportional to its pages in flight, not to the run."""
        for name in (paths.CROPS, paths.DOCUMENTS):
            with output_errors(self.path / name):
                (self.path / name).mkdir(exist_ok=True)
        self._delete_garbage()
        if cut_off:
            with output_errors(self.path):
                delete_own(self.path, crops_of(self.path, self._run.in_flight()))
                for name in (".", paths.DOCUMENTS, paths.FOLDER):
                    clear_folder(self.path / name)
            self._check_crops()
        # After the crops of these pages are deleted: from here on they wait, and nothing lists them as in flight.
        self._run.recover_in_flight(death)
        if retry_failed and (failed := list(self._run.rows(f"p.{state_is(PageState.FAILED)} AND p.page > 0"))):
            self._drop(failed, forget=False)
        self.resumed = self.summary.pages + self.summary.skipped - self._run.unopened()
        # The identity of the run is in it: with that a lost database can be rebuilt from ocr_results.jsonl.
        write_run_json(self.path, self.summary)
        self._results.go_live()

    def _check_crops(self) -> None:
        """Reset pages whose crops did not reach the disk before a power cut, among those since the last sync."""
        lost: dict[int, None] = {}
        for record, name, sha256 in self._run.unsynced_crops():
            path = paths.crop_file(self.path, name)
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                content = b""
            if hashlib.sha256(content).hexdigest() == sha256:
                self._unsynced_crops.add(path)  # the process that wrote it may have died before the sync
            else:
                lost[record] = None
        if lost:
            self._drop(self._run.rows_of(list(lost)), forget=False)

    def _admit(self, key: PageKey) -> None:
        """Delete what an earlier invocation stored of a page that starts or ends now.

        The failure of a source (page 0) is not deleted when the source yields pages: other parts may still be missing.
        Only reading it to its end without that failure does so (:meth:`_forget_failed_sources`).
        """
        if key.page and key in self._present:
            return  # started by this process
        row = self._run.row(key)
        if row is None or not row.state.final:
            return
        if row.state is PageState.SKIPPED or (key.page == 0 and key not in self._present):
            self._drop([row], forget=key.page > 0, keep_documents=True)
        else:
            raise ValueError(f"page {key} is already finished")

    def _ended(self, key: PageKey) -> None:
        """Mark a page as finished; a source that does not open stays marked as tried."""
        if key.page:
            self._present.discard(key)
        else:
            self._present.add(key)

    def _forget_failed_sources(self) -> None:
        """Delete failures of sources that have been read to their end since, or are no longer in the input."""
        failed = self._run.rows(f"p.page = 0 AND p.state <> {PageState.DONE:d}")
        repaired = [row for row in failed if row.key not in self._present]
        if repaired:
            self._drop(repaired, forget=True)

    def _replace_source(self, source: int) -> None:
        """Remove the pages of a source (its number in the database) whose content has changed."""
        # In parts: a shard of millions of rows would be one transaction of gigabytes.
        while rows := list(islice(self._run.rows("p.source = ?", (source,)), _DROPPED_TOGETHER)):
            self._drop(rows, forget=True)
        self._run.change("DELETE FROM sources WHERE source = ?", (source,))

    def _drop(self, rows: Iterable[PageRow], *, forget: bool, keep_documents: bool = False) -> None:
        """Remove pages with their files; see :meth:`RunDatabase.drop`."""
        with self._run.lock:  # the catalogue calls this on other threads
            self._run.drop(self.summary, rows, forget=forget, keep_documents=keep_documents)
            self._new_documents.clear()  # some have lost pages, and are written again
            self._results.distrust()
            self._delete_garbage()

    def _delete_garbage(self) -> None:
        """Delete the files of removed pages. Not later: a page that is parsed again may use their names."""
        names = self._run.garbage()
        delete_own(self.path, names)
        # After the files: a process that dies in between deletes them again, which is harmless.
        if names:
            self._run.change("DELETE FROM garbage")

    def _write_document(self, doc_id: str) -> None:
        with self._run.lock:  # another thread may replace the source, which removes its pages
            if next(self._run.document(doc_id), None) is not None:
                write_document(self._run, doc_id, self._exporters)
                self._new_documents.add(doc_id)

    def _write_report(self) -> None:
        """Write the report, or delete that of an earlier invocation with its previews."""
        report = self.path / paths.REPORT
        if self._exporters.report is not None:
            write_whole(report, report_of(self._run, self._exporters.report, self.summary), durable=True)
            return
        with output_errors(report):
            report.unlink(missing_ok=True)
        self._run.change("DELETE FROM previews")

    def _sync_when_due(self) -> None:
        """Sync if the interval is over. Called after each step of a long series, to bound the journal and memory."""
        if time.monotonic() - self._last_sync >= SYNC_EVERY_S:
            self.sync()

    @contextlib.contextmanager
    def _counting(self) -> Iterator[sqlite3.Connection]:
        """A transaction that changes the counts; on failure the counts in memory are restored."""
        with self._run.lock, contextlib.ExitStack() as failed:
            failed.callback(lambda: self.summary.restore(self._run.summary))
            with self._run.transaction() as connection:
                yield connection
                self._run.count(connection, self.summary)
            failed.pop_all()
