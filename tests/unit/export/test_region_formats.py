"""Plain text, DocTags and COCO boxes of drawn-up pages."""

import io
import json

import pytest

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, Furniture, PageResult, Region
from pagemill.export.coco import write_coco
from pagemill.export.doctags import document_doctags
from pagemill.export.plain_text import document_text

TABLE = (
    "<table><tr><th colspan=2>a &lt;b&gt;</th></tr><tr><td rowspan=2>c</td><td></td></tr><tr><td>d</td></tr></table>"
)


def region(index: int, label: Label, content: str | None, **more: object) -> Region:
    return Region(
        index=index, label=label, content=content, bbox=(10, 20, 60, 80), bbox_2d=(100, 200, 600, 800), **more
    )


@pytest.fixture
def pages() -> list[PageResult]:
    first = [
        region(0, Label.HEADER, "head", furniture=Furniture.PROVEN),
        region(1, Label.DOC_TITLE, "Title", level=1),
        region(2, Label.PARAGRAPH_TITLE, "Part", level=2),
        region(3, Label.TEXT, "x < y & z", score=0.5),
        region(4, Label.TEXT, "one\ntwo", list_item=True),
    ]
    second = [
        region(0, Label.TABLE, TABLE, content_format=ContentFormat.HTML),
        region(1, Label.FIGURE_TITLE, "Table 1", caption_of=0),
        region(2, Label.IMAGE, None),
        region(3, Label.DISPLAY_FORMULA, "a^2", content_format=ContentFormat.LATEX),
    ]
    given = [(1, first, 100), (2, second, 100), (3, [], 0)]
    return [
        PageResult(
            page_id=f"d_{number}",
            page_idx=number - 1,
            page_number=number,
            doc_id="d",
            source="d.pdf",
            width=width,
            height=width,
            regions=regions,
        )
        for number, regions, width in given
    ]


def test_plain_text(pages: list[PageResult]):
    text = "".join(document_text(pages))
    assert text.startswith("Title\n\nPart\n\nx < y & z\n\n")
    assert "a <b>\ta <b>\nc\t\nc\td\nTable 1\n" in text
    assert "head" not in text
    assert "a^2" in text


def test_doctags(pages: list[PageResult]):
    place = "<loc_50><loc_100><loc_300><loc_400>"
    lines = "".join(document_doctags(pages)).splitlines()
    assert lines == [
        f"<doctag><page_header>{place}head</page_header>",
        f"<title>{place}Title</title>",
        f"<section_header_level_1>{place}Part</section_header_level_1>",
        f"<text>{place}x &lt; y &amp; z</text>",
        f"<unordered_list><list_item>{place}one</list_item>",
        f"<list_item>{place}two</list_item>",
        "</unordered_list>",
        "<page_break>",
        f"<otsl>{place}<caption>{place}Table 1</caption>"
        "<ched>a &lt;b&gt;<lcel><nl><fcel>c<ecel><nl><ucel><fcel>d<nl></otsl>",
        f"<picture>{place}</picture>",
        f"<formula>{place}a^2</formula>",
        "<page_break>",
        "</doctag>",
    ]
    assert "".join(document_doctags([])) == ""


def test_doctags_are_read_by_docling(pages: list[PageResult]):
    document = pytest.importorskip("docling_core.types.doc.document")
    tags = pytest.importorskip("docling_core.types.doc.base", reason="images are not needed")
    assert tags
    made = document.DocTagsDocument.from_multipage_doctags_and_images("".join(document_doctags(pages[:2])), None)
    read = document.DoclingDocument.load_from_doctags(made)
    assert len(read.tables) == 1
    assert (read.tables[0].data.num_rows, read.tables[0].data.num_cols) == (3, 2)
    assert [each.text for each in read.texts][:3] == ["head", "Title", "Part"]


def test_coco(pages: list[PageResult]):
    stream = io.BytesIO()
    write_coco(stream, pages)
    coco = json.loads(stream.getvalue())
    assert [each["file_name"] for each in coco["images"]] == ["d_1", "d_2"]  # the third failed
    assert len(coco["annotations"]) == 9
    names = {each["id"]: each["name"] for each in coco["categories"]}
    found = coco["annotations"][3]
    assert names[found["category_id"]] == "text"
    assert (found["bbox"], found["area"], found["score"], found["image_id"]) == ([10, 20, 50, 60], 3000, 0.5, 1)
    empty = io.BytesIO()
    write_coco(empty, [])
    assert json.loads(empty.getvalue())["annotations"] == []
