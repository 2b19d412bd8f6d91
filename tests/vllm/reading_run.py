"""``pagemill parse`` with a model behind a server, and whether its records hold what the model says."""

from __future__ import annotations

import base64
import io
import json
import math
import os
from collections import Counter
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from pagemill_process import PagemillProcess
from PIL import Image
from recording_proxy import RecordingProxy

from pagemill.config.model_cards import load_card
from pagemill.errors import ExitCode
from pagemill.imaging.transforms import at_least

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vllm_process import ServingProcess, VllmEnvironment

SAMPLES = Path(__file__).parents[2] / "samples"
DPI = 200
MOST_DIFFERENCE = 4.0
"""Between a crop and the JPEG of it, mean of 0-255: a few pixels beside it are more."""
TIE = 0.01
"""Between the log probabilities of two words of which vLLM and transformers, which round differently, may take either.
Seen: 0.0002."""
Pixels: TypeAlias = NDArray[np.uint8]


def check_reading(serving: ServingProcess, vllm: VllmEnvironment, folder: Path) -> None:
    """Parse a scanned page, and compare what was asked, answered and recorded with what transformers says."""
    page = scanned_page()
    Image.fromarray(page).save(folder / "page.png")
    with RecordingProxy(serving.url) as proxy:
        records = parse(serving.model, [folder / "page.png"], proxy.url, folder)
    asked = [exchange for exchange in proxy.exchanges if exchange.path == "/v1/chat/completions"]
    read = [region for record in records for region in record["regions"] if region["engine"] == f"vlm:{serving.model}"]
    assert len(read) >= 10
    assert {exchange.status for exchange in asked} == {200}
    # One request a region, with the region's own pixels ...
    sent = [sent_image(exchange.body) for exchange in asked]
    least = load_card(serving.model).image.min_side
    crops = [at_least(page[rows, columns], least) for rows, columns in map(box_slices, read)]
    assert sorted(image.shape for image in sent) == sorted(crop.shape for crop in crops)
    for crop in crops:
        assert min(difference(crop, image) for image in sent if image.shape == crop.shape) < MOST_DIFFERENCE
    # ... whose answer is what stands in the record ...
    said = [exchange.answer["choices"][0]["message"]["content"] for exchange in asked]
    assert Counter(text.strip() for text in said) == Counter(region["content"] for region in read)
    assert len(set(said)) > len(said) / 2, "the model reads the image"
    # ... and what transformers says to the same crops.
    expected = vllm.reference(serving.checkpoint, [exchange.body for exchange in asked])
    for text, answer in zip(said, expected, strict=True):
        assert lead_where_they_part(text, answer) < TIE, f"{text!r} is not {answer['content']!r}"


def lead_where_they_part(said: str, answer: dict[str, Any]) -> float:
    """How much likelier the first word that differs was for transformers than the next one; 0 where all are equal.

    Each word is one token of the tiny models. What follows another word is another text.
    """
    if said == answer["content"]:
        return 0.0
    pairs = zip(said.split(), answer["content"].split(), strict=False)
    return float(answer["leads"][sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))])


def parse(model: str, inputs: Sequence[str | os.PathLike[str]], server: str, folder: Path) -> list[dict[str, Any]]:
    """Run ``pagemill parse`` to its end; gives its records."""
    run = start_parse(model, inputs, server, folder)
    try:
        assert run.wait() == ExitCode.OK, run.log.read_text()
        run.wait_until_gone()
    finally:
        run.clear()
    return read_records(folder)


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The records of a run."""
    return [json.loads(line) for line in (folder / "out" / "ocr_results.jsonl").read_text().splitlines()]


def start_parse(model: str, inputs: Sequence[str | os.PathLike[str]], server: str, folder: Path) -> PagemillProcess:
    """Start ``pagemill parse`` with a model behind a server, into ``folder/out``."""
    folder.mkdir(exist_ok=True)
    options = ["--recognition-engine", "vlm", "--model", model, "--server", server, "--quiet", "--no-report"]
    command = ["parse", *map(str, inputs), "-o", folder / "out", *options]
    return PagemillProcess(command, dict(os.environ), folder / "log")


def contents(model: str, records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """What was read on each page. There is one record a page, and nothing in any that failed."""
    found = {}
    for record in records:
        assert record["page_id"] not in found, "one record a page"
        assert record["status"] == "done"
        assert not record["errors"]
        read = [region["content"] for region in record["regions"] if region["engine"] == f"vlm:{model}"]
        assert read
        assert all(read)
        found[record["page_id"]] = read
    return found


def lines(path: Path) -> int:
    """Lines of a file; none when it is not there yet."""
    return path.read_bytes().count(b"\n") if path.exists() else 0


def scanned_page() -> Pixels:
    """The page that is parsed, shape (height, width, 3)."""
    with pypdfium2.PdfDocument(SAMPLES / "report-scan.pdf") as document:
        return np.asarray(document[0].render(scale=DPI / 72).to_pil().convert("RGB"))


def sent_image(body: dict[str, Any]) -> Pixels:
    """The image in a request, shape (height, width, 3)."""
    url = body["messages"][0]["content"][0]["image_url"]["url"]
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as image:
        return np.asarray(image.convert("RGB"))


def box_slices(region: dict[str, Any]) -> tuple[slice, slice]:
    """Rows and columns of a region: every pixel that its box touches."""
    left, top, right, bottom = region["bbox"]
    return slice(math.floor(top), math.ceil(bottom)), slice(math.floor(left), math.ceil(right))


def difference(one: Pixels, other: Pixels) -> float:
    """Mean absolute difference of two images of a size, 0-255."""
    return float(np.abs(one.astype(int) - other).mean())
