"""Layout detection with ONNX Runtime: the model inside the package, or the user's own."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pagemill.checkpoints.onnx_session import cpu_session
from pagemill.document.geometry import as_boxes
from pagemill.document.labels import Label
from pagemill.errors import MissingDependencyError, MissingInputError, UnsupportedInputError
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.layout.filters import BoxFilter
from pagemill.layout.label_map import labels_of
from pagemill.layout.onnx_models import Candidates, LayoutModel, PaddleDetector, PicoDet, Yolo
from pagemill.layout.pp_doclayout.settings import FilterSettings
from pagemill.layout.settings import LayoutSettings
from pagemill.layout.thresholds import LAYOUT

if TYPE_CHECKING:
    import onnxruntime

PACKAGED_MODEL = Path(__file__).parent / "models" / "layout_cdla.onnx"
"""PicoDet trained on CDLA, of PaddleOCR's PP-Structure (Apache-2.0); put here by the build."""

_MAX_NAMES = 20_000  # characters of class-name metadata that are parsed
_SUPPORTED = "PP-DocLayout, PP-DocLayoutV2 or V3, PP-Structure PicoDet and DocLayout-YOLO ONNX exports are supported"

_RULES = FilterSettings(
    same_class_iou=0.5,
    other_class_iou=0.7,  # two classes seldom describe one region
    contained=0.85,
    merges={},
    never_contained=frozenset({Label.INLINE_FORMULA, Label.FORMULA_NUMBER, Label.SEAL}),
)


class OnnxLayoutEngine:
    """A layout model in ONNX Runtime on the CPU. Thread-safe: a session may run in several threads at once."""

    name = "onnx"
    max_batch = 1  # the published exports are traced for one page; pages run in parallel in threads instead

    def __init__(self, session: onnxruntime.InferenceSession, model: LayoutModel) -> None:
        """Wrap a loaded session; use ``create`` to make one."""
        self._session: Any = session
        self._model = model

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page, one list a page."""
        found = []
        for page in pages:
            height, width = page.shape[:2]
            outputs = self._session.run(None, self._model.inputs(page))
            candidates = self._model.decode(outputs, width, height, self._model.default_threshold)
            found.append(to_regions(candidates, self._model.labels, (width, height)))
        return found

    def close(self) -> None:
        """Let the session go; ONNX Runtime frees the model with its last reference."""
        self._session = None


def to_regions(found: Candidates, labels: Sequence[Label], page_size: tuple[int, int]) -> list[DetectedRegion]:
    """Turn candidates into regions that lie inside the page, have finite scores and do not repeat each other.

    Args:
        found: What the model proposes, scores already above its threshold.
        labels: Our label of every class index.
        page_size: Width and height in pixels.
    """
    strongest = np.argsort(-found.scores, kind="stable")[: LAYOUT.max_candidates]
    boxes, scores, classes = found.boxes[strongest], found.scores[strongest], found.classes[strongest]
    kept = BoxFilter(_RULES, labels, text_in_figures=True).keep(boxes, scores, classes, page_size)
    boxes = np.clip(boxes[kept], 0.0, np.array(page_size * 2, dtype=np.float64))
    visible = (boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf) >= LAYOUT.min_side
    return [
        DetectedRegion(
            box=box,
            label=labels[classes[i]],
            score=min(float(scores[i]), 1.0),
            source=OnnxLayoutEngine.name,
            order=None if found.order is None else int(found.order[strongest[i]]),
        )
        for i, box in zip(kept[visible], as_boxes(boxes[visible]), strict=True)
    ]


def create(settings: LayoutSettings | None = None) -> OnnxLayoutEngine:
    """Load the layout model.

    Raises:
        MissingInputError: The user's model file does not exist.
        MissingDependencyError: The package was built without its model.
        UnsupportedInputError: The file is no ONNX model, or of a kind that is not known.
    """
    settings = settings or LayoutSettings()
    path = settings.model_path or PACKAGED_MODEL
    session = _load(path, settings)
    return OnnxLayoutEngine(session, _recognise(session, path))


def _load(path: Path, settings: LayoutSettings) -> onnxruntime.InferenceSession:
    """Open the model file on the CPU."""
    if settings.model_path and not path.is_file():
        raise MissingInputError(f"there is no layout model at {path}", remedy="Check the path of the ONNX file.")
    try:
        return cpu_session(path, fixed_shape=True)
    except MissingDependencyError:
        raise
    except Exception as error:  # ONNX Runtime raises several private types
        raise UnsupportedInputError(f"cannot load the layout model {path.name}: {error}", remedy=_SUPPORTED) from error


def _recognise(session: onnxruntime.InferenceSession, path: Path) -> LayoutModel:
    """Determine the kind of model from its inputs, outputs and metadata."""
    inputs = {item.name: item.shape for item in session.get_inputs()}
    outputs = [item.shape for item in session.get_outputs()]
    names = _class_names(session.get_modelmeta().custom_metadata_map)
    kind = _kind(inputs, outputs, len(names))
    if kind is None:
        raise _unrecognised(path, f"inputs {inputs}, output shapes {outputs}")
    # Ordered exports (7 or 8 columns) exist of the 25-class models only.
    if not names and not (kind is PaddleDetector and outputs and outputs[0] and outputs[0][-1] in (7, 8)):
        raise _unrecognised(path, "it does not name its classes in the metadata entry 'character' or 'names'")
    image = "image" if kind is PaddleDetector else next(iter(inputs))
    usual = 1024 if kind is Yolo else 800  # where the export leaves the size open
    height, width = (side if isinstance(side, int) and side > 0 else usual for side in inputs[image][2:4])
    model = kind(image, (height, width), labels_of(names) if names else tuple(Label))
    if isinstance(model, PaddleDetector):
        model.with_shape = "im_shape" in inputs
    return model


def _kind(
    inputs: Mapping[str, Sequence[Any]], outputs: Sequence[Sequence[Any]], classes: int
) -> type[LayoutModel] | None:
    """The kind with these shapes of inputs and outputs, for a model with so many named classes."""
    if {"image", "scale_factor"} <= inputs.keys() <= {"image", "scale_factor", "im_shape"}:
        return PaddleDetector
    if len(inputs) != 1:
        return None
    (shape,) = inputs.values()
    columns = [output[-1] if output else None for output in outputs]
    # Four score outputs with a column a class, four distributions with 4 x 8 bins.
    if len(shape) == 4 and classes and columns == [classes] * 4 + [32] * 4:
        return PicoDet
    return Yolo if len(outputs) == 1 and len(outputs[0]) == 3 and outputs[0][2] == 6 else None


def _class_names(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Class names by index: lines in ``character`` (RapidAI's exports) or a dictionary in ``names`` (YOLO)."""
    if metadata.get("character"):
        return tuple(metadata["character"].splitlines())
    text = metadata.get("names", "")
    if len(text) > _MAX_NAMES:
        return ()
    try:
        names = ast.literal_eval(text)  # a literal only: nothing is evaluated
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        return tuple(str(names[index]) for index in range(len(names)))
    return ()


def _unrecognised(path: Path, why: str) -> UnsupportedInputError:
    return UnsupportedInputError(f"the layout model {path.name} is of an unknown kind: {why}", remedy=_SUPPORTED)
