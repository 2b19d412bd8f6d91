"""What both ways to find a grid hand over: cells with their words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.geometry import Box
    from pagemill.tables.words import TableWord


@dataclass(slots=True)
class GridCell:
    """A cell of a grid, with its words."""

    row: int
    column: int
    row_span: int = 1
    column_span: int = 1
    words: list[TableWord] = field(default_factory=list)
    box: Box | None = None
    """Box on the table's plane where rules tell; None for the words' own."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table's cells and how many rows at its top are header rows."""

    cells: Sequence[GridCell]
    header_rows: int


def text_rows(words: Sequence[TableWord], text_height: float) -> list[list[TableWord]]:
    """Group words into lines of text that run across the table, from top to bottom."""
    rows: list[list[TableWord]] = []
    middle = 0.0
    for word in sorted(words, key=lambda word: word.y):
        if rows and word.y - middle < 0.5 * text_height:
            rows[-1].append(word)
            middle += (word.y - middle) / len(rows[-1])
        else:
            rows.append([word])
            middle = word.y
    return rows


def is_number(text: str) -> bool:
    """Whether a cell's text is mostly figures (amounts, percentages, dates), or a mark that stands for one."""
    letters = sum(character.isalpha() for character in text)
    digits = sum(character.isdigit() for character in text)
    return digits > letters or (not letters and bool(text.strip()))
