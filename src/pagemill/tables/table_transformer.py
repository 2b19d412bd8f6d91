"""Table Transformer: finds the tables of a page, and the rows, columns and spans of a table, in PyTorch.

Two checkpoints of one architecture (Smock et al., https://arxiv.org/abs/2110.00061): one for structures, and one for
tables on pages, which is used where it is there.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from pagemill.checkpoints.devices import choose_device, compute_with
from pagemill.checkpoints.loading import load_pretrained, quietly, read_config, require_packages, to_device
from pagemill.config.model_cards import load_card
from pagemill.config.model_files import find_model, is_complete
from pagemill.config.modes import TorchDevice
from pagemill.config.settings import TableEngineSettings
from pagemill.document.geometry import Box
from pagemill.errors import MissingDependencyError, MissingInputError, UnsupportedInputError
from pagemill.imaging.types import Pixels
from pagemill.installation import pip_install
from pagemill.model_cache import cached
from pagemill.tables.structure_model import PredictedCell, Structure

STRUCTURE, DETECTION = "table-transformer-structure", "table-transformer-detection"
"""Model cards, and folders below the one that the user names."""
_KIND = "table-transformer"
_WHAT = "the table engine table-transformer"
_DETECTED = frozenset({"table"})
"""Class of the detection model that is used. The other, rotated tables, comes upright in pages of ours."""


@dataclass(frozen=True, slots=True)
class TransformerThresholds:
    """Numbers of this engine. None is measured here."""

    score: float = 0.5
    """Least score of a row, column or span, as used by its authors."""
    table_score: float = 0.9
    """Least score of a table on a page, as used by its authors."""
    same: float = 0.5
    """Share of the shorter of two rows or columns from which an overlap along their axis makes them one."""
    spanned: float = 0.5
    """Share of a row or column from which it is covered by a span."""


THRESHOLDS = TransformerThresholds()


class Detected(NamedTuple):
    """What a model sees in an image."""

    label: str
    score: float
    box: Box
    """In pixels of the image."""


class TableDetector:
    """One loaded checkpoint. Thread-safe.

    Args:
        folder: Folder of the checkpoint.

    Raises:
        PagemillError: It cannot be loaded.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        import transformers

        config = read_config(folder)
        if config.model_type != _KIND:
            raise UnsupportedInputError(
                f"{folder} contains a model of the kind {config.model_type!r}", remedy="Table Transformer is supported."
            )
        _require_timm(folder)
        self.labels = config.id2label
        self.device = choose_device(TorchDevice.AUTO, "the device")
        remedy = "Download it again: pagemill models download " + STRUCTURE
        model = load_pretrained(
            transformers.TableTransformerForObjectDetection,
            folder,
            torch.float32,  # boxes of a page in 8 bits of a number would be off by pixels
            what="the table model",
            remedy=remedy,
        )
        self._model = to_device(model, self.device, "the table model")
        try:
            with quietly():
                self._processor = transformers.AutoImageProcessor.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # without a common base
            raise UnsupportedInputError(
                f"cannot load the image processor of the table model in {folder}: {error}", remedy=remedy
            ) from error
        self._computing: Any = contextlib.nullcontext() if self.device.type == "cpu" else threading.Lock()
        compute_with(1, self.device)

    def detect(self, images: Sequence[Pixels], least: float) -> list[list[Detected]]:
        """What the model sees in images with a score of at least ``least``, best first, one list an image.

        Images that have one size once they are resized share a call; none is padded, as padding changes what is seen.
        """
        import torch

        found: dict[int, list[Detected]] = {}
        with self._computing, torch.inference_mode(), quietly():
            pixels = [self._resized(image) for image in images]
            for shape in dict.fromkeys(each.shape for each in pixels):
                places = [place for place, each in enumerate(pixels) if each.shape == shape]
                outputs = self._model(pixel_values=torch.cat([pixels[place] for place in places]).to(self.device))
                sizes = [images[place].shape[:2] for place in places]
                answers = self._processor.post_process_object_detection(outputs, threshold=least, target_sizes=sizes)
                found |= {place: self._read(*each) for place, *each in zip(places, answers, sizes, strict=True)}
        return [found[place] for place in range(len(images))]

    def _resized(self, image: Pixels) -> Any:
        return self._processor(images=image, return_tensors="pt", input_data_format="channels_last")["pixel_values"]

    def _read(self, found: dict[str, Any], size: tuple[int, ...]) -> list[Detected]:
        height, width = size
        boxes = found["boxes"].float().cpu().nan_to_num()
        boxes[:, 0::2] = boxes[:, 0::2].clamp(0, width)
        boxes[:, 1::2] = boxes[:, 1::2].clamp(0, height)
        seen = zip(found["labels"].tolist(), found["scores"].tolist(), boxes.tolist(), strict=True)
        detected = [Detected(self.labels[label], score, (box[0], box[1], box[2], box[3])) for label, score, box in seen]
        sound = [each for each in detected if each.box[2] > each.box[0] and each.box[3] > each.box[1]]
        return sorted(sound, key=lambda each: -each.score)


class TableTransformer:
    """The table engine: structures, and tables on pages where there is a model for them. Thread-safe.

    Args:
        structure: Loaded checkpoint for structures.
        detection: Loaded checkpoint for tables on pages.
    """

    name = "table-transformer"

    def __init__(self, structure: TableDetector, detection: TableDetector | None = None) -> None:
        self._structure = structure
        self._detection = detection

    def predict(self, pixels: Pixels) -> Structure | None:
        """See :class:`pagemill.tables.structure_model.StructureModel`."""
        return structure_of(self._structure.detect([pixels], THRESHOLDS.score)[0])

    def find(self, page: Pixels) -> list[Box]:
        """See :class:`pagemill.tables.structure_model.TableFinder`."""
        if self._detection is None:
            return []
        found = self._detection.detect([page], THRESHOLDS.table_score)[0]
        return [each.box for each in found if each.label in _DETECTED]


