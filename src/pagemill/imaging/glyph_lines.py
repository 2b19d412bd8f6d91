"""Glyphs grouped into words and lines, by geometry alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pagemill.document.geometry import Box, Point, as_boxes, clip, components, union_box
from pagemill.document.page import ANNOTATION, TextLine, Word
from pagemill.imaging.glyphs import Glyphs, is_level, is_right_to_left, spell_out, turned
from pagemill.imaging.spans import NO_EVIDENCE, Evidence, Typography
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.imaging.vertical_lines import Column, columns_of_glyphs

# All in units of the font size (em).
_GAP_AFTER_SPACE = 0.6
"""Most that a justified line stretches beyond its space glyphs; more is a column or cell gap."""
_GAP_WITHOUT_SPACE = 0.9
"""The same for producers that move the pen instead of drawing spaces (TeX)."""
_GAP_BETWEEN_RUNS = 0.7
_WORD_GAP = 0.15
_OVERLAP = 0.1
"""Most that neighbouring letters of a word overlap."""
_SAME_BASELINE = 0.25
_RAISED = 0.6
"""Farthest that a superscript or subscript stands off the baseline."""
_BODY = 0.9
"""Share of the largest size of a line above which its letters are no superscripts."""
_RAISED_WHOLE, _BESIDE = 0.3, 0.2
"""Least that one of the line's own size stands off, and most that it stands apart: WeasyPrint moves both kinds by 0.49,
browsers superscripts by 0.33. Lines of two columns that stand so are farther apart."""
_SMALLEST_SCRIPT = 0.45
"""Least size of a superscript; a greater difference is a drop cap beside a line."""
_LEAST_DRAWN = 0.001
"""Least width of a space with a width, in pixels; a long replacement text for a few letters has thin ones."""
_MAX_WORD = 256
"""Characters of a word that spelling out lengthens or shortens, up to which the glyph of each is found out."""
_LEAST_LETTERS = 4
"""Pairs of letters from which the spacing of a run is known."""
_HAIR = 0.05
"""Least white space beyond the spacing of the letters where PDFium sees a space."""
_LEAST_SPACE, _WIDE = 0.15, 0.5
"""The same where it sees none: of letters that stand evenly, and of any. The narrowest spaces of justified lines have
0.2; kerning and slanted letters open gaps of up to 0.1."""
_INITIAL, _ON_BASELINE = 0.6, 0.02
"""Size of text behind a raised initial of its size, and distance of their baselines: small capitals are larger, and
superscripts stand farther off. Not measured."""
_UNEVEN = 4.0
"""Least space over the mean distance of letters from where they should be: type 3 fonts, OCR layers."""
_SCRIPT_GAP = 0.25
"""Most that word processors put between Latin and East Asian letters; 0.2 is usual."""
_DOUBT = 0.04
"""Distance from the least space up to which nobody knows whether a gap is one."""
_NEAR = 3
"""Gaps on either side of one that it is compared with."""
_MOST_SPACES, _ALIGNED = 3, 0.1
"""Spaces of a fixed pitch that one line bridges (two stand before a comment; cells of code stand farther apart), and
how far off a gap may be from a whole number of them, in pitches."""
_LEADERS = np.array([ord(sign) for sign in "._-·…•–—=*~"], dtype=np.uint32)
"""Signs that are repeated to fill lines, at any distance."""
_CLOSE, _SPACED_EVENLY = 0.2, 0.12
"""Quantile of the gaps of a run that is one between letters, and how much other such gaps differ from it by kerning."""
_MOSTLY, _LETTERS_OF_WORD = 0.8, 5
"""Share of letters in words that are spaced out, and gaps between them where there is one word alone."""


class _Piece(NamedTuple):
    """A word, and for each character of it the glyph that shows it."""

    text: str
    box: Box
    glyphs: tuple[int, ...]


class _Run(msgspec.Struct):
    """Words drawn one after the other on one baseline, in a frame turned so that they read left to right."""

    words: list[_Piece]
    left: float
    right: float
    baseline: float
    size: float
    angle: int
    bold: float
    rtl: bool
    annotation: bool
    doubtful: int = 0
    """Gaps of which is not known whether they are spaces."""
    ends_in_space: bool = False
    """White space follows, drawn or made up by PDFium."""
    trailing_space: bool = False
    """A drawn space follows."""

    @property
    def box(self) -> Box:
        return union_box(word.box for word in self.words)

    @property
    def polygon(self) -> tuple[Point, ...] | None:
        """Corners in page pixels, clockwise from the reader's top-left; None for level writing."""
        if self.angle == 0:
            return None
        top, bottom = self.baseline - 0.8 * self.size, self.baseline + 0.25 * self.size
        corners = np.array([(self.left, top), (self.right, top), (self.right, bottom), (self.left, bottom)])
        back = turned(corners, np.full(4, -self.angle))
        return tuple((round(x, 2), round(y, 2)) for x, y in back.tolist())


