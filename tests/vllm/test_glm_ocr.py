"""Pages read by a real vLLM with a tiny GLM-OCR: layout, crops, chat completions, records; and what ends it all.

The tests run in this order and share one server, as its start is by far the longest part.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import signal
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill_process import PagemillProcess
from paragraph_pages import draw_pages
from PIL import Image
from recording_proxy import RecordingProxy
from vllm_process import ServingProcess, VllmEnvironment, is_free, kill, wait_for

from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "glm-ocr"
SAMPLES = Path(__file__).parents[2] / "samples"
PAGES = 14
"""Of the run in which the server is killed."""


def test_records_hold_what_transformers_reads_in_the_crops(
    serving: ServingProcess, vllm: VllmEnvironment, tmp_path: Path
) -> None:
    with RecordingProxy(serving.url) as proxy:
        records = parse([SAMPLES / "report-scan.pdf", "--pages", "1"], proxy.url, tmp_path)
    asked = [exchange for exchange in proxy.exchanges if exchange.path == "/v1/chat/completions"]
    read = [region for record in records for region in record["regions"] if region["engine"] == f"vlm:{MODEL}"]
    assert len(read) >= 10
    assert {exchange.status for exchange in asked} == {200}
    # One request a region, with the region's own pixels ...
    assert sorted(image_size(exchange.body) for exchange in asked) == sorted(crop_size(region) for region in read)
    # ... whose answer is what stands in the record ...
    said = [exchange.answer["choices"][0]["message"]["content"] for exchange in asked]
    assert Counter(text.strip() for text in said) == Counter(region["content"] for region in read)
    assert len(set(said)) > len(said) / 2, "the model reads the image"
    # ... and what transformers says to the same crops.
    expected = vllm.reference(serving.checkpoint, [exchange.body for exchange in asked])
    assert said == [answer["content"] for answer in expected]


def test_a_killed_server_loses_no_page_and_no_region(serving: ServingProcess, tmp_path: Path) -> None:
    pages = draw_pages(tmp_path / "pages", PAGES)
    run = start_parse([pages, "--workers", "2"], serving.url, tmp_path / "killed")
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
    killed = contents(read_records(tmp_path / "killed"))
    assert len(killed) == PAGES
    assert killed == contents(parse([pages], serving.url, tmp_path / "undisturbed")), "as from a server in health"


def test_sigterm_leaves_no_process_and_frees_the_port(serving: ServingProcess) -> None:
    assert len(serving.family()) >= 4, "pagemill, the API server, its engine and its worker"
    serving.send(signal.SIGTERM)
    assert serving.wait_until_gone() == ExitCode.OK
    assert is_free(serving.port)


def test_sigkill_of_pagemill_leaves_no_process_and_frees_the_port(
    vllm: VllmEnvironment, checkpoints: Path, tmp_path: Path
) -> None:
    process = ServingProcess(vllm, MODEL, checkpoints, tmp_path)
    try:
        wait_for(lambda: process.exit_code is not None or process.named("VLLM::Worker"), "vLLM's processes")
        process.send(signal.SIGKILL)
        assert process.wait_until_gone() == -signal.SIGKILL
        assert is_free(process.port)
    finally:
        process.clear()


def parse(inputs: Sequence[str | os.PathLike[str]], server: str, folder: Path) -> list[dict[str, Any]]:
    """Run ``pagemill parse`` to its end; gives its records."""
    run = start_parse(inputs, server, folder)
    try:
        assert run.wait() == ExitCode.OK, run.log.read_text()
        run.wait_until_gone()
    finally:
        run.clear()
    return read_records(folder)


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The records of a run."""
    return [json.loads(line) for line in (folder / "out" / "ocr_results.jsonl").read_text().splitlines()]


def start_parse(inputs: Sequence[str | os.PathLike[str]], server: str, folder: Path) -> PagemillProcess:
    """Start ``pagemill parse`` with a model behind a server, into ``folder/out``."""
    folder.mkdir(exist_ok=True)
    options = ["--recognition-engine", "vlm", "--model", MODEL, "--server", server, "--quiet", "--no-report"]
    return PagemillProcess(
        ["parse", *map(str, inputs), "-o", folder / "out", *options], dict(os.environ), folder / "log"
    )


def contents(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What was read on each page. There is one record a page, and nothing in any that failed."""
    found = {}
    for record in records:
        assert record["page_id"] not in found, "one record a page"
        assert record["status"] == "done"
        assert not record["errors"]
        read = [region["content"] for region in record["regions"] if region["engine"] == f"vlm:{MODEL}"]
        assert read
        assert all(read)
        found[record["page_id"]] = read
    return found


def lines(path: Path) -> int:
    """Lines of a file; none when it is not there yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def image_size(body: dict[str, Any]) -> tuple[int, int]:
    """Width and height of the image in a request."""
    url = body["messages"][0]["content"][0]["image_url"]["url"]
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
        return image.size


def crop_size(region: dict[str, Any]) -> tuple[int, int]:
    """Width and height of a region's crop: every pixel that its box touches."""
    left, top, right, bottom = region["bbox"]
    return math.ceil(right) - math.floor(left), math.ceil(bottom) - math.floor(top)
