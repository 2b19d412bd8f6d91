"""What a source is, whatever it is called: SHA-256 of its content, taken once as long as the file does not change."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.imaging.formats import HEAD_BYTES, SUFFIXES, FileFormat
from pagemill.sources.detect import format_of, format_of_head
from pagemill.sources.items import Item, RemoteFile
from pagemill.sources.remote import copy_to_disk, read_all, remote_version, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pagemill.sources.base import Catalogue

RACY_NS = 2_000_000_000
"""A file that was modified this shortly before it was read may change once more without its time of modification
showing it (file systems count in steps of up to 2 s), so its digest is not remembered. Git does the same for its index,
https://git-scm.com/docs/racy-git."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiedFile:
    """A file and its identity."""

    item: Item
    """With the content in the place of a remote file that had to be fetched for its digest."""
    digest: str
    """SHA-256, 64 hex digits."""
    file_format: FileFormat | None = None
    """None while nobody has looked. Of a remembered file it is what the suffix promises, which is right in so far as
    it tells PDF, TIFF, Arrow, Parquet and other images apart."""
    keep: object = None
    """Owner of a temporary file that holds the content."""


class StoppedError(Exception):
    """The digest is not wanted any more."""


class Identifier:
    """Tells what files are.

    Args:
        catalogue: Remembers digests of local files.
        max_bytes: Most bytes of an image that is fetched.
    """

    def __init__(self, catalogue: Catalogue, max_bytes: int) -> None:
        self.stopped = False
        """Set to end :meth:`identify` soon; it raises :class:`StoppedError` then."""
        self._catalogue = catalogue
        self._max_bytes = max_bytes

    def identify(self, item: Item) -> IdentifiedFile:
        """Take the digest of a file, or remember it.

        Raises:
            PagemillError: It cannot be fetched.
            OSError: It cannot be read.
            StoppedError: See :attr:`stopped`.
        """
        content = item.content
        if isinstance(content, Path):
            return self._identify_local(item, content)
        if isinstance(content, RemoteFile):
            return self._identify_remote(item, content)
        data = content or b""
        file_format = format_of_head(data[:HEAD_BYTES], item.name)
        return IdentifiedFile(item=item, digest=hashlib.sha256(data).hexdigest(), file_format=file_format)

    def remembered(self, item: Item) -> IdentifiedFile | None:
        """What is known of a file that has not changed since its digest was taken; None for any other.

        Raises:
            OSError: It is a local file that cannot be looked up.
        """
        if not isinstance(path := item.content, Path):
            return None
        status = os.stat(path)  # noqa: PTH116 - in the loop over all files of a resumed run
        digest = self._catalogue.remembered_digest(path.absolute(), status.st_size, status.st_mtime_ns)
        if digest is None:
            return None
        return IdentifiedFile(item=item, digest=digest, file_format=SUFFIXES.get(path.suffix.lower()))

    def _identify_local(self, item: Item, path: Path) -> IdentifiedFile:
        if (known := self.remembered(item)) is not None:
            return known
        promised = SUFFIXES.get(path.suffix.lower())
        started = time.time_ns()
        with FileIO(path) as file:
            status = os.fstat(file.fileno())
            head = file.read(HEAD_BYTES)
            digest = self._digest(file)
            after = os.fstat(file.fileno())
        file_format = format_of_head(head, item.name)
        unchanged = (after.st_size, after.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        settled = started - after.st_mtime_ns > RACY_NS
        # A remembered file is not opened again to see what it is, so its name has to tell.
        if unchanged and settled and promised and file_format and _kind(promised) == _kind(file_format):
            self._catalogue.remember_digest(path.absolute(), after.st_size, after.st_mtime_ns, digest)
        return IdentifiedFile(item=item, digest=digest, file_format=file_format)

    def _identify_remote(self, item: Item, file: RemoteFile) -> IdentifiedFile:
        """By what the filesystem says of the content; without that by the content, which PDFs and images need whole."""
        try:
            version = remote_version(file)
            if version.sha256:
                return IdentifiedFile(item=item, digest=version.sha256)
            if version.tag:
                return IdentifiedFile(item=item, digest=text_digest(f"{item.uri}\n{version.size}\n{version.tag}"))
            file_format = format_of(item)
            if file_format.is_table:  # read in pieces
                digest = text_digest(f"{item.uri}\n{version.size}")
                return IdentifiedFile(item=item, digest=digest, file_format=file_format)
            if file_format.is_image:
                data = read_all(file, self._max_bytes)
                digest = hashlib.sha256(data).hexdigest()
                return IdentifiedFile(item=replace(item, content=data), digest=digest, file_format=file_format)
            copy = copy_to_disk(file, ".pdf")
        except Exception as error:
            raise unreachable(item.uri, error) from error
        with FileIO(copy.path) as opened:
            digest = self._digest(opened)
        return IdentifiedFile(item=replace(item, content=copy.path), digest=digest, file_format=file_format, keep=copy)

    def _digest(self, file: FileIO) -> str:
        file.seek(0)
        return hashlib.file_digest(_StoppableFile(file, lambda: self.stopped), "sha256").hexdigest()


class _StoppableFile:
    """A file whose reading ends early when it is told to: a digest of a large one takes minutes."""

    def __init__(self, file: FileIO, stopped: Callable[[], bool]) -> None:
        self._file = file
        self._stopped = stopped

    def readable(self) -> bool:
        return self._file.readable()

    def readinto(self, buffer: bytearray) -> int:
        if self._stopped():
            raise StoppedError
        return self._file.readinto(buffer) or 0


def text_digest(text: str) -> str:
    """SHA-256 of a text, 64 hex digits: the identity of what cannot be read."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _kind(file_format: FileFormat) -> str:
    if file_format in (FileFormat.ARROW_FILE, FileFormat.ARROW_STREAM):
        return "arrow"
    return "image" if file_format.is_image and file_format is not FileFormat.TIFF else file_format
