"""Runs that are stopped, or whose processes are killed: what they say, how they end, and that nothing is lost."""

import os
import signal
import sys
from pathlib import Path

import pytest
from coded_pages import CorpusMaker
from fault_engines import BATCH_VARIABLE
from forked_command import ForkedCommand
from installed_package import install_package
from pagemill_process import OPTIONS
from parse_command import all_once, parse, records, run_json, wait_for

from pagemill.errors import ExitCode

pytestmark = [pytest.mark.integration, pytest.mark.slow]


SOME = 31
"""Pages of ``some.tiff``."""
FAST = [option for option in OPTIONS if option != "--quiet"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``some.tiff``, ``eight.pdf`` and ``a.png``."""
    maker = CorpusMaker(tmp_path_factory.mktemp("inputs"))
    maker.tiff(SOME)
    maker.pdf(8)
    maker.images(1)
    for path, name in zip(maker.corpus().paths, ("some.tiff", "eight.pdf", "a.png"), strict=True):
        path.rename(maker.folder / name)
    return maker.folder


def start(out: Path, surroundings: dict[str, str], *arguments: str | Path) -> ForkedCommand:
    """Start a run, which is slow enough to be stopped in its middle, and wait for its first record."""
    environment = {**surroundings, BATCH_VARIABLE: "0.3"}
    process = ForkedCommand("parse", *FAST, "--pages-in-flight", "2", *arguments, "-o", out, env=environment)
    results = out / "ocr_results.jsonl"
    wait_for(lambda: process.returncode is not None or (results.exists() and results.stat().st_size))
    return process


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def worker(process: ForkedCommand) -> int:
    """The process that does the work for the one that was started."""
    (pid,) = wait_for(lambda: children(process.pid))
    return int(pid)


def decoders(process: ForkedCommand) -> list[int]:
    return children(worker(process))


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_a_signal_drains_the_run_and_the_same_command_continues(
    inputs: Path, tmp_path: Path, surroundings: dict[str, str]
):
    out = tmp_path / "out"
    process = start(out, surroundings, inputs / "some.tiff")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert "in flight" in stderr
    assert "Traceback" not in stderr
    assert "Interrupted" in stdout
    found = records(out)
    summary = run_json(out)
    assert 0 < len(found) < SOME
    assert (summary["pages"], summary["interrupted"], summary["failed"]) == (len(found), True, 0)
    assert (out / "report.html").exists()
    assert found[0]["markdown"].splitlines()[0] in (out / "documents" / "some.md").read_text(encoding="utf-8")
    resumed = parse(inputs / "some.tiff", "-o", out, *FAST, env=surroundings)
    assert resumed.returncode == ExitCode.OK
    assert f"{len(found)} page" in resumed.stderr
    assert all_once(out, SOME)
    assert run_json(out)["interrupted"] is False


@pytest.mark.skipif(os.name != "posix", reason="POSIX signals")
def test_a_second_signal_ends_the_process_at_once_and_the_run_can_be_resumed(
    inputs: Path, tmp_path: Path, surroundings: dict[str, str]
):
    out = tmp_path / "out"
    process = start(out, surroundings, inputs / "some.tiff")
    process.send_signal(signal.SIGSTOP)  # so that both come before the pages in flight have ended
    os.kill(worker(process), signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    os.kill(worker(process), signal.SIGCONT)
    stdout, stderr = process.communicate()
    assert process.returncode in (-signal.SIGINT, -signal.SIGTERM), stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert parse(inputs / "some.tiff", "-o", out, *FAST, env=surroundings).returncode == ExitCode.OK
    assert all_once(out, SOME)


WAITING_ENGINE = """
import os, pathlib, time

class Waiting:
    name, max_batch = "waiting", 1
    def detect(self, pages):
        with open(os.environ["CALLS"], "a") as calls:
            calls.write("call\\n")
        if len(pathlib.Path(os.environ["CALLS"]).read_text().split()) < 3:
            time.sleep(3600)
        return [[] for _ in pages]
    def close(self):
        pass

def create(settings):
    return Waiting()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_page_is_not_failed_for_kills_from_outside(inputs: Path, tmp_path: Path, surroundings: dict[str, str]):
    install_package(
        tmp_path, "waiting", "[pagemill.layout_engines]\nwaiting = waiting:create\n", waiting=WAITING_ENGINE
    )
    calls = tmp_path / "calls"
    path = os.pathsep.join(filter(None, [str(tmp_path), surroundings.get("PYTHONPATH")]))
    arguments = ("parse", inputs / "a.png", "-o", tmp_path / "out", "--layout-engine", "waiting")
    process = ForkedCommand(*arguments, env={**surroundings, "PYTHONPATH": path, "CALLS": str(calls)})
    for kills in (1, 2):
        wait_for(lambda kills=kills: calls.exists() and len(calls.read_text().split()) == kills)
        os.kill(worker(process), signal.SIGKILL)
    _, stderr = process.communicate()
    assert process.returncode == ExitCode.OK, stderr
    assert stderr.count("SIGKILL, sent by another process") == 2
    assert [(record["status"], record["attempts"]) for record in records(tmp_path / "out")] == [("done", 1)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_decoding_process_outlives_the_run(inputs: Path, tmp_path: Path, surroundings: dict[str, str]):
    process = start(tmp_path / "out", surroundings, inputs / "eight.pdf", inputs / "some.tiff")
    workers = wait_for(lambda: decoders(process))
    process.kill()
    process.communicate()
    wait_for(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in workers))
    # Nobody could tidy up: the next run does.
    again = parse(inputs / "a.png", "-o", tmp_path / "out", "--fresh", *FAST, env=surroundings)
    assert again.returncode == ExitCode.OK
    assert [record["doc_id"] for record in records(tmp_path / "out")] == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGSEGV])
def test_a_decoder_that_hangs_or_crashes_costs_no_page(
    inputs: Path, tmp_path: Path, surroundings: dict[str, str], number: signal.Signals
):
    out = tmp_path / "out"
    flags = ["--decoders", "1"]
    if number == signal.SIGSTOP:  # far more than a page of this file needs
        flags += ["--page-timeout", "10"]
    process = start(out, surroundings, inputs / "eight.pdf", *flags)
    for pid in decoders(process):
        os.kill(pid, number)
    _, stderr = process.communicate()
    assert (process.returncode, "Traceback" in stderr) == (ExitCode.OK, False), stderr
    assert all_once(out, 8)
    retried = {record["page_id"] for record in records(out) if record["attempts"] > 1}
    assert len(retried) <= 2
    assert all(f"will be retried {page_id}: " in stderr for page_id in retried)
