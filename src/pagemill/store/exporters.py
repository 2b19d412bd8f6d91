"""What a run directory is given to make files of its pages with: the store knows files, not formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pagemill.document.page import PageResult


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
    """How pages become text."""

    embedding_text: Callable[[PageResult], str]
    document_markdown: Callable[[Iterable[PageResult]], str | Iterable[str]]
    """Called with a document's pages in page order."""
    document_json: Callable[[Iterable[PageResult]], str | bytes | Iterable[str]]
    report: ReportWriter | None = None
    """None leaves the report out; then no previews are kept either."""
