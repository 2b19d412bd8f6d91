"""Drawn pages as scans, with their lines as recognition would give them: the text is right, the boxes are rough."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import msgspec
import numpy as np
from drawn_sheets import Sheet

from pagemill.document.page import PageResult, TextLine, Word
from pagemill.export.markdown import document_markdown
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.pdf import open_pdf, render_page
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.analyse import analyse_page


def scan(
    sheet: Sheet, folder: Path, *, dpi: int = 200, contrast: float = 1.0, skew: float = 0.0, noise: float = 3.0
) -> tuple[Pixels, list[TextLine]]:
    """The page of a sheet as a scan, and its lines, one for each run of text without a wide gap.

    Args:
        sheet: Of one page.
        folder: For its file.
        dpi: Resolution.
        contrast: Of ink and paper, up to 1.
        skew: Degrees by which the page is turned clockwise.
        noise: Standard deviation in grey levels.
    """
    sheet.save()
    path = folder / "drawn.pdf"
    path.write_bytes(sheet.file.getvalue())
    with open_pdf(path, None) as document:
        page = render_page(document, 0, DecodeLimits(dpi=dpi))
    assert page.text_layer is not None
    height, width = page.pixels.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), -skew, 1.0)
    turned = cv2.warpAffine(page.pixels, turn, (width, height), flags=cv2.INTER_LINEAR, borderValue=(255,) * 3)
    rough = 250 - contrast * (255 - turned.astype(np.float32))
    rough += np.random.default_rng(0).normal(0, noise, rough.shape)
    pixels = np.clip(rough, 0, 255).astype(np.uint8)
    return pixels, [_recognised(line, turn) for line in page.text_layer.lines]


def _recognised(line: TextLine, turn: Any) -> TextLine:
    """A line of a text layer as recognition gives it: nothing of its font, boxes of words by the widths of letters."""
    x1, y1, x2, y2 = line.box
    x, y = (turn @ np.array([(x1 + x2) / 2, (y1 + y2) / 2, 1.0])).tolist()
    rise, half, high = 0.15 * (y2 - y1), (x2 - x1) / 2 + 4, (y2 - y1) / 2
    box = (x - half, y - high - rise, x + half, y + high + rise)
    words = line.text.split()
    step = (x2 - x1) / max(1, len(" ".join(words)))
    placed, at = [], x - (x2 - x1) / 2
    for word in words:
        placed.append(Word(word, (at, box[1], at + step * len(word), box[3])))
        at += step * (len(word) + 1)
    return TextLine(text=" ".join(words), box=box, engine="drawn", words=tuple(placed))


def record_of(pixels: Pixels, lines: list[TextLine], detected: tuple[DetectedRegion, ...] = ()) -> PageResult:
    """The record of a scan."""
    ref: Any = SimpleNamespace(
        page_id="drawn_1",
        position=0,
        key="",
        document=SimpleNamespace(doc_id="drawn", uri="drawn.pdf"),
        page_number=1,
        attempts=0,
        missing=0,
        metadata={},
    )
    page = DecodedPage(pixels=pixels)
    record = analyse_page(ref, page, detected, lines, by_typography=True)
    msgspec.json.encode(record.regions)  # numbers of numpy cannot be stored
    return record


def scanned_markdown(sheet: Sheet, folder: Path, **how: Any) -> str:
    """Markdown of a sheet that was scanned."""
    record = record_of(*scan(sheet, folder, **how))
    assert not record.errors
    assert {msgspec.structs.asdict(region)["source"] for region in record.regions} <= {"typography", "pairs"}
    return "".join(document_markdown([record], crops_root=""))
