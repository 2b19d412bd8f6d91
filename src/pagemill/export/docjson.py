"""DocJSON 2: a whole document as data, loss-free to and from records. These structs *are* the file that is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from pagemill.document.geometry import normalise_1000
from pagemill.document.json_text import json_text
from pagemill.document.labels import Category, category_of
from pagemill.document.page import Content, DocumentInfo, ImageCrop, PageFacts, PageResult, Region
from pagemill.export.context import PageContext, Sections
from pagemill.export.formats import ExportFormat
from pagemill.export.markdown import page_markdown

DOCJSON_VERSION = "2.1"
"""Its elements carry no evidence for furniture."""
_SHOWN = frozenset({Category.FIGURE, Category.TABLE, Category.FORMULA})

StructT = TypeVar("StructT", bound=msgspec.Struct)


class Crop(msgspec.Struct, frozen=True, kw_only=True):
    """The saved picture of an element."""

    path: str
    """Relative to the output directory, with forward slashes."""
    size: int = 0
    """Bytes of the file."""
    sha256: str = ""


class Element(Content, kw_only=True, omit_defaults=True):
    """One element of a page: a region of its record, and values derived from the other regions."""

    id: str
    """``<page id>/<position on the page>``, unique in the run."""
    category: Category
    """One of seven, which follows from ``label`` and ``list_item``."""
    caption_of: str | None = None
    """Id of the figure or table that this caption belongs to, or of the formula that this number belongs to."""
    section: tuple[str, ...] = ()
    """The headings above the element, the outermost first."""
    before: str = ""
    """End of the text before a figure, table or formula on its page."""
    after: str = ""
    """Likewise the start of the text after it."""
    crop: Crop | None = None


class DocumentPage(PageFacts, kw_only=True, omit_defaults=True):
    """One page of a document."""

    elements: list[Element]
    """In reading order."""


class DocJSON(msgspec.Struct, kw_only=True):
    """A document."""

    schema_version: str
    doc_id: str
    source: str
    """Source of the document, as the user named it."""
    pages: list[DocumentPage]
    page_count: int
    """Pages in this file."""
    info: DocumentInfo = DocumentInfo()
    """Metadata of the document."""
    provisional: bool = False
    """Pages were missing when the file was written: values derived from all pages, such as levels, may change."""


def document_json(
    pages: Iterable[PageResult], info: DocumentInfo | None = None, provisional: bool = False
) -> Iterator[str]:
    """A document as DocJSON (:class:`DocJSON`), a page a line, in pieces to be written one after the other.

    Args:
        pages: In page order, all of one document; at least one.
        info: Metadata of the document.
        provisional: Pages of it are missing, and may follow.
    """
    sections = Sections()
    count = 0
    for page in pages:
        if not count:
            head: dict[str, Any] = {"schema_version": DOCJSON_VERSION, "doc_id": page.doc_id, "source": page.source}
            if info is not None and info != DocumentInfo():
                head["info"] = info
            if provisional:
                head["provisional"] = True
            yield json_text(head)[:-1] + ',"pages":[\n'
        yield (",\n" if count else "") + json_text(_page_of(page, sections))
        count += 1
    yield f'\n],"page_count":{count}}}\n'


def pages_from_docjson(data: bytes | str) -> list[PageResult]:
    """The records of a DocJSON file, in the form of this version.

    Raises:
        ValueError: It is not DocJSON 2.1 or a later 2, or lacks pages.
    """
    try:
        document = msgspec.json.decode(data, type=DocJSON)
        # 2.0 does not mark which texts are furniture.
        if document.schema_version == "2.0" or document.schema_version.split(".")[0] != DOCJSON_VERSION.split(".")[0]:
            raise ValueError(f"DocJSON of version {document.schema_version}, not {DOCJSON_VERSION}")
        # The count is written last, so a file that was cut off in between does not pass for whole.
        if document.page_count != len(document.pages):
            raise ValueError(f"DocJSON of {document.page_count} pages that contains {len(document.pages)}")
        return [_record_of(page, document) for page in document.pages]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"not DocJSON: {error}") from error


def _page_of(page: PageResult, sections: Sections) -> DocumentPage:
    crops = {crop.region: _same(crop, Crop) for crop in page.image_crops}
    context = PageContext(page.regions)
    elements: list[Element] = []
    for region in page.regions:
        category = category_of(region.label, list_item=region.list_item)
        around = context.of(region) if category in _SHOWN else None
        elements.append(
            _same(
                region,
                Element,
                id=_element_id(page, region.index),
                category=category,
                caption_of=None if region.caption_of is None else _element_id(page, region.caption_of),
                section=sections.path(region),
                before=around.before if around else "",
                after=around.after if around else "",
                crop=crops.get(region.index),
            )
        )
    return _same(page, DocumentPage, elements=elements)


def _record_of(page: DocumentPage, document: DocJSON) -> PageResult:
    positions = {element.id: index for index, element in enumerate(page.elements)}
    record = _same(page, PageResult, doc_id=document.doc_id, source=document.source)
    for index, element in enumerate(page.elements):
        if element.caption_of is not None and element.caption_of not in positions:
            raise ValueError(f"{element.id} is a caption of {element.caption_of!r}, which is not on the page")
        # The file has boxes in pixels alone.
        box = normalise_1000(element.bbox, page.width, page.height)
        captioned = None if element.caption_of is None else positions[element.caption_of]
        record.regions.append(_same(element, Region, index=index, bbox_2d=box, caption_of=captioned))
        if element.crop is not None:
            record.image_crops.append(_same(element.crop, ImageCrop, bbox=box, label=element.label, region=index))
    record.markdown = page_markdown(record)
    return record


def _same(source: msgspec.Struct, kind: type[StructT], /, **others: Any) -> StructT:
    """A struct from the common fields of another one, and further fields."""
    shared = {name: getattr(source, name) for name in kind.__struct_fields__ if name in source.__struct_fields__}
    return kind(**shared | others)


def _element_id(page: PageResult, region: int) -> str:
    return f"{page.page_id}/{region}"


FORMAT = ExportFormat(
    ending="-docjson",
    suffix=".json",
    text=lambda pages, about: document_json(pages, about.info, about.is_provisional),
    crops=True,
    served_as="json",
    media_type="application/json",
    title="JSON",
)
