"""Recognised lines as a text layer has them: font size, baseline, edges of words, weight and pitch, by pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec
import numpy as np

from pagemill.document.geometry import Box, split_when
from pagemill.document.page import Mark, Span, TextLine, Word
from pagemill.imaging.transforms import ink_mask
from pagemill.imaging.types import Flags, Pixels
from pagemill.late import cv2
from pagemill.parsing.lines import line_size, weighted_median
from pagemill.parsing.lists import BULLET
from pagemill.parsing.thresholds import PARSING
from pagemill.parsing.typography.thresholds import SCANNED, TYPOGRAPHY

_FLAT = frozenset("aceijmnorsuvwxz.,:;-_~=+gpqy'\"«»·…–—•*авгдежзиклмнопрстухцчшщъыьэюя")
"""What does not reach up to the height of capitals."""
_LOW = frozenset("gjpqyQ,;()[]{}|_@$/§µдруфцщДЦЩ")
"""What may reach below the baseline."""
_THIN, _NARROW = frozenset("'`´.,:;!|"), frozenset('ijl1I()[]{}"/\\')
"""Characters with much room beside them in letters of one width."""
_SIGNS = frozenset("_=(){}[];<>|&#$@\\/*+\"':")
"""Of programs."""
_DOTS = ".·…•"
_LEADER = "........"

_Word = tuple[str, float, float]


class _Measure(msgspec.Struct):
    """What the pixels of a line tell; places in page pixels."""

    line: TextLine
    baseline: float
    height: float
    """Of what rises above the baseline."""
    tall: bool
    """Whether that is the height of capitals, figures or ascenders."""
    small: float
    """Height of small letters, where it is another one; else 0."""
    wide: bool
    """Whether most of it is in a script whose characters fill the em square."""
    weight: float
    """Mean width of its strokes."""
    ground: float
    """Grey level of what it is printed on."""
    words: list[_Word]
    """Text, start and end of the ink of each word."""
    size: float = 0.0
    """Font size."""
    bold: bool = False
    pitch: float = 0.0
    """Of its characters where these have one width; else 0."""
    is_code: bool = False
    """Whether fixed pitch sets it apart: not where the page is typewritten, or a receipt."""

    @property
    def x1(self) -> float:
        """Where its ink begins."""
        return self.words[0][1]

    @property
    def x2(self) -> float:
        """Where its ink ends."""
        return self.words[-1][2]

    @property
    def characters(self) -> int:
        """Their number, with one space between words."""
        return sum(len(text) + 1 for text, _, _ in self.words) - 1


class Measured(msgspec.Struct, frozen=True):
    """The text of a page with its typography."""

    lines: list[TextLine]
    """Cut at wide gaps."""
    originals: dict[int, TextLine]
    """The recognised line by the id of each line that stands for it as a whole."""
    bullets: list[Box]
    """Signs before lines that recognition left out."""
    rows: list[TextLine]
    """Those of tables."""


def measured(lines: Sequence[TextLine], pixels: Pixels, rows: Sequence[TextLine] = ()) -> Measured:
    """Lines with their typography.

    Args:
        lines: As recognised, level.
        pixels: Of the page.
        rows: Lines of tables, which tell the size of text, too.
    """
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    found = [_measure(line, grey) for line in [*lines, *rows]]
    cells = found[len(lines) :]
    _give_sizes(found)
    for measure in found:  # brackets reach below the baseline
        if not any(map(str.isalnum, measure.line.text)) and measure.height > 0.8 * measure.size:
            measure.baseline -= 0.22 * measure.size
    slope = _slope(found)
    for measure in found:
        measure.baseline -= slope * ((measure.x1 + measure.x2 - grey.shape[1]) / 2)
    pitches = _give_pitches(found)
    _measure_again(found, pitches, grey)
    _give_weights(found)
    _give_body_size([measure for measure in found if not measure.bold and not measure.pitch])
    found = _with_leaders(found[: len(lines)], grey)
    result: list[TextLine] = []
    originals: dict[int, TextLine] = {}
    for measure in found:
        parts = list(_as_lines(measure))
        if len(parts) == 1:
            originals[id(parts[0])] = measure.line
        result += parts
    of_tables = [part for measure in cells for part in _as_lines(measure)]
    return Measured(result, originals, _bullets([*found, *cells], grey), of_tables)


def _measure(line: TextLine, grey: np.ndarray, without: Sequence[_Word] = ()) -> _Measure:
    """Measure a line; where its pixels show nothing, its box tells.

    Args:
        line: As recognised.
        grey: The page.
        without: Words that are in letters of another kind.
    """
    words = [(word.text, word.box[0], word.box[2]) for word in line.words if word.text.strip()]
    words = words or [(line.text.strip(), line.box[0], line.box[2])]
    text = "".join(word[0] for word in words if word not in without)
    size = max(1.0, line_size(line))
    fallback = _Measure(line, line.box[3] - 0.3 * size, 0.72 * size, True, 0.0, False, 0.0, 255.0, words)
    x1, y1 = max(0, int(line.box[0])), max(0, int(line.box[1]))
    crop = grey[y1 : int(line.box[3]) + 1, x1 : int(line.box[2]) + 1].copy()
    if min(crop.shape, default=0) < 4 or int(crop.max()) - int(crop.min()) < SCANNED.contrast:
        return fallback
    ink = ink_mask(crop)
    ink[:, ink.mean(axis=0) >= SCANNED.rule] = False
    ink[ink.mean(axis=1) >= SCANNED.rule] = False
    # Underlines of some words: longer than any stroke of a letter.
    stroke = np.ones((1, int(SCANNED.stroke * size) + 1), np.uint8)
    ink[cv2.morphologyEx(ink.astype(np.uint8), cv2.MORPH_OPEN, stroke) > 0] = False
    for _, start, end in without:
        place = slice(max(0, int(start) - x1), max(0, int(end) - x1))
        ink[:, place], crop[:, place] = False, int(np.median(crop[~ink]))
    high = sum(char.isalnum() and char not in _FLAT for char in text)
    zone = _zone(ink, text, SCANNED.high * high * size)
    if zone is None:
        return fallback
    top, rise, bottom = zone
    own = ink[top : min(len(ink), bottom + max(2, (bottom - top) // 3))]
    words = _placed(words, np.flatnonzero(own.any(axis=0)) + x1, size)
    wide = 2 * sum(char >= "\u2e80" for char in text) > len(text)
    tall = wide or high > 0
    small = float(bottom - rise) if tall and bottom - rise < 0.85 * (bottom - top) else 0.0
    sample = crop[::3, ::3][~ink[::3, ::3]]  # tells it as well, in less time
    ground = float(np.median(sample)) if sample.size else fallback.ground
    measure = _Measure(line, float(y1 + bottom), float(bottom - top), tall, small, wide, 0.0, ground, words)
    letters = ink[rise:bottom]
    runs = int((np.diff(letters.astype(np.int8), axis=1, prepend=0) == 1).sum())
    # Grey pixels at the edges count by their share: strokes of small print are two pixels wide.
    dark = np.abs(crop[rise:bottom].astype(np.float32) - ground)
    measure.weight = float(dark.sum() / max(1.0, np.quantile(dark[letters][::5], 0.9)) / runs) if runs else 0.0
    return measure


def _zone(ink: Flags, text: str, least: float) -> tuple[int, int, int] | None:
    """Rows of a line's ink: where it begins, where its small letters begin, and the one below the baseline.

    Args:
        ink: Of the line's box.
        text: Of the line.
        least: Pixels of a row above small letters that belong to the line: not the feet of the line above.
    """
    profile = ink.sum(axis=1).astype(np.float64)
    if profile.max() < 2:
        return None
    peak = int(profile.argmax())
    top, end = peak, peak + 1
    while top > 0 and profile[top - 1] >= max(1.0, 0.01 * profile[peak], least):
        top -= 1
    while end < len(profile) and profile[end] >= max(1.0, 0.01 * profile[peak]):
        end += 1
    if end - top < 4:
        return None
    padded = np.pad(profile, 2)
    step = padded[:-3] + padded[1:-2] - padded[2:-1] - padded[3:]  # at [y]: the two rows above it less those from it on
    middle = (top + end) // 2
    bottom = end
    if any(char in _LOW for char in text):
        bottom = middle + int(step[middle : end + 1].argmax())
    rise = top + int((-step[top : middle + 1]).argmax())
    return (top, rise, bottom) if bottom - rise >= 3 else None


def _placed(words: list[_Word], inked: np.ndarray, size: float) -> list[_Word]:
    """Words with the edges of their ink: they end at the widest gap near the place where recognition parts them."""
    if not len(inked):
        return words
    starts = np.concatenate([inked[:1], inked[1:][np.diff(inked) > 1]]).astype(np.float64)
    ends = np.concatenate([inked[:-1][np.diff(inked) > 1], inked[-1:]]).astype(np.float64) + 1
    placed = []
    begin = float(starts[0])
    for (text, _, x2), (_, after, _) in pairwise(words):
        place = (x2 + after) / 2
        left, right = ends[:-1], starts[1:]
        near = (np.minimum(np.abs(left - place), np.abs(right - place)) < 0.7 * size) | (
            (left < place) & (place < right)
        )
        near &= left > begin
        if near.any():
            widest = int(np.where(near, right - left - 0.2 * np.abs((left + right) / 2 - place), -np.inf).argmax())
            placed.append((text, begin, float(left[widest])))
            begin = float(right[widest])
        else:
            placed.append((text, begin, max(begin + 1, x2)))
            begin = max(begin + 1, after)
    placed.append((words[-1][0], begin, max(begin + 1, float(ends[-1]))))
    return placed


def _give_sizes(found: Sequence[_Measure]) -> None:
    """Font sizes by the height of letters; sizes that differ by no more than the measure errs become one."""
    ratios = [measure.small / measure.height for measure in found if measure.small and not measure.wide]
    flat = SCANNED.capital * median(ratios) if len(ratios) > 2 else SCANNED.flat
    for measure in found:
        share = SCANNED.square if measure.wide else SCANNED.capital if measure.tall else flat
        measure.size = measure.height / share
    told = [measure for measure in found if _has_height(measure.line.text)]
    for measure in found:
        if told and not _has_height(measure.line.text):
            measure.size = min(told, key=lambda one: abs(one.baseline - measure.baseline)).size
    left = list(found)
    while left:
        sizes = np.array([measure.size for measure in left])
        weight = np.array([len(measure.line.text) for measure in left], dtype=np.float64)
        near = np.abs(sizes - sizes[:, None]) <= SCANNED.one_size / 2 * sizes[:, None]
        most = int((near @ weight).argmax())
        centre, own = sizes[most], near[most]
        usual = float(np.average(sizes[own], weights=weight[own]))
        within = np.abs(sizes - centre) <= SCANNED.one_size * centre
        for measure, inside in zip(left, within, strict=True):
            if inside:
                measure.size = round(usual, 1)
        left = [measure for measure, inside in zip(left, within, strict=True) if not inside]


def _has_height(text: str) -> bool:
    """Whether a line tells its size: brackets and dashes alone, or one small letter, do not."""
    signs = [char for char in text if char.isalnum()]
    return bool(signs) and not (len(signs) == 1 and signs[0].islower())


def _slope(found: Sequence[_Measure]) -> float:
    """How far rows fall to the right, per pixel: short lines do not tell the skew of a receipt, its rows do."""
    widths = np.array([m.x2 - m.x1 for m in found])
    long = widths > SCANNED.long_line * np.array([m.size for m in found])
    # Long lines have told the skew, and the page is straight: what rows of two columns have in common is chance.
    if 2 * widths[long].sum() > widths.sum():
        return 0.0
    places = np.array([((m.x1 + m.x2) / 2, m.baseline, m.size) for m in found]).reshape(-1, 3)
    across, down = (values - values[:, None] for values in (places[:, 0], places[:, 1]))
    pairs = (across > 5 * places[:, 2]) & (np.abs(down) < SCANNED.most_slope * across)
    slopes = down[pairs] / across[pairs]
    if not len(slopes):
        return 0.0
    tried = np.arange(-SCANNED.most_slope, SCANNED.most_slope, SCANNED.same_slope / 2)
    agreed = (np.abs(slopes - tried[:, None]) < SCANNED.same_slope).sum(axis=1)
    level = int((np.abs(slopes) < SCANNED.same_slope).sum())
    best = int(agreed.argmax())
    if agreed[best] < max(SCANNED.sloping, 1.5 * level):
        return 0.0
    return float(np.median(slopes[np.abs(slopes - tried[best]) < SCANNED.same_slope]))


def _give_weights(found: Sequence[_Measure]) -> None:
    """Which lines are bold: their strokes are wider, for their size, than those of most text in such letters."""
    for fixed in (False, True):
        own = [measure for measure in found if measure.weight and not measure.wide and (measure.pitch > 0) is fixed]
        if not own:
            continue
        values = [measure.weight / measure.size for measure in own]
        usual = weighted_median(values, [len(measure.line.text) for measure in own])
        for measure in own:
            measure.bold = measure.weight > SCANNED.bold * usual * measure.size


def _give_body_size(found: Sequence[_Measure]) -> None:
    """Lines of running text in one size: those with inline code or raised figures measure less, or more."""
    if found:
        body = weighted_median([measure.size for measure in found], [len(measure.line.text) for measure in found])
        for measure in found:
            if abs(measure.size - body) <= SCANNED.of_body * body:
                measure.size = body


def _measure_again(found: Sequence[_Measure], pitches: Sequence[float], grey: np.ndarray) -> None:
    """Measure lines with inline code by the rest of their words, if that is enough of them."""
    for measure in found:
        if measure.pitch or measure.wide:
            continue
        coded = [
            place
            for place, word in enumerate(measure.words)
            if len(word[0]) >= SCANNED.told and any(_is_as_wide(word, pitch) for pitch in pitches)
        ]
        rest = sum(len(text) for place, (text, _, _) in enumerate(measure.words) if place not in coded)
        words = [word for word in measure.line.words if word.text.strip()]
        if coded and rest > 3 and len(words) == len(measure.words):
            without = [(words[place].text, words[place].box[0], words[place].box[2]) for place in coded]
            again = _measure(measure.line, grey, without)
            if again.weight:
                measure.height, measure.tall, measure.small = again.height, again.tall, again.small
                measure.weight = again.weight
    _give_sizes([measure for measure in found if not measure.pitch])


def _give_pitches(found: Sequence[_Measure]) -> list[float]:
    """Which lines are of fixed pitch: their words begin and end on a grid of characters; the pitches of the page."""
    if not found:  # all lines are in tables
        return []
    latin = [measure for measure in found if not measure.wide and not BULLET.match(measure.line.text)]
    sure = []
    for measure in latin:
        few = len(measure.words) < 3  # of prose they would be short
        if measure.characters >= (2.5 if few else 1) * SCANNED.told:
            room = _bearing(measure.words[0][0][0]) + _bearing(measure.words[-1][0][-1])
            pitch = (measure.x2 - measure.x1) / (measure.characters - room)
            low, high = SCANNED.mono_range
            if low < pitch / measure.size < high and _on_grid(measure, pitch) > SCANNED.fixed:
                sure.append(pitch)
    alike = split_when(sorted(sure), lambda below, above: above - below > SCANNED.one_pitch * above)
    sure = [median(group) for group in alike if len(group) > 1]
    for measure in latin:
        fitting = [pitch for pitch in sure if _on_grid(measure, pitch) > SCANNED.fixed]
        measure.pitch = max(fitting, key=lambda pitch: _on_grid(measure, pitch), default=0.0)
    ordered = sorted(latin, key=lambda measure: measure.baseline)
    kept = {id(m) for m in latin if m.pitch and m.characters >= SCANNED.told and len(m.words) > 1}
    paper = median(measure.ground for measure in found)
    for run in (ordered, ordered[::-1]):  # short lines tell nothing without others beside them
        for place, measure in enumerate(run):
            near = [m for m in run[max(0, place - 4) : place] if id(m) in kept and _are_rows(m, measure, paper)]
            near = [
                m for m in near if not any(_is_between(other, m, measure) for other in latin if id(other) not in kept)
            ]
            if near and id(measure) not in kept:
                kept.add(id(measure))
                measure.pitch = near[-1].pitch
    for measure in latin:
        measure.pitch = measure.pitch if id(measure) in kept else 0.0
    of_code = [measure for measure in ordered if measure.pitch]
    _give_rows(of_code)
    for measure in of_code:  # signs that reach above and below letters make their lines seem larger
        sizes = [m.size for m in of_code if abs(m.pitch - measure.pitch) < 2 * SCANNED.one_pitch * m.pitch]
        measure.size = max(set(sizes), key=lambda size: (sizes.count(size), size))
    printed = "".join("".join(measure.line.text.split()) for measure in found)
    fixed = sum(len(measure.line.text) for measure in found if measure.pitch)
    typewritten = fixed > SCANNED.typewritten * sum(len(measure.line.text) for measure in found)
    if not typewritten or sum(char in _SIGNS for char in printed) >= PARSING.code_symbols * len(printed):
        for measure in found:
            measure.is_code = measure.pitch > 0
    return sure


def _with_leaders(found: Sequence[_Measure], grey: np.ndarray) -> list[_Measure]:
    """Lines joined over the dots between them, which recognition leaves out, or reads a few of."""
    result: list[_Measure] = []
    for right in sorted(found, key=lambda measure: measure.x1):
        joined = False
        for left in result:
            near = abs(left.baseline - right.baseline) < 0.3 * right.size and right.x1 - left.x2 > right.size
            if near and _are_dots(grey, left, right):
                words = [word for word in left.words if word[0].strip(_DOTS)]
                (text, x1, x2), *rest = [word for word in right.words if word[0].strip(_DOTS)] or right.words[-1:]
                words[-1] = (words[-1][0].rstrip(_DOTS), *words[-1][1:])
                dots = (_LEADER, words[-1][2] + 0.2 * left.size, x1 - 0.2 * left.size)
                left.words = [*words, dots, (text.lstrip(_DOTS), x1, x2), *rest]
                left.line = msgspec.structs.replace(left.line, text=" ".join(word[0] for word in left.words))
                left.is_code, joined = False, True
                break
        if not joined:
            result.append(right)
    return result


def _bullets(found: Sequence[_Measure], grey: np.ndarray) -> list[Box]:
    """Round or square signs that stand before lines, several below each other: one may be dirt."""
    signs: list[tuple[Box, float]] = []
    for measure in found:
        size, top = measure.size, measure.baseline - 0.85 * measure.size
        left, right = measure.x1 - TYPOGRAPHY.bullet_gap * size, measure.x1 - 0.25 * size
        row = [m.x2 for m in found if m is not measure and m.baseline - m.size < measure.baseline < m.baseline + m.size]
        left = max([0.0, left, *(x2 + 0.25 * size for x2 in row if x2 <= right)])
        crop = grey[max(0, int(top)) : int(measure.baseline + 0.1 * size), int(left) : max(0, int(right))]
        if min(crop.shape, default=0) < 4 or int(crop.max()) - int(crop.min()) < SCANNED.contrast:
            continue
        ink = np.abs(crop.astype(np.int16) - int(np.median(crop))) > 0.5 * (int(crop.max()) - int(crop.min()))
        count, _, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
        low, high = TYPOGRAPHY.bullet_size
        parts = [part for part in stats[1:count].tolist() if max(part[2], part[3]) > 0.5 * low * size]
        if len(parts) == 1:
            x, y, width, height, inked = parts[0]
            x1, y1 = x + float(int(left)), y + float(max(0, int(top)))
            if low * size < min(width, height) and max(width, height) < high * size and inked > width * height / 2:
                signs.append(((x1, y1, x1 + width, y1 + height), size))
    return [
        box
        for box, size in signs
        if sum(
            abs(other[0] - box[0]) < 0.2 * size and abs(other[3] - other[1] - box[3] + box[1]) < 3 for other, _ in signs
        )
        > 1
    ]


def _are_dots(grey: np.ndarray, left: _Measure, right: _Measure) -> bool:
    """Whether nothing but a row of dots is between two lines."""
    size, base = left.size, left.baseline
    if not any(word[0].strip(_DOTS) for word in left.words):
        return False
    strip = grey[max(0, int(base - 0.8 * size)) : int(base + 0.15 * size) + 1, int(left.x2) + 1 : int(right.x1)]
    if min(strip.shape, default=0) < 3:
        return False
    ink = strip < 0.5 * (float(strip.max()) + float(strip.min()))
    high = int(0.5 * size)
    if int(strip.max()) - int(strip.min()) < SCANNED.contrast or ink[:high].any(axis=0).mean() > 0.1:
        return False
    edges = np.flatnonzero(np.diff(np.concatenate([[False], ink[high:].any(axis=0), [False]]).astype(np.int8)))
    starts, ends = edges[::2], edges[1::2]
    if len(starts) < SCANNED.leader_dots or (ends - starts).max() > 0.3 * size:
        return False
    steps = np.diff(starts)
    return bool(steps.max() < 1.2 * size and np.abs(steps - np.median(steps)).mean() < 0.3 * np.median(steps))


def _give_rows(code: Sequence[_Measure]) -> None:
    """Baselines of code in whole rows: brackets and misread signs are measured a little off."""
    above: list[tuple[_Measure, _Measure]] = []
    for place, measure in enumerate(code):
        over = [m for m in code[max(0, place - 3) : place] if m.x1 < measure.x2 and measure.x1 < m.x2]
        if over and measure.baseline - over[-1].baseline > 0.5 * measure.size:
            above.append((over[-1], measure))
    steps = sorted(below.baseline - one.baseline for one, below in above)
    rows = [step for step in steps if step < 1.5 * steps[len(steps) // 4]]
    for one, below in above:
        lines = (below.baseline - one.baseline) / median(rows)
        if abs(lines - round(lines)) < SCANNED.off_row and 0 < round(lines) < 4:
            below.baseline = one.baseline + round(lines) * median(rows)


def _bearing(char: str) -> float:
    """Room beside the ink of a character on either side of its cell, in fixed pitch, as a share of that."""
    return 0.35 if char in _THIN else 0.22 if char in _NARROW else 0.08


def _is_as_wide(word: _Word, pitch: float) -> bool:
    """Whether a word is as wide as its characters are in a fixed pitch."""
    text, x1, x2 = word
    return abs((x2 - x1) / pitch + _bearing(text[0]) + _bearing(text[-1]) - len(text)) < SCANNED.on_grid


def _on_grid(measure: _Measure, pitch: float) -> float:
    """Share of words, and of steps from one to the next, that are as wide as their characters in a fixed pitch."""
    cells = [(len(text), x1 / pitch - _bearing(text[0])) for text, x1, _ in measure.words]
    off = [0.0 if _is_as_wide(word, pitch) else 1.0 for word in measure.words]
    off += [abs(after[1] - start - length - 1) for (length, start), after in pairwise(cells)]
    return sum(one < SCANNED.on_grid for one in off) / len(off)


def _are_rows(code: _Measure, other: _Measure, paper: float) -> bool:
    """Whether a line is a row of the code beside it: close, and on its grid or its shade."""
    indented = 8 * code.size
    if other.x2 < code.x1 - indented or other.x1 > code.x2:
        return False
    if abs(other.baseline - code.baseline) > SCANNED.code_rows * code.size:
        return False
    if other.pitch:
        return abs(code.pitch - other.pitch) < 2 * SCANNED.one_pitch * code.pitch
    if abs(other.size - code.size) > SCANNED.of_body * code.size:
        return False
    shade = SCANNED.shade
    if other.characters >= SCANNED.told and _on_grid(other, code.pitch) < 0.5:
        return False  # prose has a shade, too
    if min(abs(code.ground - paper), abs(other.ground - paper)) > shade > abs(code.ground - other.ground):
        return True
    indent = (other.x1 - code.x1) / code.pitch
    return abs(indent - round(indent)) < SCANNED.on_grid and _on_grid(other, code.pitch) >= 0.5


def _is_between(other: _Measure, code: _Measure, measure: _Measure) -> bool:
    """Whether text before code on its level has the place of a line beside it: that is a cell, and so is the code.

    The line itself is such text, unless it numbers the row.
    """
    if other is measure and measure.line.text.strip().isdigit():
        return False
    level = abs(other.baseline - code.baseline) < SCANNED.level * code.size
    before = code.x1 - other.x2 > SCANNED.cut * code.size
    return level and before and other.x1 < measure.x2 and measure.x1 < other.x2


def _as_lines(measure: _Measure) -> Iterator[TextLine]:
    """A measured line as lines of a text layer, one for each run of words without a wide gap."""
    words = measure.words
    if measure.is_code:
        origin = measure.x1 - 0.1 * measure.pitch
        cells: list[tuple[str, int]] = []
        for text, x1, _ in words:
            free = cells[-1][1] + len(cells[-1][0]) + 1 if cells else 0  # letters off the grid must not close up
            cells.append((text, max(free, round((x1 - origin) / measure.pitch - 0.1))))
        words = [(text, origin + at * measure.pitch, origin + (at + len(text)) * measure.pitch) for text, at in cells]
    gaps = [word[1] - before[2] for before, word in pairwise(words)]
    least = SCANNED.cut * measure.size + 0.6 * measure.pitch
    if len(gaps) > 2:  # a justified line has wide gaps, all alike
        least = min(max(least, 2 * median(gaps)), 2 * least)
    top, bottom = measure.baseline - 0.8 * measure.size, measure.baseline + 0.25 * measure.size
    bearing = 0.0 if measure.is_code else 0.25 * measure.pitch or SCANNED.bearing * measure.size
    cuts = [place for place, gap in enumerate(gaps, 1) if gap >= least and not measure.is_code]
    for start, end in pairwise([0, *cuts, len(words)]):
        own = words[start:end]
        text = " ".join(word for word, _, _ in own) if cuts else measure.line.text.strip()
        spans = [Span(0, len(text), mark) for mark, is_so in ((Mark.CODE, measure.is_code),) if is_so]
        own = [(word, x1 - bearing, x2 + bearing) for word, x1, x2 in own]
        yield msgspec.structs.replace(
            measure.line,
            text=text,
            box=(own[0][1], top, own[-1][2], bottom),
            polygon=None,
            words=tuple(Word(word, (x1, top, x2, bottom)) for word, x1, x2 in own),
            font_size=measure.size,
            bold=measure.bold,
            spans=tuple(spans),
        )
