"""Pages to lines of JSON and back."""

from __future__ import annotations

from typing import Any

import msgspec

from pagemill.document.page import PageResult

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(PageResult)


class ParsedText(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``parsed_texts.jsonl``: the text of a page as it is embedded."""

    page_id: str
    page_idx: int
    doc_id: str
    text: str


_text_decoder = msgspec.json.Decoder(ParsedText)


def encode_line(record: PageResult | ParsedText) -> bytes:
    """One record as one line of UTF-8 JSON, newline included.

    Lone surrogates, which UTF-8 cannot hold but broken PDFs contain, become U+FFFD.
    """
    try:
        return _encoder.encode(record) + b"\n"
    except UnicodeEncodeError:
        return _encoder.encode(_without_surrogates(msgspec.to_builtins(record))) + b"\n"


def decode_page(line: bytes) -> PageResult:
    """Read one line of ``ocr_results.jsonl``.

    Raises:
        msgspec.DecodeError: The line is no page record.
    """
    return _decoder.decode(line)


def decode_text(line: bytes) -> ParsedText:
    """Read one line of ``parsed_texts.jsonl``.

    Raises:
        msgspec.DecodeError: The line is no text of a page.
    """
    return _text_decoder.decode(line)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(item) for item in value]
    return value
