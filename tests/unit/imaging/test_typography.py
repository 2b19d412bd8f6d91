"""Styles, inline marks, drawn lines, tags and artifacts of text layers, from PDFs drawn here."""

import io

import numpy as np
import pikepdf
import pytest
from reportlab.lib.colors import Color, HexColor
from reportlab.pdfgen.canvas import Canvas

from pagemill.document.page import Mark
from pagemill.imaging.fonts import family_of, measured_pitch
from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import STYLE, Glyphs
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import open_pdf, render_page
from pagemill.imaging.script_forms import with_script_forms

LIMITS = DecodeLimits(dpi=144, min_side=1)
"""Two pixels a point."""


def layer_of(tmp_path, draw, *, size=(400, 300), change=None):
    """The text layer of a page that ``draw`` draws on a canvas, and ``change`` changes in pikepdf."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size)
    draw(canvas)
    canvas.save()
    path = tmp_path / "page.pdf"
    with pikepdf.open(buffer) as pdf:
        if change is not None:
            change(pdf)
        pdf.save(path)
    with open_pdf(path, None) as document:
        page = render_page(document, 0, LIMITS)
    assert page.text_layer is not None, page.notes
    return page.text_layer


def in_fonts(canvas, x, y, *pieces):
    """Draw (font, size, rise, text) one after the other."""
    text = canvas.beginText(x, y)
    for font, size, rise, words in pieces:
        text.setFont(font, size)
        text.setRise(rise)
        text.textOut(words)
    canvas.drawText(text)


def marked(line, mark):
    return [line.text[span.start : span.end] for span in line.spans if span.mark is mark]


def test_styles_are_of_the_document_and_those_with_most_characters_come_first(tmp_path):
    def draw(canvas):
        canvas.setFont("Times-Bold", 16)
        canvas.drawString(40, 250, "A title of it")
        canvas.setFont("Times-Roman", 10.5)
        canvas.drawString(40, 200, "The text below it, of which there is more.")
        canvas.setFillColor(HexColor("#cc0000"))
        canvas.setFont("Courier-Oblique", 9)
        canvas.drawString(40, 150, "red mills")

    layer = layer_of(tmp_path, draw)
    body, title, code = layer.styles
    assert (body.family, body.size, body.bold, body.italic, body.fixed_pitch) == ("Times", 10.5, False, False, False)
    assert (title.family, title.size, title.bold, title.colour) == ("Times", 16.0, True, 0)
    assert (code.family, code.italic, code.fixed_pitch, code.colour) == ("Courier", True, True, 0xCC0000)
    assert [style.characters for style in layer.styles] == [34, 10, 8]
    assert [line.style for line in layer.lines] == [1, 0, 2]


def test_the_style_of_a_heading_with_code_in_it_is_that_of_its_text(tmp_path):
    def draw(canvas):
        in_fonts(canvas, 40, 200, ("Courier-Bold", 9, 0, "reply_res_of_code"), ("Helvetica-Bold", 12, 0, " moved"))
        in_fonts(canvas, 40, 170, ("Courier", 9, 0, "reply_res_of_code"), ("Helvetica-Bold", 12, 0, " moved"))

    layer = layer_of(tmp_path, draw)
    assert [layer.styles[line.style].family for line in layer.lines] == ["Helvetica", "Courier"]


def test_the_size_of_a_style_is_in_points_whatever_scales_the_text(tmp_path):
    def draw(canvas):
        canvas.scale(2, 2)
        canvas.setFont("Helvetica", 6)
        canvas.drawString(20, 100, "twice six points")

    assert layer_of(tmp_path, draw).styles[0].size == 12.0

    def change(pdf):
        pdf.pages[0].UserUnit = 2

    assert layer_of(tmp_path, draw, change=change).styles[0].size == 24.0


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Helvetica-BoldOblique", "Helvetica"),
        ("TimesNewRomanPS-BoldItalicMT", "TimesNewRoman"),
        ("Arial,Bold", "Arial"),
        ("LiberationSans", "LiberationSans"),
        ("NotoSansMono-Regular", "NotoSansMono"),
        ("SourceSerif4-SemiBoldIt", "SourceSerif4"),
        ("CMR10", "CMR10"),
        ("", ""),
    ],
)
def test_the_family_of_a_font(name, family):
    assert family_of(name) == family


def test_the_pitch_of_a_font_is_measured_where_enough_signs_tell():
    codes = np.array([ord(char) for char in "ilm.WMabcd"], dtype=np.uint32)
    assert measured_pitch(codes, np.full(len(codes), 0.6)) is True
    assert measured_pitch(codes, np.linspace(0.2, 0.9, len(codes))) is False
    replaced = np.append(np.array([0.14], dtype=np.float64), np.full(len(codes), 0.6))  # the ink of a sign
    assert measured_pitch(np.append(codes[:1], codes), replaced) is True
    assert measured_pitch(codes[:3], np.full(3, 0.6)) is None
    assert measured_pitch(np.array([0x4E00], dtype=np.uint32), np.ones(1)) is False
    text = np.concatenate((codes, np.full(3 * len(codes), 0x4E00, dtype=np.uint32)))  # letters of half its width
    assert measured_pitch(text, np.full(len(text), 0.5)) is False


def test_inline_marks_have_the_offsets_of_their_characters(tmp_path):
    def draw(canvas):
        in_fonts(
            *(canvas, 40, 200),
            *(("Helvetica", 12, 0, "Call "), ("Courier", 12, 0, "mill_run"), ("Helvetica", 12, 0, " with ")),
            *(("Helvetica-Bold", 12, 0, "great "), ("Helvetica-BoldOblique", 12, 0, "care"), ("Helvetica", 12, 0, ".")),
        )

    (line,) = layer_of(tmp_path, draw).lines
    assert line.text == "Call mill_run with great care."
    assert marked(line, Mark.CODE) == ["mill_run"]
    assert marked(line, Mark.BOLD) == ["great care"]
    assert marked(line, Mark.ITALIC) == ["care"]


@pytest.mark.parametrize(("turn", "rotation"), [(0, 0), (0, 90), (0, 180), (90, 90), (90, 180), (90, 270)])
@pytest.mark.parametrize(("size", "rise", "fall"), [(8, 4, -2), (12, 6, -6)])
def test_raised_and_lowered_characters_on_turned_pages_and_in_turned_text(tmp_path, turn, rotation, size, rise, fall):
    def draw(canvas):
        canvas.translate(200, 60)
        canvas.rotate(turn)
        in_fonts(
            *(canvas, 0, 0),
            *(("Helvetica", 12, 0, "About 10"), ("Helvetica", size, rise, "5"), ("Helvetica", 12, 0, " of H")),
            *(("Helvetica", size, fall, "2"), ("Helvetica", 12, 0, "O in the mill")),
        )

    def change(pdf):
        pdf.pages[0].Rotate = rotation

    (line,) = layer_of(tmp_path, draw, change=change).lines
    assert line.text == "About 105 of H2O in the mill"
    assert marked(line, Mark.SUPERSCRIPT) == ["5"]
    assert marked(line, Mark.SUBSCRIPT) == ["2"]


def test_a_drop_cap_is_no_script(tmp_path):
    def draw(canvas):
        in_fonts(canvas, 40, 200, ("Helvetica", 30, 0, "O"), ("Helvetica", 12, 0, "nce upon a time there was a mill"))

    for line in layer_of(tmp_path, draw).lines:
        assert not marked(line, Mark.SUPERSCRIPT) + marked(line, Mark.SUBSCRIPT)


@pytest.mark.parametrize("turn", [0, 90])
@pytest.mark.parametrize("as_rectangle", [False, True])
def test_lines_through_words_strike_them_out_and_lines_below_do_not(tmp_path, turn, as_rectangle):
    def draw(canvas):
        canvas.translate(200, 60)
        canvas.rotate(turn)
        canvas.setFont("Helvetica", 12)
        canvas.drawString(0, 0, "valid deleted underlined")
        start, end, last = (
            canvas.stringWidth(text) for text in ("valid ", "valid deleted", "valid deleted underlined")
        )
        for x1, x2, y in ((start, end, 3.5), (end + 3, last, -1.5)):
            if as_rectangle:
                canvas.rect(x1, y, x2 - x1, 0.6, stroke=0, fill=1)
            else:
                canvas.line(x1, y, x2, y)

    (line,) = layer_of(tmp_path, draw).lines
    assert marked(line, Mark.STRIKE) == ["deleted"]


def test_a_rule_that_goes_on_beyond_a_word_does_not_strike_it_out(tmp_path):
    def draw(canvas):
        canvas.setFont("Helvetica", 12)
        canvas.drawString(150, 200, "mill")
        canvas.line(20, 203.5, 380, 203.5)

    (line,) = layer_of(tmp_path, draw).lines
    assert not line.spans


def test_links_to_the_web_and_into_the_document(tmp_path):
    def draw(canvas):
        canvas.setFont("Helvetica", 12)
        canvas.drawString(40, 200, "See the web, write a mail, or turn the page, run it.")
        edges = [40 + canvas.stringWidth(text) for text in ("See ", "See the web", "See the web, write ")]
        canvas.linkURL("https://example.org/a?b=1", (edges[0], 196, edges[1], 212))
        canvas.linkURL("mailto:a@example.org", (edges[2], 196, edges[2] + canvas.stringWidth("a mail"), 212))
        start = 40 + canvas.stringWidth("See the web, write a mail, or ")
        canvas.linkAbsolute("", "there", (start, 196, start + canvas.stringWidth("turn the page"), 212))
        start += canvas.stringWidth("turn the page, ")
        canvas.linkURL("javascript:alert(1)", (start, 196, start + canvas.stringWidth("run it"), 212))
        canvas.showPage()
        canvas.bookmarkHorizontalAbsolute("there", 225)
        canvas.drawString(40, 225, "There")

    (line,) = layer_of(tmp_path, draw).lines
    assert [(line.text[span.start : span.end], span.target) for span in line.spans if span.mark is Mark.LINK] == [
        ("the web", "https://example.org/a?b=1"),
        ("a mail", "mailto:a@example.org"),
        ("turn the page", "#page=2&top=250"),
    ]


def test_marks_follow_letters_that_are_spelled_out(tmp_path):
    def draw(canvas):
        in_fonts(canvas, 40, 200, ("Helvetica", 12, 0, "o\N{LATIN SMALL LIGATURE FI}x "), ("Courier", 12, 0, "x"))

    (line,) = layer_of(tmp_path, draw).lines
    assert marked(line, Mark.CODE) == ["x"]


def test_lines_fills_and_other_drawings(tmp_path):
    def draw(canvas):
        canvas.setLineWidth(1)
        canvas.line(20, 280, 220, 280)  # a rule
        canvas.rect(20, 200, 100, 50)  # four edges
        canvas.setFillColor(HexColor("#00ff00"))
        canvas.rect(150, 200, 100, 50, stroke=0, fill=1)
        canvas.setFillColor(HexColor("#ffffff"))
        canvas.rect(150, 100, 100, 50, stroke=0, fill=1)  # white on white
        canvas.setFillColor(HexColor("#000000"))
        canvas.rect(300, 100, 0.5, 90, stroke=0, fill=1)  # a thin rectangle is a line
        canvas.circle(100, 100, 40)
        canvas.setStrokeColor(Color(0, 0, 0, alpha=0))
        canvas.line(20, 20, 220, 20)  # not to be seen

    layer = layer_of(tmp_path, draw)
    assert len(layer.strokes) == 6
    assert layer.strokes[0] == pytest.approx((40, 39, 440, 41), abs=0.1)
    assert layer.strokes[-1] == pytest.approx((600, 220, 601, 400), abs=0.1)
    assert [colour for _, colour in layer.fills] == [0x00FF00]
    assert layer.fills[0][0] == pytest.approx((300, 100, 500, 200), abs=0.1)
    (circle,) = layer.drawings
    assert circle == pytest.approx((119, 319, 281, 481), abs=2)


def test_artifacts_and_structure_types(tmp_path):
    def change(pdf):
        page, name = pdf.pages[0], pikepdf.Name
        page.Contents = pdf.make_stream(
            b"/Artifact BMC BT /F1 8 Tf 40 280 Td (Running head) Tj ET EMC "
            b"/Head <</MCID 0>> BDC BT /F1 14 Tf 40 240 Td (A heading) Tj ET EMC "
            b"/P <</MCID 1>> BDC BT /F1 10 Tf 40 200 Td (An item) Tj ET EMC "
            b"BT /F1 10 Tf 40 160 Td (No tag) Tj ET"
        )
        root = pdf.make_indirect(pikepdf.Dictionary(Type=name.StructTreeRoot))

        def element(kind, parent, kids):
            return pdf.make_indirect(pikepdf.Dictionary(Type=name.StructElem, S=kind, P=parent, Pg=page.obj, K=kids))

        head = element(name.Head, root, 0)
        item = element(name.LBody, root, pikepdf.Array())
        item.K = pikepdf.Array([element(name.P, item, 1)])
        root.K = pikepdf.Array([head, item])
        root.RoleMap = pikepdf.Dictionary(Head=name.H2)
        root.ParentTree = pikepdf.Dictionary(Nums=pikepdf.Array([0, pikepdf.Array([head, item.K[0]])]))
        page.obj.StructParents = 0
        pdf.Root.StructTreeRoot = root
        pdf.Root.MarkInfo = pikepdf.Dictionary(Marked=True)

    layer = layer_of(tmp_path, lambda canvas: canvas.drawString(1, 1, "x"), change=change)
    assert [(line.text, line.artifact, line.tag) for line in layer.lines] == [
        ("Running head", True, ""),
        ("A heading", False, "H2"),
        ("An item", False, "LBody"),
        ("No tag", False, ""),
    ]


def test_figures_that_the_font_draws_raised_or_lowered_are_scripts():
    size, baseline = 20.0, 100.0
    codes = np.array([ord(char) for char in "m25H2"], dtype=np.uint32)
    rise = {1: (0.4, 0.7), 4: (-0.1, 0.2)}  # of feet and heads, in em
    width = [0.8, 0.35, 0.5, 0.7, 0.35]
    left = 100 + size * np.concatenate([[0], np.cumsum(width)[:-1]])
    boxes = np.stack([left, np.full(5, 84.0), left + size * np.array(width), np.full(5, 104.0)], axis=1)
    ink = boxes.copy()
    for i in range(5):
        foot, head = rise.get(i, (0.0, 0.65))
        ink[i, 1::2] = baseline - head * size, baseline - foot * size
    styles = np.zeros(1, dtype=STYLE)
    styles["size"] = size
    glyphs = Glyphs(codes, boxes, np.stack([left, np.full(5, baseline)], axis=1), np.zeros(5, np.int32), styles)
    found, parents = with_script_forms(glyphs, np.zeros(5, np.intp), lambda index: ink[index])
    assert parents == [0]
    assert found.of("size").tolist() == [20, 13, 20, 20, 13]
    (line,) = lines_of_glyphs(found, 2000, 200)
    assert (line.text, marked(line, Mark.SUPERSCRIPT), marked(line, Mark.SUBSCRIPT)) == ("m25H2", ["2"], ["2"])


def test_brackets_do_not_tell_the_pitch_of_a_font():
    # In right-to-left lines browsers give them a replacement text, whose box is that of the ink.
    codes = np.array([ord(char) for char in "imw.lNT,;()"], dtype=np.uint32)
    advances = np.where(np.isin(codes, [ord("("), ord(")")]), 0.22, 0.6)
    assert measured_pitch(codes, advances) is True
