"""Derived files: up to date when a run ends in order, and on demand."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_run import RESULTS, SETTINGS, TEXTS, page_of, records_of, write_run

from pagemill.app.exporters import default_exporters
from pagemill.cli import cli
from pagemill.errors import ExitCode
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.repair import refresh
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import verify

EXPORTERS = default_exporters()


def contents(out: Path) -> dict[str, bytes]:
    derived = [out / RESULTS, out / TEXTS, out / "report.html", *(out / "documents").iterdir()]
    return {path.name: path.read_bytes() for path in derived if path.exists()}


def test_the_records_can_be_followed_while_a_run_continues(store) -> None:
    with store.open() as run:
        for number in (1, 2, 3):
            run.write_page(store.page(number))
            assert store.ids() == [f"doc_{n}" for n in range(1, number + 1)]
        assert not (store.out / TEXTS).exists()
        run.finish(interrupted=True, complete=False)
        assert store.ids(TEXTS) == ["doc_1", "doc_2", "doc_3"]


def test_new_pages_are_appended_and_replaced_ones_are_rewritten(store) -> None:
    def inodes() -> list[int]:
        return [(store.out / name).stat().st_ino for name in (RESULTS, TEXTS)]

    store.write(store.failed(1))
    first = inodes()
    store.write(2)
    assert inodes() == first
    store.write(1, retry_failed=True)
    assert all(new != old for new, old in zip(inodes(), first, strict=True))
    assert store.ids() == store.ids(TEXTS) == ["doc_2", "doc_1"]


def test_a_file_that_somebody_appended_to_is_put_right(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        with (store.out / RESULTS).open("ab") as stream:
            stream.write(b"a note\n")
        run.write_page(store.page(2))
        run.finish()
    assert store.ids() == ["doc_1", "doc_2"]


def test_a_killed_run_is_brought_up_to_date_on_demand(tmp_path: Path) -> None:
    out, killed, expected = tmp_path / "out", tmp_path / "killed", tmp_path / "expected"
    write_run(expected)
    write_run(out, on_page=lambda written: shutil.copytree(out, killed) if written == 20 else None)
    assert not (killed / TEXTS).exists()
    ended = CliRunner().invoke(cli, ["export", str(killed)], standalone_mode=False)
    assert (ended.return_value, "up to date" in ended.stderr) == (ExitCode.OK, True)
    assert not verify(killed, exporters=EXPORTERS).groups
    del (mine := contents(killed))["report.html"], (its := contents(expected))["report.html"]  # which holds times
    assert mine == its


def test_beside_a_run_all_but_the_records_are_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunDirectory.open(out, exporters=EXPORTERS, identity=SETTINGS, settings=SETTINGS) as run:
        for number in (1, 2):
            page, crops = page_of("alpha", number, number - 1, doc_id="alpha", page_id=f"alpha_{number}")
            run.write_page(page, crops, b"preview")
        before = (out / RESULTS).read_bytes()
        owner = refresh(out, EXPORTERS)
        assert owner is not None
        assert len((out / TEXTS).read_bytes().splitlines()) == 2
        assert {"alpha.md", "alpha.json", "report.html"} <= contents(out).keys()
        page, crops = page_of("alpha", 3, 2, doc_id="alpha", page_id="alpha_3")
        run.write_page(page, crops, b"preview")
        run.finish()
    assert (out / RESULTS).read_bytes().startswith(before)
    assert len(records_of(out)) == 3
    assert not verify(out, exporters=EXPORTERS).groups


def test_a_run_does_not_wait_for_an_export_but_at_its_end(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        lock = RunLock(store.out / ".pagemill" / "derived.lock")
        run.finish_document("doc")
        assert store.files("documents") == set()
        lock.release()
        run.finish()
    assert store.files("documents") == {"documents/doc.md", "documents/doc.json"}


def test_exporting_in_place_does_not_vouch_for_files_that_were_edited(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out)
    edited = next((out / "documents").glob("*.md"))
    edited.write_bytes(edited.read_bytes() + b"a note")
    ended = CliRunner().invoke(cli, ["export", str(out)], standalone_mode=False)
    assert edited.read_bytes().endswith(b"a note")
    assert "unless they were edited: pagemill verify" in ended.stderr
    assert verify(out, exporters=EXPORTERS).groups


def test_exporting_in_place_takes_no_options_of_other_formats(tmp_path: Path) -> None:
    write_run(tmp_path / "out")
    ended = CliRunner().invoke(cli, ["export", str(tmp_path / "out"), "--single"])
    assert ended.exit_code == ExitCode.USAGE


def test_whoever_follows_a_run_reads_whole_records(store) -> None:
    with store.open() as run, RunReader.open(store.out) as reader:
        run.write_page(store.page(1))
        assert [page.page_id for page in reader.pages()] == ["doc_1"]


@pytest.mark.parametrize("name", [RESULTS, TEXTS])
def test_a_lost_file_is_written_again(store, name: str) -> None:
    store.write(1)
    before = (store.out / name).read_bytes()
    (store.out / name).unlink()
    store.write()
    assert (store.out / name).read_bytes() == before


def test_exporting_in_place_leaves_the_end_of_a_run_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    write_run(out)
    with RunReader.open(out) as reader:
        before, session = reader.summary, reader.session()
    (out / TEXTS).unlink()
    monkeypatch.setattr("pagemill.store.run_directory.text_lines", None)  # as if the process died on the way
    with pytest.raises(TypeError):
        refresh(out, EXPORTERS)
    monkeypatch.undo()
    with RunReader.open(out) as reader:
        assert (reader.summary, reader.session()) == (before, session)
    assert refresh(out, EXPORTERS) is None
    with RunReader.open(out) as reader:
        assert (reader.summary, reader.session()) == (before, session)
    assert not verify(out, exporters=EXPORTERS).groups
