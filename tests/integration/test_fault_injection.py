"""Pages that crash, hang or confuse their engines fail alone; all others complete."""

import os
import sys
from pathlib import Path

import pytest
from fault_engines import Fault
from fault_outcomes import DEADLY, EXPECTED, HARMLESS, FaultRun, parse_with_faults, spread
from pagemill_process import environment, install_engines, run
from run_contents import leftovers

from pagemill.errors import ExitCode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]

SCALE = 5 if os.environ.get("PAGEMILL_TEST_LARGE") else 2
"""Pages of each fault in a run with many."""
TOGETHER = (
    Fault.SEGFAULT,
    Fault.OOM_KILL,
    Fault.HANG,
    Fault.EXCEPTION,
    Fault.TOO_FEW_ANSWERS,
    Fault.NAN_BOX,
    Fault.EMPTY_TEXT,
)


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    state = tmp_path / "state"
    state.mkdir()
    return environment(install_engines(tmp_path / "packages"), state)


def check(ended: FaultRun, surroundings: dict[str, str], tmp_path: Path) -> None:
    print(ended.table())
    assert ended.violations() == [], ended.messages[-3000:]
    told = any(EXPECTED[page.fault].category for page in ended.pages)
    assert ended.status == (ExitCode.PAGES_FAILED if told else ExitCode.OK), ended.messages[-3000:]
    assert leftovers(tmp_path / "out") == []
    assert run(["verify", tmp_path / "out"], surroundings, tmp_path / "verify.log") == ExitCode.OK


@pytest.mark.slow
def test_seven_faults_at_five_percent_of_the_pages_each(surroundings: dict[str, str], tmp_path: Path):
    faults = spread(20 * SCALE, images=8 * SCALE, each=SCALE, faults=TOGETHER, seed=3)
    ended = parse_with_faults(tmp_path, surroundings, faults, pages=20 * SCALE, images=8 * SCALE)
    check(ended, surroundings, tmp_path)


@pytest.mark.parametrize(
    "fault",
    [
        *(pytest.param(fault, marks=pytest.mark.slow) for fault in (*DEADLY, Fault.TRANSIENT) if fault not in TOGETHER),
        Fault.BATCH_OUT_OF_MEMORY,
    ],
    ids=lambda fault: fault.name.lower(),
)
def test_a_fault_alone(fault: Fault, surroundings: dict[str, str], tmp_path: Path):
    faults = spread(20, images=10, each=1, faults=[fault], seed=4)
    check(parse_with_faults(tmp_path, surroundings, faults, pages=20, images=10), surroundings, tmp_path)


@pytest.mark.slow
def test_faults_that_the_process_survives_cost_the_neighbours_nothing(surroundings: dict[str, str], tmp_path: Path):
    faults = spread(20 * SCALE, images=10 * SCALE, each=SCALE, faults=HARMLESS, seed=5)
    # None of them hangs: on a busy machine a short time limit would cost sound pages an attempt.
    ended = parse_with_faults(tmp_path, surroundings, faults, pages=20 * SCALE, images=10 * SCALE, page_timeout_s=600)
    check(ended, surroundings, tmp_path)
    neighbours = [record for page, record in zip(ended.pages, ended.records, strict=True) if page.fault is Fault.NONE]
    assert {record["attempts"] for record in neighbours} == {1}
    assert "process died" not in ended.messages


@pytest.mark.slow
def test_where_every_page_kills_its_process_they_fail_one_by_one(surroundings: dict[str, str], tmp_path: Path):
    faults = dict.fromkeys(range(4), Fault.OOM_KILL)
    ended = parse_with_faults(tmp_path, surroundings, faults, pages=4, images=2)
    assert ended.violations() == [], ended.messages[-3000:]
    assert ended.status == ExitCode.CRASH, ended.messages[-3000:]
