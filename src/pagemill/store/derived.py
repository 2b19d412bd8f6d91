"""Files that are derived from the records: the two JSONL files, documents, the report and ``run.json``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pagemill.document.page import DocumentInfo, PageResult
from pagemill.errors import DamagedRunError
from pagemill.store import paths
from pagemill.store.database import REPAIR
from pagemill.store.files import encoded, output_errors, size_of, sync, sync_directory, write_whole
from pagemill.store.reading import RunReader
from pagemill.store.records import decode_page, decompress, text_line
from pagemill.store.run_database import RunDatabase
from pagemill.store.summary import RunSummary

Report = Callable[[Iterator[PageResult], Callable[[str], bytes | None], Mapping[str, Any]], Iterable[str]]
Line = tuple[int, bytes]
"""Number of a record, and its line in a file."""


class Exporters(msgspec.Struct, frozen=True, kw_only=True):
    """Converters of pages to text: the store knows files, not formats."""

    embedding_text: Callable[[PageResult], str]
    document_markdown: Callable[[Iterable[PageResult]], str | Iterable[str]]
    """Called with a document's pages in page order."""
    document_json: Callable[[Iterable[PageResult], DocumentInfo, bool], str | bytes | Iterable[str]]
    """Called with the same pages, the metadata of the document, and whether it has unfinished pages."""
    report: Report | None = None
    """Called with all pages in input order, the preview of a page id, and the summary.

    None leaves the report out; then no previews are kept either.
    """


def result_lines(records: Iterable[tuple[int, bytes]]) -> Iterator[Line]:
    """Stored records as lines of ``ocr_results.jsonl``.

    Raises:
        DamagedRunError: One is damaged.
    """
    for number, data in records:
        try:
            line = decompress(data)
        except ValueError as error:
            raise DamagedRunError(f"record {number} of the run is damaged: {error}", remedy=REPAIR) from error
        yield number, line


def text_lines(records: Iterable[tuple[int, bytes]], embedding_text: Callable[[PageResult], str]) -> Iterator[Line]:
    """Stored records as lines of ``parsed_texts.jsonl``.

    Raises:
        DamagedRunError: One is damaged.
    """
    for number, line in result_lines(records):
        yield number, text_line(decode_page(line), embedding_text)


