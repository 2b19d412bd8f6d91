"""The regions of pages as a COCO file: images, boxes in page pixels, and the layout classes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from typing import BinaryIO

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import PageResult
from pagemill.export.formats import ExportFormat

_CATEGORIES = {label: number for number, label in enumerate(Label, 1)}
_IN_MEMORY = 16 * 2**20
"""Bytes of annotations beyond which they wait on the disk: they follow all images in the file."""


def write_coco(stream: BinaryIO, pages: Iterable[PageResult]) -> None:
    """Write one JSON object, in bounded memory. Images are named by page id; pages that failed are left out."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as waiting:
        stream.write(b'{"info":{"description":"pagemill"},"images":[')
        images = annotations = 0
        for page in pages:
            # COCO readers divide by the size.
            if not page.width:
                continue
            images += 1
            facts = {"id": images, "file_name": page.page_id, "width": page.width, "height": page.height}
            stream.write(b",\n" * (images > 1) + msgspec.json.encode(facts))
            for region in page.regions:
                annotations += 1
                left, top, right, bottom = region.bbox
                found = {
                    "id": annotations,
                    "image_id": images,
                    "category_id": _CATEGORIES[region.label],
                    "bbox": [left, top, right - left, bottom - top],
                    "area": (right - left) * (bottom - top),
                    "iscrowd": 0,
                    "order": region.index,
                    "text": region.content,
                }
                if region.score is not None:
                    found["score"] = region.score
                waiting.write(b",\n" * (annotations > 1) + msgspec.json.encode(found))
        stream.write(b'],\n"annotations":[')
        waiting.seek(0)
        shutil.copyfileobj(waiting, stream)
        categories = [{"id": number, "name": label.value} for label, number in _CATEGORIES.items()]
        stream.write(b'],\n"categories":' + msgspec.json.encode(categories) + b"}\n")


FORMAT = ExportFormat(ending=".coco.json", to_file=lambda content, stream, _: write_coco(stream, content.pages()))
