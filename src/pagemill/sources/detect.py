"""What kind of file an input is."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from pagemill.errors import CorruptInputError, UnsupportedInputError
from pagemill.imaging.formats import HEAD_BYTES, FileFormat, sniff
from pagemill.sources.items import Item, RemoteFile
from pagemill.sources.remote import read_head, unreachable


def format_of(item: Item) -> FileFormat:
    """The format of a file by its first bytes.

    Raises:
        CorruptInputError: The file is empty.
        UnsupportedInputError: It is nothing that pagemill reads.
        NetworkError: It cannot be reached.
        OSError: It cannot be read.
    """
    content = item.content
    if isinstance(content, Path):
        with content.open("rb") as file:
            head = file.read(HEAD_BYTES)
    elif isinstance(content, RemoteFile):
        try:
            head = read_head(content, HEAD_BYTES)
        except Exception as error:
            raise unreachable(item.uri, error) from error
    else:
        head = (content or b"")[:HEAD_BYTES]
    if not head:
        raise CorruptInputError(f"{item.name!r} is empty (0 bytes)", remedy="Get the file again.")
    file_format = format_of_head(head, item.name)
    if file_format is None:
        raise UnsupportedInputError(
            f"{item.name!r} is no document that pagemill reads",
            remedy="Convert it to PDF, PNG, JPEG, WebP, BMP, TIFF, Arrow or Parquet; content decides, not the name.",
        )
    return file_format


def format_of_head(head: bytes, name: str) -> FileFormat | None:
    """The format of a file by its first ``HEAD_BYTES``; None for nothing that pagemill reads."""
    file_format = sniff(head)
    if file_format is None and head and PurePosixPath(name).suffix.lower() == ".pdf":
        return FileFormat.PDF  # PDFium finds and repairs more than the first bytes show
    return file_format
