import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from small_run import (
    DATABASE,
    DOCUMENTS,
    RESULTS,
    SETTINGS,
    TEXTS,
    damage_record,
    edit,
    in_database,
    page_of,
    write_run,
)

from pagemill.app.exporters import default_exporters
from pagemill.cli.verify import command
from pagemill.document.identity import PageKey
from pagemill.errors import ExitCode, OutputError
from pagemill.store.reading import RunReader
from pagemill.store.records import Compressor
from pagemill.store.repair import repair
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import Kind, verify

EXPORTERS = default_exporters()


def findings(out: Path, **options: Any) -> dict[str, list[str]]:
    verdict = verify(out, exporters=EXPORTERS, **options)
    return {group.kind.value: [str(example) for example in group.examples] for group in verdict.groups}


def cut(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:-count])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def crop_of(out: Path) -> Path:
    return min((out / "crops").glob("alpha_1_*.jpg"))


def test_a_finished_run_is_clean(out: Path) -> None:
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.parent.name != ".pagemill"}
    verdict = verify(out, exporters=EXPORTERS)
    assert (verdict.groups, verdict.damaged, verdict.waiting) == ([], False, 0)
    assert verdict.states == {"done": 18, "failed": 2, "skipped": 0, "waiting": 0, "running": 0}
    assert verdict.documents == len(DOCUMENTS)
    assert verdict.crops == len(list((out / "crops").iterdir()))
    assert before == {path: path.read_bytes() for path in before}


def test_an_unfinished_run_is_not_damaged(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out, stop_after=9)
    verdict = verify(out, exporters=EXPORTERS)
    assert not verdict.groups
    assert sum(verdict.states.values()) == 9
    killed = tmp_path / "killed"
    write_run(out, on_page=lambda written: shutil.copytree(out, killed) if written == 5 else None)
    assert (
        verify(killed, exporters=EXPORTERS).states["done"] + verify(killed, exporters=EXPORTERS).states["failed"] == 14
    )
    assert set(findings(killed)) == {Kind.OUT_OF_DATE.value}
    assert not verify(killed, exporters=EXPORTERS).damaged


