"""Two processes on one output directory: the second is refused; a lock whose owner is dead stops nobody."""

import socket
import sys
from pathlib import Path

import pytest
from coded_pages import Corpus, CorpusMaker
from pagemill_process import OPTIONS, PagemillProcess, run, wait_until_written
from run_contents import contents, differences

from pagemill.errors import ExitCode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    maker = CorpusMaker(tmp_path_factory.mktemp("inputs"))
    maker.pdf(60)
    maker.parquet(20)
    return maker.corpus()


def test_the_second_process_is_refused_and_the_first_continues(
    corpus: Corpus, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    arguments = ["parse", *corpus.paths, "-o", tmp_path / "out", *OPTIONS]
    first = PagemillProcess(arguments, surroundings, tmp_path / "first.log")
    try:
        wait_until_written(3, tmp_path / "out")
        worker = first.worker()
        assert run([*arguments, "--fresh"], surroundings, tmp_path / "second.log") == ExitCode.OUTPUT
        assert first.exit_code is None, "the first run ended too soon to test anything"
        message = (tmp_path / "second.log").read_text()
        assert str(worker or first.pid) in message
        assert socket.gethostname() in message
        assert "Traceback" not in message
        assert first.wait() == ExitCode.OK, (tmp_path / "first.log").read_text()
    finally:
        first.clear()
    assert differences(contents(tmp_path / "out"), contents(undisturbed)) == []
    assert run(["verify", tmp_path / "out"], surroundings, tmp_path / "verify.log") == ExitCode.OK


def test_of_many_processes_started_at_once_one_works(
    corpus: Corpus, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    arguments = ["parse", *corpus.paths, "-o", tmp_path / "out", *OPTIONS]
    started = [PagemillProcess(arguments, surroundings, tmp_path / f"{number}.log") for number in range(4)]
    try:
        codes = sorted(process.wait() for process in started)
    finally:
        for process in started:
            process.clear()
    assert codes == [ExitCode.OK, *[ExitCode.OUTPUT] * 3]
    assert differences(contents(tmp_path / "out"), contents(undisturbed)) == []
