"""Glyphs grouped into words and lines, by geometry alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
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
_WORD_OF_FIGURES = 0.5
"""Widest space between Latin words in a right-to-left line; cells stand farther apart."""
_OVERLAP = 0.1
"""Most that neighbouring letters of a word overlap."""
_SAME_BASELINE = 0.25
_RAISED = 0.6
"""Farthest that a superscript or subscript stands off the baseline."""
_SMALLEST_SCRIPT = 0.45
"""Least size of a superscript; a greater difference is a drop cap beside a line."""
_LEAST_DRAWN = 0.001
"""Least width of a space with a width, in pixels; a long replacement text for a few letters has thin ones."""
_MAX_WORD = 256
"""Characters of a word that spelling out lengthens or shortens, up to which the glyph of each is found out."""
_LEAST_LETTERS = 4
"""Pairs of letters from which the spacing of a run is known."""


class _Piece(NamedTuple):
    """A word, and for each character of it the glyph that shows it."""

    text: str
    box: Box
    glyphs: tuple[int, ...]


@dataclass(slots=True)
class _Run:
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
        width: Of the page in pixels; boxes are cut to it.
        height: Of the page in pixels.
        evidence: What decides about the marks of the lines.

    Yields:
        Lines split at column and table-cell gaps; their ``style`` is a face of the glyphs.
    """
    columns = columns_of_glyphs(glyphs)
    level = np.ones(len(glyphs.codes), dtype=bool)
    for column in columns:
        level[column.members] = False
    typography = Typography(glyphs, evidence)
    runs = [_vertical(glyphs, column) for column in columns]
    runs += _merge_runs(_stack_vertical(list(_runs(glyphs, np.flatnonzero(level)))))
    for number, run in enumerate(runs):
        text = " ".join(word.text for word in run.words)
        if not text.strip():
            continue
        shown = [glyph for word in run.words for glyph in (*word.glyphs, -1)][:-1]
        # Korean may break inside a word; there the drawn space at a line's end is all that tells.
        text += " " if run.trailing_space else ""
        facts = typography.of_line(shown, run.baseline if number >= len(columns) else None, run.size)
        yield TextLine(
            text=text,
            box=clip(run.box, width, height),
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


def _runs(page: Glyphs, members: Indices) -> Iterator[_Run]:
    """Cut the stream of the glyphs ``members`` where the pen jumps."""
    glyphs = page.select(members) if len(members) < len(page.codes) else page
    printing = ~glyphs.is_space
    index = np.flatnonzero(printing)
    if not len(index):
        return
    size = glyphs.sizes[index]
    look = glyphs.look[index]
    angle = look["angle"]
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
    zone = _right_to_left_lines(rtl, baseline, angle, em)
    gap = np.where(
        zone, np.maximum(left[1:] - right[:-1], _leftward_gap(left, right, zone & ~(rtl[1:] | rtl[:-1]), em)), gap
    )
    separated = np.diff(index) > 1
    limit = np.where(separated & (drawn > 0.1 * em), _GAP_AFTER_SPACE * em + drawn, _GAP_WITHOUT_SPACE * em)
    restyled = np.diff(glyphs.style[index]) != 0
    # PDFium sorts letters that are drawn one by one from left to right as displayed, also where they are upside down.
    reversed_ = restyled & (right[1:] < left[:-1] + _OVERLAP * em) & (left[1:] < left[:-1])
    backwards = ((left[1:] < left[:-1] - 0.4 * em) | reversed_) & ~zone
    off = np.abs(np.diff(baseline))
    small = np.minimum(size[1:], size[:-1])
    raised = (off < _RAISED * em) & (gap < 0.3 * em) & (small < 0.85 * em) & (small > _SMALLEST_SCRIPT * em)
    jump = (np.diff(angle) != 0) | (gap > limit) | backwards | ~((off < _SAME_BASELINE * em) | raised)
    # A word ends at drawn white space, and at any wider than a hair (PDFium makes some up between tight letters).
    tight = _tracking(gap / em, separated, jump, restyled) * em
    spaced = (gap - tight > 0.05 * em) | ((drawn > _LEAST_DRAWN) & (gap > 0.5 * drawn))
    other = ~rtl & np.array([chr(code).isalpha() for code in glyphs.codes[index].tolist()]) if zone.any() else ~rtl
    mixed = zone & ((rtl[1:] & other[:-1]) | (other[1:] & rtl[:-1]))
    word_end = jump | (separated & (spaced | mixed)) | (gap > 0.5 * em)
    starts = np.concatenate([[0], np.flatnonzero(jump) + 1, [len(index)]])
    words_of_page = _words(glyphs.codes[index], boxes, members[index], np.flatnonzero(word_end) + 1)
    first_word = np.concatenate([[0], np.cumsum(word_end)])[starts[:-1]].tolist()
    for start, stop, first, last in zip(
        *(starts[:-1].tolist(), starts[1:].tolist()), first_word, [*first_word[1:], len(words_of_page)], strict=True
    ):
        words = words_of_page[first:last]
        run = slice(start, stop)
        body = size[run] > 0.85 * size[run].max()
        yield _Run(
            words=words,
            left=float(left[run].min()),
            right=float(right[run].max()),
            baseline=float(np.median(baseline[run][body])),
            size=float(np.median(size[run])),
            angle=int(angle[start]),
            bold=float(look["bold"][run].mean()),
            rtl=bool(rtl[run].mean() > 0.5),
            annotation=bool(look["annotation"][run].any()),
            ends_in_space=bool(stop < len(index) and separated[stop - 1] and not reversed_[stop - 1]),
            trailing_space=_drawn_space_after(glyphs, int(index[stop - 1])),
        )


def _right_to_left_lines(rtl: Flags, baseline: Floats, angle: NDArray[np.int64], em: Floats) -> Flags:
    """Which neighbours are of a line that holds right-to-left letters, shape (n - 1,)."""
    cut = (np.abs(np.diff(baseline)) > _RAISED * em) | (np.diff(angle) != 0)
    line = np.concatenate([[0], np.cumsum(cut)])
    flags: Flags = (np.bincount(line, weights=rtl) > 0)[line[1:]] & ~cut
    return flags


def _leftward_gap(left: Floats, right: Floats, inner: Flags, em: Floats) -> Floats:
    """How far each glyph stands at the left of the one before, shape (n - 1,).

    Figures and Latin words between right-to-left ones count as one: what follows them stands at the left of them all.

    Args:
        left: Of the glyphs.
        right: Of the glyphs.
        inner: Which neighbours may be of one such word, shape (n - 1,).
        em: The font size there.
    """
    low, high = left.copy(), right.copy()
    forward = inner & (np.diff(left + right) > 0) & (left[1:] - right[:-1] < _WORD_OF_FIGURES * em)
    for i in np.flatnonzero(forward).tolist():
        low[i + 1] = min(low[i], low[i + 1])
    for i in np.flatnonzero(forward)[::-1].tolist():
        high[i] = max(high[i], high[i + 1])
    gap: Floats = low[:-1] - high[1:]
    return gap


def _tracking(gap: Floats, separated: Flags, jump: Flags, restyled: Flags) -> Floats:
    """How far neighbouring letters overlap where text is set tight, in em: 0 or less, shape (n - 1,).

    Negative character spacing, and fonts that state too wide boxes, make letters overlap, and the words too.

    Args:
        gap: Between each glyph and the next, in em.
        separated: Whether white space stands between them.
        jump: Whether a run ends between them.
        restyled: Whether a text object ends between them; one with enough letters has a spacing of its own.
    """
    tracking = np.zeros(len(gap))
    letters = ~(separated | jump | restyled)
    for ends in (jump, jump | restyled):
        for start, stop in pairwise([0, *(np.flatnonzero(ends) + 1).tolist(), len(gap)]):
            inner = gap[start:stop][letters[start:stop]]
            if len(inner) >= _LEAST_LETTERS:
                tracking[start:stop] = min(0.0, float(np.median(inner)))
    return tracking


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
        codes: Of all glyphs, shape (n,).
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
    members, look = column.members, glyphs.look[column.members]
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
        bold=float(look["bold"].mean()),
        rtl=False,
        annotation=bool(look["annotation"].any()),
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
    return off < _RAISED * em and _SMALLEST_SCRIPT * em < small < 0.85 * em and gap < 0.2 * em


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
    )
