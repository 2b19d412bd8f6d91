"""Text that nobody sees, and watermarks, in PDFs drawn here."""

import io

import pytest
from reportlab.lib.colors import Color, HexColor
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import open_pdf, render_page

WHITE, DARK = HexColor("#ffffff"), HexColor("#203040")


@pytest.fixture
def canvas():
    canvas = Canvas(io.BytesIO(), pagesize=(400, 300))
    canvas.setFont("Helvetica", 12)
    canvas.drawString(40, 270, "What everybody sees.")
    return canvas


def layer_of(canvas, tmp_path):
    canvas.save()
    path = tmp_path / "page.pdf"
    path.write_bytes(canvas._filename.getvalue())
    with open_pdf(path, None) as document:
        layer = render_page(document, 0, DecodeLimits(dpi=72, min_side=1)).text_layer
    assert layer is not None
    assert layer.lines[0].text == "What everybody sees."
    return [line.text for line in layer.lines[1:]], [line.text for line in layer.unseen], layer


def write(canvas, text="Hidden words", colour=None, y=200):
    canvas.setFont("Helvetica", 12)
    canvas.setFillColor(colour or HexColor("#000000"))
    canvas.drawString(60, y, text)


def fill(canvas, colour, box=(50, 190, 200, 30)):
    canvas.setFillColor(colour)
    canvas.rect(*box, stroke=0, fill=1)


def test_white_on_white(canvas, tmp_path):
    write(canvas, colour=WHITE)
    seen, unseen, layer = layer_of(canvas, tmp_path)
    assert (seen, unseen, layer.characters) == ([], ["Hidden words"], 18)


def test_white_on_a_dark_area_is_seen(canvas, tmp_path):
    fill(canvas, DARK)
    write(canvas, colour=WHITE)
    assert layer_of(canvas, tmp_path)[:2] == (["Hidden words"], [])


@pytest.mark.parametrize("ground", ["image", "circle", "veil"])
def test_white_on_what_may_be_dark_is_seen(canvas, tmp_path, ground):
    if ground == "image":
        from PIL import Image

        canvas.drawImage(ImageReader(Image.new("RGB", (9, 9), (0, 0, 99))), 50, 190, 200, 30)
    elif ground == "circle":
        canvas.setFillColor(DARK)
        canvas.circle(100, 200, 80, stroke=0, fill=1)
    else:
        fill(canvas, Color(0, 0, 0, alpha=0.9))
        canvas.setFillAlpha(1)
    write(canvas, colour=WHITE)
    assert layer_of(canvas, tmp_path)[:2] == (["Hidden words"], [])


def test_covered(canvas, tmp_path):
    write(canvas)
    fill(canvas, DARK)
    assert layer_of(canvas, tmp_path)[:2] == ([], ["Hidden words"])


@pytest.mark.parametrize("how", ["clipped", "veil", "beside", "frame"])
def test_what_does_not_cover(canvas, tmp_path, how):
    write(canvas)
    if how == "clipped":
        path = canvas.beginPath()
        path.rect(300, 10, 50, 50)
        canvas.clipPath(path, stroke=0)
        fill(canvas, DARK, (0, 0, 400, 250))
    elif how == "veil":
        fill(canvas, Color(1, 1, 0, alpha=0.4))
    elif how == "frame":
        path = canvas.beginPath()
        path.rect(50, 190, 200, 30)
        path.rect(51, 191, 198, 28)
        canvas.drawPath(path, stroke=0, fill=1, fillMode=0)
    else:
        fill(canvas, DARK, (50, 206, 200, 30))
    assert layer_of(canvas, tmp_path)[:2] == (["Hidden words"], [])


def test_type_of_one_point_is_unseen_beside_type_of_twelve(canvas, tmp_path):
    canvas.setFont("Helvetica", 1)
    canvas.drawString(60, 200, "Small print")
    assert layer_of(canvas, tmp_path)[:2] == ([], ["Small print"])


@pytest.mark.parametrize(("colour", "across"), [("#cccccc", False), ("#cc0000", True)])
def test_slanted_lines_that_are_pale_or_across_text_are_watermarks(canvas, tmp_path, colour, across):
    write(canvas, "Words that say something", y=150)
    canvas.saveState()
    canvas.translate(60 if across else 250, 120 if across else 60)
    canvas.rotate(30)
    canvas.setFont("Helvetica", 30)
    canvas.setFillColor(HexColor(colour))
    canvas.drawString(0, 0, "DRAFT")
    canvas.restoreState()
    seen, _, layer = layer_of(canvas, tmp_path)
    assert seen == ["Words that say something"]
    assert [line.text for line in layer.watermarks] == ["DRAFT"]


def test_slanted_labels_of_a_chart_are_no_watermarks(canvas, tmp_path):
    canvas.translate(100, 100)
    canvas.rotate(45)
    write(canvas, "January", HexColor("#666666"), y=0)
    assert layer_of(canvas, tmp_path)[0] == ["January"]
