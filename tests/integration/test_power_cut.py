"""A power cut takes or mangles what was not flushed: the next run goes on. Files rot: verify names it and repairs it.

PAGEMILL_POWER_CUTS sets the number of random cuts of each kind; the seeds are 0, 1, 2 and so on.
"""

import os
import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from small_run import DOCUMENTS, records_of, write_run

from pagemill.app.exporters import default_exporters
from pagemill.errors import DamagedRunError
from pagemill.store.repair import repair
from pagemill.store.verify import Verdict, verify

CUTS = int(os.environ.get("PAGEMILL_POWER_CUTS", "100" if os.environ.get("PAGEMILL_TEST_LARGE") else "10"))
JOURNAL = ".pagemill/run.sqlite-wal"
PAGES = sum(DOCUMENTS.values())
EXPORTERS = default_exporters()

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@dataclass
class Snapshot:
    """A run directory as a killed process leaves it, and what of it was flushed."""

    path: Path
    flushed: dict[str, int] = field(default_factory=dict)
    """Bytes of each file at the last flush."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    assert write_run(out) == PAGES
    assert verdict_of(out) == []
    return out


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> list[Snapshot]:
    """The directory after each page: copied while the run goes on, so just as if it had been killed there."""
    root = tmp_path_factory.mktemp("killed")
    out = root / "out"
    snapshots: list[Snapshot] = []
    flushed: dict[str, int] = {}
    journal = b""

    def on_sync() -> None:
        nonlocal journal
        flushed.update(sizes(out))
        journal = (out / JOURNAL).read_bytes()

    def on_page(written: int) -> None:
        # These are flushed whenever they are written; the database only by checkpoints.
        always = ("run.json", ".pagemill/run.sqlite")
        flushed.update({name: size for name, size in sizes(out).items() if name.startswith(always) and name != JOURNAL})
        if not (out / JOURNAL).read_bytes().startswith(journal):  # all of it is in the database, and it started anew
            flushed[JOURNAL] = 0
        shutil.copytree(out, root / str(written))
        snapshots.append(Snapshot(root / str(written), dict(flushed)))

    write_run(out, sync_every=4, on_page=on_page, on_sync=on_sync)
    assert len(snapshots) == PAGES
    return snapshots


def contents(out: Path) -> dict[str, bytes]:
    """All files of a run but the lock and SQLite's shared memory, which are nothing once nobody has them open."""
    files = (path for path in sorted(out.rglob("*")) if path.is_file() and not path.name.endswith(("lock", "-shm")))
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def sizes(out: Path) -> dict[str, int]:
    return {name: len(content) for name, content in contents(out).items()}


def verdict_of(out: Path) -> list[str]:
    return described(verify(out, exporters=EXPORTERS))


def described(verdict: Verdict) -> list[str]:
    return [
        f"{group.kind.value}: {each}" for group in verdict.groups if group.kind.is_damage for each in group.examples
    ]


def mangle(path: Path, keep: int, chance: random.Random) -> None:
    """Cut a file behind its first ``keep`` bytes, or fill what comes then with zeros."""
    size = path.stat().st_size
    start = chance.choice((keep, chance.randint(keep, size), max(keep, size - chance.randint(1, 40))))
    with path.open("r+b") as stream:
        stream.truncate(start)
        if chance.random() < 0.4:
            stream.truncate(size)


@pytest.mark.parametrize("seed", range(CUTS))
def test_after_a_power_cut_the_next_run_continues(
    seed: int, killed: list[Snapshot], undisturbed: Path, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    snapshot = chance.choice(killed)
    out = tmp_path / "out"
    shutil.copytree(snapshot.path, out)
    lost = [name for name, size in sizes(out).items() if size > snapshot.flushed.get(name, 0) or name.endswith("-wal")]
    for name in chance.sample(lost, chance.randint(1, len(lost))):
        flushed = snapshot.flushed.get(name, 0)
        if chance.random() < 0.2 and not flushed:
            (out / name).unlink()
        else:
            mangle(out / name, flushed, chance)
    (out / ".pagemill" / "run.sqlite-shm").unlink(missing_ok=True)

    write_run(out)
    assert verdict_of(out) == []
    assert records_of(out) == records_of(undisturbed)
    assert crops_of(out) == crops_of(undisturbed)


@pytest.mark.parametrize("seed", range(CUTS))
def test_what_rots_later_is_named_and_repaired(seed: int, undisturbed: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    before = contents(out)
    candidates = sorted(name for name, size in sizes(out).items() if size)
    for name in chance.sample(candidates, chance.randint(1, 4)):
        if chance.random() < 0.1 and name not in {"run.json", ".pagemill/run.sqlite"}:
            (out / name).unlink()
        else:
            mangle(out / name, 0, chance)
    changed = {name for name, content in before.items() if not same(out / name, content)}

    try:
        found, left = repair_all(out)
    except DamagedRunError:  # nothing says what run this is
        assert {"run.json", ".pagemill/run.sqlite"} <= changed
        return
    if changed - {".pagemill/run.sqlite"}:
        assert found, "damage without a finding"
    assert left == []

    write_run(out)
    assert verdict_of(out) == []
    assert records_of(out) == records_of(undisturbed)
    assert crops_of(out) == crops_of(undisturbed)


def repair_all(out: Path) -> tuple[list[str], list[str]]:
    before, repairs = repair(out, exporters=EXPORTERS)
    return described(before), described(repairs.left)


def same(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def crops_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "crops").iterdir()}
