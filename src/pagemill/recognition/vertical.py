"""Lines that run down the page, read on their side: the signs that the recognizer leaves out there.

It reads ideographs and kana on their side as surely as upright, but skips 、 。 ー and small kana, which stand in other
places of their squares than it is used to. Where a square holds ink and no character, all of the line's squares are
stood up, side by side, and read again as a level line. On drawn pages of vertical Chinese and Japanese the error falls
from 5.7 to 0.3 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Pixels
from pagemill.late import re
from pagemill.recognition.base import RecognizedText
from pagemill.recognition.ink import ink_of

_BARS = frozenset("一ー―—-－")
"""What a stroke is read as, whichever way it runs."""
_COMMAS, _STOPS = frozenset("’‘'`´"), frozenset("°")
"""What the recognizer makes of 、 or ， and of 。 in the upper right of their squares."""
_DOUBTFUL = _BARS | _COMMAS | _STOPS
_KANA = re.compile("[\u3040-\u30ff]")
_LEAST_CHARACTERS = 4
_APART = 0.6
"""Share of a square's side that is left between two squares where there is another one."""
_SNAP = 0.22
"""Share of the side by which a border moves to where less ink is."""
_SMALL, _SLENDER = 0.5, 0.35
"""Share of the side under which ink is a comma or full stop, and a stroke's width is that of a lengthening mark."""
_AGREED = 0.8
"""Share of the characters that must be read alike: else they did not lie on their side."""
_SURE = 0.5


class _Square(NamedTuple):
    start: int
    end: int
    """Columns of the line image."""
    place: int
    """Index of the character in the text; for a missing one that of the next character."""
    missing: bool


@dataclass(frozen=True, slots=True)
class Upright:
    """A line with its characters on their feet, side by side."""

    read: RecognizedText
    """On its side."""
    width: int
    """Width of its image on its side."""
    image: Pixels
    squares: list[_Square]
    ends: list[int]
    """The column of ``image`` where each square ends."""
    shapes: list[str]
    """What the ink of each square in doubt looks like: ``stroke``, ``sign``; empty for others."""

    def completed(self, second: RecognizedText) -> tuple[RecognizedText, int]:
        """The text with the signs that a reading of the image found, and how many it did not."""
        found: list[list[int]] = [[] for _ in self.squares]
        for index, center in enumerate(second.centers):
            found[min(int(np.searchsorted(self.ends, center * self.ends[-1])), len(found) - 1)].append(index)
        second_texts = ["".join(second.text[index] for index in inside) for inside in found]
        agrees = [
            second_texts[i] == self.read.text[square.place]
            for i, square in enumerate(self.squares)
            if not square.missing and not self.read.text[square.place].isascii()
        ]
        if sum(agrees) < _AGREED * len(agrees):
            return self.read, 0
        text, centers, sure, lost = "", [], [], 0
        for i, square in enumerate(self.squares):
            known = "" if square.missing else self.read.text[square.place]
            confidence = self.read.confidences[square.place] if known else _SURE
            if self.shapes[i] == "stroke":
                known = "ー"
            elif known in _BARS and second_texts[i] in _BARS:
                known = "一"
            elif not known and len(found[i]) == 1 and second.confidences[found[i][0]] >= _SURE:
                known, confidence = second_texts[i], second.confidences[found[i][0]]
            if self.shapes[i] == "sign" and known in _COMMAS | _STOPS:
                comma = "、" if _KANA.search(self.read.text) else "，"
                known = "。" if known in _STOPS else comma
            lost += not known
            text += known
            centers += [min(1.0, (square.start + square.end) / 2 / self.width)] * len(known)
            sure += [confidence] * len(known)
        return replace(self.read, text=text, centers=tuple(centers), confidences=tuple(sure)), lost


