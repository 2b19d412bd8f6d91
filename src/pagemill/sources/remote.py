"""Files on fsspec filesystems: the Hugging Face Hub, object stores, web servers."""

from __future__ import annotations

import glob
import tempfile
import weakref
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Any

from pagemill.errors import (
    MissingDependencyError,
    MissingInputError,
    NetworkError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
    lacks_extra,
)
from pagemill.imaging.formats import SUFFIXES, TEXT_DOCUMENTS, FileFormat, promised
from pagemill.imaging.limits import DecodeLimits
from pagemill.sources.hub import CARD, MAX_CARD, DatasetAddress
from pagemill.sources.items import Item, RemoteFile, SkippedFiles, base_name, natural_key
from pagemill.whole_files import TEMPORARY_SUFFIX

_EXTRAS = {"hf": "hub", "http": "http", "https": "http"}
_CHUNK = 2**20
_MOST_BYTES = DecodeLimits().max_stored_bytes
_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class TemporaryCopy:
    """A temporary file that is deleted with this object."""

    def __init__(self, folder: Path | None) -> None:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=TEMPORARY_SUFFIX, delete=False) as file:
            self.path = Path(file.name)
        self._remove = weakref.finalize(self, self.path.unlink, missing_ok=True)


def expand_url(url: str, origin: int, *, recursive: bool, skipped: SkippedFiles) -> Iterator[Item]:
    """Yield the files of a URL: itself, or those of a folder or glob. A Hub dataset is searched recursively.

    ``hf://datasets/OWNER/NAME[@revision][:config][/split]`` is one configuration or split of a dataset.

    Args:
        url: The address.
        origin: Index of the user's input.
        recursive: Recurse into folders.
        skipped: Counts files of other kinds in folders.

    Raises:
        MissingDependencyError: The filesystem's package is not installed.
        UnsupportedInputError: There is no such filesystem.
        MissingInputError: Nothing was found.
        NetworkError: It cannot be reached.
    """
    address = DatasetAddress.parse(url)
    has_config = address is not None and address.config is not None
    filesystem, path = _filesystem(address.root if address and has_config else url)
    scheme = url.split("://", 1)[0]
    errors: list[Exception] = []
    # Without a callback, fsspec reports only the outermost folder that cannot be listed; others count as empty.
    on_error = {"on_error": errors.append} if _walks_by_itself(filesystem) else {}
    try:
        # The name of a file may contain brackets: what exists under the given name is not a pattern.
        is_pattern = glob.has_magic(path) and not filesystem.isfile(path)
        if is_pattern:
            names = [str(name) for name in filesystem.glob(path, **on_error)]
        elif address is not None and (has_config or (_may_be_split(address.place) and not filesystem.exists(path))):
            names = _selected(filesystem, address)
        elif scheme in ("http", "https") or filesystem.isfile(path):
            yield Item(uri=url, name=base_name(url), origin=origin, content=RemoteFile(filesystem, path))
            return
        else:
            # Datasets on the Hub have folders for their configurations, which belong to the dataset.
            depth = None if recursive or scheme == "hf" else 1
            names = [str(name) for name in filesystem.find(path, maxdepth=depth, **on_error)]
    except Exception as error:
        raise unreachable(url, error) from error
    files = sorted((name for name in names if _is_wanted(name, scheme, is_pattern)), key=natural_key)
    for other in map(PurePosixPath, sorted(set(names).difference(files))):
        # A match without a suffix may be a folder, which is not a skipped file.
        if not other.name.startswith(".") and (other.suffix or not is_pattern):
            skipped.add(other.name)
    if not files and not errors:
        raise MissingInputError(f"{url!r} does not exist or contains no document", remedy="Check the address.")
    for name in files:
        uri = f"{scheme}://{name.lstrip('/')}"
        yield Item(uri=uri, name=base_name(uri), origin=origin, content=RemoteFile(filesystem, name), root=url)
    if errors:
        yield Item(uri=url, name=base_name(url), origin=origin, error=unreachable(url, errors[0]))


def _is_wanted(name: str, scheme: str, is_pattern: bool) -> bool:
    """Whether a file is a document. Text only if a pattern matches it: in a folder it may be about the other files."""
    kind, suffix = promised(PurePosixPath(name)), PurePosixPath(name).suffix.lower()
    if kind is not FileFormat.DOCUMENT:
        return kind is not None
    return is_pattern or (scheme != "hf" and suffix not in TEXT_DOCUMENTS)


def _may_be_split(place: str) -> bool:
    return bool(place) and "/" not in place and PurePosixPath(place).suffix.lower() not in SUFFIXES


def dataset_files(root: str) -> list[Item]:
    """All files of a dataset on the Hub, by its address.

    Raises:
        MissingDependencyError: The Hub's client is not installed.
        MissingInputError: There is no such dataset.
        NetworkError: The Hub cannot be reached.
    """
    filesystem, path = _filesystem(root)
    try:
        names = sorted(map(str, filesystem.find(path)), key=natural_key)
    except Exception as error:
        raise unreachable(root, error) from error
    uris = ((f"hf://{name}", name) for name in names)
    return [
        Item(uri=uri, name=base_name(uri), origin=0, content=RemoteFile(filesystem, name), root=root)
        for uri, name in uris
    ]


