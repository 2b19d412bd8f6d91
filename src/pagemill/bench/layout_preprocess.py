"""From encoded pages to the layout model's input: the published processor against ours."""

from __future__ import annotations

import functools
import io
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pagemill.bench.drawn_pages import A4_300DPI, draw_page
from pagemill.bench.layout_inference import Row, encode_pages
from pagemill.imaging.decode import decode_image
from pagemill.layout.pp_doclayout.preprocess import resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.imaging.types import Pixels


def preprocess_rows(*, pages: int = 64, distinct: int = 4, stock: bool = True) -> list[Row]:
    """Milliseconds for A4 pages at 300 dpi on one thread: the resize alone, then from encoded bytes.

    Args:
        pages: How many.
        distinct: Different pages among them.
        stock: Measure the published processor, too; it needs torchvision.
    """
    drawn = [draw_page(seed, A4_300DPI) for seed in range(distinct)]
    repeated = [drawn[index % distinct] for index in range(pages)]
    ways: list[tuple[str, Callable[[Pixels], Any]]] = [
        (f"ours, {interpolation}", functools.partial(_ours, interpolation=interpolation))
        for interpolation in Interpolation
    ]
    if stock:
        ways.append(("the published processor", functools.partial(_published, processor=_published_processor())))
    rows = [Row(f"resize: {name}", _once(resize, repeated), pages) for name, resize in ways]
    for kind in ("JPEG", "PNG"):
        encoded = encode_pages(drawn, kind)
        data = [encoded[index % distinct] for index in range(pages)]
        for name, resize in ways:
            decode = _pillow if name == "the published processor" else _decode

            def whole(page: bytes, decode: Any = decode, resize: Any = resize) -> Any:
                return resize(decode(page))

            rows.append(Row(f"{kind} to input: {name}", _once(whole, data), pages))
    return rows


def _ours(page: Pixels, interpolation: Interpolation) -> Any:
    """Resized, channels first, over 255; the last two happen on the device in a run."""
    batch = resize_pages([page], interpolation)
    return np.ascontiguousarray(batch.transpose(0, 3, 1, 2)).astype(np.float32) / np.float32(255)


def _published(page: Any, processor: Any) -> Any:
    return processor(images=[page], return_tensors="pt")


def _published_processor() -> Any:
    import transformers

    return transformers.PPDocLayoutV3ImageProcessor()


def _decode(page: bytes) -> Pixels:
    return decode_image(page).pixels


def _pillow(page: bytes) -> Any:
    from PIL import Image

    with Image.open(io.BytesIO(page)) as image:
        return image.convert("RGB")


def _once(call: Callable[[Any], Any], items: Sequence[Any]) -> float:
    """Milliseconds for all items, after a warm-up."""
    call(items[0])
    start = time.perf_counter()
    for item in items:
        call(item)
    return (time.perf_counter() - start) * 1000
