"""Tables: from pixels and text lines to rows, columns and spans, and to and from HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagemill.tables.html import parse_table
    from pagemill.tables.open_tables import find_open_tables
    from pagemill.tables.recognize import find_ruled_tables, recognize_table
    from pagemill.tables.table import Cell, Table

__all__ = ["Cell", "Table", "find_open_tables", "find_ruled_tables", "parse_table", "recognize_table"]

_HOMES = {
    "Cell": "table",
    "Table": "table",
    "find_open_tables": "open_tables",
    "find_ruled_tables": "recognize",
    "parse_table": "html",
    "recognize_table": "recognize",
}


def __getattr__(name: str) -> Any:
    """Import on first use: OpenCV and lxml are slow to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
