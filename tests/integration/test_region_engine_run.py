"""Whole runs whose regions a server reads: killed and resumed, without a server, with other settings."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from coded_pages import Corpus, mixed_corpus
from pagemill_process import PagemillProcess, kill_when_written, lines_written, run, wait_for
from run_contents import contents, differences, leftovers, records
from stub_process import StubProcess

from pagemill.errors import ExitCode

pytestmark = [
    pytest.mark.slow,
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="watches processes through /proc"),
]
PAGES = 45
OPTIONS = ("--layout-engine", "fast", "--quiet", "--recognition-engine", "vlm", "--server")
STUB = ("--model", "glm-ocr", "--text", "said $<b>$ <img src=x> in **bold**")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return mixed_corpus(tmp_path_factory.mktemp("inputs"), PAGES)


@pytest.fixture(scope="module")
def stub() -> Iterator[StubProcess]:
    with StubProcess(*STUB, "--latency-ms", "100") as server:
        yield server


@pytest.fixture(scope="module")
def options(stub: StubProcess) -> tuple[str, ...]:
    return *OPTIONS, stub.url


def test_every_page_is_read_by_its_regions(undisturbed: Path, stub: StubProcess):
    found = records(undisturbed)
    assert [record["page_idx"] for record in found] == list(range(PAGES))
    assert stub.counts()["requests"] == 2 * PAGES
    for record in found:
        title, body, picture = record["regions"]
        assert (record["status"], record["errors"], record["text_source"]) == ("done", [], "ocr")
        assert (title["engine"], title["content_format"], title["level"]) == ("vlm:glm-ocr", "markdown", 1)
        assert body["lines"] == []
        assert picture["content"] is None
        assert "<img" not in record["markdown"]
        assert record["markdown"].startswith("# said")
    texts = (undisturbed / "parsed_texts.jsonl").read_text()
    assert "in bold" in texts
    assert "said" in (undisturbed / "report.html").read_text()
    described = json.loads((undisturbed / "run.json").read_text())["settings"]
    assert described["parse"]["recognition"]["servers"] == [stub.url]
    assert described["parse"]["text_layer"] == "never"


def test_a_run_that_is_killed_continues_and_ends_as_one_that_was_not(
    corpus: Corpus, stub: StubProcess, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    out, log = tmp_path / "out", tmp_path / "log"
    arguments = ["parse", *corpus.paths, "-o", out, *OPTIONS, stub.url]
    for pages in (3, 20):
        kill_when_written(pages, out, [*arguments, "--workers", "4"], surroundings, log)
    assert PAGES > lines_written(out) >= 20
    assert run(arguments, surroundings, log) == ExitCode.OK, log.read_text()
    assert differences(contents(out), contents(undisturbed)) == []
    assert leftovers(out) == []


def test_a_server_that_is_gone_ends_the_run_which_another_one_completes(
    corpus: Corpus, stub: StubProcess, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    out, log = tmp_path / "out", tmp_path / "log"
    arguments = ["parse", *corpus.paths, "-o", out, *OPTIONS]
    with StubProcess(*STUB, "--dies-after", "30") as mortal:
        status = run([*arguments, mortal.url, "--server-wait", "1", "--workers", "4"], surroundings, log)
    assert status == ExitCode.NETWORK, log.read_text()
    told = log.read_text()
    assert mortal.url in told
    assert "Traceback" not in told
    assert 0 < lines_written(out) < PAGES
    assert {record["status"] for record in records(out)} == {"done"}
    assert run([*arguments, stub.url], surroundings, log) == ExitCode.OK, log.read_text()
    assert differences(contents(out), contents(undisturbed)) == []


def test_a_run_that_is_stopped_while_its_server_is_gone_ends_at_once_and_continues_later(
    corpus: Corpus, stub: StubProcess, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    out, log = tmp_path / "out", tmp_path / "log"
    arguments = ["parse", *corpus.paths, "-o", out, *OPTIONS]
    with StubProcess(*STUB, "--dies-after", "30") as mortal:
        waiting = [*arguments, mortal.url, "--server-wait", "3600", "--workers", "4"]
        process = PagemillProcess(waiting, surroundings, log)
        try:
            wait_for(lambda: "waiting for it" in log.read_text(), "the death of the server")
            process.signal(signal.SIGINT)
            assert process.wait() == ExitCode.INTERRUPTED, log.read_text()
        finally:
            process.clear()
    assert {record["status"] for record in records(out)} == {"done"}
    assert run([*arguments, stub.url], surroundings, log) == ExitCode.OK, log.read_text()
    assert differences(contents(out), contents(undisturbed)) == []
    assert {record["attempts"] for record in records(out)} == {1}  # waiting is no attempt


def test_a_page_with_a_sound_text_layer_may_be_taken_by_its_lines(
    corpus: Corpus, stub: StubProcess, surroundings: dict[str, str], tmp_path: Path
):
    out, log = tmp_path / "out", tmp_path / "log"
    pdf = next(path for path in corpus.paths if path.suffix == ".pdf")
    before = stub.counts()["requests"]
    arguments = ["parse", pdf, corpus.paths[0], "-o", out, *OPTIONS, stub.url, "--text-layer", "auto"]
    assert run(arguments, surroundings, log) == ExitCode.OK, log.read_text()
    sources = [record["text_source"] for record in records(out)]
    assert sources == ["text-layer"] * 15 + ["ocr"]
    assert stub.counts()["requests"] == before + 2
