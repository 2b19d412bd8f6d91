"""What a benchmark gives back."""

from __future__ import annotations

from dataclasses import dataclass

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Figures under a title."""

    title: str
    columns: tuple[str, ...]
    """The first names the row; the others say their unit."""
    rows: tuple[tuple[Cell, ...], ...]