def lines_of_glyphs(glyphs: Glyphs, width: int, height: int, evidence: Evidence = NO_EVIDENCE) -> Iterator[TextLine]:
    """Group glyphs into lines, each with its words, in content-stream order of their first glyph.

    Args:
        glyphs: In content-stream order.
        width: Width of the page in pixels; boxes are cut to it.
        height: Height of the page in pixels.
        evidence: What decides about the marks of the lines.

    Yields:
        Lines split at column and table-cell gaps; their ``style`` is a face of the glyphs.
    """
    columns = columns_of_glyphs(glyphs)
    level = np.ones(len(glyphs.codes), dtype=bool)
    for column in columns:
        level[column.members] = False
    typography = Typography(glyphs, evidence)
    fixed: list[bool] = typography.fixed_pitch.tolist()
    runs = [_vertical(glyphs, column) for column in columns]
    runs += _merge_runs(_stack_vertical(list(_runs(glyphs, np.flatnonzero(level), typography.fixed_pitch))))
    for number, run in enumerate(runs):
        text = " ".join(word.text for word in run.words)
        if not text.strip():
            continue
        shown = [glyph for word in run.words for glyph in (*word.glyphs, -1)][:-1]
        if run.angle == 0 and all(fixed[glyph] for word in run.words for glyph in word.glyphs):
            text, shown = _spaced(run.words)
        # Korean may break inside a word; there the drawn space at a line's end is all that tells.
        text += " " if run.trailing_space else ""
        facts = typography.of_line(shown, run.baseline if number >= len(columns) else None, run.size)
        yield TextLine(
            text=text,
            box=clip(run.box, width, height),
            confidence=_confidence(text, run.doubtful),
            engine=ANNOTATION if run.annotation else "text-layer",
            polygon=run.polygon,
            words=tuple(Word(word.text, clip(word.box, width, height)) for word in run.words),
            font_size=round(run.size, 2),
            bold=run.bold > 0.5,
            spans=facts.spans,
            style=facts.face,
            artifact=facts.artifact,
            tag=facts.tag,
        )


def _spaced(words: Sequence[_Piece]) -> tuple[str, list[int]]:
    """The text of a line of fixed pitch, with as many spaces as have room, and the glyph of each of its characters."""
    longest = max(words, key=lambda word: len(word.text))
    pitch = max((longest.box[2] - longest.box[0]) / len(longest.text), 1e-9)
    text, glyphs = words[0].text, [*words[0].glyphs]
    for before, word in pairwise(words):
        spaces = min(max(1, round((word.box[0] - before.box[2]) / pitch)), _MOST_SPACES)
        text += " " * spaces + word.text
        glyphs += [-1] * spaces + [*word.glyphs]
    return text, glyphs


def _confidence(text: str, doubtful: int) -> float:
    """The share of a line's characters that is expected to be right.

    Every other space in doubt is taken to be wrong, and every character without a Unicode value.
    """
    wrong = text.count("\ufffd") + 0.5 * doubtful
    return round(max(0.0, 1 - wrong / len(text)), 3) if wrong else 1.0


