"""Reading PaddleDetection exports with their decoder inside (PP-DocLayout, PP-DocLayoutV2 and V3)."""

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

_IMAGENET_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_IMAGENET_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


class PaddleDetectorReader:
    """Inputs ``image``, ``scale_factor`` and maybe ``im_shape``; rows [class, score, x1, y1, x2, y2, order...].

    RT-DETR exports (three inputs) take pixels over 255; the PicoDet ones (two inputs) also take ImageNet's
    normalisation (``inference.yml`` of the published models). Seven columns carry one reading-order rank,
    eight the two keys of PP-DocLayoutV2.
    """

    kind = "paddle-detector"
    default_threshold = 0.3  # the value published for PP-DocLayoutV3 in GLM-OCR's pipeline

    def __init__(self, size: tuple[int, int], labels: Sequence[Label], *, with_shape: bool) -> None:
        """Prepare for an input of ``size`` = (height, width) pixels."""
        self.labels = labels
        self._height, self._width = size
        self._with_shape = with_shape

    def inputs(self, page: Pixels) -> dict[str, NDArray[np.float32]]:
        """Stretch to the input size; the model itself scales the boxes back by ``scale_factor`` (y, x)."""
        height, width = page.shape[:2]
        resized = cv2.resize(page, (self._width, self._height), interpolation=cv2.INTER_CUBIC)
        pixels = resized.astype(np.float32) / 255
        if not self._with_shape:
            pixels = (pixels - _IMAGENET_MEAN) / _IMAGENET_STD
        inputs: dict[str, NDArray[np.float32]] = {
            "image": np.ascontiguousarray(pixels.transpose(2, 0, 1)[None]),
            "scale_factor": np.array([[self._height / height, self._width / width]], dtype=np.float32),
        }
        if self._with_shape:
            inputs["im_shape"] = np.array([[self._height, self._width]], dtype=np.float32)
        return inputs

    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Rows of the first output; the second, where there is one, counts the valid rows."""
        rows = outputs[0].astype(np.float64)
        if len(outputs) > 1 and outputs[1].size == 1:
            rows = rows[: int(outputs[1].reshape(-1)[0])]
        classes = np.nan_to_num(rows[:, 0], nan=-1, posinf=-1, neginf=-1).astype(np.intp)
        keep = (rows[:, 1] >= threshold) & (classes >= 0) & (classes < len(self.labels))
        rows, classes = rows[keep], classes[keep]
        return Candidates(rows[:, 2:6], rows[:, 1], classes, _order_rank(rows[:, 6:]))


def _order_rank(keys: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Rank from the order columns: ascending by the first, then descending by the second (PP-DocLayoutV2)."""
    if not keys.shape[1]:
        return None
    columns = [keys[:, 0]] if keys.shape[1] == 1 else [-keys[:, 1], keys[:, 0]]
    rank = np.empty(len(keys), dtype=np.float64)
    rank[np.lexsort(columns)] = np.arange(len(keys))
    return rank
