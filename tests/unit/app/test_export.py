import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_run import damage_record
from synthetic_run import JPEG, open_run, page, region, sample_pages, start, write, write_run

from pagemill.app.export import Exporter
from pagemill.app.export_content import ExportOutcome
from pagemill.app.export_options import ExportOptions
from pagemill.cli.export import command
from pagemill.config.chunking import ChunkSettings
from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Status
from pagemill.errors import InputError, OutputError, UsageError
from pagemill.export.formats import format_names
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", sample_pages())
    return tmp_path / "run"


def export(run: Path, target: Path | None = None, **options: Any) -> ExportOutcome:
    chosen = ExportOptions(**options)
    with RunReader.open(run) as reader:
        exporter = Exporter(reader, chosen)
        place = target or chosen.default_target(run)
        if chosen.format == "lance":
            exporter.to_table(str(place))
        else:
            exporter.to_path(place)
    return exporter.outcome


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_jsonl_has_the_records_in_input_order(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        for index, each in reversed(list(enumerate(sample_pages()))):
            write(run, each, index)
    assert export(tmp_path / "run", format="jsonl").pages == 4
    exported = lines(tmp_path / "run.jsonl")
    assert [record["page_idx"] for record in exported] == [0, 1, 2, 3]
    stored = lines(tmp_path / "run" / "ocr_results.jsonl")[::-1]
    told = [region.pop(name) for name in ("anchor", "joined_to") for page in exported for region in page["regions"]]
    assert list(filter(None, told)) == ["mills--machines", "report_1/1"]  # which the document tells, not the page
    for record in stored:
        record |= {name: exported[record["page_idx"]][name] for name in ("markdown", "left_out")}
        for each in record["regions"]:
            del each["anchor"], each["joined_to"]
    assert exported == stored


def test_documents_are_those_of_the_run(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "md", format="markdown")
    export(run, tmp_path / "json", format="docjson")
    for name in ("report", "letter"):
        markdown = (run / "documents" / f"{name}.md").read_text(encoding="utf-8")
        assert (tmp_path / "md" / f"{name}.md").read_text(encoding="utf-8") == markdown.replace("../crops", "crops")
        assert (tmp_path / "json" / f"{name}.json").read_bytes() == (run / "documents" / f"{name}.json").read_bytes()
    for folder in ("md", "json"):
        assert (tmp_path / folder / "crops" / "report_1_crop_2.jpg").read_bytes() == JPEG


def test_one_markdown_file_links_to_the_pictures_of_the_run(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "sub" / "all.md", format="markdown", single=True)
    text = (tmp_path / "sub" / "all.md").read_text(encoding="utf-8")
    assert "](../run/crops/report_1_crop_2.jpg)" in text
    assert text.index("<!-- document report -->") < text.index("<!-- document letter -->") < text.index("Dear miller")


def test_html_shows_the_pictures_beside_it(run: Path, tmp_path: Path) -> None:
    outcome = export(run, format="html")
    assert (outcome.pages, outcome.documents, outcome.damages) == (4, 2, [])
    text = (tmp_path / "run-html" / "documents" / "report.html").read_text(encoding="utf-8")
    assert 'src="../crops/report_1_crop_2.jpg"' in text
    assert (tmp_path / "run-html" / "crops" / "report_1_crop_2.jpg").read_bytes() == JPEG


def test_without_pictures_nothing_refers_to_them(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "html", format="html", crops=False)
    assert not (tmp_path / "html" / "crops").exists()
    assert "<img" not in (tmp_path / "html" / "documents" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("selection", "pages"),
    [
        ({"documents": ("rep*",)}, ["report_1", "report_2", "report_3"]),
        ({"documents": ("letter", "x")}, ["letter_1"]),
        ({"pages": ("*_1",)}, ["report_1", "letter_1"]),
        ({"pages": ("*_[12]",), "documents": ("report",)}, ["report_1", "report_2"]),
        ({"status": Status.FAILED}, ["report_3"]),
        ({"status": Status.DONE, "documents": ("report",)}, ["report_1", "report_2"]),
    ],
)
def test_filters(run: Path, tmp_path: Path, selection: dict[str, Any], pages: list[str]) -> None:
    export(run, format="jsonl", **selection)
    assert [record["page_id"] for record in lines(tmp_path / "run.jsonl")] == pages
    outcome = export(run, format="docjson", **selection)
    assert outcome.pages == len(pages)
    assert outcome.documents == len({name.split("_")[0] for name in pages})


@pytest.mark.parametrize("format_name", format_names())
def test_filters_that_leave_nothing_are_an_error_and_leave_nothing(run: Path, tmp_path: Path, format_name: str) -> None:
    with pytest.raises(InputError, match="no page"):
        export(run, format=format_name, documents=("nobody",))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_unfinished_run_gives_what_has_ended(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        write(run, sample_pages()[0], 0)
        start(run, sample_pages()[1])
        assert export(tmp_path / "run", format="jsonl").pages == 1
        write(run, sample_pages()[3], 1)
        assert export(tmp_path / "run", format="jsonl", overwrite=True).pages == 2


def test_pages_that_end_during_an_export_do_not_disturb_it(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        for number in range(1, 40):
            write(run, page("d", number, [region(0, Label.TEXT, "x" * 3000)]), number)
        told = 0

        def go_on(_: PageResult) -> None:
            nonlocal told
            told += 1
            write(run, page("e", told), 100 + told)

        with RunReader.open(tmp_path / "run") as reader:
            exporter = Exporter(reader, ExportOptions(format="jsonl"), go_on)
            exporter.to_path(tmp_path / "run.jsonl")
    assert [record["page_id"] for record in lines(tmp_path / "run.jsonl")][:39] == [f"d_{n}" for n in range(1, 40)]
    assert len(lines(tmp_path / "run.jsonl")) == exporter.outcome.pages == told


def test_missing_and_changed_crops_are_named_and_left_out(tmp_path: Path) -> None:
    pages = [page("d", number, [region(0, Label.IMAGE)]) for number in (1, 2, 3)]
    write_run(tmp_path / "run", pages)
    (tmp_path / "run" / "crops" / "d_1_crop_0.jpg").unlink()
    (tmp_path / "run" / "crops" / "d_2_crop_0.jpg").write_bytes(JPEG[:-1])
    outcome = export(tmp_path / "run", tmp_path / "md", format="markdown")
    assert outcome.damages == [
        "crops/d_1_crop_0.jpg is missing",
        "crops/d_2_crop_0.jpg is not the image that its record names",
    ]
    assert outcome.pages == 3
    assert (tmp_path / "md" / "d.md").read_text(encoding="utf-8") == "![image](crops/d_3_crop_0.jpg)\n"
    outcome = export(tmp_path / "run", format="parquet", crops=True)
    assert len(outcome.damages) == 2


def test_damaged_lines_are_named_and_the_others_exported(run: Path, tmp_path: Path) -> None:
    damage_record(run, "report_3")
    for format_name in ("jsonl", "html"):
        outcome = export(run, format=format_name)
        assert outcome.pages == 3
        (damage,) = outcome.damages
        assert "the record of page report_3 is damaged" in damage
    assert [record["page_id"] for record in lines(tmp_path / "run.jsonl")] == ["report_1", "report_2", "letter_1"]


def test_an_existing_target_is_refused(run: Path, tmp_path: Path) -> None:
    # The pages of this run are nowhere; a table is added to.
    for format_name in set(format_names()) - {"pdf", "lance"}:
        export(run, format=format_name)
        with pytest.raises(OutputError, match="exists already"):
            export(run, format=format_name)
        export(run, format=format_name, overwrite=True)


@pytest.mark.parametrize("place", ["run/ocr_results.jsonl", "run/new.jsonl", "run", "."])
def test_an_export_never_goes_into_the_run(run: Path, tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError):
        export(run, tmp_path / place, format="jsonl", overwrite=True)
    with pytest.raises(UsageError):
        export(run, tmp_path / place, format="html", overwrite=True)


def test_streams_take_text_only(run: Path) -> None:
    for options in (ExportOptions(format="jsonl"), ExportOptions(format="markdown", single=True)):
        stream = io.BytesIO()
        with RunReader.open(run) as reader:
            Exporter(reader, options).to_stream(stream)
        assert b"Dear miller" in stream.getvalue()
    with RunReader.open(run) as reader, pytest.raises(UsageError):
        Exporter(reader, ExportOptions(format="parquet")).to_stream(io.BytesIO())


@pytest.mark.parametrize(
    "options",
    [
        {"format": "html", "single": True},
        {"format": "jsonl", "crops": True},
        {"format": "csv-tables", "crops": False},
        {"format": "markdown", "single": True, "crops": True},
        {"format": "jsonl", "bom": True},
    ],
)
def test_options_that_would_do_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ExportOptions(**options)


def test_a_resumed_run_is_exported_once_a_page(tmp_path: Path) -> None:
    write_run(tmp_path / "run", sample_pages()[:2], finish=False)
    with open_run(tmp_path / "run", OpenMode.RESUME) as run:
        write(run, sample_pages()[2], 2)
        run.finish(interrupted=False, complete=True)
    export(tmp_path / "run", format="jsonl")
    assert [record["page_id"] for record in lines(tmp_path / "run.jsonl")] == ["report_1", "report_2", "report_3"]


def test_chunks_of_all_documents_as_lines_or_rows(run: Path, tmp_path: Path) -> None:
    assert export(run, format="chunks").documents == 2
    found = lines(tmp_path / "run.chunks.jsonl")
    assert [(chunk["doc_id"], chunk["index"]) for chunk in found] == [("report", 0), ("letter", 0)]
    export(run, format="chunks", parquet=True)
    assert pq.read_table(tmp_path / "run.chunks.parquet").to_pylist() == found


@pytest.mark.parametrize("name", ["a.parquet", "a.PARQUET"])
def test_the_ending_of_the_target_chooses_parquet(run: Path, tmp_path: Path, name: str) -> None:
    words = [str(run), "-f", "chunks", "--max-tokens", "32", "-o", str(tmp_path / name), "-q"]
    assert command.main(words, standalone_mode=False) == 0
    assert max(pq.read_table(tmp_path / name)["tokens"].to_pylist()) <= 32


def test_options_of_chunks_go_with_chunks_alone() -> None:
    with pytest.raises(UsageError, match="--max-tokens, --tokenizer, --overlap requires --format chunks, not html"):
        ExportOptions(format="html", chunks=ChunkSettings(overlap=3))


def test_doclingdocuments_are_a_folder_with_crops(run: Path, tmp_path: Path) -> None:
    export(run, format="doclingdocument")
    report = json.loads((tmp_path / "run-docling" / "report.json").read_text(encoding="utf-8"))
    assert report["pictures"][0]["image"]["uri"] == "crops/report_1_crop_2.jpg"
    assert (tmp_path / "run-docling" / "crops" / "report_1_crop_2.jpg").read_bytes() == JPEG
