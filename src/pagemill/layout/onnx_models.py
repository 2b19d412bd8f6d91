"""The kinds of ONNX layout models: a page to the model's inputs, its outputs to candidates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.document.labels import Label
from pagemill.imaging.types import Floats, Indices, Pixels
from pagemill.late import cv2

# Mean and standard deviation of ImageNet, which PaddleDetection's configurations name.
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255
_STRIDES = (8, 16, 32, 64)
_BINS = 8  # reg_max + 1 of the generalised focal loss
_GREY = 114  # the padding value YOLO models are trained with


class Candidates(NamedTuple):
    """What a model proposes for one page."""

    boxes: Floats
    """Shape (n, 4), page pixels; may stick out of the page or be invalid."""
    scores: Floats
    """Shape (n,), 0-1; may hold NaN."""
    classes: Indices
    """Shape (n,), indices into the model's labels."""
    order: Indices | None = None
    """Shape (n,), smaller is read earlier; None when the model does not predict it."""


class LayoutModel(ABC):
    """One kind of model.

    Args:
        input_name: The input that takes the image.
        size: Its height and width in pixels.
        labels: Our label of every class index of the model.
    """

    default_threshold: ClassVar[float]

    def __init__(self, input_name: str, size: tuple[int, int], labels: Sequence[Label]) -> None:
        self.labels = labels
        self._input_name = input_name
        self._height, self._width = size

    @abstractmethod
    def inputs(self, page: Pixels) -> dict[str, NDArray[np.float32]]:
        """Preprocess one page to the model's named inputs."""

    @abstractmethod
    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Read the outputs for a page of ``width`` x ``height`` pixels; scores under ``threshold`` are dropped."""

    def _stretched(self, page: Pixels) -> NDArray[np.float32]:
        """The page at the input's size."""
        # RGB and cubic cover most text lines: 71 % on 45 real pages, against 68 % linear, 62 % area, 70 % BGR.
        return cv2.resize(page, (self._width, self._height), interpolation=cv2.INTER_CUBIC).astype(np.float32)

    def _known(self, rows: Floats, score: int, label: int, threshold: float) -> Floats:
        """Rows, with these columns for score and class, whose score reaches the threshold and whose class exists."""
        classes = rows[:, label]
        return rows[(rows[:, score] >= threshold) & (classes >= 0) & (classes < len(self.labels))]


