"""Text layers of small PDFs made here, with real PDFium."""

import ctypes
import io

import numpy as np
import pikepdf
import pypdfium2 as pdfium
import pypdfium2.raw as raw
import pytest

from pagemill.imaging.annotations import FlattenedPage
from pagemill.imaging.glyphs import spell_out
from pagemill.imaging.text_layer import extract_text_layer

SCALE = 2.0


def make_page(texts, *, size=(400, 300), font="Helvetica"):
    """A page with (text, x, y, font size) placed; further items of a tuple: render mode, matrix."""
    document = pdfium.PdfDocument.new()
    page = document.new_page(*size)
    for text, x, y, points, *more in texts:
        item = raw.FPDFPageObj_NewTextObj(document.raw, font.encode(), points)
        encoded = (text + "\0").encode("utf-16-le")
        buffer = ctypes.create_string_buffer(encoded, len(encoded))
        raw.FPDFText_SetText(item, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)))
        if more and more[0] is not None:
            raw.FPDFTextObj_SetTextRenderMode(item, more[0])
        matrix = more[1] if len(more) > 1 else (1, 0, 0, 1)
        raw.FPDFPageObj_Transform(item, *matrix, x, y)
        raw.FPDFPage_InsertObject(page.raw, item)
    raw.FPDFPage_GenerateContent(page.raw)
    return document, page


def layer_of(texts, **options):
    document, page = make_page(texts, **options)
    width, height = (round(value * SCALE) for value in page.get_size())
    layer, _ = extract_text_layer(FlattenedPage(page, None, ()), width, height)
    document.close()
    return layer


def test_a_line_with_words_size_and_box_in_pixels():
    layer = layer_of([("Plain words here", 50, 200, 12)])
    (line,) = layer.lines
    assert line.text == "Plain words here"
    assert [word.text for word in line.words] == ["Plain", "words", "here"]
    assert line.font_size == pytest.approx(24, abs=0.1)
    x1, y1, x2, y2 = line.box
    assert x1 == pytest.approx(100, abs=2)
    assert y1 < (300 - 200) * SCALE < y2
    assert x2 < 320
    assert layer.characters == 14
    assert layer.unmapped == 0


def test_a_column_gap_cuts_and_word_gaps_do_not():
    layer = layer_of([("left column text", 40, 200, 10), ("right column text", 220, 200, 10)])
    assert [line.text for line in layer.lines] == ["left column text", "right column text"]


def test_words_drawn_one_by_one_and_out_of_order_make_one_line():
    layer = layer_of([("brown", 110, 200, 10), ("The quick", 60, 200, 10), ("fox", 143, 200, 10)])
    assert [line.text for line in layer.lines] == ["The quick brown fox"]


def test_a_glyph_drawn_twice_counts_once():
    layer = layer_of([("Shadow", 50, 200, 12), ("Shadow", 50.4, 200, 12)])
    assert [line.text for line in layer.lines] == ["Shadow"]
    assert layer.characters == 6


def layer_of_content(content, matrix=None):
    """The text layer of a page with this content stream, Helvetica being /F1; with a matrix, of a form."""
    buffer = io.BytesIO()
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page(page_size=(400, 400))
        name = pikepdf.Name
        helvetica = pikepdf.Dictionary(Type=name.Font, Subtype=name.Type1, BaseFont=name.Helvetica)
        page.obj.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=helvetica))
        page.Contents = pdf.make_stream(content.encode("latin-1"))
        if matrix is not None:
            form = pdf.make_stream(content.encode("latin-1"), Subtype=name.Form, Resources=page.obj.Resources)
            form.BBox = [-400, -400, 400, 400]
            page.obj.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(X1=form))
            page.Contents = pdf.make_stream(f"q {matrix} cm /X1 Do Q".encode())
        pdf.save(buffer)
    with pdfium.PdfDocument(buffer.getvalue()) as document:
        return extract_text_layer(FlattenedPage(document[0], None, ()), 800, 800)[0]


