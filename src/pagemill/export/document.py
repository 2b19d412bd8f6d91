"""A parsed document in memory: what :func:`pagemill.parse` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from pagemill.document.labels import FIGURES, Label
from pagemill.document.names import file_stem
from pagemill.document.page import DocumentInfo, Mark, PageError, PageResult, Region
from pagemill.document.shown import count
from pagemill.document.structure import structured
from pagemill.export.chunks import Chunk, chunks
from pagemill.export.context import heading_level
from pagemill.export.docjson import document_json
from pagemill.export.markdown import document_markdown, table_of, with_markdown
from pagemill.export.notebook import MAX_PAGES, pages_html
from pagemill.tables.table import Table


class Link(NamedTuple):
    """A link in the text of a document."""

    text: str
    target: str
    """An http, https, mailto or tel URL, or ``#anchor`` of a heading; not checked."""
    page_number: int | None


@dataclass(frozen=True)
class Document:
    """A document with all its pages."""

    pages: list[PageResult]
    """In page order; a page that failed has ``status`` failed and the reason in ``errors``."""
    crops: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Pictures cut from the pages: JPEG by the path that the Markdown and ``PageResult.image_crops`` name."""
    metadata: DocumentInfo = field(default_factory=DocumentInfo)
    """Metadata of the document: title, author, dates, language, outline, page labels."""

    @classmethod
    def from_pages(
        cls,
        pages: Iterable[PageResult],
        crops: Mapping[str, bytes] | None = None,
        metadata: DocumentInfo | None = None,
    ) -> Document:
        """Make a document of its pages' records and crops, in page order, and derive its structure from them.

        Raises:
            ValueError: There is no page, or the pages belong to several documents.
        """
        listed = list(pages)
        # The structure of two documents read as one would join their paragraphs and headings.
        if len({page.doc_id for page in listed}) != 1:
            raise ValueError("a document needs pages, all of one doc_id")
        # Markdown is derived again only for pages that the structure has changed.
        seen = zip(listed, structured(listed, metadata), strict=True)
        pages = [page if page is new else with_markdown(new) for page, new in seen]
        return cls(pages, crops or {}, metadata or DocumentInfo())

    @property
    def doc_id(self) -> str:
        """Name of the document in its run."""
        return self.pages[0].doc_id

    @property
    def source(self) -> str:
        """The input as the caller named it."""
        return self.pages[0].source

    def __repr__(self) -> str:
        return f"Document({self.doc_id!r}, {count(len(self.pages), 'page')}, {count(len(self.tables), 'table')})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first pages, with their pictures."""
        return pages_html(self.pages, self.crops)

    def _repr_markdown_(self) -> str:
        """What a notebook shows that renders Markdown alone: the first pages, without their pictures."""
        shown = (msgspec.structs.replace(page, image_crops=[]) for page in self.pages[:MAX_PAGES])
        return "".join(document_markdown(shown))

    @cached_property
    def markdown(self) -> str:
        """The whole document as Markdown; see :func:`pagemill.export.markdown.document_markdown`."""
        return "".join(document_markdown(self.pages, crops_root=""))

    @property
    def tables(self) -> list[Table]:
        """All recognized tables in reading order."""
        regions = (region for page in self.pages for region in page.regions if region.label is Label.TABLE)
        return [table for table in map(table_of, regions) if table is not None]

    @property
    def figures(self) -> list[Region]:
        """The figures and charts in reading order. Their pictures are in ``crops``, see ``PageResult.image_crops``."""
        return [region for page in self.pages for region in page.regions if region.label in FIGURES]

    @property
    def headings(self) -> list[Region]:
        """The title and headings in reading order, each with its ``level`` and ``anchor``."""
        return [region for page in self.pages for region in page.regions if heading_level(region) is not None]

    @property
    def links(self) -> list[Link]:
        """The links of the text in reading order; those of tables are in their HTML."""
        return [
            Link((region.content or "")[span.start : span.end], span.target, page.page_number)
            for page in self.pages
            for region in page.regions
            for span in region.spans
            if span.mark is Mark.LINK and span.target is not None
        ]

    def to_chunks(
        self,
        *,
        max_tokens: int | None = None,
        tokenizer: str | PathLike[str] | None = None,
        overlap: int | None = None,
    ) -> list[Chunk]:
        """The document as chunks for retrieval; see :func:`pagemill.chunks`."""
        return list(chunks(self, max_tokens=max_tokens, tokenizer=tokenizer, overlap=overlap))

    @property
    def errors(self) -> list[tuple[int | None, PageError]]:
        """All errors, each with the number of its page."""
        return [(page.page_number, error) for page in self.pages for error in page.errors]

    def to_json(self) -> str:
        """The document as DocJSON; see ``docs/schema/docjson.schema.json``."""
        return "".join(document_json(self.pages, self.metadata))

    def save(self, directory: str | PathLike[str]) -> Path:
        """Write ``<doc_id>.md``, ``<doc_id>.json`` (DocJSON) and the crops into a directory, replacing existing files.

        Returns:
            Path of the Markdown file.

        Raises:
            OSError: A file cannot be written.
        """
        folder = Path(directory)
        (folder / "crops" if self.crops else folder).mkdir(parents=True, exist_ok=True)
        for name, data in self.crops.items():
            (folder / "crops" / PurePosixPath(name).name).write_bytes(data)
        stem = file_stem(self.doc_id)
        (folder / f"{stem}.json").write_bytes(self.to_json().encode("utf-8", "replace"))
        markdown = folder / f"{stem}.md"
        markdown.write_bytes(self.markdown.encode("utf-8", "replace"))
        return markdown
