from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.unit.parsing.test_page import REF, Services, failing, lines_of

from pagemill.config.settings import ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.page import WHOLE_PAGE, PageResult, Status
from pagemill.document.structure import structured
from pagemill.errors import CorruptInputError, LanguageError
from pagemill.export.markdown import page_markdown
from pagemill.parsing.document_page import ALTERNATIVE, read_part, record_of_part
from pagemill.parsing.page import parse_page
from pagemill.readers.base import Block, Inline, Part, Picture, cell, heading, list_item, tables
from pagemill.recognition.reader import ReadPage
from pagemill.sources.base import DocumentRef, PageRef, ReadPart


def record_of(part: Part, folder: Path, number: int = 1, settings: ParseSettings | None = None) -> PageResult:
    data = msgspec.msgpack.encode(part)
    path = folder / f"parts{number}"
    path.write_bytes(b"before" + data + b"after")
    payload = ReadPart(path=path, offset=6, length=len(data), reader="foo")
    return record_of_part(ref(number, payload), payload, read_part(payload), settings or ParseSettings(), {}).record


def ref(number: int, payload: ReadPart) -> PageRef:
    return PageRef(
        document=DocumentRef(doc_id="d", uri="d.foo"),
        key=PageKey("0" * 64, number),
        position=number - 1,
        page_id=f"d_{number}",
        page_number=number,
        payload=payload,
    )


def test_blocks_become_regions(tmp_path: Path):
    blocks = [
        *heading(Inline("Title"), 1),
        *list_item(Inline("one"), 1, "a)"),
        Block(content="Placed", box=(1, 2, 30, 40)),
    ]
    picture = Block(label=Label.IMAGE, picture=Picture(b"\xff\xd8jpeg", "A field"))
    part = Part(blocks=[*filter(None, blocks), picture], notes=["hidden"], warnings=["lost"], metadata={"sheet": "S"})
    record = record_of(part, tmp_path)
    title, item, placed, image = record.regions
    assert (title.bbox, title.bbox_2d, title.source, title.engine) == (
        (0, 0, 816, 1056),
        (0, 0, 1000, 1000),
        WHOLE_PAGE,
        "foo",
    )
    assert (title.level, title.tag, item.tag, placed.bbox) == (1, "H1", "LI", (1, 2, 30, 40))
    assert image.description is not None and image.description.engine == ALTERNATIVE
    assert [crop.region for crop in record.image_crops] == [3]
    assert record.metadata == {"sheet": "S", "notes": ["hidden"]}
    assert [(error.component, error.message) for error in record.errors] == [("source", "lost")]
    assert page_markdown(record) == "# Title\n\n- a) one\n\nPlaced\n\n![image: A field](crops/d_1_crop_3.jpg)"


def test_pictures_are_not_kept_where_nobody_wants_them(tmp_path: Path):
    part = Part(blocks=[Block(label=Label.IMAGE, picture=Picture(b"\xff\xd8jpeg"))])
    assert not record_of(part, tmp_path, settings=ParseSettings(crops=False)).image_crops


def test_a_damaged_part_is_an_error_of_its_page(tmp_path: Path):
    (tmp_path / "parts").write_bytes(b"\xc1\xc1")
    payload = ReadPart(path=tmp_path / "parts", offset=0, length=2, reader="foo")
    with pytest.raises(CorruptInputError):
        read_part(payload)


async def pictured(folder: Path, services: Services, **settings: object) -> PageResult:
    """The record of a part with text and two pictures, one of them with a place."""
    picture = Picture(b"\xff\xd8jpeg")
    part = Part(
        blocks=[
            Block(content="Before"),
            Block(label=Label.IMAGE, picture=picture, box=(100, 100, 180, 220)),
            Block(label=Label.IMAGE, picture=picture),
            Block(content="After"),
        ]
    )
    (folder / "parts").write_bytes(data := msgspec.msgpack.encode(part))
    payload = ReadPart(path=folder / "parts", offset=0, length=len(data), reader="docx")
    page = await parse_page(
        replace(REF, payload=payload), services, ParseSettings(crops=False, read_images=True, **settings)
    )
    return page.record


async def test_the_text_of_pictures_is_behind_them(tmp_path: Path):
    services = Services(read=ReadPage(lines=lines_of(0.9, text="Total: 12")))
    record = await pictured(tmp_path, services)
    assert record.status is Status.DONE and not record.errors
    assert [region.index for region in record.regions] == list(range(6))
    assert record.markdown.split("\n\n") == ["Before", "Total: 12", "Total: 12", "After"]
    assert (record.text_source, record.regions[2].engine) == ("document+ocr", "e")
    x0, y0, x1, y1 = record.regions[2].bbox
    assert 100 <= x0 < x1 <= 180 and 100 <= y0 < y1 <= 220
    assert record.regions[4].source == WHOLE_PAGE


async def test_a_picture_that_cannot_be_read_costs_no_text(tmp_path: Path):
    services = Services(before_reading=failing(LanguageError("no engine reads Thai", remedy="Install one.")))
    record = await pictured(tmp_path, services)
    assert record.status is Status.DONE
    assert [(error.category, error.region) for error in record.errors] == [("language", 1), ("language", 2)]
    assert record.markdown.startswith("Before\n") and record.markdown.endswith("\nAfter")


def table_part(text: str, *, continues: bool = False) -> Part:
    cells = [cell(Inline(text), row, column) for row in range(2) for column in range(2)]
    return Part(
        blocks=list(tables(cells))
        if not continues
        else [msgspec.structs.replace(block, continues=True) for block in tables(cells)]
    )


@pytest.mark.parametrize("continues", [True, False])
def test_only_what_the_reader_has_cut_is_joined(tmp_path: Path, continues: bool):
    pages = [
        record_of(table_part("a", continues=continues), tmp_path, 1),
        record_of(table_part("b"), tmp_path, 2),
    ]
    _, second = structured(pages)
    assert second.regions[0].joined_to == ("d_1/0" if continues else None)


def test_headings_keep_the_levels_of_their_file(tmp_path: Path):
    pages = [
        record_of(
            Part(blocks=heading(Inline(f"{level} of {number}"), level)),
            tmp_path,
            number,
        )
        for number, level in enumerate((1, 2, 4, 2, 3), 1)
    ]
    assert [page.regions[0].level for page in structured(pages)] == [1, 2, 4, 2, 3]


def test_titles_of_slides_that_repeat_stay(tmp_path: Path):
    def slide(number: int) -> Part:
        title = Block(label=Label.PARAGRAPH_TITLE, level=2, content="Agenda", box=(48, 29, 912, 100))
        return Part(
            width=960, height=720, blocks=[title, Block(content=f"Point {number} of it", box=(48, 168, 912, 643))]
        )

    pages = structured([record_of(slide(number), tmp_path, number) for number in range(1, 6)])
    assert [page.regions[0].furniture for page in pages] == [None] * 5
