"""JSON of what documents say, which may be no valid Unicode."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_LINE_ENDS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that JSON may have as they are, at which many readers end a line."""


def json_text(data: Any) -> str:
    """JSON text on one line; lone surrogates (of broken PDFs, of file names that are no UTF-8) become U+FFFD."""
    try:
        text = msgspec.json.encode(data).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(data), ensure_ascii=False)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    for character, escaped in _LINE_ENDS.items():
        text = text.replace(character, escaped)
    return text
