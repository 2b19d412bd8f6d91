"""Text under a stamp or a seal: the two inks apart, so that each is read without the other.

Stamps are printed over dark text in a colour of their own. Where they cross, the text detector finds one line, or ends
it before the stamp, and the recognizer reads neither. On paper the inks mix: text under a stamp is darker than the
stamp elsewhere. Stamps are therefore taken off the page before lines are looked for; what crosses a single line in
colour, and is too small or too faint for a stamp, is taken off that line.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.recognition.base import Quad, RecognizedText

_COLOURED, _TINTED = 25.0, 10.0
"""Distance of a stamp's colour from that of the paper in the a and b of CIE Lab, and of its blurred edges."""
_DARK = 40.0
"""Least difference in L between paper and text."""
_MIXED = 10.0
"""Difference in L from which a stroke of the stamp has text beneath it."""
_LEAST = 0.01
"""Least share of a line's pixels in either ink. Not measured."""
_TOUCHING = 0.02
"""Least share of the coloured pixels that touch dark ones: a coloured word in a line touches none."""
_SHARED = 0.2
"""Least share of the columns with coloured ink that hold dark ink, too. Not measured."""
_CUT_OFF = 0.5
"""Share of a line's height below which what is at the edge is a part of another line. Not measured."""
_MARGIN = 4
"""Pixels of paper that are left around an ink."""
_THICK = 150
"""Longer sides of pages in the width of the thickest stroke of a stamp: 15 pixels at 200 dpi. What is thicker is a
coloured ground or a picture."""
_LEAST_SIDE, _LONG_RULE, _GAP = 2, 6, 2
"""Such widths in the shorter side of a stamp, in a rule (a pen that writes across one is no stamp), and between two
parts of one stamp."""
_CROSSING = 0.005
"""Least share of a stamp's pixels that touch letters: 0.008 where it covers one letter alone."""
_DARKER = 20.0
"""Difference in L from which a stamp has text beneath it: uneven ink varies by 10."""
_MOST_OF_PAGE = 0.2
"""Share of the page in stamps above which they are none: pictures and charts. Not measured."""


class Ink(NamedTuple):
    """What one ink wrote in a line."""

    image: Pixels
    """The part of the line that holds it, without the other ink."""
    place: tuple[float, float, float, float]
    """Left, top, right and bottom of that part, as shares of the line's width and height."""

    def quad_in(self, line: Quad) -> Quad:
        """The corners of that part on the page."""
        a, b, c, d = np.asarray(line)
        left, top, right, bottom = self.place
        corners = ((left, top), (right, top), (right, bottom), (left, bottom))
        first, second, third, fourth = (
            tuple(((a + (b - a) * x) * (1 - y) + (d + (c - d) * x) * y).tolist()) for x, y in corners
        )
        return first, second, third, fourth


