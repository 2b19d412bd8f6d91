"""The layout model: from encoded pages to its input, its inference step by step, and the whole stage.

Preprocessing is measured for the published processor and for ours. Inference is measured in float32, in inference mode,
in mixed precision, in bfloat16 and compiled, on the same weights and pages; on a GPU a row ends when the device has
finished.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from pagemill.config.modes import TorchDevice
from pagemill.errors import PagemillError
from pagemill.imaging.decode import decode_image, decode_reduced, sound_jpeg
from pagemill.imaging.types import Pixels
from pagemill.layout.pp_doclayout.inference import ModelChoice, Predictor, load_predictor
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE, resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation, PPDocLayoutSettings, Precision
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine
from pagemill_bench.testing.drawn_pages import A4_300DPI, draw_page

if TYPE_CHECKING:
    import torch


Speed = tuple[str, float, float]
"""Name, milliseconds, pages per second."""

_SAMPLE_S = 0.05
_DISTINCT = 4
"""Different pages whose preprocessing is measured."""


def has_gpu(device: TorchDevice) -> bool:
    """Whether a choice of device means a GPU on this machine."""
    import torch

    auto = device is TorchDevice.AUTO
    return bool(torch.accelerator.is_available()) if auto else device is not TorchDevice.CPU


def inference_rows(
    weights: Path, device: TorchDevice, *, pages: int = 64, batch: int = 64, repeats: int = 3, compile: bool = False
) -> list[Speed]:
    """Speed of the model alone, from pixels on the device to raw outputs on the device: name, ms, pages per second.

    Args:
        weights: Folder of the model.
        device: Device to run on.
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
    precisions = [Precision.MIXED, Precision.BFLOAT16] if has_gpu(device) else [Precision.MIXED]
    steps = [
        ("float32", Precision.FLOAT32, False),
        *((str(precision), precision, False) for precision in precisions),
        *((f"{precision}, compiled", precision, True) for precision in precisions if compile),
    ]
    rows = []
    for name, precision, compiled in steps:
        predictor = load_predictor(ModelChoice(weights, device, precision, compiled, batch))
        inputs = pixels.to(predictor.device)

        def run(predictor: Predictor = predictor, inputs: Any = inputs) -> None:
            for count in chunks:
                predictor.forward(inputs[:count])
            if torch.accelerator.is_available():
                torch.accelerator.synchronize()

        with torch.inference_mode():
            milliseconds = _fastest(run, repeats)
        rows.append((name, milliseconds, pages * 1000 / milliseconds))
        del predictor
    return rows


def stage_rows(
    weights: Path,
    device: TorchDevice,
    *,
    pages: int = 64,
    threads: int = 8,
    batch: int = 16,
    repeats: int = 3,
    compile: bool = False,
) -> list[tuple[str, float, float, float | None]]:
    """Speed of the whole layout stage, from encoded bytes to regions, and with the pixels that a run cuts crops out of.

    Each row has its name, ms, pages per second, and the share of that time, 0-1, in which the GPU was busy. JPEGs with
    their pixels are decoded on the CPU, then on the GPU where it does that, as ``pagemill parse`` does with a model.

    Args:
        weights: Folder of the model.
        device: Device to run on.
        pages: A4 pages at 300 dpi.
        threads: Threads that decode and resize what the GPU does not.
        batch: Pages of one call.
        repeats: The fastest counts; more warm up.
        compile: Use the compiled model.
    """
    predictor = load_predictor(ModelChoice(weights, device, Precision.AUTO, compile, batch))
    engine = PPDocLayoutEngine(predictor, PPDocLayoutSettings())
    drawn = [draw_page(seed, A4_300DPI) for seed in range(min(pages, 8))]
    rows = []
    with ThreadPoolExecutor(threads) as decoders, ThreadPoolExecutor(3) as callers:

        def regions(chunk: Sequence[bytes]) -> None:
            for answer in engine.detect_encoded(chunk, decoders):
                if isinstance(answer, PagemillError):
                    raise answer

        def decoded_here(chunk: Sequence[bytes]) -> None:
            engine.detect(list(decoders.map(_decode, chunk)))

        def decoded_there(chunk: Sequence[bytes]) -> None:
            if None in (*decoders.map(sound_jpeg, chunk), *engine.detect_jpegs(chunk)):
                raise RuntimeError("the GPU decodes none of these pages")

        on_cpu = f"{threads} threads"
        ways: list[tuple[str, str, Callable[[Sequence[bytes]], None]]] = [
            ("JPEG", f"JPEG to regions, {'nvJPEG' if engine.decodes_jpegs else on_cpu}", regions),
            ("PNG", f"PNG to regions, {on_cpu}", regions),
            ("JPEG", f"JPEG to regions and pixels, {on_cpu}", decoded_here),
        ]
        if engine.decodes_jpegs:
            ways.append(("JPEG", "JPEG to regions and pixels, nvJPEG", decoded_there))
        encoded = {kind: encode_pages(drawn, kind) for kind in ("JPEG", "PNG")}
        for kind, name, detect in ways:
            data = list(itertools.islice(itertools.cycle(encoded[kind]), pages))

            def run(detect: Callable[[Sequence[bytes]], None] = detect, data: Sequence[bytes] = data) -> None:
                list(callers.map(detect, [data[start : start + batch] for start in range(0, pages, batch)]))

            run()
            with gpu_samples(predictor.device) as samples:
                milliseconds = _fastest(run, repeats)
            busy = statistics.mean(samples) / 100 if samples else None
            rows.append((name, milliseconds, pages * 1000 / milliseconds, busy))
    return rows


