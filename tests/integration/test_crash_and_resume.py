"""A run that is killed at any instant and resumed ends as one that nobody disturbed."""

import os
import sys
from pathlib import Path

import pytest
from coded_pages import Corpus, CorpusMaker
from crash_run import CrashRun
from pagemill_process import OPTIONS, kill_when_written, run
from run_contents import contents, differences, leftovers, records

from pagemill.errors import ExitCode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]

KILLS, SCALE = (100, 10) if os.environ.get("PAGEMILL_TEST_LARGE") else (12, 3)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Pages of all kinds of sources: 311, or 94."""
    maker = CorpusMaker(tmp_path_factory.mktemp("inputs"))
    for pages in (6 * SCALE, 1, 7 * SCALE, 5 * SCALE):
        maker.pdf(pages)
    maker.images(2 * SCALE)
    maker.tiff(2 * SCALE)
    maker.pdf(5 * SCALE)
    maker.parquet(4 * SCALE)
    return maker.corpus()


def test_a_run_killed_at_many_random_instants_ends_as_one_that_was_not(
    corpus: Corpus, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    assert len(records(undisturbed)) == len(corpus.pages) == 31 * SCALE + 1
    out = tmp_path / "out"
    crashes = CrashRun(
        corpus, out, surroundings, kills=KILLS, seed=1, full_size=(undisturbed / "ocr_results.jsonl").stat().st_size
    )
    status = crashes.go()
    print(crashes.log.table())
    assert status == ExitCode.OK, (tmp_path / "out.log").read_text()[-2000:]
    assert crashes.log.killed == KILLS
    assert crashes.log.endings.keys() <= {ExitCode.OK, ExitCode.CRASH}, crashes.log.endings
    assert crashes.log.lost == []
    assert differences(contents(out), contents(undisturbed)) == []
    assert leftovers(out) == []
    assert run(["verify", out], surroundings, tmp_path / "verify.log") == ExitCode.OK


def test_killing_whole_runs_costs_no_page_an_attempt(corpus: Corpus, surroundings: dict[str, str], tmp_path: Path):
    out, log = tmp_path / "out", tmp_path / "log"
    arguments = ["parse", *corpus.paths[:2], "-o", out, *OPTIONS, "--max-attempts", "1"]
    for lines in (3, 6, 10, 14):
        kill_when_written(lines, out, arguments, surroundings, log)
    assert run(arguments, surroundings, log) == ExitCode.OK, log.read_text()
    found = records(out)
    assert [record["page_idx"] for record in found] == list(range(6 * SCALE + 1))
    assert {(record["status"], record["attempts"]) for record in found} == {("done", 1)}
