"""Pages read by a real vLLM with a tiny GLM-OCR: layout, crops, chat completions, records; and what ends it all.

The tests run in this order and share one server, as its start is by far the longest part.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from paragraph_pages import draw_pages
from reading_run import check_reading, contents, lines, parse, read_records, start_parse
from vllm_process import ServingProcess, VllmEnvironment, is_free, kill, wait_for

from pagemill.errors import ExitCode

MODEL = "glm-ocr"
PAGES = 14
"""Of the run in which the server is killed."""


def test_records_hold_what_transformers_reads_in_the_crops(
    serving: ServingProcess, vllm: VllmEnvironment, tmp_path: Path
) -> None:
    check_reading(serving, vllm, tmp_path)


def test_a_killed_server_loses_no_page_and_no_region(serving: ServingProcess, tmp_path: Path) -> None:
    pages = draw_pages(tmp_path / "pages", PAGES)
    run = start_parse(MODEL, [pages, "--workers", "2"], serving.url, tmp_path / "killed")
    try:
        results = tmp_path / "killed" / "out" / "ocr_results.jsonl"
        wait_for(lambda: run.exit_code is not None or lines(results) >= 2, "the first pages")
        assert run.exit_code is None
        (victim,) = serving.named("vllm")
        kill(victim)
        assert lines(results) < PAGES, "it was killed midway"
        assert run.wait() == ExitCode.OK, run.log.read_text()
        run.wait_until_gone()
    finally:
        run.clear()
    assert "SIGKILL" in serving.said
    killed = contents(MODEL, read_records(tmp_path / "killed"))
    assert len(killed) == PAGES
    undisturbed = contents(MODEL, parse(MODEL, [pages], serving.url, tmp_path / "undisturbed"))
    assert killed == undisturbed


def test_sigterm_leaves_no_process_and_frees_the_port(serving: ServingProcess) -> None:
    assert len(serving.family()) >= 4, "pagemill, the API server, its engine and its worker"
    serving.send(signal.SIGTERM)
    assert serving.wait_until_gone() == ExitCode.OK
    assert is_free(serving.port)


@pytest.mark.parametrize("watchdog", [False, True], ids=["alone", "with the watchdog of the server"])
def test_sigkill_of_pagemill_leaves_no_process_and_frees_the_port(
    vllm: VllmEnvironment, checkpoints: Path, tmp_path: Path, watchdog: bool
) -> None:
    process = ServingProcess(vllm, MODEL, checkpoints, tmp_path)
    try:
        wait_for(lambda: process.exit_code is not None or process.named("VLLM::Worker"), "vLLM's processes")
        kept = [
            pid for pid in process.family() if b"pagemill.serving.watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        assert len(kept) == 1
        process.send(signal.SIGKILL)
        if watchdog:
            kill(kept[0])
        assert process.wait_until_gone() == -signal.SIGKILL
        assert is_free(process.port)
    finally:
        process.clear()
