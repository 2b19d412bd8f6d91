"""Crops of encoded pages: CPU time of ours and of the ``glmocr`` package's own functions, page by page in turn.

python benchmarks/crops.py [--pages 64] [--seed 0] [--glmocr-python glm/bin/python] [--json]
"""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import cv2
import numpy as np
from PIL import Image

from glmocr_process import glmocr_process, measure_and_print
from pagemill.imaging.decode import decode_image
from pagemill.imaging.encode import encode_jpeg
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.transforms import crop
from pagemill_bench.table import FigureTable
from pagemill_bench.testing.drawn_pages import A4_300DPI

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.document.geometry import Box
    from pagemill.imaging.types import Pixels

BOXES = tuple((left, top, left + 390, top + 185) for top in (60, 285, 510, 735) for left in (80, 520))
"""Eight regions in thousandths of the page: 5 million pixels of an A4 page at 300 dpi."""
_DISTINCT = 8
_GRAIN = 10.0


@dataclass(slots=True)
class _Spent:
    """CPU milliseconds of every page, and the bytes of its crops."""

    decode: list[float] = field(default_factory=list)
    encode: list[float] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def add(self, decode: float, encode: float, size: int) -> None:
        """Count a page."""
        self.decode.append(decode)
        self.encode.append(encode)
        self.size.append(size)

    @property
    def total(self) -> float:
        """Median of a page."""
        return statistics.median(map(sum, zip(self.decode, self.encode, strict=True)))


def crop_tables(*, pages: int = 64, seed: int = 0, glmocr_python: Path | None = None) -> list[FigureTable]:
    """CPU milliseconds a page from a file to eight encoded crops, for JPEG and for PNG pages.

    Args:
        pages: How many; eight of them are different.
        seed: Of the pages.
        glmocr_python: Interpreter of an environment with ``glmocr``; without it there is no comparison.

    Raises:
        MissingDependencyError: That interpreter does not run glmocr.
    """
    tables = []
    with contextlib.ExitStack() as stack:
        ask = stack.enter_context(glmocr_process(glmocr_python, _GLMOCR)) if glmocr_python else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind in ("JPEG", "PNG"):
            files = [folder / f"{kind}-{number}" for number in range(min(pages, _DISTINCT))]
            for number, file in enumerate(files):
                file.write_bytes(sample_page(seed + number, kind))
            spent = _measure([files[number % len(files)] for number in range(pages)], kind, ask)
            mean_size = statistics.mean(file.stat().st_size for file in files)
            tables.append(_table(f"{pages} {kind} pages of {mean_size / 1e6:.1f} MB, 8 crops each", spent))
    return tables


def sample_page(seed: int, kind: str) -> bytes:
    """An A4 page of text at 300 dpi: as JPEG with grain (about 2.3 MB), as PNG without (about 0.4 MB)."""
    random = np.random.default_rng(seed)
    width, height = A4_300DPI
    page = np.full((height, width, 3), 255, dtype=np.uint8)
    for y in range(200, height - 200, 90):
        letters = random.integers(97, 123, size=85)
        letters[random.random(len(letters)) < 0.16] = 32
        text = bytes(letters.astype(np.uint8)).decode("ascii")
        cv2.putText(page, text, (200, y), cv2.FONT_HERSHEY_SIMPLEX, 1.1, (20, 20, 20), 2, cv2.LINE_AA)
    if kind == "PNG":
        buffer = io.BytesIO()
        Image.fromarray(page).save(buffer, "PNG")
        return buffer.getvalue()
    grain = random.standard_normal(page.shape, dtype=np.float32) * np.float32(_GRAIN)
    return encode_jpeg(np.clip(page + grain, 0, 255).astype(np.uint8), quality=90, subsampling="420")


def _measure(files: Sequence[Path], kind: str, ask: Callable[[Any], Any] | None) -> dict[str, _Spent]:
    ways: dict[str, Callable[[Path], tuple[float, float, int]]] = {
        "pagemill, encoded like glmocr (75, 4:2:0)": functools.partial(_ours, quality=75, subsampling="420"),
        "pagemill, as it saves crops (90, 4:4:4)": functools.partial(_ours, quality=90, subsampling="444"),
    }
    if kind == "JPEG":
        ways["pagemill, decoding to half size"] = _half_size
    if ask is not None:
        ways["glmocr (75, 4:2:0)"] = lambda file: tuple(ask({"page": str(file), "boxes": BOXES}))
    for way in ways.values():  # imports, first allocations
        way(files[0])
    spent = {name: _Spent() for name in ways}
    for file in files:
        for name, way in ways.items():
            spent[name].add(*way(file))
    return spent


def _ours(file: Path, *, quality: int, subsampling: Literal["444", "420"]) -> tuple[float, float, int]:
    start = time.process_time()
    pixels = decode_image(file).pixels
    decoded = time.process_time()
    # glmocr's requests hold base64, so ours end there, too.
    crops = [base64.b64encode(encode_jpeg(crop(pixels, box), quality, subsampling)) for box in _page_boxes(pixels)]
    end = time.process_time()
    return (decoded - start) * 1000, (end - decoded) * 1000, sum(map(len, crops)) * 3 // 4


def _half_size(file: Path) -> tuple[float, float, int]:
    """What a page costs that only the layout model looks at."""
    start = time.process_time()
    decode_image(file, limits=DecodeLimits(max_side=A4_300DPI[1] // 2))
    return (time.process_time() - start) * 1000, 0.0, 0


def _page_boxes(pixels: Pixels) -> list[Box]:
    height, width = pixels.shape[:2]
    return [(x1 * width / 1000, y1 * height / 1000, x2 * width / 1000, y2 * height / 1000) for x1, y1, x2, y2 in BOXES]


def _table(title: str, spent: dict[str, _Spent]) -> FigureTable:
    first = next(iter(spent.values())).total
    return FigureTable(
        title,
        ("CPU time a page", "decoding ms", "crops ms", "together ms", "crops MB", "ratio"),
        tuple(
            (
                name,
                statistics.median(each.decode),
                statistics.median(each.encode) or None,
                each.total,
                statistics.mean(each.size) / 1e6 or None,
                each.total / first,
            )
            for name, each in spent.items()
        ),
    )


_GLMOCR = """
import time
from glmocr.config import load_config
from glmocr.dataloader import PageLoader
from glmocr.utils.image_utils import crop_image_region

loader = PageLoader(load_config().pipeline.page_loader)

def answer(question):
    start = time.process_time()
    page = loader.load_pages(question["page"])[0]
    page.load()
    decoded = time.process_time()
    crops = [crop_image_region(page, box) for box in question["boxes"]]
    requests = [loader.build_request_from_image(crop) for crop in crops]
    end = time.process_time()
    urls = [request["messages"][0]["content"][0]["image_url"]["url"] for request in requests]
    return (decoded - start) * 1000, (end - decoded) * 1000, sum(len(url.partition(",")[2]) for url in urls) * 3 // 4
"""


if __name__ == "__main__":
    measure_and_print("crops", __doc__, crop_tables, "pages", 64)