def stood_up(line: Pixels, read: RecognizedText) -> Upright | None:
    """The line with its characters on their feet; None where none is missing or in doubt.

    Args:
        line: The image of a line on its side, its beginning at the left.
        read: What was read in it.
    """
    height, width = line.shape[:2]
    paper = np.median(line, axis=(0, 1)).astype(np.uint8)
    # The square of a full stop at the end reaches beyond the line.
    line = np.concatenate([line, np.broadcast_to(paper, (height, height // 2, 3))], axis=1)
    ink = ink_of(line)
    if ink is None or len(read.text) < _LEAST_CHARACTERS or len(read.confidences) != len(read.text):
        return None
    squares, side = _squares(read, width, ink.sum(axis=0))
    doubtful = [square.missing or read.text[square.place] in _DOUBTFUL for square in squares]
    if not any(doubtful):
        return None
    shapes = [
        _shape(ink[:, square.start : square.end], side) if doubt else ""
        for square, doubt in zip(squares, doubtful, strict=True)
    ]
    pieces = [
        _turned(line[:, square.start : square.end], side, paper, shape)
        if square.missing or not read.text[square.place].isascii() or shape
        else line[:, square.start : square.end]
        for square, shape in zip(squares, shapes, strict=True)
    ]
    ends = np.cumsum([piece.shape[1] for piece in pieces]).tolist()
    return Upright(read, width, np.ascontiguousarray(np.hstack(pieces)), squares, ends, shapes)


def _squares(read: RecognizedText, width: int, ink: NDArray[np.intp]) -> tuple[list[_Square], float]:
    """The squares of a line of so many columns, in order, and their usual side."""
    middles = np.asarray(read.centers) * width
    wide = np.array([not character.isascii() for character in read.text])
    steps = np.diff(middles)[wide[1:] & wide[:-1]]
    side = float(np.median(steps)) if len(steps) else 0.0
    if side < 2:
        return [], side
    reach = np.where(wide, side / 2, side / 4)
    ends, starts = [0.0, *(middles + reach)], [*(middles - reach), float(len(ink))]
    marks: list[tuple[float, int, bool]] = []
    for place, (end, start) in enumerate(zip(ends, starts, strict=True)):
        count = round((start - end) / side) if start - end > _APART * side else 0
        marks += [(end + k * (start - end) / count, place, True) for k in range(count)]
        marks.append((start if count else (end + start) / 2, place, False))
    borders = [_border(ink, x, _SNAP * side) for x, _, _ in marks]
    squares = [
        _Square(start, end, place, missing)
        for (start, end), (_, place, missing) in zip(pairwise(borders), marks, strict=False)
        if end - start > 1 and (not missing or ink[start:end].any())
    ]
    return squares, side


def _border(ink: NDArray[np.intp], x: float, slack: float) -> int:
    """The column within reach that has the least ink, the nearest of equals."""
    low, high = max(0, int(x - slack)), min(len(ink), int(x + slack) + 1)
    if low >= high:
        return min(max(0, round(x)), len(ink))
    least = low + np.flatnonzero(ink[low:high] == ink[low:high].min())
    return int(least[np.argmin(np.abs(least - x))])


def _shape(ink: NDArray[np.bool_], side: float) -> str:
    """What the ink of a square looks like: a ``stroke`` down the page, a ``sign`` in its upper right, or neither."""
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    if not len(rows):
        return ""
    height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
    if height < _SLENDER * side and width > _SMALL * side:
        return "stroke"
    above = rows.mean() < ink.shape[0] / 2 and columns.mean() < ink.shape[1] / 2
    return "sign" if max(height, width) < _SMALL * side and above else ""


def _turned(square: Pixels, side: float, paper: Pixels, shape: str) -> Pixels:
    """A square on its feet, as high as the line; a comma or full stop where level text has it, a stroke as it lies."""
    height = square.shape[0]
    turned = square if shape == "stroke" else np.rot90(square, -1)
    if shape == "sign":
        turned = np.roll(turned, (turned.shape[0] // 2, -(turned.shape[1] // 2)), axis=(0, 1))
    spare = max(0, int(turned.shape[1] - 1.06 * side) // 2)
    turned = turned[:height, spare : turned.shape[1] - spare]
    result = np.empty((height, turned.shape[1], 3), np.uint8)
    result[:] = paper
    top = (height - turned.shape[0]) // 2
    result[top : top + turned.shape[0]] = turned
    return result
