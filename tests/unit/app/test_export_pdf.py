"""Searchable PDFs of a run: pages come from their sources, wherever these are now."""

import hashlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pypdfium2 as pdfium
import pytest
from PIL import Image
from synthetic_run import open_run, page, region

from pagemill.app import export_pdf
from pagemill.app.export import Exporter
from pagemill.app.export_content import ExportOutcome
from pagemill.app.export_options import ExportOptions
from pagemill.app.options import ImageSources
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Status
from pagemill.errors import ExitCode, InputError, MissingInputError, UsageError
from pagemill.export import pdf_own_text
from pagemill.sources.options import SourceOptions
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.rows import Place


def scan(name: str, kind: str = "JPEG") -> bytes:
    noise = np.random.default_rng(len(name)).integers(0, 255, (140, 100, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, kind)
    return buffer.getvalue()


def record(source: Path, doc_id: str, number: int = 1, *, page_id: str = "", **fields: Any) -> PageResult:
    text = f"text of {doc_id} {number}"
    made = page(doc_id, number, [region(0, Label.TEXT, text)], text_source="ocr", **fields)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    key = f"{digest}/{number}"
    return msgspec.structs.replace(
        made, source=str(source), page_key=key, page_id=page_id or made.page_id, width=100, height=140
    )


def write_run(out: Path, records: list[PageResult]) -> Path:
    with open_run(out, OpenMode.FRESH) as run:
        for index, each in enumerate(records):
            key = PageKey.parse(each.page_key)
            run.catalogue.register(key.digest, each.source)
            each = msgspec.structs.replace(each, page_idx=index)
            run.start_page(key, Place.of(each))
            run.write_page(each, [])
        run.finish(interrupted=False, complete=True)
    return out


def export(out: Path, **options: Any) -> ExportOutcome:
    told: list[PageResult] = []
    with RunReader.open(out) as reader:
        exporter = Exporter(reader, ExportOptions(format="pdf", **options), told.append)
        exporter.to_path(out.with_name("pdf"))
    assert len(told) >= exporter.outcome.pages
    return exporter.outcome


def texts(path: Path) -> list[str]:
    with pdfium.PdfDocument(path) as document:
        return [sheet.get_textpage().get_text_range().strip() for sheet in document]


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """Two photographs, a PDF of three pages, and a TIFF of two."""
    folder = tmp_path / "scans"
    folder.mkdir()
    for name in ("one", "other"):
        (folder / f"{name}.jpg").write_bytes(scan(name))
    with pdfium.PdfDocument.new() as document:
        for _ in range(3):
            document.new_page(100, 140)
        document.save(folder / "three.pdf")
    frames = [Image.open(io.BytesIO(scan("x" * index, "PNG"))) for index in (3, 4)]
    frames[0].save(folder / "frames.tiff", save_all=True, append_images=frames[1:])
    return folder


@pytest.fixture
def out(tmp_path: Path, scans: Path) -> Path:
    records = [record(scans / f"{name}.jpg", name) for name in ("one", "other")]
    records += [record(scans / "three.pdf", "three", number) for number in (1, 2, 3)]
    records += [record(scans / "frames.tiff", "frames", number) for number in (1, 2)]
    return write_run(tmp_path / "run", records)


def test_each_document_is_a_pdf_with_its_text(out: Path, scans: Path) -> None:
    outcome = export(out)
    assert (outcome.pages, outcome.documents, outcome.left_out, outcome.exit_code) == (7, 4, [], ExitCode.OK)
    folder = out.with_name("pdf")
    assert texts(folder / "one.pdf") == ["text of one 1"]
    assert texts(folder / "three.pdf") == [f"text of three {number}" for number in (1, 2, 3)]
    assert texts(folder / "frames.pdf") == ["text of frames 1", "text of frames 2"]
    assert scan("one") in (folder / "one.pdf").read_bytes()
    assert {path.name for path in folder.iterdir()} == {
        *("one.pdf", "other.pdf", "three.pdf", "frames.pdf", "export.json")
    }


def test_pages_that_keep_their_own_text_are_named(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_own_text, "is_small", lambda page: False)
    outcome = export(out, pages=("three_[13]",))
    assert [warning.split(":")[0] for warning in outcome.warnings] == ["three, page 1", "three, page 3"]
    assert (outcome.pages, outcome.exit_code) == (2, ExitCode.OK)


def test_only_selected_pages_are_there(out: Path) -> None:
    outcome = export(out, pages=("three_[13]", "one_1"))
    assert (outcome.pages, outcome.documents) == (3, 2)
    assert texts(out.with_name("pdf") / "three.pdf") == ["text of three 1", "text of three 3"]


def test_documents_whose_source_is_gone_or_changed_are_left_out_and_named(out: Path, scans: Path) -> None:
    (scans / "one.jpg").unlink()
    (scans / "three.pdf").write_bytes(b"%PDF-1.7 another one")
    outcome = export(out)
    assert {(name, remedy is not None) for name, _, remedy in outcome.left_out} == {("one", True), ("three", True)}
    assert outcome.exit_code == ExitCode.PAGES_FAILED
    assert {path.stem for path in out.with_name("pdf").glob("*.pdf")} == {"other", "frames"}
    assert (outcome.pages, outcome.documents) == (3, 2)


def test_moved_sources_are_found_by_their_content(out: Path, scans: Path) -> None:
    scans.rename(scans.with_name("moved"))
    with pytest.raises(MissingInputError):
        export(out)
    assert not out.with_name("pdf").exists()
    outcome = export(out, sources=ImageSources(inputs=(str(scans.with_name("moved")),)))
    assert outcome.documents == 4


def test_a_page_that_cannot_be_opened_leaves_its_document_out_unless_it_is_not_wanted(
    tmp_path: Path, scans: Path
) -> None:
    good = record(scans / "three.pdf", "three", 1)
    absent = msgspec.structs.replace(record(scans / "three.pdf", "three", 7), status=Status.FAILED, regions=[])
    out = write_run(tmp_path / "run", [good, absent, record(scans / "one.jpg", "one")])
    outcome = export(out)
    assert [(name, "--status done" in (remedy or "")) for name, _, remedy in outcome.left_out] == [("three", True)]
    outcome = export(out, status=Status.DONE, overwrite=True)
    assert (outcome.left_out, outcome.documents, outcome.failed) == ([], 2, 0)


def test_failed_pages_that_can_be_opened_are_counted(tmp_path: Path, scans: Path) -> None:
    failed = msgspec.structs.replace(record(scans / "three.pdf", "three", 2), status=Status.FAILED, regions=[])
    outcome = export(write_run(tmp_path / "run", [record(scans / "three.pdf", "three", 1), failed]))
    assert (outcome.pages, outcome.failed, outcome.left_out) == (2, 1, [])


def test_a_row_that_failed_stops_the_export_of_its_dataset_with_a_remedy_that_helps(tmp_path: Path) -> None:
    shard = tmp_path / "shard.parquet"
    pq.write_table(pa.table({"image": [scan("good"), b"no image"]}), shard)
    failed = msgspec.structs.replace(record(shard, "shard", 2), status=Status.FAILED, regions=[])
    out = write_run(tmp_path / "run", [record(shard, "shard", 1), failed])
    with pytest.raises(InputError) as caught:
        export(out)
    assert "--status done" in (caught.value.remedy or "")
    assert export(out, status=Status.DONE).pages == 1


def test_rows_of_a_dataset_become_documents_in_page_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_pdf, "_PENDING", 1)  # so that every page waits in a file
    names = ["b_2", "a_1", "b_1", "a_2", "b_10"]
    shard = tmp_path / "shard.parquet"
    pq.write_table(pa.table({"id": names, "image": [scan(name) for name in names]}), shard)
    records = []
    for row, name in enumerate(names, 1):
        doc_id, number = name.split("_")
        made = record(shard, doc_id, row, page_id=name)
        text = region(0, Label.TEXT, name)
        records.append(msgspec.structs.replace(made, page_number=int(number), regions=[text]))
    out = write_run(tmp_path / "run", records)
    assert export(out).documents == 2
    assert texts(out.with_name("pdf") / "b.pdf") == ["b_1", "b_2", "b_10"]
    assert texts(out.with_name("pdf") / "a.pdf") == ["a_1", "a_2"]
    assert len(list(out.with_name("pdf").iterdir())) == 3


def test_where_sources_are_is_asked_for_pdf_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = ImageSources(inputs=("here",))
    with pytest.raises(UsageError, match=r"--input, .* pdf, not html"):
        ExportOptions(format="html", sources=sources)
    password = ImageSources(options=SourceOptions(password="secret"))
    ExportOptions(format="html", sources=password)  # it may be that of all commands, from the environment


def test_nothing_to_export_is_an_error(out: Path) -> None:
    with pytest.raises(InputError, match="no page"):
        export(out, pages=("none",))


@pytest.mark.skipif(sys.platform == "darwin", reason="all names are UTF-8 there")
def test_a_source_whose_name_is_no_utf_8(tmp_path: Path, scans: Path) -> None:
    source = scans / os.fsdecode("보고서.pdf".encode("euc-kr"))
    (scans / "three.pdf").rename(source)
    out = write_run(tmp_path / "run", [record(source, "three")])
    outcome = export(out)
    assert (outcome.documents, outcome.left_out) == (1, [])
    assert texts(out.with_name("pdf") / "three.pdf") == ["text of three 1"]
