"""Lines of text as words in the image of a table, and words back as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box
from pagemill.document.joining import HYPHENS, join_pair
from pagemill.document.page import Mark, Span, TextLine
from pagemill.document.spans import cut, shifted, tidy
from pagemill.tables.thresholds import TABLES


class TableWord(msgspec.Struct, frozen=True):
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
    """Index of the word in its line, in reading order."""
    spans: tuple[Span, ...] = ()
    """Inline marks of the word."""
    cut: bool = False
    """It goes on in the next line without a hyphen."""

    @property
    def box(self) -> Box:
        """Its bounding box."""
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


def words_of_line(line: TextLine, index: int, origin: tuple[float, float]) -> list[TableWord]:
    """Words of a line with their boxes in the image of the table, whose top-left corner is at ``origin`` on the page.

    A line without words is cut at its spaces, in proportion to the lengths of what is between them.
    """
    height = _line_height(line)
    left, right = line.box[0] - origin[0], line.box[2] - origin[0]
    middle = (line.box[1] + line.box[3]) / 2 - origin[1]
    y1, y2 = middle - height / 2, middle + height / 2
    foot = _foot_of_slanted(line)
    if foot is not None:
        x = foot - origin[0]
        return [TableWord(line.text, x, x + height, y1, y2, index, spans=line.spans)]
    at = 0
    if line.words:
        words = []
        for position, word in enumerate(line.words):
            glued = position > 0 and line.words[position - 1].text + word.text in line.text
            x1, x2 = word.box[0] - origin[0], word.box[2] - origin[0]
            spans, at = spans_of_word(line, word.text, at)
            words.append(TableWord(word.text, x1, x2, y1, y2, index, glued, position, spans))
        return words
    tokens = line.text.split()
    scale = (right - left) / max(1, len(" ".join(tokens)))
    words, start = [], left
    for place, token in enumerate(tokens):
        spans, at = spans_of_word(line, token, at)
        words.append(TableWord(token, start, start + scale * len(token), y1, y2, index, False, place, spans))
        start += scale * (len(token) + 1)
    return words


def spans_of_word(line: TextLine, word: str, at: int) -> tuple[tuple[Span, ...], int]:
    """The marks of a word that stands in a line at an offset or behind it, and the offset of what follows."""
    start = line.text.find(word, at) if line.spans else -1
    return ((), at) if start < 0 else (cut(line.spans, start, start + len(word)), start + len(word))


def _foot_of_slanted(line: TextLine) -> float | None:
    """Where a slanted title stands on its column: x of its lower end; None for other lines."""
    if not line.polygon:
        return None
    along = np.subtract(line.polygon[1], line.polygon[0])
    slanted = along[0] > 0 and TABLES.slanted_title * along[0] < abs(along[1]) < along[0] / TABLES.slanted_title
    return line.polygon[0 if along[1] < 0 else 1][0] if slanted else None


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


def join_words(words: Iterable[TableWord], text_height: float) -> tuple[str, tuple[Span, ...]]:
    """Text of a cell with its marks: lines from top to bottom, words from left to right.

    Lines are joined as those of running text are: words that a hyphen cuts become whole again, scripts without spaces
    get none. Code keeps its hyphens.
    """
    text = ""
    spans: list[Span] = []
    cut = False
    for row in text_rows(words, text_height):
        starts = {word.line: word.x1 for word in sorted(row, key=lambda word: -word.x1)}
        # A line knows the order of its words: names in Latin letters run against a line of Hebrew.
        row.sort(key=lambda word: (starts[word.line], word.line, word.place))
        for position, word in enumerate(row):
            if not text or (position and word.glued) or (cut and not position):
                text += word.text
            elif position or not word.text:
                text += f" {word.text}"
            elif text.endswith(HYPHENS) and any(span.mark is Mark.CODE for span in word.spans):
                text += word.text
            else:
                text = join_pair(text, word.text)
            spans += shifted(word.spans, len(text) - len(word.text))
        cut = row[-1].cut
    return text, tidy(text, spans)


def is_spaceless(character: str) -> bool:
    """Whether a character is of a script that is written without spaces: Chinese, Japanese."""
    return bool(character) and ("\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff")
