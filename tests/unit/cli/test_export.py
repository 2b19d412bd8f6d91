import json
from pathlib import Path

import click
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from synthetic_run import open_run, sample_pages, start, write, write_run

from pagemill.cli import cli
from pagemill.errors import ExitCode, InputError, OutputError, UsageError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", sample_pages())
    return tmp_path / "run"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["export", *map(str, arguments)], catch_exceptions=False, standalone_mode=False)


@pytest.mark.parametrize(
    ("format_name", "name"),
    [
        ("jsonl", "run.jsonl"),
        ("parquet", "run.parquet"),
        ("markdown", "run-markdown/report.md"),
        ("docjson", "run-docjson/report.json"),
        ("html", "run-html/index.html"),
        ("csv-tables", "run-tables/tables.csv"),
        ("txt", "run-txt/report.txt"),
        ("doctags", "run-doctags/report.doctags"),
        ("coco", "run.coco.json"),
    ],
)
def test_exports_go_beside_the_run(run: Path, tmp_path: Path, format_name: str, name: str) -> None:
    result = invoke(run, "-f", format_name)
    assert result.return_value == ExitCode.OK
    assert (tmp_path / name).is_file()
    assert "4 pages" in result.stderr
    assert result.stdout == ""
    with pytest.raises(OutputError, match="exists already"):
        invoke(run, "-f", format_name)
    assert invoke(run, "-f", format_name, "--overwrite", "-q").stderr == ""


@pytest.mark.parametrize("format_name", ["jsonl", "chunks", "doclingdocument", "csv-tables"])
def test_failed_pages_are_counted(run: Path, format_name: str) -> None:
    result = invoke(run, "-f", format_name)
    assert result.return_value == ExitCode.OK
    assert f", 1 of them failed and without content: pagemill status {run}" in " ".join(result.stderr.split())
    assert "of them" not in invoke(run, "-f", format_name, "--status", "done", "--overwrite").stderr


def test_records_go_to_standard_output(run: Path) -> None:
    result = invoke(run, "-f", "jsonl", "--status", "failed", "-o", "-")
    assert [json.loads(line)["page_id"] for line in result.stdout.splitlines()] == ["report_3"]
    assert "1 page to standard output" in result.stderr


def test_filters_may_be_repeated(run: Path) -> None:
    result = invoke(run, "-f", "jsonl", "--pages", "report_[12]", "--pages", "letter*", "-o", "-", "-q")
    ids = [json.loads(line)["page_id"] for line in result.stdout.splitlines()]
    assert ids == ["report_1", "report_2", "letter_1"]


def test_pictures_on_demand(run: Path, tmp_path: Path) -> None:
    invoke(run, "-f", "parquet", "--with-crops", "-o", tmp_path / "a.parquet")
    assert pq.read_schema(tmp_path / "a.parquet").names[-1] == "crop_images"
    invoke(run, "-f", "markdown", "--no-crops", "-o", tmp_path / "texts")
    assert not (tmp_path / "texts" / "crops").exists()


def test_damages_are_named_and_end_with_their_code(run: Path, tmp_path: Path) -> None:
    (run / "crops" / "report_1_crop_2.jpg").unlink()
    result = invoke(run, "-f", "html", "-q")
    assert result.return_value == ExitCode.DAMAGED
    assert "crops/report_1_crop_2.jpg is missing" in result.stderr
    assert "1 piece of the run" in result.stderr
    assert (tmp_path / "run-html" / "documents" / "report.html").is_file()


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        write(run, sample_pages()[0], 0)
        start(run, sample_pages()[1])
        run.sync()
        result = invoke(tmp_path / "run", "-f", "jsonl")
    assert result.return_value == ExitCode.OK
    assert "not finished: pages that are still to come" in result.stderr


def test_a_stopped_run_says_so_also_of_pages_that_it_has_not_met(tmp_path: Path) -> None:
    with open_run(tmp_path / "run") as run:
        write(run, sample_pages()[0], 0)
        run.set_total(5)
        run.finish(interrupted=True)
    result = invoke(tmp_path / "run", "-f", "jsonl")
    assert "not finished: pages that are still to come" in result.stderr
    indexed = CliRunner().invoke(cli, ["index", str(tmp_path / "run")], catch_exceptions=False, standalone_mode=False)
    assert "not finished: pages that are still to come" in indexed.stderr


def test_a_finished_run_is_not_called_unfinished(run: Path) -> None:
    assert "not finished" not in invoke(run, "-f", "jsonl").stderr


def test_mistakes_have_a_message_and_a_remedy(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--single"):
        invoke(run, "-f", "html", "--single")
    with pytest.raises(InputError, match="no page"):
        invoke(run, "-f", "jsonl", "--documents", "reprot")
    (tmp_path / "empty").mkdir()
    with pytest.raises(OutputError, match="contains no run") as caught:
        invoke(tmp_path / "empty", "-f", "jsonl")
    assert caught.value.remedy
    with pytest.raises(click.UsageError, match="does not exist"):
        invoke(tmp_path / "missing", "-f", "jsonl")
    with pytest.raises(click.UsageError, match="cannot be written to a URL"):
        invoke(run, "-f", "jsonl", "-o", "s3://bucket/pages.jsonl")
