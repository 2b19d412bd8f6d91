"""What is put right when a directory is opened: power cuts, lost ledgers, compactions that were cut off."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import DamagedRunError
from pagemill.store import compaction, dropping
from pagemill.store.run_directory import RunDirectory


@pytest.fixture
def run(store) -> RunDirectory:
    """Three pages that are safe, three that are not, each with a crop; the process is gone."""
    run = store.open()
    for number in range(1, 7):
        store.start(run, number)
        page = store.page(number, text=f"text {number}")
        run.write_page(page, store.with_crops(page, b"crop %d" % number), b"preview %d" % number)
        if number == 3:
            run.sync()
    store.start(run, 7)
    (store.out / "crops" / "doc_7_0.jpg").write_bytes(b"of a page that did not end")
    (store.out / "crops" / "doc_7_1.jpg.pagemill-tmp").write_bytes(b"half of o")
    kill(store, run)
    return run


def kill(store, run: RunDirectory) -> None:
    """End the process without any farewell: go on with the files as they are."""
    moved = store.out.with_name("killed")
    shutil.copytree(store.out, moved)
    run.close()
    shutil.rmtree(store.out)
    moved.rename(store.out)


def cut(path: Path, size: int, *, zeros: bool = False) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:size] + bytes(len(content) - size if zeros else 0))


def finish(store) -> None:
    """Parse what waits, and see that all is as it should be."""
    with store.open() as run:
        store.check(run)
        for number in sorted(run.catalogue.meet(store.digest("doc"), "doc.pdf").waiting):
            store.start(run, number)
            page = store.page(number, text=f"text {number}")
            run.write_page(page, store.with_crops(page, b"crop %d" % number))
        run.finish()
        store.check(run)
    assert sorted(store.ids()) == sorted(store.ids("parsed_texts.jsonl")) == [f"doc_{n}" for n in range(1, 8)]
    assert (store.out / "documents" / "doc.md").read_text() == "".join(f"text {n}\n" for n in range(1, 8))
    assert store.run_json()["pages"] == 7
    assert not [name for name in store.files() if "tmp" in name]


def waiting(store) -> list[str]:
    return sorted(page_id for page_id, state in store.states().items() if state == "WAITING")


@pytest.mark.usefixtures("run")
def test_a_killed_process_loses_what_was_under_way(store) -> None:
    for name in ("ocr_results.jsonl", "parsed_texts.jsonl", ".pagemill/previews"):
        with (store.out / name).open("ab") as stream:
            stream.write(b'{"page_id": "cut sho')
    with store.open() as run:
        assert run.resumed == 6
        assert waiting(store) == ["doc_7"]
        assert "crops/doc_7_0.jpg" not in store.files()
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize(
    ("name", "lost"),
    [("ocr_results.jsonl", ["doc_6", "doc_7"]), ("parsed_texts.jsonl", ["doc_7"]), (".pagemill/previews", ["doc_7"])],
)
def test_a_power_cut_takes_the_newest_bytes(store, name: str, lost: list[str], zeros: bool) -> None:
    path = store.out / name
    cut(path, path.stat().st_size - 5, zeros=zeros)
    with store.open() as run:
        assert waiting(store) == lost
        store.check(run)
        previews = [run._reading().preview(f"doc_{number}") for number in (5, 6)]
        if name == ".pagemill/previews":
            assert previews == [b"preview 5", None]
            assert {row.page_id for row in run._ledger.rows("p.preview_offset IS NULL")} == {"doc_6", "doc_7"}
    finish(store)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("content", [None, b"", b"crop X"])
def test_a_power_cut_takes_a_crop(store, content: bytes | None) -> None:
    path = store.out / "crops" / "doc_5_0.jpg"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with store.open() as run:
        assert waiting(store) == ["doc_5", "doc_7"]
        assert store.ids() == [f"doc_{n}" for n in (1, 2, 3, 4, 6)]
        assert not path.exists()
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
def test_more_than_the_newest_bytes_are_gone(store) -> None:
    """Not what a power cut does, but what a person may: texts are made anew, records are parsed anew."""
    cut(store.out / "ocr_results.jsonl", len((store.out / "ocr_results.jsonl").read_bytes()) // 2)
    (store.out / "parsed_texts.jsonl").unlink()
    with store.open() as run:
        assert waiting(store) == [f"doc_{n}" for n in (4, 5, 6, 7)]
        assert store.lines("parsed_texts.jsonl")[0]["text"] == "TEXT 1"
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
def test_all_lines_are_gone(store) -> None:
    (store.out / "ocr_results.jsonl").unlink()
    with store.open() as run:
        assert len(waiting(store)) == 7
        assert run.summary.copy() == type(run.summary.copy())()
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
def test_lost_texts_beside_lost_records(store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open() as run:
        run.sync()
    results = store.out / "ocr_results.jsonl"
    content = results.read_bytes()
    for number in (1, 4, 5):
        content = content.replace(b'"content":"text %d"' % number, b'"content":"TEXT %d"' % number)
    results.write_bytes(content)
    (store.out / "parsed_texts.jsonl").unlink()
    monkeypatch.setattr("pagemill.store.recovery._CHUNK_ROWS", 2)
    counts: list[int] = []
    counted = dropping.counted
    monkeypatch.setattr(dropping, "counted", lambda *arguments: counts.append(1) or counted(*arguments))
    with store.open() as run:
        assert waiting(store) == [f"doc_{n}" for n in (1, 4, 5, 7)]
        assert store.ids("parsed_texts.jsonl") == [f"doc_{n}" for n in (2, 3, 6)]
        store.check(run)
    assert len(counts) == 1  # over all records, each time
    finish(store)


@pytest.mark.usefixtures("run")
def test_documents_that_may_not_be_on_the_disk_are_written_again(store) -> None:
    with store.open() as run:
        run.finish_document("doc")
        assert run.summary.documents == 1
        kill(store, run)
    cut(store.out / "documents" / "doc.md", 3)
    with store.open() as run:
        assert run.summary.documents == 0
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "garbage"])
def test_a_lost_ledger_is_made_anew_from_the_lines(store, damage: str) -> None:
    with store.open() as run:  # so that there is something in the database itself
        run.sync()
    ledger = store.out / ".pagemill" / "ledger.sqlite"
    if damage == "missing":
        ledger.unlink()
    elif damage == "empty":
        ledger.write_bytes(b"")
    elif damage == "torn":
        cut(ledger, 9000)
    else:
        ledger.write_bytes(os.urandom(5000))
    cut(store.out / "parsed_texts.jsonl", 20, zeros=True)
    (store.out / "crops" / "doc_2_0.jpg").write_bytes(b"")
    with store.open() as run:
        assert run.resumed == 5
        assert store.lines("parsed_texts.jsonl")[0]["text"] == "TEXT 1"
        known = run.catalogue.meet(store.digest("doc"), "doc.pdf")
        assert [number in known.ended for number in range(1, 8)] == [True, False, True, True, True, True, False]
        assert run.catalogue.document_id("any key", "doc") == "doc"
        store.check(run)
        for number in (2, 7):
            page = store.page(number, text=f"text {number}")
            run.write_page(page, store.with_crops(page, b"crop %d" % number))
    finish(store)


@pytest.mark.usefixtures("run")
def test_a_ledger_made_anew_takes_the_last_of_several_records(store) -> None:
    results = store.out / "ocr_results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    forged = lines[0].replace(store.digest("doc").encode(), store.digest("changed").encode())  # has the name of doc_1
    results.write_bytes(b"".join([lines[1], b"no record\n", lines[0], *lines[1:], forged, b'{"page_id": "cut sho']))
    (store.out / ".pagemill" / "ledger.sqlite").unlink()
    with store.open() as run:
        store.check(run, stray={"crops/doc_7_0.jpg"})  # nothing tells any more that doc_7 was under way
        keys = [row.key for row in run._ledger.rows("p.name = 'doc_1' ORDER BY p.source")]
        assert keys == [store.key(1, "changed")]
    assert store.ids() == [f"doc_{n}" for n in (2, 3, 4, 5, 6, 1)]


@pytest.mark.usefixtures("run")
def test_without_ledger_and_run_json_nothing_is_guessed(store) -> None:
    (store.out / ".pagemill" / "ledger.sqlite").unlink()
    (store.out / "run.json").unlink()
    before = (store.out / "ocr_results.jsonl").read_bytes()
    with pytest.raises(DamagedRunError) as caught:
        store.open()
    assert "--fresh" in (caught.value.remedy or "")
    assert (store.out / "ocr_results.jsonl").read_bytes() == before


def test_a_compaction_makes_nothing_safe_that_was_not(store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open() as run:
        run.write_page(store.failed(1))
        run.write_page(store.page(2))
        run.sync()
        page = store.page(3)
        run.write_page(page, store.with_crops(page, b"crop"))
        kill(store, run)
    monkeypatch.setattr(RunDirectory, "sync", lambda run: None)  # which follows at once
    with store.open(retry_failed=True) as run:
        safe = run._ledger.database.query("SELECT synced_results FROM run")[0][0]
        second, third = run._ledger.rows("p.page > 1 ORDER BY p.page")
        assert second.record.offset == 0
        assert third.record.offset == safe


def test_a_ledger_made_anew_knows_where_files_were(store, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with store.open() as run:
        run.write_page(store.page(1))
        run.write_page(store.page(1, "other"))
        run.finish()
    (store.out / ".pagemill" / "ledger.sqlite").unlink()
    with store.open() as run:
        address = str(tmp_path / "doc.pdf")
        assert run.catalogue.meet(store.digest("new content"), address).copy == 1
        run.finish(complete=False)
        assert store.ids() == ["other_1"]


class CutOffError(Exception):
    """The process dies here."""


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("at", ["copy", "second copy", "record", "rename", "second rename", "cleared"])
def test_a_compaction_that_is_cut_off(store, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    (store.out / "crops" / "doc_4_0.jpg").unlink()  # so that a line must go from the middle
    calls: dict[str, int] = {}

    def dies(function: Any, number: int) -> Any:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            calls[at] = calls.get(at, 0) + 1
            if calls[at] >= number:
                raise CutOffError
            return function(*arguments, **options)

        return wrapper

    if at.endswith("copy"):
        monkeypatch.setattr(compaction, "_copy", dies(compaction._copy, 2 if at == "second copy" else 1))
    elif at == "record":
        monkeypatch.setattr(compaction, "_record", dies(compaction._record, 1))
    elif at.endswith("rename"):
        monkeypatch.setattr(Path, "replace", dies(Path.replace, 2 if at == "second rename" else 1))
    else:
        monkeypatch.setattr(compaction, "sync_directory", dies(compaction.sync_directory, 2))
    with pytest.raises(CutOffError):
        store.open()
    monkeypatch.undo()
    with store.open() as run:
        assert store.ids() == store.ids("parsed_texts.jsonl") == [f"doc_{n}" for n in (1, 2, 3, 5, 6)]
        store.check(run)
    finish(store)


def test_the_ends_of_files_are_cut_without_a_rewrite(store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.open() as run:
        for page in (store.page(1), store.failed(2), store.failed(3)):
            run.write_page(page)
    monkeypatch.setattr(compaction, "_copy", None)
    with store.open(retry_failed=True) as run:
        assert store.ids() == ["doc_1"]
        store.check(run)
