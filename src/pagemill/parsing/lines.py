"""Lines of text: made safe to work with, given to regions, put in reading order, and joined."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import Box, Point, areas, as_array, intersection_matrix, union_box
from pagemill.document.joining import HYPHENS, HyphenatedWords, join_pair
from pagemill.document.page import PageError, TextLine
from pagemill.document.shown import count
from pagemill.document.spans import reworded
from pagemill.late import re
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.thresholds import PARSING

Affine = NDArray[np.float64]
"""An affine map, shape (2, 3)."""

_SIGNS = re.compile(r"\W")


class Row(msgspec.Struct):
    """What stands on one baseline of a region: one line, or several that detection cut apart."""

    lines: list[TextLine]
    text: str
    box: Box
    size: float
    """Font size in pixels, estimated from the line's height where no text layer tells it."""
    bold: bool = False
    trailing_space: bool = False
    """The text layer draws a space after the last word."""
    joint: str | None = None
    """What takes the place of the hyphen at the row's end, where the words of the page tell."""
    word_goes_on: bool | None = None
    """Whether the row ends inside a Korean word, which has no hyphen; None where that is not known."""


def line_size(line: TextLine) -> float:
    """Font size of a line in pixels."""
    if line.font_size:
        return line.font_size
    if line.polygon:
        return PARSING.ocr_em * math.dist(line.polygon[0], line.polygon[3])
    return PARSING.ocr_em * min(line.box[3] - line.box[1], line.box[2] - line.box[0])


def direction(line: TextLine) -> float:
    """Writing direction of a line in degrees clockwise from level, -180 to 180."""
    if line.polygon:
        (x1, y1), (x2, y2) = line.polygon[:2]
        return math.degrees(math.atan2(y2 - y1, x2 - x1))
    return 0.0


