"""Reading the two JSONL files: line by line, or the line at a place that the ledger names."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec

from pagemill.store.files import output_errors, reading_errors
from pagemill.store.records import decode_page
from pagemill.store.rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.document.page import PageResult

MAX_LINE_BYTES = 512 * 2**20
"""Longer lines are no records of ours; they are passed over without being held."""
_CHUNK_BYTES = 2**20


class Line(NamedTuple):
    """A line of a file."""

    number: int
    """From 1."""
    offset: int
    length: int
    data: bytes | None
    """Newline included; None for a line that is too long to be a record."""

    @property
    def crc(self) -> int | None:
        """CRC-32 of what it holds."""
        return None if self.data is None else zlib.crc32(self.data)

    def span(self) -> Span:
        """Where it is, and its CRC-32; of a line that is not too long."""
        return Span(self.offset, self.length, zlib.crc32(self.data or b""))

    def whole(self) -> bytes:
        """What it holds.

        Raises:
            ValueError: It is too long to be a record, or has no end.
        """
        if self.data is None:
            raise ValueError(f"longer than {MAX_LINE_BYTES} bytes")
        if not self.data.endswith(b"\n"):
            raise ValueError("cut short")
        return self.data


def open_lines(path: Path) -> BinaryIO:
    """Open a file of lines for reading; made when it is not there.

    Raises:
        OutputError: It cannot be made or opened.
    """
    with output_errors(path):
        path.touch()
        return path.open("rb")


def read_lines(stream: BinaryIO, end: int | None = None) -> Iterator[Line]:
    """All lines from the stream's start; a last one without a newline too.

    Args:
        stream: Opened for reading, at its start.
        end: Bytes to read at most; to the end of the file if None.
    """
    number = offset = 0
    left = end if end is not None else 2**63
    while left > 0 and (data := stream.readline(min(MAX_LINE_BYTES, left))):
        number += 1
        length = len(data)
        whole: bytes | None = data
        while (
            not data.endswith(b"\n") and length < left and (data := stream.readline(min(_CHUNK_BYTES, left - length)))
        ):
            length += len(data)
            whole = None
        yield Line(number, offset, length, whole)
        offset += length
        left -= length


def read_span(stream: BinaryIO, span: Span) -> bytes | None:
    """What is at a place of a file; None when it is not as it was written.

    Raises:
        OutputError: The file cannot be read.
    """
    offset, length, crc = span
    if not (isinstance(offset, int) and isinstance(length, int)):  # SQLite keeps anything in a column of numbers
        return None
    if offset < 0 or not 0 <= length <= MAX_LINE_BYTES:
        return None
    with reading_errors(Path(stream.name)):
        if offset + length > os.fstat(stream.fileno()).st_size:  # some file systems cannot even look that far
            return None
        stream.seek(offset)
        data = stream.read(length)
    return data if len(data) == length and zlib.crc32(data) == crc else None


def read_record(stream: BinaryIO, span: Span) -> PageResult | None:
    """The record at a place of ``ocr_results.jsonl``; None when it is not as it was written."""
    line = read_span(stream, span)
    try:
        return None if line is None else decode_page(line)
    except msgspec.DecodeError:
        return None
