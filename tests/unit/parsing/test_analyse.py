"""What layout missed, found in pages drawn here."""

from dataclasses import replace
from typing import cast

import cv2
import numpy as np
import pytest

from pagemill.config.modes import TablesMode
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.page import PageResult, TextLine
from pagemill.document.symbols import Symbol
from pagemill.errors import MissingDependencyError
from pagemill.export.markdown import page_markdown
from pagemill.imaging.page import DecodedPage, TextLayer
from pagemill.layout.base import DetectedRegion
from pagemill.parsing import analyse
from pagemill.parsing.analyse import analyse_page
from pagemill.parsing.inline_formulas import InlineFormulas
from pagemill.sources.base import DocumentRef, PageRef

REF = PageRef(
    document=DocumentRef(doc_id="d", uri="d.pdf"),
    key=PageKey("0" * 64, 1),
    position=0,
    page_number=1,
    page_id="d_1",
    payload=None,
)


def test_tables_ruled_across_are_found_below_a_table_that_is_the_page():
    pixels = np.full((1400, 1000, 3), 255, np.uint8)
    lines = []
    for left in (40, 540):
        for row in range(4):
            y = 100 + 40 * row
            cv2.line(pixels, (left, y), (left + 420, y), (90, 90, 90), 1)
            lines.append(TextLine(text=f"kind {row}", box=(left + 10, y + 8, left + 80, y + 30)))
            lines.append(TextLine(text="what it is", box=(left + 160, y + 8, left + 300, y + 30)))
        cv2.line(pixels, (left, 260), (left + 420, 260), (90, 90, 90), 1)
        lines += [TextLine(text="running text", box=(left, y, left + 420, y + 22)) for y in range(400, 1300, 30)]
    for line in lines:
        x1, y1, x2, y2 = (int(value) for value in line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:4] = 0
    page_wide = DetectedRegion(box=(20, 60, 980, 1340), label=Label.TABLE, score=0.45, source="onnx")
    record = analyse_page(REF, DecodedPage(pixels=pixels), [page_wide], lines)
    tables = [region.content or "" for region in record.regions if region.label is Label.TABLE]
    assert [(html.count("<tr>"), html.count("kind")) for html in tables] == [(4, 4), (4, 4)]


def grid_page() -> tuple[np.ndarray, list[TextLine]]:
    """A page with a ruled table of three columns and four rows."""
    pixels = np.full((900, 1000, 3), 255, np.uint8)
    for y in range(100, 301, 50):
        cv2.line(pixels, (100, y), (700, y), 0, 2)
    for x in range(100, 701, 200):
        cv2.line(pixels, (x, 100), (x, 300), 0, 2)
    lines = [
        TextLine(
            text=f"cell {row} {column}", box=(120 + 200 * column, 112 + 50 * row, 240 + 200 * column, 136 + 50 * row)
        )
        for row in range(4)
        for column in range(3)
    ]
    lines += [TextLine(text="a line of the text below it", box=(100, y, 700, y + 24)) for y in range(400, 800, 34)]
    for line in lines:
        x1, y1, x2, y2 = (int(value) for value in line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:4] = 0
    return pixels, lines


def tables_of(pixels, lines, *detected: DetectedRegion, **settings) -> PageResult:
    return analyse_page(REF, DecodedPage(pixels=pixels), detected, lines, **settings)


def test_rules_that_cannot_be_read_are_no_table(monkeypatch):
    def explode(*_, **__):
        raise ValueError("broken")

    monkeypatch.setattr(analyse, "recognize_table", explode)
    record = tables_of(*grid_page())
    assert Label.TABLE not in {region.label for region in record.regions}
    assert [(each.component, each.category) for each in record.errors] == [("table", "internal")]
    assert "the rules at (" in record.errors[0].message and "ValueError: broken" in record.errors[0].message
    assert "cell 2 2" in page_markdown(record)


def test_a_ruled_grid_that_is_the_picture_is_a_table():
    pixels, lines = grid_page()
    picture = DetectedRegion(box=(95, 95, 705, 305), label=Label.IMAGE, score=0.9, source="onnx")
    labels = [region.label for region in tables_of(pixels, lines, picture).regions]
    assert labels.count(Label.TABLE) == 1
    assert Label.IMAGE not in labels
    around = replace(picture, box=(20, 20, 980, 390))
    labels = [region.label for region in tables_of(pixels, lines, around).regions]
    assert Label.TABLE not in labels, "a grid in a larger picture is part of it"
    blank = [line for line in lines if line.text.startswith("a line") or line.text in ("cell 0 0", "cell 1 1")]
    assert Label.TABLE not in [region.label for region in tables_of(pixels, blank, picture).regions]


