"""The pictures that are kept of a page: images, charts and display formulas, cut out and encoded."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.names import crop_path
from pagemill.document.page import ImageCrop
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.transforms import crop

if TYPE_CHECKING:
    from pagemill.document.page import PageResult, Region
    from pagemill.imaging.types import Pixels


WHOLE_PAGE = "whole-page"
"""``Region.source`` of what stands somewhere on a page: its box is the page's."""


def is_picture(region: Region) -> bool:
    """Whether a region is kept as a picture."""
    return TASK_OF_LABEL[region.label] is Task.SKIP or region.label is Label.DISPLAY_FORMULA


def cut_pictures(record: PageResult, pixels: Pixels) -> tuple[tuple[str, bytes], ...]:
    """Cut and encode what Markdown shows as a picture, and note it in the record's ``image_crops``.

    Returns:
        Relative path and JPEG of each.
    """
    files: list[tuple[str, bytes]] = []
    for region in record.regions:
        if not is_picture(region) or region.source == WHOLE_PAGE:
            continue
        cut = crop(pixels, region.bbox)
        if not cut.size:
            continue
        path, encoded = crop_path(record.page_id, region.index), encode_jpeg(cut)
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
