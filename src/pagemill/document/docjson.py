"""DocJSON: a whole document as data. These structs *are* the file that is written to disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.document.geometry import Box
from pagemill.document.labels import Label
from pagemill.document.page import SCHEMA_VERSION, ContentFormat, PageError, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pagemill.document.page import PageResult


class DocumentPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a document says about one of its pages beside the elements on it."""

    number: int | None
    """From 1; None when the document could not be opened."""
    page_id: str
    width: int
    """Pixels of the page image that all boxes refer to."""
    height: int
    status: Status
    dpi: float | None = None
    rotation: int = 0
    """Degrees clockwise by which the stored image was turned upright."""
    languages: tuple[str, ...] = ()
    text_source: str = ""
    errors: tuple[PageError, ...] = ()
    metadata: dict[str, Any] = {}


class Element(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One element of a document: a region with the page it stands on."""

    id: str
    """``<page id>/<region index>``, unique in the run."""
    page: int | None
    label: Label
    bbox: Box
    """Box in page pixels."""
    text: str | None = None
    """Plain text, or Markdown where ``format`` says so; None for pictures and for tables that have ``html``."""
    html: str | None = None
    """One ``<table>`` element."""
    latex: str | None = None
    format: ContentFormat = ContentFormat.TEXT
    level: int | None = None
    """Heading level, 1 for a title."""
    list_item: bool = False
    caption_of: str | None = None
    """Id of the figure or table that this caption belongs to, or of the formula that this number belongs to."""
    continues: bool = False
    """The text goes on in the next element of running text."""
    crop: str | None = None
    """Path of the saved picture, relative to the output directory."""
    score: float | None = None
    confidence: float | None = None
    engine: str | None = None
    attempts: int = 1
    """How often a model was asked for the content, as in a record."""


class DocJSON(msgspec.Struct, frozen=True, kw_only=True):
    """A document: its pages, and all their elements in reading order."""

    schema_version: str = SCHEMA_VERSION
    doc_id: str
    source: str
    page_count: int
    """Pages in this file."""
    elements: list[Element]
    pages: list[DocumentPage]
    metadata: dict[str, Any] = {}


def document_json(pages: Iterable[PageResult]) -> Iterator[str]:
    """A document as DocJSON (:class:`DocJSON`), in pieces to be written one after the other.

    Elements go out page by page, one a line; only the short entries of the page list are kept until the end.

    Args:
        pages: In page order, all of one document; at least one.
    """
    listed: list[str] = []
    doc_id = source = ""
    first = True
    yield '{"elements":['
    for page in pages:
        doc_id, source = page.doc_id, page.source
        listed.append(_encode(page_of(page)))
        for element in elements_of(page):
            yield ("\n" if first else ",\n") + _encode(element)
            first = False
    tail = {
        "schema_version": SCHEMA_VERSION,
        "doc_id": doc_id,
        "source": source,
        "page_count": len(listed),
        "metadata": {},
    }
    yield '\n],"pages":[' + ",".join(listed) + "]," + _encode(tail)[1:] + "\n"


def page_of(page: PageResult) -> DocumentPage:
    """A page without its elements."""
    same = _common(page, DocumentPage)
    return DocumentPage(**same | {"number": page.page_number, "errors": tuple(page.errors)})


def elements_of(page: PageResult) -> Iterator[Element]:
    """The regions of a page as elements, in reading order."""
    crops = {crop.region: crop.path for crop in page.image_crops}
    for region in page.regions:
        content = {ContentFormat.HTML: "html", ContentFormat.LATEX: "latex"}.get(region.content_format, "text")
        yield Element(
            **_common(region, Element)
            | {
                "id": _element_id(page, region.index),
                "page": page.page_number,
                content: region.content,
                "format": region.content_format,
                "caption_of": None if region.caption_of is None else _element_id(page, region.caption_of),
                "crop": crops.get(region.index),
            }
        )


def _common(source: msgspec.Struct, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields that have the same name in both."""
    return {name: getattr(source, name) for name in kind.__struct_fields__ if name in source.__struct_fields__}


def _element_id(page: PageResult, region: int) -> str:
    return f"{page.page_id}/{region}"


def _encode(data: Any) -> str:
    """JSON text; lone surrogates (of broken PDFs, of file names that are no UTF-8) become U+FFFD."""
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(data), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
