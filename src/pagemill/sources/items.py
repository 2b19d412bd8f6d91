"""Single files to read, before anything is opened."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from pagemill.errors import PagemillError
from pagemill.late import re

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
MAX_SUFFIXES = 20
"""Suffixes of skipped files that are counted separately."""
_DIGITS = re.compile(r"(\d+)")
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


class RemoteFile(msgspec.Struct, frozen=True):
    """A file on an fsspec filesystem."""

    filesystem: Any
    path: str


Content: TypeAlias = Path | bytes | RemoteFile


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One file to read, or an error in its place."""

    uri: str
    """Name for the user."""
    name: str
    """Base name, for the document id."""
    origin: int
    """Index of the user's input that it comes from; shared by the shards of a dataset."""
    content: Content | None = None
    error: PagemillError | None = None
    root: str | None = None
    """Folder, pattern or dataset in which it was found, as given by the user; None for a file that the user named
    directly."""
    inside: bool = False
    """It is in another file, whose name comes first in ``uri``."""

    @property
    def table(self) -> str:
        """Name of the table that a shard belongs to: its place in the input, without suffix and shard number."""
        root = "" if self.root in (None, ".") else f"{str(self.root).rstrip('/')}/"
        return table_of(self.uri.removeprefix(root) if self.root and self.uri.startswith(root) else self.name)


class SkippedFiles:
    """Skipped files of folders, counted by suffix, and linked folders."""

    def __init__(self) -> None:
        self.by_suffix: Counter[str] = Counter()
        self.linked_folders: list[str] = []
        """Names for the user."""

    def add(self, name: str) -> None:
        """Count a file by its name, which is untrusted: there may be any number of suffixes."""
        suffix = PurePosixPath(name).suffix.lower() or "no suffix"
        # Bounded: the names of a hostile archive could have a million suffixes.
        if suffix not in self.by_suffix and len(self.by_suffix) >= MAX_SUFFIXES:
            suffix = "other"
        self.by_suffix[suffix] += 1


def table_of(name: str) -> str:
    """Name of a table by the path of one of its shards: without suffix and shard number."""
    return _SHARD.sub("", name.removesuffix(PurePosixPath(name).suffix))


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Sort key by which ``page 2`` comes before ``page 10``."""
    # Numbers before names, and the text behind equal numbers: `2` and `02` stay apart, in a fixed order.
    parts = _DIGITS.split(name.casefold())
    return [(0, int(part), part) if i % 2 else (1, 0, part) for i, part in enumerate(parts)]


def is_url(text: str) -> bool:
    """Whether an input is a URL rather than a path."""
    return bool(_URL.match(text))


def base_name(uri: str) -> str:
    """The last part of a path or URL, without a query."""
    if is_url(uri):
        parts = urlsplit(uri)
        return PurePosixPath(parts.path).name or parts.netloc or "document"
    return PurePosixPath(uri.replace("\\", "/")).name or "document"


def located(message: str, where: str) -> str:
    """A message with the input as the user named it instead of the bare file name."""
    if where in message:
        return message
    rest = message.removeprefix(f"{base_name(where)} ")
    return f"{where} {rest}" if rest != message else f"{where}: {message}"
