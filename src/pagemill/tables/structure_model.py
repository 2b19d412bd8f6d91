"""SLANet-plus, the model for rows, columns and spans of a table image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.checkpoints.onnx_session import cpu_session
from pagemill.document.geometry import Box
from pagemill.errors import EngineError, MissingDependencyError
from pagemill.imaging.types import Pixels
from pagemill.installation import reinstall
from pagemill.late import cv2
from pagemill.model_cache import cached
from pagemill.tables.html import parse_table

PACKAGED_MODEL = Path(__file__).parent / "models" / "slanet-plus.onnx"
_SIDE = 488
"""Side of the square that the model was trained on."""
# Mean and standard deviation of ImageNet, in RGB: TEDS-S .999 on PubTabNet's examples, against .990 in BGR.
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32) * 255
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32) * 255
_CELLS = frozenset({"<td", "<td></td>"})


class PredictedCell(msgspec.Struct, frozen=True):
    """A cell as the model sees it."""

    row: int
    column: int
    row_span: int
    column_span: int
    box: Box | None
    """Around its text, in pixels of the image that was shown; None where the model gives none that is one."""


class Structure(msgspec.Struct, frozen=True):
    """Cells that tile a grid, each slot once."""

    cells: Sequence[PredictedCell]
    rows: int
    columns: int
    header_rows: int


class StructureModel(Protocol):
    """A model for the structure of tables. Thread-safe."""

    @property
    def name(self) -> str:
        """Name in records."""

    def predict(self, pixels: Pixels) -> Structure | None:
        """The structure of the table that fills an image, shape (height, width, 3), uint8; None if it sees none."""


@runtime_checkable
class TableFinder(Protocol):
    """What finds tables on a page, beside the layout engine: a table engine may do it. Called from several threads."""

    def find(self, page: Pixels) -> list[Box]:
        """Boxes of tables on a page, shape (height, width, 3), uint8; in its pixels."""


class CheckedModel(msgspec.Struct, frozen=True):
    """A model of a table engine whose cells are made sure to tile their grid."""

    model: StructureModel

    @property
    def name(self) -> str:
        """Name in records."""
        return self.model.name

    def predict(self, pixels: Pixels) -> Structure | None:
        """See :class:`StructureModel`.

        Raises:
            EngineError: The cells do not tile a grid.
        """
        structure = self.model.predict(pixels)
        if structure is None:
            return None
        slots = [
            (row, column)
            for cell in structure.cells
            for row in range(cell.row, cell.row + cell.row_span)
            for column in range(cell.column, cell.column + cell.column_span)
        ]
        if sorted(slots) != [(row, column) for row in range(structure.rows) for column in range(structure.columns)]:
            raise EngineError(f"the table engine {self.name!r} predicted cells that do not tile a grid")
        return structure


class SlanetPlus:
    """The embedded model.

    Args:
        path: Its file.

    Raises:
        MissingDependencyError: There is no such file, or it is not this model.
    """

    name = "slanet-plus"

    def __init__(self, path: Path = PACKAGED_MODEL) -> None:
        try:
            self._session = cpu_session(path, fixed_shape=True)
            self._tokens = _tokens(self._session.get_modelmeta().custom_metadata_map["character"])
        except Exception as error:  # ONNX Runtime raises several private types
            raise MissingDependencyError(
                f"the table model {path.name} cannot be loaded: {error}", remedy=f"Reinstall: {reinstall()}"
            ) from error

    def predict(self, pixels: Pixels) -> Structure | None:
        """See :class:`StructureModel`."""
        height, width = pixels.shape[:2]
        # As in training: the longer side fills the square, the rest is padded with zeros.
        scale = _SIDE / max(height, width)
        size = max(1, int(width * scale)), max(1, int(height * scale))
        canvas = np.zeros((_SIDE, _SIDE, 3), dtype=np.float32)
        canvas[: size[1], : size[0]] = (cv2.resize(pixels, size).astype(np.float32) - _MEAN) / _STD
        boxes, scores = self._session.run(None, {"x": np.ascontiguousarray(canvas.transpose(2, 0, 1)[None])})
        return decode(boxes[0], scores[0], self._tokens, (width, height))


def _tokens(metadata: str) -> list[str]:
    """What the indices of the model's output stand for."""
    tokens = [token for token in metadata.splitlines() if token != "<td>"]
    return ["sos", *tokens, *(() if "<td></td>" in tokens else ("<td></td>",)), "eos"]


def decode(
    boxes: NDArray[np.float32], scores: NDArray[np.float32], tokens: Sequence[str], size: tuple[int, int]
) -> Structure | None:
    """Make a structure of the model's output, whatever it holds.

    Args:
        boxes: Corners of each step's cell as shares of the longer side, shape (steps, 8).
        scores: Scores of each step's tokens, shape (steps, tokens).
        tokens: Tokens of the model.
        size: Width and height of the image.
    """
    markup: list[str] = []
    found: list[Box | None] = []
    for step, index in enumerate(scores.argmax(axis=1).tolist()):
        token = tokens[index] if index < len(tokens) else "eos"
        # An end at the first step is ignored, as in the decoder of PaddleOCR, which the model was trained with.
        if token == "eos" and step:
            break
        if token in ("sos", "eos"):
            continue
        if token in _CELLS:
            found.append(_box(boxes[step], size))
        # Each cell carries its number through the parser, which puts cells on the grid and repairs what is malformed.
        number = str(len(found) - 1)
        markup.append(f"<td>{number}</td>" if token == "<td></td>" else f">{number}" if token == ">" else token)
    table = parse_table(f"<table>{''.join(markup)}</table>")
    if table is None:
        return None
    cells = [
        PredictedCell(
            cell.row,
            cell.column,
            cell.row_span,
            cell.column_span,
            found[int(cell.text)] if cell.text.isdigit() and int(cell.text) < len(found) else None,
        )
        for cell in table.cells
    ]
    return Structure(cells, table.rows, table.columns, table.header_rows)


def _box(corners: NDArray[np.float32], size: tuple[int, int]) -> Box | None:
    if not np.isfinite(corners).all():
        return None
    # The model predicts four corners, of slanted cells too; words are compared with upright boxes.
    xs, ys = (np.clip(corners[start::2].astype(np.float64) * max(size), 0.0, size[start]) for start in (0, 1))
    x1, y1, x2, y2 = float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())
    return (x1, y1, x2, y2) if x2 > x1 and y2 > y1 else None


def packaged_model() -> SlanetPlus:
    """The embedded model, loaded once per process on first use; takes 0.2 s: call it on a thread.

    Raises:
        MissingDependencyError: See :class:`SlanetPlus`.
    """
    return cached(SlanetPlus, SlanetPlus)
