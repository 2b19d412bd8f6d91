"""Detect that a file was changed since its digest was computed."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

import msgspec

from pagemill.errors import ChangedInputError, unreadable


class FileStamp(msgspec.Struct, frozen=True):
    """State of a file when its digest was computed."""

    path: Path
    digest: str
    """SHA-256, 64 hex digits."""
    size: int
    modified_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path, digest: str, status: os.stat_result) -> FileStamp:
        """From the status of the file before its digest was computed."""
        return cls(path, digest, status.st_size, status.st_mtime_ns, status.st_ino)

    def check(self) -> None:
        """Check that the file still has the digest.

        A file of the same size is read again if its modification time or inode differs: some network file systems
        assign new inodes, and a program may write without changing anything.

        Raises:
            ChangedInputError: The file was changed.
            InputError: It was deleted, or cannot be read.
        """
        try:
            status = os.stat(self.path)  # noqa: PTH116 - for every page
            now = (status.st_size, status.st_mtime_ns, status.st_ino)
            if now == (self.size, self.modified_ns, self.inode):
                return
            is_same = status.st_size == self.size and _digest(self.path, *now) == self.digest
        except OSError as error:
            raise unreadable(self.path.name, error) from error
        if not is_same:
            raise ChangedInputError(
                f"{self.path.name} was changed while it was being read",
                remedy="Run again when nothing is writing to it.",
            )


@lru_cache(maxsize=64)
def _digest(path: Path, size: int, modified_ns: int, inode: int) -> str:
    """The digest of a file in this state, computed once for all of its pages."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