def dataset_card(root: str) -> bytes:
    """The beginning of the card of a dataset on the Hub; empty if it has none.

    Raises:
        MissingDependencyError: The Hub's client is not installed.
        MissingInputError: There is no such dataset.
        NetworkError: The Hub cannot be reached.
    """
    filesystem, path = _filesystem(root)
    try:
        if CARD not in {PurePosixPath(name).name for name in filesystem.ls(path, detail=False)}:
            return b""
        card: bytes = filesystem.cat_file(f"{path}/{CARD}", start=0, end=MAX_CARD)
    except Exception as error:
        raise unreachable(root, error) from error
    return card


def _selected(filesystem: Any, address: DatasetAddress) -> list[str]:
    """The files of a configuration or split of a dataset on the Hub."""
    root = address.root.removeprefix("hf://")
    found = {filesystem.resolve_path(name).path_in_repo: str(name) for name in filesystem.find(root)}
    card = filesystem.cat_file(found[CARD], start=0, end=MAX_CARD) if CARD in found else b""
    return [found[name] for name in address.selected(list(found), card)]


def _walks_by_itself(filesystem: Any) -> bool:
    """Whether a filesystem lists folders one by one, and reports those that it could not list."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    if isinstance(filesystem, AsyncFileSystem):
        return type(filesystem)._find is AsyncFileSystem._find
    return type(filesystem).find is AbstractFileSystem.find


def _filesystem(url: str) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    try:
        if url.startswith("hf://"):
            import huggingface_hub  # noqa: F401 - the message of fsspec would name another package
        filesystem, path = url_to_fs(url)
    except ImportError as error:
        raise _lacking(url, error) from error
    except ValueError as error:
        raise UnsupportedInputError(f"{url!r}: {error}", remedy="Download the file and give its path.") from error
    return filesystem, str(path)


def unreachable(uri: str, error: Exception) -> PagemillError:
    """The error for an exception of a filesystem."""
    if isinstance(error, PagemillError):
        return error
    if uri.startswith("hf://") and (known := _of_hub(uri, error)) is not None:
        return known
    if isinstance(error, FileNotFoundError):
        # Over HTTP, fsspec raises FileNotFoundError for any failure; the actual one is its cause.
        cause = error.__cause__
        if isinstance(cause, Exception) and getattr(cause, "status", None) not in _GONE:
            return unreachable(uri, cause)
        return MissingInputError(f"{uri!r} does not exist", remedy="Check the address and your access rights.")
    if isinstance(error, ImportError):
        return _lacking(uri, error)
    return NetworkError(
        f"{uri!r} cannot be read ({type(error).__name__}: {error})",
        remedy="Check the connection, the address and your access rights, then run again.",
    )


def _of_hub(uri: str, error: Exception) -> PagemillError | None:
    """The error for an exception of the Hub's client about the address; None for any other exception."""
    try:
        from huggingface_hub.errors import (
            GatedRepoError,
            HfUriError,
            HFValidationError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )
    except ImportError:
        return None
    if isinstance(error, (RepositoryNotFoundError, RevisionNotFoundError)) and not isinstance(error, GatedRepoError):
        what = "revision" if isinstance(error, RevisionNotFoundError) else "dataset"
        remedy = "Check its name; for a private one, log in with `hf auth login`."
        return MissingInputError(f"{uri!r}: the Hub has no such {what}, or it is private", remedy=remedy)
    # ValueError itself is about the address; its subclasses, such as JSON errors, are about a response.
    if isinstance(error, (HfUriError, HFValidationError, NotImplementedError)) or type(error) is ValueError:
        reason = " ".join(str(error).split())
        remedy = "Write hf://datasets/OWNER/NAME[@revision][:config][/split]."
        return UnsupportedInputError(f"{uri!r} is not an address on the Hub: {reason}", remedy=remedy)
    return None


def _lacking(uri: str, error: ImportError) -> MissingDependencyError:
    """The error for a missing package of a filesystem, named by fsspec."""
    scheme = uri.split("://", 1)[0]
    message = f"reading {scheme}:// needs another package ({error})"
    if (extra := _EXTRAS.get(scheme)) is not None:
        return lacks_extra(message, extra)
    return MissingDependencyError(message, remedy="Install it with pip, or download the files and give their paths.")


def read_all(file: RemoteFile, max_bytes: int) -> bytes:
    """All bytes of a file.

    Raises:
        TooLargeError: It has more than ``max_bytes``.
    """
    with file.filesystem.open(file.path, "rb") as opened:
        data: bytes = opened.read(max_bytes + 1)
    # One byte more was asked for than is allowed: no filesystem has to know sizes for that.
    if len(data) > max_bytes:
        raise TooLargeError(f"{file.path!r} has more than {max_bytes:,} bytes", remedy="Download it and give its path.")
    return data


def copy_to_disk(source: RemoteFile | bytes, folder: Path | None, *, max_bytes: int = _MOST_BYTES) -> TemporaryCopy:
    """Copy a file to a temporary file, for readers that need a path.

    Raises:
        TooLargeError: It has more than ``max_bytes``; a server may send endlessly.
    """
    copy = TemporaryCopy(folder)
    with copy.path.open("wb") as target:
        if isinstance(source, bytes):
            target.write(source)
        else:
            with source.filesystem.open(source.path, "rb") as opened:
                left = max_bytes
                while chunk := opened.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        remedy = "Download it and give its path."
                        raise TooLargeError(f"{source.path!r} has more than {max_bytes:,} bytes", remedy=remedy)
                    target.write(chunk)
    return copy