@pytest.mark.parametrize(
    "content",
    [
        "BT /F1 -12 Tf -1 0 0 -1 40 300 Tm (read this way) Tj ET",
        "q -12 0 0 -12 0 0 cm BT /F1 -1 Tf -3 -25 Td (read this way) Tj ET Q",
    ],
    ids=["text matrix", "page matrix"],
)
def test_a_font_size_below_zero_turns_text_that_its_matrix_turns_back(content):
    (line,) = layer_of_content(content).lines
    assert line.text == "read this way"
    assert line.polygon is None
    assert line.font_size == pytest.approx(24)


def span(text, drawn=None):
    """Letters drawn, and the text that replaces them, by default the same."""
    return f"/Span <</ActualText ({text})>> BDC ({text if drawn is None else drawn}) Tj EMC "


TOTAL = "Total amount due is 11,222.00 EUR"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (span(TOTAL), TOTAL),
        (f"(See ) Tj {span('Mississippi')} ( river 2) Tj", "See Mississippi river 2"),
        (f"(The o) Tj {span('ff', 'f')} (ice and sta) Tj {span('ff', 'f')} ( room) Tj", "The office and staff room"),
        (f"(The ) Tj {span('mill-wheel', 'millwheel')} ( turns) Tj", "The mill-wheel turns"),
        (f"(And so) Tj {span('...')} ( on) Tj", "And so... on"),
        (
            f"{span('A much longer text than the letters call for', 'AMLR')} ",
            "A much longer text than the letters call for",
        ),
        (f"/Span <</ActualText ({TOTAL})>> BDC (To) Tj (tal am) Tj (ount) Tj EMC", TOTAL),
        ("/Span <</ActualText <FEFF05E905DC05D505DD002005E205D505DC05DD>>> BDC (abcd efgh) Tj EMC", "שלום עולם"),
    ],
    ids=["line", "word", "ligature", "hyphen", "dots", "long", "parts", "hebrew"],
)
def test_a_replacement_text_keeps_repeated_letters_and_spaces(shown, text):
    (line,) = layer_of_content(f"BT /F1 14 Tf 20 200 Td {shown} ET").lines
    assert line.text.rstrip() == text
    assert [word.text for word in line.words] == text.split()


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("חשבונית 1234 סכום", "abcdefg 1234 abcd"),
        ("מחיר: 12.50 ₪", "abcd: 12.50 x"),
        ("שלום PDF עולם", "abcd PDF efgh"),
        ("Total סכום 12", "Total abcd 12"),
        ("رقم 2024 لعام", "abc 2024 defg"),
    ],
)
def test_a_replacement_text_of_right_to_left_letters_keeps_its_figures(text, drawn):
    replaced = f"/Span <</ActualText <FEFF{text.encode('utf-16-be').hex()}>>> BDC ({drawn}) Tj EMC"
    (line,) = layer_of_content(f"BT /F1 14 Tf 20 200 Td {replaced} ET").lines
    assert line.text.rstrip() == text


@pytest.mark.parametrize("matrix", ["1 0 0 1 20 200", "0 1 -1 0 200 60", "-1 0 0 -1 380 200", ".866 .5 -.5 .866 60 60"])
def test_a_replacement_text_runs_along_the_drawn_letters(matrix):
    (line,) = layer_of_content(f"BT /F1 14 Tf {matrix} Tm {span(TOTAL)} ET").lines
    (drawn,) = layer_of_content(f"BT /F1 14 Tf {matrix} Tm ({TOTAL}) Tj ET").lines
    assert line.text == TOTAL
    assert line.font_size == pytest.approx(28, abs=0.1)
    assert line.box == pytest.approx(drawn.box, abs=12)
    last, last_drawn = line.words[-1].box, drawn.words[-1].box
    assert (last[0] + last[2], last[1] + last[3]) == pytest.approx(
        (last_drawn[0] + last_drawn[2], last_drawn[1] + last_drawn[3]), abs=40
    )


@pytest.mark.parametrize("matrix", ["1 0 0 1 200 200", "0 1 -1 0 200 200", ".5 0 0 .5 150 100"])
@pytest.mark.parametrize("text", [TOTAL, "x"])
def test_a_replacement_text_in_a_form_stands_where_it_is_drawn(text, matrix):
    (line,) = layer_of_content(f"BT /F1 12 Tf -110 -20 Td {span(text)} ET", matrix).lines
    (drawn,) = layer_of_content(f"BT /F1 12 Tf -110 -20 Td ({text}) Tj ET", matrix).lines
    assert line.text == text
    assert line.box == pytest.approx(drawn.box, abs=12)