def _runs(page: Glyphs, members: Indices, fixed_pitch: Flags) -> Iterator[_Run]:
    """Cut the stream of the glyphs ``members`` where the pen jumps.

    Args:
        page: All glyphs.
        members: Those to cut.
        fixed_pitch: Which of all glyphs are of a font of fixed pitch.
    """
    glyphs = page.select(members) if len(members) < len(page.codes) else page
    printing = ~glyphs.is_space
    index = np.flatnonzero(printing)
    if not len(index):
        return
    size = glyphs.sizes[index]
    angle = glyphs.of("angle")[index]
    boxes = _trimmed(glyphs, index, size, angle)
    a, b = turned(boxes[:, :2], angle), turned(boxes[:, 2:], angle)
    left, right = np.minimum(a[:, 0], b[:, 0]), np.maximum(a[:, 0], b[:, 0])
    pen = turned(glyphs.origins[index], angle)
    baseline = pen[:, 1]
    oblique = angle % 90 != 0  # the box around a leaning glyph says little about where it starts and ends
    left, right = np.where(oblique, pen[:, 0], left), np.where(oblique, pen[:, 0] + 0.5 * size, right)
    rtl = is_right_to_left(glyphs.codes[index])

    # White space that was really drawn has a width, which the gap must not count.
    extent = np.where(printing, 0.0, (glyphs.boxes[:, 2:] - glyphs.boxes[:, :2]).T)
    across, down = np.diff((np.cumsum(extent, axis=1) - extent)[:, index], axis=1)
    drawn = np.where(is_level(angle[1:]), across, down)

    em = np.maximum(size[1:], size[:-1])
    gap = np.maximum(left[1:] - right[:-1], left[:-1] - right[1:])
    piece = np.full(len(index), -1) if glyphs.pieces is None else glyphs.pieces[index]
    zone = (piece[1:] == piece[:-1]) & (piece[1:] >= 0)
    separated = np.diff(index) > 1
    limit = np.where(separated & (drawn > 0.1 * em), _GAP_AFTER_SPACE * em + drawn, _GAP_WITHOUT_SPACE * em)
    # Code is indented and aligned by spaces, which PDFium takes for one, or for none.
    pitch = np.maximum(right - left, 1e-9)[:-1]
    fixed = fixed_pitch[members[index]]
    aligned = fixed[1:] & fixed[:-1] & (np.abs(gap / pitch - np.round(gap / pitch)) < _ALIGNED) & ~oblique[1:]
    limit = np.where(aligned, np.maximum(limit, (_MOST_SPACES + _ALIGNED) * pitch), limit)
    restyled = np.diff(glyphs.style[index]) != 0
    # PDFium sorts letters that are drawn one by one from left to right as displayed, also where they are upside down.
    reversed_ = restyled & (right[1:] < left[:-1] + _OVERLAP * em) & (left[1:] < left[:-1])
    backwards = (left[1:] < left[:-1] - 0.4 * em) | reversed_
    off = np.abs(np.diff(baseline))
    small = np.minimum(size[1:], size[:-1])
    raised = (off < _RAISED * em) & (gap < 0.3 * em) & (small < _BODY * em) & (small > _SMALLEST_SCRIPT * em)
    whole = (off > _RAISED_WHOLE * em) & (off < _RAISED * em) & (np.abs(gap) < _BESIDE * em) & (small >= _BODY * em)
    jump = (np.diff(angle) != 0) | (gap > limit) | backwards | ~((off < _SAME_BASELINE * em) | raised | whole)
    jump = (jump | (np.diff(piece) != 0)) & ~zone
    codes = glyphs.codes[index]
    is_drawn = drawn > _LEAST_DRAWN
    ligature = (left[1:] == left[:-1]) & (right[1:] == right[:-1])
    apart = gap / em - _tracking(codes, gap / em, ligature, separated, is_drawn, jump, restyled)
    # A word ends at drawn white space, and at any wider than a hair (PDFium makes some up between tight letters).
    spaced = (apart > _HAIR) | (is_drawn & (gap > 0.5 * drawn))
    spaced &= ~(whole & ~is_drawn) & ~_between_scripts(codes, gap / em, is_drawn, separated & ~jump)
    # PDFium overlooks spaces where words are placed one by one.
    letter = (((codes | 0x20) >= 0x61) & ((codes | 0x20) <= 0x7A)) | ((codes >= 0xC0) & (codes < 0x590))
    told = _is_plain(codes[:-1]) | ((codes[:-1] == ord(".")) & letter[1:])  # a sentence begins there, no leader ends
    plain = ~zone & ~oblique[1:] & _is_plain(codes[1:]) & told
    # PDFium measures a space behind a raised initial by that, and overlooks it.
    initial = plain & (small < _INITIAL * em) & (off < _ON_BASELINE * em)
    plain &= small > _BODY * em
    least = np.where(plain, _least_space(apart, separated, jump), np.where(initial, _LEAST_SPACE * small / em, _WIDE))
    word_end = jump | (separated & (spaced | zone)) | ((apart > least) & (gap > _HAIR * em) & ~zone)
    doubtful = plain & ~jump & ~is_drawn & (np.abs(apart - least) < _DOUBT)
    starts = np.concatenate([[0], np.flatnonzero(jump) + 1, [len(index)]])
    words_of_page = _words(codes, boxes, members[index], np.flatnonzero(word_end) + 1)
    first_word = np.concatenate([[0], np.cumsum(word_end)])[starts[:-1]].tolist()
    bounds = zip(pairwise(starts.tolist()), pairwise([*first_word, len(words_of_page)]), strict=True)
    means = _means(
        starts, np.stack([glyphs.of("bold")[index], rtl, glyphs.of("annotation")[index], np.append(doubtful, False)])
    )
    sizes, baselines, angles = size.tolist(), baseline.tolist(), angle.tolist()
    ends = (separated & ~reversed_).tolist()
    edges = np.stack([np.minimum.reduceat(left, starts[:-1]), np.maximum.reduceat(right, starts[:-1])], axis=1).tolist()
    for ((start, stop), (first, last)), (leftmost, rightmost), shares in zip(bounds, edges, means, strict=True):
        body = _BODY * max(sizes[start:stop])
        yield _Run(
            words=words_of_page[first:last],
            left=leftmost,
            right=rightmost,
            baseline=median(
                line for line, own in zip(baselines[start:stop], sizes[start:stop], strict=True) if own > body
            ),
            size=median(sizes[start:stop]),
            angle=angles[start],
            bold=shares[0],
            rtl=shares[1] > 0.5,
            annotation=shares[2] > 0,
            doubtful=round(shares[3] * (stop - start)),
            ends_in_space=stop < len(index) and ends[stop - 1],
            trailing_space=_drawn_space_after(glyphs, int(index[stop - 1])),
        )