@pytest.mark.parametrize(
    ("damage", "kind", "example"),
    [
        (lambda out: damage_record(out, "alpha_5"), Kind.DAMAGED_RECORD, f"{DATABASE} (page alpha_5): "),
        (
            lambda out: in_database(out, "DELETE FROM pages WHERE page_id = 'beta_1'"),
            Kind.RECORD_WITHOUT_PAGE,
            f"{DATABASE} (page beta_1)",
        ),
        (
            lambda out: in_database(out, "UPDATE pages SET record = 99 WHERE page_id = 'beta_1'"),
            Kind.PAGE_WITHOUT_RECORD,
            f"{DATABASE} (page beta_1)",
        ),
        (
            lambda out: in_database(out, "DELETE FROM records WHERE record = 20"),
            Kind.PAGE_WITHOUT_RECORD,
            f"{DATABASE} (page gamma_12)",
        ),
        (
            lambda out: in_database(out, "UPDATE pages SET state = 4 WHERE page_id = 'beta_1'"),
            Kind.OTHER_PAGE,
            f"{DATABASE} (page beta_1)",
        ),
        (
            lambda out: in_database(out, "DELETE FROM crops WHERE path = 'crops/alpha_1_crop_1.jpg'"),
            Kind.OTHER_PAGE,
            f"{DATABASE} (page alpha_1)",
        ),
        (lambda out: cut(out / RESULTS, 9), Kind.OTHER_RESULTS, f"{RESULTS}: line 20"),
        (lambda out: (out / RESULTS).unlink(), Kind.OTHER_RESULTS, f"{RESULTS}: missing"),
        (
            lambda out: edit(out / RESULTS, lambda lines: lines.append(lines[2])),
            Kind.OTHER_RESULTS,
            f"{RESULTS}: more than 20 lines",
        ),
        (
            lambda out: edit(out / RESULTS, lambda lines: lines.__setitem__(1, lines[1].replace(b"mill", b"Mill", 1))),
            Kind.OTHER_RESULTS,
            f"{RESULTS}: line 2",
        ),
        (lambda out: crop_of(out).unlink(), Kind.MISSING_CROP, "crops/alpha_1_crop_1.jpg (page alpha_1)"),
        (
            lambda out: cut(crop_of(out), 1),
            Kind.CHANGED_CROP,
            "crops/alpha_1_crop_1.jpg (page alpha_1)",
        ),
        (
            lambda out: flip(crop_of(out)),
            Kind.CHANGED_CROP,
            "crops/alpha_1_crop_1.jpg (page alpha_1)",
        ),
        (lambda out: (out / "crops/alpha_1_crop_44.jpg").touch(), Kind.ORPHANED_CROP, "crops/alpha_1_crop_44.jpg"),
        (lambda out: (out / "crops/alpha_99_crop_1.jpg").touch(), Kind.ORPHANED_CROP, "crops/alpha_99_crop_1.jpg"),
        (lambda out: cut(out / TEXTS, 9), Kind.OTHER_TEXTS, f"{TEXTS}: line 20"),
        (lambda out: edit(out / TEXTS, lambda lines: lines.pop()), Kind.OTHER_TEXTS, f"{TEXTS}: line 20"),
        (
            lambda out: edit(out / TEXTS, lambda lines: lines.__setitem__(0, lines[0].replace(b"mill", b"Mill", 1))),
            Kind.OTHER_TEXTS,
            f"{TEXTS}: line 1",
        ),
        (lambda out: (out / "documents/alpha.md").unlink(), Kind.MISSING_DOCUMENT, "documents/alpha.md"),
        (lambda out: flip(out / "documents/alpha.json"), Kind.OTHER_DOCUMENT, "documents/alpha.json"),
        (lambda out: cut(out / "documents/alpha.md", 1), Kind.OTHER_DOCUMENT, "documents/alpha.md"),
        (lambda out: (out / "documents/alpha.md").open("a").write("x"), Kind.OTHER_DOCUMENT, "documents/alpha.md"),
        (lambda out: flip(out / "report.html"), Kind.OTHER_REPORT, "report.html"),
        (lambda out: (out / "report.html").unlink(), Kind.OTHER_REPORT, "report.html: missing"),
        (
            lambda out: edit(out / "run.json", lambda lines: lines.__setitem__(2, b'  "pages": 3,\n')),
            Kind.OTHER_COUNTS,
            "run.json: pages is 3 and should be 20",
        ),
        (lambda out: cut(out / "run.json", 2), Kind.OTHER_COUNTS, "run.json: missing, or no summary of a run"),
        (lambda out: (out / DATABASE).unlink(), Kind.MALFORMED_DATABASE, f"{DATABASE}: "),
        (lambda out: (out / DATABASE).write_bytes(b""), Kind.MALFORMED_DATABASE, f"{DATABASE}: "),
        (lambda out: (out / DATABASE).write_bytes(b"x" * 9000), Kind.MALFORMED_DATABASE, f"{DATABASE}: "),
        (lambda out: cut(out / DATABASE, 20_000), Kind.MALFORMED_DATABASE, f"{DATABASE}: "),
        (lambda out: (out / "crops/x.jpg.pagemill-tmp").touch(), Kind.LEFT_OVER, "crops/x.jpg.pagemill-tmp"),
        (lambda out: (out / "run.json.pagemill-tmp").touch(), Kind.LEFT_OVER, "run.json.pagemill-tmp"),
    ],
)
def test_damage_is_named(out: Path, damage: Callable[[Path], Any], kind: Kind, example: str) -> None:
    damage(out)
    found = findings(out)
    assert any(each.startswith(example) for each in found[kind.value]), found
    assert verify(out, exporters=EXPORTERS).damaged


def test_counts_in_the_database_are_checked(out: Path) -> None:
    in_database(out, """UPDATE counts SET counters = replace(counters, '"failed":2', '"failed":1')""")
    assert findings(out)[Kind.OTHER_DATABASE_COUNTS.value] == [f"{DATABASE}: failed is 1 and should be 2"]


