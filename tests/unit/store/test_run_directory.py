"""Writing a run: pages, documents, the end."""

import json
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from pagemill.document.page import PageError, PageResult
from pagemill.store import files, run_directory
from pagemill.store.database import Database
from pagemill.store.derived import Exporters
from pagemill.store.files import write_whole
from pagemill.store.reading import RunReader
from pagemill.store.verify import verify

ERROR = PageError(component="layout", category="timeout", message="too slow")


def test_a_run_from_start_to_end(store) -> None:
    with store.open(settings={"threads": 2}) as run:
        second = store.page(2, text="second")
        crops = store.with_crops(second, b"jpeg")
        store.start(run, 2)
        run.write_page(second, crops, b"preview of two")
        run.write_page(store.page(1, text="first", timings={"layout": 0.5}), preview=b"preview of one")
        run.finish_document("doc")
        assert (store.out / "documents" / "doc.md").read_text() == "first\nsecond\n"  # page order, not that of arrival
        assert (store.out / "documents" / "doc.json").read_text() == "[1, 2]"
        run.finish()
        store.check(run)

    assert (store.out / crops[0][0]).read_bytes() == b"jpeg"
    records = (store.out / "ocr_results.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(records[0], type=PageResult) == second
    text = {"page_id": "doc_2", "page_idx": 2, "doc_id": "doc", "text": "SECOND"}
    assert store.lines("parsed_texts.jsonl")[0] == text
    assert (store.out / "report.html").read_text() == "2 pages\ndoc_1 b'preview of one'\ndoc_2 b'preview of two'\n"
    summary = store.run_json()
    assert (summary["settings"], summary["identity"]) == ({"threads": 2}, {"lang": ["en"]})
    assert (summary["pages"], summary["documents"], summary["crops"], summary["failed"]) == (2, 1, 1, 0)
    assert summary["regions_by_label"] == {"text": 2}
    assert summary["seconds_by_stage"] == {"layout": 0.5}
    assert summary["finished"] >= summary["started"]
    assert store.files() == {
        *("ocr_results.jsonl", "parsed_texts.jsonl", "run.json", "report.html", crops[0][0]),
        *("documents/doc.md", "documents/doc.json"),
        *(".pagemill/run.sqlite", ".pagemill/lock", ".pagemill/derived.lock"),
    }


def test_the_documents_of_a_small_run_are_written_once(store) -> None:
    written: list[int] = []

    def markdown(pages):
        found = list(pages)
        written.append(len(found))
        return "".join(page.markdown for page in found)

    with store.open(exporters=replace(store.exporters, document_markdown=markdown)) as run:
        run.write_page(store.page(1, text="first"))
        run.finish_document("doc")
        run.write_page(store.page(2, text="second"))
        run.finish_document("doc")
        assert written == [1, 2]
        run.replace_page(store.page(1, text="better"))
        run.finish()
    assert written == [1, 2, 2]
    assert (store.out / "documents" / "doc.md").read_text() == "bettersecond"
    with store.open(exporters=replace(store.exporters, document_markdown=markdown)) as run:
        run.write_page(store.page(3, text="third"))
        run.finish_document("doc")
        run.finish()
    assert written == [1, 2, 2, 3]


def test_what_is_in_flight_and_what_waits(store) -> None:
    with store.open() as run:
        store.start(run, 1)
        store.start(run, 2)
        run.postpone_page(store.key(2), attempts=1, error=ERROR)
        run.skip_page(store.key(3), store.place(3), reason="duplicate of other")
        assert store.states() == {"doc_1": "RUNNING", "doc_2": "WAITING", "doc_3": "SKIPPED"}
        run.write_page(store.failed(2, attempts=2))
        assert store.states()["doc_2"] == "FAILED"
        store.check(run)
    assert store.states()["doc_1"] == "WAITING"  # nobody died of it
    assert store.ids() == ["doc_2"]
    with store.open() as run:
        assert (run.resumed, run.summary.skipped_by_kind) == (2, {"duplicate": 1})
        known = run.catalogue.register(store.digest("doc"), "doc.pdf")
        assert [number in known.ended for number in range(5)] == [False, False, True, False, False]
        assert known.waiting[1].attempts == 0


def test_skipped_pages_have_ended_only_for_the_same_reason(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        run.skip_page(store.key(2), store.place(2), reason="duplicate of other")
        run.skip_page(store.key(3), store.place(3), reason="duplicate of " + "x" * 2_000)
    reasons = [None, "duplicate of other", "duplicate of " + "x" * 2_000]
    for reason, ended in zip(reasons, [{1}, {1, 2}, {1, 3}], strict=True):
        with store.open() as run:
            known = run.catalogue.register(store.digest("doc"), "doc.pdf", reason)
            assert {number for number in range(1, 4) if number in known.ended} == ended
            assert {page.page_id for page in known.waiting.values()} == {f"doc_{number}" for number in {2, 3} - ended}
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "doc.pdf")
        run.write_page(store.page(2))
        run.finish()
        assert run.summary.skipped_by_kind == {"duplicate": 1}
        store.check(run)


def test_crops_are_on_the_disk_before_the_transaction_that_makes_their_record_durable(
    store, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    with store.open() as run:
        page = store.page(1)
        run.write_page(page, store.with_crops(page, b"one", b"two"))
        real_sync, real_transaction = files.sync, Database.durable_transaction

        def sync(path: Path, *flags: int) -> None:
            real_sync(path, *flags)
            order.append(path.name)

        def transaction(database: Database):
            order.append("transaction")
            return real_transaction(database)

        monkeypatch.setattr(files, "sync", sync)
        monkeypatch.setattr(Database, "durable_transaction", transaction)
        run.sync()
    assert sorted(order[:2]) == ["doc_1_crop_0.jpg", "doc_1_crop_1.jpg"]
    assert order.index("transaction") == len(order) - 1


def test_failures_are_counted_by_kind(store) -> None:
    with store.open() as run:
        run.write_page(store.failed(1))
        warning = PageError(component="table", category="internal", message="x", region=0)
        run.write_page(store.page(2, errors=[warning]))
        assert run.summary.failed == 1
        assert run.summary.failures_by_kind == {"timeout": 1}
        assert run.summary.warnings_by_kind == {"internal": 1}


def test_finish_writes_the_documents_that_have_changed(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1, "a.v1"))
        run.write_page(store.page(1, "a.v2"))
        run.finish_document("nobody")
        run.finish(interrupted=True, complete=False)
    assert store.files("documents") == {f"documents/a.v{n}.{suffix}" for n in (1, 2) for suffix in ("md", "json")}
    assert store.run_json()["interrupted"]
    with store.open() as run:
        (store.out / "documents" / "a.v1.md").unlink()
        run.write_page(store.page(2, "a.v2"))
        with RunReader.open(store.out) as reader:
            assert reader.summary.documents == 1
        run.finish()
        assert run.summary.documents == 2
    assert (store.out / "documents" / "a.v2.json").read_text() == "[1, 2]"


def test_neither_skipped_pages_nor_documents_made_at_the_end_let_the_journal_grow(
    store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_directory, "SYNC_EVERY_S", 0.0)  # every sync is due
    monkeypatch.setattr("pagemill.store.reading._CHUNK_ROWS", 2)
    journal, sizes, checkpoint = store.out / ".pagemill" / "run.sqlite-wal", [0], Database.checkpoint

    def measured(database: Database) -> None:
        sizes.append(journal.stat().st_size)
        checkpoint(database)

    names = [f"document-{number:02}" for number in range(41)]
    with store.open() as run:
        for name in names:
            run.write_page(store.page(1, name))
            run.skip_page(store.key(2, name), store.place(2, name), reason="duplicate of other")
        monkeypatch.setattr(Database, "checkpoint", measured)
        for number in range(40):
            run.skip_page(store.key(number, "more"), store.place(number, "more"), reason="not wanted")
        run.finish()
        assert run.summary.documents == len(names)
        store.check(run)
    assert store.files("documents") == {f"documents/{name}.{suffix}" for name in names for suffix in ("md", "json")}
    assert len(sizes) > 80
    assert max(sizes) < 200_000  # it was 16 KB a document


def test_documents_that_were_deleted_are_rebuilt(store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pagemill.store.reading._CHUNK_ROWS", 2)
    with store.open() as run:
        for source in "abcde":
            run.write_page(store.page(1, source))
        run.finish()
    before = store.files("documents")
    for name in ("a.md", "d.json", "e.md", "e.json"):
        (store.out / "documents" / name).unlink()
    kept = (store.out / "documents" / "b.md").stat().st_ino
    with store.open() as run:
        run.finish()
        store.check(run)
        assert run.summary.documents == 5
    assert store.files("documents") == before
    assert (store.out / "documents" / "b.md").stat().st_ino == kept
    shutil.rmtree(store.out / "documents")
    store.write()
    assert store.files("documents") == before


def test_a_report_of_an_earlier_time_goes_when_none_is_wanted(store) -> None:
    without = replace(store.exporters, report=None)
    with store.open() as run:
        run.write_page(store.page(1), preview=b"preview")
        run.finish()
    assert (store.out / "report.html").exists()
    store.write(2, exporters=without)
    assert not (store.out / "report.html").exists()
    assert not verify(store.out, exporters=store.exporters).damaged
    with store.open() as run:
        run.write_page(store.page(3), preview=b"other")
        run.finish()
        store.check(run)
    assert not verify(store.out, exporters=store.exporters).groups
    assert (store.out / "report.html").read_text().count("b'other'") == 1


@pytest.mark.parametrize("number", range(1, 40))
def test_a_death_at_the_end_of_a_run_is_no_damage(store, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the last statement or replaced file is."""
    run = store.open()
    run.write_page(store.page(1))
    steps = 0

    def counted(real):
        def call(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps >= number:
                raise KeyboardInterrupt
            return real(*arguments, **options)

        return call

    monkeypatch.setattr("pagemill.store.derived.write_whole", counted(write_whole))
    for name in ("transaction", "durable_transaction", "checkpoint"):
        monkeypatch.setattr(Database, name, counted(getattr(Database, name)))
    with suppress(KeyboardInterrupt):
        run.finish()
    monkeypatch.undo()
    shutil.copytree(store.out, dead := store.out.with_name("dead"))
    run.close()
    assert not [group.examples for group in verify(dead, exporters=store.exporters).groups if group.kind.is_damage]


def test_a_document_that_does_not_open_has_no_page_number(store) -> None:
    store.write(store.failed(0, page_number=None))
    assert (store.out / "documents" / "doc.json").read_text() == "[null]"


def test_failed_pages_are_tried_again_when_asked(store) -> None:
    with store.open() as run:
        for page in (store.page(1), store.failed(2, attempts=2), store.page(3)):
            run.write_page(page)
        run.finish()
    with store.open(retry_failed=True) as run:
        assert (run.resumed, run.summary.failed, run.summary.failures_by_kind) == (2, 0, {})
        assert run.catalogue.register(store.digest("doc"), "doc.pdf").waiting[2].attempts == 0
        assert store.states() == {"doc_1": "DONE", "doc_2": "WAITING", "doc_3": "DONE"}
        run.write_page(store.page(2))
        run.finish()
        store.check(run)
    assert store.ids("parsed_texts.jsonl") == ["doc_1", "doc_3", "doc_2"]
    assert json.loads((store.out / "documents" / "doc.json").read_text()) == [1, 2, 3]


@pytest.mark.parametrize(
    "name", ["x.jpg", "crops/../x.jpg", "/etc/x", "crops/", "crops/..", "crops/a/b.jpg", "crops/a\0"]
)
def test_rejects_crop_paths_outside_of_crops(store, name: str) -> None:
    with store.open() as run, pytest.raises(ValueError, match="crop"):
        run.write_page(store.page(1), [(name, b"x")])


def test_text_that_utf8_cannot_hold(store) -> None:
    with store.open() as run:
        run.start_page(store.key(1), store.place(1)._replace(uri="caf\udce9.pdf"))
        bad = store.page(1, text="broken \ud800 pair", metadata={"key\udc00": ["\udfff"]})
        bad.source = "caf\udce9.pdf"
        run.write_page(bad)
        run.catalogue.register(store.digest("other"), "caf\udce9.pdf")
        run.finish()
    with store.open() as run:
        run.write_page(bad)
    read = msgspec.json.decode((store.out / "ocr_results.jsonl").read_bytes(), type=PageResult)
    assert read.regions[0].content == "broken \ufffd pair"


def test_a_page_that_was_started_gives_way_to_its_source_that_does_not_open(store) -> None:
    """In each run: the page for the source keeps its id, and the other one leaves nothing behind."""
    for _ in range(2):
        with store.open() as run:
            store.start(run, 1)
            assert run.forget_started_page(store.key(1), "doc") == "doc"
            run.write_page(store.failed(0))
            run.finish()
            store.check(run)
        assert store.states() == {"doc": "FAILED"}


def test_no_report_keeps_no_previews(store) -> None:
    exporters = Exporters(
        embedding_text=lambda page: "", document_markdown=lambda pages: "", document_json=lambda pages, *_: b"{}"
    )
    with store.open(exporters=exporters) as run:
        run.write_page(store.page(1), preview=b"x")
        run.finish()
    assert not (store.out / "report.html").exists()
    with RunReader.open(store.out) as reader:
        assert not reader.has_previews()


def test_a_closed_directory_is_closed(store) -> None:
    run = store.open()
    run.close()
    run.close()
    with store.open():
        pass


def test_a_source_is_not_replaced_while_a_document_with_its_pages_is_written(store) -> None:
    replacing: list[threading.Thread] = []

    def slowly(pages):
        for page in pages:
            if not replacing:
                meet = threading.Thread(target=run.catalogue.register, args=(store.digest("other content"), "doc.pdf"))
                replacing.append(meet)
                meet.start()
                meet.join(0.2)
            yield page.markdown

    exporters = replace(store.exporters, document_markdown=slowly)
    with store.open(exporters=exporters) as run:
        for number in (1, 2, 3):
            run.write_page(store.page(number))
        run.finish_document("doc")
        replacing[0].join()
        assert store.states() == {}


def test_a_record_is_replaced_with_its_crops_and_its_preview(store) -> None:
    first = store.page(1, text="first")
    crops = store.with_crops(first, b"jpeg")
    with store.open() as run:
        run.write_page(first, crops, b"preview of one")
        run.write_page(store.page(2, text="second"), preview=b"preview of two")
        run.finish()
    error = PageError(component="describe", category="truncated", message="cut off")
    with store.open(settings=None) as run:
        changed = msgspec.structs.replace(first, markdown="described", errors=[error])
        run.replace_page(changed)
        with pytest.raises(ValueError, match="no record"):
            run.replace_page(store.page(3))
        run.write_derived()
        store.check(run)
    assert store.ids() == ["doc_2", "doc_1"]  # in the order of writing, one line a page
    assert store.lines()[1]["markdown"] == "described"
    assert (store.out / crops[0][0]).read_bytes() == b"jpeg"
    assert "doc_1 b'preview of one'" in (store.out / "report.html").read_text()
    summary = store.run_json()
    assert (summary["pages"], summary["crops"], summary["warnings_by_kind"]) == (2, 1, {"truncated": 1})
    assert summary["finished"] is not None
    assert not verify(store.out, exporters=store.exporters).damaged
