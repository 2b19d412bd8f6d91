"""What layout missed, found in pages drawn here."""

from __future__ import annotations

import cv2
import numpy as np

from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.page import TextLine
from pagemill.imaging.page import DecodedPage
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.analyse import analyse_page
from pagemill.sources.base import DocumentRef, PageRef

REF = PageRef(
    document=DocumentRef(doc_id="d", uri="d.pdf"),
    key=PageKey("0" * 64, 1),
    position=0,
    page_number=1,
    page_id="d_1",
    payload=None,
)


def test_tables_ruled_across_are_found_below_a_table_that_is_the_page():
    pixels = np.full((1400, 1000, 3), 255, np.uint8)
    lines = []
    for left in (40, 540):
        for row in range(4):
            y = 100 + 40 * row
            cv2.line(pixels, (left, y), (left + 420, y), (90, 90, 90), 1)
            lines.append(TextLine(text=f"kind {row}", box=(left + 10, y + 8, left + 80, y + 30)))
            lines.append(TextLine(text="what it is", box=(left + 160, y + 8, left + 300, y + 30)))
        cv2.line(pixels, (left, 260), (left + 420, 260), (90, 90, 90), 1)
        lines += [TextLine(text="running text", box=(left, y, left + 420, y + 22)) for y in range(400, 1300, 30)]
    for line in lines:
        x1, y1, x2, y2 = (int(value) for value in line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:4] = 0
    page_wide = DetectedRegion(box=(20, 60, 980, 1340), label=Label.TABLE, score=0.45, source="onnx")
    record = analyse_page(REF, DecodedPage(pixels=pixels), [page_wide], lines)
    tables = [region.content or "" for region in record.regions if region.label is Label.TABLE]
    assert [(html.count("<tr>"), html.count("kind")) for html in tables] == [(4, 4), (4, 4)]
