"""The figures of a benchmark, and how they are printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pagemill.profiling.machine import machine

_WIDTH = 14
"""Width of a column of figures."""

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Figures under a title."""

    title: str
    columns: tuple[str, ...]
    """The first names the row; the others give their unit."""
    rows: tuple[tuple[Cell, ...], ...]


def show(benchmark: str, tables: Sequence[FigureTable], as_json: bool, *, notes: Sequence[str] = ()) -> None:
    """Print the figures, as tables or as one JSON object that also describes the machine."""
    if as_json:
        answer = {
            "benchmark": benchmark,
            "machine": machine(),
            "tables": [
                {"title": table.title, "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows]}
                for table in tables
            ],
            "notes": list(notes),
        }
        print(json.dumps(answer, indent=2))
        return
    for table in tables:
        if table.rows:
            print("\n".join([table.title, *_lines(table), ""]))
    for note in notes:
        print(note)


def _lines(table: FigureTable) -> list[str]:
    texts = [table.columns, *([_text(cell) for cell in row] for row in table.rows)]
    width = max(len(row[0]) for row in texts)
    return [row[0].ljust(width) + "".join(cell.rjust(_WIDTH) for cell in row[1:]) for row in texts]


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:,.2f}" if isinstance(cell, float) else str(cell)
