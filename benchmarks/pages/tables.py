"""Tables by seed: cells with spans, drawn with all rules, some, none, or rules by hand."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from pages.languages import Language

STYLES = ("ruled", "half-ruled", "unruled", "hand-ruled")


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; its text may be empty."""

    text: str
    rows: int = 1
    columns: int = 1
    head: bool = False
    number: bool = False


def make_table(words: Language, random: Random, columns: int, rows: int, spans: bool) -> list[list[Cell]]:
    """Rows of cells: a head of one or two rows, then rows that start with a name.

    Args:
        words: The language.
        random: The page's source of chance.
        columns: Number of columns, at least 3.
        rows: Number of body rows.
        spans: Whether some cells span columns (in the head) or rows (in the first column).
    """
    heads = random.sample(words.columns, min(columns, len(words.columns)))
    grid: list[list[Cell]] = []
    if spans and columns >= 4 and random.random() < 0.7:  # a group of columns under one head
        width = 2 if columns < 6 else 3
        first = random.randint(1, columns - width)
        upper = [Cell(heads[i], rows=2, head=True) for i in range(first)]
        upper.append(Cell(random.choice(words.headings), columns=width, head=True))
        upper += [Cell(heads[i], rows=2, head=True) for i in range(first + width, columns)]
        grid += [upper, [Cell(heads[i], head=True) for i in range(first, first + width)]]
    else:
        grid.append([Cell(text, head=True) for text in heads])

    remark_column = columns - 1 if random.random() < 0.5 else None
    names = random.sample(words.items, min(rows, len(words.items)))
    row = 0
    while row < rows:
        group = random.choice((1, 2, 3)) if spans and random.random() < 0.35 else 1
        group = min(group, rows - row)
        for inner in range(group):
            cells: list[Cell] = []
            if inner == 0:
                cells.append(Cell(names[row % len(names)], rows=group))
            for column in range(1, columns):
                if column == remark_column:
                    cells.append(Cell(random.choice(words.remarks)))
                elif random.random() < 0.06:
                    cells.append(Cell("", number=True))
                else:
                    cells.append(Cell(_number(random, column), number=True))
            grid.append(cells)
        row += group
    return grid


def _number(random: Random, column: int) -> str:
    match column % 3:
        case 0:
            return f"{random.randint(1, 99)}.{random.randint(0, 9)}%"
        case 1:
            return str(random.randint(10, 9999))
        case _:
            return f"{random.randint(1, 99)}.{random.randint(10, 99)}"


def true_html(grid: list[list[Cell]]) -> str:
    """The table as a scorer expects it: rows, cells and spans alone."""
    rows = []
    for cells in grid:
        row = ""
        for cell in cells:
            spans = f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
            spans += f' colspan="{cell.columns}"' if cell.columns > 1 else ""
            row += f"<td{spans}>{html.escape(cell.text, quote=False)}</td>"
        rows.append(f"<tr>{row}</tr>")
    return f"<table>{''.join(rows)}</table>"


def drawn_html(grid: list[list[Cell]], style: str, random: Random, attributes: str) -> str:
    """The table as the browser draws it.

    Args:
        grid: Rows of cells.
        random: The page's source of chance.
        style: One of `STYLES`. The page's script draws the rules of ``hand-ruled``.
        attributes: Attributes of the table element.
    """
    kind = style
    if style == "half-ruled":
        kind += random.choice((" book", " lines", " open"))
    if random.random() < 0.3 and style in ("ruled", "unruled"):
        kind += " shaded"
    rows = []
    for cells in grid:
        row = ""
        for cell in cells:
            name = "th" if cell.head else "td"
            spans = f' rowspan="{cell.rows}" colspan="{cell.columns}"'
            number = ' class="number"' if cell.number else ""
            row += f"<{name}{spans}{number}>{html.escape(cell.text)}</{name}>"
        rows.append(f"<tr{' class=head' if cells[0].head else ''}>{row}</tr>")
    return f'<table class="grid {kind}" {attributes}>{"".join(rows)}</table>'
