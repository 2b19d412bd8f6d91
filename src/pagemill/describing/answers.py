"""Convert the untrusted values of a model's answer to a description: bounded, in linear time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pagemill.document.page import Description

MAX_SUMMARY, MAX_KEYWORD, MAX_KEYWORDS = 2_000, 80, 16
MAX_ROWS, MAX_COLUMNS, MAX_CELL = 200, 30, 200
_LONGEST = 20_000
"""Maximum characters of a value that are examined."""
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_CUT = " …"
_UNSEEN = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]+")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "language": {"type": "string"},
        "summary": {"type": "string", "minLength": 1},
        "keywords": {"type": "array", "items": {"type": "string"}, "maxItems": 12},
        "data": {
            "anyOf": [
                {"type": "array", "items": {"type": "array", "items": {"type": "string"}}, "maxItems": 40},
                {"type": "null"},
            ]
        },
    },
    "required": ["language", "summary", "keywords", "data"],
    "additionalProperties": False,
}  # fmt: skip
"""Schema of an answer."""


def problems(values: Mapping[str, Any]) -> list[str]:
    """Problems of an answer that cause a retry."""
    found = [] if _line(values.get("summary"), MAX_SUMMARY) else ["the answer has no summary"]
    if not isinstance(values.get("keywords"), list):
        found.append("the answer has no list of keywords")
    return found


def read_description(values: Mapping[str, Any]) -> Description | None:
    """The description in an answer, within its bounds; None where there is no summary."""
    summary = _line(values.get("summary"), MAX_SUMMARY)
    if not summary:
        return None
    left_out = [f"the summary after {MAX_SUMMARY:,} characters"] if _is_cut(summary, MAX_SUMMARY) else []
    given = values.get("keywords")
    keywords = [_line(word, MAX_KEYWORD) for word in (given if isinstance(given, list) else [])[: 4 * MAX_KEYWORDS]]
    distinct = list({word.casefold(): word for word in reversed(keywords) if word}.values())[::-1]
    if len(distinct) > MAX_KEYWORDS or (isinstance(given, list) and len(given) > 4 * MAX_KEYWORDS):
        left_out.append(f"keywords after the first {MAX_KEYWORDS}")
    if any(_is_cut(word, MAX_KEYWORD) for word in distinct[:MAX_KEYWORDS]):
        left_out.append(f"the ends of keywords of over {MAX_KEYWORD} characters")
    language = values.get("language")
    is_language = isinstance(language, str) and _LANGUAGE.fullmatch(language[:40])
    return Description(
        summary=summary,
        keywords=tuple(distinct[:MAX_KEYWORDS]),
        chart=_table(values.get("data"), left_out),
        language=str(language) if is_language else "",
        left_out=tuple(left_out),
    )


def _table(data: Any, left_out: list[str]) -> tuple[tuple[str, ...], ...] | None:
    """Rows of equal length; None for what is not a table of at least two rows and columns. Adds what it leaves out."""
    given = data if isinstance(data, list) else []
    tabular = [row for row in given if isinstance(row, list)]
    rows = [[_line(cell, MAX_CELL) for cell in row[:MAX_COLUMNS]] for row in tabular[:MAX_ROWS]]
    rows = [row for row in rows if any(row)]
    width = max(map(len, rows), default=0)
    if len(rows) < 2 or width < 2:
        left_out += ["the data, which are not a table of two rows and columns"] if data else []
        return None
    if len(tabular) < len(given):
        left_out.append("rows of the data that are not lists")
    if any(isinstance(cell, list | dict | bool) for row in tabular[:MAX_ROWS] for cell in row[:MAX_COLUMNS]):
        left_out.append("cells of the data that are not texts or numbers")
    if len(tabular) > MAX_ROWS:
        left_out.append(f"rows of the data after the first {MAX_ROWS}")
    if any(len(row) > MAX_COLUMNS for row in tabular[:MAX_ROWS]):
        left_out.append(f"columns of the data after the first {MAX_COLUMNS}")
    if any(_is_cut(cell, MAX_CELL) for row in rows for cell in row):
        left_out.append(f"the ends of cells of over {MAX_CELL} characters")
    return tuple(tuple(row + [""] * (width - len(row))) for row in rows)


def _is_cut(text: str, longest: int) -> bool:
    """Whether :func:`_line` may have cut a text."""
    return text.endswith(_CUT) and len(text) >= longest - 1


def _line(value: Any, longest: int) -> str:
    """A text or number on one line of bounded length; empty for other values."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, int) and abs(value) > 10**18:  # as text it takes quadratic time
        return ""
    text = _UNSEEN.sub(" ", str(value)[:_LONGEST]).strip()
    return text if len(text) <= longest else text[: longest - len(_CUT)].rstrip() + _CUT