def test_a_document_without_any_record_is_orphaned(out: Path) -> None:
    in_database(out, "UPDATE pages SET record = NULL, state = 2 WHERE page_id = 'beta_1'")
    in_database(out, "DELETE FROM records WHERE record = 8")
    assert sorted(findings(out)[Kind.ORPHANED_DOCUMENT.value]) == ["documents/beta.json", "documents/beta.md"]


def test_files_of_others_are_named_and_are_no_damage(out: Path) -> None:
    for name in ("crops/holiday_1.jpg", "crops/alpha_1_1.png.bak", "documents/notes.md", "documents/alpha.txt"):
        (out / name).touch()
    (out / "crops" / "alpha_1_crop_9.jpg").mkdir()
    (out / "my notes.txt").touch()
    (kind,) = findings(out)
    assert (kind, sorted(findings(out)[kind])) == (
        Kind.UNKNOWN_FILE.value,
        [
            "crops/alpha_1_1.png.bak",
            "crops/alpha_1_crop_9.jpg",
            "crops/holiday_1.jpg",
            "documents/alpha.txt",
            "documents/notes.md",
        ],
    )
    assert not verify(out, exporters=EXPORTERS).damaged


def test_quick_reads_no_crops_and_makes_no_documents(out: Path) -> None:
    flip(crop_of(out))
    flip(out / "documents/alpha.md")
    assert findings(out, quick=True) == {}
    cut(crop_of(out), 1)
    (out / "documents/alpha.md").unlink()
    assert set(findings(out, quick=True)) == {Kind.CHANGED_CROP.value, Kind.MISSING_DOCUMENT.value}


@pytest.mark.parametrize("work", [verify, repair, lambda out, exporters: RunReader.open(out)])
def test_the_run_of_another_version_is_left_alone(out: Path, work: Callable[..., Any]) -> None:
    with contextlib.closing(sqlite3.connect(out / DATABASE)) as connection:
        connection.execute("PRAGMA user_version = 99")
        connection.execute("ALTER TABLE run ADD COLUMN more TEXT")
    before = (out / DATABASE).read_bytes()
    with pytest.raises(OutputError, match="another version of pagemill") as caught:
        work(out, exporters=EXPORTERS)
    assert (caught.value.exit_code, (out / DATABASE).read_bytes()) == (ExitCode.OUTPUT, before)


def test_what_another_version_derived_is_not_compared(out: Path) -> None:
    in_database(out, "UPDATE run SET version = '0.0.1'")
    flip(out / "documents/alpha.md")
    flip(out / TEXTS)
    flip(out / "report.html")
    verdict = verify(out, exporters=EXPORTERS)
    assert (verdict.groups, verdict.other_version) == ([], "0.0.1")


def test_a_record_does_not_lead_out_of_the_directory(out: Path) -> None:
    (out.parent / "secret.jpg").write_bytes(b"secret")
    record = json.loads((out / RESULTS).read_bytes().splitlines()[0])
    record["image_crops"][0]["path"] = "crops/../../secret.jpg"
    with contextlib.closing(sqlite3.connect(out / DATABASE)) as connection, connection:
        data = Compressor().compress(msgspec.json.encode(record) + b"\n")
        connection.execute("UPDATE records SET data = ? WHERE record = 1", (data,))
        outside = ("crops/../../secret.jpg",)
        connection.execute("UPDATE crops SET path = ? WHERE path = 'crops/alpha_1_crop_1.jpg'", outside)
    assert (
        f"{DATABASE} (page alpha_1): not the path of a crop: 'crops/../../secret.jpg'"
        in findings(out)[Kind.DAMAGED_RECORD.value][0]
    )
    repair(out, exporters=EXPORTERS)
    assert (out.parent / "secret.jpg").read_bytes() == b"secret"


def test_many_findings_are_counted_and_a_few_are_named(out: Path) -> None:
    for number in range(50):
        (out / "crops" / f"alpha_1_crop_{number + 100}.jpg").touch()
    (group,) = verify(out, exporters=EXPORTERS).groups
    assert (group.kind, group.count, len(group.examples)) == (Kind.ORPHANED_CROP, 50, 5)


