"""What docling-core makes of a DoclingDocument that pagemill wrote without it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from synthetic_run import TABLE, failed_page, page, region, sample_pages

import pagemill
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Description, Furniture, ImageCrop, Mark, PageResult, Span, TextLine
from pagemill.export.docling_document import PageImage, docling_document

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument

FORMULA = r"E = mc^2"


def test_nothing_needs_docling_core() -> None:
    sources = Path(pagemill.__file__).parent.rglob("*.py")
    imported = re.compile(r"^\s*(import|from) docling", re.MULTILINE)
    assert not [path for path in sources if imported.search(path.read_text(encoding="utf-8"))]


def written(pages: list[PageResult], **options: Any) -> dict[str, Any]:
    return json.loads("".join(docling_document(pages, **options)))


def loaded(pages: list[PageResult], **options: Any) -> DoclingDocument:
    from docling_core.types.doc.document import DoclingDocument  # on use, as it takes a second

    return DoclingDocument.model_validate(written(pages, **options))


def full_page() -> PageResult:
    return page(
        "mill",
        3,
        [
            region(0, Label.HEADER, "Annual report", furniture=Furniture.PROVEN),
            region(1, Label.DOC_TITLE, "Mills", level=1),
            region(2, Label.PARAGRAPH_TITLE, "1.1 Wheels", level=3),
            region(3, Label.TEXT, "- oak\n  1. heart\n  2. sap\n- ash", list_item=True),
            region(4, Label.TEXT, "  가. elm", list_item=True),
            region(5, Label.CHART, "10 20 30", score=0.75, source="layout"),
            region(6, Label.FIGURE_TITLE, "Figure 2: Loss", caption_of=5),
            region(7, Label.DISPLAY_FORMULA, FORMULA, content_format=ContentFormat.LATEX),
            region(8, Label.FORMULA_NUMBER, "(3)", caption_of=7),
            region(9, Label.ALGORITHM, "for x in y:\n    pass"),
            region(10, Label.FOOTNOTE, "1 Dry."),
            region(11, Label.TABLE, TABLE, content_format=ContentFormat.HTML),
            region(12, Label.SEAL, "Approved"),
            region(13, Label.NUMBER, "3", furniture=Furniture.PROVEN),
        ],
        image_crops=[ImageCrop(path="crops/mill_3_crop_5.jpg", bbox=(0, 0, 9, 9), label=Label.CHART, region=5)],
        dpi=144.0,
    )


def marked_page() -> PageResult:
    link = "https://x.org/a"
    return page(
        "mill",
        1,
        [
            region(0, Label.PARAGRAPH_TITLE, "All bold", level=2, spans=(Span(0, 8, Mark.BOLD),)),
            region(
                1, Label.TEXT, "The bold word, a link and f(x).",
                spans=(Span(4, 8, Mark.BOLD), Span(17, 21, Mark.LINK, link), Span(26, 30, Mark.CODE)),
            ),
            region(2, Label.TEXT, "Nothing else", spans=(Span(0, 12, Mark.ITALIC),)),
            region(3, Label.TEXT, "- plain\n- with gone words", list_item=True, spans=(Span(15, 19, Mark.STRIKE),)),
            region(4, Label.TEXT, "Inside the item.", list_depth=1),
            region(5, Label.ALGORITHM, "x = 1", list_depth=1),
            region(6, Label.TEXT, "- last", list_item=True),
            region(7, Label.TEXT, "굵게는 글", spans=(Span(0, 2, Mark.BOLD),)),
        ],
    )  # fmt: skip


def test_marks_and_blocks_inside_items() -> None:
    document = loaded([marked_page()])
    assert document.export_to_markdown() == (
        "## All bold\n\nThe **bold** word, a [link](https://x.org/a) and `f(x)` .\n\n*Nothing else*\n\n"
        "- plain\n- with ~~gone~~ words\nInside the item.\n```\nx = 1\n```\n- last\n\n굵게는 글"
    )
    from docling_load import compared  # on use, as docling takes a second

    common, ours, theirs, _ = compared([marked_page()])
    assert common == ours == theirs
    pieces = [item for item in document.texts if item.parent and item.parent.cref == "#/groups/0"]
    assert [(piece.text, piece.prov[0].charspan) for piece in pieces[:2]] == [("The", (0, 3)), ("bold", (0, 4))]
    outer = document.groups[1].children
    assert [getattr(item.resolve(document), "orig", "") for item in outer] == ["- plain", "- with gone words", "- last"]
    inner = [child.resolve(document) for child in outer[1].resolve(document).children]
    assert [item.label.value for item in inner] == ["inline", "text", "code"]


def test_labels_levels_and_layers() -> None:
    document = loaded([full_page()])
    body = [(item.label.value, getattr(item, "text", "")) for item, _ in document.iterate_items()]
    assert body == [
        ("title", "Mills"),
        ("section_header", "1.1 Wheels"),
        *[("list_item", text) for text in ("oak", "heart", "sap", "ash", "elm")],
        ("picture", ""),
        ("caption", "Figure 2: Loss"),
        ("formula", FORMULA + r" \tag{3}"),
        ("code", "for x in y:\n    pass"),
        ("table", ""),
        ("picture", ""),
        ("text", "Approved"),
        ("footnote", "1 Dry."),
    ]
    assert next(each for each in document.texts if each.label == "section_header").level == 2
    furniture = document.iterate_items(included_content_layers={"furniture"})
    assert [(item.label.value, item.text) for item, _ in furniture] == [
        ("page_header", "Annual report"),
        ("page_header", "3"),  # in the upper half
    ]


def test_lists_are_nested_and_keep_their_numbers() -> None:
    document = loaded([full_page()])
    items = [(each.text, each.enumerated, each.marker) for each in document.texts if each.label == "list_item"]
    assert items == [
        ("oak", False, "-"),
        ("heart", True, "1."),
        ("sap", True, "2."),
        ("ash", False, "-"),
        ("elm", True, "가."),
    ]
    outer, inner, last = document.groups
    assert [child.resolve(document).text for child in outer.children if "texts" in child.cref] == ["oak", "ash"]
    assert inner.parent.resolve(document).text == "oak" and last.parent.resolve(document).text == "ash"


def test_tables_keep_spans_and_heads() -> None:
    (table,) = loaded([full_page()]).tables
    assert (table.data.num_rows, table.data.num_cols) == (3, 3)
    assert [(cell.text, cell.row_span, cell.col_span, cell.column_header) for cell in table.data.table_cells[:3]] == [
        ("Vat", 2, 1, True),
        ("Weight", 1, 2, True),
        ("in", 1, 1, True),
    ]
    assert not any(cell.column_header for cell in table.data.table_cells if cell.start_row_offset_idx == 2)


def test_a_picture_has_its_caption_class_crop_and_lettering() -> None:
    document = loaded([full_page()])
    chart, seal = document.pictures
    assert chart.caption_text(document) == "Figure 2: Loss"
    prediction = chart.meta.classification.get_main_prediction()
    assert (prediction.class_name, prediction.confidence) == ("other_chart", 0.75)
    assert str(chart.image.uri) == "crops/mill_3_crop_5.jpg"
    assert "10 20 30" in [child.resolve(document).text for child in chart.children]
    assert seal.meta.classification.get_main_prediction().class_name == "stamp"


def test_boxes_are_in_points_from_the_top_left_corner() -> None:
    document = loaded([full_page()])
    assert document.pages[3].size.as_tuple() == (500.0, 700.0)  # 1000 x 1400 pixels at 144 dpi
    place = document.texts[1].prov[0]
    assert (place.page_no, place.bbox.coord_origin.value) == (3, "TOPLEFT")
    assert place.bbox.as_tuple() == (50.0, 0.0, 95.0, 45.0)


def test_a_paragraph_over_two_pages_has_two_places() -> None:
    document = loaded(sample_pages()[:2])
    text = next(each for each in document.texts if each.text.startswith("Water"))
    assert text.text == "Water turns the wheel and the wheel turns the beater, day and night."
    assert [(place.page_no, text.text[slice(*place.charspan)]) for place in text.prov] == [
        (1, "Water turns the wheel and the wheel turns the bea"),
        (2, "ter, day and night."),
    ]


def test_items_of_a_list_stand_where_their_lines_do() -> None:
    lines = tuple(TextLine(text="- item", box=(0.0, y, 90.0, y + 10.0)) for y in (0.0, 20.0))
    document = loaded([page("a", 1, [region(0, Label.TEXT, "- item\n- item", list_item=True, lines=lines)])])
    assert [each.prov[0].bbox.t for each in document.texts] == [0.0, 20.0]


def test_numbers_of_pages_are_unique() -> None:
    pages = [page("a", 5), page("a", 5), failed_page("a", 0)]
    pages[1].page_id, pages[2].page_number = "other", None
    assert sorted(loaded(pages).pages) == [5, 6, 7]


def test_what_is_no_unicode_is_written_anyway() -> None:
    assert loaded([page("a\udc80", 1, [region(0, Label.TEXT, "\udc80 x")])]).texts[0].text == "\ufffd x"


def test_images_of_pages() -> None:
    document = loaded([full_page()], page_image=lambda page: PageImage("pages/a.png", 500, 700))
    image = document.pages[3].image
    assert (image.mimetype, image.dpi, str(image.uri), image.size.as_tuple()) == (
        *("image/png", 72, "pages/a.png"),
        (500, 700),
    )


@pytest.mark.parametrize("pages", [sample_pages()[:3], [full_page()]])
def test_its_markdown_says_what_ours_does(pages: list[PageResult]) -> None:
    from docling_load import compared  # on use, as docling takes a second

    common, ours, theirs, chunks = compared(pages)
    assert common == ours == theirs and chunks


def test_its_chunker_keeps_headings_and_heads() -> None:
    from docling_core.transforms.chunker.hybrid_chunker import HybridChunker

    from docling_load import WordTokenizer

    chunks = list(HybridChunker(tokenizer=WordTokenizer()).chunk(loaded([full_page()])))
    assert {tuple(chunk.meta.headings) for chunk in chunks} == {("Mills", "1.1 Wheels")}
    assert any("Figure 2: Loss" in chunk.text for chunk in chunks)


def test_descriptions_and_the_data_of_charts() -> None:
    said = Description(
        summary="Losses.", keywords=("loss", "mill"), chart=(("step", "kg"), ("wash", "9")), engine="vlm:x"
    )
    regions = [
        region(0, Label.CHART, description=said),
        region(1, Label.DISPLAY_FORMULA, FORMULA, content_format=ContentFormat.LATEX, description=said),
        region(2, Label.TABLE, TABLE, content_format=ContentFormat.HTML, description=said),
    ]
    document = loaded([page("mill", 1, regions)])
    (chart,), (table,) = document.pictures, document.tables
    assert (chart.meta.description.text, chart.meta.description.created_by) == ("Losses.\nloss, mill", "vlm:x")
    cells = chart.meta.tabular_chart.chart_data.table_cells
    assert [(cell.text, cell.column_header) for cell in cells] == [
        *[("step", True), ("kg", True), ("wash", False), ("9", False)]
    ]
    assert table.meta.description.text == "Losses.\nloss, mill"
    assert document.texts[0].meta.summary.text == "Losses.\nloss, mill"


def test_long_lists_take_time_with_their_length() -> None:
    """Minutes, if it took time with its square."""
    items = "\n".join("- a" for _ in range(6_000))
    lines = [TextLine(text="- a", box=(0, number, 9, number + 1)) for number in range(6_000)]
    (group,) = written([page("mill", 1, [region(0, Label.TEXT, items, list_item=True, lines=lines)])])["groups"]
    assert len(group["children"]) == 6_000


def test_only_pictures_have_a_classification() -> None:
    seal = region(0, Label.SEAL, FORMULA, content_format=ContentFormat.LATEX)
    picture, formula = [*loaded([page("mill", 1, [seal])]).pictures, *loaded([page("mill", 1, [seal])]).texts][:2]
    assert picture.meta.classification
    assert formula.meta is None
