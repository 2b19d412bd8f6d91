"""Whether the text that a PDF page carries can be taken instead of reading the pixels."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import cv2
import numpy as np

from pagemill.document.geometry import areas, as_array, shared_areas
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Box
    from pagemill.document.page import TextLine
    from pagemill.imaging.page import TextLayer
    from pagemill.imaging.types import Pixels

_MOJIBAKE = re.compile("Ã[\u0080-\u00bf©¨ª«¤¶¼]|â€|Â[\u00a0-\u00bf]|ï»¿")


SOUND = "sound"
"""Take the layer and do not read the page."""
PARTIAL = "partial"
"""What the layer holds is good, but the page shows more text: read the page and merge (:func:`merge_lines`)."""


def judge(layer: TextLayer, pixels: Pixels) -> str:
    """Judge a text layer by its mapping, its statistics and the ink it leaves unexplained.

    Returns ``SOUND``, ``PARTIAL``, or in a word or two what is wrong with it.

    Args:
        layer: As extracted, boxes in pixels of ``pixels``.
        pixels: The rendered page, shape (height, width, 3), dtype uint8.
    """
    if not layer.characters or not layer.lines:
        return "invisible" if layer.hidden_lines else "empty"
    if layer.unmapped > PARSING.unmapped * layer.characters:
        return "unmapped"
    garble = garbled(" ".join(line.text for line in layer.lines))
    if garble:
        return garble
    # An invisible layer is the output of somebody's OCR, of unknown quality: it only tells where to read.
    described = sum(len(line.text.replace(" ", "")) for line in _over_ink(layer, pixels))
    boxes = [line.box for line in (*layer.lines, *layer.marks)]
    if described > PARSING.invisible * layer.characters or unread_ink(pixels, boxes) > PARSING.unread_ink:
        return PARTIAL
    return SOUND


def _over_ink(layer: TextLayer, pixels: Pixels) -> list[TextLine]:
    """The invisible lines below which the page shows something that no visible line covers."""
    hidden = layer.hidden_lines
    if not hidden:
        return []
    boxes = as_array(line.box for line in hidden)
    covered = shared_areas(boxes, as_array(line.box for line in layer.lines))
    apart = covered < PARSING.strip_covered * np.maximum(areas(boxes), 1e-9)
    return [line for line, alone in zip(hidden, apart.tolist(), strict=True) if alone and _is_inked(pixels, line.box)]


def _is_inked(pixels: Pixels, box: Box) -> bool:
    x1, y1, x2, y2 = (round(value) for value in box)
    green = pixels[max(y1, 0) : y2, max(x1, 0) : x2, 1].astype(np.int16)
    if not green.size:
        return False
    return bool((np.abs(green - np.int16(np.median(green))) > PARSING.ink_contrast).mean() > PARSING.line_ink)


def garbled(text: str) -> str:
    """Name what is implausible about a text's characters; empty when nothing is, or when there are too few to tell."""
    compact = "".join(char for char in text if not char.isspace() and char not in ".…_-–—·")
    if len(compact) < PARSING.sample:
        return ""
    if sum(char.isalnum() for char in compact) < PARSING.letters * len(compact):
        return "symbols"
    commonest, times = Counter(compact).most_common(1)[0]
    if times > PARSING.one_glyph * len(compact) and not commonest.isdigit():
        return "one glyph"
    if len(_MOJIBAKE.findall(text)) > PARSING.mojibake * len(compact):
        return "mojibake"
    ascii_letters = [char for char in compact.lower() if "a" <= char <= "z"]
    if len(ascii_letters) >= PARSING.sample and len(ascii_letters) > PARSING.ascii_letters * len(compact):
        share = sum(char in "aeiouy" for char in ascii_letters) / len(ascii_letters)
        if not PARSING.vowels[0] <= share <= PARSING.vowels[1]:
            return "letters"
        prose = re.findall(r"[A-Za-z]+", text)
        if sum(map(len, prose)) / len(prose) > PARSING.word_length:
            return "no spaces"
    return ""


def unread_ink(pixels: Pixels, boxes: Sequence[Box]) -> float:
    """Share of the text-like ink of a page that lies outside all boxes, 0-1.

    Text-like ink is what, smeared sideways by a letter's width, forms strips of a line's height and several times its
    length, part dark and part light inside. Photographs, rules and filled areas do not.

    Args:
        pixels: The page, shape (height, width, 3), dtype uint8.
        boxes: Lines that are known, in page pixels.
    """
    height, width = pixels.shape[:2]
    scale = min(1.0, PARSING.analysis_height / max(height, width))
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    if scale < 1.0:
        grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    strips = _text_strips(np.asarray(grey, dtype=np.uint8))
    if not len(strips):
        return 0.0
    if not len(boxes):
        return 1.0
    size = areas(strips)
    known = as_array(boxes) * scale
    covered = np.minimum(shared_areas(strips, known) / size, 1.0)
    return float(size[covered < PARSING.strip_covered].sum() / size.sum())


def _text_strips(grey: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Boxes of text-like strips, shape (n, 4)."""
    gradient = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3)))
    level, edges = cv2.threshold(gradient, 0, 255, cv2.THRESH_BINARY | cv2.THRESH_OTSU)
    if level < PARSING.edge_level:  # Otsu splits the noise of an empty page too
        _, edges = cv2.threshold(gradient, PARSING.edge_level, 255, cv2.THRESH_BINARY)
    edges[_rules(np.asarray(edges, dtype=np.uint8))] = 0  # or a line of text that touches its frame is part of it
    smeared = cv2.morphologyEx(edges, cv2.MORPH_CLOSE, cv2.getStructuringElement(cv2.MORPH_RECT, (9, 1)))
    count, _, stats, _ = cv2.connectedComponentsWithStats(smeared, connectivity=4)
    if count < 2:
        return np.empty((0, 4))
    x, y, w, h, filled = stats[1:, :5].astype(np.float64).T
    fill = filled / np.maximum(w * h, 1.0)
    texty = (h >= 6) & (h <= 60) & (w >= 2.5 * h) & (fill > 0.4) & (fill < 0.98)
    strips: NDArray[np.float64] = np.stack([x, y, x + w, y + h], axis=1)[texty]
    return strips


def _rules(edges: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which edge pixels belong to rules and frames, shape of ``edges``."""
    across = cv2.morphologyEx(
        edges, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_RECT, (PARSING.rule_length, 1))
    )
    down = cv2.morphologyEx(edges, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_RECT, (1, PARSING.rule_part)))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(cv2.bitwise_or(across, down), connectivity=8)
    long = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]) >= PARSING.rule_length
    long[0] = False
    # Letters that touch a rule cut the edge on their side into pieces; the edge on the other side is whole.
    return cv2.dilate(long[labels].astype(np.uint8), np.ones((PARSING.rule_width, PARSING.rule_width), np.uint8)) > 0


def merge_lines(layer: Sequence[TextLine], read: Sequence[TextLine]) -> list[TextLine]:
    """The layer's lines, and those read from pixels where the layer has none."""
    if not layer or not read:
        return [*layer, *read]
    known, found = as_array(line.box for line in layer), as_array(line.box for line in read)
    covered = shared_areas(found, known) / np.maximum(areas(found), 1e-9)
    return [*layer, *(line for line, share in zip(read, covered, strict=True) if share < PARSING.strip_covered)]
