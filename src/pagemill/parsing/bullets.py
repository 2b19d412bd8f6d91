"""Bullets recognised by their shape: text recognition reads □ as 口, ○ as O, ※ as *, or leaves them out.

A bullet is the first thing on its line, stands apart from the text, and is drawn as no letter is. What was read in its
place gives way to it; a text layer that lacks it (bullets drawn as graphics) gets it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import cv2
import msgspec
import numpy as np

from pagemill.document.geometry import as_array
from pagemill.document.page import Word
from pagemill.parsing.lines import direction, line_size
from pagemill.parsing.lists import marker
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.geometry import Box
    from pagemill.document.page import TextLine
    from pagemill.imaging.types import Flags, Floats, Indices, Pixels

_SMALL = frozenset("·•▪-")
"""Signs so simple that a speck may look like them: they must start another line of that indent."""
_EAST_ASIAN = re.compile("[\u3040-\u30ff\u3131-\u318e\u3400-\u9fff\uac00-\ud7a3]")
_CHECK_BOXES = frozenset("☐☑☒")
"""Of form fields, which say whether they are ticked: their pictures do not."""
_HANGUL = re.compile("[\u3131-\u318e\uac00-\ud7a3]")
_CLOSING = ")]}"
_DASH_READ = frozenset("ㅡ一ー—–―_~=‐−")
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩"
_NUMERALS = frozenset(_CIRCLED + "123456789")
_TICKED, _NOT_TICKED = "☑", "☐"
_RING = "ring"
"""A circle with something in it: a circled number or letter."""
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
        if (bullet := _bullet(index, lines, boxes, pixels) or _roman(index, line, pixels)) is not None
    ]
    if not any(_HANGUL.search(line.text) for line in lines):
        found = [bullet for bullet in found if not _is_full_stop(bullet, lines)]
    result = list(lines)
    for bullet in _numbered(_confirmed(found, lines), lines):
        result[bullet.line] = _with_bullet(lines[bullet.line], bullet)
    if any(bullet.sign == _TICKED for bullet in found):
        result = [_as_check_box(line) for line in result]
    return result


def _as_check_box(line: TextLine) -> TextLine:
    """A line with its empty square as a check box: so it is beside ticked ones."""
    if not line.text.startswith("□"):
        return line
    first = tuple(msgspec.structs.replace(word, text=word.text.replace("□", _NOT_TICKED)) for word in line.words[:1])
    return msgspec.structs.replace(line, text=_NOT_TICKED + line.text[1:], words=first + line.words[1:])


def _bullet(index: int, lines: Sequence[TextLine], boxes: Floats, pixels: Pixels) -> _Found | None:
    """The bullet that a line starts with, where its text does not say so."""
    line = lines[index]
    size = line_size(line)
    if size < PARSING.bullet_pixels or abs(direction(line)) > PARSING.turned_tolerance or not line.text.strip():
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
    level, _ = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    dark = grey <= level
    return dark if dark.mean() < 0.5 else ~dark


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
    if joined[1][0] - x2 < PARSING.bullet_gap * size or x2 - x1 > PARSING.bullet_width * size:
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
    if sign == "-":
        return not said or said in _DASH_READ
    if sign in _SMALL:
        return not any(map(str.isalnum, said.replace("ㅇ", "").replace("ㅎ", "")))
    if sign == _TICKED:  # characters such as 国 are drawn alike
        return not any(map(str.isalpha, said))
    if sign == _RING:
        return east_asian
    if sign in "○◦◯" and not east_asian:
        return not said or not said.isalnum()
    return not (said.isascii() and said.isalnum()) or east_asian


def _is_full_stop(bullet: _Found, lines: Sequence[TextLine]) -> bool:
    """Whether a small ring is the full stop of a Chinese or Japanese sentence that a line's end parted from it."""
    return bullet.sign == "◦" and _EAST_ASIAN.search(lines[bullet.line].text[bullet.replaced :]) is not None


