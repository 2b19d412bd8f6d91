"""Drawn tables whose lines of text are known, and texts of recognized ones."""

import cv2
import numpy as np

from pagemill.document.page import TextLine, Word
from pagemill.tables.table import Table

HEIGHT = 24.0
ADVANCE = 11.0


def line_at(text: str, x: float, y: float, *, words: bool = True) -> TextLine:
    parts, start = [], x
    for token in text.split(" "):
        parts.append(Word(token, (start, y, start + ADVANCE * len(token), y + HEIGHT)))
        start += ADVANCE * (len(token) + 0.6)
    box = (x, y, parts[-1].box[2], y + HEIGHT)
    return TextLine(text=text, box=box, words=tuple(parts) if words else ())


def blank(width: int = 900, height: int = 600) -> np.ndarray:
    return np.full((height, width, 3), 255, np.uint8)


def print_lines(page: np.ndarray, lines: list[TextLine]) -> None:
    """Blots the size of letters, so that rule detection has text to be confused by."""
    for line in lines:
        for word in line.words or (Word(line.text, line.box),):
            x1, y1, x2, y2 = (round(v) for v in word.box)
            for x in range(x1, x2 - 8, int(ADVANCE)):
                page[y1 + 5 : y2 - 5, x : x + 9] = 40


def texts(table: Table | None) -> list[list[str]]:
    assert table is not None
    grid = [["" for _ in range(table.columns)] for _ in range(table.rows)]
    for cell in table.cells:
        grid[cell.row][cell.column] = cell.text
    return grid


def ruled_page() -> tuple[np.ndarray, list[TextLine]]:
    page = blank()
    xs, ys = [50, 250, 450, 650], [50, 110, 170, 230, 290]
    for y in ys:
        cv2.line(page, (xs[0], y), (xs[-1], y), (0, 0, 0), 2)
    for x in (xs[0], xs[-1], xs[1]):
        cv2.line(page, (x, ys[0]), (x, ys[-1]), (0, 0, 0), 2)
    cv2.line(page, (xs[2], ys[1]), (xs[2], ys[-1]), (0, 0, 0), 2)  # the first row's last two cells are one
    lines = [line_at("Name", 70, 68), line_at("Two in one", 380, 68)]
    for row in range(1, 4):
        lines += [line_at(f"{'abc'[row - 1]} {column}", xs[column] + 20, ys[row] + 18) for column in range(3)]
    print_lines(page, lines)
    return page, lines
