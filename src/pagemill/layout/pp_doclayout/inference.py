"""Running PP-DocLayout: one model a process and device, microbatches of few shapes, copies beside computing."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagemill.checkpoints.devices import choose_device
from pagemill.checkpoints.loading import to_device
from pagemill.config.modes import TorchDevice
from pagemill.document.labels import Label
from pagemill.errors import EngineError, UsageError
from pagemill.imaging.types import Pixels
from pagemill.layout.pp_doclayout.encoded import find_jpeg_decoder
from pagemill.layout.pp_doclayout.outputs import RawPage, Reduced
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE, resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation, Precision
from pagemill.layout.pp_doclayout.weights import load_model
from pagemill.model_cache import cached

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)

_DEVICE_BATCH = 8


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What makes two engines share a model."""

    folder: Path
    device: TorchDevice
    precision: Precision
    compile: bool
    max_batch: int | None


class Predictor:
    """A loaded model. Thread-safe: resizing and copies of several calls overlap, on a GPU one computes at a time."""

    def __init__(
        self,
        model: torch.nn.Module,
        labels: tuple[Label, ...],
        device: torch.device,
        precision: Precision,
        max_batch: int,
    ) -> None:
        """Wrap a model that is on its device in its precision; :func:`load_predictor` makes one."""
        import torch

        self.labels = labels
        self.device = device
        self.precision = precision
        self.max_batch = max_batch
        self.compiled = False
        self._model: Any = model
        self._input_type = torch.float32 if precision is Precision.FLOAT32 else torch.bfloat16
        self._computing: Any = contextlib.nullcontext() if device.type == "cpu" else threading.Lock()
        self._copies = torch.cuda.Stream(device) if device.type == "cuda" else None
        self.jpeg_decoder = find_jpeg_decoder(device)

    def predict(
        self, pages: Sequence[Pixels | torch.Tensor], interpolation: Interpolation, mask_threshold: float
    ) -> list[RawPage]:
        """Raw outputs of at most ``max_batch`` pages.

        Args:
            pages: Pages of any sizes; tensors lie on the device and are of the input's size, (side, side, 3) uint8.
            interpolation: How they are resized.
            mask_threshold: Probability above which a mask pixel is set.
        """
        import torch

        if not 1 <= len(pages) <= self.max_batch:
            raise ValueError(f"{len(pages)} pages for a model that takes 1 to {self.max_batch}")
        count = self.max_batch if self.compiled and len(pages) > 1 else len(pages)
        shape = (count, INPUT_SIDE, INPUT_SIDE, 3)
        host = torch.empty(shape, dtype=torch.uint8, pin_memory=self._copies is not None)
        host[len(pages) :] = 0
        for row, page in zip(host.numpy(), pages, strict=False):
            if not isinstance(page, torch.Tensor):
                resize_pages([page], interpolation, row[None])
        with torch.inference_mode():
            with self._copying():
                batch = host.to(self.device, non_blocking=self._copies is not None)
                for row, page in zip(batch, pages, strict=False):
                    if isinstance(page, torch.Tensor):
                        row.copy_(page)
                        if self._copies is not None:
                            page.record_stream(self._copies)
            with self._computing:
                self._await_copy(batch)
                reduced = Reduced(self.forward(batch), len(pages), mask_threshold)
            return reduced.pages()

    def compile(self) -> None:
        """Compile the model for one page and for a full batch; smaller batches are padded, no other shape occurs.

        If compiling fails, the model runs uncompiled, with one warning.
        """
        import torch

        eager = self._model
        try:
            self._model = torch.compile(eager, dynamic=False)
            with torch.inference_mode():
                for count in sorted({1, self.max_batch}):
                    self.forward(torch.zeros((count, INPUT_SIDE, INPUT_SIDE, 3), dtype=torch.uint8, device=self.device))
            self.compiled = True
        except Exception as error:  # compilers raise what they like
            self._model = eager
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            _log.warning("PP-DocLayout runs without compiling, which failed: %s", reason)

    def is_finite(self) -> bool:
        """Whether the model gives numbers in its precision, tried on a page of noise."""
        import torch

        generator = torch.Generator().manual_seed(0)
        noise = torch.randint(0, 256, (1, INPUT_SIDE, INPUT_SIDE, 3), dtype=torch.uint8, generator=generator)
        with torch.inference_mode():
            outputs = self.forward(noise.to(self.device))
            return bool(outputs.logits.isfinite().all() and outputs.pred_boxes.isfinite().all())

    def forward(self, batch: torch.Tensor) -> Any:
        """The model's outputs for uint8 pixels (n, side, side, 3) on its device."""
        import torch

        pixels = batch.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format).div_(255)
        with self._fast_matmul():
            if not self.compiled:
                return self._model(pixel_values=pixels.to(self._input_type))
            with torch.compiler.set_stance("eager_on_recompile"):  # the middle of a run is no time for compiling
                return self._model(pixel_values=pixels.to(self._input_type))

    @contextlib.contextmanager
    def _fast_matmul(self) -> Iterator[None]:
        """Let the float32 part of the mixed model multiply in TF32 on CUDA: 259 -> 226 ms for 64 pages on an H100.

        Logits move by .007 at most, at a standard deviation of 1.5. The switch is the process's, so it is set back: a
        user who asks for float32 elsewhere gets it.
        """
        import torch

        if self.device.type != "cuda" or self.precision is not Precision.MIXED:
            yield
            return
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        try:
            yield
        finally:
            torch.set_float32_matmul_precision(before)

    @contextlib.contextmanager
    def _copying(self) -> Iterator[None]:
        """Copies inside go on beside computing, where the device can."""
        import torch

        if self._copies is None:
            yield
        else:
            with torch.cuda.stream(self._copies):
                yield

    def _await_copy(self, batch: torch.Tensor) -> None:
        """Have the device compute only once the batch is there, and keep its memory until then."""
        import torch

        if self._copies is not None:
            stream = torch.cuda.current_stream(self.device)
            stream.wait_stream(self._copies)
            batch.record_stream(stream)


