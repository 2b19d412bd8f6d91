"""Processes that die soon after they opened a directory, one after the other."""

from __future__ import annotations

import shutil

from pagemill.store import files as files_module
from pagemill.store import recovery


def kill(store, run) -> None:
    """Leave a directory as a killed process does: as it is, with the ledger's journal."""
    copy = store.out.with_name("copy")
    shutil.copytree(store.out, copy)
    run.close()
    shutil.rmtree(store.out)
    copy.rename(store.out)


def test_what_a_short_life_wrote_is_looked_at_once(store, monkeypatch):
    looked_at: list[str] = []
    original = recovery.Recovery._is_whole

    def is_whole(self, row, record):
        looked_at.append(row.page_id)
        return original(self, row, record)

    monkeypatch.setattr(recovery.Recovery, "_is_whole", is_whole)
    for number in range(1, 6):
        run = store.open()
        run.write_page(store.page(number))
        kill(store, run)
    assert looked_at == [f"doc_{number}" for number in range(1, 5)]
    assert store.ids() == [f"doc_{number}" for number in range(1, 6)]


def test_crops_of_a_short_life_are_on_the_disk_before_that_is_noted(store, monkeypatch):
    run = store.open()
    page = store.page(1)
    files = store.with_crops(page, b"one", b"two")
    run.write_page(page, files)
    kill(store, run)
    synced: list[str] = []
    monkeypatch.setattr(files_module, "sync_file", lambda path: synced.append(path.name))
    store.open().close()
    assert set(synced) >= {name.removeprefix("crops/") for name, _ in files}


def test_the_journal_does_not_grow_from_life_to_life(store):
    journal = store.out / ".pagemill" / "ledger.sqlite-wal"
    sizes = []
    for life in range(6):
        run = store.open()
        for number in range(20 * life, 20 * life + 20):
            run.write_page(store.page(number + 1))
        sizes.append(journal.stat().st_size)
        kill(store, run)
    assert max(sizes) < 2 * sizes[0]
