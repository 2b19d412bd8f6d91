"""The model's raw outputs on their way to the host: what post-processing needs, float32, one transfer a microbatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class RawPage:
    """Outputs of the model for one page, on the host; q queries, c classes."""

    scores: NDArray[np.float32]
    """Shape (q, c), 0-1; NaN where the model broke."""
    boxes: NDArray[np.float32]
    """Shape (q, 4): x1, y1, x2, y2 in shares of the page."""
    order: NDArray[np.float32]
    """V3: shape (q,), votes; more are read later. V4: shape (2, q, q), logits of "before" and of "directly follows"."""
    masks: NDArray[np.uint8] | None = None
    """V3: shape (q, h, w / 8), eight mask pixels a byte, the leftmost in the highest bit."""
    corners: NDArray[np.float32] | None = None
    """V4: shape (q, 4, 2), corners in shares of the page."""


class Reduced:
    """What post-processing needs of a microbatch, on its way to the host.

    Everything is computed and packed on the device into one tensor of bytes; its copy starts at once and is waited for
    in :meth:`pages`, so that the device meanwhile takes the next microbatch.
    """

    def __init__(self, outputs: Any, pages: int, mask_threshold: float) -> None:
        """Reduce the outputs of the model on its device and start the copy.

        Args:
            outputs: What PP-DocLayoutV3 or V4 of ``transformers`` returned, in any precision.
            pages: Pages of the batch that are real; the rest is padding.
            mask_threshold: Probability above which a mask pixel is set.
        """
        import torch

        scores = outputs.logits[:pages].float().sigmoid()
        boxes = outputs.pred_boxes[:pages].float()
        self._quads = boxes.shape[-1] == 10
        if self._quads:
            corners = boxes[..., None, :2] + (boxes[..., 2:].unflatten(-1, (4, 2)) - 0.5)
            orders = outputs.relative_order_logits[:pages], outputs.successor_order_logits[:pages]
            self._parts = [scores, corners, *(order.float() for order in orders)]
        else:
            centre, half = boxes[..., :2], 0.5 * boxes[..., 2:]
            votes = order_votes(outputs.order_logits[:pages].float())
            masks = _packed(outputs.out_masks[:pages], mask_threshold)
            self._parts = [scores, torch.cat([centre - half, centre + half], dim=-1), votes, masks]
        self._bytes = self._copied = None
        if scores.device.type != "cpu":
            self._bytes = torch.cat([_as_bytes(part) for part in self._parts], dim=1)
            pinned = scores.device.type == "cuda"
            host = torch.empty(self._bytes.shape, dtype=torch.uint8, pin_memory=pinned)
            self._host = host.copy_(self._bytes, non_blocking=pinned)
            if pinned:
                self._copied = torch.cuda.Event()
                self._copied.record()

    def pages(self) -> list[RawPage]:
        """Wait for the copy; one entry a page."""
        arrays = self._arrays()
        if not self._quads:
            return [RawPage(*page) for page in zip(*arrays, strict=True)]
        return [
            RawPage(
                scores=scores,
                boxes=np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1),
                order=np.stack(orders),
                corners=corners,
            )
            for scores, corners, *orders in zip(*arrays, strict=True)
        ]

    def _arrays(self) -> list[NDArray[Any]]:
        import torch

        if self._bytes is None:
            return [part.numpy() for part in self._parts]
        if self._copied is not None:
            self._copied.synchronize()
        together = self._host.numpy()
        arrays = []
        start = 0
        for part in self._parts:
            stop = start + part[0].numel() * part.element_size()
            numbers = np.float32 if part.dtype == torch.float32 else np.uint8
            arrays.append(np.ascontiguousarray(together[:, start:stop]).view(numbers).reshape(part.shape))
            start = stop
        return arrays


def order_votes(logits: torch.Tensor) -> torch.Tensor:
    """Votes (pages, q) of all others that a query comes after them, from logits (pages, q, q) of "i before j", i < j.

    Only the upper triangle is a prediction; below it holds the converse.
    """
    before = logits.sigmoid()
    return before.triu(diagonal=1).sum(dim=1) + (1.0 - before.transpose(1, 2)).tril(diagonal=-1).sum(dim=1)


def _packed(masks: torch.Tensor, threshold: float) -> torch.Tensor:
    """Masks (pages, q, h, w) as bits, shape (pages, q, h, w / 8); page by page, which bounds the memory it takes."""
    import torch

    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=masks.device)
    return torch.stack(
        [
            ((page.float().sigmoid() > threshold).unflatten(-1, (-1, 8)) * weights).sum(-1, dtype=torch.uint8)
            for page in masks
        ]
    )


def _as_bytes(part: torch.Tensor) -> torch.Tensor:
    """A tensor as (pages, bytes)."""
    import torch

    return part.contiguous().flatten(1).view(torch.uint8)
