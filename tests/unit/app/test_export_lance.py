"""Runs in a Lance table: each page once, with its vectors, whatever was exported before."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from synthetic_run import page, region, sample_pages, write_run
from telling_engine import DIMENSION, TellingEngine, run_embed

from pagemill.app.export import Exporter
from pagemill.app.export_options import ExportOptions
from pagemill.cli import cli, exit_status
from pagemill.document.labels import Label
from pagemill.embedding.vectors import Part, VectorFile
from pagemill.errors import DifferentRunError, ExitCode, MissingDependencyError, NoSpaceError, OutputError, UsageError
from pagemill.retrieval.tokens import indexed
from pagemill.store.reading import RunReader

lance = pytest.importorskip("lance")


def export(out: Path, table: Path, **options: object) -> dict[str, int]:
    with RunReader.open(out) as reader:
        return Exporter(reader, ExportOptions(format="lance", **options)).to_table(str(table))


def ids(table: Path) -> list[str]:
    return sorted(lance.dataset(table).to_table(columns=["id"])["id"].to_pylist())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "first", sample_pages())
    run_embed(tmp_path / "first", TellingEngine())
    return tmp_path / "first"


def test_each_page_has_its_text_and_its_vector(run: Path, tmp_path: Path):
    missing = export(run, tmp_path / "table")
    rows = lance.dataset(tmp_path / "table").to_table().to_pylist()
    with RunReader.open(run) as reader:
        pages = {each.page_id: each for each in reader.pages()}
    assert {row["page_id"] for row in rows} == pages.keys()
    with VectorFile.open(run, Part.TEXT) as vectors:
        for row in rows:
            expected = vectors.find(row["page_id"])
            assert (expected is None) == (row["text_vector"] is None)
            if expected is not None:
                np.testing.assert_allclose(row["text_vector"], expected, rtol=1e-3)
            assert len(row["regions"]) == len(pages[row["page_id"]].regions)
    assert missing["text_vector"] == sum(row["text_vector"] is None for row in rows) > 0


def test_the_nearest_page_is_found(run: Path, tmp_path: Path):
    export(run, tmp_path / "table")
    with VectorFile.open(run, Part.TEXT) as vectors:
        row = vectors.rows[0]
        query = np.asarray(vectors.find(row.key.page_id), np.float32)
    assert query.shape == (DIMENSION,)
    nearest = {"column": "text_vector", "q": query, "k": 1}
    (hit,) = lance.dataset(tmp_path / "table").to_table(nearest=nearest, columns=["page_id"]).to_pylist()
    assert hit["page_id"] == row.key.page_id


def test_words_are_found_in_korean_too(tmp_path: Path):
    write_run(tmp_path / "run", [page("notice", 1, [region(0, Label.TEXT, "공공데이터를 개방한다")]), *sample_pages()])
    export(tmp_path / "run", tmp_path / "table")
    table = lance.dataset(tmp_path / "table")
    table.create_scalar_index("words", "INVERTED", base_tokenizer="whitespace", stem=False, remove_stop_words=False)
    query = {"columns": ["words"], "query": indexed("데이터 개방")}
    hits = table.to_table(full_text_query=query, columns=["page_id"])["page_id"].to_pylist()
    assert hits == ["notice_1"]


def test_exporting_again_replaces_the_rows_of_the_run_and_leaves_those_of_others(run: Path, tmp_path: Path):
    table, other = tmp_path / "table", tmp_path / "second's"
    write_run(other, sample_pages()[:1])
    run_embed(other, TellingEngine())
    for out in (run, other, run):
        export(out, table)
    assert len(ids(table)) == len(sample_pages()) + 1
    write_run(other, [page("new", 1, [region(0, Label.TEXT, "a new page")])])
    run_embed(other, TellingEngine())
    with pytest.raises(OutputError, match="another run named second's"):
        export(other, table)
    assert len(ids(table)) == len(sample_pages()) + 1
    export(other, table, overwrite=True)
    assert [each for each in ids(table) if each.startswith("second's/")] == ["second's/new_1"]
    assert len(ids(table)) == len(sample_pages()) + 1


def test_a_selection_removes_nothing(run: Path, tmp_path: Path):
    export(run, tmp_path / "table")
    export(run, tmp_path / "table", documents=("letter",))
    assert len(ids(tmp_path / "table")) == len(sample_pages())


def test_vectors_of_earlier_contents_are_refused(run: Path, tmp_path: Path):
    changed = sample_pages()
    changed[0].regions[0].content = "another heading"
    write_run(run, changed)
    with pytest.raises(DifferentRunError, match=changed[0].page_id):
        export(run, tmp_path / "table")


def test_a_run_without_vectors_goes_into_a_table_of_its_own(run: Path, tmp_path: Path):
    write_run(tmp_path / "plain", sample_pages())
    export(tmp_path / "plain", tmp_path / "words")
    assert len(ids(tmp_path / "words")) == len(sample_pages())
    export(run, tmp_path / "table")
    with pytest.raises(OutputError, match="text_vector"):
        export(tmp_path / "plain", tmp_path / "table")


def test_what_cannot_be_written_is_reported_with_a_remedy(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(OutputError) as raised:
        export(run, Path("/proc/none/table"))
    assert "Repeat the command" in str(raised.value.remedy)
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "scan.png").touch()
    with pytest.raises(OutputError, match="contains other files"):
        export(run, tmp_path / "others")
    with pytest.raises(UsageError, match="overlap"):
        export(run, run / "table")
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(MissingDependencyError):
        export(run, tmp_path / "table")


def test_the_command_says_which_pages_have_no_vector(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["export", str(run), "--format", "lance", "-o", str(tmp_path / "table")]
    assert exit_status(lambda: cli.main(arguments, standalone_mode=False)) == ExitCode.OK
    assert "without text_vector" in capsys.readouterr().err
    assert exit_status(lambda: cli.main([*arguments[:-1], "-"], standalone_mode=False)) == ExitCode.USAGE


def test_a_full_disk_has_its_own_exit_code(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object, **__: object) -> None:
        raise OSError("LanceError(IO): No space left on device (os error 28), /rust/src/lib.rs:1")

    monkeypatch.setattr(lance, "write_dataset", full)
    with pytest.raises(NoSpaceError):
        export(run, tmp_path / "table")


@pytest.mark.skipif(sys.platform == "darwin", reason="all names are UTF-8 there")
def test_a_run_whose_name_is_no_utf_8_is_exported_with_its_vectors(run: Path, tmp_path: Path):
    moved = run.rename(tmp_path / os.fsdecode(b"first \xff"))
    assert export(moved, tmp_path / "table")["text_vector"] < len(ids(tmp_path / "table"))
    assert ids(tmp_path / "table")[0].startswith("first \\udcff/")