def _means(starts: Indices, values: Floats) -> list[list[float]]:
    """The means of (m, n) values over the stretches between starts, the end included."""
    means: list[list[float]] = (
        np.add.reduceat(values.astype(np.float64), starts[:-1], axis=1) / np.diff(starts)
    ).T.tolist()
    return means


def _is_plain(codes: NDArray[np.uint32]) -> Flags:
    """Which characters are of scripts that part words by spaces, as far as they have no marks; leaders are not."""
    plain = (codes < 0x590) | ((codes >= 0x1E00) & (codes < 0x2E80)) | ((codes >= 0xFB00) & (codes < 0xFB07))
    flags: Flags = plain & ~np.isin(codes, _LEADERS)
    return flags


def _between_scripts(codes: NDArray[np.uint32], gap: Floats, is_drawn: Flags, separated: Flags) -> Flags:
    """Which gaps part Latin letters or digits from East Asian ones as word processors set them: no space was typed.

    Args:
        codes: n of them.
        gap: In em, shape (n - 1,).
        is_drawn: Where spaces are drawn; writers that draw most of them draw all.
        separated: Where PDFium sees spaces.
    """
    asian = ((codes >= 0x2E80) & (codes < 0xA4D0)) | ((codes >= 0xAC00) & (codes < 0xD7B0))
    between = separated & (asian[1:] != asian[:-1])
    others = separated & ~between
    draws = 2 * np.count_nonzero(is_drawn & separated) > np.count_nonzero(others)
    flags: Flags = between & ~is_drawn & (gap < _SCRIPT_GAP) & draws
    return flags