class PicoDet(LayoutModel):
    """PicoDet without its decoder (PP-Structure): class scores of four strides, then box distributions of the same."""

    default_threshold = 0.4

    def __init__(self, input_name: str, size: tuple[int, int], labels: Sequence[Label]) -> None:
        super().__init__(input_name, size, labels)
        grids = [np.mgrid[: -(-size[0] // stride), : -(-size[1] // stride)].reshape(2, -1) for stride in _STRIDES]
        self._strides = np.repeat(np.array(_STRIDES, dtype=np.float64), [grid.shape[1] for grid in grids])[:, None]
        self._centres = (np.concatenate(grids, axis=1)[::-1].T + 0.5) * self._strides

    def inputs(self, page: Pixels) -> dict[str, NDArray[np.float32]]:
        """Stretched, normalised, channels first: float32 (1, 3, height, width)."""
        return {self._input_name: _channels_first((self._stretched(page) - _MEAN) / _STD)}

    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Expected distances of the box sides (generalised focal loss, arXiv:2006.04388) to boxes in page pixels."""
        levels = len(_STRIDES)
        scores = np.concatenate([output[0] for output in outputs[:levels]]).astype(np.float64)
        bins = np.concatenate([output[0] for output in outputs[levels:]])
        points, classes = np.nonzero(scores > threshold)  # NaN compares false and drops out
        logits = bins[points].reshape(-1, 4, _BINS).astype(np.float64)
        weights = np.exp(logits - logits.max(axis=2, keepdims=True, initial=-np.inf))
        weights /= weights.sum(axis=2, keepdims=True)
        distances = weights @ np.arange(_BINS, dtype=np.float64) * self._strides[points]
        centres = self._centres[points]
        boxes = np.concatenate([centres - distances[:, :2], centres + distances[:, 2:]], axis=1)
        boxes *= np.array([width / self._width, height / self._height] * 2)
        return Candidates(boxes, scores[points, classes], classes)


class PaddleDetector(LayoutModel):
    """PaddleDetection exports with their decoder inside: PP-DocLayout, PP-DocLayoutV2 and V3.

    Inputs ``image``, ``scale_factor`` and maybe ``im_shape``; rows [class, score, x1, y1, x2, y2, order...]. RT-DETR
    exports (three inputs) take pixels over 255; the PicoDet ones (two inputs) also take ImageNet's normalisation
    (``inference.yml`` of the published models). Seven columns carry one reading-order rank, eight the two keys of
    PP-DocLayoutV2.
    """

    default_threshold = 0.3  # the value published for PP-DocLayoutV3 in GLM-OCR's pipeline
    with_shape = False

    def inputs(self, page: Pixels) -> dict[str, NDArray[np.float32]]:
        """Stretched to the input size; the model itself scales the boxes back by ``scale_factor`` (y, x)."""
        height, width = page.shape[:2]
        pixels = self._stretched(page)
        inputs = {"scale_factor": np.array([[self._height / height, self._width / width]], dtype=np.float32)}
        if self.with_shape:
            inputs["im_shape"] = np.array([[self._height, self._width]], dtype=np.float32)
        inputs[self._input_name] = _channels_first(
            pixels / np.float32(255) if self.with_shape else (pixels - _MEAN) / _STD
        )
        return inputs

    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Rows of the first output; the second, where there is one, counts the valid rows."""
        rows = outputs[0].astype(np.float64)
        if len(outputs) > 1 and outputs[1].size == 1:
            rows = rows[: int(outputs[1].reshape(-1)[0])]
        rows = self._known(rows, 1, 0, threshold)
        rank = None
        if (columns := rows.shape[1]) > 6:  # ascending by the first, then descending by the second
            rank = np.argsort(np.lexsort([rows[:, 6]] if columns == 7 else [-rows[:, 7], rows[:, 6]]))
        return Candidates(rows[:, 2:6], rows[:, 1], rows[:, 0].astype(np.intp), rank)


class Yolo(LayoutModel):
    """End-to-end YOLO (DocLayout-YOLO): one output of shape (1, n, 6), suppression already inside the model."""

    default_threshold = 0.2  # as published for DocLayout-YOLO

    def inputs(self, page: Pixels) -> dict[str, NDArray[np.float32]]:
        """Scale with the aspect ratio kept, centred on grey; pixels over 255, channels first."""
        _, (width, height), (left, top) = self._placement(page.shape[1], page.shape[0])
        canvas = np.full((self._height, self._width, 3), _GREY, dtype=np.uint8)
        resized = cv2.resize(page, (width, height), interpolation=cv2.INTER_LINEAR)
        canvas[top : top + height, left : left + width] = resized
        return {self._input_name: _channels_first(canvas.astype(np.float32) / np.float32(255))}

    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Rows x1, y1, x2, y2, score, class, moved from the padded input back to the page."""
        rows = self._known(outputs[0][0].astype(np.float64), 4, 5, threshold)
        scale, _, offset = self._placement(width, height)
        boxes = (rows[:, :4] - np.array(offset * 2)) / scale
        return Candidates(boxes, rows[:, 4], rows[:, 5].astype(np.intp))

    def _placement(self, width: int, height: int) -> tuple[float, tuple[int, int], tuple[int, int]]:
        """Scale, width and height, and left and top offset of a page inside the input."""
        scale = min(self._width / width, self._height / height)
        inner = max(1, round(width * scale)), max(1, round(height * scale))
        return scale, inner, ((self._width - inner[0]) // 2, (self._height - inner[1]) // 2)


def _channels_first(pixels: NDArray[np.float32]) -> NDArray[np.float32]:
    """Pixels (height, width, 3) as a batch (1, 3, height, width)."""
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])
