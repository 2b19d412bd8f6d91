"""Which pages need no look at their pixels."""

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


def letters_of_lines(sheet: Canvas) -> None:
    for letter in range(4):
        x = 72 + 9 * letter
        sheet.line(x, 340, x, 350)
        sheet.line(x, 345, x + 5, 345)
        sheet.line(x + 5, 340, x + 5, 350)


def letters_of_squares(sheet: Canvas) -> None:
    for place in range(30):
        sheet.rect(72 + 2 * (place % 10), 340 + 4 * (place // 10), 2, 2, stroke=0, fill=1)


def matrix_code(sheet: Canvas) -> None:
    for place in range(100):
        sheet.rect(72 + 24 * (place % 10), 100 + 20 * (place // 10), 8, 8, stroke=0, fill=1)


def bar_code(sheet: Canvas) -> None:
    for place in range(20):
        sheet.line(72 + 4 * place, 300, 72 + 4 * place, 350)


def slanted(sheet: Canvas) -> None:
    sheet.saveState()
    sheet.translate(100, 300)
    sheet.rotate(20)
    sheet.drawString(0, 0, "Across the sheet")
    sheet.restoreState()


def clipped(sheet: Canvas) -> None:
    sheet.saveState()
    path = sheet.beginPath()
    path.rect(0, 0, 1, 1)
    sheet.clipPath(path, stroke=0)
    sheet.drawString(72, 340, "Nobody sees this.")
    sheet.restoreState()


def clear(sheet: Canvas) -> None:
    sheet.saveState()
    sheet.setFillAlpha(0)
    sheet.drawString(72, 340, "Nobody sees this.")
    sheet.restoreState()


def shape_of_clip(sheet: Canvas) -> None:
    """A filled area of which a path lets little be seen."""
    sheet.saveState()
    path = sheet.beginPath()
    path.moveTo(72, 340)
    path.lineTo(77, 350)
    path.lineTo(82, 340)
    sheet.clipPath(path, stroke=0)
    sheet.rect(60, 330, 400, 40, stroke=0, fill=1)
    sheet.restoreState()


SHOWN = (
    outlined_line,
    outlined_letters,
    letters_of_lines,
    letters_of_squares,
    matrix_code,
    bar_code,
    icon,
    slanted,
    invisible,
    clipped,
    clear,
    shape_of_clip,
)


@pytest.mark.parametrize(
    ("more", "is_text_only"),
    [((), True), ((rules_and_shades, bullets), True), *[((draw,), False) for draw in SHOWN]],
    ids=["prose", "rules, shades and bullets", *[draw.__name__ for draw in SHOWN]],
)
def test_pages_that_show_nothing_but_their_lines_are_not_drawn(tmp_path: Path, more, is_text_only):
    sheet = Canvas(str(tmp_path / "page.pdf"))
    for draw in (prose, *more):
        draw(sheet)
    sheet.save()
    with open_pdf(tmp_path / "page.pdf", None) as document:
        whole = render_page(document, 0, DecodeLimits())
        spared = render_page(document, 0, DecodeLimits(), 0)
        small = render_page(document, 0, DecodeLimits(), 1000)
    assert spared.is_text_only is is_text_only
    assert whole.size == spared.size == small.size
    assert spared.text_layer == whole.text_layer
    assert not whole.is_text_only
    if is_text_only:
        assert spared.pixels.size == 0
        assert max(small.pixels.shape) == 1000
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
        assert not render_page(document, 0, DecodeLimits(), 0).is_text_only


FONT = pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)


def pattern(pdf: pikepdf.Pdf) -> tuple[str, pikepdf.Dictionary]:
    tile = pdf.make_stream(
        b"BT /F 14 Tf 2 6 Td (Never paid) Tj ET",
        PatternType=1,
        PaintType=1,
        TilingType=1,
        BBox=[0, 0, 400, 20],
        XStep=400,
        YStep=20,
        Resources=pikepdf.Dictionary(Font=pikepdf.Dictionary(F=FONT)),
        Matrix=[1, 0, 0, 1, 72, 330],
    )
    return "/Pattern cs /P scn 72 330 400 20 re f", pikepdf.Dictionary(Pattern=pikepdf.Dictionary(P=tile))


def mask(pdf: pikepdf.Pdf) -> tuple[str, pikepdf.Dictionary]:
    group = pdf.make_stream(
        b"1 g BT /F 14 Tf 74 336 Td (Never paid) Tj ET",
        Type=pikepdf.Name.XObject,
        Subtype=pikepdf.Name.Form,
        BBox=[0, 0, 600, 850],
        Group=pikepdf.Dictionary(S=pikepdf.Name.Transparency, CS=pikepdf.Name.DeviceGray),
        Resources=pikepdf.Dictionary(Font=pikepdf.Dictionary(F=FONT)),
    )
    state = pikepdf.Dictionary(SMask=pikepdf.Dictionary(Type=pikepdf.Name.Mask, S=pikepdf.Name.Luminosity, G=group))
    return "/S gs 72 330 400 20 re f", pikepdf.Dictionary(ExtGState=pikepdf.Dictionary(S=state))


def glyphs_without_names(pdf: pikepdf.Pdf) -> tuple[str, pikepdf.Dictionary]:
    glyph = pdf.make_stream(b"600 0 0 0 600 800 d1 0 0 100 700 re f 500 0 100 700 re f 0 300 600 100 re f")
    spaces = pdf.make_stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
        b"1 begincodespacerange <00><FF> endcodespacerange 1 beginbfchar <41> <0020> endbfchar endcmap end end"
    )
    font = pikepdf.Dictionary(
        Type=pikepdf.Name.Font,
        Subtype=pikepdf.Name.Type3,
        FontBBox=[0, 0, 600, 800],
        FontMatrix=[0.001, 0, 0, 0.001, 0, 0],
        CharProcs=pikepdf.Dictionary(g=glyph),
        Encoding=pikepdf.Dictionary(Type=pikepdf.Name.Encoding, Differences=[65, pikepdf.Name.g]),
        FirstChar=65,
        LastChar=65,
        Widths=[600],
        Resources=pikepdf.Dictionary(),
        ToUnicode=spaces,
    )
    return "BT /T 14 Tf 72 330 Td (AAAAAA) Tj ET", pikepdf.Dictionary(Font=pikepdf.Dictionary(T=font))


@pytest.mark.parametrize("draw", [pattern, mask, glyphs_without_names])
def test_what_the_text_layer_cannot_tell_is_seen_in_the_pixels(tmp_path: Path, draw):
    sheet = Canvas(str(tmp_path / "page.pdf"))
    prose(sheet)
    sheet.save()
    with pikepdf.open(tmp_path / "page.pdf") as pdf:
        content, resources = draw(pdf)
        form = pdf.make_stream(
            content.encode(),
            Type=pikepdf.Name.XObject,
            Subtype=pikepdf.Name.Form,
            BBox=[0, 0, 600, 850],
            Resources=resources,
        )
        pdf.pages[0].Resources.XObject = pikepdf.Dictionary(More=form)
        pdf.pages[0].contents_add(pdf.make_stream(b"q /More Do Q"))
        pdf.save(tmp_path / "more.pdf")
    with open_pdf(tmp_path / "more.pdf", None) as document:
        assert not render_page(document, 0, DecodeLimits(), 0).is_text_only
