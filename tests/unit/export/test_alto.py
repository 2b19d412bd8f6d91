from lxml import etree
from synthetic_run import page, region, sample_pages

from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.export.alto import NAMESPACE, document_alto

ALTO = {"a": NAMESPACE}


def parsed(*pages):
    return etree.fromstring("".join(document_alto(pages)).encode())


def test_pages_blocks_lines_and_words_have_their_places() -> None:
    words = (Word("Two", (10.4, 20.6, 30, 40)), Word("words", (40, 20, 80, 40)))
    corners = ((10.0, 20.0), (80.0, 21.0), (80.0, 40.0), (10.0, 39.0))
    line = TextLine(text="Two words", box=(10, 20, 80, 40), polygon=corners, words=words, confidence=1.5)
    root = parsed(page("d", 3, [region(1, Label.TEXT, "Two words", lines=(line,))], languages=("ko",)))
    (sheet,) = root.iterfind("a:Layout/a:Page", ALTO)
    assert [sheet.get(name) for name in ("PHYSICAL_IMG_NR", "WIDTH", "HEIGHT", "LANG")] == ["3", "1000", "1400", "ko"]
    (block,) = sheet.iterfind("a:PrintSpace/a:TextBlock", ALTO)
    assert block.get("TAGREFS") == "label_text"
    (found,) = block.iterfind("a:TextLine", ALTO)
    assert [child.tag.rpartition("}")[2] for child in found] == ["Shape", "String", "SP", "String"]
    first, second = found.iterfind("a:String", ALTO)
    assert dict(first.attrib) == {
        "CONTENT": "Two",
        "HPOS": "10.4",
        "VPOS": "20.6",
        "WIDTH": "19.6",
        "HEIGHT": "19.4",
        "WC": "1.00",
    }
    assert second.get("CONTENT") == "words"
    assert found.find("a:Shape/a:Polygon", ALTO).get("POINTS") == "10.0,20.0 80.0,21.0 80.0,40.0 10.0,39.0"


def test_pictures_are_illustrations_and_their_lettering_text() -> None:
    root = parsed(page("d", 1, [region(0, Label.IMAGE), region(1, Label.CHART, "axis")]))
    space = root.find(".//a:PrintSpace", ALTO)
    assert [child.tag.rpartition("}")[2] for child in space] == ["Illustration", "Illustration", "TextBlock"]


def test_ids_are_unique_and_labels_defined() -> None:
    root = parsed(*sample_pages(), *sample_pages())
    ids = [element.get("ID") for element in root.iter() if element.get("ID")]
    assert len(ids) == len(set(ids))
    assert {element.get("TAGREFS") for element in root.iter() if element.get("TAGREFS")} <= set(ids)


def test_a_document_says_nothing_but_text() -> None:
    wild = "<x a='\"\x00&\ud800\ufffe"
    line = TextLine(text=wild, box=(0, 0, 10, 10))
    root = parsed(page(wild, 1, [region(0, Label.TEXT, wild, lines=(line,))], languages=("und-Latn",)))
    assert [each.get("CONTENT") for each in root.iter(f"{{{NAMESPACE}}}String")] == ["<x", "a='\"", "&"]
    assert root.find("a:Layout/a:Page", ALTO).get("LANG") is None
