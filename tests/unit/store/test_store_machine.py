"""Any order of pages, syncs, kills and power cuts: nothing is lost that was safe, nothing is there twice."""

import os
import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pagemill.document.page import PageError

SOURCES = ("a", "b", "c")
pages = st.tuples(st.integers(1, 3), st.sampled_from(SOURCES))
ERROR = PageError(component="layout", category="timeout", message="too slow")


class StoreMachine(RuleBasedStateMachine):
    """A run directory beside what it ought to hold."""

    make_store: type

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.count = 0
        self.store = self.make_store(self.root / "0")
        self.run = self.store.open()
        self.final: dict[tuple[int, str], str] = {}  # pages that have ended, and how
        self.safe: dict[tuple[int, str], str] = {}  # those that a power cut does not take
        self.started: set[tuple[int, str]] = set()
        self.note_journal()
        self.stray: set[str] = set()  # crops of pages that the database may have lost all knowledge of

    def note_journal(self) -> None:
        """What the database's journal holds now is safe."""
        journal = self.store.out / ".pagemill" / "run.sqlite-wal"
        self.journal = journal.stat().st_size

    def teardown(self) -> None:
        if hasattr(self, "run"):
            self.run.close()
            shutil.rmtree(self.root)

    @rule(page=pages, alone=st.booleans())
    def start(self, page: tuple[int, str], alone: bool) -> None:
        if page in self.final and self.final[page] != "SKIPPED":
            with pytest.raises(ValueError, match="already finished"):
                self.store.start(self.run, *page, alone=alone)
            return
        self.store.start(self.run, *page, alone=alone)
        self.final.pop(page, None)
        self.safe.pop(page, None)
        self.started.add(page)

    @precondition(lambda self: self.started)
    @rule(data=st.data())
    def postpone(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.started)))
        self.run.postpone_page(self.store.key(*page), attempts=1, error=ERROR)

    @rule(page=pages, length=st.integers(0, 300), crops=st.integers(0, 2), fails=st.booleans(), preview=st.booleans())
    def write(self, page: tuple[int, str], length: int, crops: int, fails: bool, preview: bool) -> None:
        if page in self.final:
            return
        record = (self.store.failed if fails else self.store.page)(*page, text="x" * length)
        files = [] if fails else self.store.with_crops(record, *[b"crop of %d" % length] * crops)
        self.run.write_page(record, files, b"preview" if preview else None)
        self.final[page] = "FAILED" if fails else "DONE"
        self.started.discard(page)

    @rule(page=pages)
    def skip(self, page: tuple[int, str]) -> None:
        if page not in self.final:
            self.run.skip_page(self.store.key(*page), self.store.place(*page), reason="duplicate of z")
            self.final[page] = "SKIPPED"
            self.started.discard(page)

    @rule(source=st.sampled_from(SOURCES))
    def finish_document(self, source: str) -> None:
        self.run.finish_document(source)

    @rule()
    def sync(self) -> None:
        self.run.sync()
        self.safe = dict(self.final)
        self.note_journal()
        assert self.journal == 0

    @rule()
    def resume(self) -> None:
        self.run.close()
        self.run = self.store.open()
        self.note_journal()
        assert self.run.resumed == len(self.final)
        self.safe = dict(self.final)  # opening syncs
        self.started.clear()

    @rule()
    def retry_failed(self) -> None:
        self.run.close()
        self.run = self.store.open(retry_failed=True)
        self.note_journal()
        self.final = {page: state for page, state in self.final.items() if state != "FAILED"}
        self.safe = dict(self.final)
        self.started.clear()

    @rule(source=st.sampled_from(SOURCES), version=st.integers(0, 9))
    def replace(self, source: str, version: int) -> None:
        """The file has another content: its pages are forgotten."""
        self.run.close()
        self.run = self.store.open()
        self.note_journal()
        self.safe = dict(self.final)
        self.run.catalogue.register(self.store.digest(f"{source} {version}"), f"{source}.pdf")
        self.note_journal()
        for pages in (self.final, self.safe):
            for page in [page for page in pages if page[1] == source]:
                del pages[page]
        self.started.clear()

    @rule(complete=st.booleans())
    def finish(self, complete: bool) -> None:
        self.run.finish(complete=complete)
        waiting = {row.page_id for row in self.run._run.rows("p.state IN (1, 2)")}
        if complete:
            assert waiting == {f"{source}_{number}" for number, source in self.started}
        self.store.check(self.run, stray=self.stray)
        self.run.close()
        self.run = self.store.open()
        self.note_journal()
        self.final = {(row.key.page, row.doc_id): row.state.name for row in self.run._run.rows("p.state > 2")}
        self.safe = dict(self.final)
        self.started.clear()

    @rule(death=st.sampled_from([None, "SIGSEGV"]))
    def kill(self, death: str | None) -> None:
        self.copy()
        self.run = self.store.open(death=death)
        self.note_journal()
        assert {(row.key.page, row.doc_id) for row in self.run._run.rows("p.state > 2")} == set(self.final)
        self.safe = dict(self.final)

    @rule(data=st.data())
    def cut_power(self, data: st.DataObject) -> None:
        """What was written since the last sync is there, or cut short, or full of zeros."""
        self.copy()
        for name in ("ocr_results.jsonl", "parsed_texts.jsonl"):
            self.damage(data, self.store.out / name, 0)
        self.damage(data, self.store.out / ".pagemill" / "run.sqlite-wal", self.journal, zeros=False)
        self.stray.update(f"crops/{path.name}" for path in (self.store.out / "crops").iterdir())
        self.run = self.store.open()
        self.note_journal()
        rows = {(row.key.page, row.doc_id): row.state.name for row in self.run._run.rows("p.state > 2")}
        for page, state in self.safe.items():
            assert rows[page] == state
        self.final = rows
        self.safe = dict(rows)

    def damage(self, data: st.DataObject, path: Path, least: int, *, zeros: bool = True) -> None:
        if not path.exists() or path.stat().st_size <= least:
            return
        size = data.draw(st.integers(least, path.stat().st_size))
        content = path.read_bytes()
        filler = bytes(len(content) - size) if zeros and data.draw(st.booleans()) else b""
        path.write_bytes(content[:size] + filler)

    def copy(self) -> None:
        """Go on with a copy of the files as they are now, as if the process had been killed."""
        self.count += 1
        copy = self.make_store(self.root / str(self.count))
        shutil.copytree(self.store.out, copy.out)
        self.run.close()
        self.store = copy
        self.started.clear()

    @invariant()
    def is_consistent(self) -> None:
        if hasattr(self, "run"):
            self.store.check(self.run, stray=self.stray)
            rows = {(row.key.page, row.doc_id): row.state.name for row in self.run._run.rows("p.state > 2")}
            assert rows == self.final


def test_any_order_of_events(make_store: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # which nobody here can see
    machine = type("Machine", (StoreMachine,), {"make_store": make_store})
    run_state_machine_as_test(
        machine,
        settings=settings(stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)),
    )