def _least_space(apart: Floats, separated: Flags, jump: Flags) -> Floats:
    """The least space between words, in em, shape (n - 1,): wider where the letters of a run stand unevenly."""
    inner = ~(separated | jump) & (np.abs(apart) < _LEAST_SPACE)
    if not len(apart):
        return apart
    run: Indices = np.cumsum(jump) - jump
    off, count = np.bincount(run, weights=np.abs(apart) * inner), np.bincount(run, weights=inner)
    uneven = np.clip(_UNEVEN * off / np.maximum(count, 1), _LEAST_SPACE, _WIDE)[run]
    # A few letters of a run may be spaced out: a space is wider than the narrowest gap near it.
    gaps = np.pad(np.where(separated | jump, np.inf, apart), _NEAR, constant_values=np.inf)
    near = np.delete(np.lib.stride_tricks.sliding_window_view(gaps, 2 * _NEAR + 1), _NEAR, axis=1).min(axis=1)
    least: Floats = uneven + np.where(np.isinf(near), 0.0, np.maximum(near, 0.0))
    return least


def _tracking(
    codes: NDArray[np.uint32],
    gap: Floats,
    ligature: Flags,
    separated: Flags,
    drawn: Flags,
    jump: Flags,
    restyled: Flags,
) -> Floats:
    """How far apart neighbouring letters are set, in em, shape (n - 1,): below 0 where they overlap.

    Negative character spacing, and fonts that state too wide boxes, make letters overlap, and the words too. Letters
    of headings are spaced out.

    Args:
        codes: Codes of the glyphs, shape (n,).
        gap: Between each glyph and the next, in em.
        ligature: Whether they are one.
        separated: Whether white space stands between them.
        drawn: Whether that has a width.
        jump: Whether a run ends between them.
        restyled: Whether a text object ends between them; one with enough letters has a spacing of its own.
    """
    tracking = np.zeros(len(gap))
    letters = ~(separated | jump | restyled | ligature)
    for ends in (jump, jump | restyled):
        for start, stop in _stretches(ends, letters, letters, 0.0):
            tracking[start:stop] = 0.0
        for start, stop in _stretches(ends, letters & (gap < 0), letters, 0.5):
            tracking[start:stop] = min(0.0, median(gap[start:stop][letters[start:stop]].tolist()))
    inner = ~(drawn | jump | ligature)
    for start, stop in _stretches(jump, inner & (gap > _HAIR), inner, 1 - _CLOSE):
        own = gap[start:stop][inner[start:stop]]
        low = float(np.quantile(own, _CLOSE))
        even = own[own < low + _SPACED_EVENLY]
        signs = [chr(code) for code in codes[start : stop + 1].tolist()]
        # Without a wider gap these are the letters of one word, or labels in a row.
        is_one_word = len(even) == len(own) and not drawn[start:stop].any()
        if sum(map(str.isalpha, signs)) > _MOSTLY * len(signs) and (len(own) >= _LETTERS_OF_WORD or not is_one_word):
            tracking[start:stop] = median(even.tolist())
    return tracking