def quarter_turn(degrees: int, width: float = 0, height: float = 0) -> Affine:
    """Turning a page of this size clockwise by 0, 90, 180 or 270 degrees."""
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[degrees // 90]
    left, top = width * (cos < 0) + height * (sin > 0), height * (cos < 0) + width * (sin < 0)
    return np.array([[cos, -sin, left], [sin, cos, top]], dtype=np.float64)


def mapped(affine: Affine, points: Sequence[Point]) -> tuple[Point, ...]:
    """Points moved, to a tenth of a pixel."""
    there = np.asarray(points, dtype=np.float64) @ affine[:, :2].T + affine[:, 2]
    return tuple((round(float(x), 1), round(float(y), 1)) for x, y in there)


def corners_of(box: Box) -> tuple[Point, ...]:
    """The corners of a box, clockwise from the top-left."""
    x1, y1, x2, y2 = box
    return ((x1, y1), (x2, y1), (x2, y2), (x1, y2))


def around(corners: Sequence[Point]) -> Box:
    """The box around points."""
    return union_box((x, y, x, y) for x, y in corners)


def moved(line: TextLine, affine: Affine) -> TextLine:
    """The line with its words as it lies once the page is moved; without a polygon where it is level then."""
    corners = mapped(affine, line.polygon or corners_of(line.box))
    words = tuple(
        msgspec.structs.replace(word, box=around(mapped(affine, corners_of(word.box)))) for word in line.words
    )
    there = msgspec.structs.replace(line, box=around(corners), polygon=corners, words=words)
    # A level line has no polygon: most steps then take the faster way by its box.
    level = abs(direction(there)) <= PARSING.turned_tolerance
    return msgspec.structs.replace(there, polygon=None) if level else there


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float:
    """The value at which half of the weight is reached."""
    return float(np.quantile(values, 0.5, weights=weights, method="inverted_cdf"))


def runs_across(line: TextLine) -> bool:
    """Whether a line is known to run up or down the page."""
    return 45 < abs(direction(line)) < 135


def is_vertical(line: TextLine) -> bool:
    """Whether a line runs up or down the page."""
    x1, y1, x2, y2 = line.box
    return runs_across(line) or (len(line.text.strip()) > 2 and y2 - y1 > 2.0 * (x2 - x1))


def is_mostly_vertical(lines: Sequence[TextLine]) -> bool:
    """Whether more than half of the lines run up or down the page."""
    return sum(map(is_vertical, lines)) * 2 > len(lines)


def assign_lines(lines: Sequence[TextLine], regions: Sequence[Box], weak: Collection[int] = ()) -> list[int]:
    """Give every line the region that holds most of it.

    Args:
        lines: Of the page.
        regions: Boxes in pixels.
        weak: Regions (pictures) that get a line only when no other region holds a third of it.

    Returns:
        For every line the index of its region; -1 where none overlaps it enough.
    """
    if not regions:
        return [-1] * len(lines)
    boxes, region_boxes = as_array(line.box for line in lines), as_array(regions)
    size = areas(region_boxes)
    # At most a thousandth: it only decides between regions that hold the line equally, as a frame and the text in it.
    smaller_first = size / max(float(size.max()), 1.0) * 1e-3
    weakness = np.array([PARSING.weak_share if i in weak else 0.0 for i in range(len(regions))])
    share = intersection_matrix(boxes, region_boxes) / np.maximum(areas(boxes), 1e-9)[:, None]
    preference = np.where(share >= PARSING.own_share, share - smaller_first - weakness, -np.inf)
    owners: list[int] = np.where(np.isfinite(preference.max(axis=1)), preference.argmax(axis=1), -1).tolist()
    return owners


def lines_of_regions(regions: Sequence[DetectedRegion], lines: Sequence[TextLine]) -> defaultdict[int, list[TextLine]]:
    """The lines of each region by its index; those of none at -1."""
    members: defaultdict[int, list[TextLine]] = defaultdict(list)
    for line, owner in zip(lines, assign_lines(lines, [region.box for region in regions]), strict=True):
        members[owner].append(line)
    return members


def rows_of(lines: Sequence[TextLine]) -> list[Row]:
    """Order the lines of a region: from top to bottom, and on one baseline in writing direction.

    Text that runs up, down or upside down is read as on the page turned for it. Columns of upright characters read from
    right to left.
    """
    weights: Counter[int] = Counter()
    for line in lines:
        weights[round(direction(line) / 90) * 90 % 360] += len(line.text)
    degrees = -max(weights, key=weights.__getitem__, default=0) % 360
    if not degrees:
        return _level_rows(lines)
    turned = [moved(line, quarter_turn(degrees)) for line in lines]
    place = {id(other): line for other, line in zip(turned, lines, strict=True)}
    rows = _level_rows(turned)
    for row in rows:
        row.lines = [place[id(line)] for line in row.lines]
        row.box = around(mapped(quarter_turn(360 - degrees), corners_of(row.box)))
    return rows


def _level_rows(lines: Sequence[TextLine]) -> list[Row]:
    if is_mostly_vertical(lines):
        return [
            _row([line]) for tier in _tiers(lines) for line in sorted(tier, key=lambda one: -one.box[0] - one.box[2])
        ]
    boxes = as_array(line.box for line in lines)
    centre = (boxes[:, 1] + boxes[:, 3]) / 2
    size = np.array([line_size(line) for line in lines])
    caps = [
        i for i, line in enumerate(lines) if _may_be_drop_cap(line) and size[i] > PARSING.drop_cap * np.median(size)
    ]
    groups: list[list[int]] = []
    for i in np.argsort(centre, kind="stable").tolist():
        if i in caps:
            continue
        last = groups[-1] if groups else [i]
        close = abs(centre[i] - centre[last].mean()) < PARSING.row_distance * min(size[i], size[last].min())
        if groups and close and not _stacked(boxes[i], boxes[last]):
            last.append(i)
        else:
            groups.append([i])
    rows = [_row([lines[i] for i in group]) for group in groups]
    for i in caps:
        rows = _with_drop_cap(rows, lines[i])
    return rows


def _tiers(lines: Sequence[TextLine]) -> list[list[TextLine]]:
    """Vertical lines in the tiers in which they stand one above the other, from the top; each reads from the right."""
    tiers: list[list[TextLine]] = []
    bottom = -math.inf
    # By their tops: the lines of a tier begin at one height, but end where their sentences do.
    for line in sorted(lines, key=lambda line: line.box[1]):
        if not tiers or line.box[1] >= bottom:
            tiers.append([])
        tiers[-1].append(line)
        bottom = max(bottom, line.box[3])
    return tiers


def _may_be_drop_cap(line: TextLine) -> bool:
    # Two characters: a quotation mark may stand before the letter.
    return len(line.text.strip()) <= 2 and line.text.strip()[-1:].isalpha()


def _with_drop_cap(rows: list[Row], cap: TextLine) -> list[Row]:
    """Put a large initial before the first of the rows that stand at its right; a row of its own if there are none."""
    near = 0.1 * (cap.box[3] - cap.box[1])  # boxes of recognised lines are wider than their letters
    beside = [
        i
        for i, row in enumerate(rows)
        if row.box[0] >= cap.box[2] - near and min(row.box[3], cap.box[3]) > max(row.box[1], cap.box[1]) + near
    ]
    if not beside:
        return sorted([*rows, _row([cap])], key=lambda row: row.box[1] + row.box[3])
    first = rows[beside[0]]
    is_word = is_own_word(cap.text, first.text, [cap.text, *(row.text for row in rows)])
    first.lines, first.text = [cap, *first.lines], f"{cap.text.strip()}{' ' if is_word else ''}{first.text}"
    for i in beside:  # the rows beside the initial start where it starts: they are not indented
        rows[i].box = (min(cap.box[0], rows[i].box[0]), *rows[i].box[1:])
    return rows


def is_own_word(initial: str, text: str, page: Iterable[str]) -> bool:
    """Whether an initial is a word: it is one elsewhere, and so is what follows, but not both as one.

    Args:
        initial: One letter, perhaps behind a quotation mark.
        text: Of the first row beside it.
        page: All texts, these two among them.
    """
    words = Counter(_SIGNS.sub("", word).casefold() for other in page for word in other.split())
    own, first = (_SIGNS.sub("", word).casefold() for word in (initial, " ".join(text.split()[:1])))
    return min(words[own], words[first]) > 1 and not words[own + first]


def _stacked(box: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether a line stands above or below one of the others rather than beside it."""
    overlap = np.minimum(box[2], others[:, 2]) - np.maximum(box[0], others[:, 0])
    narrow = np.minimum(box[2] - box[0], others[:, 2] - others[:, 0])
    return bool((overlap > PARSING.row_overlap * narrow).any())


def _row(lines: list[TextLine]) -> Row:
    rtl = is_right_to_left("".join(line.text for line in lines))
    ordered = sorted(lines, key=lambda line: line.box[0], reverse=rtl)
    length = [max(1, len(line.text)) for line in ordered]
    main = ordered[int(np.argmax(length))]
    return Row(
        lines=ordered,
        text=" ".join(line.text.strip() for line in ordered if line.text.strip()),
        box=union_box(line.box for line in ordered),
        size=line_size(main),
        bold=bool(np.average([line.bold for line in ordered], weights=length) > PARSING.bold_share),
        trailing_space=ordered[-1].text.endswith(" "),
    )


def words_of(rows: Iterable[str]) -> HyphenatedWords:
    """The words of rows, but for their first and last ones, which may be halves."""
    words = HyphenatedWords()
    for text in rows:
        words.add(" ".join(text.split()[1:-1]))
    return words


def mark_hyphens(blocks: Sequence[Sequence[Row]]) -> None:
    """Find out by the words of a page what the hyphens at the ends of rows are.

    Args:
        blocks: The rows of each block.
    """
    ends = [pair for rows in blocks for pair in pairwise(rows) if pair[0].text.rstrip().endswith(HYPHENS)]
    if not ends:
        return
    words = words_of(row.text for rows in blocks for row in rows)
    for above, below in ends:
        above.joint = words.joint(above.text.rstrip(), below.text.lstrip())


def join_rows(rows: Sequence[Row]) -> str:
    """Join rows into running text."""
    joined = ""
    glue: bool | None = None
    joint: str | None = None
    for row in rows:
        piece = " ".join(row.text.split())
        if not piece:
            continue
        if not joined or glue is None or not (is_hangul(joined[-1]) and is_hangul(piece[0])):
            joined = join_pair(joined, piece, joint) if joined else piece
        else:
            joined += piece if glue else f" {piece}"
        glue, joint = row.word_goes_on, row.joint
    return joined


_HANGUL = re.compile("[\uac00-\ud7a3]")


def is_hangul(char: str) -> bool:
    """Whether a character, or none, is a Korean syllable."""
    return "\uac00" <= char <= "\ud7a3"


_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters, and the marks that turn the direction of what follows: text that hides text."""


_FULL_WIDTH = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
_FULL_WIDTH_SIGN = re.compile("[\uff01-\uff5e\uffe6]")
_FULL_WIDTH_SCRIPT = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
"""Scripts whose punctuation is full-width."""


_RADICAL = re.compile("[\u2e80-\u2fd5]")
_RADICALS = dict(
    zip(
        "⺎⺒⺠⻁⻄⻅⻆⻉⻋⻑⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲",
        "兀巳民虎西见角贝车長长门青韦页风飞食马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀",
        strict=True,
    )
)
"""Radicals to which Unicode gives no ideograph although fonts draw both with one glyph. Browsers take such a glyph for
the radical when they write a PDF; what is part of other characters only stays a radical."""


_SARA_AM = re.compile("\u0e4d([\u0e48-\u0e4b]?)\u0e32")
"""The Thai vowel in its two parts, which fonts draw and recognizers read; a tone mark stands between them."""


def composed(text: str) -> str:
    """Radicals as ideographs, the Thai vowel sara am as one character, soft hyphens that are drawn as hyphens."""
    text = text.replace("\u00ad", "-")
    text = _RADICAL.sub(lambda sign: _RADICALS.get(sign[0]) or unicodedata.normalize("NFKC", sign[0]), text)
    return _SARA_AM.sub("\\1\u0e33", text) if "\u0e4d" in text else text


def half_width(text: str, *, wide: bool = False) -> str:
    """Full-width letters and digits in their usual form; signs, too, where the text is not Chinese or Japanese.

    Args:
        text: Of a line.
        wide: Whether the text around a line that is all in Latin letters is.
    """
    if _FULL_WIDTH_SIGN.search(text) is None:
        return text
    is_wide = (wide or _FULL_WIDTH_SCRIPT.search(text)) and not _HANGUL.search(text)
    signs = _FULL_WIDTH if is_wide else _FULL_WIDTH_SIGN
    return signs.sub(lambda sign: "₩" if sign[0] == "\uffe6" else chr(ord(sign[0]) - 0xFEE0), text)


def _clean(text: str, wide: bool) -> str:
    return composed(half_width(_UNPRINTABLE.sub("", text), wide=wide))


def clean_lines(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[PageError]]:
    """Take unprintable characters out, polygons that are not four corners, full-width forms of ASCII, vowels in parts.

    Lines whose box is no box are left out, which the errors say; so are lines that hold nothing to print.
    """
    kept: list[TextLine] = []
    broken = 0
    page = "".join(line.text for line in lines)
    wide = len(_FULL_WIDTH_SCRIPT.findall(page)) > len(_HANGUL.findall(page))
    for line in lines:
        if not all(math.isfinite(value) for value in line.box):
            broken += 1
            continue
        corners = line.polygon or ()
        if len(corners) not in (0, 4) or not all(math.isfinite(value) for corner in corners for value in corner):
            line = msgspec.structs.replace(line, polygon=None)
        if (text := _clean(line.text, wide)) != line.text:
            words = tuple(msgspec.structs.replace(word, text=_clean(word.text, wide)) for word in line.words)
            line = reworded(line, text, words=words)
        if line.text.strip():
            kept.append(line)
    errors = []
    if broken:
        message = f"{count(broken, 'line')} of text left out: box not finite"
        errors.append(PageError(component="recognition", category="invalid_geometry", message=message))
    return kept, errors