class LineFile:
    """A file with one line per record, in the order of writing.

    Args:
        path: The file.
        run: Its table ``derived`` has the last record and the size of the file.
        lines: Converts stored records to lines.
    """

    def __init__(
        self, path: Path, run: RunDatabase, lines: Callable[[Iterable[tuple[int, bytes]]], Iterator[Line]]
    ) -> None:
        self._path = path
        self._run = run
        self._lines = lines
        self._record, self._size = run.derived(path.name)
        self._fd = -1

    def distrust(self) -> None:
        """Have the next update rewrite the file, as it holds lines of changed records. Thread-safe."""
        with self._run.lock:
            self._size = -1

    def go_live(self) -> None:
        """Bring the file up to date if only lines at its end are missing, and open it for :meth:`append`.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        if self._size >= 0:
            self.update()
        with output_errors(self._path):
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def append(self, record: int, line: bytes) -> None:
        """Append the line of a record that was just committed, for programs that follow the file.

        After a failure no line is appended until the next update, which truncates the partial one.

        Raises:
            OutputError: The line does not fit; NoSpaceError when the disk is full.
        """
        if self._fd < 0:
            return
        try:
            with output_errors(self._path):
                view = memoryview(line)
                while view:  # usually one call: only a nearly full disk writes less than it was given
                    view = view[os.write(self._fd, view) :]
        except BaseException:
            self.close()
            raise
        with self._run.lock:
            if self._size >= 0:  # not distrusted by another thread meanwhile
                self._record, self._size = record, self._size + len(line)

    def update(self) -> None:
        """Bring the file up to date with all records: append to it, or rewrite it if that is not enough.

        It is then closed for :meth:`append`.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        was_live = self._fd >= 0
        self.close()
        record, size, there = self._record, self._size, size_of(self._path)
        # A killed process may have appended lines after the recorded size, which are truncated. While we append
        # ourselves we know the size: what is longer was written by somebody else.
        is_whole = 0 < size <= there and not (was_live and there > size)
        if not is_whole:
            record = size = 0

        def new_lines() -> Iterator[bytes]:
            nonlocal record, size
            for number, line in self._lines(self._run.each_record(record)):
                record, size = number, size + len(line)
                yield line

        if is_whole:
            with output_errors(self._path), self._path.open("r+b") as stream:
                stream.truncate(size)
                stream.seek(size)
                stream.writelines(new_lines())
        else:
            self._size = -1
            write_whole(self._path, new_lines(), durable=True)
        self._record, self._size = record, size
        sync(self._path)
        # Before the size is recorded: after a power cut the old file could otherwise have the name, with the new size.
        sync_directory(self._path.parent)
        self._note()

    def sync(self) -> None:
        """Wait until the file is on the disk, and record its size.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        if self._fd < 0:
            return
        try:
            with output_errors(self._path):
                os.fsync(self._fd)
        except BaseException:
            self.distrust()  # after a failed fsync a second one may succeed although data is lost
            raise
        self._note()

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _note(self) -> None:
        """Record the last record and the size of the file."""
        with self._run.lock:
            if self._size >= 0 and self._run.derived(self._path.name) != (self._record, self._size):
                self._run.set_derived(self._path.name, self._record, self._size)


def write_document(reader: RunReader, doc_id: str, exporters: Exporters) -> None:
    """Write a document's Markdown and DocJSON from its records in page order, each file atomically.

    Raises:
        OutputError: A file cannot be written; NoSpaceError when the disk is full.
        DamagedRunError: A record is damaged.
    """
    markdown, docjson = paths.document_files(reader.path, doc_id)
    write_whole(markdown, encoded(document_markdown(reader, doc_id, exporters)))
    write_whole(docjson, encoded(document_json(reader, doc_id, exporters)))


def document_markdown(reader: RunReader, doc_id: str, exporters: Exporters) -> str | Iterable[str]:
    """The content of a document's Markdown file."""
    return exporters.document_markdown(reader.document(doc_id, markdown=False))


def document_json(reader: RunReader, doc_id: str, exporters: Exporters) -> str | bytes | Iterable[str]:
    """The content of a document's DocJSON file, marked as provisional if pages of it are unfinished."""
    return exporters.document_json(
        reader.document(doc_id, markdown=False), reader.info(doc_id), reader.has_open_pages(doc_id)
    )


def report_of(reader: RunReader, report: Report, summary: RunSummary) -> Iterator[bytes]:
    """The report of a run, piece by piece.

    Raises:
        DamagedRunError: A record is damaged.
    """
    return encoded(report(reader.pages(markdown=False), reader.preview, msgspec.to_builtins(summary)))


def is_complete(run: RunDatabase, *, report: bool) -> bool:
    """Whether all derived files exist, with the sizes that they had when the run ended.

    Args:
        run: The run.
        report: Whether a report is included.

    Raises:
        OutputError: The directory cannot be read.
    """
    out = run.path
    return (
        (out / paths.RUN_JSON).exists()
        # A report that is not wanted any more is work, too: it has to be deleted.
        and (out / paths.REPORT).exists() == report
        and all(size_of(out / name) == run.derived(name)[1] for name in (paths.RESULTS, paths.TEXTS))
        and all(written and has_document(out, doc_id) for doc_id, written in run.recorded_documents())
    )


def has_document(out: Path, doc_id: str) -> bool:
    """Whether both files of a document exist."""
    return all(os.path.isfile(path) for path in paths.document_files(out, doc_id))  # noqa: PTH113 - 3x faster


def write_run_json(out: Path, summary: RunSummary) -> None:
    """Write ``run.json``, durably.

    Raises:
        OutputError: It cannot be written; NoSpaceError when the disk is full.
    """
    content = msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n"
    write_whole(out / paths.RUN_JSON, (content,), durable=True)
