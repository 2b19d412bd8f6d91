from lxml import etree
from synthetic_run import page, region, sample_pages

from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.export.hocr import document_hocr

XHTML = "{http://www.w3.org/1999/xhtml}"


def parsed(*pages):
    return etree.fromstring("".join(document_hocr(pages)).encode())


def of_class(root, name):
    return [element for element in root.iter() if element.get("class") == name]


def test_pages_areas_lines_and_words_have_their_places() -> None:
    words = (Word("Two", (10.4, 20.6, 30, 40)), Word("words", (40, 20, 80, 40)))
    line = TextLine(text="Two words", box=(10, 20, 80, 40), words=words, confidence=0.876)
    root = parsed(page("d", 3, [region(1, Label.TEXT, "Two words", lines=(line,))], languages=("en",), dpi=200.0))
    (sheet,), (area,) = of_class(root, "ocr_page"), of_class(root, "ocr_carea")
    assert sheet.get("title") == 'image "d.pdf"; bbox 0 0 1000 1400; ppageno 2; scan_res 200 200'
    assert sheet.get("lang") == "en"
    assert area.get("title") == "bbox 100 0 190 90"
    assert [(word.text, word.get("title")) for word in of_class(area, "ocrx_word")] == [
        ("Two", "bbox 10 20 30 40; x_wconf 88"),
        ("words", "bbox 40 20 80 40; x_wconf 88"),
    ]
    assert "".join(of_class(area, "ocr_line")[0].itertext()) == "Two words"


def test_slanted_lines_have_a_baseline_and_turned_ones_an_angle() -> None:
    slanted = TextLine(text="a", box=(0, 0, 100, 30), polygon=((0, 0), (100, 10), (98, 30), (0, 20)))
    upwards = TextLine(text="b", box=(0, 0, 20, 100), polygon=((0, 100), (0, 0), (20, 0), (20, 100)))
    root = parsed(page("d", 1, [region(0, Label.TEXT, "a b", lines=(slanted, upwards))]))
    first, second = (line.get("title") for line in of_class(root, "ocr_line"))
    assert first == "bbox 0 0 100 30; baseline 0.1020 -10.0"
    assert second == "bbox 0 0 20 100; textangle 90.0"


def test_a_document_says_nothing_but_text() -> None:
    wild = '<script>"\x00&\ud800;'
    line = TextLine(text=wild, box=(-5, 0, 10, 10))
    each = page(wild, 1, [region(0, Label.TEXT, wild, lines=(line,))], languages=('"><b', "en"))
    root = parsed(each, *sample_pages())
    assert root.find(f".//{XHTML}script") is None
    assert "".join(of_class(root, "ocr_line")[0].itertext()) == '<script>" & ;'
    assert of_class(root, "ocr_line")[0].get("title") == "bbox 0 0 10 10"
    assert len(of_class(root, "ocr_page")) == 5
    assert len(of_class(root, "ocr_photo")) == 1


def test_text_from_right_to_left_says_so() -> None:
    root = parsed(page("d", 1, [region(0, Label.TEXT, "עלון העירייה"), region(1, Label.TEXT, "plain")]))
    assert [each.get("dir") for each in of_class(root, "ocr_par")] == ["rtl", None]
