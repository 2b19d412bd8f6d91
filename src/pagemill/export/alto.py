"""A document as ALTO 4: XML of pages, text blocks, lines and words with positions, the format of libraries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from pagemill._version import __version__
from pagemill.document.geometry import Box, Point
from pagemill.document.labels import PICTURES, Label
from pagemill.document.page import PageResult, Region
from pagemill.export.formats import ExportFormat
from pagemill.export.placed_text import clean, language_of, lines_of, words_of

NAMESPACE = "http://www.loc.gov/standards/alto/ns-v4#"
_SCHEMA = f"{NAMESPACE} http://www.loc.gov/standards/alto/v4/alto-4-4.xsd"


def document_alto(pages: Iterable[PageResult]) -> Iterator[str]:
    """Write a document, page by page."""
    number = 0
    for number, page in enumerate(pages, 1):
        if number == 1:
            yield _head(page)
        yield from _page(page, number)
    yield "</Layout>\n</alto>\n" if number else ""


def _head(page: PageResult) -> str:
    tags = "".join(f'<LayoutTag ID="label_{label}" LABEL="{label}"/>\n' for label in Label)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<alto xmlns="{NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        f' xsi:schemaLocation="{_SCHEMA}">\n<Description>\n<MeasurementUnit>pixel</MeasurementUnit>\n'
        f"<sourceImageInformation><fileName>{escape(clean(page.source))}</fileName></sourceImageInformation>\n"
        '<Processing ID="parsing"><processingSoftware><softwareName>pagemill</softwareName>'
        f"<softwareVersion>{escape(__version__)}</softwareVersion></processingSoftware></Processing>\n"
        f"</Description>\n<Tags>\n{tags}</Tags>\n<Layout>\n"
    )


def _page(page: PageResult, number: int) -> Iterator[str]:
    name = f"page_{number}"
    language = f' LANG="{language_of(page)}"' if language_of(page) else ""
    size = f'WIDTH="{page.width}" HEIGHT="{page.height}"'
    # The number of the image as libraries count it, which for a part of a document is not the position here.
    printed = number if page.page_number is None else page.page_number
    yield f'<Page ID="{name}" PHYSICAL_IMG_NR="{printed}" {size}{language}>\n'
    yield f'<PrintSpace HPOS="0" VPOS="0" {size}>\n'
    for region in page.regions:
        yield from _region(region, f"{name}_{region.index}")
    yield "</PrintSpace>\n</Page>\n"


def _region(region: Region, name: str) -> Iterator[str]:
    attributes = f'TAGREFS="label_{region.label}" {_place(region.bbox)}'
    shape = _shape(region.polygon)
    lines = [(line, list(words_of(line))) for line in lines_of(region)]
    lines = [(line, words) for line, words in lines if words]
    if region.label in PICTURES:
        yield f'<Illustration ID="{name}_picture" {attributes}>{shape}</Illustration>\n'
    # A picture may hold lettering: then it is both, as ALTO has no block for that.
    if lines or region.label not in PICTURES:
        yield f'<TextBlock ID="{name}" {attributes}>{shape}\n'
        for line, words in lines:
            yield f"<TextLine {_place(line.box)}>{_shape(line.polygon)}"
            known = "" if line.confidence is None else f' WC="{min(max(line.confidence, 0.0), 1.0):.2f}"'
            for index, (word, spaced) in enumerate(words, 1):
                yield f"<String CONTENT={quoteattr(word.text)} {_place(word.box)}{known}/>"
                # Only between words: scripts without spaces have none, and a line does not end with one.
                yield "<SP/>" if spaced and index < len(words) else ""
            yield "</TextLine>\n"
        yield "</TextBlock>\n"


def _place(box: Box) -> str:
    x1, y1, x2, y2 = box
    return f'HPOS="{x1:.1f}" VPOS="{y1:.1f}" WIDTH="{max(x2 - x1, 0):.1f}" HEIGHT="{max(y2 - y1, 0):.1f}"'


def _shape(polygon: tuple[Point, ...] | None) -> str:
    # A record may come from elsewhere, and XML readers refuse `nan`.
    if not polygon or not all(math.isfinite(value) for point in polygon for value in point):
        return ""
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in polygon)
    return f'<Shape><Polygon POINTS="{points}"/></Shape>'


FORMAT = ExportFormat(ending="-alto", suffix=".xml", text=lambda pages, _: document_alto(pages))