def test_columns_of_prose_are_no_table_whatever_says_so():
    pixels = np.full((1400, 1000, 3), 255, np.uint8)
    lines = []
    for left in (40, 540):
        for y in range(100, 700, 30):
            lines.append(TextLine(text="some words of a sentence that goes on", box=(left, y, left + 420, y + 22)))
    cv2.line(pixels, (20, 80), (980, 80), 0, 2)
    cv2.line(pixels, (500, 80), (500, 720), 0, 2)
    cv2.line(pixels, (20, 720), (980, 720), 0, 2)
    for line in lines:
        x1, y1, x2, y2 = (int(value) for value in line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:4] = 0
    seen = DetectedRegion(box=(20, 80, 980, 720), label=Label.TABLE, score=0.9, source="onnx")
    record = tables_of(pixels, lines, seen)
    assert {region.label for region in record.regions} == {Label.TEXT}
    assert len(record.regions) >= 2, "the columns stay apart"


def test_tables_are_recognized_without_a_model_that_does_not_load(monkeypatch):
    def broken():
        raise MissingDependencyError("the table model cannot be loaded", remedy="Reinstall.")

    monkeypatch.setattr(analyse, "packaged_model", broken)
    pixels, lines = grid_page()
    seen = DetectedRegion(box=(95, 95, 705, 305), label=Label.TABLE, score=0.9, source="onnx")
    record = tables_of(pixels, lines, seen, tables_mode=TablesMode.MODEL)
    (table,) = [region for region in record.regions if region.label is Label.TABLE]
    assert (table.structure, (table.content or "").count("<tr>")) == ("rules", 4)
    (error,) = record.errors
    assert (error.component, error.category, error.remedy) == ("table", MissingDependencyError.category, "Reinstall.")
    assert not tables_of(pixels, lines, seen, tables_mode=TablesMode.RULES).errors


def test_a_formula_that_is_a_table_is_a_table():
    pixels = np.full((900, 1000, 3), 255, np.uint8)
    seen = DetectedRegion(box=(90, 90, 710, 330), label=Label.DISPLAY_FORMULA, score=0.9, source="onnx")

    def page(*texts: str) -> tuple[np.ndarray, list[TextLine]]:
        lines = [
            TextLine(text=texts[(row + column) % len(texts)], box=(x, y, x + 100, y + 24))
            for row, y in enumerate(range(100, 320, 50))
            for column, x in enumerate(range(110, 700, 200))
        ]
        drawn = pixels.copy()
        for line in lines:
            x1, y1, x2, y2 = (int(value) for value in line.box)
            drawn[y1 + 6 : y2 - 6, x1:x2:4] = 0
        return drawn, lines

    cells = page("Total", "1,250", "37%")
    assert [region.label for region in tables_of(*cells, seen).regions] == [Label.TABLE]
    cells[0][140:142, 100:700] = 0  # a rule below the head
    assert analyse._as_table(seen, *cells).label is Label.TABLE
    assert analyse._as_table(replace(seen, label=Label.IMAGE), *cells).label is Label.IMAGE
    # On a photograph what is left of a shadow is not drawn.
    shadow = np.interp(np.arange(cells[0].shape[1]), (300, 700), (1.0, 0.5))[:, None]
    shaded = (cells[0] * shadow).astype(np.uint8), cells[1]
    assert analyse._as_table(seen, *shaded) is seen
    assert analyse._as_table(seen, *shaded, photographed=True).label is Label.TABLE
    # Letters and signs are a matrix, and a drawing is a drawing.
    assert analyse._as_table(seen, *page("a", "0", "+")) is seen
    cv2.circle(cells[0], (400, 200), 90, (0, 0, 0), 4)
    assert analyse._as_table(seen, *cells) is seen


def test_a_picture_that_is_many_amounts_and_rules_is_a_table():
    pixels = np.full((900, 1000, 3), 255, np.uint8)
    lines = [
        TextLine(text="Sum" if x == 110 else "1,250", box=(x, y, x + 100, y + 24))
        for y in range(100, 500, 50)
        for x in range(110, 700, 200)
    ]
    for line in lines:
        x1, y1, x2, y2 = (int(value) for value in line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:4] = 0
    pixels[140:142, 300:700] = 0
    seen = DetectedRegion(box=(90, 90, 710, 490), label=Label.IMAGE, score=0.9, source="onnx")
    assert analyse._as_table(seen, pixels, lines).label is Label.TABLE
    assert analyse._as_table(seen, pixels, [replace_text(line, "word") for line in lines]) is seen


