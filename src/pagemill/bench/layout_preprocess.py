"""From encoded pages to the layout model's input: the published processor against ours."""

from __future__ import annotations

import functools
import io
import itertools
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pagemill.bench.layout_inference import Speed, encode_pages
from pagemill.imaging.decode import decode_image, decode_reduced
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE, resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation
from pagemill.testing.drawn_pages import A4_300DPI, draw_page

_DISTINCT = 4
"""Different pages that are measured."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pagemill.imaging.types import Pixels


def preprocess_rows(*, pages: int, stock: bool) -> list[Speed]:
    """CPU time for A4 pages at 300 dpi: the resize alone, then from encoded bytes; page by page in turn.

    Args:
        pages: How many.
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
    """As the layout model gets pages that nothing else looks at."""
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
