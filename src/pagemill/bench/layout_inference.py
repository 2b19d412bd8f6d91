"""Inference of PP-DocLayout step by step: float32, inference mode, mixed precision, bfloat16, compiled; and the stage.

Every row is measured on the same weights and pages. On a GPU a row ends when the device has finished.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import cv2

from pagemill.errors import PagemillError
from pagemill.layout.pp_doclayout.inference import ModelChoice, Predictor, load_predictor
from pagemill.layout.pp_doclayout.preprocess import resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation, PPDocLayoutSettings, Precision, TorchDevice
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine
from pagemill.testing.drawn_pages import A4_300DPI, draw_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import torch

    from pagemill.imaging.types import Pixels


Speed = tuple[str, float, float]
"""Name, milliseconds, pages per second."""

_SAMPLE_S = 0.05


def inference_rows(
    weights: Path, device: TorchDevice, *, pages: int = 64, batch: int = 64, repeats: int = 3, compile: bool = True
) -> list[Speed]:
    """Speed of the model alone, from pixels on the device to raw outputs on the device: name, ms, pages per second.

    Args:
        weights: Folder of the model.
        device: Where to run.
        pages: Pages of 800 x 800 pixels.
        batch: Pages of one call.
        repeats: The fastest counts; one more warms up.
        compile: Measure the compiled model, too.
    """
    import torch

    pixels = torch.from_numpy(
        resize_pages([draw_page(seed, (900, 1200)) for seed in range(batch)], Interpolation.BICUBIC)
    )
    chunks = [min(batch, pages - start) for start in range(0, pages, batch)]
    precisions = [Precision.MIXED] if device is TorchDevice.CPU else [Precision.MIXED, Precision.BFLOAT16]
    steps = [
        ("float32 with gradients", Precision.FLOAT32, False),
        ("float32, inference mode", Precision.FLOAT32, False),
        *((str(precision), precision, False) for precision in precisions),
        *((f"{precision}, compiled", precision, True) for precision in precisions if compile),
    ]
    rows = []
    for name, precision, compiled in steps:
        predictor = load_predictor(ModelChoice(weights, device, precision, compiled, batch))
        inputs = pixels.to(predictor.device)
        mode = contextlib.nullcontext() if "gradients" in name else torch.inference_mode()

        def run(predictor: Predictor = predictor, inputs: Any = inputs) -> None:
            for count in chunks:
                predictor.forward(inputs[:count])
            if torch.accelerator.is_available():
                torch.accelerator.synchronize()

        with mode:
            milliseconds = _fastest(run, repeats)
        rows.append((name, milliseconds, pages * 1000 / milliseconds))
        del predictor
    return rows


def stage_rows(
    weights: Path, device: TorchDevice, *, pages: int = 64, threads: int = 8, batch: int = 16, repeats: int = 3
) -> list[tuple[str, float, float, float | None]]:
    """Speed of the whole layout stage, from encoded bytes to regions, pages in threads as in a run.

    Each row has its name, ms, pages per second, and the share of that time, 0-1, in which the GPU was busy.

    Args:
        weights: Folder of the model.
        device: Where to run.
        pages: A4 pages at 300 dpi.
        threads: Threads that decode and resize what the GPU does not.
        batch: Pages of one call.
        repeats: The fastest counts; more warm up.
    """
    predictor = load_predictor(ModelChoice(weights, device, Precision.AUTO, None, batch))
    engine = PPDocLayoutEngine(predictor, PPDocLayoutSettings())
    drawn = [draw_page(seed, A4_300DPI) for seed in range(min(pages, 8))]
    rows = []
    with ThreadPoolExecutor(threads) as decoders, ThreadPoolExecutor(3) as callers:
        for kind in ("JPEG", "PNG"):
            data = list(islice(cycle(encode_pages(drawn, kind)), pages))

            def detect(chunk: Sequence[bytes]) -> None:
                for answer in engine.detect_encoded(chunk, decoders):
                    if isinstance(answer, PagemillError):
                        raise answer

            def run(data: Sequence[bytes] = data) -> None:
                list(callers.map(detect, [data[start : start + batch] for start in range(0, pages, batch)]))

            run()
            with gpu_samples(predictor.device) as samples:
                milliseconds = _fastest(run, repeats)
            busy = statistics.mean(samples) / 100 if samples else None
            where = "nvJPEG" if kind == "JPEG" and predictor.jpeg_decoder else f"{threads} threads"
            rows.append((f"{kind} to regions, {where}", milliseconds, pages * 1000 / milliseconds, busy))
    return rows


@contextlib.contextmanager
def gpu_samples(device: torch.device) -> Iterator[list[int]]:
    """Percentages of the time in which a GPU computes, while the block runs, as its driver says (NVML).

    The driver tells the share of its last period (1/6 s to 1 s, by the product) in which a kernel ran, of any process.
    Nothing is sampled on other devices, or where ``nvidia-ml-py`` is not installed.
    """
    import torch

    samples: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        with contextlib.suppress(Exception):  # of nvidia-ml-py, which have no base that is there without it
            while not ended.wait(_SAMPLE_S):
                samples.append(torch.cuda.utilization(device))

    with ThreadPoolExecutor(1, thread_name_prefix="pagemill.bench.gpu") as watcher:
        if device.type == "cuda":
            watcher.submit(watch)
        try:
            yield samples
        finally:
            ended.set()


def encode_pages(pages: Sequence[Pixels], kind: str) -> list[bytes]:
    """Pages as PNG or as JPEG of quality 90."""
    quality = [cv2.IMWRITE_JPEG_QUALITY, 90]  # PNG has none and does not look at it
    return [cv2.imencode(f".{kind.lower()}", page[..., ::-1], quality)[1].tobytes() for page in pages]


def _fastest(call: Callable[[], None], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1000
