import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_schemas import as_text, schemas

from pagemill.document.geometry import normalise_1000
from pagemill.document.labels import Category, Label, category_of
from pagemill.document.page import (
    ContentFormat,
    Description,
    ImageCrop,
    PageError,
    PageResult,
    Region,
    Status,
    TextLine,
    Word,
)
from pagemill.export.docjson import DocJSON, document_json, pages_from_docjson
from pagemill.export.markdown import page_markdown

PUBLISHED = Path(__file__).parents[3] / "docs" / "schema"


def pages():
    line = TextLine(text="Prose.", box=(1.0, 2.0, 30.0, 12.0))
    regions = [
        Region(
            index=0, label=Label.TEXT, bbox_2d=(0, 0, 9, 9), bbox=(1, 2, 3, 4), content="Prose.", lines=(line,)
        ),
        Region(
            index=1, label=Label.TABLE, bbox_2d=(0, 0, 9, 9), bbox=(1.0, 2.0, 3.0, 4.0), content="<table></table>",
            content_format=ContentFormat.HTML, attempts=4,
        ),
        Region(
            index=2, label=Label.FIGURE_TITLE, bbox_2d=(0, 0, 9, 9), bbox=(1, 2, 3, 4), content="Table 1", caption_of=1
        ),
        Region(index=3, label=Label.IMAGE, bbox_2d=(0, 0, 9, 9), bbox=(1.0, 2.0, 3.0, 4.0)),
    ]  # fmt: skip
    crop = ImageCrop(path="crops/d_1_crop_3.jpg", bbox=(0, 0, 9, 9), label=Label.IMAGE, region=3)
    first = PageResult(
        page_id="d_1", page_idx=0, doc_id="d", source="d.pdf", page_number=1, width=10, height=20,
        regions=regions, image_crops=[crop],
    )  # fmt: skip
    error = PageError(component="decode", category="crash", message="it died")
    failed = PageResult(
        page_id="d_2", page_idx=1, doc_id="d", source="d.pdf", page_number=2, status=Status.FAILED, errors=[error]
    )
    return [first, failed]


def document_of(pages):
    return msgspec.json.decode("".join(document_json(iter(pages))), type=DocJSON)


def test_pieces_make_the_published_structure():
    document = document_of(pages())
    assert (document.schema_version, document.doc_id, document.page_count) == ("2.1", "d", 2)
    first, failed = document.pages
    assert [element.id for element in first.elements] == ["d_1/0", "d_1/1", "d_1/2", "d_1/3"]
    assert [element.category for element in first.elements] == [
        Category.TEXT, Category.TABLE, Category.TEXT, Category.FIGURE,
    ]  # fmt: skip
    assert first.elements[1].content == "<table></table>"
    assert [element.attempts for element in first.elements] == [1, 4, 1, 1]
    assert first.elements[2].caption_of == "d_1/1"
    assert first.elements[3].crop.path == "crops/d_1_crop_3.jpg"
    assert (first.status, failed.status, failed.elements) == (Status.DONE, Status.FAILED, [])
    assert failed.errors[0].message == "it died"


def test_elements_know_their_section_and_the_text_around_them():
    texts = [(Label.DOC_TITLE, "Mill", 1), (Label.PARAGRAPH_TITLE, "Wheels", 2), (Label.TEXT, "Before it.", None),
             (Label.IMAGE, None, None), (Label.TEXT, "After it.", None), (Label.PARAGRAPH_TITLE, "Stones", 2),
    ]  # fmt: skip
    regions = [
        Region(index=i, label=label, bbox_2d=(0, 0, 9, 9), bbox=(1, 2, 3, 4), content=content, level=level)
        for i, (label, content, level) in enumerate(texts)
    ]
    first = PageResult(page_id="d_1", page_idx=0, doc_id="d", source="d", page_number=1, regions=regions)
    second = msgspec.structs.replace(first, page_id="d_2", page_number=2, regions=regions[2:3])
    document = document_of([first, second])
    elements = document.pages[0].elements
    assert [element.section for element in elements] == [
        (), ("Mill",), ("Mill", "Wheels"), ("Mill", "Wheels"), ("Mill", "Wheels"), ("Mill",),
    ]  # fmt: skip
    assert document.pages[1].elements[0].section == ("Mill", "Stones")
    assert (elements[3].before, elements[3].after) == ("Mill Wheels Before it.", "After it. Stones")
    assert elements[2].before == ""  # its neighbours say it


def test_no_elements_is_still_json():
    assert json.loads("".join(document_json(pages()[1:])))["pages"][0]["elements"] == []


