"""Writing files that are either whole or not there, and telling apart why a write failed."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from pagemill.errors import NoSpaceError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

TEMPORARY_SUFFIX = ".pagemill-tmp"

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors about ``path`` into pagemill's.

    Raises:
        NoSpaceError: The disk is full or over quota.
        OutputError: Anything else that the operating system refuses.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _NO_SPACE:
            raise NoSpaceError(
                f"cannot write {path}: {reason}",
                remedy="Free some space, or choose another directory with -o. What was written so far is valid.",
            ) from error
        raise OutputError(
            f"cannot write {path}: {reason}", remedy="Choose a directory that you may write to with -o."
        ) from error


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file under a temporary name beside ``path``, then rename it; on any failure nothing is left behind.

    Raises:
        OutputError: The file cannot be written; NoSpaceError when the disk is full.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        with output_errors(path):
            with temporary.open("wb") as stream:
                stream.writelines(chunks)
            temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


class AppendFile:
    """A file that grows by whole records: a record that does not fit is taken back.

    Args:
        path: File to create; it must not exist.

    Raises:
        OutputError: The file cannot be created; NoSpaceError when the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with output_errors(path):
            self._fd = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666
            )
        self.size = 0
        self._closed = False

    def append(self, record: bytes) -> int:
        """Append one record and return the offset at which it starts.

        Raises:
            OutputError: The record could not be written whole; the file is then as it was before.
        """
        start = self.size
        with output_errors(self.path):
            try:
                view = memoryview(record)
                while view:  # one call, as a rule: only a nearly full disk writes less than it is asked to
                    view = view[os.write(self._fd, view) :]
            except BaseException:
                self.truncate(start)
                raise
        self.size = start + len(record)
        return start

    def truncate(self, size: int) -> None:
        """Cut the file back to ``size`` bytes (which needs no space)."""
        os.ftruncate(self._fd, size)
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        """Read one record back."""
        with output_errors(self.path):
            os.lseek(self._fd, offset, os.SEEK_SET)
            return os.read(self._fd, length)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if not self._closed:
            self._closed = True
            os.close(self._fd)