def create(settings: TableEngineSettings) -> TableTransformer:
    """Load the engine's models, or take those that this process has loaded already.

    Raises:
        MissingDependencyError: PyTorch, transformers or timm is not installed.
        MissingInputError: The weights for structures are not there.
        UnsupportedInputError: A folder holds another model, or a damaged one.
    """
    require_packages(_WHAT)
    return TableTransformer(*map(_load, find_weights(settings.model)))


def find_weights(model: str | None) -> list[Path]:
    """The folders of the checkpoints: for structures and, where it is there, for tables on pages.

    Raises:
        MissingInputError: The first is not there, or not whole.
    """
    structure, detection = find_structure_weights(model), _find_detection_weights(model)
    return [structure] if detection is None else [structure, detection]


def find_structure_weights(model: str | None) -> Path:
    """The folder of the checkpoint for structures.

    Raises:
        MissingInputError: It is not there, or not whole.
    """
    if model is None:
        found = find_model(load_card(STRUCTURE))
        if found is None:
            raise MissingInputError(
                f"the weights of {STRUCTURE} are not on this machine",
                remedy=f"Download them: pagemill models download {STRUCTURE} {DETECTION}. Or pass a folder with "
                "--table-model.",
            )
        return found
    folder = Path(model).expanduser()
    for candidate in (folder / STRUCTURE, folder):
        if is_complete(candidate):
            return candidate
    raise MissingInputError(
        f"there is no checkpoint in {folder}: config.json and *.safetensors",
        remedy=f"Check --table-model: a checkpoint, or a folder with {STRUCTURE} and, if wanted, {DETECTION}.",
    )


def _find_detection_weights(model: str | None) -> Path | None:
    if model is None:
        return find_model(load_card(DETECTION))
    folder = Path(model).expanduser() / DETECTION
    return folder if is_complete(folder) else None


def _load(folder: Path) -> TableDetector:
    return cached(("table", folder.resolve()), lambda: TableDetector(folder))


def _require_timm(folder: Path) -> None:
    """The published checkpoints have their ResNet from timm."""
    config = json.loads((folder / "config.json").read_bytes())
    backbone = config.get("backbone_config") or {}
    uses_timm = backbone.get("model_type") == "timm_backbone" or (
        not backbone and config.get("use_timm_backbone", True)
    )
    if uses_timm and not (find_spec("timm") and find_spec("torchvision")):
        raise MissingDependencyError(
            f"the table model in {folder} needs timm and torchvision", remedy=f"Install them: {pip_install('timm')}"
        )


def structure_of(found: Sequence[Detected]) -> Structure | None:
    """Cells that tile a grid, of what a model saw in a table; None where it saw no grid.

    Args:
        found: Best first.
    """
    rows, columns = _slots(found, "table row", 1), _slots(found, "table column", 0)
    if not rows or not columns:
        return None
    owners: dict[tuple[int, int], int] = {}
    cells: list[PredictedCell] = []

    def place(row: slice, column: slice) -> None:
        slots = [(i, j) for i in range(row.start, row.stop) for j in range(column.start, column.stop)]
        # Best first: of two cells that overlap the one with more score stays.
        if any(slot in owners for slot in slots):
            return
        owners.update(dict.fromkeys(slots, len(cells)))
        box = columns[column.start][0], rows[row.start][0], columns[column.stop - 1][1], rows[row.stop - 1][1]
        cells.append(
            PredictedCell(row.start, column.start, row.stop - row.start, column.stop - column.start, _sound(box))
        )

    for each in found:
        if each.label in ("table spanning cell", "table projected row header"):
            row, column = _covered(rows, each.box, 1), _covered(columns, each.box, 0)
            if each.label != "table spanning cell":
                column = slice(0, len(columns))
            if (row.stop - row.start) * (column.stop - column.start) > 1:
                place(row, column)
    for i in range(len(rows)):
        for j in range(len(columns)):
            place(slice(i, i + 1), slice(j, j + 1))
    header = next((_covered(rows, each.box, 1) for each in found if each.label == "table column header"), slice(0, 0))
    return Structure(cells, len(rows), len(columns), header.stop if header.start == 0 else 0)


def _slots(found: Sequence[Detected], label: str, axis: int) -> list[tuple[float, float]]:
    """Start and end of rows or columns along their axis, in order; of two that are one, the one with more score."""
    kept: list[tuple[float, float]] = []
    for each in found:
        if each.label == label:
            start, end = each.box[axis], each.box[axis + 2]
            if all(
                min(end, other[1]) - max(start, other[0]) < THRESHOLDS.same * min(end - start, other[1] - other[0])
                for other in kept
            ):
                kept.append((start, end))
    return sorted(kept, key=sum)


def _covered(slots: Sequence[tuple[float, float]], box: Box, axis: int) -> slice:
    """The slots that a box covers."""
    start, end = box[axis], box[axis + 2]
    inside = [
        index
        for index, slot in enumerate(slots)
        if min(end, slot[1]) - max(start, slot[0]) >= THRESHOLDS.spanned * (slot[1] - slot[0])
    ]
    return slice(inside[0], inside[-1] + 1) if inside else slice(0, 0)


def _sound(box: Box) -> Box | None:
    return box if box[2] > box[0] and box[3] > box[1] else None
