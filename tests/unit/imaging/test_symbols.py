"""Symbols of pages with formulas, from PDFs drawn here."""

import io
from pathlib import Path

import numpy as np
import pytest
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.math_fonts import is_math, meaning, plain_name, style_of
from pagemill.imaging.pdf import open_pdf, render_page
from pagemill.imaging.text_layer import character_at

MATH = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


def layer_of(tmp_path, draw):
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=(300, 200))
    draw(canvas)
    canvas.save()
    path = tmp_path / "page.pdf"
    path.write_bytes(buffer.getvalue())
    with open_pdf(path, None) as document:
        return render_page(document, 0, DecodeLimits()).text_layer


def test_a_page_of_words_has_no_symbols(tmp_path):
    layer = layer_of(tmp_path, lambda canvas: canvas.drawString(50, 100, "a mill = a wheel"))
    assert layer.lines and not layer.symbols and not layer.rules


@pytest.mark.skipif(not MATH.exists(), reason="DejaVu is not installed")
def test_symbols_tell_the_character_the_ink_and_the_baseline(tmp_path):
    text = "α ≤ ∑√x"
    pdfmetrics.registerFont(TTFont("Signs", str(MATH)))

    def draw(canvas):
        canvas.setFont("Signs", 20)
        canvas.drawString(50, 100, text)
        canvas.rect(50, 90, 60, 0.6, stroke=0, fill=1)
        canvas.rect(50, 20, 60, 40, stroke=0, fill=1)

    layer = layer_of(tmp_path, draw)
    assert "".join(symbol.text for symbol in layer.symbols) == text.replace(" ", "")
    assert len({symbol.baseline for symbol in layer.symbols if symbol.text != "√"}) == 1
    assert all(symbol.box[0] < symbol.box[2] and symbol.box[1] < symbol.box[3] for symbol in layer.symbols)
    assert len(layer.rules) == 1, "a filled box is no rule"


@pytest.mark.parametrize(
    ("name", "math", "style"),
    [
        ("CMMI10", True, "i"),
        ("CMSY7", True, "c"),
        ("MSBM10", True, "d"),
        ("EUFM10", True, "f"),
        ("CMR10", False, "r"),
        ("CMBX12", False, "b"),
        ("LatinModernMath-Regular", True, "r"),
        ("CambriaMath", True, "r"),
        ("Times-Italic", False, "i"),
    ],
)
def test_fonts_are_known_by_their_names(name, math, style):
    assert is_math(name) is math
    assert style_of(name) == style
    assert plain_name(f"ABCDEF+{name}") == name


def test_codes_of_tex_fonts_have_their_meaning():
    assert [meaning("CMEX10", code) for code in (0x58, 0x5A, 0x12, 0x70, 0x30)] == ["∑", "∫", "(", "√", "⎛"]
    assert meaning("CMSY10", 0x37) == "↦"
    assert meaning("CMR10", 0x58) is None


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0x78], ("x", 1)),
        ([0x2C6], ("\u0302", 1)),
        ([0xD835, 0xDC65], ("𝑥", 2)),
        ([0xDC65, 0xD835], ("𝑥", 2)),
        ([0xD835], ("\ufffd", 1)),
        ([0xDC65, 0x78], ("\ufffd", 1)),
        ([0xD835, 0xD835], ("\ufffd", 1)),
    ],
)
def test_halves_of_characters_are_joined_and_never_stand_alone(codes, expected):
    text, units = character_at(np.array(codes, np.uint32), 0)
    assert (text, units) == expected
    text.encode()
