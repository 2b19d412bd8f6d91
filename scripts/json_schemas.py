"""JSON Schemas of what pagemill writes. ``python scripts/json_schemas.py`` regenerates the published files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from pagemill.document.page import PageResult
from pagemill.export.docjson import DocJSON

_PUBLISHED = {"record.schema.json": PageResult, "docjson.schema.json": DocJSON}


def schemas() -> dict[str, dict[str, Any]]:
    """File name to JSON Schema (2020-12) of a line of ``ocr_results.jsonl`` and of a document's DocJSON."""
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(struct)}
        for name, struct in _PUBLISHED.items()
    }


def as_text(schema: dict[str, Any]) -> str:
    """A schema as it is published."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    folder = Path(__file__).parents[1] / "docs/schema"
    for file_name, content in schemas().items():
        (folder / file_name).write_text(as_text(content), encoding="utf-8")
