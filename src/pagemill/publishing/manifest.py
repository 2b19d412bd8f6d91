"""What a published dataset is made of: every file with its size and digest. It is published beside the files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pagemill._version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable

MANIFEST = "pagemill.json"
"""Its name in the dataset."""
MAX_MANIFEST = 64 * 2**20
"""Bytes of a manifest that is read back; somebody else may have written it."""


class PublishedFile(msgspec.Struct, frozen=True):
    """A file of the dataset."""

    path: str
    """In the dataset, with forward slashes."""
    size: int
    sha256: str


Tell = Callable[[PublishedFile, int], object]
"""Called with a file and 0 before it is sent, and with its size when it is there."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All files of the dataset but the manifest itself."""

    generator: str = "pagemill"
    version: str = __version__
    fingerprint: str = ""
    """Of the run's state and the options it was made with."""
    pages: int
    pages_without_image: int = 0
    """Pages whose image was asked for and could not be had: where there are some, they are tried once more."""
    files: tuple[PublishedFile, ...]

    def encoded(self) -> bytes:
        """As it is written."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def read_manifest(data: bytes) -> Manifest | None:
    """A manifest from its bytes; None where they are none of ours."""
    try:
        manifest = msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return manifest if manifest.generator == "pagemill" else None


def described(folder: Path, paths: Iterable[Path]) -> list[PublishedFile]:
    """Files below a folder with their sizes and digests."""
    files = []
    for path in paths:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files.append(PublishedFile(path.relative_to(folder).as_posix(), path.stat().st_size, digest))
    return files
