"""Reading end-to-end YOLO models (DocLayout-YOLO): rows of x1, y1, x2, y2, score, class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from pagemill.layout.candidates import Candidates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.document.labels import Label
    from pagemill.imaging.types import Pixels

_GREY = 114  # the padding value YOLO models are trained with


class YoloReader:
    """One image input, one output of shape (1, n, 6), non-maximum suppression already inside the model."""

    kind = "yolo"
    default_threshold = 0.2  # as published for DocLayout-YOLO

    def __init__(self, input_name: str, size: tuple[int, int], labels: Sequence[Label]) -> None:
        """Prepare for an input of ``size`` = (height, width) pixels."""
        self.labels = labels
        self._input_name = input_name
        self._height, self._width = size

    def inputs(self, page: Pixels) -> dict[str, NDArray[np.float32]]:
        """Scale with the aspect ratio kept, centred on grey; pixels over 255, channels first."""
        height, width = page.shape[:2]
        scale, left, top = self._placement(width, height)
        inner = (max(1, round(width * scale)), max(1, round(height * scale)))
        canvas = np.full((self._height, self._width, 3), _GREY, dtype=np.uint8)
        resized = cv2.resize(page, inner, interpolation=cv2.INTER_LINEAR)
        canvas[top : top + inner[1], left : left + inner[0]] = resized
        pixels = canvas.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(255)
        return {self._input_name: np.ascontiguousarray(pixels)}

    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Rows above the threshold, moved from the padded input back to the page."""
        rows = outputs[0][0].astype(np.float64)
        classes = np.nan_to_num(rows[:, 5], nan=-1, posinf=-1, neginf=-1).astype(np.intp)
        keep = (rows[:, 4] >= threshold) & (classes >= 0) & (classes < len(self.labels))
        rows, classes = rows[keep], classes[keep]
        scale, left, top = self._placement(width, height)
        boxes = (rows[:, :4] - np.array([left, top, left, top])) / scale
        return Candidates(boxes, rows[:, 4], classes)

    def _placement(self, width: int, height: int) -> tuple[float, int, int]:
        """Scale and left, top offset of a page inside the input."""
        scale = min(self._width / width, self._height / height)
        inner_width, inner_height = max(1, round(width * scale)), max(1, round(height * scale))
        return scale, (self._width - inner_width) // 2, (self._height - inner_height) // 2