def test_while_a_run_continues_what_it_has_committed_is_checked(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with RunDirectory.open(out, exporters=EXPORTERS, identity=SETTINGS, settings=SETTINGS) as run:
        page, crops = page_of("alpha", 1, 0, doc_id="alpha", page_id="alpha_1")
        run.write_page(page, crops)
        second = PageKey.parse(page.page_key)._replace(page=2)
        run.start_page(second, Place("alpha_2", "alpha", "alpha.pdf", 2, 1))
        (out / "crops" / "alpha_2_crop_1.jpg").touch()
        verdict = verify(out, exporters=EXPORTERS)
        assert (verdict.groups, verdict.waiting) == ([], 1)
        assert verdict.in_use_by is not None

        crop_of(out).unlink()
        assert set(findings(out)) == {Kind.MISSING_CROP.value}


def test_a_directory_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="contains no run"):
        verify(tmp_path, exporters=EXPORTERS)


@pytest.fixture
def nobody() -> Iterator[Callable[[Path], None]]:
    """Take from this process the right to write in a directory."""
    changed: list[Path] = []

    def take(out: Path) -> None:
        for path in (*out.rglob("*"), out):
            path.chmod(0o555 if path.is_dir() else 0o444)
            changed.append(path)
        if os.geteuid() == 0:
            for parent in out.parents:
                if parent.stat().st_uid == 0 and not parent.stat().st_mode & 0o001:
                    parent.chmod(parent.stat().st_mode | 0o011)
            os.setresuid(65534, 65534, 0)  # not only the effective one: SQLite asks access(2)

    user = os.getuid()
    yield take
    if user == 0:
        os.setresuid(0, 0, 0)
    for path in reversed(changed):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="permissions of Unix")
@pytest.mark.parametrize("stop_after", [None, 9])
def test_without_the_right_to_write(tmp_path: Path, nobody: Callable[[Path], None], stop_after: int | None) -> None:
    out = tmp_path / "out"
    write_run(out, stop_after=stop_after)
    expected = verify(shutil.copytree(out, tmp_path / "copy"), exporters=EXPORTERS)
    nobody(out)  # without the files of SQLite's that whoever may write leaves there when he reads
    assert verify(out, exporters=EXPORTERS) == expected
    with RunReader.open(out) as reader:
        assert len(list(reader.pages())) == reader.summary.pages


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="permissions of Unix")
def test_without_the_right_to_read_the_journal(tmp_path: Path, nobody: Callable[[Path], None]) -> None:
    out, killed = tmp_path / "out", tmp_path / "killed"
    write_run(out, on_page=lambda written: shutil.copytree(out, killed) if written == 7 else None)
    (killed / f"{DATABASE}-shm").unlink()
    nobody(killed)
    with pytest.raises(OutputError, match="journal"):
        verify(killed, exporters=EXPORTERS)
    with pytest.raises(OutputError, match="journal"):
        RunReader.open(killed)


def test_a_run_that_has_only_started_has_no_run_json(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_run(out, stop_after=9)
    (out / "run.json").unlink()
    in_database(out, "UPDATE run SET finished = NULL")
    assert findings(out) == {}


def test_the_command(out: Path) -> None:
    clean = CliRunner().invoke(command, [str(out)], standalone_mode=False)
    assert clean.return_value == 0
    assert clean.output.startswith("clean: 20 pages (18 done, 2 failed), ")
    cut(out / RESULTS, 9)
    damaged = CliRunner().invoke(command, [str(out)], standalone_mode=False)
    assert damaged.return_value == 13
    assert damaged.output.startswith(f"{RESULTS} does not agree with the records: {RESULTS}: line 20\n")
    assert "verify" in damaged.output.splitlines()[-1]
    listed = CliRunner().invoke(command, [str(out), "--json"], standalone_mode=False)
    answer = json.loads(listed.output)
    assert answer["damaged"]
    assert answer["verdict"]["groups"][0]["examples"][0]["place"] == RESULTS
