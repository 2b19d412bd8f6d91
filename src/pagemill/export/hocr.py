"""A document as hOCR: HTML with the position of each area, paragraph, line and word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape

from pagemill._version import __version__
from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import Box
from pagemill.document.labels import PICTURES
from pagemill.document.page import PageResult, Region, TextLine
from pagemill.export.formats import ExportFormat
from pagemill.export.placed_text import clean, language_of, lines_of, words_of

_CAPABILITIES = "ocr_page ocr_carea ocr_photo ocr_par ocr_line ocrx_word ocrp_lang ocrp_dir"


def document_hocr(pages: Iterable[PageResult]) -> Iterator[str]:
    """Write a document, page by page."""
    yield (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml">\n<head>\n'
        f'<meta charset="utf-8" />\n<meta name="ocr-system" content="pagemill {__version__}" />\n'
        f'<meta name="ocr-capabilities" content="{_CAPABILITIES}" />\n'
    )
    number = 0
    for number, page in enumerate(pages, 1):
        if number == 1:
            yield f"<title>{escape(clean(page.doc_id))}</title>\n</head>\n<body>\n"
        yield from _page(page, number)
    yield "</body>\n</html>\n" if number else "<title></title>\n</head>\n<body>\n</body>\n</html>\n"


def _page(page: PageResult, number: int) -> Iterator[str]:
    name = f"page_{number}"
    # Quotes and semicolons divide the properties of hOCR, which has no way to escape them.
    source = clean(page.source).replace('"', "'").replace(";", ",")
    properties = [f'image "{source}"', f"bbox 0 0 {page.width} {page.height}"]
    if page.page_number is not None:
        properties.append(f"ppageno {max(page.page_number - 1, 0)}")
    if page.dpi:
        properties.append(f"scan_res {page.dpi:.0f} {page.dpi:.0f}")
    language = language_of(page)
    spoken = f' lang="{escape(language)}"' if language else ""
    yield f'<div class="ocr_page" id="{name}"{spoken} title="{escape("; ".join(properties))}">\n'
    for region in page.regions:
        yield from _region(region, name)
    yield "</div>\n"


def _region(region: Region, page: str) -> Iterator[str]:
    name = f"{page}_{region.index}"
    kind = "ocr_photo" if region.label in PICTURES else "ocr_carea"
    yield f'<div class="{kind}" id="{name}" title="{_bbox(region.bbox)}" data-label="{region.label}">\n'
    lines = lines_of(region)
    if lines:
        direction = ' dir="rtl"' if is_right_to_left(" ".join(line.text for line in lines)) else ""
        yield f'<p class="ocr_par"{direction} title="{_bbox(region.bbox)}">\n'
        for line in lines:
            yield from _line(line)
        yield "</p>\n"
    yield "</div>\n"


def _line(line: TextLine) -> Iterator[str]:
    known = "" if line.confidence is None else f"; x_wconf {round(100 * min(max(line.confidence, 0.0), 1.0))}"
    yield f'<span class="ocr_line" title="{_bbox(line.box)}{_baseline(line)}">'
    for word, spaced in words_of(line):
        yield f'<span class="ocrx_word" title="{_bbox(word.box)}{known}">{escape(word.text)}</span>'
        yield " " if spaced else ""
    yield "</span>\n"


def _bbox(box: Box) -> str:
    x1, y1, x2, y2 = box
    # hOCR has whole numbers: rounded outwards, so that no letter is cut off.
    return f"bbox {max(math.floor(x1), 0)} {max(math.floor(y1), 0)} {max(math.ceil(x2), 0)} {max(math.ceil(y2), 0)}"


def _baseline(line: TextLine) -> str:
    """Slope and offset of the lower edge of a slanted line, from the lower left corner of its box; or its turn."""
    if line.polygon is None:
        return ""
    (x1, y1), (x2, y2) = line.polygon[3], line.polygon[2]
    angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
    # A baseline is a function of x; text that stands has none.
    if abs(angle) > 45:
        return f"; textangle {-angle % 360:.1f}"
    slope = (y2 - y1) / (x2 - x1)
    return f"; baseline {slope:.4f} {y1 + slope * (line.box[0] - x1) - line.box[3]:.1f}"


FORMAT = ExportFormat(ending="-hocr", suffix=".hocr", text=lambda pages, _: document_hocr(pages))
