"""Three small pages of a mill's day book, for the multi-page TIFF and the dataset shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reportlab.lib.pagesizes import A5
from reportlab.lib.styles import ParagraphStyle

from makers.typesetting import Block, Column, Element, Typesetter, new_canvas, register_fonts

if TYPE_CHECKING:
    from pathlib import Path

SERIF, BOLD = "LiberationSerif-Regular", "LiberationSerif-Bold"
BODY = ParagraphStyle("body", fontName=SERIF, fontSize=11, leading=14.5)
TITLE = ParagraphStyle("title", fontName=BOLD, fontSize=16, leading=22)

PAGES = (
    (
        "Day book, 3 March",
        "River high and brown. Both beaters in gear from six in the morning; the second was stopped at noon to clear a "
        "branch from the grate. Made 14 quires of writing paper and hung them at the north end of the loft.",
        "Two carts of linen rag came from the harbour, 318 kg by our scale and 321 kg by theirs. We paid for 318.",
    ),
    (
        "Day book, 4 March",
        "Frost in the night. The shutters were kept closed until ten and nothing was taken down. The foreman dressed "
        "the roll of the first beater, which had begun to sing.",
        "A binder from the county town ordered 6 reams of grey board, to be ready before Easter.",
    ),
    (
        "Day book, 5 March",
        "Clear and windy, the best drying day of the year so far. Took down 22 quires and sized them in the afternoon. "
        "One sheet in forty was torn or spotted and went back to the beater.",
        "The apprentice read the staff by himself for the first time and was right to the finger.",
    ),
)


def make(path: Path) -> list[list[Element]]:
    """Write the day book as a PDF of A5 pages; returns its truth."""
    register_fonts([SERIF, BOLD])
    canvas = new_canvas(path, A5, "Day book", "The Lower Mill")
    setter = Typesetter(canvas)
    for number, (title, *paragraphs) in enumerate(PAGES, start=1):
        setter.start_page()
        blocks = [Block("doc_title", title, TITLE, space_after=10, facts={"level": 1})]
        blocks += [Block("text", words, BODY, space_after=9) for words in paragraphs]
        setter.fill(Column(50, 80, A5[0] - 100, A5[1] - 60), blocks)
        setter.line("number", str(number), A5[0] / 2, 40, SERIF, 10, "centre")
    canvas.save()
    return setter.pages
