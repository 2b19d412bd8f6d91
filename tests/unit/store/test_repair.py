import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_run import DATABASE, RESULTS, SETTINGS, TEXTS, edit, in_database, records_of, write_run

from pagemill.app.exporters import default_exporters
from pagemill.cli.verify import command
from pagemill.errors import DamagedRunError, LockedError, OutputError
from pagemill.store.repair import Repairs, repair
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import Kind, verify

EXPORTERS = default_exporters()


def repaired(out: Path) -> Repairs:
    before, repairs = repair(out, exporters=EXPORTERS)
    assert before.damaged
    assert not repairs.left.damaged, repairs.left.groups
    return repairs


def is_as_before(out: Path, finished: Path, *, pages: int) -> None:
    """The next run parses ``pages`` pages again, and all is as it was."""
    assert write_run(out) == pages
    assert verify(out, exporters=EXPORTERS).groups == []
    assert records_of(out) == records_of(finished)


def test_nothing_to_repair(out: Path) -> None:
    summary = (out / "run.json").read_bytes()
    before, repairs = repair(out, exporters=EXPORTERS)
    assert not before.damaged
    assert repairs == Repairs(left=before)
    assert (out / "run.json").read_bytes() == summary


def test_a_damaged_record_waits_for_the_next_run(out: Path, finished: Path) -> None:
    in_database(out, "UPDATE records SET data = x'00' WHERE record = 5")
    repairs = repaired(out)
    assert repairs.pages_reset == 1
    assert repairs.left.states == {"done": 17, "failed": 2, "skipped": 0, "waiting": 1, "running": 0}
    assert repairs.left.groups == []
    assert "alpha_5" not in (out / "documents/alpha.json").read_text()
    is_as_before(out, finished, pages=1)


def test_a_record_that_belongs_to_no_page_goes(out: Path, finished: Path) -> None:
    in_database(out, "INSERT INTO records SELECT 21, data FROM records WHERE record = 3")
    assert repaired(out).pages_reset == 0
    is_as_before(out, finished, pages=0)


def test_a_page_whose_crop_is_lost_waits_and_its_other_crops_go(out: Path, finished: Path) -> None:
    crops = sorted((out / "crops").glob("gamma_12_*.jpg"))
    crops[0].unlink()
    repairs = repaired(out)
    assert (repairs.pages_reset, repairs.files_deleted) == (1, len(crops) - 1)
    is_as_before(out, finished, pages=1)


def test_lines_are_written_again(out: Path, finished: Path) -> None:
    texts = (out / TEXTS).read_bytes()
    edit(out / RESULTS, lambda lines: lines.reverse())
    edit(out / TEXTS, lambda lines: lines.pop(3))
    repairs = repaired(out)
    assert (repairs.pages_reset, repairs.derived_written) == (0, True)
    assert (out / RESULTS).read_bytes() == (finished / RESULTS).read_bytes()
    assert (out / TEXTS).read_bytes() == texts
    is_as_before(out, finished, pages=0)


def test_pages_that_say_other_than_their_records_wait(out: Path, finished: Path) -> None:
    in_database(out, "DELETE FROM pages WHERE page_id = 'alpha_2'")
    in_database(out, "UPDATE pages SET state = 2 WHERE page_id = 'alpha_3'")
    in_database(out, "UPDATE pages SET page_id = 'x', name = 'x' WHERE page_id = 'alpha_4'")
    in_database(out, "DELETE FROM records WHERE record = 6")
    assert repaired(out).pages_reset == 3  # of the fourth one nothing is known
    is_as_before(out, finished, pages=4)


def test_a_killed_run_is_brought_up_to_date(tmp_path: Path) -> None:
    out, killed = tmp_path / "out", tmp_path / "killed"
    write_run(out, on_page=lambda written: shutil.copytree(out, killed) if written == 9 else None)
    before, repairs = repair(killed, exporters=EXPORTERS)
    assert [group.kind for group in before.groups] == [Kind.OUT_OF_DATE]
    assert (repairs.derived_written, repairs.left.groups, repairs.pages_reset) == (True, [], 0)
    assert len((killed / TEXTS).read_bytes().splitlines()) == 9
    assert json.loads((killed / "run.json").read_text())["interrupted"]


def test_documents_are_written_again_and_no_others(out: Path, finished: Path) -> None:
    (out / "documents/alpha.md").write_text("x")
    (out / "documents/gamma.json").unlink()
    (out / "run.json").write_text("{")
    untouched = (out / "documents/beta.md").stat().st_mtime_ns
    assert repaired(out).derived_written
    assert (out / "documents/alpha.md").read_bytes() == (finished / "documents/alpha.md").read_bytes()
    assert (out / "documents/gamma.json").read_bytes() == (finished / "documents/gamma.json").read_bytes()
    assert (out / "documents/beta.md").stat().st_mtime_ns == untouched
    assert json.loads((out / "run.json").read_text())["pages"] == 20
    is_as_before(out, finished, pages=0)


