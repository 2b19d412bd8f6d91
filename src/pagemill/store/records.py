"""Records: page results as lines of JSON, and compressed for storage."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import zstandard

from pagemill.document.json_text import json_bytes
from pagemill.document.page import PageResult

MAX_LINE_BYTES = 512 * 2**20
"""Upper bound of a line, so that a damaged record cannot make us allocate more."""
_LEVEL = 1
"""Level of zstd: 0.23 of a line of real pages; level 3 takes twice as long for the same, level 9 nine times."""

_decoder = msgspec.json.Decoder(PageResult)


class ParsedText(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``parsed_texts.jsonl``: the text of a page as it is embedded."""

    page_id: str
    page_idx: int
    doc_id: str
    text: str


def encode_line(record: PageResult | ParsedText) -> bytes:
    """One record as one line of JSON, newline included."""
    return json_bytes(record) + b"\n"


def decode_page(line: bytes) -> PageResult:
    """Read one line of ``ocr_results.jsonl``.

    Raises:
        msgspec.DecodeError: The line is not a page record.
    """
    return _decoder.decode(line)


class Compressor:
    """Compresses records, on one thread at a time; keeps its tables from one to the next."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)

    def compress(self, line: bytes) -> bytes:
        """A line as it is stored, without its newline."""
        return self._zstd.compress(line[:-1])


def decompress(data: bytes) -> bytes:
    """Decompress a line of :class:`Compressor`, newline included.

    Raises:
        ValueError: It is damaged.
    """
    try:
        # The frame announces its size, which is checked before anything is allocated.
        if zstandard.get_frame_parameters(data).content_size > MAX_LINE_BYTES:
            raise ValueError(f"longer than {MAX_LINE_BYTES} bytes")
        return zstandard.ZstdDecompressor().decompress(data) + b"\n"
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def text_line(page: PageResult, embedding_text: Callable[[PageResult], str]) -> bytes:
    """The line of ``parsed_texts.jsonl`` that belongs to a record."""
    text = embedding_text(page)
    return encode_line(ParsedText(page_id=page.page_id, page_idx=page.page_idx, doc_id=page.doc_id, text=text))
