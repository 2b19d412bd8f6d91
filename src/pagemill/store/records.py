"""Records: page results as lines of JSON, and compressed for storage."""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec

from pagemill.document.json_text import json_bytes
from pagemill.document.page import PageResult

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

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
        self._zstd = zstd.ZstdCompressor(
            options={zstd.CompressionParameter.compression_level: _LEVEL, zstd.CompressionParameter.checksum_flag: 1}
        )

    def compress(self, line: bytes) -> bytes:
        """A line as it is stored, without its newline."""
        # Without the newline, and as one frame: each record can be decompressed alone.
        return self._zstd.compress(line[:-1], self._zstd.FLUSH_FRAME)


def decompress(data: bytes) -> bytes:
    """Decompress a line of :class:`Compressor`, newline included.

    Raises:
        ValueError: It is damaged.
    """
    try:
        # The frame announces its size, which is checked before anything is allocated.
        size = zstd.get_frame_info(data).decompressed_size
        if size is None or size > MAX_LINE_BYTES:
            raise ValueError(f"of unknown length, or longer than {MAX_LINE_BYTES} bytes")
        frame = zstd.ZstdDecompressor()
        line = frame.decompress(data)
        if not frame.eof or frame.unused_data:
            raise ValueError("not one whole frame")
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    return line + b"\n"


def text_line(page: PageResult, embedding_text: Callable[[PageResult], str]) -> bytes:
    """The line of ``parsed_texts.jsonl`` that belongs to a record."""
    text = embedding_text(page)
    return encode_line(ParsedText(page_id=page.page_id, page_idx=page.page_idx, doc_id=page.doc_id, text=text))
