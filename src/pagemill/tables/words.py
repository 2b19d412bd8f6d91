"""Lines of text as words on the table's own upright plane, and words back as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pagemill.tables.thresholds import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Box
    from pagemill.document.page import TextLine


@dataclass(frozen=True, slots=True)
class Plane:
    """Where the upright image of a table lies on its page: a shift, then a turn about the image's centre."""

    origin: tuple[float, float]
    size: tuple[int, int]
    """Width and height in pixels."""
    slope: float = 0.0
    """dy/dx on the page of what is horizontal on the plane; small."""

    def from_page(self, x: float, y: float) -> tuple[float, float]:
        """Map a point of the page to the plane."""
        return self._turn(x - self.origin[0], y - self.origin[1], -self.slope)

    def to_page(self, box: Box) -> Box:
        """Map a box of the plane to the page: the box about its turned corners' middle, of the same size."""
        x, y = self._turn((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, self.slope)
        x, y = x + self.origin[0], y + self.origin[1]
        half_width, half_height = (box[2] - box[0]) / 2, (box[3] - box[1]) / 2
        return (x - half_width, y - half_height, x + half_width, y + half_height)

    def _turn(self, x: float, y: float, slope: float) -> tuple[float, float]:
        length = float(np.hypot(1.0, slope))
        cosine, sine = 1 / length, slope / length
        centre_x, centre_y = self.size[0] / 2, self.size[1] / 2
        x, y = x - centre_x, y - centre_y
        return (centre_x + cosine * x - sine * y, centre_y + sine * x + cosine * y)


@dataclass(frozen=True, slots=True)
class TableWord:
    """A word with its box on the plane and the line it comes from."""

    text: str
    x1: float
    x2: float
    y1: float
    y2: float
    line: int
    glued: bool = False
    """No space stood between this word and the one before it on the line."""

    @property
    def x(self) -> float:
        """Middle."""
        return (self.x1 + self.x2) / 2

    @property
    def y(self) -> float:
        """Middle."""
        return (self.y1 + self.y2) / 2


def line_height(line: TextLine) -> float:
    """Height of a line across its direction, in pixels."""
    if line.polygon is not None and len(line.polygon) == 4:
        return float(np.hypot(*np.subtract(line.polygon[3], line.polygon[0])))
    return line.box[3] - line.box[1]


def line_slope(line: TextLine) -> float | None:
    """dy/dx of a line's upper edge, None where the line is axis-aligned or too short to tell."""
    if line.polygon is None or len(line.polygon) != 4:
        return None
    along = np.subtract(line.polygon[1], line.polygon[0])
    return float(along[1] / along[0]) if along[0] > 4 * line_height(line) else None


def words_of_line(line: TextLine, index: int, plane: Plane, gray: NDArray[np.uint8]) -> list[TableWord]:
    """Words of a line with their boxes on the plane.

    A line without words is cut at its spaces, which the image tells.
    """
    height = line_height(line)
    foot = _foot_of_slanted(line)
    if foot is not None:
        x, y = plane.from_page(foot + height / 2, (line.box[1] + line.box[3]) / 2)
        return [TableWord(line.text, x - height / 2, x + height / 2, y - height / 2, y + height / 2, index)]
    if line.words:
        words = []
        for position, word in enumerate(line.words):
            x, y = plane.from_page((word.box[0] + word.box[2]) / 2, _middle_at(line, word.box))
            half = (word.box[2] - word.box[0]) / 2
            glued = position > 0 and line.words[position - 1].text + word.text in line.text
            words.append(TableWord(word.text, x - half, x + half, y - height / 2, y + height / 2, index, glued))
        return words
    x, y = plane.from_page((line.box[0] + line.box[2]) / 2, (line.box[1] + line.box[3]) / 2)
    half = (line.box[2] - line.box[0]) / 2
    y1, y2 = y - height / 2, y + height / 2
    tokens = line.text.split()
    cuts = _cut(tokens, x - half, x + half, gray[max(0, int(y1)) : max(0, int(y2))])
    return [TableWord(token, start, end, y1, y2, index) for token, (start, end) in zip(tokens, cuts, strict=True)]


def _foot_of_slanted(line: TextLine) -> float | None:
    """Where a slanted title stands on its column: x of its lower end; None for other lines."""
    if line.polygon is None or len(line.polygon) != 4:
        return None
    along = np.subtract(line.polygon[1], line.polygon[0])
    slanted = along[0] > 0 and TABLES.slanted_title * along[0] < abs(along[1]) < along[0] / TABLES.slanted_title
    return line.polygon[0 if along[1] < 0 else 1][0] if slanted else None


def _middle_at(line: TextLine, word: Box) -> float:
    """Height of the line's middle where the word is."""
    slope = line_slope(line)
    middle = (line.box[1] + line.box[3]) / 2
    return middle if slope is None else middle + slope * ((word[0] + word[2]) / 2 - (line.box[0] + line.box[2]) / 2)


def _cut(tokens: Sequence[str], x1: float, x2: float, strip: NDArray[np.uint8]) -> list[tuple[float, float]]:
    """Extents of tokens along a line: between the widest blanks of the image strip, where the lengths agree.

    Else (blanks lost in noise) in proportion to the tokens' lengths.
    """
    lengths = np.array([len(token) for token in tokens], dtype=np.float64)
    if not len(lengths):
        return []
    blanks = [blank for blank in _blanks(strip, x1, x2) if blank[0] > x1 and blank[1] < x2 - 1]
    widest = sorted(sorted(blanks, key=lambda blank: blank[0] - blank[1])[: len(tokens) - 1])
    if len(widest) == len(tokens) - 1:
        starts = np.array([x1, *(end for _, end in widest)])
        ends = np.array([*(start for start, _ in widest), x2])
        advance, ratio = (ends - starts) / lengths, TABLES.advance_ratio
        if advance.max() <= ratio * np.median(advance) <= ratio**2 * advance.min():
            return list(zip(starts.tolist(), ends.tolist(), strict=True))
    scale = (x2 - x1) / (lengths.sum() + len(lengths) - 1)
    starts = x1 + scale * (np.cumsum(lengths + 1) - lengths - 1)
    return list(zip(starts.tolist(), (starts + scale * lengths).tolist(), strict=True))


def _blanks(strip: NDArray[np.uint8], x1: float, x2: float) -> list[tuple[float, float]]:
    """Runs of columns without ink between two x."""
    left = max(0, int(x1))
    part = strip[:, left : max(left, int(x2))]
    if not part.size:
        return []
    blank = part.min(axis=0) > (int(part.min()) + int(np.median(part))) / 2
    edges = np.flatnonzero(np.diff(np.concatenate(([False], blank, [False])).astype(np.int8)))
    return [(float(left + start), float(left + end)) for start, end in edges.reshape(-1, 2)]


def join_words(words: Iterable[TableWord], text_height: float) -> str:
    """Text of a cell: lines from top to bottom, words from left to right.

    Lines are joined with a space, but for scripts without spaces (Chinese, Japanese), where both neighbours are such
    characters. Korean has spaces, so a word that wraps inside is left with one.
    """
    rows: list[list[TableWord]] = []
    for word in sorted(words, key=lambda word: word.y):
        if rows and word.y - rows[-1][0].y < TABLES.same_line * text_height:
            rows[-1].append(word)
        else:
            rows.append([word])
    text = ""
    for row in rows:
        row.sort(key=lambda word: word.x1)
        for position, word in enumerate(row):
            glue = word.glued if position else bool(text) and _spaceless(text[-1]) and _spaceless(word.text[:1])
            text += word.text if glue or not text else f" {word.text}"
    return text


def _spaceless(character: str) -> bool:
    return bool(character) and ("\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff")
