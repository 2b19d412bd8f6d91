"""Finding and loading PP-DocLayout's weights: a folder, or what the Hugging Face cache holds. Offline unless asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.checkpoints.loading import load_pretrained, read_config
from pagemill.config.model_files import find_in_mirror
from pagemill.document.labels import Label
from pagemill.errors import MissingDependencyError, MissingInputError, NetworkError, UnsupportedInputError
from pagemill.installation import pip_install
from pagemill.layout.label_map import labels_of
from pagemill.layout.pp_doclayout.settings import MODEL_ID

if TYPE_CHECKING:
    import torch

_CLASSES = {"pp_doclayout_v3": "PPDocLayoutV3ForObjectDetection", "pp_doclayout_v4": "PPDocLayoutV4ForObjectDetection"}
_FILES = ("config.json", "model.safetensors")


def find_weights(model: str, *, download: bool = False) -> Path:
    """The folder with a model's configuration and weights.

    Args:
        model: A folder, or a repository on the Hub.
        download: Ask the Hub for what the cache does not hold.

    Raises:
        MissingInputError: It is neither there nor in the cache; the remedy names the command to get it.
        NetworkError: The download failed.
    """
    folder = Path(model).expanduser()
    if folder.is_file():  # a file of the folder is as good
        folder = folder.parent
    if folder.is_dir():
        if missing := [name for name in _FILES if not (folder / name).is_file()]:
            raise MissingInputError(f"there is no {' and no '.join(missing)} in {folder}", remedy=_remedy(model))
        return folder
    if folder.is_absolute() or model.count("/") != 1:
        raise MissingInputError(f"there is no layout model at {model}", remedy="Check the path of the folder.")
    if (mirrored := find_in_mirror(model)) is not None:
        return mirrored
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=list(_FILES), local_files_only=not download))
    except LocalEntryNotFoundError as error:
        if download:
            raise NetworkError(f"cannot download {model}: {error}", remedy="Check the network connection.") from error
        raise MissingInputError(f"the weights of {model} are not in the cache", remedy=_remedy(model)) from error
    except Exception as error:  # the Hub's client raises many kinds, of its own and of its HTTP library
        raise NetworkError(f"cannot download {model}: {error}") from error


def weight_files(folder: Path) -> list[Path]:
    """The files that make up a model."""
    return [folder / name for name in _FILES]


def load_model(folder: Path, dtype: torch.dtype) -> tuple[torch.nn.Module, tuple[Label, ...]]:
    """Load a model on the CPU, ready to predict, with our labels of its classes.

    Nothing in the folder is run as code, and no weight is left to chance: a file that lacks some is refused.

    Raises:
        MissingDependencyError: ``transformers`` is too old for this model.
        UnsupportedInputError: The folder holds another kind of model, or a damaged one.
    """
    config = read_config(folder)
    kind = config.model_type
    if kind not in _CLASSES:
        raise UnsupportedInputError(
            f"{folder} contains a model of the kind {kind!r}", remedy="PP-DocLayoutV3 and V4 are supported."
        )
    labels = _labels(config.id2label)
    import transformers

    model_class = getattr(transformers, _CLASSES[kind], None)
    if model_class is None:
        raise MissingDependencyError(
            f"transformers {transformers.__version__} does not know {kind}",
            remedy=f"Update it: {pip_install('--upgrade', 'transformers')}",
        )
    model = load_pretrained(model_class, folder, dtype, what="the layout model", remedy=_remedy(str(folder)))
    return model, labels


def _labels(names: dict[int, str]) -> tuple[Label, ...]:
    """Our labels by class index; a model that does not name its 25 classes has those of PP-DocLayoutV3."""
    if not names or sorted(names) != list(range(len(names))):
        raise UnsupportedInputError("the layout model's configuration does not name its classes (id2label)")
    unnamed = all(name.upper() == f"LABEL_{index}" for index, name in names.items())
    if unnamed and len(names) == len(Label):
        return tuple(Label)
    return labels_of(tuple(names[index] for index in range(len(names))))


def _remedy(model: str) -> str:
    repository = model if model.count("/") == 1 and not model.startswith((".", "/", "~")) else MODEL_ID
    return (
        f"Get them with hf download {repository} (132 MB), or pass a folder that contains {' and '.join(_FILES)} as"
        " --layout-model; 'download = true' in the layout settings lets pagemill fetch them."
    )
