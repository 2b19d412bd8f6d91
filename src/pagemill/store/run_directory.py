"""The output directory of a run, written page by page from one thread."""

from __future__ import annotations

import contextlib
from array import array
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from pagemill.document.names import file_stem
from pagemill.errors import OutputError
from pagemill.store.files import AppendFile, output_errors, write_whole
from pagemill.store.previous import crop_file, refuse_or_clear
from pagemill.store.records import ParsedText, decode_page, encode_line
from pagemill.store.summary import RunSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from pagemill.document.page import PageResult

PREVIEW_PAGES = 2000
"""Pages, counted from the start of the input, whose preview is kept for the report."""
PREVIEW_BYTES = 300 * 2**20
"""Most bytes of previews that a run keeps."""


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
    """Everything a run writes. What is there is whole at every moment: full lines, renamed files.

    Not thread-safe: one writer thread calls it. Memory grows by 24 bytes a page, twice that while its document is open
    (pages of datasets: to the end of the run), and by some 200 bytes an open document.
    """

    def __init__(self, path: Path, exporters: Exporters, summary: RunSummary) -> None:
        """Use :meth:`create`."""
        self.path = path
        self.summary = summary
        self._exporters = exporters
        self._index = array("q")  # page_idx, offset, length of every page
        self._documents: dict[str, array[int]] = {}  # page number, offset, length of the pages of unfinished documents
        self._preview_spans: dict[str, tuple[int, int]] = {}
        self._write_run_json(exclusive=True)
        with contextlib.ExitStack() as opened:  # closes what is open when a later one fails
            self._results = self._open(opened, "ocr_results.jsonl")
            self._texts = self._open(opened, "parsed_texts.jsonl")
            self._previews = None if exporters.report is None else self._open(opened, ".previews")
            for name in ("crops", "documents"):
                with output_errors(path / name):
                    (path / name).mkdir(exist_ok=True)
            self._files = opened.pop_all()

    def _open(self, opened: contextlib.ExitStack, name: str) -> AppendFile:
        file = AppendFile(self.path / name)
        opened.callback(file.close)
        return file

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        exporters: Exporters,
        fresh: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> RunDirectory:
        """Start a run in ``path``, which is made where it is missing.

        Args:
            path: The output directory.
            exporters: Formats of texts, documents and report.
            fresh: Delete what an earlier run left there (nothing else) instead of refusing.
            settings: Plain JSON values that describe the run, kept in ``run.json``. No secrets.

        Raises:
            OutputError: The directory holds a run already, or cannot be written; NoSpaceError when the disk is full.
        """
        with output_errors(path):
            if path.is_file():
                raise OutputError(f"{path} is a file, not a directory", remedy="Choose a directory with -o.")
            path.mkdir(parents=True, exist_ok=True)
        refuse_or_clear(path, fresh=fresh)
        return cls(path, exporters, RunSummary(started=datetime.now(UTC), settings=dict(settings or {})))

    def wants_preview(self, page_idx: int) -> bool:
        """Whether the report will show this page's image, so that making a preview is worth the while."""
        return self._previews is not None and page_idx < PREVIEW_PAGES and self._previews.size < PREVIEW_BYTES

    def write_page(
        self, page: PageResult, crops: Sequence[tuple[str, bytes]] = (), preview: bytes | None = None
    ) -> None:
        """Write a page: its crops, then one line in each of the two JSONL files.

        Args:
            page: The record.
            crops: Path relative to the output directory (:func:`pagemill.document.names.crop_path`) and encoded image.
            preview: Encoded image (WebP or JPEG) of the page for the report.

        Raises:
            OutputError: The page could not be written; neither JSONL file has a trace of it then.
                NoSpaceError when the disk is full.
            ValueError: A crop's path is not of the form that ``crop_path`` makes.
        """
        text = ParsedText(
            page_id=page.page_id,
            page_idx=page.page_idx,
            doc_id=page.doc_id,
            text=self._exporters.embedding_text(page),
        )
        record, text_line = encode_line(page), encode_line(text)
        for name, data in crops:
            write_whole(crop_file(self.path, name), (data,))
        if preview is not None and self._previews is not None and self.wants_preview(page.page_idx):
            self._preview_spans[page.page_id] = (self._previews.append(preview), len(preview))
        offset = self._results.append(record)
        try:
            self._texts.append(text_line)
        except OutputError:
            self._results.truncate(offset)
            raise
        span = (offset, len(record))
        self._index.extend((page.page_idx, *span))
        self._documents.setdefault(page.doc_id, array("q")).extend((page.page_number or 0, *span))
        self.summary.add(page)

    def finish_document(self, doc_id: str) -> None:
        """Write a document's Markdown and DocJSON from its pages; does nothing for one that has no pages here.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
        """
        spans = self._documents.get(doc_id)
        if spans is None:
            return
        order = _sorted_spans(spans)
        stem = self.path / "documents" / file_stem(doc_id)
        # with_suffix would eat the end of a stem like "v1.2".
        write_whole(stem.with_name(f"{stem.name}.md"), _encoded(self._exporters.document_markdown(self._read(order))))
        write_whole(stem.with_name(f"{stem.name}.json"), _encoded(self._exporters.document_json(self._read(order))))
        del self._documents[doc_id]
        self.summary.documents += 1

    def pages(self) -> Iterator[PageResult]:
        """Read all pages back in input order, one at a time."""
        return self._read(_sorted_spans(self._index))

    def preview(self, page_id: str) -> bytes | None:
        """The preview of a page, or None where none was kept."""
        span = self._preview_spans.get(page_id)
        return None if span is None or self._previews is None else self._previews.read(*span)

    def finish(self, *, interrupted: bool = False) -> None:
        """End the run: finish the open documents, write the report and ``run.json``, remove the previews.

        Raises:
            OutputError: A file cannot be written; NoSpaceError when the disk is full.
        """
        for doc_id in list(self._documents):
            self.finish_document(doc_id)
        self.summary.finished = datetime.now(UTC)
        self.summary.interrupted = interrupted
        self._write_run_json()
        if self._exporters.report is not None:
            with output_errors(self.path / "report.html"):
                self._exporters.report(self.path, self.pages(), self.preview, msgspec.to_builtins(self.summary))
        self.close()

    def close(self) -> None:
        """Close all files and drop the previews; what was written stays. A second call does nothing."""
        self._files.close()
        if self._previews is not None:
            with output_errors(self._previews.path):
                self._previews.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, spans: Iterable[tuple[int, int]]) -> Iterator[PageResult]:
        return (decode_page(self._results.read(offset, length)) for offset, length in spans)

    def _write_run_json(self, *, exclusive: bool = False) -> None:
        path = self.path / "run.json"
        content = msgspec.json.format(msgspec.json.encode(self.summary), indent=2) + b"\n"
        if exclusive:  # of two runs that start in one directory at once, the second fails here
            with output_errors(path), path.open("xb") as stream:
                stream.write(content)
        else:
            write_whole(path, (content,))


def _sorted_spans(triples: array[int]) -> list[tuple[int, int]]:
    rows = sorted(zip(triples[::3], triples[1::3], triples[2::3], strict=True))
    return [(offset, length) for _, offset, length in rows]


def _encoded(text: str | bytes | Iterable[str]) -> Iterator[bytes]:
    if isinstance(text, bytes):
        yield text
        return
    for chunk in (text,) if isinstance(text, str) else text:
        yield chunk.encode("utf-8", "replace")  # lone surrogates