@pytest.mark.parametrize("shown", [f"({TOTAL}) Tj", span(TOTAL)], ids=["letters", "replacement"])
@pytest.mark.parametrize("shift", [0, 0.3])
@pytest.mark.parametrize("between", ["", "BT /F1 14 Tf 20 100 Td (Other text) Tj ET"], ids=["at-once", "later"])
def test_text_printed_twice_counts_once(shown, shift, between):
    first, second = (f"BT /F1 14 Tf {x} 200 Td {shown} ET " for x in (20, 20 + shift))
    layer = layer_of_content(" ".join((first, between, second)))
    assert [line.text for line in layer.lines if line.text != "Other text"] == [TOTAL]


def test_text_outside_the_page_is_dropped():
    layer = layer_of([("inside", 50, 200, 12), ("outside", 50, 900, 12)])
    assert [line.text for line in layer.lines] == ["inside"]


def test_invisible_text_stays_apart():
    layer = layer_of([("seen", 50, 200, 12), ("hidden", 50, 100, 12, raw.FPDF_TEXTRENDERMODE_INVISIBLE)])
    assert layer.characters == 4
    assert [line.text for line in layer.lines] == ["seen"]
    assert [line.text for line in layer.hidden_lines] == ["hidden"]


def test_bold_by_font_name():
    (line,) = layer_of([("Loud", 50, 200, 12)], font="Helvetica-Bold").lines
    assert line.bold


def test_upright_text_has_its_direction_in_the_polygon():
    (line,) = layer_of([("upwards", 50, 100, 12, None, (0, 1, -1, 0))]).lines
    assert line.text == "upwards"
    (x1, y1), (x2, y2) = line.polygon[:2]
    assert y2 < y1
    assert abs(x1 - x2) < 1
    assert line.box[3] - line.box[1] > 2 * (line.box[2] - line.box[0])


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_boxes_lie_on_the_ink_whatever_the_page_rotation(rotation):
    document, page = make_page([("Mmmm", 60, 220, 20)])
    page.set_rotation(rotation)
    page.set_cropbox(20, 10, 380, 290)
    image = page.render(scale=SCALE, grayscale=True).to_numpy().squeeze()
    height, width = image.shape
    (line,) = extract_text_layer(FlattenedPage(page, None, ()), width, height)[0].lines
    rows, columns = np.nonzero(image < 128)
    x1, y1, x2, y2 = line.box
    assert x1 - 2 <= columns.min()
    assert columns.max() <= x2 + 2
    assert y1 - 2 <= rows.min()
    assert rows.max() <= y2 + 2
    assert (x2 - x1) * (y2 - y1) < 4 * np.ptp(rows) * np.ptp(columns)
    document.close()


@pytest.mark.parametrize("rotation", [0, 180])
def test_letters_drawn_one_by_one_keep_their_order(rotation):
    """PDFium gives them from left to right as displayed, which is backwards where they are upside down."""
    widths = {" ": 0.278, "i": 0.222, "l": 0.222, "t": 0.278, "f": 0.278, "r": 0.333}
    letters, x = [], 60.0
    for letter in "little tin fillings in filters":
        if letter != " ":
            letters.append((letter, x, 200, 11))
        x += 11 * widths.get(letter, 0.5 if letter == "s" else 0.556)
    document, page = make_page(letters)
    page.set_rotation(rotation)
    (line,) = extract_text_layer(FlattenedPage(page, None, ()), 800, 600)[0].lines
    assert line.text == "little tin fillings in filters"
    document.close()


def test_images_are_placed():
    document, page = make_page([("text", 50, 200, 12)])
    bitmap = pdfium.PdfBitmap.new_native(4, 4, raw.FPDFBitmap_BGR)
    bitmap.fill_rect((0, 0, 0, 255), 0, 0, 4, 4)
    image = pdfium.PdfImage.new(document)
    image.set_bitmap(bitmap)
    image.set_matrix(pdfium.PdfMatrix().scale(200, 150).translate(100, 50))
    page.insert_obj(image)
    page.gen_content()
    _, boxes = extract_text_layer(FlattenedPage(page, None, ()), 400, 300)
    assert boxes == (pytest.approx((100.0, 100.0, 300.0, 250.0), abs=0.01),)
    document.close()


