"""Checkpoints of transformers: loaded completely, offline, and without running their code unless requested."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.errors import EngineError, UnsupportedInputError, is_out_of_memory, lacks_extra

if TYPE_CHECKING:
    import torch


class ModelConfig(msgspec.Struct):
    """The fields of a model's ``config.json`` that are read before it is loaded."""

    model_type: str = ""
    id2label: dict[int, str] = {}


def require_packages(what: str) -> None:
    """Import PyTorch and transformers.

    Args:
        what: Name of what needs them, such as ``the layout engine pp-doclayout-v3``.

    Raises:
        MissingDependencyError: One is not installed.
    """
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise lacks_extra(f"{what} needs {error.name}", "gpu") from error


def read_config(folder: Path) -> ModelConfig:
    """A model's configuration.

    Raises:
        UnsupportedInputError: It cannot be read.
    """
    path = folder / "config.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelConfig)
    except (OSError, ValueError, msgspec.DecodeError, RecursionError) as error:
        raise UnsupportedInputError(f"cannot read {path}: {error}", remedy="Download the model again.") from error


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress progress bars and warnings of transformers, which would break up the run's own progress bar."""
    from transformers.utils import logging

    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def load_pretrained(kind: Any, folder: Path, dtype: torch.dtype, *, what: str, remedy: str, **options: Any) -> Any:
    """Load a model on the CPU, in evaluation mode. A checkpoint that lacks weights is refused.

    Args:
        kind: The class of transformers that loads it.
        folder: The checkpoint.
        dtype: Data type of its weights.
        what: Name of the model in errors, such as ``the layout model``.
        remedy: Remedy that shows how to get a complete checkpoint.
        **options: Further arguments of ``from_pretrained``.

    Raises:
        UnsupportedInputError: The folder holds another kind of model, or a damaged one.
        EngineError: It takes more memory than there is.
        MissingDependencyError: It needs a package that is not installed.
    """
    try:
        with quietly():
            model, info = kind.from_pretrained(
                # Safetensors only: a pickled checkpoint can run any code when it is loaded.
                folder,
                dtype=dtype,
                local_files_only=True,
                use_safetensors=True,
                output_loading_info=True,
                **options,
            )
    except ImportError as error:  # transformers names the package, over several lines
        raise lacks_extra(f"{what} in {folder} needs more: {_first_line(error)}", "gpu") from error
    except Exception as error:  # configuration, safetensors and shape errors have no common base
        if is_out_of_memory(error):
            raise no_memory(what, error) from error
        raise UnsupportedInputError(f"cannot load {what} in {folder}: {_first_line(error)}", remedy=remedy) from error
    # transformers fills missing tensors with random numbers and only logs it: the answers would be noise.
    if lost := [*info["missing_keys"], *info["mismatched_keys"]]:
        raise UnsupportedInputError(
            f"{what} in {folder} lacks weights (tensors: {len(lost)}, first: {min(map(str, lost))})",
            remedy=remedy,
        )
    return model.eval()


def to_device(model: Any, device: torch.device, what: str) -> Any:
    """The model on its device.

    Raises:
        EngineError: The device has too little memory for it.
    """
    try:
        return model.to(device)
    except Exception as error:
        if is_out_of_memory(error):
            raise no_memory(what, error) from error
        raise


def no_memory(what: str, error: Exception) -> EngineError:
    """The error for a model that does not fit into memory."""
    return EngineError(
        f"{what} does not fit into memory: {_first_line(error)}",
        remedy="Use a smaller model, a 16-bit data type, or a device with more memory; or stop what else uses it.",
    )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