def _stretches(ends: Flags, some: Flags, all_: Flags, share: float) -> Iterator[tuple[int, int]]:
    """The stretches between ends with enough flags of ``all_`` set, of which at least a share is set in ``some``."""
    starts = np.concatenate([[0], np.flatnonzero(ends) + 1])
    place: Indices = np.cumsum(ends) - ends
    few, many = (np.bincount(place, weights=flags, minlength=len(starts)) for flags in (some, all_))
    bounds = [*starts.tolist(), len(ends)]
    for number in np.flatnonzero((many >= _LEAST_LETTERS) & (few >= share * many)).tolist():
        yield bounds[number], bounds[number + 1]


def _drawn_space_after(glyphs: Glyphs, last: int) -> bool:
    """Whether the glyph after this one is a space with a width of its own."""
    if last + 1 >= len(glyphs.codes) or glyphs.codes[last + 1] not in (0x20, 0xA0, 0x3000):
        return False
    x1, y1, x2, y2 = glyphs.boxes[last + 1]
    return bool(max(x2 - x1, y2 - y1) > 0.5)


def _trimmed(glyphs: Glyphs, index: Indices, size: Floats, angle: NDArray[np.int64]) -> Floats:
    """Glyph boxes with a plausible height about the baseline: fonts state absurd ascents, and too low ones."""
    boxes = glyphs.boxes[index].copy()
    flat = angle == 0
    baseline, em = glyphs.origins[index[flat], 1], size[flat]
    boxes[flat, 1] = np.clip(boxes[flat, 1], baseline - em, baseline - 0.74 * em)
    boxes[flat, 3] = np.clip(boxes[flat, 3], baseline + 0.22 * em, baseline + 0.35 * em)
    return boxes


def _words(codes: NDArray[np.uint32], boxes: Floats, glyphs: Indices, cuts: Indices) -> list[_Piece]:
    """The words between cuts.

    Args:
        codes: Codes of all glyphs, shape (n,).
        boxes: Shape (n, 4).
        glyphs: Their numbers, shape (n,).
        cuts: Where words begin, but for the first.
    """
    starts = np.concatenate([[0], cuts])
    low, high = (
        reduce.reduceat(part, starts) for reduce, part in ((np.minimum, boxes[:, :2]), (np.maximum, boxes[:, 2:]))
    )
    text, numbers = "".join(map(chr, codes.tolist())), glyphs.tolist()
    pieces = []
    for start, stop, box in zip(
        starts.tolist(), [*cuts.tolist(), len(codes)], as_boxes(np.hstack([low, high])), strict=True
    ):
        drawn, own = text[start:stop], tuple(numbers[start:stop])
        # Ligatures become letters here, so that a word may have more characters than glyphs.
        spelled = spell_out(drawn)
        pieces.append(_Piece(spelled, box, own if len(spelled) == len(drawn) else _sources(drawn, spelled, own)))
    return pieces


def _sources(drawn: str, spelled: str, glyphs: tuple[int, ...]) -> tuple[int, ...]:
    """For each character of a word as it is spelled out, the glyph that shows it."""
    lengths = [len(spell_out(drawn[:end])) for end in range(1, min(len(drawn), _MAX_WORD) + 1)]
    return tuple(glyphs[min(bisect_right(lengths, place), len(glyphs) - 1)] for place in range(len(spelled)))


def _stack_vertical(runs: list[_Run]) -> list[_Run]:
    """Join columns of single East Asian characters drawn downwards (vertical writing)."""
    result: list[_Run] = []
    for run in runs:
        last = result[-1] if result else None
        if last is not None and _goes_down(last, run):
            last.words = [_joined(last.words[0], run.words[0])]
            last.baseline = run.baseline
            last.left, last.right = min(last.left, run.left), max(last.right, run.right)
        else:
            result.append(run)
    return result


