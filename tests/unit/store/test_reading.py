"""Reading a run, also while it is written."""

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import DamagedRunError, MissingDependencyError, OutputError
from pagemill.store.reading import FailedPage, RunReader
from pagemill.store.records import decompress
from pagemill.store.rows import PageState
from pagemill.store.verify import verify


def test_a_run_as_it_goes(store) -> None:
    with store.open() as run, RunReader.open(store.out) as reader:
        assert (reader.total, reader.in_flight(), list(reader.pages())) == (None, [], [])
        run.set_total(9)
        for number in (3, 1):
            store.start(run, number)
        run.write_page(store.page(3, text="three"))
        assert reader.in_flight() == ["doc_1"]
        owner = reader.owner()
        assert owner is not None
        assert owner.pid == os.getpid()
        run.write_page(store.page(1, text="one"))
        run.write_page(store.page(2, "other", text="other"))
        assert [page.page_id for page in reader.pages()] == ["doc_1", "other_2", "doc_3"]
        documents = {doc_id: [page.page_number for page in pages] for doc_id, pages in reader.documents()}
        assert documents == {"doc": [1, 3], "other": [2]}
        assert [page.page_number for page in reader.document("doc")] == [1, 3]
        assert list(reader.document("nobody")) == []
        assert (reader.total, reader.summary.pages) == (9, 3)
    with RunReader.open(store.out) as reader:
        assert (reader.in_flight(), reader.owner()) == ([], None)


def test_a_run_ends_beside_an_answer_of_its_own_that_was_left_half_way(store) -> None:
    with store.open() as run:
        for number in (1, 2, 3):
            run.write_page(store.page(number))
        records = run._run.each_record()
        next(records)
        run.finish()
        assert run.summary.finished
        records.close()
    assert verify(store.out, exporters=store.exporters).groups == []


def test_pages_are_found_by_their_records_without_json_of_sqlite(store) -> None:
    """It became part of every SQLite with 3.38."""
    with store.open() as run:
        for number in (1, 2, 3):
            run.write_page(store.page(number))
        run._run._connection.set_authorizer(
            lambda _, name, *__: sqlite3.SQLITE_DENY if name == "json_each" else sqlite3.SQLITE_OK
        )
        assert [row.page_id for row in run._run.rows_of([3, 1])] == ["doc_1", "doc_3"]


def test_counts_and_failures(store) -> None:
    with store.open() as run, RunReader.open(store.out) as reader:
        for number in range(1, 6):
            run.write_page(store.failed(number, category="timeout", attempts=2))
        run.write_page(store.failed(6, category="crash"))
        run.write_page(store.page(7))
        store.start(run, 8)
        run.skip_page(store.key(9), store.place(9), reason="duplicate of x")
        assert reader.counts() == {
            PageState.RUNNING: 1,
            PageState.WAITING: 0,
            PageState.DONE: 1,
            PageState.FAILED: 6,
            PageState.SKIPPED: 1,
        }
        timeouts, crashes = reader.failures(examples=2)
        assert (timeouts.category, timeouts.pages) == ("timeout", 5)
        assert timeouts.examples == [FailedPage("doc_1", "timeout!", 2), FailedPage("doc_2", "timeout!", 2)]
        assert (crashes.category, crashes.pages) == ("crash", 1)
        rows = {row.page_id: row for row in reader.rows("p.state >= ?", (PageState.DONE,))}
        assert (rows["doc_9"].category, rows["doc_9"].record, rows["doc_7"].key) == (
            "duplicate of x",
            None,
            store.key(7),
        )


def test_the_rate_is_that_of_late(store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)
    with store.open() as run, RunReader.open(store.out) as reader:
        assert reader.rate() is None
        for number in range(1, 9):
            run.write_page(store.page(number))
            now += 100.0 if number == 4 else 10.0
            run.sync()
        assert reader.summary.pages == 8
        assert reader.rate() == pytest.approx(4 / 40)  # of the last two minutes
        now += 1000.0
        assert reader.rate() is None
    with store.open(), RunReader.open(store.out) as reader:
        assert reader.rate() is None  # of this session


