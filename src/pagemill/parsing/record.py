"""The record of a page: as it is begun, and with the pictures that are cut out of the page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from pagemill.config.settings import ParseSettings
from pagemill.describing.elements import pictures
from pagemill.document.geometry import Box, Point, clip, normalise_1000
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.names import crop_path
from pagemill.document.page import WHOLE_PAGE, ImageCrop, PageError, PageResult, Region
from pagemill.errors import PagemillError
from pagemill.imaging.encode import encode_jpeg, encode_preview
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.parsing.lines import around
from pagemill.recognition.base import Problem
from pagemill.sources.base import PageRef

Files = tuple[tuple[str, bytes], ...]
"""Relative path and encoded bytes of each picture."""
Elements = dict[int, bytes]
"""JPEGs of what a model is to describe, by region."""


class PreparedPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a page keeps when its pixels go."""

    record: PageResult
    """Its regions, where they are known, stand in reading order without their content."""
    requests: Mapping[int, Any]
    """What the region engine made of each region, by its index; of a page that is read as a whole, by 0."""
    crops: Files = ()
    copy: bytes | None = None
    """The page as a JPEG in full resolution, to cut pictures out that are not known yet."""
    elements: Elements = {}
    preview: bytes | None
    """Small JPEG of the page for the report."""
    request_pixels: int
    """Pixels of all that is asked about."""

    def answered(self, **changed: Any) -> PreparedPage:
        """What it keeps once its requests are answered; ``changed`` are fields that the answers change."""
        return replace(self, requests={}, request_pixels=0, copy=None, **changed)

    @property
    def kept_bytes(self) -> int:
        """What all this takes, by estimate: a request is a JPEG in base64, half a byte a pixel for text."""
        files = (self.copy, self.preview, *(encoded for _, encoded in self.crops), *self.elements.values())
        return self.request_pixels // 2 + sum(len(file or b"") for file in files)


def begun_record(ref: PageRef, page: DecodedPage | None = None) -> PageResult:
    """The record of a page of which nothing is known yet but where it comes from and, once decoded, its size."""
    record = PageResult(
        page_id=ref.page_id,
        page_idx=ref.position,
        page_key=str(ref.key),
        doc_id=ref.document.doc_id,
        source=ref.document.uri,
        page_number=ref.page_number,
        attempts=ref.attempts + 1,
        missing=ref.missing,
        metadata=dict(ref.metadata),
    )
    if page is not None:
        record.width, record.height = page.size
        record.scale, record.dpi, record.errors = page.scale, page.dpi, list(page.warnings)
        if page.notes:
            record.metadata["notes"] = list(page.notes)
    return record


def add_region(record: PageResult, label: Label, box: Box, **told: Any) -> Region:
    """Add a region to a record, its box cut at the edges of the page; ``told`` is what else is known of it."""
    bbox = clip(box, record.width, record.height)
    bbox_2d = normalise_1000(bbox, record.width, record.height)
    region = Region(index=len(record.regions), label=label, bbox=bbox, bbox_2d=bbox_2d, **told)
    record.regions.append(region)
    return region


def move_region(region: Region, outline: tuple[Point, ...], width: int, height: int) -> None:
    """Put a region to another place, on a page of that size."""
    region.polygon, region.bbox = outline, clip(around(outline), width, height)
    region.bbox_2d = normalise_1000(region.bbox, width, height)


def preview_of(ref: PageRef, pixels: Pixels, settings: ParseSettings) -> bytes | None:
    """The small image of the page, where the report shows one."""
    return encode_preview(pixels) if ref.position < settings.preview_pages else None


def region_error(index: int | None, what: Problem | PagemillError) -> PageError:
    """An error of one region, or of the page as a whole (None)."""
    return PageError(
        component="recognition", category=what.category, message=what.message, remedy=what.remedy, region=index
    )


def is_picture(region: Region) -> bool:
    """Whether a region is kept as a picture: images, charts and display formulas are."""
    return TASK_OF_LABEL[region.label] is Task.SKIP or region.label is Label.DISPLAY_FORMULA


def cut_out(record: PageResult, pixels: Pixels, settings: ParseSettings) -> tuple[Files, Elements]:
    """The pictures to save and the elements to describe, as far as the settings want them."""
    files = _cut_pictures(record, pixels) if settings.crops else ()
    return files, pictures(record, pixels, settings.describing.kinds, files)


def _cut_pictures(record: PageResult, pixels: Pixels) -> Files:
    """Cut and encode what Markdown shows as a picture, and note it in the record's ``image_crops``."""
    files: list[tuple[str, bytes]] = []
    for region in record.regions:
        if not is_picture(region) or region.source == WHOLE_PAGE:
            continue
        path, encoded = crop_path(record.page_id, region.index), encode_jpeg(crop(pixels, region.bbox))
        files.append((path, encoded))
        record.image_crops.append(
            ImageCrop(
                path=path,
                bbox=region.bbox_2d,
                label=region.label,
                region=region.index,
                size=len(encoded),
                sha256=hashlib.sha256(encoded).hexdigest(),
            )
        )
    return tuple(files)
