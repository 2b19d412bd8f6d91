"""Files that are derived from the records: the two JSONL files, documents, the report and ``run.json``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporters:
    """How pages become text: the store knows files, not formats."""

    embedding_text: Callable[[PageResult], str]
    document_markdown: Callable[[Iterable[PageResult]], str | Iterable[str]]
    """Called with a document's pages in page order."""
    document_json: Callable[[Iterable[PageResult], DocumentInfo, bool], str | bytes | Iterable[str]]
    """Likewise, with what the document says of itself, and whether pages of it have not ended."""
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
        run: Its table ``derived`` notes how far the file goes.
        lines: Makes lines of stored records.
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
        """The file holds lines that are no longer true: the next update rewrites it. May be called on any thread."""
        with self._run.lock:
            self._size = -1

    def go_live(self) -> None:
        """Bring the file up to date where only lines at its end are missing, and let :meth:`append` work.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        if self._size >= 0:
            self.update()
        with output_errors(self._path):
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)

    def append(self, record: int, line: bytes) -> None:
        """Add the line of a record that was just committed: a convenience for those who follow the file.

        After a failure no further line is added until the next update, which cuts off what was written of this one.

        Raises:
            OutputError: The line does not fit; NoSpaceError when the disk is full.
        """
        if self._fd < 0:
            return
        try:
            with output_errors(self._path):
                view = memoryview(line)
                while view:  # one call, as a rule: only a nearly full disk writes less than it is asked to
                    view = view[os.write(self._fd, view) :]
        except BaseException:
            self.close()
            raise
        with self._run.lock:
            if self._size >= 0:  # else it holds lines that are no longer true
                self._record, self._size = record, self._size + len(line)

    def update(self) -> None:
        """Make the file hold the lines of all records: append to it, or rewrite it where that does not do.

        It is followed no longer then.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        was_live = self._fd >= 0
        self.close()
        record, size, there = self._record, self._size, size_of(self._path)
        # Of a file that was followed line by line the size is known; else a killed process may have added lines.
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
        sync_directory(self._path.parent)  # or what is noted of the new file might be taken for the old one's
        self._note()

    def sync(self) -> None:
        """Wait until the file is on the disk, and note how far it goes.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        if self._fd < 0:
            return
        try:
            with output_errors(self._path):
                os.fsync(self._fd)
        except BaseException:
            self.distrust()  # a second sync may succeed without what the first one lost
            raise
        self._note()

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _note(self) -> None:
        """Note how far the file goes."""
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
    """A document's Markdown as its file has it."""
    return exporters.document_markdown(reader.document(doc_id, markdown=False))


def document_json(reader: RunReader, doc_id: str, exporters: Exporters) -> str | bytes | Iterable[str]:
    """A document's DocJSON as its file has it: what a run that was interrupted has is provisional."""
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
    """Whether all derived files are there, in the sizes that they had when the run ended.

    Args:
        run: The run.
        report: Whether a report belongs to them.

    Raises:
        OutputError: The directory cannot be read.
    """
    out = run.path
    return (
        (out / paths.RUN_JSON).exists()
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
