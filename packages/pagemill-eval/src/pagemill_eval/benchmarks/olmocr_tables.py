"""Tables of a page as in olmOCR-bench: cells by row and column, and their headings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_MAX_COLUMNS = 1000
"""Maximum number of columns that a cell may span, as in HTML."""
_MAX_CELLS = 2**20
"""Maximum number of cells of a table with its spans filled in (about 200 MB); a larger one is runaway output and has no
cell."""


@dataclass(slots=True)
class Grid:
    """A table's cells by row and column, spans filled in, and the texts that head its columns and rows."""

    cells: list[list[str]]
    heading_rows: set[int] = field(default_factory=set)
    heading_columns: set[int] = field(default_factory=set)
    above: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Headings by column."""
    before: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Headings by row."""

    def pad(self) -> None:
        """Make all rows as long as the longest."""
        width = max((len(row) for row in self.cells), default=0)
        self.cells = [row + [""] * (width - len(row)) for row in self.cells]


def markdown_grids(markdown: str) -> list[Grid]:
    """Tables of lines with bars; their first row and column are headings."""
    grids = []
    block: list[str] = []
    for line in [*markdown.strip().split("\n"), ""]:
        if "|" in line:
            block.append(line)
            continue
        if len(block) >= 2 and (rows := _markdown_rows(block)):
            grid = Grid(rows, {0}, {0})
            grid.pad()
            grid.above.update({column: [cell] for column, cell in enumerate(grid.cells[0])})
            grid.before.update({row: [grid.cells[row][0]] for row in range(1, len(grid.cells))})
            grids.append(grid)
        block = []
    return grids


def _markdown_rows(lines: Sequence[str]) -> list[list[str]]:
    rows = []
    for line in lines:
        if line.strip() and not line.strip("- :|"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        cells = cells[1:] if not cells[0] else cells
        cells = cells[:-1] if cells and not cells[-1] else cells
        if cells:
            rows.append(cells)
    return rows


def html_grids(markdown: str) -> list[Grid]:
    """HTML tables."""
    if "<table" not in markdown.lower():
        return []
    from bs4 import BeautifulSoup

    grids = [_html_grid(table) for table in BeautifulSoup(markdown, "html.parser").find_all("table")]
    return [grid for grid in grids if grid.cells and grid.cells[0]]


def _html_grid(table: Any) -> Grid:
    rows = table.find_all("tr")
    grid = Grid([])
    if head := table.find("thead"):
        grid.heading_rows |= {rows.index(row) for row in head.find_all("tr")}
    filled: dict[tuple[int, int], str] = {}
    spanning_columns: dict[str, set[int]] = defaultdict(set)
    spanning_rows: dict[str, set[int]] = defaultdict(set)
    for number, row in enumerate(rows):
        if row.find("th"):
            grid.heading_rows.add(number)
        line: list[str] = []
        column = 0
        for cell in row.find_all(["th", "td"]):
            while (number, column) in filled:
                line.append(filled[number, column])
                column += 1
            for line_break in cell.find_all("br"):
                line_break.replace_with("\n")
            text = cell.get_text().strip()
            height = min(_span(cell, "rowspan"), len(rows) - number)
            width = min(_span(cell, "colspan"), _MAX_COLUMNS)
            line.append(text)
            if len(filled) + height * width > _MAX_CELLS:
                return Grid([])
            for down in range(height):
                for right in range(width):
                    if down or right:
                        # What is spanned downwards repeats the text, what is spanned sideways is empty.
                        filled[number + down, column + right] = text if not right else ""
            below = range(number + 1, number + height)
            if cell.name == "th":
                spanned = range(column, column + width)
                grid.heading_columns.update(spanned)
                grid.heading_rows.update(below)
                for each in spanned:
                    grid.above[each].append(text)
                if text and width > 1:
                    spanning_columns[text].update(spanned)
                if text and height > 1:
                    spanning_rows[text].update(range(number, number + height))
            elif column in grid.heading_columns:
                for each in below:
                    grid.before[each].append(text)
            column += width
        grid.cells.append(line)
    _spread(grid, spanning_columns, spanning_rows)
    grid.pad()
    return grid


def _spread(grid: Grid, columns: dict[str, set[int]], rows: dict[str, set[int]]) -> None:
    """Headings that span several columns or rows, and cells in heading columns, head what is beside them."""
    longest = max((len(row) for index, row in enumerate(grid.cells) if index not in grid.heading_rows), default=0)
    for text, spanned in columns.items():
        for column in range(min(spanned), longest):
            if text not in grid.above[column]:
                grid.above[column].append(text)
    for text, spanned in rows.items():
        for row in spanned:
            grid.before[row].append(text)
    for column in grid.heading_columns:
        for number, line in enumerate(grid.cells):
            if column < len(line) and line[column].strip():
                grid.before[number].append(line[column])


def _span(cell: Any, name: str) -> int:
    try:
        return max(1, int(cell.get(name, 1)))
    except ValueError:
        return 1