def shape_of(glyph: Flags, size: float) -> str | None:
    """The bullet that a glyph is drawn as.

    Args:
        glyph: Its ink, shape (height, width), without margins.
        size: Font size in pixels.

    Returns:
        A bullet, ``"ring"`` for a circle with something in it, or None for any other glyph.
    """
    height, width = glyph.shape
    if min(height, width) < 3:
        return "-" if _is_dash(glyph, size) else None
    ink = glyph.astype(np.uint8)
    outline, _ = cv2.findContours(np.pad(ink, 1), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    filled = np.zeros((height + 2, width + 2), np.uint8)
    cv2.drawContours(filled, outline, -1, (1.0,), cv2.FILLED)
    solid = filled[1:-1, 1:-1].astype(bool)
    if _is_dash(glyph, size):
        return "-"
    if not PARSING.bullet_aspect <= width / height <= 1 / PARSING.bullet_aspect:
        return None
    largest = max(cv2.contourArea(contour) for contour in outline)
    if len(outline) > 1 and largest < 0.8 * solid.sum():
        return "※" if _is_reference_mark(glyph) else None
    form = _form(solid)
    hole = 1 - glyph.sum() / solid.sum()
    extent = max(height, width) / size
    if form is None:
        return "※" if _is_reference_mark(glyph) else None
    if hole < PARSING.bullet_solid:
        return _solid(form, extent)
    _, _, stats, _ = cv2.connectedComponentsWithStats((solid & ~glyph).astype(np.uint8), connectivity=4)
    largest_hole = float(stats[1:, cv2.CC_STAT_AREA].max(initial=0)) / solid.sum()
    may_hold = form in ("circle", "square") and extent >= PARSING.bullet_large
    core = glyph[height // 4 : -(height // 4), width // 4 : -(width // 4)].mean() if may_hold else 0.0
    inner = _inner(glyph)
    if largest_hole >= PARSING.bullet_hole and core < PARSING.bullet_empty and extent > PARSING.bullet_outlined:
        if form != "circle":
            return {"square": "□", "diamond": "◇", "up": "△", "down": "▽", "right": "▷"}[form]
        return "○" if extent >= PARSING.bullet_large else "◦"
    if form == "square" and inner is not None and inner.mean() > PARSING.bullet_core:
        return "▣"
    if form == "square" and inner is not None and core >= PARSING.bullet_empty:
        return _TICKED
    if form == "circle" and core >= PARSING.bullet_empty:
        return _RING if inner is None or not _is_target(inner) else "◎"
    return None


def _is_dash(glyph: Flags, size: float) -> bool:
    height, width = glyph.shape
    low, long = PARSING.bullet_dash
    return height <= low * size and 2 * height <= width <= long * size and bool(glyph.mean() > PARSING.bullet_full)


def _form(solid: Flags) -> str | None:
    """What a silhouette without holes is: a square, circle, diamond or triangle."""
    height, width = solid.shape
    share = float(solid.mean())
    across = solid.sum(axis=1) / width
    down = solid.sum(axis=0) / height
    ends = [float(part.mean()) for side in (across, down) for part in _thirds(side)]
    top, middle, bottom, left, centre, right = ends
    if share > PARSING.square_share and min(ends) > PARSING.square_share:
        return "square"
    outer, inner = (top, bottom, left, right), min(middle, centre)
    uneven = max(PARSING.uneven, PARSING.uneven_pixels / min(height, width))
    if PARSING.circle_share[0] < share < PARSING.circle_share[1] and max(outer) < inner:
        even = max(outer) - min(outer) < uneven
        return "circle" if even and inner > PARSING.circle_middle else None
    if not PARSING.triangle_share[0] < share < PARSING.triangle_share[1]:
        return None
    if min(middle, centre) > PARSING.diamond_middle and max(top, bottom, left, right) < PARSING.diamond_ends:
        return "diamond"
    rise = PARSING.triangle_rise
    for name, first, second, third, one, other in (
        ("up", top, middle, bottom, left, right),
        ("down", bottom, middle, top, left, right),
        ("right", right, centre, left, top, bottom),
    ):
        if second - first > rise and third - second > rise and abs(one - other) < uneven:
            return name
    return None


def _thirds(profile: Floats) -> list[Floats]:
    return np.array_split(profile, 3)


def _solid(form: str, extent: float) -> str | None:
    """The filled bullet of a form and size."""
    if form == "circle":
        return "●" if extent >= PARSING.bullet_large else "•" if extent >= PARSING.bullet_small else "·"
    if form == "square":
        if extent < PARSING.bullet_small:
            return "·"
        return "■" if extent >= PARSING.bullet_large else "▪"
    return {"diamond": "◆", "up": "▲", "down": "▼", "right": "▶"}[form] if extent > PARSING.bullet_outlined else None


def _inner(glyph: Flags) -> Flags | None:
    """What is inside of an outline and does not touch it, cut out; None for nothing."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(glyph.astype(np.uint8), connectivity=8)
    if count < 3:
        return None
    outer = 1 + int(stats[1:, cv2.CC_STAT_WIDTH].argmax())
    rest = (labels > 0) & (labels != outer)
    if rest.sum() < PARSING.bullet_speck * glyph.size:
        return None
    rows, columns = np.flatnonzero(rest.any(axis=1)), np.flatnonzero(rest.any(axis=0))
    inner: Flags = rest[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return inner


def _is_target(inner: Flags) -> bool:
    """Whether what is in a circle is another circle."""
    height, width = inner.shape
    solid = inner | (cv2.GaussianBlur(inner.astype(np.float32), (0, 0), max(1.0, width / 6)) > 0.3)
    return 0.8 < width / height < 1.25 and height > 4 and _form(solid) == "circle"


def _is_reference_mark(glyph: Flags) -> bool:
    """Whether a glyph is ※: two diagonals, and a dot in each of the four fields between them."""
    side = 24
    drawn = cv2.resize(glyph.astype(np.float32), (side, side), interpolation=cv2.INTER_AREA)
    x, y = np.meshgrid(np.linspace(-1, 1, side), np.linspace(-1, 1, side))
    diagonals = np.minimum(np.abs(x - y), np.abs(x + y)) < 0.2
    dots = np.zeros_like(diagonals)
    for place in ((0.0, 0.72), (0.0, -0.72), (0.72, 0.0), (-0.72, 0.0)):
        dots |= np.hypot(x - place[0], y - place[1]) < 0.22
    free = ~diagonals & ~dots & (np.hypot(x, y) > 0.3)
    parts = [float(drawn[dots & side_mask].max(initial=0.0)) for side_mask in (x > 0.4, x < -0.4, y > 0.4, y < -0.4)]
    return bool(
        drawn[diagonals].mean() > PARSING.mark_diagonals
        and min(parts) > PARSING.mark_dots
        and drawn[free].mean() < PARSING.mark_free
    )


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
        high, wide = stats[1:count, cv2.CC_STAT_HEIGHT], stats[1:count, cv2.CC_STAT_WIDTH]
        bars = int(((high > PARSING.bar_height * size * 0.8) & (wide < PARSING.bar_width * size)).sum())
        if not 1 <= bars <= 3:
            return None
        numeral = _ROMAN[bars - 1]
    return _Found(index, numeral + point, box, match.end())


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
    rings = sorted((bullet for bullet in found if bullet.sign == _RING), key=lambda bullet: bullet.box[1])
    said = [lines[ring.line].text.strip()[: ring.replaced] for ring in rings]
    known = [bool(text) or number > 0 for number, text in enumerate(said)]
    values = _counting([_costs(text) for text in said])
    numbered = [
        ring._replace(sign=_CIRCLED[value - 1])
        for ring, value, sure in zip(rings, values, known, strict=True)
        if sure and _CIRCLED[value - 1] != lines[ring.line].text.strip()[: ring.replaced]
    ]
    return [*(bullet for bullet in found if bullet.sign != _RING), *numbered]


def _costs(said: str) -> Floats:
    """What each number costs where this was read; nothing legible says nothing."""
    values = [_CIRCLED.find(char) + 1 or int(char) for char in said if char in _NUMERALS]
    if not values:
        return np.zeros(len(_CIRCLED))
    wrong = PARSING.number_circled if said in _CIRCLED else 1.0
    return np.where(np.isin(np.arange(1, len(_CIRCLED) + 1), values), 0.0, wrong)


def _counting(costs: Sequence[Floats]) -> list[int]:
    """The likeliest numbers of items of which some were read wrongly: each is one more than the last, or 1 again.

    Args:
        costs: Of each item, what each number costs.
    """
    values = np.arange(1, len(_CIRCLED) + 1)
    step = np.where(values == values[:, None] + 1, 0.0, PARSING.number_jump)  # from the row's value to the column's
    step[:, 0] = PARSING.number_restart
    total = np.where(values == 1, 0.0, PARSING.number_first)
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
    return msgspec.structs.replace(
        line, text=f"{bullet.sign} {rest}", box=box, words=(first, *words) if line.words else ()
    )