def test_a_page_without_text():
    layer = layer_of([])
    assert layer.lines == ()
    assert layer.characters == 0


@pytest.mark.parametrize(
    ("raw_text", "text"),
    [("ﬁnal ﬂow", "final flow"), ("‘‘quoted’’", "“quoted”"), ("cafe\u0301", "café"), ("１２ m²", "１２ m²")],
)
def test_spelling_out(raw_text, text):
    assert spell_out(raw_text) == text


def spelled(char):
    return f"/Span <</ActualText <FEFF{char.encode('utf-16-be').hex()}>>> BDC (a) Tj EMC"


def test_arabic_letters_drawn_from_the_left_read_from_the_right():
    shown = " 8 0 Td ".join(map(spelled, "ةنيدملا")) + " 16 0 Td " + " 8 0 Td ".join(map(spelled, "سلجم"))
    (line,) = layer_of_content(f"BT /F1 14 Tf 20 200 Td {shown} ET").lines
    assert line.text.rstrip() == "مجلس المدينة"


def test_columns_of_vertical_writing_are_lines():
    first, second = "今年の春水道局", "新しい停車場を"
    shown = "".join(
        f"BT /F1 14 Tf {x} {250 - 14 * i} Td {spelled(char)} ET "
        for x, text in ((200, first), (176, second))
        for i, char in enumerate(text)
    )
    assert [line.text for line in layer_of_content(shown).lines] == [first, second]


def layer_of_unicode(mapping, content):
    """The text layer of a page in Helvetica, some of whose letters have other Unicode values."""
    pairs = "\n".join(f"<{ord(char):02X}> <{code:04X}>" for char, code in mapping.items())
    buffer = io.BytesIO()
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page(page_size=(400, 400))
        name = pikepdf.Name
        unicode = pdf.make_stream(
            f"begincmap 1 begincodespacerange <00> <FF> endcodespacerange {len(mapping)} beginbfchar\n{pairs}\n"
            "endbfchar endcmap".encode()
        )
        helvetica = pikepdf.Dictionary(
            Type=name.Font,
            Subtype=name.Type1,
            BaseFont=name.Helvetica,
            Encoding=name.WinAnsiEncoding,
            ToUnicode=unicode,
        )
        page.obj.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F1=helvetica))
        page.Contents = pdf.make_stream(content.encode("latin-1"))
        pdf.save(buffer)
    with pdfium.PdfDocument(buffer.getvalue()) as document:
        return extract_text_layer(FlattenedPage(document[0], None, ()), 800, 800)[0]


@pytest.mark.parametrize("matrix", ["1 0 0 1 40 100", "0 1 -1 0 200 40", "0.01 0 0 0.01 40 100"])
def test_what_has_no_unicode_value_but_zero_is_unmapped_unless_it_is_a_space(matrix):
    content = f"BT /F1 12 Tf {matrix} Tm (A mill is small.) Tj ET"
    layer = layer_of_unicode({"s": 0, " ": 0, ".": 0}, content)
    assert [line.text for line in layer.lines] == ["A mill i\ufffd \ufffdmall\ufffd"]
    assert layer.unmapped == 3


def test_a_zero_at_the_end_of_a_replacement_text_is_none():
    layer = layer_of_content(
        "BT /F1 12 Tf 40 100 Td /Span <</ActualText <FEFF00410042004300440000>>> BDC (abcde) Tj EMC ET"
    )
    assert [line.text.strip() for line in layer.lines] == ["ABCD"]


@pytest.mark.parametrize(("rest", "text"), [(" second wheel", "A second wheel"), ("s the wheel", "As the wheel")])
def test_a_space_behind_a_raised_initial_is_one(rest, text):
    """PDFium leaves out drawn spaces that are narrow for the size of the letter before them."""
    drawn = " ".join(f"({char}) Tj" for char in rest)
    content = f"BT /F1 40 Tf 20 100 Td (A) Tj ET BT /F1 13 Tf 46.68 100 Td {drawn} ET"
    (line,) = layer_of_content(content).lines
    assert line.text.strip() == text
