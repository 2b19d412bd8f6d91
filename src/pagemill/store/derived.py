"""Files that are derived from the records: the two JSONL files, documents, the report and ``run.json``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from pagemill.errors import DamagedRunError
from pagemill.store import paths
from pagemill.store.database import REPAIR
from pagemill.store.files import AppendFile, encoded, output_errors, size_of, sync_directory, sync_files, write_whole
from pagemill.store.records import decode_page, decompress, text_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from pagemill.document.page import PageResult
    from pagemill.store.exporters import Exporters
    from pagemill.store.run_database import RunDatabase
    from pagemill.store.summary import RunSummary

Line = tuple[int, bytes]
"""Number of a record, and its line in a file."""


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
        database: Its row in ``derived`` notes how far the file goes.
        lines: Makes lines of stored records.
    """

    def __init__(
        self, path: Path, database: RunDatabase, lines: Callable[[Iterable[tuple[int, bytes]]], Iterator[Line]]
    ) -> None:
        self._path = path
        self._database = database
        self._lines = lines
        self._record, self._size = database.derived(path.name)
        self._live: AppendFile | None = None

    def distrust(self) -> None:
        """The file holds lines that are no longer true: the next update writes it anew. May be called on any thread."""
        with self._database.database.lock:
            self._size = -1

    def go_live(self) -> None:
        """Bring the file up to date where only lines at its end are missing, and let :meth:`append` work.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        if self._size >= 0:
            self.update()
        self._live = AppendFile(self._path)

    def append(self, record: int, line: bytes) -> None:
        """Add the line of a record that was just committed: a convenience for those who follow the file.

        Raises:
            OutputError: The line does not fit, and the file is as before; NoSpaceError when the disk is full.
        """
        assert self._live is not None
        try:
            start = self._live.append(line)
        except BaseException:
            self.distrust()  # the next line must not take the place of this one
            raise
        with self._database.database.lock:
            if start == self._size:
                self._record, self._size = record, start + len(line)
            else:  # it holds lines that are no longer true
                self._size = -1

    def update(self) -> None:
        """Make the file hold the lines of all records: append to it, or write it anew where that does not do.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        going_live = self._live is not None
        self.close()
        size = size_of(self._path)
        try:
            # Of a file that was followed line by line the size is known; else a killed process may have added lines.
            if self._size <= 0 or size < self._size or (going_live and size > self._size):
                self._rewrite()
            else:
                self._append_missing()
            sync_files([self._path])
            sync_directory(self._path.parent)  # or what is noted of the new file might be taken for the old one's
            self._note()
        finally:
            if going_live:
                self._live = AppendFile(self._path)

    def sync(self) -> None:
        """Wait until the file is on the disk, and note how far it goes.

        Raises:
            OutputError: The disk does not take it; NoSpaceError when it is full.
        """
        if self._live is None:
            return
        try:
            self._live.sync()
        except BaseException:
            self.distrust()  # a second sync may succeed without what the first one lost
            raise
        self._note()

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._live is not None:
            self._live.close()
            self._live = None

    def _note(self) -> None:
        with self._database.database.lock:
            if self._size >= 0 and self._database.derived(self._path.name) != (self._record, self._size):
                self._database.set_derived(self._path.name, self._record, self._size)

    def _append_missing(self) -> None:
        if size_of(self._path) == self._size and not next(self._new_lines(), None):
            return
        before = self._record, self._size
        try:
            with output_errors(self._path), self._path.open("r+b" if self._path.exists() else "wb") as stream:
                stream.truncate(self._size)
                stream.seek(self._size)
                stream.writelines(self._counted(self._new_lines()))
        except BaseException:
            self._record, self._size = before  # what was written behind it is cut off by the next update
            raise

    def _rewrite(self) -> None:
        self._record = self._size = 0
        try:
            write_whole(self._path, self._counted(self._new_lines()), durable=True)
        except BaseException:
            self.distrust()
            raise

    def _new_lines(self) -> Iterator[Line]:
        return self._lines(self._database.database.each_record(self._record))

    def _counted(self, lines: Iterator[Line]) -> Iterator[bytes]:
        for record, line in lines:
            yield line
            self._record, self._size = record, self._size + len(line)


def write_document(out: Path, doc_id: str, pages: Callable[[], Iterable[PageResult]], exporters: Exporters) -> None:
    """Write a document's Markdown and DocJSON from its records in page order, each file atomically.

    Raises:
        OutputError: A file cannot be written; NoSpaceError when the disk is full.
        DamagedRunError: A record is damaged.
    """
    markdown, docjson = paths.document_files(out, doc_id)
    write_whole(markdown, encoded(exporters.document_markdown(pages())))
    write_whole(docjson, encoded(exporters.document_json(pages())))


def is_complete(out: Path, run: RunDatabase, *, report: bool) -> bool:
    """Whether all derived files are there, in the sizes that they had when the run ended.

    Args:
        out: The run directory.
        run: Its database.
        report: Whether a report belongs to them.

    Raises:
        OutputError: The directory cannot be read.
    """
    return (
        (out / paths.RUN_JSON).exists()
        and (out / paths.REPORT).exists() == report
        and all(size_of(out / name) == run.derived(name)[1] for name in (paths.RESULTS, paths.TEXTS))
        and next(run.unwritten_documents(), None) is None
        and all(has_document(out, doc_id) for doc_id in run.documents())
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
