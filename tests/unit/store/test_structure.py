"""Structure of documents in a run directory: facts with the records, what is derived of them."""

import random
import sqlite3
from typing import Any

import msgspec
import pytest
from page_layouts import STYLES, heading, page, prose

from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo, OutlineEntry, PageResult
from pagemill.store.reading import RunReader
from pagemill.store.repair import repair
from pagemill.store.verify import Kind, verify

INFO = DocumentInfo(title="Mills", outline=(OutlineEntry(title="Paper", level=1, page=2),))


def pages(store: Any, **fields: Any) -> list[PageResult]:
    """Three pages, of which the first one alone has a heading of the largest size."""
    drawn = [
        page(1, heading("The Mill Book", 100, STYLES[3]), heading("Water", 200), prose(), **fields),
        page(2, heading("Paper", 100, level=1), prose(text="Of rags."), **fields),
        page(3, heading("Axles", 100, STYLES[1], level=1), prose(text="Of oak."), **fields),
    ]
    return [_of(store, number, each) for number, each in enumerate(drawn, 1)]


def _of(store: Any, number: int, drawn: PageResult) -> PageResult:
    names = ("page_id", "page_key", "doc_id", "source", "page_idx")
    return msgspec.structs.replace(drawn, **{name: getattr(store.page(number), name) for name in names})


def write(store: Any, records: list[PageResult], info: DocumentInfo | None = None) -> None:
    with store.open() as run:
        if info is not None:
            run.catalogue.describe("doc", info)
        for each in records:
            store.start(run, each.page_number)
            run.write_page(each)
        run.finish_document("doc")
        run.finish()


def levels(store: Any) -> list[int | None]:
    with RunReader.open(store.out) as reader:
        regions = [region for each in reader.document("doc") for region in each.regions]
        return [region.level for region in regions if region.label is not Label.TEXT]


def kept(store: Any) -> list[tuple[bytes, bytes]]:
    with RunReader.open(store.out) as reader:
        return reader.query("SELECT digest, data FROM overlays")


def test_records_are_read_through_the_structure_and_stay_as_they_are(store):
    write(store, pages(store))
    assert levels(store) == [1, 2, 2, 3]
    assert [line["regions"][0]["level"] for line in store.lines()] == [2, 1, 1]
    with RunReader.open(store.out) as reader:
        assert reader.page("doc_3").regions[0].level == 3
        assert reader.page("doc_3").markdown.startswith("### Axles")
        assert reader.page("doc_3", stored=True).regions[0].level == 1
        assert [each.regions[0].level for each in reader.pages()] == [1, 2, 3]
        assert [each.regions[0].level for each in reader.pages(stored=True)] == [2, 1, 1]
    assert (store.out / "documents" / "doc.md").read_text().splitlines()[0].startswith("# ")


def test_the_order_in_which_pages_come_changes_nothing(store, tmp_path):
    records = pages(store)
    write(store, records)
    expected = kept(store), levels(store), store.files("documents")
    shuffled = type(store)(tmp_path / "other")
    random.Random(1).shuffle(records)
    write(shuffled, records)
    assert (kept(shuffled), levels(shuffled), shuffled.files("documents")) == expected
    resumed = type(store)(tmp_path / "resumed")
    for each in records:
        with resumed.open() as run:
            store.start(run, each.page_number)
            run.write_page(each)
    with resumed.open() as run:
        run.finish()
    assert (kept(resumed), levels(resumed), resumed.files("documents")) == expected


def test_a_new_page_makes_another_structure(store):
    first, *rest = pages(store)
    write(store, rest)
    before = kept(store)
    assert levels(store) == [1, 2]
    write(store, [first])
    assert levels(store) == [1, 2, 2, 3]
    assert len(kept(store)) == 1 and kept(store) != before
    assert not verify(store.out, exporters=store.exporters).damaged


def test_what_a_document_says_of_itself_is_kept_and_used(store):
    write(store, pages(store), INFO)
    with RunReader.open(store.out) as reader:
        assert (reader.info("doc"), reader.info("other")) == (INFO, DocumentInfo())
        assert not reader.is_provisional("doc")
    with store.open() as run:
        run.catalogue.describe("doc", INFO)  # when it is opened again
        assert store.files("documents") == {"documents/doc.md", "documents/doc.json"}


def test_an_unfinished_document_is_provisional(store):
    with store.open() as run:
        for each in pages(store)[:2]:
            store.start(run, each.page_number)
        run.write_page(pages(store)[0])
        with RunReader.open(store.out) as reader:
            assert reader.is_provisional("doc")
            assert reader.has_open_pages("doc")


@pytest.mark.parametrize(
    "damage", ["UPDATE facts SET data = substr(data, 1, 40)", "UPDATE overlays SET data = x'928080'"]
)
def test_a_wrong_structure_is_found_and_repaired(store, damage):
    write(store, pages(store))
    with sqlite3.connect(store.database) as connection:
        connection.execute(damage)
    connection.close()
    found = verify(store.out, exporters=store.exporters)
    assert Kind.OTHER_STRUCTURE in {group.kind for group in found.groups}
    _, done = repair(store.out, exporters=store.exporters)
    assert not done.left.damaged
    assert levels(store) == [1, 2, 2, 3]


def test_facts_of_another_version_are_rebuilt(store):
    write(store, pages(store))
    with sqlite3.connect(store.database) as connection:
        connection.execute("UPDATE facts SET data = x'997f'")
        connection.execute("DELETE FROM overlays")
    connection.close()
    assert levels(store) == [1, 2, 2, 3]
