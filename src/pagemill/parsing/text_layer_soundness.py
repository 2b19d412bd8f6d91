"""Whether the text that a PDF page carries can be taken instead of reading the pixels."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress, groupby, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import (
    Box,
    area,
    areas,
    as_array,
    as_boxes,
    intersection_matrix,
    shared_areas,
    union_box,
)
from pagemill.document.labels import PICTURES, TASK_OF_LABEL, Task
from pagemill.document.page import TextLine
from pagemill.document.spans import reworded
from pagemill.imaging.page import TextLayer
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.late import cv2, re
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.lines import is_vertical
from pagemill.parsing.thresholds import PARSING

_INDIC_WORD = re.compile("\\S*[\u0900-\u0dff]\\S*")
_THAI = re.compile("[\u0e01-\u0eff]")
_TWICE = re.compile(r"([\u0e01-\u0e30\u0e40-\u0e46][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]+)\S{0,2} \1(?!\S)")
"""A consonant with the marks on it, given once more, alone."""
_MARKS = re.compile("[\u0300-\u036f]")
_MOJIBAKE = re.compile("Ã[\u0080-\u00bf©¨ª«¤¶¼]|â€|Â[\u00a0-\u00bf]|ï»¿")

SOUND = "sound"
"""Take the layer and do not read the page."""
PARTIAL = "partial"
"""What the layer holds is good, but the page shows more text: read the page and merge (:func:`merge_lines`)."""
UNSOUND = "unsound"
"""Read the page; the layer has no visible text, or text that means nothing."""


class Judgement(NamedTuple):
    """The verdict on a text layer."""

    verdict: str
    ink_without_text: float = 0.0
    """Share of the page's text-like ink that lies outside all lines."""
    text_without_ink: float = 0.0
    """Share of the visible characters at places where the page shows nothing: white on white, or covered."""
    lacks_line: bool = False
    """Ink without text takes the place of a line of a paragraph."""
    why: str = ""
    """Reason of a verdict other than ``SOUND``."""


def judge(layer: TextLayer, pixels: Pixels | None) -> Judgement:
    """Judge a text layer by its mapping, its statistics and the ink it leaves unexplained.

    Args:
        layer: As extracted, boxes in pixels of ``pixels``.
        pixels: The rendered page, shape (height, width, 3), dtype uint8; None where it shows only the layer's text.
    """
    if layer.unmapped > PARSING.unmapped * layer.characters:
        share = layer.unmapped / max(1, layer.characters)
        return Judgement(UNSOUND, why=f"{share:.0%} of its characters have no Unicode value")
    if not layer.lines:
        return Judgement(UNSOUND, why="none of its text is visible")
    if is_garbled(" ".join(line.text for line in layer.lines)):
        return Judgement(UNSOUND, why="its characters do not form words")
    if pixels is None:
        return Judgement(SOUND)
    # An invisible layer is the output of somebody's OCR, of unknown quality: it only tells where to read.
    described = sum(len(line.text.replace(" ", "")) for line in _over_ink(layer, pixels))
    boxes = [line.box for line in (*layer.lines, *layer.marks) if not _slants(line)]
    unread, strips = _unread_strips(pixels, boxes)
    lacks_line = _lacks_line(strips, as_array(boxes))
    why = ""
    if lacks_line:
        why = "a line between its lines is drawn as shapes"
    elif described > PARSING.invisible * layer.characters:
        why = "invisible text is over what the page shows"
    elif unread > PARSING.unread_ink:
        why = f"{unread:.0%} of the page's text-like ink is outside of it"
    return Judgement(PARTIAL if why else SOUND, unread, _unshown(layer.lines, pixels), lacks_line, why)


def _unshown(lines: Sequence[TextLine], pixels: Pixels) -> float:
    """Share of the characters of lines in whose boxes the page has one colour."""
    unshown = 0
    for line in lines:
        x1, y1, x2, y2 = (max(round(value), 0) for value in line.box)
        shown = pixels[y1:y2:2, x1:x2:2]
        unshown += len(line.text) * (shown.size > 0 and bool((np.ptp(shown, axis=(0, 1)) < PARSING.shown).all()))
    return unshown / max(1, sum(len(line.text) for line in lines))


