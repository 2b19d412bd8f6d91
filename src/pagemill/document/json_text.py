"""JSON of what documents say, which may be no valid Unicode."""

from __future__ import annotations

import json
from typing import Any

import msgspec


def json_text(data: Any) -> str:
    """JSON text; lone surrogates (of broken PDFs, of file names that are no UTF-8) become U+FFFD."""
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(data), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