def shared_predictor(choice: ModelChoice) -> Predictor:
    """The model of a choice, loaded once a process and kept."""
    return cached(choice, lambda: load_predictor(choice))


def load_predictor(choice: ModelChoice) -> Predictor:
    """Load a model onto its device.

    Raises:
        UsageError: The device is not there, or cannot compute in the precision.
        EngineError: The model gives no numbers in the precision that was asked for.
        UnsupportedInputError: The folder holds no such model.
    """
    device = choose_device(choice.device, "device in the layout settings")
    precision = _precision(choice.precision, device)
    max_batch = choice.max_batch or (1 if device.type == "cpu" else _DEVICE_BATCH)
    predictor = _load(choice.folder, device, precision, max_batch)
    if precision is not Precision.FLOAT32 and not predictor.is_finite():
        if choice.precision is not Precision.AUTO:
            raise EngineError(
                f"the layout model returns NaN in {precision} precision on {device.type}",
                remedy="Set precision to auto or float32 in the layout settings.",
            )
        _log.warning("PP-DocLayout runs in float32: in %s precision it returns NaN on %s", precision, device.type)
        predictor = _load(choice.folder, device, Precision.FLOAT32, max_batch)
    if choice.compile:
        predictor.compile()
    return predictor


def _load(folder: Path, device: torch.device, precision: Precision, max_batch: int) -> Predictor:
    import torch

    model, labels = load_model(folder, torch.bfloat16 if precision is Precision.BFLOAT16 else torch.float32)
    if precision is Precision.MIXED:
        base: Any = model.model
        for part in (base.backbone, base.encoder_input_proj, base.encoder):
            part.to(torch.bfloat16)
        base.encoder.register_forward_hook(lambda module, inputs, outputs: _widened(outputs))
    model = to_device(model, device, "the layout model")
    if device.type == "cuda":
        # cuDNN computes convolutions in this order anyway and would convert to it and back: 226 -> 187 ms on an H100.
        model.to(memory_format=torch.channels_last)
    return Predictor(model, labels, device, precision, max_batch)


def _widened(value: Any) -> Any:
    """The outputs of a part of the model with every tensor in float32."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.float() if value.is_floating_point() else value
    if isinstance(value, dict):  # the output classes of transformers are dictionaries that know their fields
        return type(value)(**{name: _widened(part) for name, part in value.items()})
    return type(value)(_widened(part) for part in value) if isinstance(value, list | tuple) else value


def _precision(precision: Precision, device: torch.device) -> Precision:
    """The precision to compute in."""
    import torch

    if precision is Precision.BFLOAT16 and device.type == "cpu":
        # PyTorch 2.13 samples garbage for bfloat16 coordinates off the image there (grid_sample).
        raise UsageError("the layout model is wrong in bfloat16 on the CPU", remedy="Set precision to mixed or auto.")
    if precision is not Precision.AUTO:
        return precision
    wide = device.type == "cpu" or (device.type == "cuda" and not torch.cuda.is_bf16_supported())
    return Precision.FLOAT32 if wide else Precision.MIXED
