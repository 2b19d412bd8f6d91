"""Bullets recognised by their shape: text recognition reads □ as 口, ○ as O, ※ as *, or leaves them out.

A bullet is the first thing on its line, stands apart from the text, and is drawn as no letter is. What was read in its
place gives way to it; a text layer that lacks it (bullets drawn as graphics) gets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from pagemill.document.geometry import Box, as_array
from pagemill.document.page import TextLine, Word
from pagemill.document.spans import reworded
from pagemill.imaging.transforms import ink_mask
from pagemill.imaging.types import Flags, Floats, Indices, Pixels
from pagemill.late import cv2, re
from pagemill.parsing.bullet_shapes import RING, TICKED, shape_of
from pagemill.parsing.lines import direction, line_size
from pagemill.parsing.lists import marker
from pagemill.parsing.numeral_shapes import numeral_of
from pagemill.parsing.thresholds import PARSING

_SMALL = frozenset("·•▪")
"""Signs so simple that a speck may look like them: they must start another line of that indent."""
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3131-\u318e\u3400-\u9fff\uac00-\ud7a3]")
_CHECK_BOXES = frozenset("☐☑☒")
"""Of form fields, which say whether they are ticked: their pictures do not."""
_HANGUL = re.compile("[\u3131-\u318e\uac00-\ud7a3]")
_CLOSING = ")]}"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩"
_NUMERALS = frozenset(_CIRCLED + "123456789")
_NOT_TICKED = "☐"
_NO_NUMERAL = re.compile(r"\s*((?:[|Il1ㅣｌiL!\[\]\\/VvWNM()ㅐㅔ'\"Ⅰ-Ⅹ]|\s(?=\S{0,3}\.)){0,4})\.\s*(?=[\uac00-\ud7a3])")
"""What a Roman numeral and its point are read as, nothing included."""
_BARS = re.compile(r"\s*((?!1)[|Il1ㅣｌⅠⅡ!\[\]ㅐㅔ]{1,4}|IV|VI{0,3}|IX|X)(\s?\.)?\s+")
"""What Roman numerals are read as; a lone 1 is one."""
_ROMAN = "ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ"
_ROMAN_READ = dict(zip(("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"), _ROMAN, strict=True))


class _Found(NamedTuple):
    """A bullet at the start of a line."""

    line: int
    sign: str
    box: Box
    replaced: int
    """Characters of the line's text that were read in its place."""


def restore_bullets(lines: Sequence[TextLine], pixels: Pixels) -> list[TextLine]:
    """The lines with the bullets that the page shows.

    Args:
        lines: Of a straight page.
        pixels: Of the page.
    """
    boxes = as_array(line.box for line in lines)
    found = [
        bullet
        for index, line in enumerate(lines)
        if (
            bullet := _numeral(line, index, pixels)
            or _bullet(index, lines, boxes, pixels)
            or _roman(index, line, pixels)
        )
    ]
    if not any(_HANGUL.search(line.text) for line in lines):
        found = [bullet for bullet in found if not _is_full_stop(bullet, lines)]
    result = list(lines)
    for bullet in _numbered(_confirmed(found, lines), lines):
        result[bullet.line] = _with_bullet(lines[bullet.line], bullet)
    result = _without_pieces(result, [bullet for bullet in found if bullet.sign[0] in _ROMAN])
    if any(bullet.sign == TICKED for bullet in found):
        result = [_as_check_box(line) for line in result]
    return result


def _without_pieces(lines: list[TextLine], numerals: Sequence[_Found]) -> list[TextLine]:
    """The lines without those that are a numeral alone, which begins another line."""
    inside = [
        line.engine != "text-layer"
        and any(
            index != numeral.line
            and numeral.box[0] - 2 <= (line.box[0] + line.box[2]) / 2 <= numeral.box[2] + 2
            and numeral.box[1] <= (line.box[1] + line.box[3]) / 2 <= numeral.box[3]
            for numeral in numerals
        )
        for index, line in enumerate(lines)
    ]
    return [line for line, is_piece in zip(lines, inside, strict=True) if not is_piece]


