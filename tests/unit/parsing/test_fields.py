"""Filled-in fields: joined to their labels, and in the Markdown whatever layout takes them for."""

import pytest

from pagemill.document.labels import Label
from pagemill.document.page import PageResult, TextLine
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.assemble import assemble_regions
from pagemill.parsing.inline_formulas import InlineFormulas


def line(text, x, y, *, engine="text-layer"):
    return TextLine(text=text, box=(x, y, x + 10.0 * len(text), y + 20.0), font_size=20.0, engine=engine)


def field(text, x, y):
    return line(text, x, y, engine="annotation")


def region(label, *box):
    return DetectedRegion(box=box, label=label, score=0.9, source="onnx")


def contents(regions, lines):
    record = PageResult(page_id="a", page_idx=0, doc_id="a", source="a", page_number=1, width=1000, height=1400)
    assemble_regions(record, regions, lines, {}, {}, InlineFormulas())
    return [(one.label, one.content) for one in record.regions]


def test_values_in_a_column_of_their_own_go_to_their_labels():
    labels = [line("Name:", 100, 500), line("Date:", 100, 600), line("Purpose:", 100, 700)]
    values = [field("Ada", 400, 500), field("Monday", 400, 600), field("Paper for", 400, 700), field("books", 400, 722)]
    regions = [region(Label.TEXT, 90, 490, 300, 730), region(Label.TEXT, 390, 490, 600, 750)]
    (form,) = contents(regions, [*labels, *values])
    assert form[1].split() == ["Name:", "Ada", "Date:", "Monday", "Purpose:", "Paper", "for", "books"]


def test_a_label_may_be_of_several_words():
    rows = [line("Name of the applicant", 100, 500), field("Ada", 400, 500)]
    regions = [region(Label.TEXT, 90, 490, 390, 530), region(Label.TEXT, 395, 490, 600, 530)]
    assert contents(regions, rows) == [(Label.TEXT, "Name of the applicant Ada")]


def test_a_note_beside_running_text_stays_apart():
    rows = [
        line("A paragraph of running text that is far too long to label a field", 50, 500 + 24 * i) for i in range(4)
    ]
    regions = [region(Label.TEXT, 40, 490, 720, 600), region(Label.TEXT, 760, 490, 960, 540)]
    found = contents(regions, [*rows, field("see page 4", 770, 524)])
    assert "see page 4" in [content for _, content in found]


def test_a_form_taken_for_a_picture_keeps_labels_and_values():
    found = contents([region(Label.IMAGE, 90, 480, 700, 800)], [line("Name:", 100, 500), field("Ada", 300, 500)])
    assert (Label.TEXT, "Name: Ada") in found


@pytest.mark.parametrize("label", [Label.HEADER, Label.FOOTER, Label.NUMBER, Label.ASIDE_TEXT])
def test_a_value_is_never_a_running_head(label):
    body = [line(f"Running text in row number {i} of the page", 100, 400 + 24 * i) for i in range(8)]
    regions = [region(label, 90, 20, 400, 60), region(Label.TEXT, 90, 390, 700, 600)]
    found = contents(regions, [field("4711", 100, 30), *body])
    assert (Label.TEXT, "4711") in found
