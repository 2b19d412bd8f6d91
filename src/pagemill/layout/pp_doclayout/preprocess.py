"""Pages to the model's input: one resize, where the page lies; the division by 255 happens on the model's device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.layout.pp_doclayout.settings import Interpolation

if TYPE_CHECKING:
    import torch

INPUT_SIDE = 800
"""Side of the model's square input in pixels (``preprocessor_config.json`` of the published weights)."""

_FLAGS = {Interpolation.BILINEAR: cv2.INTER_LINEAR, Interpolation.BICUBIC: cv2.INTER_CUBIC}


def resize_pages(
    pages: Sequence[Pixels], interpolation: Interpolation, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Stretch pages to the model's input, shape (n, side, side, 3).

    Args:
        pages: Pages of any size.
        interpolation: Neither kind smooths what it shrinks, as the model was trained.
        out: Where to write; at least n long. Returned up to n.
    """
    if out is None:
        out = np.empty((len(pages), INPUT_SIDE, INPUT_SIDE, 3), dtype=np.uint8)
    for page, target in zip(pages, out, strict=False):
        cv2.resize(page, (INPUT_SIDE, INPUT_SIDE), dst=target, interpolation=_FLAGS[interpolation])
    return out[: len(pages)]


def resize_on_device(page: torch.Tensor, interpolation: Interpolation) -> torch.Tensor:
    """The same for a page that lies on the device, shape (3, height, width) uint8; shape (side, side, 3).

    PyTorch and OpenCV take the same samples and cubic (A = -0.75); results differ by one of 255 where they round.
    """
    import torch

    resized = torch.nn.functional.interpolate(
        page[None].float(), size=(INPUT_SIDE, INPUT_SIDE), mode=interpolation.value, align_corners=False
    )
    return resized[0].round_().clamp_(0, 255).to(torch.uint8).permute(1, 2, 0).contiguous()
