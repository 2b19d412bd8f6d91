"""What is cleaned up when a directory is opened: after kills, power cuts, with a lost database."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from pagemill.errors import DamagedRunError
from pagemill.sources.remote import copy_to_disk
from pagemill.store.repair import repair
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import verify


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
    (store.out / "crops" / "doc_7_crop_0.jpg").write_bytes(b"of a page that did not end")
    (store.out / "crops" / "doc_7_crop_1.jpg").write_bytes(b"half of o")
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
        for number in sorted(run.catalogue.register(store.digest("doc"), "doc.pdf").waiting):
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
def test_a_killed_process_loses_what_was_in_flight(store) -> None:
    with (store.out / "ocr_results.jsonl").open("ab") as stream:
        stream.write(b'{"page_id": "cut sho')
    with store.open() as run:
        assert run.resumed == 6
        assert waiting(store) == ["doc_7"]
        assert store.ids() == [f"doc_{n}" for n in range(1, 7)]  # the half line is gone
        assert "crops/doc_7_crop_0.jpg" not in store.files()
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
def test_copies_of_files_that_a_killed_process_left_are_deleted(store) -> None:
    run = store.open()
    copy = copy_to_disk(b"%PDF-1.7", run.catalogue.temporary)
    kill(store, run)
    assert copy.path.exists()
    with store.open():
        assert not copy.path.exists()


@pytest.mark.usefixtures("run")
def test_the_line_of_a_page_that_was_committed_and_not_yet_appended_follows(store) -> None:
    results = store.out / "ocr_results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:5]))
    with store.open() as run:
        assert results.read_bytes() == b"".join(lines)
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("zeros", [False, True])
def test_a_power_cut_takes_the_newest_lines(store, zeros: bool) -> None:
    path = store.out / "ocr_results.jsonl"
    cut(path, path.stat().st_size - 5, zeros=zeros)
    with store.open() as run:
        assert waiting(store) == ["doc_7"]
        assert store.ids() == [f"doc_{n}" for n in range(1, 7)]
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.6, 0.9])
def test_a_power_cut_takes_the_newest_transactions(store, keep: float) -> None:
    """Those of the pages since the last sync; a crop may stay that nothing names, until its page is parsed again."""
    journal = store.out / ".pagemill" / "run.sqlite-wal"
    cut(journal, int(keep * journal.stat().st_size))
    (store.out / ".pagemill" / "run.sqlite-shm").unlink()
    with store.open() as run:
        assert set(waiting(store)) <= {f"doc_{n}" for n in (4, 5, 6, 7)}
        assert store.ids()[:3] == [f"doc_{n}" for n in (1, 2, 3)]
        store.check(run, stray={f"crops/doc_{n}_crop_{i}.jpg" for n in range(4, 8) for i in (0, 1)})
        for number in range(1, 8):
            if run._run.row(store.key(number)) is None or f"doc_{number}" in waiting(store):
                page = store.page(number, text=f"text {number}")
                run.write_page(page, store.with_crops(page, b"crop %d" % number))
                assert run._run.row(store.key(number)).record > 6  # who has seen those of before takes it for another
        run.finish()
    groups = repair(store.out, exporters=store.exporters)[0].groups
    assert [example.place for group in groups for example in group.examples] == ["crops/doc_7_crop_1.jpg"]
    assert not verify(store.out, exporters=store.exporters).groups


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("content", [None, b"", b"crop X"])
def test_a_power_cut_takes_a_crop(store, content: bytes | None) -> None:
    path = store.out / "crops" / "doc_5_crop_0.jpg"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with store.open() as run:
        assert waiting(store) == ["doc_5", "doc_7"]
        assert not path.exists()
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
def test_lines_that_somebody_deleted_are_written_again(store) -> None:
    before = store.lines()
    cut(store.out / "ocr_results.jsonl", 200)
    with store.open() as run:
        run.finish(complete=False)
        assert store.lines() == before
    (store.out / "ocr_results.jsonl").unlink()
    (store.out / "parsed_texts.jsonl").unlink()
    finish(store)


@pytest.mark.usefixtures("run")
def test_documents_that_may_not_be_on_the_disk_are_written_again(store) -> None:
    with store.open() as run:
        run.finish_document("doc")
        kill(store, run)
    cut(store.out / "documents" / "doc.md", 3)
    with store.open() as run:
        store.check(run)
    finish(store)


@pytest.mark.usefixtures("run")
@pytest.mark.parametrize("damage", ["missing", "empty", "torn", "garbage"])
def test_a_lost_database_is_rebuilt_from_the_lines(store, damage: str) -> None:
    with store.open() as run:  # so that there is something in the database itself
        run.sync()
    database = store.database
    if damage == "missing":
        database.unlink()
    elif damage == "empty":
        database.write_bytes(b"")
    elif damage == "torn":
        cut(database, 20_000)
    else:
        database.write_bytes(os.urandom(5000))
    with store.open() as run:
        assert run.resumed == 6
        known = run.catalogue.register(store.digest("doc"), "doc.pdf")
        assert [number in known.ended for number in range(1, 8)] == [*[True] * 6, False]
        assert run.catalogue.document_id("any key", "doc") == "doc"
        store.check(run)
        page = store.page(7, text="text 7")
        run.write_page(page, store.with_crops(page, b"crop 7"))
    finish(store)


@pytest.mark.usefixtures("run")
def test_a_database_rebuilt_takes_the_last_of_several_lines(store) -> None:
    results = store.out / "ocr_results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    forged = lines[0].replace(store.digest("doc").encode(), store.digest("changed").encode())  # has the name of doc_1
    results.write_bytes(b"".join([lines[1], b"no record\n", lines[0], *lines[1:], forged, b'{"page_id": "cut sho']))
    (store.database).unlink()
    with store.open() as run:
        store.check(
            run, stray={"crops/doc_7_crop_0.jpg", "crops/doc_7_crop_1.jpg"}
        )  # nothing tells any more that doc_7 was in flight
        keys = [row.key for row in run._run.rows("p.name = 'doc_1'")]
        assert keys == [store.key(1, "changed")]
    assert store.ids() == [f"doc_{n}" for n in (2, 3, 4, 5, 6, 1)]


@pytest.mark.usefixtures("run")
def test_without_database_and_run_json_nothing_is_guessed(store) -> None:
    (store.database).unlink()
    (store.out / "run.json").unlink()
    before = (store.out / "ocr_results.jsonl").read_bytes()
    with pytest.raises(DamagedRunError) as caught:
        store.open()
    assert "--fresh" in (caught.value.remedy or "")
    assert (store.out / "ocr_results.jsonl").read_bytes() == before


def test_a_database_rebuilt_knows_where_files_were(store, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    store.write(1, store.page(1, "other"))
    (store.database).unlink()
    with store.open() as run:
        address = str(tmp_path / "doc.pdf")
        assert run.catalogue.register(store.digest("new content"), address).copy == 1
        run.finish(complete=False)
        assert store.ids() == ["other_1"]


def test_what_another_version_derived_is_rewritten(store) -> None:
    store.write(1)
    with sqlite3.connect(store.database) as database:
        database.execute("UPDATE run SET version = '0.0.1'")
    for name in ("parsed_texts.jsonl", "documents/doc.md"):
        (store.out / name).write_bytes(b"x" * (store.out / name).stat().st_size)
    assert not verify(store.out, exporters=store.exporters).damaged
    store.write()
    assert store.lines("parsed_texts.jsonl")[0]["text"] == "TEXT"
    assert (store.out / "documents" / "doc.md").read_text() == "text\n"


def test_the_journal_does_not_grow_with_processes_that_die_young(store) -> None:
    journal = store.out / ".pagemill" / "run.sqlite-wal"
    sizes = []
    for life in range(6):
        run = store.open()
        for number in range(20 * life, 20 * life + 20):
            run.write_page(store.page(number + 1))
        sizes.append(journal.stat().st_size)
        kill(store, run)
    assert max(sizes) < 2 * sizes[0]