def test_lone_surrogates_are_replaced():
    first, _ = pages()
    first.source, first.regions[0].content = "caf\udce9.pdf", "\ud800x"
    document = json.loads("".join(document_json([first])))
    assert (document["source"], document["pages"][0]["elements"][0]["content"]) == ("caf\ufffd.pdf", "\ufffdx")


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
POSITION = st.integers(0, 800).map(lambda tenth: tenth / 10)
BOX = st.tuples(POSITION, POSITION, POSITION, POSITION).map(
    lambda box: (min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3]))
)
LINE = st.builds(
    TextLine, text=TEXT, box=BOX, confidence=st.floats(0, 1), engine=TEXT, bold=st.booleans(),
    font_size=st.none() | st.floats(1, 90), words=st.lists(st.builds(Word, text=TEXT, box=BOX), max_size=2).map(tuple),
)  # fmt: skip
DESCRIPTION = st.builds(
    Description, summary=TEXT, keywords=st.lists(TEXT, max_size=3).map(tuple), language=TEXT, engine=TEXT, model=TEXT,
    chart=st.none() | st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3).map(tuple), attempts=st.integers(1, 9),
)  # fmt: skip
REGION = st.builds(
    Region, index=st.just(0), label=st.sampled_from(Label), bbox=BOX, bbox_2d=st.just((0, 0, 0, 0)),
    content=st.none() | TEXT, content_format=st.sampled_from(ContentFormat), score=st.none() | st.floats(0, 1),
    polygon=st.none() | st.just(((0.0, 0.0), (9.0, 0.5), (0.0, 7.5))), source=TEXT, engine=st.none() | TEXT,
    structure=st.none() | TEXT, attempts=st.integers(1, 9), confidence=st.none() | st.floats(0, 1),
    level=st.none() | st.integers(1, 6), list_item=st.booleans(), continues=st.booleans(),
    description=st.none() | DESCRIPTION, lines=st.lists(LINE, max_size=2).map(tuple), caption_of=st.integers(0, 9),
)  # fmt: skip
PAGE = st.builds(
    PageResult, page_id=TEXT, page_idx=st.integers(0, 9), doc_id=st.just("d/1"), source=st.just("s"),
    page_number=st.none() | st.integers(0, 9), width=st.integers(0, 80), height=st.integers(0, 80),
    regions=st.lists(REGION, max_size=4), dpi=st.none() | st.floats(1, 600), rotation=st.sampled_from((0, 90)),
    scale=st.floats(0.1, 1), unwarped=TEXT, page_key=TEXT, status=st.sampled_from(Status), missing=st.integers(0, 9),
    errors=st.lists(st.builds(PageError, component=TEXT, category=TEXT, message=TEXT, region=st.none()), max_size=2),
    attempts=st.integers(1, 9), languages=st.lists(TEXT, max_size=2).map(tuple), text_source=TEXT,
    timings=st.dictionaries(TEXT, st.floats(0, 9)), metadata=st.dictionaries(TEXT, TEXT | st.lists(st.integers(0, 9))),
)  # fmt: skip


@given(st.lists(PAGE, min_size=1, max_size=3))
def test_records_come_back_as_they_were(records):
    """Boxes in thousandths, crops' boxes and the Markdown follow from the rest, as they do when a page is parsed."""
    for page in records:
        for index, region in enumerate(page.regions):
            region.index, region.bbox_2d = index, normalise_1000(region.bbox, page.width, page.height)
            region.caption_of = region.caption_of if region.caption_of < len(page.regions) else None
        page.image_crops = [
            ImageCrop(path="x", bbox=region.bbox_2d, label=region.label, region=region.index, size=3, sha256="ab")
            for region in page.regions if region.label is Label.IMAGE
        ]  # fmt: skip
        page.markdown = page_markdown(page)
    assert pages_from_docjson("".join(document_json(records))) == records


@pytest.mark.parametrize(
    "data",
    ["", "[]", "{}", b"\xff", "[" * 100_000, '{"schema_version":"1.5","elements":[],"pages":[]}',
     '{"schema_version":"1.5","doc_id":"d","source":"s","pages":[],"page_count":0}',
     '{"schema_version":"2.0","doc_id":"d","source":"s","pages":[],"page_count":0}',
     '{"schema_version":"2.1","doc_id":"d","source":"s","pages":[],"page_count":5}',
     '{"schema_version":"2.1","doc_id":"d","source":"s","page_count":1,"pages":[{"page_id":"d","page_idx":0,'
     '"page_number":1,"elements":[{"label":"text","bbox":[0,0,1,1],"id":"d/0","category":"text","caption_of":"d/7"}]}]}'],
)  # fmt: skip
def test_other_files_are_refused(data):
    with pytest.raises(ValueError, match=r"DocJSON|caption"):
        pages_from_docjson(data)


@pytest.mark.parametrize("name", sorted(schemas()))
def test_published_schemas_are_current(name):
    assert (PUBLISHED / name).read_text(encoding="utf-8") == as_text(schemas()[name]), (
        "run: python scripts/json_schemas.py"
    )


def test_what_is_written_fits_the_schemas():
    jsonschema.validate(json.loads("".join(document_json(pages()))), schemas()["docjson.schema.json"])
    for page in pages():
        jsonschema.validate(json.loads(msgspec.json.encode(page)), schemas()["record.schema.json"])


def test_categories():
    assert {label: category_of(label) for label in Label}.keys() == set(Label)
    assert {category_of(label) for label in Label} == set(Category) - {Category.LIST}
    assert category_of(Label.TEXT, list_item=True) is Category.LIST
    assert category_of(Label.TABLE, list_item=True) is Category.TABLE
    assert category_of(Label.SEAL) is Category.FIGURE
