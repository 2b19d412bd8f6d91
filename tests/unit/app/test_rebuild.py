"""``pagemill rebuild``: structure derived by this version over the records of another one."""

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_run import in_database
from synthetic_run import sample_pages, write_run

from pagemill.app.exporters import default_exporters
from pagemill.app.rebuild import Change, rebuild
from pagemill.cli.rebuild import command
from pagemill.config.chunking import ChunkSettings
from pagemill.document.labels import Label
from pagemill.document.page import Furniture
from pagemill.document.structure import Overlay, encode_overlay
from pagemill.document.structure.overlay import RegionOverlay
from pagemill.errors import OutputError
from pagemill.store.paths import DATABASE
from pagemill.store.verify import verify


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", sample_pages())
    return tmp_path / "run"


def files(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (run / "documents").iterdir()}


def made_by_another_version(run: Path) -> None:
    """That version took a paragraph for a running head, and kept other facts."""
    head = RegionOverlay(Label.HEADER, None, Furniture.PROVEN, None, None)
    overlay = encode_overlay(Overlay({"report_1": {1: head}}))
    with sqlite3.connect(run / DATABASE) as database:
        database.execute("INSERT OR REPLACE INTO overlays SELECT document, x'00', ? FROM documents", (overlay,))
        database.execute("UPDATE facts SET data = x'00'")
    database.close()
    for path in (run / "documents").iterdir():
        path.write_bytes(b"")


def test_nothing_changes_with_the_version_that_wrote_the_run(run: Path) -> None:
    before = files(run)
    done = rebuild(run, ChunkSettings())
    assert done.chunks > 0
    assert not done.changes
    assert files(run) == before


def test_documents_get_the_structure_of_this_version_and_changed_chunks_are_reported(run: Path, tmp_path: Path) -> None:
    before = files(run)
    made_by_another_version(run)
    ended = CliRunner().invoke(command, [str(run), "--changes", str(tmp_path / "changes.jsonl"), "--json"])
    assert ended.exit_code == 0, ended.output
    assert files(run) == before
    assert not verify(run, exporters=default_exporters()).damaged
    told = json.loads(ended.output)
    changes = [json.loads(line) for line in (tmp_path / "changes.jsonl").read_text().splitlines()]
    assert sum(told[kind] for kind in Change) == len(changes) > 0
    for change in changes:
        assert ("was" in change) is (change["change"] == "changed")
        assert change["doc_id"] in ("report", "letter")
        assert change["element"].startswith(change["doc_id"])
    assert not rebuild(run, ChunkSettings()).changes


def test_changes_that_cannot_be_kept_are_found_again(run: Path, tmp_path: Path) -> None:
    made_by_another_version(run)
    failed = CliRunner().invoke(command, [str(run), "--changes", str(tmp_path / "nowhere" / "changes.jsonl")])
    assert isinstance(failed.exception, OutputError)
    assert rebuild(run, ChunkSettings()).changes
    assert not rebuild(run, ChunkSettings()).changes


def test_a_list_of_changes_is_not_overwritten(run: Path, tmp_path: Path) -> None:
    made_by_another_version(run)
    changes = tmp_path / "changes.jsonl"
    CliRunner().invoke(command, [str(run), "--changes", str(changes)], catch_exceptions=False)
    kept = changes.read_bytes()
    again = CliRunner().invoke(command, [str(run), "--changes", str(changes)])
    assert isinstance(again.exception, OutputError)
    assert changes.read_bytes() == kept != b""


def test_no_changes_are_found_where_no_structure_is_kept(run: Path) -> None:
    in_database(run, "DELETE FROM overlays")  # as after a rebuild that was cut off
    assert not rebuild(run, ChunkSettings()).changes


def test_a_run_without_facts_gets_its_structure(run: Path) -> None:
    before = files(run)
    in_database(run, "DELETE FROM overlays")
    in_database(run, "DELETE FROM facts")
    rebuild(run, ChunkSettings())
    assert files(run) == before
    assert not rebuild(run, ChunkSettings()).changes
