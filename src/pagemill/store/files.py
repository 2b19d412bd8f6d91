"""Atomic file writes, and the cause of a failed one."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pagemill.errors import OutputError, unwritable
from pagemill.whole_files import whole_file

NO_SPACE_REMEDY = "Free some space and run the same command again: it resumes where it stopped."
_MANY_FILES = 1_000
"""Files above which the whole system is synced instead of one file after the other. Not measured."""


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
        raise unwritable(
            path,
            error,
            remedy="Check the write permissions there, or choose another place.",
            no_space_remedy=NO_SPACE_REMEDY,
        ) from error


@contextlib.contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn the operating system's errors about reading ``path`` into pagemill's.

    Raises:
        OutputError: Any of them.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot read {path}: {error.strerror or error}",
            remedy="Check the permissions and that the disk is healthy.",
        ) from error


def encoded(text: str | bytes | Iterable[str]) -> Iterator[bytes]:
    """Text as the bytes of a file, piece by piece; lone surrogates, which UTF-8 cannot hold, become question marks."""
    if isinstance(text, bytes):
        yield text
        return
    for piece in (text,) if isinstance(text, str) else text:
        yield piece.encode("utf-8", "replace")


def write_whole(path: Path, chunks: Iterable[bytes], *, durable: bool = False) -> None:
    """Write a file under a temporary name beside ``path``, then rename it; a failure leaves no file behind.

    Args:
        path: The file.
        chunks: Its content.
        durable: Wait until the content is on the disk before the old file is replaced.

    Raises:
        OutputError: The file cannot be written; NoSpaceError when the disk is full.
    """
    with output_errors(path), whole_file(path, durable=durable) as stream:
        stream.writelines(chunks)


def size_of(path: Path) -> int:
    """Bytes of a file; 0 if it does not exist.

    Raises:
        OutputError: The directory cannot be read.
    """
    with output_errors(path):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0


def sync(path: Path, flags: int = os.O_RDWR) -> None:
    """Wait until the content of a file is on the disk; does nothing if the file does not exist.

    Raises:
        OutputError: The disk reports an error.
    """
    with output_errors(path), contextlib.suppress(FileNotFoundError):
        fd = os.open(path, flags)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def sync_files(paths: Collection[Path]) -> None:
    """Wait until the content of all these files is on the disk.

    Raises:
        OutputError: The disk reports an error.
    """
    # On other systems sync(2) returns before everything is written.
    if len(paths) > _MANY_FILES and sys.platform == "linux":
        os.sync()
        return
    for path in paths:
        sync(path)


def sync_directory(path: Path) -> None:
    """Wait until the entries of a directory are on the disk: a new file can be lost although its content is there.

    Raises:
        OutputError: The disk reports an error.
    """
    sync(path, os.O_RDONLY)