def embedded_rows(*, pages: int, threads: int, repeats: int) -> list[Speed]:
    """Speed of the embedded ONNX engine on the CPU: the model alone, then from encoded pages, pages in threads.

    Args:
        pages: A4 pages at 300 dpi.
        threads: Pages at once.
        repeats: The fastest counts; one more warms up.
    """
    from pagemill.layout.onnx_engine import create

    drawn = [draw_page(seed, A4_300DPI) for seed in range(_DISTINCT)]
    rows = []
    with contextlib.closing(create()) as engine, ThreadPoolExecutor(threads) as pool:
        encoded = {kind: encode_pages(drawn, kind) for kind in ("JPEG", "PNG")}
        ways: list[tuple[str, Callable[[Any], Any], Sequence[Any]]] = [
            ("pixels", lambda page: engine.detect([page]), drawn),
            *((kind, lambda page: engine.detect([_decode(page)]), data) for kind, data in encoded.items()),
        ]
        for name, detect, distinct in ways:
            inputs = list(itertools.islice(itertools.cycle(distinct), pages))

            def run(detect: Callable[[Any], Any] = detect, inputs: Sequence[Any] = inputs) -> None:
                list(pool.map(detect, inputs))

            milliseconds = _fastest(run, repeats)
            rows.append((f"{name} to regions, {threads} threads", milliseconds, pages * 1000 / milliseconds))
    return rows


@contextlib.contextmanager
def gpu_samples(device: torch.device) -> Iterator[list[int]]:
    """Percentages of the time in which a GPU computes, while the block runs, as its driver says (NVML).

    The driver reports the share of its last period (1/6 s to 1 s, by the product) in which a kernel ran, of any
    process. Nothing is sampled on other devices, or where ``nvidia-ml-py`` is not installed.
    """
    import torch

    samples: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        with contextlib.suppress(Exception):  # of nvidia-ml-py, which have no base that is there without it
            while not ended.wait(_SAMPLE_S):
                samples.append(torch.cuda.utilization(device))

    with ThreadPoolExecutor(1, thread_name_prefix="pagemill_bench.gpu") as watcher:
        if device.type == "cuda":
            watcher.submit(watch)
        try:
            yield samples
        finally:
            ended.set()


def encode_pages(pages: Sequence[Pixels], kind: str) -> list[bytes]:
    """Pages as PNG or as JPEG of quality 90."""
    quality = [cv2.IMWRITE_JPEG_QUALITY, 90] if kind == "JPEG" else []
    return [cv2.imencode(f".{kind.lower()}", page[..., ::-1], quality)[1].tobytes() for page in pages]


def _fastest(call: Callable[[], None], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


def preprocess_rows(*, pages: int, stock: bool) -> list[Speed]:
    """CPU time for A4 pages at 300 dpi: the resize alone, then from encoded bytes; page by page in turn.

    Args:
        pages: Number of pages.
        stock: Measure the published processor, too; it needs torchvision.

    Returns:
        The name of each way, its milliseconds and its pages per second.
    """
    drawn = [draw_page(seed, A4_300DPI) for seed in range(_DISTINCT)]
    ways: list[tuple[str, Callable[[bytes], Any], Callable[[Any], Any]]] = [
        (f"ours, {interpolation}", _decode, functools.partial(_ours, interpolation=interpolation))
        for interpolation in Interpolation
    ]
    if stock:
        import transformers

        processor = transformers.PPDocLayoutV3ImageProcessor()
        ways.append(("the published processor", _pillow, functools.partial(_published, processor=processor)))
    rows = _in_turn("resize", {name: resize for name, _, resize in ways}, drawn, pages)
    for kind in ("JPEG", "PNG"):
        whole = {name: _after(decode, resize) for name, decode, resize in ways}
        if kind == "JPEG":
            name, _, resize = ways[0]
            whole[f"{name}, from half size"] = _after(_decode_reduced, resize)
        rows += _in_turn(f"{kind} to input", whole, encode_pages(drawn, kind), pages)
    return rows


def _after(decode: Callable[[bytes], Any], resize: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    return lambda page: resize(decode(page))


def _ours(page: Pixels, interpolation: Interpolation) -> Any:
    """Resized, channels first, over 255; the last two happen on the device in a run."""
    batch = resize_pages([page], interpolation)
    return np.ascontiguousarray(batch.transpose(0, 3, 1, 2)).astype(np.float32) / np.float32(255)


def _published(page: Any, processor: Any) -> Any:
    return processor(images=[page], return_tensors="pt")


def _decode(page: bytes) -> Pixels:
    return decode_image(page).pixels


def _decode_reduced(page: bytes) -> Pixels:
    """Decode a page that only the layout model looks at."""
    return decode_reduced(page, INPUT_SIDE)[0]


def _pillow(page: bytes) -> Any:
    from PIL import Image

    with Image.open(io.BytesIO(page)) as image:
        return image.convert("RGB")


def _in_turn(what: str, ways: Mapping[str, Callable[[Any], Any]], distinct: Sequence[Any], pages: int) -> list[Speed]:
    """CPU milliseconds of each way for all pages, after a warm-up; page by page in turn, so that all meet the same."""
    spent = dict.fromkeys(ways, 0.0)
    for call in ways.values():
        call(distinct[0])
    for page in itertools.islice(itertools.cycle(distinct), pages):
        for name, call in ways.items():
            start = time.process_time()
            call(page)
            spent[name] += time.process_time() - start
    return [(f"{what}: {name}", seconds * 1000, pages / seconds) for name, seconds in spent.items()]
