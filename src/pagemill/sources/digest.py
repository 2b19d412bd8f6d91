"""Identity of sources: SHA-256 of the content, computed once as long as the file does not change."""

from __future__ import annotations

import hashlib
import os
import time
from io import FileIO
from pathlib import Path, PurePosixPath

import msgspec
from msgspec.structs import replace

from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import KnownSource, text_digest
from pagemill.errors import CorruptInputError, PagemillError, UnsupportedInputError
from pagemill.imaging.formats import HEAD_BYTES, IMAGES, FileFormat, foreign_format, is_document, promised, sniff
from pagemill.late import re
from pagemill.sources.items import Item, RemoteFile
from pagemill.sources.remote import copy_to_disk, read_all
from pagemill.sources.stamp import FileStamp

_CHUNK = 2**20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TAGS = (
    *("blob_id", "xet_hash", "sha", "ETag", "etag", "e_tag", "Content-MD5", "Digest", "md5Hash", "content_md5"),
    *("checksum", "generation", "VersionId", "version_id", "LastModified", "last_modified", "Last-Modified"),
    *("updated", "mtime", "modified", "modificationTime", "modify", "created"),
)
"""Fields of fsspec filesystems that change with the content of a file: digests, then versions, then times."""
RACY_NS = 2_000_000_000
"""A file that was modified this shortly before it was read may change once more without its time of modification
showing it (file systems count in steps of up to 2 s), so its digest is not remembered. Git does the same for its index,
https://git-scm.com/docs/racy-git."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the input and its identity."""

    item: Item
    """A remote file that had to be fetched for its digest is replaced by its content."""
    digest: str
    """SHA-256, 64 hex digits."""
    file_format: FileFormat | None = None
    """None if not determined yet. For a remembered file it is that of its suffix, which is only reliable as a group:
    PDF, TIFF, Arrow, Parquet or another image."""
    stamp: FileStamp | None = None
    """Detects changes of a local file."""
    keep: object = None
    """Owner of a temporary file that holds the content."""
    known: KnownSource = msgspec.field(default_factory=KnownSource)
    """The catalogue's entry, once registered."""
    error: PagemillError | None = None
    """Error of a file that cannot be read at all."""
    skip: str | None = None
    """Reason for skipping its pages."""

    @property
    def document_key(self) -> str:
        """Key of the document, stable across runs."""
        return self.digest if self.known.copy == 1 else f"{self.digest}+{self.known.copy}"


class StoppedError(Exception):
    """The digest is no longer needed."""


