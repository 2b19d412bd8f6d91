"""One line read by two engines: letters of its script from one, what stands between them from the other.

Tesseract's Korean data has no Latin letters and mistakes them for digits; PP-OCR reads those, but not beside
Hangul, which it leaves blank. So the stretches without Hangul are cut out of the line and read again alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from pagemill.imaging.types import Pixels
from pagemill.recognition.base import RecognizedText
from pagemill.recognition.decoding import in_logical_order
from pagemill.recognition.languages import script_of

SURE = 0.9
"""Mean confidence from which the second reading of a stretch replaces the first."""

_SEEN, _SURELY_HANJA = 0.7, 0.75
"""Confidence of the primary in a Chinese character beside Hangul, and in those that it reads alone."""
_NOT_HANGUL, _NO_HANGUL = 0.95, 0.7
"""Confidence of the Korean engine under which a character may be Chinese: where the primary sees one, and beside it.
On drawn pages in three fonts, Hangul has 0.86 to 0.97 but for one in ten, what stands for Hanja under 0.85."""
_BRACKETS = frozenset("()[]{}<>「」『』《》〈〉")
_MIDDLE_DOTS = str.maketrans("ㆍ・", "··")  # Hangul letter araea and katakana dot, which fonts draw alike


class Stretch(NamedTuple):
    """A part of a line without letters of the line's script."""

    start: int
    end: int
    """Characters ``start`` to ``end`` of the line's text."""
    left: float
    right: float
    """Extent as fractions of the line's width."""
    hanja: bool = False
    """Whether it may be Chinese characters in Korean text."""

    def cut(self, line: Pixels) -> Pixels:
        """Its part of the line image."""
        width = line.shape[1]
        first = min(int(self.left * width), width - 1)
        return np.ascontiguousarray(line[:, first : max(first + 1, round(self.right * width))])


def stretches(read: RecognizedText, scripts: frozenset[str]) -> list[Stretch]:
    """The stretches worth a second reading: two characters or more, among them a letter or digit."""
    text, found = read.text, []
    for own, run in groupby(range(len(text)), key=lambda index: script_of(text[index]) in scripts):
        solid = [index for index in run if not text[index].isspace()]
        if own or not read.centers or not any(text[index].isascii() and text[index].isalnum() for index in solid):
            continue
        first, last = solid[0], solid[-1] + 1
        if last - first >= 2:
            found.append(Stretch(first, last, *_borders(read, first, last)))
    return found


def hanja_stretches(read: RecognizedText, first: RecognizedText) -> list[Stretch]:
    """The stretches of a Korean line that may be Chinese characters.

    Args:
        read: By the Korean engine, which has no such characters, and is not sure of what it makes of them.
        first: By the primary, which sees them, but not all of them beside Hangul.
    """
    if not read.confidences or not first.confidences:
        return []
    seen = [
        center
        for character, center, sure in zip(first.text, first.centers, first.confidences, strict=True)
        if script_of(character) == "CJK" and sure >= _SEEN
    ]
    places = [np.searchsorted(seen, read.span_of(index, index + 1)) for index in range(len(read.text))] if seen else []
    holds = [bool(last > start) for start, last in places]
    found = []
    for doubtful, run in groupby(range(len(places)), key=lambda i: _may_be_hanja(read, i, holds[i])):
        parts = list(run)
        if doubtful and any(holds[index] for index in parts):
            found.append(Stretch(parts[0], parts[-1] + 1, *_borders(read, parts[0], parts[-1] + 1), hanja=True))
    return found


def _may_be_hanja(read: RecognizedText, index: int, seen: bool) -> bool:
    character = read.text[index]
    if character == " " or character in _BRACKETS:
        return False
    return read.confidences[index] < (_NOT_HANGUL if seen else _NO_HANGUL)


def _borders(read: RecognizedText, first: int, last: int) -> tuple[float, float]:
    """Where to cut around characters: in the middle of the spaces beside them on the paper, else half-way."""
    order = np.argsort(read.centers, kind="stable").tolist()
    places = [order.index(index) for index in (first, last - 1)]
    low, high = min(places), max(places)

    def cut(outer: int, inner: int) -> float:
        if not 0 <= outer < len(order):
            return 0.0 if outer < 0 else 1.0
        beside: float = read.centers[order[outer]]
        halfway: float = (beside + read.centers[order[inner]]) / 2
        return beside if read.text[order[outer]] == " " else halfway

    return cut(low - 1, low), cut(high + 1, high)


def replace(read: RecognizedText, again: Sequence[tuple[Stretch, RecognizedText]]) -> RecognizedText:
    """Put the sure second readings into the line; middle dots are unified on the way."""
    characters, positions = list(read.text), list(read.centers)
    # From the end, so that the positions of earlier stretches stay valid as texts of other lengths are put in.
    for stretch, alone in reversed(again):
        second = in_logical_order(alone, read.text)  # a point at the left of a figure follows it in Arabic
        first = read.text[stretch.start : stretch.end]
        if stretch.hanja:
            if not _is_hanja(second):
                continue
        elif (
            second.confidence < SURE
            or not second.centers
            or not _mends(first, second.text)
            or (
                "".join(second.text.split()) == "".join(first.split()) + "7"
                and _begins_like_7(read.text[stretch.end :])
            )
        ):
            continue
        # A bracket at the edge of the cut is easily lost: it stays as it was read.
        before = stretch.start + (first[0] in _BRACKETS and first[0] not in second.text[:2])
        after = stretch.end - (first[-1] in _BRACKETS and first[-1] not in second.text[-2:])
        extent = stretch.right - stretch.left
        if stretch.hanja and len(second.centers) > 1:  # Hangul behind it that the Korean engine was not sure of stays
            last = stretch.left + (second.centers[-1] + float(np.diff(second.centers).mean()) / 2) * extent
            after = max(before + 1, before + int(np.searchsorted(read.centers[before:after], last)))
        characters[before:after] = second.text
        positions[before:after] = [stretch.left + center * extent for center in second.centers]
    text = "".join(characters).translate(_MIDDLE_DOTS)
    if list(read.centers) == sorted(read.centers):  # a bracket that stayed may overlap its replaced neighbour
        positions = np.maximum.accumulate(positions).tolist()
    return RecognizedText(text=text, confidence=read.confidence, centers=tuple(positions))


def _is_hanja(second: RecognizedText) -> bool:
    """Whether a stretch read alone is sure to be Chinese characters."""
    letters = [script_of(character) for character in second.text if not character.isspace()]
    return bool(letters) and set(letters) == {"CJK"} and second.confidence >= _SURELY_HANJA and bool(second.centers)


def _begins_like_7(text: str) -> bool:
    """Whether text begins with a syllable whose first letter, giyeok or kieuk, looks like a 7 when the cut meets it."""
    return unicodedata.normalize("NFD", text[:1])[:1] in ("\u1100", "\u110f")


def _mends(first: str, second: str) -> bool:
    """Whether a second reading differs in more than spaces, without losing digits of a figure.

    A Chinese character where there was none is half of the neighbour that the cut went through, and a sign less is one
    that the cut lost.
    """
    compact = ["".join(text.split()) for text in (first, second)]
    if compact[0] == compact[1]:
        return False
    if any(script_of(character) == "CJK" for character in second) and not any(map(str.isalpha, first)):
        return False
    if len(compact[1]) < len(compact[0]) and len({"".join(filter(str.isalnum, text)) for text in compact}) == 1:
        return False
    digits = [sum(character.isdigit() for character in text) for text in (first, second)]
    return digits[1] >= digits[0] or any(character.isalpha() for character in first + second)
