import synthetic_run

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat
from pagemill.export.context import LONGEST_HEADING, Sections, heading_level


def region(label, content="words", **fields):
    return synthetic_run.region(0, label, content, **fields)


def paths(*regions):
    sections = Sections()
    return ["/".join(sections.path(each)) for each in regions]


def test_headings_end_where_one_of_their_level_or_above_begins():
    assert paths(
        region(Label.TEXT),
        region(Label.DOC_TITLE, "Mill", level=1),
        region(Label.PARAGRAPH_TITLE, "Wheel", level=2),
        region(Label.PARAGRAPH_TITLE, "Axle", level=4),
        region(Label.TEXT),
        region(Label.PARAGRAPH_TITLE, "Rim", level=3),
        region(Label.TABLE),
        region(Label.PARAGRAPH_TITLE, "Water"),
        region(Label.FOOTNOTE),
        region(Label.DOC_TITLE, "Annex"),
        region(Label.TEXT),
    ) == [
        "",
        "",
        "Mill",
        "Mill/Wheel",
        "Mill/Wheel/Axle",
        "Mill/Wheel",
        "Mill/Wheel/Rim",
        "Mill",
        "Mill/Water",
        "",
        "Annex",
    ]


def test_furniture_has_no_section():
    assert paths(region(Label.DOC_TITLE, "Mill"), region(Label.HEADER), region(Label.NUMBER, "3")) == ["", "", ""]


def test_a_heading_nobody_could_read_is_none():
    assert heading_level(region(Label.PARAGRAPH_TITLE, None)) is None
    assert paths(region(Label.DOC_TITLE, "Mill"), region(Label.PARAGRAPH_TITLE, " "), region(Label.TEXT)) == [
        "",
        "Mill",
        "Mill",
    ]


def test_headings_are_one_line_without_marks_and_bounded():
    marked = region(Label.DOC_TITLE, "**The\n Mill**", content_format=ContentFormat.MARKDOWN)
    assert paths(marked, region(Label.TEXT))[1] == "The Mill"
    long = paths(region(Label.DOC_TITLE, "x" * 5000), region(Label.TEXT))[1]
    assert len(long) == LONGEST_HEADING and long.endswith("…")
