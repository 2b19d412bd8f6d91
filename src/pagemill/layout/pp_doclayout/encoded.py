"""Encoded pages to the model's input, for callers that need no pixels but those that layout detection looks at.

JPEGs go to nvJPEG where the model runs on CUDA and torchvision is installed; all else is decoded in threads on the CPU,
JPEGs at a part of their size there.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pagemill.errors import PagemillError
from pagemill.imaging.decode import decode_reduced, plain_jpeg_size
from pagemill.imaging.types import Pixels
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE, resize_on_device, resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import torch


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A page, decoded and resized."""

    pixels: Pixels | torch.Tensor
    """Shape (side, side, 3), uint8; a tensor lies on the model's device."""
    size: tuple[int, int]
    """Width and height of the page that :func:`pagemill.imaging.decode.decode_image` gives."""


class JpegDecoder:
    """nvJPEG through torchvision. Thread-safe: one batch at a time, beside what other streams compute.

    What it refuses is left to the decoder of the CPU, which judges each page. It does not notice all damage inside of
    a JPEG that the CPU's decoder notices.
    """

    def __init__(self, device: torch.device) -> None:
        """Find the decoder.

        Raises:
            ImportError: torchvision is not installed, or without its image operations.
        """
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg

        self._decode: Any = functools.partial(decode_jpeg, mode=ImageReadMode.RGB, device=device)
        self._stream = torch.cuda.Stream(device)
        self._lock = threading.Lock()

    def inputs(self, pages: Sequence[bytes], interpolation: Interpolation) -> list[torch.Tensor] | None:
        """Pages, decoded and resized: tensors of shape (side, side, 3), complete; None when a page cannot be decoded.

        Args:
            pages: JPEGs for which ``plain_jpeg_size`` gives a size.
            interpolation: How they are resized.
        """
        return self._each(pages, lambda page: resize_on_device(page, interpolation))

    def pages(self, pages: Sequence[bytes], interpolation: Interpolation) -> list[tuple[torch.Tensor, Pixels]] | None:
        """Inputs as of :meth:`inputs`, each with the pixels of the whole page in host memory."""

        def both(page: torch.Tensor) -> tuple[torch.Tensor, Pixels]:
            return resize_on_device(page, interpolation), page.permute(1, 2, 0).contiguous().cpu().numpy()

        return self._each(pages, both)

    def _each(self, pages: Sequence[bytes], use: Callable[[torch.Tensor], T]) -> list[T] | None:
        """Decode pages and do something with each on the device; None when one cannot be decoded."""
        import torch

        encoded = [torch.frombuffer(bytearray(page), dtype=torch.uint8) for page in pages]
        with self._lock, torch.inference_mode(), torch.cuda.stream(self._stream):
            try:
                return [use(page) for page in self._decode(encoded)]
            except RuntimeError:
                return None
            finally:
                # nvJPEG's hardware engine does not wait for its stream: it would write into memory that was freed
                # while a resize before it still reads it (pytorch/vision#9606).
                self._stream.synchronize()


def find_jpeg_decoder(device: torch.device) -> JpegDecoder | None:
    """The decoder of a device, where it has one and torchvision is installed."""
    if device.type != "cuda":
        return None
    try:
        return JpegDecoder(device)
    except (ImportError, RuntimeError):  # RuntimeError: a torchvision for another PyTorch
        return None


def load_inputs(
    pages: Sequence[bytes], interpolation: Interpolation, decoders: Executor, jpeg_decoder: JpegDecoder | None
) -> list[ModelInput | PagemillError]:
    """Decode and resize pages; in place of a page that cannot be decoded, its error.

    Args:
        pages: Encoded images.
        interpolation: How they are resized.
        decoders: Threads for what the CPU decodes.
        jpeg_decoder: Takes the plain JPEGs; None where there is none.
    """
    loaded: dict[int, ModelInput | PagemillError] = {}
    if jpeg_decoder:
        plain = {i: size for i, page in enumerate(pages) if (size := plain_jpeg_size(page))}
        tensors = jpeg_decoder.inputs([pages[i] for i in plain], interpolation) if plain else None
        loaded |= {i: ModelInput(tensor, plain[i]) for i, tensor in zip(plain, tensors or (), strict=False)}
    on_cpu = {i: decoders.submit(_load, page, interpolation) for i, page in enumerate(pages) if i not in loaded}
    loaded |= {i: future.result() for i, future in on_cpu.items()}
    return [loaded[i] for i in range(len(pages))]


def _load(page: bytes, interpolation: Interpolation) -> ModelInput | PagemillError:
    try:
        pixels, size = decode_reduced(page, INPUT_SIDE, name="page")
    except PagemillError as error:
        return error
    return ModelInput(resize_pages([pixels], interpolation)[0], size)