def test_a_long_session_is_known_from_its_start(store, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1e9
    monkeypatch.setattr("time.time", lambda: now)
    with store.open() as run:
        run.sync()
    with store.open() as run, RunReader.open(store.out) as reader:
        for _ in range(250):
            now += 5.0
            run.sync()
        assert reader.session() == (0, 1250.0)


@pytest.mark.parametrize("content", [b"", b"no database " * 100])
def test_a_run_that_is_none_names_the_remedy(store, content: bytes) -> None:
    with store.open():
        pass
    for file in (store.out / ".pagemill").glob("run.sqlite-*"):
        file.unlink()
    (store.database).write_bytes(content)
    with pytest.raises(DamagedRunError) as caught:
        RunReader.open(store.out)
    assert "verify --repair" in str(caught.value.remedy)


def test_a_reader_sees_the_run_as_of_its_start(store) -> None:
    with store.open() as run:
        for number in range(1, 4):
            run.write_page((store.failed if number == 1 else store.page)(number))
    with RunReader.open(store.out) as reader:
        pages = reader.pages()
        assert next(pages).page_id == "doc_1"
        with store.open(retry_failed=True):
            assert [page.page_id for page in reader.pages()] == ["doc_1", "doc_2", "doc_3"]
            assert [page.page_id for page in pages] == ["doc_2", "doc_3"]
            assert [page.page_id for page in reader.pages()] == ["doc_2", "doc_3"]


def test_a_damaged_record_is_reported(store) -> None:
    store.write(1, 2, 3)
    with sqlite3.connect(store.database) as database:
        damaged = "substr(data, 1, length(data) - 9) || x'00' || substr(data, -8)"
        database.execute(f"UPDATE records SET data = CAST({damaged} AS BLOB) WHERE record = 1")
        database.execute("DELETE FROM records WHERE record = 3")
    with RunReader.open(store.out) as reader:
        with pytest.raises(DamagedRunError, match="record of page doc_1 is damaged"):
            list(reader.pages())
        damages: list[str] = []
        pages = reader.pages(on_damage=lambda error: damages.append(error.message))
        assert [page.page_id for page in pages] == ["doc_2"]
        assert ["doc_1" in damages[0], "doc_3" in damages[1]] == [True, True]


def test_a_record_that_claims_to_be_huge_is_damaged(store) -> None:
    frame = bytes.fromhex("28b52ffde0") + (2**40).to_bytes(8, "little") + bytes(8)  # announces a terabyte
    with pytest.raises(ValueError, match="longer than"):
        decompress(frame)
    with pytest.raises(ValueError, match="of unknown length"):
        decompress(bytes.fromhex("28b52ffd00") + bytes(8))  # announces nothing


def test_the_stamp_changes_with_every_record(store) -> None:
    stamps = []
    for page in (store.failed(1), store.page(2), None, store.page(1)):
        with store.open(retry_failed=page is None) as run:
            if page is not None:
                run.write_page(page)
            with RunReader.open(store.out) as reader:
                stamps.append(reader.stamp())
    assert len(set(stamps)) == len(stamps)


def test_the_database_takes_no_text_for_a_number(store) -> None:
    store.open().close()
    with (
        sqlite3.connect(store.database) as database,
        pytest.raises(sqlite3.IntegrityError, match="cannot store TEXT"),
    ):
        database.execute("UPDATE derived SET bytes = 'here'")


def test_an_sqlite_that_is_too_old(store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.open().close()
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 34, 1))
    for use in (store.open, lambda: RunReader.open(store.out), lambda: verify(store.out, exporters=store.exporters)):
        with pytest.raises(MissingDependencyError, match=r"pagemill needs 3\.37"):
            use()


def test_no_run(store, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="contains no run"):
        RunReader.open(store.out)
    (store.out / ".pagemill").mkdir(parents=True)
    (store.database).write_bytes(b"nonsense" * 100)
    with pytest.raises(DamagedRunError):
        RunReader.open(store.out)


def test_pages_are_removed_between_two_documents(store) -> None:
    with store.open() as run:
        for source, number in (("a", 1), ("a", 2), ("b", 1)):
            run.write_page((store.failed if (source, number) == ("a", 1) else store.page)(number, source))
    with RunReader.open(store.out) as reader:
        documents = reader.documents()
        first, _ = next(documents)
        store.open(retry_failed=True).close()
        rest = [(doc_id, [page.page_number for page in pages]) for doc_id, pages in documents]
        assert (first, rest) == ("a", [("b", [1])])


def test_a_directory_that_cannot_be_written(store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(1)
    real = sqlite3.connect

    def read_only(name: str, **options: Any) -> sqlite3.Connection:
        if "immutable" not in name:
            raise sqlite3.OperationalError("attempt to write a readonly database")
        return real(name, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with RunReader.open(store.out) as reader:
        assert len(list(reader.pages())) == 1
