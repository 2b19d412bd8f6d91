"""Form fields and annotations in the text layer, with real PDFium; the values that a viewer shows, and no others."""

from dataclasses import replace

import pytest
from form_pdfs import COMB, HIDDEN, MULTI_LINE, NO_VIEW, PASSWORD, FormPage

from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import DecodedPage
from pagemill.imaging.pdf import open_pdf, render_page

BOX = (180, 652, 400, 672)
LIMITS = DecodeLimits()


def rendered(page: FormPage, tmp_path, times: int = 1) -> DecodedPage:
    path = tmp_path / "form.pdf"
    path.write_bytes(page.pdf())
    document = open_pdf(path, None)
    try:
        for _ in range(times):
            result = render_page(document, 0, LIMITS)
        return result
    finally:
        document.close()


def texts(page: FormPage, tmp_path) -> list[str]:
    layer = rendered(page, tmp_path).text_layer
    assert layer is not None
    return [line.text.strip() for line in (*layer.lines, *layer.marks)]


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize(("appearance", "need"), [(True, False), (False, True), (False, False)])
def test_a_value_is_in_the_text_layer_where_the_pixels_show_it(tmp_path, appearance, need, rotate):
    form = FormPage(need_appearances=need, rotate=rotate)
    form.text_field("name", BOX, "Ada Example", appearance=appearance)
    result = rendered(form, tmp_path)
    pixels = result.pixels
    assert result.text_layer is not None
    (line,) = result.text_layer.lines
    assert (line.text, line.engine) == ("Ada Example", "annotation")
    x1, y1, x2, y2 = map(round, line.box)
    assert (pixels[y1:y2, x1:x2] < 100).any()


@pytest.mark.parametrize("appearance", [True, False])
def test_every_kind_of_field(tmp_path, appearance):
    form = FormPage()
    form.text(60, 700, "printed")
    form.text_field("purpose", (180, 560, 300, 612), "Paper for the repair of books", kind=MULTI_LINE, appearance=False)
    form.choice("land", (180, 402, 300, 422), ["Denmark", "Korea"], "Korea", combo=True, appearance=appearance)
    form.choice("colour", (180, 340, 300, 392), ["Red", "Green"], "Green", combo=False, appearance=appearance)
    form.check_box("on", (60, 480, 72, 492), on=True, appearance=appearance)
    form.check_box("off", (60, 460, 72, 472), on=False, appearance=appearance)
    form.check_box("radio", (60, 440, 72, 452), on=True, radio=True, appearance=appearance)
    form.free_text((60, 260, 300, 280), "Approved in March", appearance=appearance)
    found = texts(form, tmp_path)
    assert " ".join(found).startswith("printed Paper for the repair of books Korea")
    assert {"Green", "Approved in March"} <= set(found)
    assert [text for text in found if text in "☒☐"] == ["☒", "☐", "☒"]


def test_a_stamp_with_text(tmp_path):
    form = FormPage()
    form.annotate("Stamp", BOX, form.shown("APPROVED", BOX, 16))
    assert texts(form, tmp_path) == ["APPROVED"]


@pytest.mark.parametrize("flags", [HIDDEN, NO_VIEW])
def test_what_no_viewer_shows_is_not_read(tmp_path, flags):
    form = FormPage()
    form.text_field("shown", BOX, "seen")
    form.text_field("secret", (180, 500, 400, 520), "unseen", flags=flags)
    form.check_box("box", (60, 480, 72, 492), on=True, flags=flags)
    form.free_text((60, 260, 300, 280), "unseen too", flags=flags)
    form.annotate("Text", (400, 700, 420, 720), "/Contents (a note that opens on a click)")
    form.annotate("Popup", (420, 700, 500, 760), "/Contents (what opens)")
    assert texts(form, tmp_path) == ["seen"]


def test_a_value_that_its_appearance_does_not_show(tmp_path):
    form = FormPage()
    empty = f"/AP << /N {form.form(220, 20, '/Tx BMC EMC')} 0 R >>"
    form.annotate("Widget", BOX, f"/FT /Tx /T (name) /V (Ada Example) /DA (/Helv 11 Tf 0 g) {empty}")
    layer = rendered(form, tmp_path).text_layer
    assert layer is not None
    (mark,) = layer.marks
    assert mark.text == "Ada Example"
    assert mark.box == pytest.approx((500, 472.2, 1111.1, 527.8), abs=1)


def test_a_value_printed_on_the_page_under_an_empty_field_is_there_once(tmp_path):
    form = FormPage()
    form.text(182, 658, "Ada Example")
    empty = f"/AP << /N {form.form(220, 20, '/Tx BMC EMC')} 0 R >>"
    form.annotate("Widget", BOX, f"/FT /Tx /T (name) /V (Ada Example) /DA (/Helv 11 Tf 0 g) {empty}")
    assert texts(form, tmp_path) == ["Ada Example"]


def test_a_korean_value_that_the_named_font_lacks(tmp_path):
    form = FormPage(need_appearances=True)
    form.text_field("name", BOX, "<FEFFD64DAE38B3D9>", appearance=False)
    assert texts(form, tmp_path) == ["홍길동"]


def test_letters_in_cells_are_one_word_and_passwords_stay_secret(tmp_path):
    form = FormPage()
    form.text_field("code", BOX, "DK4711", kind=COMB, appearance=False)
    form.text_field("password", (180, 500, 400, 520), "sesame", kind=PASSWORD, appearance=False)
    found = texts(form, tmp_path)
    assert "DK4711" in found
    assert not any("sesame" in text for text in found)


def test_the_document_stays_as_it_was(tmp_path):
    form = FormPage()
    form.text_field("name", BOX, "Ada Example")
    form.check_box("box", (60, 480, 72, 492), on=True)
    once = rendered(form, tmp_path)
    twice = rendered(form, tmp_path, times=3)
    one = once.pixels[0, 0, 0]  # in place of arrays, whose comparison is no truth value
    assert replace(once, pixels=one) == replace(twice, pixels=one)
    assert (once.pixels == twice.pixels).all()


def test_xfa_is_named_as_unsupported(tmp_path):
    form = FormPage(xfa=True)
    form.text_field("name", BOX, "Ada Example")
    static = rendered(form, tmp_path)
    assert [(warning.category, "XFA" in warning.message) for warning in static.warnings] == [("unsupported", True)]
    assert static.text_layer is not None
    assert [line.text for line in static.text_layer.lines] == ["Ada Example"]
    dynamic = FormPage(xfa=True, dynamic=True)
    dynamic.text(60, 700, "Please wait")
    (warning,) = rendered(dynamic, tmp_path).warnings
    assert "dynamic XFA" in warning.message
    assert rendered(FormPage(), tmp_path).warnings == ()


def test_thousands_of_annotations_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("pagemill.imaging.annotations._MAX_ANNOTATIONS", 3)
    form = FormPage()
    for i in range(6):
        form.text_field(f"f{i}", (60, 700 - 30 * i, 200, 720 - 30 * i), f"value{i}")
    assert texts(form, tmp_path) == ["value0", "value1", "value2"]
    (warning,) = rendered(form, tmp_path).warnings
    assert "3 of 6" in warning.message
