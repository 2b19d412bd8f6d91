"""Raw detections of a model, before post-processing, and the contract of the code that reads one kind of model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pagemill.document.labels import Label
    from pagemill.imaging.types import Pixels


@dataclass(frozen=True, slots=True)
class Candidates:
    """What a model proposes for one page."""

    boxes: NDArray[np.float64]
    """Shape (n, 4), page pixels; may stick out of the page or be invalid."""
    scores: NDArray[np.float64]
    """Shape (n,), 0-1; may hold NaN."""
    classes: NDArray[np.intp]
    """Shape (n,), indices into the model's labels."""
    order: NDArray[np.float64] | None = None
    """Shape (n,), smaller is read earlier; None when the model does not predict it."""

    def select(self, keep: NDArray[Any]) -> Candidates:
        """The candidates at the indices (or under the mask) ``keep``."""
        order = None if self.order is None else self.order[keep]
        return Candidates(self.boxes[keep], self.scores[keep], self.classes[keep], order)


class ModelReader(Protocol):
    """Turns a page into the inputs of one kind of model, and its outputs into candidates."""

    kind: str
    labels: Sequence[Label]
    """Our label of every class index of the model."""
    default_threshold: float

    def inputs(self, page: Pixels) -> Mapping[str, NDArray[np.float32]]:
        """Preprocess one page to the model's named inputs."""
        ...

    def decode(self, outputs: Sequence[NDArray[Any]], width: int, height: int, threshold: float) -> Candidates:
        """Read the outputs for a page of ``width`` x ``height`` pixels; scores under ``threshold`` may be dropped."""
        ...
