"""Finds the files of models on this machine, and downloads them. Nothing is downloaded unless requested."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagemill.config.file_download import fetch_file, network_reason
from pagemill.config.languages import PREFIX
from pagemill.config.model_cards import ModelCard, ModelKind, card_names, load_card
from pagemill.errors import (
    MissingInputError,
    NetworkError,
    NoSpaceError,
    OutputError,
    PagemillError,
    UsageError,
    lacks_extra,
)

MODELS_VARIABLE = "PAGEMILL_MODELS"
"""Variable with the path of a local mirror: a folder with one folder per model, named like its card."""
_SMALL_FILES = ("*.json", "*.txt", "*.jinja", "*.model", "*.tiktoken")
_WEIGHTS = ("*.safetensors",)
"""With the small files, everything that loading needs. No ``*.py``: code of a model is never run."""
_SPARE = 1.05  # of the download: overhead of the file system
_MAX_INDEX = 64 * 2**20  # bytes


def find_model(card: ModelCard) -> Path | None:
    """The folder that holds all files of a model, in the local mirror or a cache; None if there is none."""
    if card.files:
        places = (folder / card.folder for folder in _own_folders())
        return next((place for place in places if all((place / file.name).is_file() for file in card.files)), None)
    if not card.repository:
        return None
    if (mirrored := find_in_mirror(card.repository)) is not None:
        return mirrored
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:  # so nothing was downloaded with it
        return None
    found = try_to_load_from_cache(card.repository, "config.json")
    if not isinstance(found, str):  # None, or a marker that the repository has no such file
        return None
    folder = Path(found).parent
    return folder if is_complete(folder) else None


def downloaded_files(kind: ModelKind) -> Iterator[tuple[ModelCard, Path]]:
    """The models of a kind that are one file and on this machine: card and file."""
    for card in map(load_card, card_names()):
        if card.kind is kind and (folder := find_model(card)):
            yield card, folder / card.files[0].name


def find_in_mirror(repository: str) -> Path | None:
    """The folder of a repository's model in the local mirror, if it is complete."""
    mirror = _mirror()
    if mirror is None:
        return None
    folders = (mirror / card.name for card in map(load_card, card_names()) if card.repository == repository)
    return next(filter(is_complete, folders), None)


def download_model(card: ModelCard, *, folder: Path | None = None, endpoint: str | None = None) -> Path:
    """Download the missing files of a model and return the folder with all of them.

    Args:
        card: The model.
        folder: Where to put the files; None: the local mirror if there is one, else the Hub's cache, or pagemill's own
            for files that are not on the Hub.
        endpoint: URL of a mirror of the Hub; None for ``HF_ENDPOINT``, or the Hub itself. Files that are not on the Hub
            are at the same paths there as at their own host.

    Raises:
        UsageError: The card names no repository.
        MissingDependencyError: The Hub's client is not installed.
        MissingInputError: The repository does not exist, or may not be read.
        NetworkError: The download failed, as it does with ``HF_HUB_OFFLINE``.
        NoSpaceError: The disk is too small for it.
    """
    if folder is None and (mirror := _mirror()):
        folder = mirror / card.folder
    if card.files:
        folder = folder or own_cache() / card.folder
        require_space(card.name, card.download_bytes, folder, option="--to")
        for file in card.files:
            if not (folder / file.name).is_file():
                fetch_file(file.url, folder / file.name, file.sha256, mirror=endpoint)
        return folder
    if not card.repository:
        raise UsageError(f"the model card {card.name} names no repository", remedy="The model comes with your server.")
    with hub_errors(card.repository):
        from huggingface_hub import constants, snapshot_download

        cache = Path(constants.HF_HUB_CACHE)
        require_space(card.name, card.download_bytes, folder or cache, option="--to")
        # Weights last: after an interruption, a folder with weights is complete.
        for patterns in (_SMALL_FILES, _WEIGHTS):
            fetched = Path(
                snapshot_download(card.repository, local_dir=folder, allow_patterns=list(patterns), endpoint=endpoint)
            )
    if not is_complete(fetched):
        raise NetworkError(f"{card.repository} came without its weights: {fetched}", remedy="Run the command again.")
    return fetched


@contextmanager
def hub_errors(repository: str) -> Iterator[None]:
    """Convert errors of the Hub's client within the block.

    Args:
        repository: Repository to fetch.

    Raises:
        MissingDependencyError: The Hub's client is not installed.
        MissingInputError: The repository does not exist, or may not be read.
        NetworkError: The download failed, as it does with ``HF_HUB_OFFLINE``.
        OutputError: The files cannot be written.
    """
    try:
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise lacks_extra(f"downloading needs the Hub's client ({error})", "hub") from error
    try:
        yield
    except PagemillError:
        raise
    except RepositoryNotFoundError as error:
        raise MissingInputError(
            f"{repository} is not on the Hub, or may not be read",
            remedy="If it is behind an agreement: accept it on its page, then log in with: hf auth login",
        ) from error
    except Exception as error:  # also of the client's HTTP library
        of_the_network = (HfHubHTTPError, LocalEntryNotFoundError, ConnectionError)
        # The client's own errors are OSErrors, too, and so are those of connections: the rest come from the disk.
        if isinstance(error, OSError) and not isinstance(error, of_the_network):
            raise OutputError(f"cannot write the files of {repository}: {error}") from error
        raise NetworkError(
            f"cannot download {repository}: {network_reason(error)}",
            remedy="Check the network, HF_ENDPOINT and HF_HUB_OFFLINE, then run the command again.",
        ) from error


def is_complete(folder: Path) -> bool:
    """Whether a folder holds a model's configuration and all the weight files that its index names."""
    if not (folder / "config.json").is_file():
        return False
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return any(folder.glob("*.safetensors"))
    try:
        with index.open("rb") as file:
            # The index comes with the small files, before the weights: it names what is still missing.
            shards = set(json.loads(file.read(_MAX_INDEX))["weight_map"].values())
        return bool(shards) and all((folder / Path(shard).name).is_file() for shard in shards)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def tessdata_folders() -> Iterator[Path]:
    """The folders in which downloaded language data of Tesseract may be."""
    return (folder / PREFIX.rstrip(":") for folder in _own_folders())


def _own_folders() -> list[Path]:
    return [folder for folder in (_mirror(), own_cache()) if folder]


def own_cache() -> Path:
    """The folder for models that are not on the Hub, one folder each."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "pagemill" / "models"


def _mirror() -> Path | None:
    value = os.environ.get(MODELS_VARIABLE, "")
    return Path(value).expanduser() if value else None


def require_space(name: str, size: int, folder: Path, *, option: str) -> None:
    """Make sure that a download fits on a disk.

    Args:
        name: Name of the download, for messages.
        size: Bytes of it that are missing.
        folder: Target folder; it need not exist.
        option: Names another disk.

    Raises:
        NoSpaceError: It does not.
    """
    # The disk is that of the nearest folder that exists.
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < size * _SPARE:
        raise NoSpaceError(
            f"{name} needs {size / 1e9:.1f} GB more, and {folder} has {free / 1e9:.1f} GB free",
            remedy=f"Free some space, or choose another disk with {option}.",
        )
