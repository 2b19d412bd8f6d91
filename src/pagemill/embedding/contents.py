"""The contents of a page that are embedded, and the digests that identify their vectors.

From the record alone: a page's image is identified by its source and rotation, and the digest of a picture is in the
record. So whether a vector is up to date is known without decoding anything.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from pagemill.document.page import ImageCrop, PageResult, Status
from pagemill.embedding.vectors import Part, RowKey, VectorRow
from pagemill.export.chunks import Chunk
from pagemill.export.embedding_text import description_text, embedding_text, region_text
from pagemill.export.parts import is_in_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One content to embed."""

    row: VectorRow
    text: str = ""
    description: str = ""
    """The end of the text: a model's description of the region, which is not text of the page."""
    crop: ImageCrop | None = None
    """The region's picture in ``crops/``."""

    @property
    def page_text(self) -> str:
        """The text without the description."""
        return self.text[: len(self.text) - len(self.description)].rstrip("\n")


def contents(page: PageResult, part: Part, *, images: bool) -> Iterator[Content]:
    """The contents of a page for a part. None of a failed page, and no page text of one without text.

    Args:
        page: Its record.
        part: Any but queries, and chunks, which belong to whole documents.
        images: Whether the engine takes images: then pictures of regions are embedded, also without a caption.
    """
    if page.status is not Status.DONE:
        return
    if part is Part.TEXT:
        if text := embedding_text(page).strip():
            yield Content(row=VectorRow(RowKey(page.page_id), digest("text", text)), text=text)
    elif part is Part.IMAGES:
        yield Content(row=VectorRow(RowKey(page.page_id), digest("image", page.page_key, str(page.rotation))))
    elif part is Part.REGIONS:
        yield from _regions(page, images=images)


def chunk_content(chunk: Chunk, document: str) -> Content:
    """The content of a chunk. Its id determines its text; its row is valid while no page of its document changes.

    Args:
        chunk: The chunk.
        document: :func:`document_digest` of its document.
    """
    first = chunk.places[0]
    key = RowKey(first.page_id, int(first.element.rpartition("/")[2]), chunk.id)
    return Content(row=chunk_row(key, document), text=chunk.contextualized)


def chunk_row(key: RowKey, document: str) -> VectorRow:
    """The row of a chunk while its document has this digest."""
    return VectorRow(key, digest("chunk", key.chunk, document))


def document_digest(page_digests: Iterable[tuple[str, str]]) -> str:
    """A digest of the text of all pages of a document: chunks span pages, and include headings of earlier ones.

    Args:
        page_digests: Id and digest of the text of the pages that have one (:func:`text_digests`), in any order.
    """
    return digest("document", *(part for pair in sorted(page_digests) for part in pair))


def text_digests(pages: Iterable[PageResult]) -> Iterator[tuple[str, str]]:
    """Id and digest of the text of those pages that have one."""
    for page in pages:
        for content in contents(page, Part.TEXT, images=False):
            yield content.row.key.page_id, content.row.digest


def query(query_id: str, text: str, statistics: str = "") -> Content:
    """A query. Its vector also depends on the statistics of the corpus, if the engine has some."""
    return Content(row=VectorRow(RowKey(query_id), digest("query", text, *filter(None, [statistics]))), text=text)


def digest(*parts: str) -> str:
    """SHA-256 of several texts, encoded so that their borders count."""
    return hashlib.sha256(msgspec.json.encode([part.encode("utf-8", "replace").decode() for part in parts])).hexdigest()


def _regions(page: PageResult, *, images: bool) -> Iterator[Content]:
    """The regions with text or a picture. A caption is part of its figure or table, not a content of its own."""
    crops = {crop.region: crop for crop in page.image_crops} if images else {}
    wanted = {region.index for region in page.regions if is_in_text(region, page.leaves_out)}
    captions: defaultdict[int | None, list[str]] = defaultdict(list)
    others = []
    for region in page.regions:
        if region.caption_of in wanted and region.caption_of != region.index:
            captions[region.caption_of].append(region_text(region))
        elif region.index in wanted:
            others.append(region)
    for region in others:
        texts = [*captions[region.index], region_text(region)]
        about = description_text(region)
        text = "\n".join(part.strip() for part in (*texts, about) if part.strip())
        crop = crops.get(region.index)
        if text or crop:
            row = VectorRow(RowKey(page.page_id, region.index), digest("region", text, crop.sha256 if crop else ""))
            yield Content(row=row, text=text, description=about, crop=crop)
