"""Servers that fail, hang, loop and die, through ``pagemill parse``: no page is lost, no flaw is kept quiet."""

import sys
from pathlib import Path

import pytest
from vlm_drill import FAULTS, READ, Outcome, draw_pages, parse, violations

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
]
PAGES = 24


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drill")


@pytest.fixture(scope="module")
def pages(scratch: Path) -> Path:
    return draw_pages(scratch / "pages", PAGES)


@pytest.fixture(scope="module")
def undisturbed(scratch: Path, pages: Path) -> Outcome:
    outcome = parse(scratch, "undisturbed", pages, [[]], request_timeout_s=60)
    assert (outcome.status, outcome.pages, outcome.errors) == (0, {"done": PAGES}, {})
    assert len(outcome.contents) == outcome.happened("requests") == PAGES * READ
    assert all(outcome.contents.values())
    return outcome


def fault_options(seed: int, factor: float = 1.0) -> list[str]:
    return [
        "--seed",
        str(seed),
        *(word for name, rate in FAULTS.items() for word in ("--fault", f"{name}={factor * rate}")),
    ]


@pytest.mark.slow
def test_one_of_two_servers_dies_and_both_fail_now_and_then(scratch, pages, undisturbed):
    servers = [[*fault_options(1, 3), "--dies-after", "40"], fault_options(2, 3)]
    outcome = parse(scratch, "two-servers", pages, servers, request_timeout_s=1)
    assert violations(outcome, undisturbed) == []
    assert outcome.happened("deaths") == 1
    assert all(outcome.happened(name) for name in FAULTS)


@pytest.mark.slow
def test_the_only_server_dies_again_and_again_and_returns(scratch, pages, undisturbed):
    servers = [["--latency-ms", "20", "--dies-after", "60", "--returns-after-s", "0.3"]]
    outcome = parse(scratch, "returning", pages, servers, request_timeout_s=60)
    assert violations(outcome, undisturbed) == []
    assert outcome.happened("deaths") >= 2
    assert outcome.errors == {}
