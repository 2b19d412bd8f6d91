"""What the database tells sources."""

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from pagemill.document.page import PageError
from pagemill.store.catalogue import Numbers
from pagemill.store.rows import Place
from pagemill.store.run_database import NO_LONGER_IN_THE_INPUT


@given(st.sets(st.integers(0, 60)))
def test_a_set_of_numbers(numbers) -> None:
    pages = Numbers()
    for number in numbers:
        pages.add(number)
    assert {number for number in range(-2, 63) if number in pages} == numbers
    assert "1" not in pages


def test_digests_are_remembered_by_path_size_and_time(store) -> None:
    path, digest = Path("/scans/caf\udce9.pdf"), store.digest("x")
    with store.open() as run:
        run.catalogue.remember_digest(path, 10, 1, store.digest("older"))
        run.catalogue.remember_digest(path, 10, 2, digest)
        run.sync()
    with store.open() as run:
        assert run.catalogue.remembered_digest(path, 10, 2) == digest
        assert run.catalogue.remembered_digest(path, 10, 1) is None
        assert run.catalogue.remembered_digest(path, 11, 2) is None


def test_copies_of_one_content(store) -> None:
    with store.open() as run:
        content = store.digest("x")
        assert [run.catalogue.register(content, uri).copy for uri in ("a.pdf", "b.pdf", "c.pdf")] == [1, 2, 3]
        run.catalogue.counted(content, 2, 7)
    with store.open() as run:  # in another order, one renamed, and one more
        known = [run.catalogue.register(content, uri) for uri in ("c.pdf", "b.pdf", "renamed.pdf", "d.pdf")]
        assert [each.copy for each in known] == [3, 2, 1, 4]
        assert [each.pages for each in known] == [None, 7, None, None]


def test_a_renamed_file_keeps_its_pages(store) -> None:
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "doc.pdf")
        run.write_page(store.page(1))
    with store.open() as run:
        assert 1 in run.catalogue.register(store.digest("doc"), "renamed.pdf").ended
        assert run.catalogue.register(store.digest("new"), "doc.pdf").copy == 1  # takes the old name, replaces nothing
        assert store.ids() == ["doc_1"]
        store.check(run)


def test_names_are_unique_and_kept(store) -> None:
    with store.open() as run:
        catalogue = run.catalogue
        assert [catalogue.document_id(key, name) for key, name in (("1", "a"), ("2", "A"), ("1", "z"), ("3", "a"))] == [
            *("a", "A-2", "a", "a-3")
        ]
        assert [catalogue.page_id(name) for name in ("p", "P", "p", "q")] == ["p", "P-2", "p-3", "q"]
        run.start_page(store.key(1), Place("P-2", "A-2", "u", 1, 0))
    with store.open() as run:  # names that no page was started under are free again
        assert run.catalogue.document_id("2", "whatever") == "A-2"
        assert [run.catalogue.page_id("p") for _ in range(2)] == ["p", "p-3"]
        assert [run.catalogue.document_id(key, "a") for key in ("9", "8")] == ["a", "a-3"]


def test_deaths_of_the_process(store) -> None:
    def wait() -> dict[int, tuple[int, str | None]]:
        waiting = run.catalogue.register(store.digest("doc"), "doc.pdf").waiting
        return {number: (page.attempts, page.death) for number, page in waiting.items()}

    def die(**options) -> None:
        run._run.release_in_flight = lambda: None  # as if nothing had been put right
        run.close()

    run = store.open()
    for _ in range(3):  # nobody sees it die
        store.start(run, 1)
        die()
        run = store.open()
    assert wait() == {1: (1, None)}  # from now on alone, with no attempt to its name
    assert run._run.one("SELECT attempts FROM pages WHERE page = 1") == 0
    store.start(run, 1)
    store.start(run, 2)
    die()
    run = store.open(death="SIGSEGV")
    assert wait() == {1: (1, None), 2: (1, None)}
    store.start(run, 2, alone=True)
    die()
    run = store.open(death="SIGKILL")
    assert wait() == {1: (1, None), 2: (2, "SIGKILL")}
    assert next(run._run.rows("p.page = 2")).category == "crash"
    run.close()


def test_attempts_are_remembered(store) -> None:
    with store.open() as run:
        store.start(run, 1)
        run.postpone_page(store.key(1), attempts=2, error=PageError(component="x", category="oom", message="m" * 9999))
    with store.open() as run:
        assert run.catalogue.register(store.digest("doc"), "doc.pdf").waiting[1].attempts == 2
        (row,) = run._run.rows("p.page = 1")
        assert (row.category, len(row.message or "")) == ("oom", 1000)


@pytest.mark.parametrize("number", [0, 1])
def test_a_document_that_loses_its_only_page_to_a_new_one_keeps_its_name(store, number: int) -> None:
    """A source that did not open, or a page that was gone, is there again: nobody else is given its name."""
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "y/doc.pdf")
        assert run.catalogue.document_id("y", "doc") == "doc"
        run.skip_page(store.key(number), store.place(number), reason=NO_LONGER_IN_THE_INPUT)
    with store.open() as run:
        run.catalogue.register(store.digest("doc"), "y/doc.pdf")
        assert run.catalogue.document_id("y", "doc") == "doc"
        store.start(run, 1)
    with store.open() as run:
        assert run.catalogue.document_id("z", "doc") == "doc-2"
        assert run.catalogue.document_id("y", "doc") == "doc"
