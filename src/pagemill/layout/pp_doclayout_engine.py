"""Layout detection with PP-DocLayoutV3 or V4 in PyTorch, on CUDA, MPS or the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.checkpoints.devices import compute_with
from pagemill.checkpoints.loading import require_packages
from pagemill.errors import EngineError, PagemillError
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DecodedLayout, DetectedRegion
from pagemill.layout.pp_doclayout.encoded import ModelInput, load_inputs
from pagemill.layout.pp_doclayout.inference import ModelChoice, Predictor, shared_predictor
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.postprocess import PostProcessor
from pagemill.layout.pp_doclayout.settings import PPDocLayoutSettings, read_settings
from pagemill.layout.pp_doclayout.weights import find_weights, weight_files
from pagemill.layout.settings import LayoutSettings

if TYPE_CHECKING:
    from concurrent.futures import Executor


class PPDocLayoutEngine:
    """PP-DocLayoutV3 or V4. Thread-safe."""

    name = "pp-doclayout-v3"

    def __init__(self, predictor: Predictor, settings: PPDocLayoutSettings) -> None:
        """Wrap a loaded model; use ``create`` to make one."""
        self.max_batch = predictor.max_batch
        self._predictor = predictor
        self._settings = settings
        self._postprocess = PostProcessor(settings.filters, predictor.labels, self.name)

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page, one list a page, in reading order.

        Raises:
            EngineError: The model gave no numbers for a page.
        """
        if not pages:
            return []
        raw = self._predictor.predict(pages, self._settings.interpolation, self._settings.filters.mask_threshold)
        return [
            self._postprocess.regions(answer, (page.shape[1], page.shape[0]))
            for answer, page in zip(raw, pages, strict=True)
        ]

    def detect_encoded(self, pages: Sequence[bytes], decoders: Executor) -> list[list[DetectedRegion] | PagemillError]:
        """Find the regions of encoded pages of which nothing but the regions is wanted.

        Faster than decoding and :meth:`detect`: large JPEGs are decoded at a part of their size, or on the GPU. Calls
        from several threads overlap: one decodes while another computes.

        Args:
            pages: At most ``max_batch`` encoded images.
            decoders: Threads that decode what the GPU does not.

        Returns:
            For every page its regions in pixels of the page that ``decode_image`` gives, in reading order; or its
            error, where it cannot be decoded or the model gave no numbers for it.
        """
        interpolation = self._settings.interpolation
        loaded = load_inputs(pages, interpolation, decoders, self._predictor.jpeg_decoder)
        sound = [page.pixels for page in loaded if isinstance(page, ModelInput)]
        threshold = self._settings.filters.mask_threshold
        raw = iter(self._predictor.predict(sound, interpolation, threshold) if sound else ())
        return [self._regions(next(raw), page.size) if isinstance(page, ModelInput) else page for page in loaded]

    @property
    def decodes_jpegs(self) -> bool:
        """Whether the model's device decodes JPEGs: on CUDA, where torchvision is installed."""
        return self._predictor.jpeg_decoder is not None

    def detect_jpegs(self, pages: Sequence[bytes]) -> list[DecodedLayout | None]:
        """Decode pages on the device and find their regions; as :class:`pagemill.layout.base.JpegLayoutEngine`.

        Raises:
            EngineError: The model gave no numbers for a page.
        """
        decoder, interpolation = self._predictor.jpeg_decoder, self._settings.interpolation
        decoded = decoder.pages(pages, interpolation) if decoder else None
        if decoded is None:  # one of them cannot be decoded here, or all of them take too much memory
            return [each for page in pages for each in self.detect_jpegs([page])] if len(pages) > 1 else [None]
        inputs = [page for page, _ in decoded]
        raw = self._predictor.predict(inputs, interpolation, self._settings.filters.mask_threshold)
        return [
            DecodedLayout(pixels, self._postprocess.regions(answer, (pixels.shape[1], pixels.shape[0])))
            for answer, (_, pixels) in zip(raw, decoded, strict=True)
        ]

    def _regions(self, answer: RawPage, size: tuple[int, int]) -> list[DetectedRegion] | PagemillError:
        try:
            return self._postprocess.regions(answer, size)
        except EngineError as error:
            return error

    def close(self) -> None:
        """Nothing: the process keeps the model for the next engine of the same kind."""


def create(settings: LayoutSettings | None = None) -> PPDocLayoutEngine:
    """Load the model, or take the one that this process has loaded already.

    Raises:
        MissingDependencyError: PyTorch or transformers is not installed, or too old.
        MissingInputError: The weights are missing; the remedy names the command to get them.
        UnsupportedInputError: The folder holds no PP-DocLayoutV3 or V4.
        UsageError: The settings file is not valid, or PyTorch does not see the device.
    """
    settings = settings or LayoutSettings()
    chosen = _choose(settings)
    require_packages("the layout engine pp-doclayout-v3")
    folder = find_weights(chosen.model, download=chosen.download)
    predictor = shared_predictor(
        ModelChoice(
            folder=folder.resolve(),
            device=chosen.device,
            precision=chosen.precision,
            compile=chosen.compile,
            max_batch=settings.max_batch or chosen.max_batch,
        )
    )
    compute_with(1, predictor.device)
    return PPDocLayoutEngine(predictor, chosen)


def deciding(settings: LayoutSettings) -> tuple[dict[str, Any], list[Path]]:
    """What decides which regions this engine finds: its settings as plain JSON values, and the files of its weights.

    Left out is what changes speed alone. Loads neither PyTorch nor the model.

    Raises:
        MissingInputError: The settings file or the weights are not there.
        UsageError: The settings file is not valid.
    """
    chosen = _choose(settings)
    values = {"precision": chosen.precision, "interpolation": chosen.interpolation, "filters": chosen.filters}
    return msgspec.to_builtins(values), weight_files(find_weights(chosen.model, download=chosen.download))


def _choose(settings: LayoutSettings) -> PPDocLayoutSettings:
    """The engine's settings: those of the file that stands in for the model, else its defaults with the model."""
    chosen = PPDocLayoutSettings()
    path = settings.model_path
    if path is not None and path.suffix.lower() == ".toml":
        chosen = read_settings(path)
        if (path.parent / chosen.model).is_dir():
            chosen = msgspec.structs.replace(chosen, model=str(path.parent / chosen.model))
    elif path is not None:
        chosen = msgspec.structs.replace(chosen, model=str(path))
    return chosen
