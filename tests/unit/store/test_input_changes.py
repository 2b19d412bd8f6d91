"""Pages and sources that this process finds or does not find in its input: new, gone, changed, tried again."""

import pytest

from pagemill.document.identity import text_digest
from pagemill.store import run_directory
from pagemill.store.run_database import NO_LONGER_IN_THE_INPUT


def test_a_page_ends_once(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1))
        for again in (lambda: run.write_page(store.page(1)), lambda: store.start(run, 1)):
            with pytest.raises(ValueError, match="already finished"):
                again()
        with pytest.raises(ValueError, match="already finished"):
            run.skip_page(store.key(1), store.place(1), reason="why")
        assert store.ids() == ["doc_1"]
        store.check(run)


def test_what_is_no_longer_in_the_input(store) -> None:
    with store.open() as run:
        for number in (1, 2):
            store.start(run, number)
        run.write_page(store.failed(0, "broken", page_number=None))
        run.finish(complete=False)
    assert store.states() == {"doc_1": "WAITING", "doc_2": "WAITING", "broken": "FAILED"}
    with store.open() as run:
        assert run.resumed == 0  # the broken one is tried again
        store.start(run, 1)
        run.write_page(store.page(1))
        run.finish(complete=True)
        store.check(run)
    assert store.states() == {"doc_1": "DONE", "doc_2": "SKIPPED"}
    assert store.ids() == store.ids("parsed_texts.jsonl") == ["doc_1"]
    assert store.run_json()["skipped_by_kind"] == {NO_LONGER_IN_THE_INPUT: 1}
    with store.open() as run:  # and when it is there again
        known = run.catalogue.register(store.digest("doc"), "doc.pdf")
        assert known.waiting[2].page_id == "doc_2"
        store.start(run, 2)
        assert run.summary.skipped == 0
        run.write_page(store.page(2))
        store.check(run)


def test_a_source_that_does_not_open_is_tried_again(store) -> None:
    def parse() -> None:
        with store.open() as run:
            assert run.catalogue.register(store.digest("broken"), "broken.pdf").pages is None
            store.start(run, 0, "broken")
            run.write_page(store.failed(0, "broken", category="encrypted", page_number=None))
            run.finish()
            store.check(run)

    parse()
    parse()
    assert store.ids() == ["broken"]
    with store.open() as run:  # now it opens
        run.catalogue.register(store.digest("broken"), "broken.pdf")
        store.start(run, 1, "broken")
        run.write_page(store.page(1, "broken"))
        run.finish()
        store.check(run)
    assert store.ids() == ["broken_1"]
    assert store.run_json()["failed"] == 0


def test_a_file_that_cannot_be_read_for_a_while_keeps_its_pages(store) -> None:
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "doc.pdf")
        run.write_page(store.page(1))
    for _ in range(2):
        with store.open() as run:
            assert 1 not in run.catalogue.register(text_digest("doc.pdf"), "doc.pdf").ended
            store.start(run, 0, "doc.pdf")  # which has the digest of the address
            run.write_page(store.failed(0, "doc.pdf", page_number=None))
            run.finish(complete=True)
            store.check(run)
        assert sorted(store.ids()) == ["doc.pdf", "doc_1"]
    with store.open() as run:
        assert 1 in run.catalogue.register(store.digest("doc"), "doc.pdf").ended
        run.finish(complete=True)
        store.check(run)
    assert (store.ids(), store.run_json()["failed"]) == (["doc_1"], 0)


def test_a_file_with_new_content_replaces_the_old_one(store) -> None:
    old = store.page(1)
    crops = store.with_crops(old, b"one", b"two")
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "doc.pdf")
        assert run.catalogue.document_id("old", "doc") == "doc"
        store.start(run, 1)
        run.write_page(old, crops)
        run.write_page(store.page(1, "other"))
        run.finish()
    with store.open() as run:
        known = run.catalogue.register(store.digest("new"), "doc.pdf")
        assert (known.copy, 1 in known.ended, known.waiting) == (1, False, {})
        assert run.catalogue.document_id("new", "doc") == "doc"
        assert run.catalogue.page_id("doc_1") == "doc_1"
        new = store.page(1, page_key=str(store.key(1, "new")), text="new")
        run.write_page(new, store.with_crops(new, b"three"))
        run.finish()
        store.check(run)
    assert store.ids() == ["other_1", "doc_1"]
    assert store.files("crops") == {crops[0][0]}
    assert (store.out / crops[0][0]).read_bytes() == b"three"
    assert (store.out / "documents" / "doc.md").read_text() == "new\n"


def test_a_long_source_is_replaced_in_parts(store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_directory, "_DROPPED_TOGETHER", 2)
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "doc.pdf")
        for number in range(1, 6):
            run.write_page(store.page(number))
        run.finish()
    with store.open() as run:
        run.catalogue.register(store.digest("new"), "doc.pdf")
        assert run.summary.pages == 0
        run.finish()
        store.check(run)
    assert store.ids() == []


def test_a_document_goes_with_its_last_page(store) -> None:
    store.write(1)
    with store.open() as run:
        run.catalogue.register(store.digest("new"), "doc.pdf")
        run.finish()
        store.check(run)
    assert store.files("documents") == set()
    assert store.run_json()["documents"] == 0


def test_a_document_that_loses_pages_after_it_was_written_is_written_again(store) -> None:
    with store.open() as run:
        run.write_page(store.page(1, text="kept"))
        run.write_page(store.page(1, "shard", text="gone", doc_id="doc"))
        run.finish_document("doc")
        run.catalogue.register(store.digest("new"), "shard.pdf")
        run.finish()
    assert (store.out / "documents" / "doc.md").read_text() == "kept\n"
