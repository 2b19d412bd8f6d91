"""One line read by two engines: letters of its script from one, what stands between them from the other.

Tesseract's Korean data has no Latin letters and mistakes them for digits; PP-OCR reads those, but not beside
Hangul, which it leaves blank. So the stretches without Hangul are cut out of the line and read again alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from pagemill.imaging.types import Pixels
from pagemill.recognition.base import RecognizedText
from pagemill.recognition.decoding import in_logical_order
from pagemill.recognition.languages import script_of

SURE = 0.9
"""Mean confidence from which the second reading of a stretch replaces the first."""

_SEEN, _SURELY_HANJA = 0.5, 0.75
"""Confidence of the primary in one Chinese character, and the mean of those that take the place of what was read."""
_NOT_HANGUL, _NO_HANGUL = 0.95, 0.7
"""Confidence of the Korean engine under which a character may be Chinese: where the primary sees one, and beside it.
On drawn pages in three fonts, Hangul has 0.86 to 0.97 but for one in ten, what stands for Hanja under 0.85."""
_NO_BRACKET = 0.5
"""The same for a bracket: pieces of Chinese characters look like brackets."""
_SAME_PLACE, _BESIDE = 0.5, 1.0
"""Syllables: from a Chinese character to what was read in its place, and to a piece of it that was read beside it."""
_NEXT = 1.5
"""Syllables: from one Chinese character to the next one of a word."""
_ROOM_FOR_SPACE, _ROOM_FOR_SYLLABLE = 1.15, 1.6
"""Syllables: from one Chinese character to the next, where a space or a syllable is between them."""
_BRACKETS = frozenset("()[]{}<>「」『』《》〈〉")
_PIECES = frozenset("|<>@%&#\\^_~=+*")
"""What parts of Chinese characters are read as."""
_MIDDLE_DOTS = str.maketrans("ㆍ・", "··")  # Hangul letter araea and katakana dot, which fonts draw alike


class Stretch(NamedTuple):
    """A part of a line without letters of the line's script."""

    start: int
    end: int
    """Characters ``start`` to ``end`` of the line's text."""
    left: float
    right: float
    """Extent as fractions of the line's width."""
    seen: tuple[tuple[float, str, float], ...] = ()
    """Chinese characters that the primary saw in it, in Korean text: middles as fractions of the width, confidences."""

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
    """The stretches of a Korean line that hold Chinese characters, and perhaps Hangul among them.

    Args:
        read: By the Korean engine, which has no such characters, and is not sure of what it makes of them.
        first: By the primary, which sees them, but not all of them beside Hangul.
    """
    if not read.confidences or not first.confidences:
        return []
    seen = [
        (center, character, sure)
        for character, center, sure in zip(first.text, first.centers, first.confidences, strict=True)
        if script_of(character) == "CJK" and sure >= _SEEN
    ]
    if not seen:
        return []
    pitch, places = _pitch(read), np.array([center for center, _, _ in seen])
    # Alone among Hangul, most of what the primary sees is Hangul.
    beside = [bool((np.abs(places - place) < _NEXT * pitch).sum() > 1) for place in places]
    near = [int(np.abs(places - center).argmin()) for center in read.centers]
    doubtful = [
        _may_be_hanja(read, index, beside[one] and abs(places[one] - read.centers[index]) < _BESIDE * pitch)
        for index, one in enumerate(near)
    ]
    found = []
    start = 0
    while start < len(doubtful):
        if not doubtful[start]:
            start += 1
            continue
        last = end = start + 1
        while end < len(doubtful) and (doubtful[end] or read.text[end] == " "):
            end += 1
            last = end if doubtful[end - 1] else last
        left, right = read.span_of(start, last)
        inside = tuple(one for one in seen if left - pitch / 2 < one[0] < right + pitch / 2)
        if inside:
            found.append(Stretch(start, last, *_borders(read, start, last), seen=inside))
            seen = [one for one in seen if one not in inside]
        start = end
    return found


