"""Starting a run, going on with one, and when neither is done."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import DifferentRunError, ExitCode, LockedError, OutputError
from pagemill.store import opening, paths
from pagemill.store.database import PAGE_SIZE
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.repair import repair
from pagemill.store.run_directory import OpenMode
from pagemill.store.verify import verify


def fill(store, *numbers: int) -> None:
    with store.open() as run:
        for number in numbers:
            page = store.page(number)
            run.write_page(page, store.with_crops(page, b"crop"), b"preview")
        run.finish()


def test_a_run_continues(store) -> None:
    fill(store, 1, 2)
    started = store.run_json()["started"]
    with store.open(settings={"threads": 3}) as run:
        assert (run.resumed, run.summary.pages, run.summary.finished) == (2, 2, None)
        assert store.run_json()["finished"] is None
        run.write_page(store.page(3))
        run.finish()
    assert (store.run_json()["started"], store.run_json()["settings"]) == (started, {"threads": 3})
    assert json.loads((store.out / "documents" / "doc.json").read_text()) == [1, 2, 3]
    assert (store.out / "report.html").read_text().count("b'preview'") == 2  # those of the first time, too


def test_other_settings_are_another_run(store) -> None:
    with store.open(identity={"lang": ("en",), "layout": {"engine": "onnx", "model": None}}) as run:
        run.write_page(store.page(1))
    with store.open(identity={"layout": {"model": None, "engine": "onnx"}, "lang": ["en"]}):
        pass
    with pytest.raises(DifferentRunError) as caught:
        store.open(identity={"lang": ["en", "ko"], "layout": {"engine": "other", "model": None}})
    assert "lang was en and is en, ko; layout.engine was onnx and is other" in caught.value.message
    assert "--fresh" in (caught.value.remedy or "")
    assert caught.value.exit_code is ExitCode.OUTPUT
    with pytest.raises(DifferentRunError):
        store.open(identity={"lang": ["ko"]}, mode=OpenMode.RESUME)
    assert store.states() == {"doc_1": "DONE"}


def test_languages_that_were_left_alone_are_called_auto(store) -> None:
    with store.open(identity={"languages": None}) as run:
        run.write_page(store.page(1))
    with pytest.raises(DifferentRunError, match=r"languages was auto and is ko"):
        store.open(identity={"languages": ["ko"]})


def test_settings_are_shown_as_on_the_command_line(store) -> None:
    identity = {"crops": True, "size": 3, "box": [1, 2]}
    with store.open(identity=identity) as run:
        run.write_page(store.page(1))
    with pytest.raises(DifferentRunError) as caught:
        store.open(identity={"crops": False, "size": 4, "box": [1, 3]})
    assert "box was [1,2] and is [1,3]; crops was on and is off; size was 3 and is 4" in caught.value.message


def test_a_refusal_changes_nothing(store) -> None:
    run = store.open()
    store.start(run, 1)
    run._run.release_in_flight = lambda: None
    run.close()
    with store.open(identity={"lang": ["ko"]}, mode=OpenMode.AUTO):  # nothing was recorded: a new run
        pass
    run = store.open(identity={"lang": ["ko"]})
    run.write_page(store.page(2))
    store.start(run, 1)
    run._run.release_in_flight = lambda: None
    run.close()
    with pytest.raises(DifferentRunError):
        store.open()
    assert store.states() == {"doc_1": "RUNNING", "doc_2": "DONE"}


def test_a_run_of_nothing_but_inputs_that_do_not_open_needs_no_fresh(store) -> None:
    store.write(store.failed(0, "misspelt", page_number=None))
    with store.open(identity={"lang": ["ko"]}) as run:
        assert (run.resumed, run.summary.pages) == (0, 0)
        run.finish()
    assert store.ids() == []
    assert store.files("documents") == set()


def test_resume_wants_a_run(store) -> None:
    with pytest.raises(OutputError, match="contains no run to resume"):
        store.open(mode=OpenMode.RESUME)
    assert not store.out.exists()
    fill(store, 1)
    with store.open(mode=OpenMode.RESUME) as run:
        assert run.resumed == 1


def test_fresh_deletes_exactly_what_the_run_wrote(store) -> None:
    fill(store, 1, 2)
    (store.out / "notes.txt").write_text("mine")
    (store.out / "crops" / "mine.png").write_text("mine")
    with (store.out / "ocr_results.jsonl").open("ab") as stream:
        stream.write(b'{"page_id": "cut sho')
    with store.open(mode=OpenMode.FRESH) as run:
        assert (run.resumed, run.summary.pages) == (0, 0)
        ours = {path for path in store.files() if not path.startswith(".pagemill/")}
        assert ours == {"notes.txt", "crops/mine.png", "run.json", "ocr_results.jsonl"}
        assert run.catalogue.register(store.digest("doc"), "doc.pdf").ended.__contains__(1) is False
        run.write_page(store.page(1))
        store.check(run, stray={"crops/mine.png"})


class CutOffError(Exception):
    """The process dies here."""


@pytest.mark.parametrize("mode", [OpenMode.AUTO, OpenMode.FRESH])
def test_after_a_fresh_that_was_cut_off_the_same_command_continues(
    store, mode: OpenMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any file is deleted; also without --fresh, as the run that was there is given up."""
    fill(store, 1, 2)
    (store.out / "crops" / "mine.png").write_text("mine")
    complete = store.out.rename(store.out.with_name("complete"))
    cut_off = 0
    real = Path.unlink
    for last in range(1, 100):
        shutil.rmtree(store.out, ignore_errors=True)
        shutil.copytree(complete, store.out)
        left = last

        def unlink(path: Path, missing_ok: bool = False) -> None:
            nonlocal left
            left -= path.exists()
            if left == 0:
                raise CutOffError
            real(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", unlink)
        try:
            store.open(mode=OpenMode.FRESH).close()
        except CutOffError:
            cut_off += 1
        else:
            break
        finally:
            monkeypatch.undo()
        with pytest.raises(OutputError, match="contains no run"):
            RunReader.open(store.out)
        with pytest.raises(OutputError, match="no run to resume"):
            store.open(mode=OpenMode.RESUME)
        with store.open(mode=mode) as run:
            assert run.resumed == 0
            assert store.files("crops") == {"crops/mine.png"}
            run.write_page(store.page(1))
            run.finish()
            store.check(run, stray={"crops/mine.png"})
        assert verify(store.out, exporters=store.exporters).damaged is False
    assert cut_off > 8


def test_fresh_waits_for_an_export(store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else that would write files of the old run beside those of the new one."""
    fill(store, 1)
    monkeypatch.setattr(opening, "DERIVED_WAIT_S", 0.0)
    before = store.files()
    with RunLock(store.out / paths.DERIVED_LOCK), pytest.raises(LockedError):
        store.open(mode=OpenMode.FRESH)
    assert store.files() >= before
    with store.open(mode=OpenMode.FRESH) as run:
        assert run.resumed == 0


def damage_table(out: Path, name: str) -> None:
    """Overwrite the first page of a table in the database."""
    with closing(sqlite3.connect(out / paths.DATABASE)) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))
    with (out / paths.DATABASE).open("r+b") as stream:
        stream.seek((page - 1) * PAGE_SIZE)
        stream.write(b"\xff" * PAGE_SIZE)


@pytest.mark.parametrize("table", ["pages", "crops", "documents"])
def test_fresh_replaces_a_run_whose_database_is_damaged(store, table: str) -> None:
    fill(store, 1, 2)
    damage_table(store.out, table)
    with store.open(mode=OpenMode.FRESH) as run:
        assert store.files("crops") == set()
        run.write_page(store.page(1))
        run.finish()
        store.check(run)


def test_a_damaged_database_is_not_given_up_while_it_holds_records(store) -> None:
    fill(store, 1, 2)
    damage_table(store.out, "counts")
    (store.out / "ocr_results.jsonl").unlink()
    with store.open() as run:
        assert run.resumed == 2
        run.finish()
        store.check(run)
    assert store.ids() == ["doc_1", "doc_2"]


@pytest.mark.parametrize("number", ["application_id", "user_version"])
def test_a_database_whose_own_number_is_damaged_loses_no_record(store, number: str) -> None:
    fill(store, 1, 2)
    with closing(sqlite3.connect(store.out / paths.DATABASE)) as connection:
        connection.execute(f"PRAGMA {number} = 42")
    (store.out / "ocr_results.jsonl").unlink()
    with store.open() as run:
        assert run.resumed == 2
        run.finish()
        store.check(run)


def test_a_database_stays_until_its_repaired_one_is_there(store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 1, 2)
    damage_table(store.out, "counts")
    (store.out / "ocr_results.jsonl").unlink()
    real = Path.replace

    def replace(path: Path, target: Path) -> Path:
        if target == store.out / paths.DATABASE:
            raise CutOffError
        return real(path, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(CutOffError):
        store.open()
    monkeypatch.undo()
    with store.open() as run:
        assert run.resumed == 2


def test_fresh_follows_no_forged_path(store, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    with store.open() as run:
        page = store.page(1)
        store.with_crops(page, b"x")
        page.image_crops = [type(page.image_crops[0])(**{**_fields(page), "path": "crops/../../outside.txt"})]
        run.write_page(page)
        run.finish()
    with store.open(mode=OpenMode.FRESH):
        assert outside.exists()


def _fields(page: Any) -> dict[str, Any]:
    crop = page.image_crops[0]
    return {name: getattr(crop, name) for name in crop.__struct_fields__}


@pytest.mark.parametrize("mode", list(OpenMode))
@pytest.mark.parametrize("name", ["report.html", "run.json", "ocr_results.jsonl", "documents/a.md", "crops/a.jpg"])
def test_never_overwrites_files_that_are_not_from_pagemill(store, mode: OpenMode, name: str) -> None:
    (store.out / name).parent.mkdir(parents=True)
    (store.out / name).write_text('{"generator": "another program"}')
    with pytest.raises(OutputError, match="but no run; a run might overwrite"):
        store.open(mode=mode)
    assert store.files() == {name}


def test_a_file_in_the_place_of_our_folder_is_named(store) -> None:
    (store.out).mkdir()
    (store.out / ".pagemill").write_text("mine")
    with pytest.raises(OutputError, match=r"contains \.pagemill but no run"):
        store.open()
    assert store.files() == {".pagemill"}


def test_a_foreign_database_is_left_alone(store) -> None:
    import sqlite3

    (store.out / ".pagemill").mkdir(parents=True)
    path = store.database
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 42")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(OutputError, match="not a database of pagemill"):
        store.open()
    assert path.read_bytes() == before


def test_a_run_of_another_version(store) -> None:
    import sqlite3

    fill(store, 1)
    connection = sqlite3.connect(store.database)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("ALTER TABLE run ADD COLUMN more TEXT")
    connection.close()
    with pytest.raises(OutputError, match="another version") as caught:
        store.open()
    assert "--fresh" in (caught.value.remedy or "")
    with store.open(mode=OpenMode.FRESH):
        pass


def test_a_run_whose_truth_was_in_the_lines(store) -> None:
    fill(store, 1)
    (store.database).rename(store.out / ".pagemill" / "ledger.sqlite")
    (store.out / ".pagemill" / "previews").write_bytes(b"x")
    before = store.files()
    uses = (store.open, lambda: RunReader.open(store.out), lambda: repair(store.out, exporters=store.exporters))
    for use in uses:
        with pytest.raises(OutputError, match="of an earlier version of pagemill") as caught:
            use()
        assert "--fresh" in (caught.value.remedy or "")
        assert store.files() == before
    with store.open(mode=OpenMode.FRESH) as run:
        assert run.resumed == 0
    assert store.files("crops") == store.files("documents") == set()
    assert store.files(".pagemill") == {".pagemill/lock", ".pagemill/run.sqlite", ".pagemill/derived.lock"}


def test_output_that_cannot_be_a_directory(store) -> None:
    store.out.write_text("")
    with pytest.raises(OutputError, match="is a file"):
        store.open()
    store.out = store.out / "out"
    with pytest.raises(OutputError, match="cannot write"):
        store.open()