def replace_text(line: TextLine, text: str) -> TextLine:
    return TextLine(text=text, box=line.box)


def form(*, picture: bool = False, low: bool = False) -> tuple[np.ndarray, list[TextLine]]:
    """Five labels below each other, each with a value in a frame; what stands there may be a picture as well."""
    pixels = np.full((800, 1000, 3), 255, np.uint8)
    lines = []
    for row in range(5):
        y = 100 + 60 * row
        for left, right, text in ((60, 180, f"label {row}"), (260, 420, f"value {row}")):
            pixels[y + 6 : y + 18, left:right:3] = 0
            lines.append(TextLine(text=text, box=(left, y, right, y + 24)))
        cv2.rectangle(pixels, (240, y - 4 if low else y - 12), (900, y + 30 if low else y + 36), (0, 0, 0), 2)
    if picture:
        cv2.circle(pixels, (700, 250), 120, (40, 90, 160), -1)
    return pixels, lines


@pytest.mark.parametrize("low", [False, True])
def test_a_picture_that_is_the_fields_of_a_form_is_their_text_row_by_row(low):
    pixels, lines = form(low=low)
    found = DetectedRegion(box=(40, 70, 920, 400), label=Label.IMAGE, score=0.9, source="onnx")
    record = tables_of(pixels, lines, found)
    assert [region.content for region in record.regions] == [f"label {row} value {row}" for row in range(5)]
    assert "value 4" in page_markdown(record)


def test_a_picture_with_words_in_frames_stays_one():
    pixels, lines = form(picture=True)
    found = DetectedRegion(box=(40, 70, 920, 400), label=Label.CHART, score=0.9, source="onnx")
    assert [region.label for region in tables_of(pixels, lines, found).regions] == [Label.CHART]


def test_columns_of_text_with_a_rule_between_them_are_no_fields():
    _, lines = form()
    pixels = np.full((800, 1000, 3), 255, np.uint8)
    for line in lines:
        x1, y1, x2, y2 = map(int, line.box)
        pixels[y1 + 6 : y2 - 6, x1:x2:3] = 0
    pixels[80:400, 240:242] = 0
    found = DetectedRegion(box=(40, 70, 920, 400), label=Label.IMAGE, score=0.9, source="onnx")
    assert not analyse._as_fields(found, pixels, lines)


def titled_table(row: int, first: str, *others: str) -> dict[Label, str]:
    """What is found of a table with a row of its own among the others."""
    pixels = np.full((800, 800, 3), 255, np.uint8)
    rows = [["Name", "Total", "Share"], *([f"town{i}", f"{i}10", f"{i}.5%"] for i in range(4))]
    rows.insert(row, [first, *others])
    lines = [
        TextLine(text=text, box=(100 + 200 * x, 100 + 50 * y, 200 + 200 * x, 130 + 50 * y), confidence=1.0)
        for y, texts in enumerate(rows)
        for x, text in enumerate(texts)
        if text
    ]
    whole = DetectedRegion(box=(90, 90, 710, 390), label=Label.TABLE, score=0.9, source="model")

    record = tables_of(pixels, lines, whole, tables_mode=TablesMode.RULES)
    return {region.label: region.content or "" for region in record.regions}


@pytest.mark.parametrize("title", ["ตารางที่ 1: สะพาน", "Taulukko 3. Sillat", "表 2：学校", "● 表2: 学校"])
@pytest.mark.parametrize("row", [0, 5])
def test_a_title_in_the_first_or_last_row_of_a_table_is_no_cell(title: str, row: int) -> None:
    found = titled_table(row, "", title)
    assert title[-4:] in found[Label.FIGURE_TITLE]
    assert title[-4:] not in found[Label.TABLE] and found[Label.TABLE].count("<tr>") == 5


def test_a_row_of_cells_that_begins_like_a_title_stays_in_its_table() -> None:
    found = titled_table(5, "Phase 3: Mill", "July", "30")
    assert found[Label.TABLE].count("<tr>") == 6 and Label.FIGURE_TITLE not in found