def _over_ink(layer: TextLayer, pixels: Pixels) -> list[TextLine]:
    """The invisible lines below which the page shows something that no visible line covers."""
    boxes = as_array(line.box for line in layer.hidden_lines)
    covered = shared_areas(boxes, as_array(line.box for line in layer.lines if not _slants(line)))
    apart = covered < PARSING.strip_covered * np.maximum(areas(boxes), 1e-9)
    return [line for line, alone in zip(layer.hidden_lines, apart, strict=True) if alone and _is_inked(pixels, line)]


def _is_inked(pixels: Pixels, line: TextLine) -> bool:
    x1, y1, x2, y2 = (max(round(value), 0) for value in line.box)
    green = pixels[y1:y2, x1:x2, 1].astype(np.int16)
    return green.size > 0 and bool((np.abs(green - np.median(green)) > PARSING.ink_contrast).mean() > PARSING.line_ink)


def is_garbled(text: str) -> bool:
    """Whether a text is implausible: signs, one glyph, a wrong encoding, or letters that mean nothing.

    A text of too few characters to tell is not.
    """
    compact = "".join(char for char in text if not char.isspace() and char not in ".…_-–—·")
    if len(compact) < PARSING.sample:
        return False
    if _is_shattered(text):
        return True
    commonest, times = Counter(compact).most_common(1)[0]
    if (
        sum(char.isalnum() for char in compact) < PARSING.letters * len(compact)
        or (times > PARSING.one_glyph * len(compact) and not commonest.isdigit())
        or len(_MOJIBAKE.findall(text)) > PARSING.mojibake * len(compact)
    ):
        return True
    words = re.findall("[A-Za-z]+", _MARKS.sub("", unicodedata.normalize("NFD", text)))  # vowels have accents, too
    letters = "".join(words).lower()
    if len(letters) < PARSING.sample or len(letters) <= PARSING.ascii_letters * len(compact):
        return False
    least, most = PARSING.vowels
    plausible = least <= len(re.findall(r"[aeiouy]", letters)) / len(letters) <= most
    return not plausible or len(letters) > PARSING.word_length * len(words)


def _is_shattered(text: str) -> bool:
    """Whether clusters of letters and marks are torn apart or given twice, as browsers print Indic scripts and Thai."""
    words = _INDIC_WORD.findall(text)
    lone, twice = sum(len(word) == 1 for word in words), len(_TWICE.findall(text))
    return lone > max(2, PARSING.lone_letters * len(words)) or twice > max(
        1, PARSING.given_twice * len(_THAI.findall(text))
    )


def unread_ink(pixels: Pixels, boxes: Sequence[Box]) -> float:
    """Share of the text-like ink of a page that lies outside all boxes, 0-1.

    Text-like ink is what, smeared sideways by a letter's width, forms strips of a line's height and several times its
    length, part dark and part light inside. Photographs, rules and filled areas do not.

    Args:
        pixels: The page, shape (height, width, 3), dtype uint8.
        boxes: Lines that are known, in page pixels.
    """
    return _unread_strips(pixels, boxes)[0]


def _unread_strips(pixels: Pixels, boxes: Sequence[Box]) -> tuple[float, NDArray[np.float64]]:
    """Result of :func:`unread_ink`, and the strips that lie outside all boxes, in page pixels, shape (n, 4)."""
    height, width = pixels.shape[:2]
    scale = min(1.0, PARSING.analysis_height / max(height, width))
    grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    if scale < 1.0:
        across, down = max(scale, 1 / width), max(scale, 1 / height)  # a strip of few pixels would have none left
        grey = cv2.resize(grey, None, fx=across, fy=down, interpolation=cv2.INTER_AREA)
    strips = _text_strips(np.asarray(grey, dtype=np.uint8))
    size = areas(strips)
    covered = shared_areas(strips, as_array(boxes) * scale) / size
    is_unread = covered < PARSING.strip_covered
    return float(size[is_unread].sum() / max(size.sum(), 1.0)), strips[is_unread] / scale


def _lacks_line(strips: NDArray[np.float64], lines: NDArray[np.float64]) -> bool:
    """Whether a strip takes the place of a line of a paragraph: text drawn as shapes between lines of the layer.

    The next lines above and below are over and under most of it, as far away from it as lines of a paragraph are from
    each other.
    """
    middles, heights = (lines[:, 1] + lines[:, 3]) / 2, lines[:, 3] - lines[:, 1]
    for left, top, right, bottom in strips:
        shared = np.minimum(lines[:, 2], right) - np.maximum(lines[:, 0], left)
        distance = middles - (top + bottom) / 2
        near = (shared >= PARSING.row_shared * (right - left)) & (np.abs(distance) <= PARSING.row_pitch * heights)
        above, below = -distance[near & (distance < 0)], distance[near & (distance > 0)]
        if above.size and below.size:
            nearest, farther = sorted((above.min(), below.min()))
            if farther <= PARSING.row_rhythm * nearest and bottom - top <= PARSING.row_height * nearest:
                return True
    return False


