import io
import json

import pyarrow.parquet as pq
import pytest
from synthetic_run import JPEG, page, region, sample_pages

from pagemill.document.labels import Label
from pagemill.document.page import ImageCrop, Mark, Span
from pagemill.export import parquet
from pagemill.export.embedding_text import embedding_text
from pagemill.export.parquet import write_parquet


def written(pages, **options) -> pq.ParquetFile:  # type: ignore[no-untyped-def]
    stream = io.BytesIO()
    write_parquet(stream, pages, **options)
    return pq.ParquetFile(stream)


def test_one_row_a_page_with_nested_regions() -> None:
    pages = sample_pages()
    pages[0].regions[1].spans = (Span(0, 2, Mark.BOLD),)
    pages[3].metadata = {"title": "Letter", "n": 1}
    pages[3].timings = {"decode": 0.5}
    pages[3].confidence, pages[3].review, pages[3].signals = 0.9, True, {"unread": 0.5}
    rows = written(pages).read().to_pylist()
    assert [row["page_id"] for row in rows] == [page.page_id for page in pages]
    assert [row["text"] for row in rows] == [embedding_text(page) for page in pages]
    assert rows[0]["regions"][1] == {
        "index": 1,
        "label": "text",
        "content": pages[0].regions[1].content,
        "content_format": "text",
        "bbox_2d": [100, 0, 190, 90],
        "bbox": [100.0, 0.0, 190.0, 90.0],
        "score": None,
        "confidence": None,
        "source": "",
        "engine": None,
        "other_engine": None,
        "structure": None,
        "attempts": 1,
        "level": None,
        "list_item": False,
        "caption_of": None,
        "continues": True,
        "description": None,
        "list_depth": 0,
        "spans": [{"start": 0, "end": 2, "mark": "bold", "target": None}],
        "style": None,
        "tag": "",
        "furniture": None,
        "anchor": None,
        "joined_to": None,
    }
    assert rows[2]["status"] == "failed"
    assert rows[2]["errors"][0]["category"] == "timeout"
    assert json.loads(rows[3]["metadata"]) == {"title": "Letter", "n": 1}
    assert rows[3]["timings"] == [{"stage": "decode", "seconds": 0.5}]
    assert (rows[3]["confidence"], rows[3]["review"]) == (0.9, True)
    assert rows[3]["signals"] == [{"signal": "unread", "share": 0.5}]
    assert "crop_images" not in rows[0]


def test_a_document_that_does_not_open_has_no_page_number() -> None:
    lost = page("lost", 1)
    lost.page_number = None
    assert written([lost]).read().to_pylist()[0]["page_number"] is None


def test_row_groups_are_bounded_by_pages_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_PAGES", 2)
    file = written([page("d", number) for number in range(1, 6)])
    assert [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)] == [2, 2, 1]
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"

    monkeypatch.setattr(parquet, "ROW_GROUP_PAGES", 1000)
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 100)
    long = [page("d", number, [region(0, Label.TEXT, "x" * 60)]) for number in range(1, 4)]
    assert written(long).num_row_groups == 3


def test_pictures_stand_beside_their_crops() -> None:
    crops = [ImageCrop(path=f"crops/d_1_crop_{n}.jpg", bbox=(0, 0, 1, 1), label=Label.IMAGE, region=n) for n in (0, 1)]
    rows = written(
        [page("d", 1, image_crops=crops), page("d", 2)],
        picture=lambda crop: JPEG if crop.region == 0 else None,
    ).read()
    assert rows["crop_images"].to_pylist() == [[{"bytes": JPEG, "path": "crops/d_1_crop_0.jpg"}, None], []]
    assert [crop["region"] for crop in rows["crops"].to_pylist()[0]] == [0, 1]


def test_no_pages_make_an_empty_table() -> None:
    assert written([]).read().num_rows == 0