def _as_check_box(line: TextLine) -> TextLine:
    """A line with its empty square as a check box: so it is beside ticked ones."""
    if not line.text.startswith("□"):
        return line
    first = tuple(msgspec.structs.replace(word, text=word.text.replace("□", _NOT_TICKED)) for word in line.words[:1])
    return reworded(line, _NOT_TICKED + line.text[1:], words=first + line.words[1:])


def _bullet(index: int, lines: Sequence[TextLine], boxes: Floats, pixels: Pixels) -> _Found | None:
    """The bullet that a line starts with, where its text does not say so."""
    line = lines[index]
    size = line_size(line)
    if abs(direction(line)) > PARSING.turned_tolerance or not line.text.strip():
        return None
    if line.text.lstrip()[0] in _CHECK_BOXES or (line.engine == "text-layer" and marker(line.text)):
        return None
    left, top, right, bottom = line.box
    if bottom - top > 2 * (right - left):
        return None
    same_row = (boxes[:, 1] < bottom - size / 4) & (boxes[:, 3] > top + size / 4)
    before = boxes[same_row & (boxes[:, 0] < left), 2]
    reach = PARSING.bullet_reach * size
    start = max(0, int(left - reach), int(before[before < right].max(initial=0.0)) + 1)
    end = min(pixels.shape[1], int(left + reach))
    ink = _ink(pixels[max(0, int(top)) : int(bottom) + 1, start:end])
    if ink is None:
        return None
    inner = ink[len(ink) // 6 : -(len(ink) // 6)]
    if _first_glyph(ink, size) is None and _first_glyph(inner, size) is None:  # most lines: nothing apart
        return None
    ink = _without_rules(ink)
    if (glyph := _first_glyph(ink, size)) is None:
        return None
    x1, y1, x2, y2 = glyph
    box = (float(start + x1), top + y1, float(start + x2), top + y2)
    replaced = _read_there(line, box)
    if replaced is None or (replaced and line.engine == "text-layer"):
        return None
    if replaced and line.text.strip()[replaced : replaced + 1] in tuple(_CLOSING):  # ○ read as ()
        replaced += 1
    said, rest = line.text.strip()[:replaced].strip(), line.text.strip()[replaced:].strip()
    if not rest[:1].isalnum() and rest[:1] not in "([<「『\"'“‘〈《":
        return None
    sign = shape_of(ink[y1:y2, x1:x2], size)
    if sign is None or sign == said or not _is_plausible(sign, said, rest):
        return None
    return _Found(index, sign, box, replaced)


def _ink(pixels: Pixels) -> Flags | None:
    """What is written in a piece of a page."""
    if min(pixels.shape[:2]) < 4:
        return None
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    if int(grey.max()) - int(grey.min()) < PARSING.ink_contrast:
        return None
    return ink_mask(grey)


def _without_rules(ink: Flags) -> Flags:
    """Ink without upright rules, and without what reaches in from the lines above and below."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(ink.astype(np.uint8), connectivity=8)
    top, extent = stats[:, cv2.CC_STAT_TOP], stats[:, cv2.CC_STAT_HEIGHT]
    height = len(ink)
    kept = (extent < height - 1) & (top + extent > height / 4) & (top < 3 * height / 4)
    result: Flags = kept[labels] & ink
    return result


def _first_glyph(ink: Flags, size: float) -> tuple[int, int, int, int] | None:
    """The box of the first glyph, if it is apart from what follows it; None where the crop cuts it."""
    columns = np.flatnonzero(np.diff(np.concatenate([[False], ink.any(axis=0), [False]]).astype(np.int8)))
    runs = columns.reshape(-1, 2).tolist()
    joined: list[list[int]] = []
    for run in runs:
        if joined and run[0] - joined[-1][1] < PARSING.bullet_part_gap * size:
            joined[-1][1] = run[1]
        else:
            joined.append(run)
    if len(joined) < 2 or joined[0][0] == 0:
        return None
    x1, x2 = joined[0]
    if joined[1][0] - x2 < PARSING.bullet_gap * size:
        return None
    rows = np.flatnonzero(ink[:, x1:x2].any(axis=1))
    return x1, int(rows[0]), x2, int(rows[-1]) + 1


def _read_there(line: TextLine, box: Box) -> int | None:
    """How many characters of a line were read where a bullet is; None where what was read goes on from there."""
    text = line.text.strip()
    if box[2] <= line.box[0] + (box[2] - box[0]) / 8:
        return 0
    count = 0
    for word in line.words:
        x1, _, x2, _ = word.box
        if x1 >= box[2] - (box[2] - box[0]) / 4:
            break
        place = text.find(word.text, count)
        if place < 0:
            return None
        if x2 <= box[2] + (box[2] - box[0]) / 2:
            count = place + len(word.text)
            continue
        if count == 0:  # read as the first letter of the first word
            count = max(1, round(len(word.text) * (box[2] - x1) / (x2 - x1)))
        break
    return count if count <= PARSING.bullet_characters else None


def _is_plausible(sign: str, said: str, rest: str) -> bool:
    """Whether a shape may be a bullet before this text, seen what was read in its place."""
    east_asian = _EAST_ASIAN.search(rest) is not None
    if sign in _SMALL:
        return not any(map(str.isalnum, said.replace("ㅇ", "").replace("ㅎ", "")))
    if sign == TICKED:  # characters such as 国 are drawn alike
        return not any(map(str.isalpha, said))
    if sign == RING:
        return east_asian
    if sign in "○◦◯" and not east_asian:
        return not said or not said.isalnum()
    return not (said.isascii() and said.isalnum()) or east_asian


def _is_full_stop(bullet: _Found, lines: Sequence[TextLine]) -> bool:
    """Whether a small ring is the full stop of a Chinese or Japanese sentence that a line's end parted from it."""
    return bullet.sign == "◦" and _EAST_ASIAN.search(lines[bullet.line].text[bullet.replaced :]) is not None


def _roman(index: int, line: TextLine, pixels: Pixels) -> _Found | None:
    """The Roman numeral that a line of East Asian text starts with, where upright bars were read as something else."""
    match = _BARS.match(line.text)
    size = line_size(line)
    if match is None or line.engine == "text-layer" or not line.words or not _EAST_ASIAN.search(line.text):
        return None
    said, point = match[1], "." if match[2] else ""
    box = line.words[0].box
    x1, y1, x2, y2 = (int(value) for value in box)
    numeral = _ROMAN_READ.get(said)
    if numeral is None or len(said) == 1:
        margin = int(size / 4)
        ink = _ink(pixels[y1 : y2 + 1, max(0, x1 - margin) : x2 + margin])
        if ink is None or said in _ROMAN:
            return None
        count, _, stats, _ = cv2.connectedComponentsWithStats(_without_rules(ink).astype(np.uint8), connectivity=8)
        bars = int((stats[1:count, cv2.CC_STAT_HEIGHT] > PARSING.bar_height * size * 0.8).sum())
        if not 1 <= bars <= 3:
            return None
        numeral = _ROMAN[bars - 1]
    return _Found(index, numeral + point, box, match.end())


def _numeral(line: TextLine, index: int, pixels: Pixels) -> _Found | None:
    """The Roman numeral and its point that a line of Korean starts with, by the numeral's strokes."""
    match = _NO_NUMERAL.match(line.text)
    if match is None or line.engine == "text-layer" or abs(direction(line)) > PARSING.turned_tolerance:
        return None
    size = line_size(line)
    left, top, _, bottom = (int(value) for value in line.box)
    start = max(0, int(left - PARSING.numeral_reach * size))
    ink = _ink(pixels[max(0, top) : bottom + 1, start : int(left + PARSING.bullet_reach * size)])
    if ink is None:
        return None
    ink = _without_rules(ink)
    columns = np.flatnonzero(np.diff(np.concatenate([[False], ink.any(axis=0), [False]]).astype(np.int8)))
    parts = [(int(x1), int(x2), np.flatnonzero(ink[:, x1:x2].any(axis=1))) for x1, x2 in columns.reshape(-1, 2)]
    is_point = [x2 - x1 < 0.3 * size and rows[-1] - rows[0] < 0.3 * size for x1, x2, rows in parts]
    if True not in is_point[1:]:
        return None
    x1, x2 = parts[0][0], parts[is_point.index(True, 1) - 1][1]
    if x2 - x1 > PARSING.numeral_width * size:
        return None
    rows = np.flatnonzero(ink[:, x1:x2].any(axis=1))
    sign = (
        numeral_of(ink[rows[0] : rows[-1] + 1, x1:x2]) if rows[-1] - rows[0] > PARSING.bar_height * size / 2 else None
    )
    if sign is None or (sign == "Ⅰ" and match[1] == "1"):
        return None
    box = (float(start + x1), float(top + rows[0]), float(start + x2), float(top + rows[-1] + 1))
    return _Found(index, f"{sign}.", box, match.end())


def _confirmed(found: Sequence[_Found], lines: Sequence[TextLine]) -> list[_Found]:
    """Without small signs that no other line confirms."""
    places = [(bullet.sign, bullet.box[0], bullet.line) for bullet in found if bullet.sign in _SMALL]
    places += [(sign, line.box[0], index) for index, line in enumerate(lines) if (sign := marker(line.text)) in _SMALL]
    return [
        bullet
        for bullet in found
        if bullet.sign not in _SMALL
        or any(
            sign == bullet.sign and abs(left - bullet.box[0]) < line_size(lines[bullet.line]) and line != bullet.line
            for sign, left, line in places
        )
    ]


def _numbered(found: Sequence[_Found], lines: Sequence[TextLine]) -> list[_Found]:
    """Rings with their numbers: those read in them, corrected so that they count up; from the top of the page."""
    rings = sorted((bullet for bullet in found if bullet.sign == RING), key=lambda bullet: bullet.box[1])
    said = [lines[ring.line].text.strip()[: ring.replaced] for ring in rings]
    known = [bool(text) or number > 0 for number, text in enumerate(said)]
    values = _counting([_costs(text) for text in said])
    numbered = [
        ring._replace(sign=_CIRCLED[value - 1])
        for ring, value, sure in zip(rings, values, known, strict=True)
        if sure and _CIRCLED[value - 1] != lines[ring.line].text.strip()[: ring.replaced]
    ]
    return [*(bullet for bullet in found if bullet.sign != RING), *numbered]


def _costs(said: str) -> Floats:
    """What each number costs where this was read; nothing legible says nothing."""
    values = [_CIRCLED.find(char) + 1 or int(char) for char in said if char in _NUMERALS]
    if not values:
        return np.zeros(len(_CIRCLED))
    return np.where(np.isin(np.arange(1, len(_CIRCLED) + 1), values), 0.0, 1.0)


def _counting(costs: Sequence[Floats]) -> list[int]:
    """The likeliest numbers of items of which some were read wrongly: each is one more than the last, or 1 again.

    Args:
        costs: Of each item, what each number costs.
    """
    values = np.arange(1, len(_CIRCLED) + 1)
    step = np.where(values == values[:, None] + 1, 0.0, PARSING.number_jump)  # from the row's value to the column's
    step[:, 0] = PARSING.number_restart
    total = np.zeros(len(_CIRCLED))
    came: list[Indices] = []
    for place, cost in enumerate(costs):
        if place:
            came.append((total[:, None] + step).argmin(axis=0))
            total = (total[:, None] + step).min(axis=0)
        total = total + cost
    path = [int(total.argmin())] if costs else []
    for origin in reversed(came):
        path.append(int(origin[path[-1]]))
    return [int(values[place]) for place in reversed(path)]


def _with_bullet(line: TextLine, bullet: _Found) -> TextLine:
    text = line.text.strip()
    rest = text[bullet.replaced :].lstrip(" .") if bullet.sign[-1:] == "." else text[bullet.replaced :].lstrip()
    words = [word for word in line.words if (word.box[0] + word.box[2]) / 2 > bullet.box[2]]
    box = (min(line.box[0], bullet.box[0]), *line.box[1:])
    first = Word(bullet.sign, (bullet.box[0], line.box[1], bullet.box[2], line.box[3]))
    return reworded(line, f"{bullet.sign} {rest}", box=box, words=(first, *words) if line.words else ())
