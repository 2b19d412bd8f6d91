"""The manifest of a published dataset: every file with its size and digest. Published with the files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from pagemill._version import __version__

MANIFEST = "pagemill.json"
"""Name of the manifest in the dataset."""
ROWS = "data/train-*.parquet"
"""Files that ``load_dataset`` reads, by the card of a dataset in Parquet: also foreign ones of that name."""
MAX_MANIFEST = 64 * 2**20
"""Maximum bytes of a manifest that is read back: it is untrusted."""


class PublishedFile(msgspec.Struct, frozen=True):
    """A file of the dataset."""

    path: str
    """Path in the dataset, with forward slashes."""
    size: int
    sha256: str


Report = Callable[[PublishedFile, int], object]
"""Called with a file and 0 before it is sent, and with its size after it."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All files of the dataset except the manifest itself."""

    generator: str = "pagemill"
    version: str = __version__
    fingerprint: str = ""
    """Fingerprint of the run's state and the options."""
    pages: int
    pages_without_image: int = 0
    """Pages whose image was requested but unreadable; with any, the files are rebuilt next time."""
    files: tuple[PublishedFile, ...]

    def encoded(self) -> bytes:
        """The manifest as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def read_manifest(data: bytes) -> Manifest | None:
    """A manifest from its bytes; None if it is not ours."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return manifest if manifest.generator == "pagemill" else None


def in_the_way(there: Iterable[str], earlier: Collection[str], manifest: Manifest) -> list[str]:
    """Foreign files that a dataset would replace, or whose rows would be read as part of it.

    Args:
        there: Paths of files in the target.
        earlier: Paths of files that we published before.
        manifest: The dataset that is published.
    """
    ours = {file.path for file in manifest.files}
    # load_dataset reads all files of that pattern: foreign rows would become part of our dataset.
    has_rows = any(map(_holds_rows, ours))
    foreign = (path for path in there if path not in earlier)
    return sorted(path for path in foreign if path in ours or (has_rows and _holds_rows(path)))


def _holds_rows(path: str) -> bool:
    return path.count("/") == 1 and fnmatchcase(path, ROWS)  # fnmatch lets a star match slashes


def described(folder: Path, paths: Iterable[Path]) -> list[PublishedFile]:
    """Files below a folder with their sizes and digests."""
    files = []
    for path in paths:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files.append(PublishedFile(path.relative_to(folder).as_posix(), path.stat().st_size, digest))
    return files