class Identifier:
    """Computes or remembers the identity of files.

    Args:
        catalogue: Remembers digests of local files.
        max_bytes: Most bytes of an image that is fetched.
    """

    def __init__(self, catalogue: Catalogue, max_bytes: int) -> None:
        self.stopped = False
        """Set to make :meth:`identify` raise :class:`StoppedError` soon."""
        self._catalogue = catalogue
        self._max_bytes = max_bytes

    def identify(self, item: Item) -> Source:
        """Compute the digest of a file, or look it up.

        Raises:
            StoppedError: See :attr:`stopped`.
            Exception: It cannot be read; :func:`pagemill.sources.intake.input_error` converts it.
        """
        content = item.content
        if isinstance(content, Path):
            return self._identify_local(item, content)
        if isinstance(content, RemoteFile):
            return self._identify_remote(item, content)
        data = content or b""
        file_format = _format_of_head(data, item.name)
        return Source(item=item, digest=hashlib.sha256(data).hexdigest(), file_format=file_format)

    def _identify_local(self, item: Item, path: Path) -> Source:
        status = os.stat(path)  # noqa: PTH116 - in the loop over all files of a resumed run
        expected = promised(path)
        known = self._catalogue.remembered_digest(path.absolute(), status.st_size, status.st_mtime_ns)
        if known is not None:
            return Source(item=item, digest=known, file_format=expected, stamp=FileStamp.of(path, known, status))
        # Before the content is read: what changes the file from now on has a later time of modification.
        started = time.time_ns()
        with FileIO(path) as file:
            head = file.read(HEAD_BYTES)
            digest = self._digest(file)
            after = os.fstat(file.fileno())
        file_format = _format_of_head(head, item.name)
        unchanged = (after.st_size, after.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        settled = started - after.st_mtime_ns > RACY_NS
        # A remembered file is not opened again for its format, so its suffix must agree with its content.
        if unchanged and settled and expected and file_format and _kind(expected) == _kind(file_format):
            self._catalogue.remember_digest(path.absolute(), after.st_size, after.st_mtime_ns, digest)
        return Source(item=item, digest=digest, file_format=file_format, stamp=FileStamp.of(path, digest, status))

    def _identify_remote(self, item: Item, file: RemoteFile) -> Source:
        """Identify by a digest or version from the filesystem; otherwise by content, which is fetched."""
        info = file.filesystem.info(file.path)
        large = info.get("lfs")  # where the Hub keeps the digest of a large file
        sha256 = (large.get("sha256") if isinstance(large, dict) else getattr(large, "sha256", None)) or ""
        # Of the content itself: a local copy of the file is recognized as the same.
        if _SHA256.fullmatch(sha256):
            return Source(item=item, digest=sha256)
        tag = next((f"{name}={info[name]}" for name in _TAGS if info.get(name)), None)
        by_address = text_digest(f"{item.uri}\n{info.get('size')}\n{tag}")
        # Not the digest of the content, but it changes with it, and costs no download.
        if tag is not None:
            return Source(item=item, digest=by_address)
        file_format = format_of(item)
        if file_format.is_table:  # too large to fetch as a whole: shards are read in parts
            return Source(item=item, digest=by_address, file_format=file_format)
        if file_format.is_image:
            return self.identify(replace(item, content=read_all(file, self._max_bytes)))
        copy = copy_to_disk(file, self._catalogue.temporary)
        return replace(self.identify(replace(item, content=copy.path)), keep=copy)

    def _digest(self, file: FileIO) -> str:
        digest = hashlib.sha256()
        file.seek(0)
        while chunk := file.read(_CHUNK):
            if self.stopped:  # a large file takes minutes
                raise StoppedError
            digest.update(chunk)
        return digest.hexdigest()


def format_of(item: Item) -> FileFormat:
    """The format of a file by its first bytes.

    Raises:
        CorruptInputError: The file is empty.
        UnsupportedInputError: It is nothing that pagemill reads.
        Exception: It cannot be read.
    """
    content = item.content
    if isinstance(content, Path):
        with content.open("rb") as file:
            head = file.read(HEAD_BYTES)
    elif isinstance(content, RemoteFile):
        head = content.filesystem.cat_file(content.path, start=0, end=HEAD_BYTES)
    else:
        head = content or b""
    if not head:
        raise CorruptInputError(f"{item.name!r} is empty (0 bytes)", remedy="Get the file again.")
    file_format = _format_of_head(head, item.name)
    if file_format is None:
        raise _unsupported(head, item.name)
    return file_format


def _unsupported(head: bytes, name: str) -> UnsupportedInputError:
    kind = foreign_format(head, PurePosixPath(name).suffix.lower())
    if kind is None:
        return UnsupportedInputError(
            f"{name!r} is not a document that pagemill reads",
            remedy="Convert it to PDF, PNG, JPEG, WebP, BMP, TIFF, Arrow or Parquet; content decides, not the name.",
        )
    remedy = "Unpack it." if kind == ".zip" else f"Convert it to {'PNG' if kind in IMAGES else 'PDF'}."
    return UnsupportedInputError(f"cannot read {kind} yet", remedy=remedy)


def _format_of_head(head: bytes, name: str) -> FileFormat | None:
    """The format of a file by its first bytes; None for nothing that pagemill reads."""
    file_format = sniff(head[:HEAD_BYTES])
    if file_format is None and head and PurePosixPath(name).suffix.lower() == ".pdf":
        return FileFormat.PDF  # PDFium also opens files with other data before the header
    if file_format is None and head and is_document(head[:HEAD_BYTES], name):
        return FileFormat.DOCUMENT
    return file_format


def _kind(file_format: FileFormat) -> str:
    if file_format in (FileFormat.ARROW_FILE, FileFormat.ARROW_STREAM):
        return "arrow"
    return "image" if file_format.is_image and file_format is not FileFormat.TIFF else file_format