def without_stamps(page: Pixels) -> tuple[Pixels, Pixels | None]:
    """The page without coloured ink that crosses dark letters, and a page with that ink alone; None without any."""
    if not _is_coloured(page[::4, ::4]):
        return page, None
    light, paper, away = _colours(page, 8)
    unit = max(3, max(page.shape) // _THICK)
    coloured = away > _COLOURED
    dark = (light < paper - _DARK) & (away <= _COLOURED)
    grounds = _opened(coloured, unit, unit) | _opened(coloured | dark, 2 * unit, 2 * unit)
    coloured &= ~_grown(grounds, unit)
    rules = _opened(dark, 1, _LONG_RULE * unit) | _opened(dark, _LONG_RULE * unit, 1)
    letters = dark & ~_grown(rules)
    crossing = coloured & _grown(letters)
    if not crossing.any():
        return page, None
    joined = cv2.morphologyEx(coloured.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((_GAP * unit, _GAP * unit), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(joined)
    cleaned, covered = page.copy(), 0
    sheet = np.full_like(page, np.median(page[::8, ::8].reshape(-1, 3), axis=0).astype(np.uint8))
    for number, (x, y, width, height, _) in enumerate(stats.tolist()):
        if not number or min(width, height) < _LEAST_SIDE * unit:
            continue
        part = slice(max(0, y - _MARGIN), y + height + _MARGIN), slice(max(0, x - _MARGIN), x + width + _MARGIN)
        own = labels[part] == number
        ink = own & coloured[part]
        if not ink.any():
            continue
        # What has no paper around it is a part of a picture.
        if (own & crossing[part]).sum() < _CROSSING * ink.sum() or np.median(away[part]) > _TINTED:
            continue
        covered += width * height
        over = ink & (light[part] < np.median(light[part][ink]) - _DARKER)
        ground = np.median(page[part].reshape(-1, 3), axis=0).astype(np.uint8)
        sheet[part][ink] = np.median(page[part][ink & ~over], axis=0).astype(np.uint8)
        cleaned[part][_grown(own) & (away[part] > _TINTED) & ~over & ~dark[part]] = ground
    return (cleaned, sheet) if 0 < covered <= _MOST_OF_PAGE * light.size else (page, None)


def inks_of(line: Pixels) -> tuple[Ink, Ink] | None:
    """The dark text of a line image and the stamp that crosses it; None where no coloured ink touches dark ink."""
    if not _is_coloured(line[::2, ::2]):  # as most lines
        return None
    light, paper, away = _colours(line)
    coloured = away > _COLOURED
    dark = (light < paper - _DARK) & ~coloured
    if min(coloured.mean(), dark.mean()) < _LEAST:
        return None
    solid = _without_edges(coloured)
    if not solid.any():  # strokes of one pixel, which tell nothing about their colour
        return None
    over = coloured & (light < np.median(light[solid]) - _MIXED)
    touching = coloured & _grown(dark)
    columns = coloured.any(axis=0)
    shared = columns & (dark | over).any(axis=0)
    if touching.sum() < _TOUCHING * coloured.sum() or shared.sum() < _SHARED * columns.sum():
        return None
    ground = np.median(line.reshape(-1, 3), axis=0).astype(np.uint8)
    text = line.copy()
    text[_grown((away > _TINTED) & ~over & ~dark) & ~over & ~dark] = ground
    stamp = np.full_like(line, ground)
    stamp[coloured] = np.median(line[coloured & ~over], axis=0).astype(np.uint8)
    return _cut(text, _own_rows(dark | over)), _cut(stamp, coloured)


def _own_rows(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The ink of a line without the cut-off edges of lines above and below, where a stamp reaches over them."""
    has_ink = np.pad(_without_edges(ink).any(axis=1).astype(np.int8), 1)
    starts, ends = np.flatnonzero(np.diff(has_ink) > 0), np.flatnonzero(np.diff(has_ink) < 0)
    heights, own = ends - starts, ink.copy()
    for start, end, height in zip(starts, ends, heights, strict=True):
        if height < _CUT_OFF * heights.max() and (start <= 1 or end >= len(ink)):
            own[start:end] = False
    return own


def _cut(image: Pixels, ink: NDArray[np.bool_]) -> Ink:
    """The part of an image that holds an ink; specks of a pixel do not count."""
    solid = _without_edges(ink)
    rows, columns = np.nonzero(solid if solid.any() else ink)
    height, width = ink.shape
    left, right = max(0, int(columns.min()) - _MARGIN), min(width, int(columns.max()) + 1 + _MARGIN)
    top, bottom = max(0, int(rows.min()) - _MARGIN), min(height, int(rows.max()) + 1 + _MARGIN)
    return Ink(image[top:bottom, left:right], (left / width, top / height, right / width, bottom / height))


def without_frame(stamp: RecognizedText) -> RecognizedText:
    """What was read on a stamp, without the signs at its ends as which a frame or a ring is read."""
    letters = [index for index, character in enumerate(stamp.text) if character.isalnum()]
    kept = slice(letters[0], letters[-1] + 1) if letters else slice(0)
    return dataclasses.replace(
        stamp, text=stamp.text[kept], centers=stamp.centers[kept], confidences=stamp.confidences[kept]
    )


def _colours(image: Pixels, step: int = 1) -> tuple[NDArray[np.float32], float, NDArray[np.float32]]:
    """Lightness of each pixel, that of the paper, and how far each is from its colour.

    The darker an ink, the less of the paper's colour is in it: black on yellow is no colour of its own.
    """
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)  # channel by channel: numpy is ten times as slow on all three at once
    ground = np.median(lab[::step, ::step].reshape(-1, 3), axis=0).tolist()
    light, *tints = (channel.astype(np.float32) for channel in cv2.split(lab))
    light *= 100 / 255
    paper = ground[0] * 100 / 255
    share = light / max(1.0, paper)
    first, second = (tint - 128 - share * (own - 128) for tint, own in zip(tints, ground[1:], strict=True))
    return light, paper, np.asarray(cv2.magnitude(first, second), dtype=np.float32)


def _is_coloured(sample: Pixels) -> bool:
    """Whether there is a pixel that is not grey."""
    spread = sample.max(axis=2).astype(np.int16) - sample.min(axis=2)
    return bool(spread.max(initial=0) >= 2 * _COLOURED)


def _opened(mask: NDArray[np.bool_], rows: int, columns: int) -> NDArray[np.bool_]:
    """The parts of a mask that hold a box of this size."""
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, np.ones((rows, columns), np.uint8)) > 0


def _without_edges(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pixels of a mask whose neighbours above and to the left belong to it, too."""
    return cv2.erode(mask.astype(np.uint8), np.ones((2, 2), np.uint8)) > 0


def _grown(mask: NDArray[np.bool_], side: int = 3) -> NDArray[np.bool_]:
    """A mask with the pixels around it."""
    return cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
