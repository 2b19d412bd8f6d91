"""Requests for a vision-language model: CPU time of ours and of the ``glmocr`` package's, crop by crop in turn.

python benchmarks/request_build.py [--crops 200] [--seed 0] [--glmocr-python glm/bin/python] [--json]
"""

from __future__ import annotations

import contextlib
import functools
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from crops import sample_page
from glmocr_process import glmocr_process, measure_and_print
from pagemill.config.model_cards import load_card
from pagemill.document.labels import Task
from pagemill.imaging.decode import decode_image
from pagemill.recognition.vlm.requests import RequestBuilder
from pagemill_bench.table import FigureTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pagemill.imaging.types import Pixels

CROP = (812, 422)
"""Width and height in pixels: a middling region of an A4 page at 300 dpi."""
_FINER_QUALITY = 90
"""For the price of a better JPEG; glmocr sends 75, as the card does."""
_DISTINCT_PAGES = 4


def request_tables(*, crops: int = 200, seed: int = 0, glmocr_python: Path | None = None) -> list[FigureTable]:
    """CPU milliseconds from a crop to a request, of pages with grain and of clean ones: resizing, JPEG, base64, body.

    Both begin with a crop that is cut already. Ours end with the bytes that are sent; the last row adds what
    makes bytes of glmocr's.

    Args:
        crops: How many.
        seed: Of the pages that they are cut from.
        glmocr_python: Interpreter of an environment with ``glmocr``; without it there is no comparison.

    Raises:
        MissingDependencyError: That interpreter does not run glmocr.
    """
    with contextlib.ExitStack() as stack:
        ask = stack.enter_context(glmocr_process(glmocr_python, _GLMOCR)) if glmocr_python else None
        tables = []
        for kind, page in (("scans with grain", "JPEG"), ("clean pages", "PNG")):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            spent = _measure(_regions(crops, seed, page), folder, ask)
            tables.append(_table(f"{crops} crops of {CROP[0]} x {CROP[1]} pixels to requests, {kind}", spent))
    return tables


def _measure(
    regions: list[Pixels], folder: Path, ask: Callable[[Any], Any] | None
) -> dict[str, list[tuple[float, int]]]:
    card = load_card("glm-ocr")
    finer = msgspec.structs.replace(card, image=msgspec.structs.replace(card.image, quality=_FINER_QUALITY))
    ways: dict[str, Callable[[int], tuple[float, int]]] = {}
    for each in (card, finer):
        builder = RequestBuilder(each, each.name)
        ways[f"pagemill ({each.image.quality}, 4:2:0)"] = functools.partial(
            _ours, builder=builder, sampling=each.sampling, regions=regions
        )
    if ask:
        for number, region in enumerate(regions):
            np.save(folder / f"{number}.npy", region)
        for name, dumped in (("glmocr (75, 4:2:0)", False), ("glmocr, with json.dumps", True)):
            ways[name] = functools.partial(_glmocr, ask=ask, folder=folder, dumped=dumped)
    for way in ways.values():  # imports, first allocations
        way(0)
    spent: dict[str, list[tuple[float, int]]] = {name: [] for name in ways}
    for number in range(len(regions)):
        for name, way in ways.items():
            spent[name].append(way(number))
    return spent


def _regions(count: int, seed: int, kind: str) -> list[Pixels]:
    """Views of pages of text."""
    width, height = CROP
    pages = [decode_image(sample_page(seed + number, kind)).pixels for number in range(_DISTINCT_PAGES)]
    random = np.random.default_rng(seed)
    regions = []
    for number in range(count):
        page = pages[number % len(pages)]
        left = int(random.integers(0, page.shape[1] - width))
        top = int(random.integers(0, page.shape[0] - height))
        regions.append(page[top : top + height, left : left + width])
    return regions


def _ours(number: int, *, builder: RequestBuilder, sampling: Any, regions: list[Pixels]) -> tuple[float, int]:
    crop = regions[number].copy()
    start = time.process_time()
    body = builder.body(builder.prepare(crop, Task.TEXT), sampling)
    return (time.process_time() - start) * 1000, len(body)


def _glmocr(number: int, *, ask: Callable[[Any], Any], folder: Path, dumped: bool) -> tuple[float, int]:
    milliseconds, size = ask({"crop": str(folder / f"{number}.npy"), "dumped": dumped})
    return milliseconds, size


def _table(title: str, spent: dict[str, list[tuple[float, int]]]) -> FigureTable:
    means = {name: statistics.mean(cost for cost, _ in each) for name, each in spent.items()}
    first = next(iter(means.values()))
    crops = len(next(iter(spent.values())))
    return FigureTable(
        title,
        ("CPU time", "all ms", "ms a crop", "median ms", "kB a request", "ratio"),
        tuple(
            (
                name,
                means[name] * crops,
                means[name],
                statistics.median(cost for cost, _ in each),
                statistics.mean(size for _, size in each) / 1000,
                means[name] / first,
            )
            for name, each in spent.items()
        ),
    )


_GLMOCR = """
import json, time
import numpy as np
from PIL import Image
from glmocr.config import load_config
from glmocr.dataloader import PageLoader

loader = PageLoader(load_config().pipeline.page_loader)

def answer(question):
    crop = Image.fromarray(np.load(question["crop"]))
    crop.load()
    start = time.process_time()
    request = loader.build_request_from_image(crop)
    body = json.dumps(request).encode() if question["dumped"] else None
    spent = (time.process_time() - start) * 1000
    return spent, len(body or json.dumps(request).encode())
"""


if __name__ == "__main__":
    measure_and_print("request-build", __doc__, request_tables, "crops", 200)
