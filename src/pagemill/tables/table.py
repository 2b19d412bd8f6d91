"""A table as cells on a grid, and its HTML and Markdown."""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.document.marks import inline_html
from pagemill.document.page import Span
from pagemill.document.shown import count
from pagemill.document.spans import carried
from pagemill.late import re

if TYPE_CHECKING:
    import pandas
    import polars

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_MARKUP = re.compile(r"<[A-Za-z/!?]|&#?[0-9A-Za-z]{1,31};|\]\(|[|\n\\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell: the grid slots it covers, and its text."""

    row: int
    """First row, from 0."""
    column: int
    """First column, from 0."""
    row_span: int = 1
    column_span: int = 1
    text: str = ""
    """Plain text; a newline is a line break that is meant."""
    spans: tuple[Span, ...] = ()
    """Inline marks of the text."""
    header: bool = False

    def to_html(self, content: str | None = None) -> str:
        """The cell as HTML, of its text or of other markup."""
        tag = "th" if self.header else "td"
        spans = f' rowspan="{self.row_span}"' if self.row_span > 1 else ""
        spans += f' colspan="{self.column_span}"' if self.column_span > 1 else ""
        if content is None:
            text = clean_text(self.text)
            content = inline_html(text, carried(self.spans, self.text, text)).replace("\n", "<br>")
        return f"<{tag}{spans}>{content}</{tag}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Cells that tile a grid: every slot belongs to exactly one cell; cells are in reading order."""

    cells: tuple[Cell, ...]
    rows: int
    columns: int
    caption: str = ""
    """The ``caption`` of its HTML, as plain text on one line."""
    line_indices: tuple[int, ...] = ()
    """Indices of the lines, as passed to recognition, that the table holds; ascending."""
    method: str = ""
    """How its structure was found: by ``rules``, by the ``text``'s places, or the name of a model."""

    def __repr__(self) -> str:
        caption = f", {self.caption[:40]!r}" if self.caption else ""
        return f"Table({count(self.rows, 'row')}, {count(self.columns, 'column')}{caption})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.to_html()

    def _repr_markdown_(self) -> str:
        """What a notebook shows that renders Markdown alone."""
        return self.to_markdown() or self.to_html()

    @property
    def header_rows(self) -> int:
        """How many rows at the top consist of header cells alone."""
        body = [cell.row for cell in self.cells if not cell.header]
        return min(body, default=self.rows)

    def grid(self) -> list[list[str]]:
        """The texts row by row, each cell in all the slots that it covers."""
        grid = [[""] * self.columns for _ in range(self.rows)]
        for cell in self.cells:
            for row in range(cell.row, cell.row + cell.row_span):
                grid[row][cell.column : cell.column + cell.column_span] = [cell.text] * cell.column_span
        return grid

    def to_csv(self, path: str | PathLike[str] | None = None) -> str:
        """The grid as CSV, which is also written to ``path``. What a spreadsheet would compute gets an apostrophe.

        Raises:
            OSError: The file cannot be written.
        """
        from pagemill.tables.frames import csv_text

        text = csv_text(self.grid())
        if path is not None:
            Path(path).write_bytes(text.encode("utf-8", "replace"))
        return text

    def to_pandas(self) -> pandas.DataFrame:
        """The grid as a data frame of text. Header rows name the columns, joined by `` / `` where there are several.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        from pagemill.tables.frames import data_frame

        return data_frame("pandas", self.grid(), self.header_rows)

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of polars; see :meth:`to_pandas`.

        Raises:
            MissingDependencyError: polars is not installed.
        """
        from pagemill.tables.frames import data_frame

        frame: polars.DataFrame = data_frame("polars", self.grid(), self.header_rows)
        return frame

    def to_html(self) -> str:
        """One ``<table>`` element on one line, texts escaped, with ``thead`` where the top rows are header rows.

        Without it where a cell of a header row goes on below them: cells end with their ``thead``.
        """
        rows = {row: list(cells) for row, cells in groupby(self.cells, key=lambda cell: cell.row)}
        markup = [f"<tr>{''.join(map(Cell.to_html, rows.get(row, ())))}</tr>" for row in range(self.rows)]
        heads = self.header_rows
        head, body = "".join(markup[:heads]), "".join(markup[heads:])
        if any(cell.row < heads < cell.row + cell.row_span for cell in self.cells):
            body = head + body
        elif head:
            body = f"<thead>{head}</thead>" + (f"<tbody>{body}</tbody>" if body else "")
        caption = f"<caption>{html.escape(clean_text(self.caption), quote=False)}</caption>" if self.caption else ""
        return f"<table>{caption}{body}</table>"

    def to_markdown(self, marked: Callable[[str, Sequence[Span]], str] | None = None) -> str | None:
        """A pipe table, without the caption, or None where it would lose something.

        Markdown has one header row, no spans and no line breaks in cells; a pipe and what looks like a tag, a character
        reference or a link would be read as markup.

        Args:
            marked: Writes a text with its marks; without it they are left out.
        """
        if not self.cells or self.header_rows != 1 or any(cell.header != (cell.row == 0) for cell in self.cells):
            return None
        for cell in self.cells:
            if cell.row_span > 1 or cell.column_span > 1 or _MARKUP.search(cell.text):
                return None
        lines = groupby(self.cells, key=lambda cell: cell.row)
        rows = [[_in_pipes(cell, marked) for cell in cells] for _, cells in lines]
        # After the only header row: Markdown tables have exactly one.
        rows.insert(1, ["---"] * self.columns)
        return "\n".join(f"| {' | '.join(texts)} |" for texts in rows)


def _in_pipes(cell: Cell, marked: Callable[[str, Sequence[Span]], str] | None) -> str:
    return marked(cell.text, cell.spans).replace("|", "%7C") if marked and cell.spans else cell.text  # in an address


def build_table(cells: Iterable[Cell], line_indices: Iterable[int] = ()) -> Table:
    """Make a table of cells that do not overlap.

    Rows and columns in which no cell starts are squeezed out, slots that no cell covers become empty cells.
    """
    given = list(cells)
    # Hostile spans announce millions of rows; only those in which a cell starts are kept.
    row_starts = sorted({cell.row for cell in given})
    column_starts = sorted({cell.column for cell in given})
    squeezed: list[Cell] = []
    holes = set(product(range(len(row_starts)), range(len(column_starts))))
    for cell in given:
        row, column = bisect_left(row_starts, cell.row), bisect_left(column_starts, cell.column)
        row_end = bisect_left(row_starts, cell.row + cell.row_span)
        column_end = bisect_left(column_starts, cell.column + cell.column_span)
        squeezed.append(replace(cell, row=row, column=column, row_span=row_end - row, column_span=column_end - column))
        holes.difference_update(product(range(row, row_end), range(column, column_end)))
    header_rows = {cell.row for cell in squeezed if cell.header} - {cell.row for cell in squeezed if not cell.header}
    squeezed += [Cell(row=row, column=column, header=row in header_rows) for row, column in holes]
    squeezed.sort(key=lambda cell: (cell.row, cell.column))
    return Table(
        cells=tuple(squeezed),
        rows=len(row_starts),
        columns=len(column_starts),
        line_indices=tuple(sorted(line_indices)),
    )


def clean_text(text: str) -> str:
    """Drop control characters, collapse white space inside lines, drop empty lines."""
    lines = (" ".join(_CONTROL.sub("", line).split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