def _pitch(read: RecognizedText) -> float:
    """From one syllable to the next, as a fraction of the line's width."""
    order = sorted(range(len(read.text)), key=read.centers.__getitem__)
    steps = [(a, b, read.centers[b] - read.centers[a]) for a, b in pairwise(order)]
    hangul = [step for a, b, step in steps if script_of(read.text[a]) == script_of(read.text[b]) == "HANGUL"]
    pitch = float(np.median(hangul or [step for *_, step in steps])) if steps else 0.0
    return pitch or 1.0  # Tesseract may give several syllables one place


def _may_be_hanja(read: RecognizedText, index: int, seen: bool) -> bool:
    character = read.text[index]
    if character == " ":
        return False
    alone = _NO_BRACKET if character in _BRACKETS else _NO_HANGUL
    return read.confidences[index] < (_NOT_HANGUL if seen else alone)


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
        if stretch.seen:
            mixed = _with_hanja(read, stretch, second)
            characters[stretch.start : stretch.end] = (character for character, _ in mixed)
            positions[stretch.start : stretch.end] = (center for _, center in mixed)
            continue
        if (
            second.confidence < SURE
            or not second.centers
            or not _mends(first, second.text)
            or _takes_the_next_syllable(first, second.text, read.text[stretch.end :])
        ):
            continue
        # A bracket at the edge of the cut is easily lost: it stays as it was read.
        before = stretch.start + (first[0] in _BRACKETS and first[0] not in second.text[:2])
        after = stretch.end - (first[-1] in _BRACKETS and first[-1] not in second.text[-2:])
        extent = stretch.right - stretch.left
        characters[before:after] = second.text
        positions[before:after] = [stretch.left + center * extent for center in second.centers]
    text = "".join(characters).translate(_MIDDLE_DOTS)
    if list(read.centers) == sorted(read.centers):  # a bracket that stayed may overlap its replaced neighbour
        positions = np.maximum.accumulate(positions).tolist()
    return RecognizedText(text=text, confidence=read.confidence, centers=tuple(positions))


def _with_hanja(read: RecognizedText, stretch: Stretch, second: RecognizedText) -> list[tuple[str, float]]:
    """A stretch with its Chinese characters, as first seen or as read alone, whichever are more and surer.

    What the Korean engine read elsewhere in it, particles and spaces, stays.
    """
    # What Tesseract makes of a Chinese character may lie anywhere: it comes before what follows.
    centers = np.minimum.accumulate(read.centers[::-1])[::-1].tolist()
    own = [(read.text[index], centers[index]) for index in range(stretch.start, stretch.end)]
    extent = stretch.right - stretch.left
    alone = [
        (stretch.left + center * extent, character, sure)
        for character, center, sure in zip(second.text, second.centers, second.confidences, strict=False)
        if script_of(character) == "CJK" and sure >= _SEEN
    ]
    hanja = max((alone, list(stretch.seen)), key=lambda one: sum(sure for _, _, sure in one))
    if float(np.mean([sure for _, _, sure in hanja])) < _SURELY_HANJA:
        return own
    pitch, places = _pitch(read), np.sort([center for center, _, _ in hanja])
    kept = []
    for index, (character, center) in enumerate(own, start=stretch.start):
        away = float(np.abs(places - center).min()) / pitch
        after = int(np.searchsorted(places, center))
        room = (places[after] - places[after - 1]) / pitch if 0 < after < len(places) else np.inf
        if room < (_ROOM_FOR_SPACE if character.isspace() else _ROOM_FOR_SYLLABLE):
            continue
        least = _NOT_HANGUL if character in _PIECES else _NO_HANGUL
        piece = script_of(character) != "HANGUL" and not character.isspace() and read.confidences[index] < least
        if away >= (_BESIDE if piece else _SAME_PLACE):
            kept.append((character, center))
    return sorted([*kept, *((character, center) for center, character, _ in hanja)], key=lambda one: one[1])


def _takes_the_next_syllable(first: str, second: str, behind: str) -> bool:
    """Whether a second reading ends in parts of the syllable that follows: 195개 is read as 1957 and 1957H.

    Giyeok and kieuk look like a 7 when the cut meets them.
    """
    own, longer = ("".join(text.split()) for text in (first, second))
    added = longer.removeprefix(own) if longer.startswith(own) else ""
    starts_like_7 = unicodedata.normalize("NFD", behind[:1])[:1] in ("\u1100", "\u110f")
    return added[:1] == "7" and not added[1:].isdigit() and starts_like_7


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