def _goes_down(above: _Run, below: _Run) -> bool:
    texts = [word.text for word in (*above.words, *below.words)]
    if len(texts) != 2 or len(texts[1]) != 1 or min("".join(texts)) < "\u2e80" or above.angle or below.angle:
        return False
    a, b = above.box, below.box
    narrow = a[2] - a[0] < 1.5 * above.size
    same_column = abs((a[0] + a[2]) - (b[0] + b[2])) < 0.6 * above.size
    return narrow and same_column and 0.6 * above.size < below.baseline - above.baseline < 1.4 * above.size


def _joined(a: _Piece, b: _Piece) -> _Piece:
    return _Piece(a.text + b.text, union_box((a.box, b.box)), a.glyphs + b.glyphs)


def _vertical(glyphs: Glyphs, column: Column) -> _Run:
    """A vertical line with words where drawn spaces part them."""
    members = column.members
    spaces = glyphs.is_space[members]
    parts = np.split(np.arange(len(members)), np.flatnonzero(spaces))
    words = []
    for part in parts:
        own = members[part[~spaces[part]]]
        if len(own):
            (word,) = _words(glyphs.codes[own], glyphs.boxes[own], own, np.empty(0, dtype=np.intp))
            words.append(word._replace(box=(column.box[0], word.box[1], column.box[2], word.box[3])))
    left, _, right, bottom = column.box
    return _Run(
        words=words,
        left=left,
        right=right,
        baseline=bottom,
        size=column.size,
        angle=0,
        bold=float(glyphs.of("bold")[members].mean()),
        rtl=False,
        annotation=bool(glyphs.of("annotation")[members].any()),
    )


def _merge_runs(runs: list[_Run]) -> list[_Run]:
    """Join runs that stand side by side on one baseline, however far apart they were drawn."""
    order = sorted(range(len(runs)), key=lambda i: (runs[i].angle, runs[i].baseline))
    reach = _RAISED * max((run.size for run in runs), default=0.0)
    pairs = []
    for place, i in enumerate(order, start=1):
        for j in islice(order, place, None):
            if runs[j].angle != runs[i].angle or runs[j].baseline > runs[i].baseline + reach:
                break
            if _side_by_side(runs[i], runs[j]):
                pairs.append((i, j))
    return [_line([runs[i] for i in members]) for members in components(len(runs), pairs)]


def _side_by_side(a: _Run, b: _Run) -> bool:
    em, small = max(a.size, b.size), min(a.size, b.size)
    gap = max(b.left - a.right, a.left - b.right)
    if gap < -0.5 * em:
        return False
    off = abs(a.baseline - b.baseline)
    if off < _SAME_BASELINE * em and small > 0.7 * em:
        return gap < _GAP_BETWEEN_RUNS * em
    return off < _RAISED * em and _SMALLEST_SCRIPT * em < small < _BODY * em and gap < 0.2 * em


def _line(runs: Sequence[_Run]) -> _Run:
    if len(runs) == 1:
        return runs[0]
    length = [sum(len(word.text) for word in run.words) for run in runs]
    letters = [sum(char.isalpha() for word in run.words for char in word.text) for run in runs]
    rtl = sum(count for run, count in zip(runs, letters, strict=True) if run.rtl) > 0.5 * sum(letters)
    placed = sorted(runs, key=lambda run: run.left, reverse=rtl)
    words = [*placed[0].words]
    for before, run in pairwise(placed):
        gap = max(run.left - before.right, before.left - run.right)
        # A change of font within a word ends a run, but not the word.
        glued = gap < _WORD_GAP * max(run.size, before.size) and not (before.ends_in_space and gap > 0)
        if glued and not rtl:
            words[-1] = _joined(words[-1], run.words[0])
            words.extend(run.words[1:])
        else:
            words.extend(run.words)
    main = runs[int(np.argmax(length))]
    return replace(
        main,
        words=words,
        left=min(run.left for run in runs),
        right=max(run.right for run in runs),
        trailing_space=placed[-1].trailing_space,
        bold=float(np.average([run.bold for run in runs], weights=length)),
        rtl=rtl,
        annotation=any(run.annotation for run in runs),
        doubtful=sum(run.doubtful for run in runs),
    )
