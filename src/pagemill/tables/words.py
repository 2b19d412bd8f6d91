"""Lines of text as words in the image of a table, and words back as text."""

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
class TableWord:
    """A word with its box in the table's image and the line it comes from."""

    text: str
    x1: float
    x2: float
    y1: float
    y2: float
    line: int
    glued: bool = False
    """No space stood between this word and the one before it on the line."""
    place: int = 0
    """Of the word in its line, in the order of reading."""

    @property
    def box(self) -> Box:
        """As of all that has a place."""
        return self.x1, self.y1, self.x2, self.y2

    @property
    def x(self) -> float:
        """Middle."""
        return (self.x1 + self.x2) / 2

    @property
    def y(self) -> float:
        """Middle."""
        return (self.y1 + self.y2) / 2


def _line_height(line: TextLine) -> float:
    """Height of a line across its direction, in pixels."""
    if line.polygon:
        return float(np.hypot(*np.subtract(line.polygon[3], line.polygon[0])))
    return line.box[3] - line.box[1]


def usual_height(lines: Iterable[TextLine]) -> float:
    """Median height of lines in pixels: the yardstick for what else is drawn."""
    return max(4.0, float(np.median([_line_height(line) for line in lines])))


def words_of_line(line: TextLine, index: int, origin: tuple[float, float], gray: NDArray[np.uint8]) -> list[TableWord]:
    """Words of a line with their boxes in the image of the table, whose top-left corner is at ``origin`` on the page.

    A line without words is cut at its spaces, which the image tells.
    """
    height = _line_height(line)
    left, right = line.box[0] - origin[0], line.box[2] - origin[0]
    middle = (line.box[1] + line.box[3]) / 2 - origin[1]
    y1, y2 = middle - height / 2, middle + height / 2
    foot = _foot_of_slanted(line)
    if foot is not None:
        x = foot - origin[0]
        return [TableWord(line.text, x, x + height, y1, y2, index)]
    if line.words:
        words = []
        for position, word in enumerate(line.words):
            glued = position > 0 and line.words[position - 1].text + word.text in line.text
            x1, x2 = word.box[0] - origin[0], word.box[2] - origin[0]
            words.append(TableWord(word.text, x1, x2, y1, y2, index, glued, position))
        return words
    tokens = line.text.split()
    cuts = _cut(tokens, left, right, gray[max(0, int(y1)) : max(0, int(y2))])
    return [
        TableWord(token, start, end, y1, y2, index, place=place)
        for place, (token, (start, end)) in enumerate(zip(tokens, cuts, strict=True))
    ]


def _foot_of_slanted(line: TextLine) -> float | None:
    """Where a slanted title stands on its column: x of its lower end; None for other lines."""
    if not line.polygon:
        return None
    along = np.subtract(line.polygon[1], line.polygon[0])
    slanted = along[0] > 0 and TABLES.slanted_title * along[0] < abs(along[1]) < along[0] / TABLES.slanted_title
    return line.polygon[0 if along[1] < 0 else 1][0] if slanted else None


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
    return [(float(left + start), float(left + end)) for start, end in runs(blank)]


def runs(mask: NDArray[np.bool_]) -> list[list[int]]:
    """Start and end of every run of true values, shape (n,)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return edges.reshape(-1, 2).tolist()


def extent(words: Sequence[TableWord]) -> tuple[float, float]:
    """Where words begin and end, as x."""
    return min(word.x1 for word in words), max(word.x2 for word in words)


def is_number(text: str) -> bool:
    """Whether a cell's text is mostly digits (amounts, percentages, dates), or a mark in place of a number."""
    letters = sum(character.isalpha() for character in text)
    digits = sum(character.isdigit() for character in text)
    return digits > letters or (not letters and bool(text.strip()))


def are_number(words: Iterable[TableWord]) -> bool:
    """Whether words together are a number."""
    return is_number(" ".join(word.text for word in words))


def text_rows(words: Iterable[TableWord], text_height: float) -> list[list[TableWord]]:
    """Group words into lines of text that run across the table, from top to bottom."""
    rows: list[list[TableWord]] = []
    middle = 0.0
    for word in sorted(words, key=lambda word: word.y):
        if rows and word.y - middle < TABLES.same_line * text_height:
            rows[-1].append(word)
            middle += (word.y - middle) / len(rows[-1])
        else:
            rows.append([word])
            middle = word.y
    return rows


def join_words(words: Iterable[TableWord], text_height: float) -> str:
    """Text of a cell: lines from top to bottom, words from left to right.

    Lines are joined with a space, but for scripts without spaces (Chinese, Japanese), where both neighbours are such
    characters. Korean has spaces, so a word that wraps inside is left with one.
    """
    text = ""
    for row in text_rows(words, text_height):
        starts = {word.line: word.x1 for word in sorted(row, key=lambda word: -word.x1)}
        # A line knows the order of its words: names in Latin letters run against a line of Hebrew.
        row.sort(key=lambda word: (starts[word.line], word.line, word.place))
        for position, word in enumerate(row):
            glue = word.glued if position else bool(text) and is_spaceless(text[-1]) and is_spaceless(word.text[:1])
            text += word.text if glue or not text else f" {word.text}"
    return text


def is_spaceless(character: str) -> bool:
    """Whether a character is of a script that is written without spaces: Chinese, Japanese."""
    return bool(character) and ("\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff")