def test_a_run_without_a_report_gets_none(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out, report=False)
    (out / "documents/alpha.md").unlink()
    repaired(out)
    assert not (out / "report.html").exists()


@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:9000])]
)
def test_the_run_is_rebuilt(out: Path, finished: Path, damage: Callable[[Path], Any]) -> None:
    damage(out / DATABASE)
    repairs = repaired(out)
    assert repairs.database_rebuilt
    assert repairs.left.states == {"done": 18, "failed": 2, "skipped": 0, "waiting": 0, "running": 0}
    summary = json.loads((out / "run.json").read_text())
    assert summary["finished"]
    assert not summary["interrupted"]
    is_as_before(out, finished, pages=0)


def test_no_number_of_a_record_is_used_twice(out: Path) -> None:
    in_database(out, "PRAGMA application_id = 42")
    assert repaired(out).database_rebuilt
    with sqlite3.connect(out / DATABASE) as connection:
        assert connection.execute("SELECT min(record), max(record) FROM records").fetchone() == (21, 40)


def test_numbers_of_records_that_a_database_has_lost_are_left_out(out: Path) -> None:
    (out / DATABASE).unlink()  # it may have had more than 20 of them
    assert repaired(out).database_rebuilt
    with sqlite3.connect(out / DATABASE) as connection:
        assert connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone() == (10_020,)


@pytest.mark.parametrize(("at", "byte"), [(43, 0), (47, 255), (60, 1), (63, 0), (68, 0), (71, 255), (70, None)])
def test_a_damaged_number_in_the_head_of_the_database(out: Path, finished: Path, at: int, byte: int | None) -> None:
    content = (out / DATABASE).read_bytes()
    (out / DATABASE).write_bytes(content[:at] + bytes([] if byte is None else [byte]) + content[at + 1 :])
    _, repairs = repair(out, exporters=EXPORTERS)
    assert not repairs.left.damaged
    assert repairs.database_rebuilt == (at >= 47)
    is_as_before(out, finished, pages=0)


def test_without_run_and_run_json_nobody_knows_what_run_it_was(out: Path) -> None:
    (out / DATABASE).unlink()
    (out / "run.json").unlink()
    with pytest.raises(DamagedRunError):
        repair(out, exporters=EXPORTERS)


def test_only_what_belongs_to_the_run_is_deleted(out: Path) -> None:
    ours = ["crops/alpha_1_crop_77.jpg", "crops/alpha_1_crop_1.jpg.pagemill-tmp", "report.html.pagemill-tmp"]
    others = ["crops/holiday_1.jpg", "documents/notes.md", "notes.txt"]
    for name in ours + others:
        (out / name).touch()
    repairs = repaired(out)
    assert repairs.files_deleted == 3
    assert not any((out / name).exists() for name in ours)
    assert all((out / name).exists() for name in others)


def test_a_link_is_not_followed(out: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.jpg"
    precious.write_bytes(b"precious")
    (out / "crops" / "alpha_1_crop_77.jpg").symlink_to(precious)
    (out / "crops" / "alpha_1_crop_78.jpg").touch()
    repaired(out)
    assert precious.read_bytes() == b"precious"


def test_not_while_a_process_works_on_it(out: Path) -> None:
    (out / "documents/alpha.md").unlink()
    with (
        RunDirectory.open(out, exporters=EXPORTERS, identity=SETTINGS, settings=SETTINGS),
        pytest.raises(LockedError, match="in use"),
    ):
        repair(out, exporters=EXPORTERS)


def test_a_directory_without_a_run_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="contains no run"):
        repair(tmp_path, exporters=EXPORTERS)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_what_it_did(out: Path) -> None:
    (out / RESULTS).write_bytes((out / RESULTS).read_bytes()[:-9])
    result = CliRunner().invoke(command, [str(out), "--repair"], standalone_mode=False)
    assert result.return_value == 0
    assert "repaired: ocr_results.jsonl, parsed_texts.jsonl, documents, report and run.json brought" in result.output
    assert "clean: 20 pages (18 done, 2 failed)" in result.output
    answer = json.loads(CliRunner().invoke(command, [str(out), "--repair", "--json"], standalone_mode=False).output)
    assert not answer["damaged"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([RESULTS, TEXTS, DATABASE]),
    start=st.floats(0, 1, exclude_max=True),
    length=st.integers(1, 4000),
    filling=st.sampled_from([None, b"\0", b"\n", b"{", b"\xff"]),
)
def test_any_hole(finished: Path, tmp_path: Path, name: str, start: float, length: int, filling: bytes | None) -> None:
    out = tmp_path / "out"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(finished, out)
    content = (out / name).read_bytes()
    begin = int(start * len(content))
    piece = content[begin : begin + length]
    (out / name).write_bytes(content[:begin] + (filling or b"") * len(piece) + content[begin + length :])
    _, repairs = repair(out, exporters=EXPORTERS)
    assert not repairs.left.damaged, repairs.left.groups
    write_run(out)
    assert verify(out, exporters=EXPORTERS).groups == []
    assert records_of(out) == records_of(finished)
