"""Files inside of a ZIP archive, as bytes. Their names only name documents: none is used as a path."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pagemill.errors import CorruptInputError, EncryptedError, PagemillError, TooLargeError
from pagemill.readers.packages import (
    DAMAGED,
    ENCRYPTED,
    MOST_ENTRIES,
    MOST_MEMBER,
    MOST_UNPACKED,
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
    """What may be unpacked of a file, and of the files inside of it, all together."""

    files: int = MOST_ENTRIES
    size: int = MOST_UNPACKED

    def spend(self, size: int) -> None:
        """Take one file of so many bytes from it.

        Raises:
            TooLargeError: It has not so much left.
        """
        self.files -= 1
        self.size -= size
        if self.files < 0 or self.size < 0:
            limits = f"over {MOST_ENTRIES:,} files, or over {MOST_UNPACKED // 2**20} MB"
            raise TooLargeError(f"unpacked, it has {limits}", remedy="Unpack it.")


def of_archive(path: Path, budget: Budget) -> Iterator[Member]:
    """What an archive holds, hidden files left out, as in a folder.

    Raises:
        PagemillError: It is damaged, or exceeds the budget.
    """
    with opened(path) as archive:
        for entry in archive.infolist():
            if not entry.is_dir() and not _is_hidden(entry.filename):
                yield _unpacked(archive, entry, budget)


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, budget: Budget) -> Member:
    name, most = entry.filename, MOST_MEMBER
    budget.spend(0)
    if entry.flag_bits & ENCRYPTED:
        return Member(name, error=EncryptedError(f"{name!r} is encrypted", remedy="Unpack the archive."))
    try:
        with archive.open(entry) as file:
            data = file.read(min(most, budget.size) + 1)
    except DAMAGED as error:
        return Member(name, error=CorruptInputError(f"{name!r} is damaged: {error}", remedy="Get the archive again."))
    budget.size -= len(data)
    if budget.size < 0:
        budget.spend(0)
    if len(data) > most:
        reason = f"unpacked, {name!r} has over {most // 2**20} MB"
        return Member(name, error=TooLargeError(reason, remedy="Unpack the archive."))
    return Member(name, data)


def _is_hidden(name: str) -> bool:
    return any(part != ".." and part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)
