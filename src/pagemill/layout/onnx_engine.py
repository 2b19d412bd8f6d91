"""Layout detection with ONNX Runtime: the model inside the package, or the user's own."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxruntime

from pagemill.document.labels import Label
from pagemill.errors import InputError, MissingDependencyError, MissingInputError, UnsupportedInputError
from pagemill.layout.label_map import labels_of
from pagemill.layout.paddle_detector import PaddleDetectorReader
from pagemill.layout.picodet import PicoDetReader
from pagemill.layout.postprocess import postprocess
from pagemill.layout.settings import LayoutSettings
from pagemill.layout.yolo import YoloReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pagemill.imaging.types import Pixels
    from pagemill.layout.base import DetectedRegion
    from pagemill.layout.candidates import ModelReader

PACKAGED_MODEL = Path(__file__).parent / "models" / "layout_cdla.onnx"
"""PicoDet trained on CDLA, of PaddleOCR's PP-Structure (Apache-2.0); put here by the build."""

_DEFAULT_SIDE = {"paddle-detector": 800, "yolo": 1024}
_MAX_NAMES = 20_000  # characters of class-name metadata that are parsed
_SUPPORTED = "PP-DocLayout, PP-DocLayoutV2 or V3, PP-Structure PicoDet and DocLayout-YOLO ONNX exports are supported"


class OnnxLayoutEngine:
    """A layout model in ONNX Runtime on the CPU. Thread-safe: a session may run in several threads at once."""

    name = "onnx"
    max_batch = 1  # the published exports are traced for one page; pages run in parallel in threads instead

    def __init__(self, session: onnxruntime.InferenceSession, reader: ModelReader, threshold: float) -> None:
        """Wrap a loaded session; use ``create`` to make one."""
        self._session: onnxruntime.InferenceSession | None = session
        self._reader = reader
        self._threshold = threshold
        self._outputs = [output.name for output in session.get_outputs()]

    @property
    def kind(self) -> str:
        """What kind of model was recognised: ``picodet``, ``paddle-detector`` or ``yolo``."""
        return self._reader.kind

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page, one list a page."""
        return [self._detect_page(page) for page in pages]

    def close(self) -> None:
        """Let the session go; ONNX Runtime frees the model with its last reference."""
        self._session = None

    def _detect_page(self, page: Pixels) -> list[DetectedRegion]:
        session = self._session
        if session is None:
            raise RuntimeError("the layout engine is closed")
        height, width = page.shape[:2]
        outputs = session.run(self._outputs, dict(self._reader.inputs(page)))
        candidates = self._reader.decode(outputs, width, height, self._threshold)
        return postprocess(candidates, self._reader.labels, width, height, self.name)


def create(settings: LayoutSettings | None = None) -> OnnxLayoutEngine:
    """Load the layout model.

    Raises:
        MissingInputError: The user's model file does not exist.
        MissingDependencyError: The package was built without its model.
        UnsupportedInputError: The file is no ONNX model, or of a kind that is not known.
        InputError: The score threshold is not between 0 and 1.
    """
    settings = settings or LayoutSettings()
    if settings.score_threshold is not None and not 0 <= settings.score_threshold < 1:
        raise InputError(f"the layout score threshold must be in [0, 1), not {settings.score_threshold}")
    path = settings.model_path or PACKAGED_MODEL
    session = _load(path, settings)
    reader = _recognise(session, path)
    threshold = reader.default_threshold if settings.score_threshold is None else settings.score_threshold
    return OnnxLayoutEngine(session, reader, threshold)


def _load(path: Path, settings: LayoutSettings) -> onnxruntime.InferenceSession:
    """Open the model file on the CPU."""
    if not path.is_file():
        if settings.model_path is None:
            raise MissingDependencyError(
                "the layout model is missing from this installation",
                remedy="Reinstall: pip install --force-reinstall pagemill (from a checkout: pip install -e .)",
            )
        raise MissingInputError(f"there is no layout model at {path}", remedy="Check the path of the ONNX file.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only; exports warn about unused initialisers
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(str(path), sess_options=options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises several private types
        raise UnsupportedInputError(f"cannot load the layout model {path.name}: {error}", remedy=_SUPPORTED) from error


def _recognise(session: onnxruntime.InferenceSession, path: Path) -> ModelReader:
    """Tell the kind of model by its inputs, outputs and metadata."""
    inputs = {item.name: item.shape for item in session.get_inputs()}
    outputs = [item.shape for item in session.get_outputs()]
    names = _class_names(session.get_modelmeta().custom_metadata_map)
    if {"image", "scale_factor"} <= inputs.keys() <= {"image", "scale_factor", "im_shape"}:
        # Ordered exports (7 or 8 columns) exist of the 25-class models only.
        columns = outputs[0][-1] if outputs and outputs[0] else None
        labels = labels_of(names) if names else tuple(Label) if columns in (7, 8) else None
        if labels is None:
            raise _unrecognised(path, "it does not name its classes in the metadata entry 'character' or 'names'")
        size = _input_size(inputs["image"], "paddle-detector")
        return PaddleDetectorReader(size, labels, with_shape="im_shape" in inputs)
    if len(inputs) == 1:
        name, shape = next(iter(inputs.items()))
        if len(outputs) == 8 and _is_picodet(shape, outputs, len(names)):
            return PicoDetReader(name, (shape[2], shape[3]), labels_of(names))
        if len(outputs) == 1 and len(outputs[0]) == 3 and outputs[0][2] == 6:
            if not names:
                raise _unrecognised(path, "it does not name its classes in the metadata entry 'names'")
            return YoloReader(name, _input_size(shape, "yolo"), labels_of(names))
    raise _unrecognised(path, f"inputs {inputs}, output shapes {outputs}")


def _is_picodet(shape: Sequence[Any], outputs: Sequence[Sequence[Any]], classes: int) -> bool:
    """Fixed input; four score outputs with a column a class, four distributions with 4 x 8 bins."""
    fixed = len(shape) == 4 and all(isinstance(extent, int) for extent in shape[2:])
    columns = [output[-1] if output else None for output in outputs]
    return fixed and classes > 0 and columns == [classes] * 4 + [32] * 4


def _input_size(shape: Sequence[Any], kind: str) -> tuple[int, int]:
    """Height and width of the input; the usual side of the kind where the export leaves them open."""
    height, width = (side if isinstance(side, int) and side > 0 else _DEFAULT_SIDE[kind] for side in shape[2:4])
    return height, width


def _class_names(metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Class names by index: lines in ``character`` (RapidAI's exports) or a dictionary in ``names`` (YOLO)."""
    if metadata.get("character"):
        return tuple(metadata["character"].splitlines())
    text = metadata.get("names", "")
    if not text or len(text) > _MAX_NAMES:
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
