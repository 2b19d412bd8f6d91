"""Which pages need no look at their pixels."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pikepdf
import pytest
from PIL import Image
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import open_pdf, render_page

pytest.importorskip("reportlab")


def prose(sheet: Canvas) -> None:
    for row in range(20):
        sheet.drawString(72, 700 - 16 * row, "The vat is stirred before each dip of the mould.")


def rules_and_shades(sheet: Canvas) -> None:
    sheet.line(72, 360, 500, 360)
    sheet.setFillGray(0.9)
    sheet.rect(72, 300, 400, 40, stroke=0, fill=1)
    sheet.setFillGray(0)
    sheet.drawString(80, 315, "A shaded note.")


def bullets(sheet: Canvas) -> None:
    for row in range(8):
        sheet.circle(64, 704 - 16 * row, 2, fill=1)


def outlined_line(sheet: Canvas) -> None:
    path = sheet.beginPath()
    for letter in range(40):
        x = 72 + 9 * letter
        path.moveTo(x, 340)
        path.curveTo(x + 2, 350, x + 4, 350, x + 6, 340)
    sheet.drawPath(path)


def outlined_letters(sheet: Canvas) -> None:
    for letter in range(4):
        x = 72 + 9 * letter
        path = sheet.beginPath()
        path.moveTo(x, 340)
        path.curveTo(x + 2, 350, x + 4, 350, x + 6, 340)
        sheet.drawPath(path)


def icon(sheet: Canvas) -> None:
    data = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(data, "PNG")
    sheet.drawImage(ImageReader(data), 72, 340, 10, 10)


def invisible(sheet: Canvas) -> None:
    text = sheet.beginText(72, 340)
    text.setTextRenderMode(3)
    text.textLine("said and not shown")
    sheet.drawText(text)


@pytest.mark.parametrize(
    ("more", "is_told"),
    [
        ((), True),
        ((rules_and_shades, bullets), True),
        ((outlined_line,), False),
        ((outlined_letters,), False),
        ((icon,), False),
        ((invisible,), False),
    ],
    ids=["prose", "rules, shades and bullets", "a line as one shape", "letters as shapes", "an icon", "invisible text"],
)
def test_pages_that_show_nothing_but_their_lines_are_not_drawn(tmp_path: Path, more, is_told):
    sheet = Canvas(str(tmp_path / "page.pdf"))
    for draw in (prose, *more):
        draw(sheet)
    sheet.save()
    with open_pdf(tmp_path / "page.pdf", None) as document:
        whole = render_page(document, 0, DecodeLimits())
        spared = render_page(document, 0, DecodeLimits(), 0)
        small = render_page(document, 0, DecodeLimits(), 500)
    assert spared.is_told is is_told
    assert whole.size == spared.size == small.size
    assert spared.text_layer == whole.text_layer
    assert not whole.is_told
    if is_told:
        assert spared.pixels.size == 0
        assert max(small.pixels.shape) == 500
    else:
        assert np.array_equal(spared.pixels, whole.pixels)


def test_pages_of_documents_with_parts_that_can_be_switched_off_are_drawn(tmp_path: Path):
    sheet = Canvas(str(tmp_path / "page.pdf"))
    prose(sheet)
    sheet.save()
    with pikepdf.open(tmp_path / "page.pdf") as pdf:
        pdf.Root.OCProperties = pikepdf.Dictionary(OCGs=[], D=pikepdf.Dictionary())
        pdf.save(tmp_path / "layers.pdf")
    with open_pdf(tmp_path / "layers.pdf", None) as document:
        assert not render_page(document, 0, DecodeLimits(), 0).is_told
