"""What a run directory is given to make files of its pages with: the store knows files, not formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pagemill.document.page import PageResult

    Report = Callable[[Iterator[PageResult], Callable[[str], bytes | None], Mapping[str, Any]], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporters:
    """How pages become text."""

    embedding_text: Callable[[PageResult], str]
    document_markdown: Callable[[Iterable[PageResult]], str | Iterable[str]]
    """Called with a document's pages in page order."""
    document_json: Callable[[Iterable[PageResult]], str | bytes | Iterable[str]]
    report: Report | None = None
    """Called with all pages in input order, the preview of a page id, and the summary.

    None leaves the report out; then no previews are kept either.
    """
