"""JSON of document texts, which may be invalid Unicode."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_LINE_ENDS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that JSON may have as they are, at which many readers end a line."""


def json_bytes(data: Any) -> bytes:
    """JSON in UTF-8; lone surrogates (of broken PDFs, of file names that are no UTF-8) become U+FFFD."""
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(data), ensure_ascii=False, separators=(",", ":"))
        # In UTF-16 two halves of a character that stand together become that character; others become U+FFFD.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def json_text(data: Any) -> str:
    """The same as text on one line for every reader."""
    text = json_bytes(data).decode()
    for character, escaped in _LINE_ENDS.items():
        text = text.replace(character, escaped)
    return text
