"""A page with more lines than layout can compare is given in rows, and says so."""

import random

import numpy as np

from pagemill.document.identity import PageKey
from pagemill.document.page import TextLine
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.analyse import analyse_page
from pagemill.sources.base import DocumentRef, PageRef


def test_no_line_of_a_crowded_page_is_lost():
    dice = random.Random(1)
    places = [(dice.uniform(0, 950), dice.uniform(0, 990)) for _ in range(3000)]
    lines = [TextLine(text=f"w{n}", box=(x, y, x + 40, y + 8)) for n, (x, y) in enumerate(places)]
    pixels = np.full((1000, 1000, 3), 255, np.uint8)
    ref = PageRef(
        document=DocumentRef(doc_id="d", uri="d.pdf"),
        key=PageKey("0" * 64, 1),
        position=0,
        page_number=1,
        page_id="d_1",
        payload=None,
    )
    record = analyse_page(ref, DecodedPage(pixels=pixels), [], lines)
    assert [error.category for error in record.errors] == ["too_large"]
    words = [line.text for region in record.regions for line in region.lines]
    assert sorted(words) == sorted(line.text for line in lines)