def _text_strips(grey: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Boxes of text-like strips, shape (n, 4)."""
    gradient = cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3)))
    level, _ = cv2.threshold(gradient, 0, 255, cv2.THRESH_OTSU)
    # Otsu splits the noise of an empty page too.
    edges = np.where(gradient > max(level, PARSING.edge_level), 255, 0).astype(np.uint8)
    edges[_rules(edges)] = 0  # or a line of text that touches its frame is part of it
    smeared = cv2.morphologyEx(edges, cv2.MORPH_CLOSE, np.ones((1, 9), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(smeared, connectivity=4)
    x, y, w, h, filled = stats[1:, :5].astype(np.float64).T
    fill = filled / np.maximum(w * h, 1.0)
    texty = (h >= 6) & (h <= 60) & (w >= 2.5 * h) & (fill > 0.4) & (fill < 0.98)
    strips: NDArray[np.float64] = np.stack([x, y, x + w, y + h], axis=1)[texty]
    return strips


def _rules(edges: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which edge pixels belong to rules and frames, shape of ``edges``."""
    across = cv2.morphologyEx(edges, cv2.MORPH_OPEN, np.ones((1, PARSING.rule_length), np.uint8))
    down = cv2.morphologyEx(edges, cv2.MORPH_OPEN, np.ones((PARSING.rule_part, 1), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(cv2.bitwise_or(across, down), connectivity=8)
    long = np.maximum(stats[:, cv2.CC_STAT_WIDTH], stats[:, cv2.CC_STAT_HEIGHT]) >= PARSING.rule_length
    long[0] = False
    # Letters that touch a rule cut the edge on their side into pieces; the edge on the other side is whole.
    return cv2.dilate(long[labels].astype(np.uint8), np.ones((PARSING.rule_width, PARSING.rule_width), np.uint8)) > 0


def holds_unsaid_text(
    detected: Sequence[DetectedRegion], lines: Sequence[TextLine], images: Sequence[Box], pixels: Pixels
) -> bool:
    """Whether layout surely sees text or a table, in no picture, where a layer says little.

    Letters drawn as shapes, and text that is an image: a region of it, or a line or word in a region of other text.
    """
    said = as_array(line.box for line in lines)
    slanting = np.array([_slants(line) for line in lines], dtype=bool)
    pictures = as_array(region.box for region in detected if region.label in PICTURES)
    sure = [
        region.box
        for region in detected
        if TASK_OF_LABEL[region.label] in (Task.TEXT, Task.TABLE)
        and (region.score or 0.0) >= PARSING.sure_text
        and not _is_within(region.box, pictures)
    ]
    if not all(_reaches_into(said, slanting, box) for box in sure):
        return True
    pasted = (image for image in images if _is_within(image, as_array(sure)))
    return any(_unread_ink_in(box, pixels, said[~slanting]) > PARSING.unread_ink for box in chain(sure, pasted))


def _is_within(box: Box, regions: NDArray[np.float64]) -> bool:
    """Whether most of a box is in one of the regions."""
    return bool((shared_areas(regions, as_array([box])) >= PARSING.region_covered * area(box)).any())


def _unread_ink_in(region: Box, pixels: Pixels, boxes: NDArray[np.float64]) -> float:
    """Result of :func:`unread_ink` for a region of a page."""
    left, top = (max(math.floor(value), 0) for value in region[:2])
    near = boxes[shared_areas(boxes, as_array([region])) > 0]
    return unread_ink(crop(pixels, region), as_boxes(near - [left, top, left, top]))


def _reaches_into(boxes: NDArray[np.float64], slanting: NDArray[np.bool_], region: Box) -> bool:
    """Whether a box shares more with a region than its edge: a part of the smaller one of both, or of what slants."""
    box, own = as_array([region]), areas(boxes)
    least = PARSING.strip_covered * np.maximum(np.where(slanting, own, np.minimum(own, areas(box))), 1e-9)
    return bool((shared_areas(boxes, box) >= least).any())


def _slants(line: TextLine) -> bool:
    """Whether the box around a line says little about its place, as that of a watermark from corner to corner."""
    if line.polygon is None or len(line.polygon) != 4:
        return False
    first, second, _, last = line.polygon
    return math.dist(first, second) * math.dist(first, last) < PARSING.slanting * area(line.box)


def is_unmapped(line: TextLine) -> bool:
    """Whether most characters of a line, or of a word in it, have no Unicode value; a single one may be a bullet."""
    if "\ufffd" not in line.text:
        return False
    parts = (line.text.replace(" ", ""), *line.text.split())
    return any(2 * part.count("\ufffd") > max(2, len(part)) for part in parts)


def lines_not_read(layer: TextLayer, read: Sequence[TextLine], pixels: Pixels) -> int:
    """Lines of an unsound layer that are shown and of which nothing was read; all where nothing was read at all.

    Args:
        layer: As extracted.
        read: What was read on the page as it stands.
        pixels: The page, shape (height, width, 3), dtype uint8.
    """
    if not read:
        return sum(len(line.text) > 1 for line in layer.lines + layer.hidden_lines)
    return sum(len(line.text) > 1 and _is_inked(pixels, line) for line in _not_covered(layer.lines, read))


def merge_lines(layer: Sequence[TextLine], read: Sequence[TextLine]) -> list[TextLine]:
    """The layer's lines, and those read from pixels where the layer has none, or none that says anything.

    What is read at an unmapped line may reach over mapped ones beside it: it replaces them too.
    """
    unmapped = [line for line in layer if is_unmapped(line)]
    boxes = as_array(line.box for line in unmapped)
    least = PARSING.strip_covered * np.maximum(areas(boxes), 1e-9)
    replaces = [bool((intersection_matrix(as_array([line.box]), boxes)[0] >= least).any()) for line in read]
    replacing = list(compress(read, replaces))
    mapped = _not_covered([line for line in layer if not is_unmapped(line)], replacing, by_word=True)
    others = [line for line, replaced in zip(read, replaces, strict=True) if not replaced]
    found = [*replacing, *_beside(others, mapped)]
    return [*mapped, *found, *_not_covered(unmapped, found, by_word=True)]


def _beside(lines: Sequence[TextLine], known: Sequence[TextLine]) -> Iterator[TextLine]:
    """What known lines do not hold of others: all of a line, or words of it, as the value behind a label."""
    boxes = as_array(word.box for line in lines for word in line.words)
    shared = shared_areas(boxes, as_array(line.box for line in known if not _slants(line)))
    is_said = iter((shared >= PARSING.strip_covered * np.maximum(areas(boxes), 1e-9)).tolist())
    alone = set(map(id, _not_covered(lines, known)))
    for line in lines:
        words = list(zip(line.words, islice(is_said, len(line.words)), strict=True))
        if is_vertical(line) or not any(said for _, said in words):
            yield from [line] if id(line) in alone else []
            continue
        for said, part in groupby(words, key=itemgetter(1)):
            rest = tuple(word for word, _ in part)
            if not said and max(len(word.text) for word in rest) > 1:
                text, box = " ".join(word.text for word in rest), union_box(word.box for word in rest)
                yield reworded(line, text, box=box, polygon=None, words=rest)


def _not_covered(lines: Sequence[TextLine], known: Sequence[TextLine], *, by_word: bool = False) -> list[TextLine]:
    """The lines that known ones do not cover.

    Args:
        lines: To choose from.
        known: The others.
        by_word: Each word has to be covered, so that none is lost with the others; all but single characters.
    """
    words = [[word.box for word in line.words if by_word and len(word.text) > 1] or [line.box] for line in lines]
    boxes = as_array(chain.from_iterable(words))
    slanting = np.repeat([_slants(line) for line in lines], [len(own) for own in words])
    shared = shared_areas(boxes, as_array(line.box for line in known if not _slants(line)))
    shared += slanting * shared_areas(boxes, as_array(line.box for line in known if _slants(line)))
    shares = iter((shared / np.maximum(areas(boxes), 1e-9)).tolist())
    least = [min(islice(shares, len(own))) for own in words]
    return [line for line, share in zip(lines, least, strict=True) if share < PARSING.strip_covered]
