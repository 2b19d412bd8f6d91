from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from json_schemas import as_text, schemas

from pagemill.document.docjson import DocJSON, document_json
from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, ImageCrop, PageError, PageResult, Region, Status, TextLine

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


def test_pieces_make_the_published_structure():
    document = msgspec.json.decode("".join(document_json(iter(pages()))), type=DocJSON)
    assert document.page_count == 2
    assert [element.id for element in document.elements] == ["d_1/0", "d_1/1", "d_1/2", "d_1/3"]
    assert document.elements[1].html == "<table></table>"
    assert document.elements[1].text is None
    assert [element.attempts for element in document.elements] == [1, 4, 1, 1]
    assert document.elements[2].caption_of == "d_1/1"
    assert document.elements[3].crop == "crops/d_1_crop_3.jpg"
    assert [page.status for page in document.pages] == [Status.DONE, Status.FAILED]
    assert document.pages[1].errors[0].message == "it died"


def test_no_elements_is_still_json():
    assert json.loads("".join(document_json(pages()[1:])))["elements"] == []


def test_lone_surrogates_are_replaced():
    first, _ = pages()
    first.source, first.regions[0].content = "caf\udce9.pdf", "\ud800x"
    document = json.loads("".join(document_json([first])))
    assert (document["source"], document["elements"][0]["text"]) == ("caf\ufffd.pdf", "\ufffdx")


@pytest.mark.parametrize("name", sorted(schemas()))
def test_published_schemas_are_current(name):
    assert (PUBLISHED / name).read_text(encoding="utf-8") == as_text(schemas()[name]), (
        "run: python scripts/json_schemas.py"
    )


def test_what_is_written_fits_the_schemas():
    jsonschema.validate(json.loads("".join(document_json(pages()))), schemas()["docjson.schema.json"])
    for page in pages():
        jsonschema.validate(json.loads(msgspec.json.encode(page)), schemas()["record.schema.json"])