def across(x: int, y: int, text: str, height: int = 24) -> TextLine:
    """A line that runs up a page, from its foot at y."""
    x2, y1 = x + height, y - 12 * len(text)
    return TextLine(text=text, box=(x, y1, x2, y), polygon=((x, y), (x, y1), (x2, y1), (x2, y)), engine="ocr")


def tier(x: int, rows: int, name: str) -> list[TextLine]:
    return [
        TextLine(text=f"{name} {row}", box=(x, 100 + 34 * row, x + 240, 124 + 34 * row), engine="ocr")
        for row in range(rows)
    ]


def test_an_advert_across_a_turned_newspaper_is_read_after_the_article_above_it_row_by_row():
    pixels = np.full((900, 1200, 3), 255, np.uint8)
    heads = [TextLine(text=name, box=(x, 40, x + 300, 88), engine="ocr") for name, x in (("One", 20), ("Two", 620))]
    texts = [*tier(20, 10, "first"), *tier(290, 20, "second"), *tier(620, 20, "third"), *tier(890, 20, "fourth")]
    advert = [across(40, 860, "for sale"), across(68, 860, "a boat"), across(96, 860, "and a mill")]
    lines = [*heads, *reversed(advert), *texts]
    record = analyse_page(REF, DecodedPage(pixels=pixels), [], lines, is_turned=True)
    said = [(region.content or "").split("\n")[0][:6] for region in record.regions]
    assert [text.strip() for text in said] == ["One", "first", "second", "for sa", "Two", "third", "fourth"]
    assert record.regions[3].content == "for sale a boat and a mill"


def test_a_ruled_table_across_a_turned_newspaper_is_recognised_as_it_was():
    pixels, cells = grid_page()
    cells = [line for line in cells if line.text.startswith("cell")]
    up = [across(int(line.box[1]), 1000 - int(line.box[0]), line.text) for line in cells]
    text = [TextLine(text="text of a tier beside it", box=(400, y, 860, y + 24)) for y in range(40, 900, 34)]
    record = analyse_page(REF, DecodedPage(pixels=np.rot90(pixels).copy()), [], [*up, *text], is_turned=True)
    (table,) = [region for region in record.regions if region.label is Label.TABLE]
    assert (table.content or "").count("<tr>") == 4
    assert (table.content or "").index("cell 0 2") < (table.content or "").index("cell 1 0")
    assert table.bbox[2] < 320


def test_the_latex_of_a_formula_stays_with_it_where_rows_change_the_regions(monkeypatch):
    lines = [TextLine(text=f"goods {row}", box=(50, 150 + 38 * row, 160, 180 + 38 * row)) for row in range(4)]
    lines += [TextLine(text=f"{row}.48", box=(450, 150 + 38 * row, 520, 180 + 38 * row)) for row in range(4)]
    lines += [TextLine(text="a = b", box=(200, 500, 300, 530)), TextLine(text="so it is", box=(50, 600, 300, 630))]
    boxes = ((45, 145, 300, 300), (400, 145, 525, 300), (50, 600, 300, 630), (200, 500, 300, 530))
    labels = (Label.TEXT, Label.TEXT, Label.TEXT, Label.DISPLAY_FORMULA)
    regions = [
        DetectedRegion(box=box, label=label, score=0.9, source="onnx") for box, label in zip(boxes, labels, strict=True)
    ]
    monkeypatch.setattr(analyse, "_with_formulas", lambda *_: (regions, {3: "a=b"}, InlineFormulas()))
    layer = TextLayer(lines=(), characters=0, unmapped=0, symbols=(cast(Symbol, None),))
    page = DecodedPage(pixels=np.full((900, 600, 3), 255, np.uint8), text_layer=layer)
    record = analyse_page(REF, page, regions, lines)
    said = {region.label: region.content for region in record.regions}
    assert said[Label.DISPLAY_FORMULA] == "a=b"
    assert said[Label.TEXT] == "so it is"


def test_lines_across_in_the_cells_of_a_level_table_are_nowhere_else():
    pixels, lines = grid_page()
    heads = [across(310, 290, "for sale"), across(510, 290, "two three")]
    record = analyse_page(REF, DecodedPage(pixels=pixels), [], [*heads, *lines], is_turned=True)
    said = page_markdown(record)
    assert [said.count(word) for word in ("sale", "three")] == [1, 1]
    assert "two three" in next(region.content or "" for region in record.regions if region.label is Label.TABLE)
