"""Fields of a document: how near extracted values are to the true ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pagemill_eval.text import edit_distance


def field_scores(truth: Mapping[str, Any], reply: str | Mapping[str, Any]) -> dict[str, float]:
    """Similarity of each true field to the extracted one: 1 less the normalised edit distance, case-sensitive.

    There is no cut-off, so that this is not ANLS proper. Two empty values are equal, a missing value is empty, and
    fields that nobody asked for are ignored.

    Args:
        truth: Values by field; numbers count as their text.
        reply: Values by field, or the text of a model's answer, whose JSON may be damaged.

    """
    values = parse_fields(reply) if isinstance(reply, str) else reply
    return {name: 1.0 - edit_distance(_text(values.get(name)), _true_text(value)) for name, value in truth.items()}


def parse_fields(reply: str) -> dict[str, Any]:
    """The object in a model's answer: damaged JSON is repaired, a list of objects merged; empty if there is none."""
    try:
        value = json.loads(reply)
    except (ValueError, RecursionError):
        value = _repaired(reply)
    if isinstance(value, list):
        merged: dict[str, Any] = {}
        for each in value:
            if isinstance(each, dict):
                merged |= each
        return merged
    return value if isinstance(value, dict) else {}


def _repaired(reply: str) -> Any:
    from json_repair import loads

    try:
        return loads(reply)
    except (ValueError, RecursionError):
        return {}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _true_text(value: Any) -> str:
    return "" if value is None else str(value)
