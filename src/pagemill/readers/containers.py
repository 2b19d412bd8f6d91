"""Files inside of a ZIP archive, as bytes. Their names only name documents: none is used as a path."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pagemill.errors import CorruptInputError, EncryptedError, PagemillError, TooLargeError
from pagemill.imaging.formats import FileFormat, promised
from pagemill.readers.packages import (
    DAMAGED,
    ENCRYPTED,
    MOST_ENTRIES,
    MOST_MEMBER,
    MOST_UNPACKED,
    UNLISTED,
    has_unlisted,
    opened,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A file inside of another one."""

    name: str
    data: bytes = field(default=b"", repr=False)
    error: PagemillError | None = None
    """Why it cannot be read."""


@dataclass(slots=True)
class Budget:
    """Limits for unpacking a file, including the files inside it."""

    files: int = MOST_ENTRIES
    size: int = MOST_UNPACKED

    def spend(self, size: int) -> None:
        """Subtract one file of this size.

        Raises:
            TooLargeError: It has not so much left.
        """
        self.files -= 1
        self.size -= size
        if self.files < 0 or self.size < 0:
            limits = f"{MOST_ENTRIES:,} files or {MOST_UNPACKED // 2**20} MB"
            raise TooLargeError(f"unpacked, its contents exceed {limits}", remedy="Unpack it.")


def of_archive(path: Path, budget: Budget, *, is_package: bool) -> Iterator[Member]:
    """The files of an archive, without hidden ones, as in a folder.

    Args:
        path: The archive.
        budget: Limits for unpacking it.
        is_package: Whether it is a document itself: then only embedded documents are returned.

    Raises:
        PagemillError: It is damaged, or exceeds the budget.
    """
    with opened(path) as archive:
        for entry in archive.infolist():
            is_folder = entry.is_dir() and not entry.file_size
            if not (is_folder or _is_hidden(entry.filename) or (is_package and not _is_beside(entry.filename))):
                yield _unpacked(archive, entry, budget)
        if has_unlisted(archive) and not is_package:
            raise CorruptInputError(UNLISTED, remedy="Unpack it with a program that repairs archives.")


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> Member:
    name, most = entry.filename, MOST_MEMBER
    budget.spend(0)
    if entry.flag_bits & ENCRYPTED:
        return Member(name, error=EncryptedError(f"{name!r} is encrypted", remedy="Unpack the archive."))
    try:
        with archive.open(entry) as file:
            # One byte more than is allowed: the size in the directory is a claim, which an archive bomb makes small.
            data = file.read(min(most, budget.size) + 1)
    except DAMAGED as error:
        return Member(name, error=CorruptInputError(f"{name!r} is damaged: {error}", remedy="Get the archive again."))
    budget.size -= len(data)
    if budget.size < 0:
        budget.spend(0)
    if len(data) > most:
        reason = f"unpacked, {name!r} is over {most // 2**20} MB"
        return Member(name, error=TooLargeError(reason, remedy="Unpack the archive."))
    return Member(name, data)


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name).parts
    # macOS adds a folder of this name with its own metadata to each archive.
    return any(part.startswith((".", "__MACOSX")) and not part.startswith("..") for part in parts)


def _is_beside(name: str) -> bool:
    """Whether a member of an Office file or a book is a document that is none of its parts."""
    path = PurePosixPath(name)
    is_part = name.partition("/")[0] in ("word", "ppt", "xl") or path.suffix.lower() in (".html", ".htm", ".xhtml")
    return promised(path) is FileFormat.DOCUMENT and not is_part
