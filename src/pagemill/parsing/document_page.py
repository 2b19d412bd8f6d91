"""A page that a document reader has read, and its record."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from pagemill.config.settings import ParseSettings
from pagemill.document.labels import Label
from pagemill.document.names import crop_path
from pagemill.document.page import WHOLE_PAGE, Description, ImageCrop, PageError, Region
from pagemill.errors import CorruptInputError
from pagemill.parsing.picture_reading import PictureText
from pagemill.parsing.record import Files, PreparedPage, add_region, begun_record
from pagemill.readers.base import DPI, Block, Part
from pagemill.sources.base import PageRef, ReadPart

DOCUMENT = "document"
"""``text_source`` of a page that was read without pixels; with ``+ocr`` where its pictures were recognized."""
ALTERNATIVE = "alternative-text"
"""``Description.engine`` of what the document says that a picture shows."""
_TAGS = {Label.TABLE: "Table", Label.IMAGE: "Figure", Label.FOOTNOTE: "Note", Label.ALGORITHM: "Code"}
_decoder = msgspec.msgpack.Decoder(Part)


def read_part(payload: ReadPart) -> Part:
    """Take a part out of the file in which its reader left it.

    Raises:
        CorruptInputError: The file is damaged.
    """
    with payload.path.open("rb") as file:
        file.seek(payload.offset)
        data = file.read(payload.length)
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CorruptInputError(f"the text that was read is damaged: {error}", remedy="Try again.") from error


def record_of_part(
    ref: PageRef, payload: ReadPart, part: Part, settings: ParseSettings, pictures: Mapping[int, PictureText]
) -> PreparedPage:
    """The record of a part; ``pictures`` say what was recognized, by the place of the picture among the blocks."""
    record = begun_record(ref)
    record.width, record.height, record.dpi = part.width, part.height, DPI
    record.metadata |= part.metadata
    if part.notes:
        record.metadata["notes"] = part.notes
    record.errors = [PageError(component="source", category="incomplete", message=text) for text in part.warnings]
    crops: list[tuple[str, bytes]] = []
    for place, block in enumerate(part.blocks):
        box = block.box or (0, 0, part.width, part.height)
        region = add_region(record, block.label, box, **_told(block, payload))
        if (picture := block.picture) is not None and picture.data and settings.crops:
            crops.append((crop_path(record.page_id, region.index), picture.data))
            record.image_crops.append(_crop(crops[-1][0], region, picture.data))
        if (read := pictures.get(place)) is not None:
            read.add_to(record, region)
    has_text = any(region.content for region in record.regions)
    record.text_source = (f"{DOCUMENT}+ocr" if pictures else DOCUMENT) if has_text else ""
    files: Files = tuple(crops)
    return PreparedPage(record=record, requests={}, crops=files, preview=None, request_pixels=0)


def _crop(path: str, region: Region, data: bytes) -> ImageCrop:
    digest = hashlib.sha256(data).hexdigest()
    return ImageCrop(
        path=path, bbox=region.bbox_2d, label=region.label, region=region.index, size=len(data), sha256=digest
    )


def _tag(block: Block) -> str:
    """The structure element of a block, as a tagged PDF names it: the file says so here, too."""
    if block.level:
        return f"H{block.level}"
    return "LI" if block.list_item else _TAGS.get(block.label, "P")


def _told(block: Block, payload: ReadPart) -> dict[str, object]:
    """What is known of a region, by the fields of :class:`pagemill.document.page.Content`."""
    alternative = block.picture.alternative if block.picture else ""
    return {
        "content": block.content,
        "content_format": block.content_format,
        "level": block.level,
        "list_item": block.list_item,
        "list_depth": block.list_depth,
        "spans": block.spans,
        "furniture": block.furniture,
        "tag": _tag(block),
        "continues": block.continues,
        "source": WHOLE_PAGE if block.box is None else payload.reader,
        "engine": payload.reader if block.content is not None else None,
        "description": Description(summary=alternative, engine=ALTERNATIVE) if alternative else None,
    }
