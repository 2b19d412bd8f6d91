"""Inline marks of lines: bold, italic, fixed pitch, struck out, raised and lowered characters, and links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from pagemill.document.geometry import Box, as_array
from pagemill.document.page import Mark, Span
from pagemill.imaging.glyphs import Glyphs, turned
from pagemill.imaging.types import Flags, Floats

# All in units of the font size (em).
_STRIKE_BAND = (0.12, 0.5)
"""Height above the baseline of a line that strikes out: producers draw it at 0.22 to 0.35. Underlines are below 0, the
bars of fractions and roots above 0.6."""
_STRIKE_PEN = 0.15
_OVERHANG = 0.6
"""Most that it reaches beyond what it strikes out: a rule that happens to cross a word goes on."""
_SCRIPT_SIZE = 0.9
"""Most of the line's font size that a script has: WeasyPrint sets 0.89, browsers 0.83, TeX 0.7, word processors 0.58
to 0.65."""
_RAISED, _LOWERED = 0.12, 0.05
"""Least distance from the baseline of the line: word processors lower by 0.08, TeX by 0.15, and raise by 0.2 and more;
the notes at a drawing's foot are off by rounding."""
_RAISED_WHOLE = 0.3
"""The same of what has the size of the line."""
_BITS = {Mark.BOLD: 1, Mark.ITALIC: 2, Mark.CODE: 4, Mark.STRIKE: 8}
_FEW_GLYPHS = 3
"""Glyphs of a line of code from which those in another font are text: code fonts lack arrows. Not measured."""
_BLANK = -1
"""Stands for the glyph of a space between words."""


class Link(NamedTuple):
    """Where a link lies, in page pixels, and where it leads."""

    boxes: tuple[Box, ...]
    target: str


class Evidence(msgspec.Struct, frozen=True):
    """What besides the glyphs decides about the marks of a page."""

    strokes: Sequence[Box] = ()
    """Thin level and upright lines in pixels."""
    links: Sequence[Link] = ()
    faces: Sequence[tuple[bool, bool, bool]] = ()
    """Whether each face is bold, italic, of fixed pitch."""
    tags: Sequence[str] = ("",)
    """Structure types that styles refer to."""


NO_EVIDENCE = Evidence()


class LineFacts(NamedTuple):
    """What the glyphs of a line have in common."""

    spans: tuple[Span, ...]
    face: int
    artifact: bool
    tag: str


class Typography:
    """The marks of each glyph of a page; asked line by line."""

    def __init__(self, glyphs: Glyphs, evidence: Evidence) -> None:
        self._evidence = evidence
        face = glyphs.of("face")
        bits = np.array(
            [sum(bit for bit, on in zip((1, 2, 4), row, strict=True) if on) for row in evidence.faces] or [0]
        )
        flags = bits[np.clip(face, 0, len(bits) - 1)]
        self.fixed_pitch: Flags = (flags & _BITS[Mark.CODE]) > 0
        """Which glyphs are of a font of fixed pitch."""
        sizes, angle = glyphs.sizes, glyphs.of("angle")
        baseline = turned(glyphs.origins, angle)[:, 1]
        if evidence.strokes:
            flags = flags | _struck(glyphs, sizes, baseline, as_array(evidence.strokes)) * _BITS[Mark.STRIKE]
        self._flags: list[int] = flags.tolist()
        self._links = _linked(glyphs, evidence.links)
        self._faces: list[int] = face.tolist()
        self._artifact: list[bool] = glyphs.of("artifact").tolist()
        self._tags: list[int] = glyphs.of("tag").tolist()
        self._sizes: list[float] = sizes.tolist()
        self._baselines: list[float] = baseline.tolist()

    def of_line(self, glyphs: Sequence[int], baseline: float | None, size: float) -> LineFacts:
        """The marks of a line.

        Args:
            glyphs: For each character of its text the glyph that shows it; -1 for spaces between words.
            baseline: Baseline of most of its characters, in the frame in which it is level; None for vertical writing.
            size: Font size of most of its characters.
        """
        shown = [glyph for glyph in glyphs if glyph != _BLANK]
        spans: list[Span] = []
        present = 0
        for flag in set(map(self._flags.__getitem__, shown)):
            present |= flag
        for mark, bit in _BITS.items():
            if present & bit:
                spans += _spans(glyphs, {glyph for glyph in shown if self._flags[glyph] & bit}, mark)
        if baseline is not None:
            offs = [(glyph, self._baselines[glyph] - baseline) for glyph in shown]
            whole = _RAISED_WHOLE * size
            small = {glyph: off for glyph, off in offs if self._sizes[glyph] < _SCRIPT_SIZE * size or abs(off) > whole}
            raised = {glyph for glyph, off in small.items() if off < -_RAISED * size}
            lowered = {glyph for glyph, off in small.items() if off > _LOWERED * size}
            if len(raised) + len(lowered) < len(shown):  # or there is nothing that they are raised from
                spans += _spans(glyphs, raised, Mark.SUPERSCRIPT)
                spans += _spans(glyphs, lowered, Mark.SUBSCRIPT)
        if self._links:
            own = {self._links[glyph] for glyph in shown if glyph in self._links}
            for link in own:
                members = {glyph for glyph in shown if self._links.get(glyph) == link}
                spans += _spans(glyphs, members, Mark.LINK, self._evidence.links[link].target)
        return LineFacts(
            spans=tuple(sorted(spans, key=lambda span: (span.start, -span.end, span.mark))),
            face=_commonest(list(map(self._faces.__getitem__, self._telling(shown, present)))),
            artifact=2 * sum(map(self._artifact.__getitem__, shown)) > len(shown),
            tag=self._evidence.tags[_commonest(list(map(self._tags.__getitem__, shown)))],
        )

    def _telling(self, shown: list[int], present: int) -> list[int]:
        """The glyphs whose style is that of a line: of bold text with code in it, a heading most likely, the text."""
        bold, fixed = _BITS[Mark.BOLD], _BITS[Mark.CODE]
        if not (present & bold and present & fixed and all(self._flags[glyph] & bold for glyph in shown)):
            return shown
        text = [glyph for glyph in shown if not self._flags[glyph] & fixed]
        return text if len(text) >= _FEW_GLYPHS else shown


def _commonest(values: Sequence[int]) -> int:
    first = values[0]
    return first if values.count(first) == len(values) else Counter(values).most_common(1)[0][0]


def _spans(glyphs: Sequence[int], members: set[int], mark: Mark, target: str | None = None) -> Iterator[Span]:
    """The stretches of characters whose glyphs are members, with the spaces between two of them."""
    start = end = -1
    for place, glyph in enumerate(glyphs):
        if glyph in members:
            start = place if start < 0 else start
            end = place + 1
        elif glyph != _BLANK and start >= 0:
            yield Span(start, end, mark, target)
            start = -1
    if start >= 0:
        yield Span(start, end, mark, target)


def _linked(glyphs: Glyphs, links: Sequence[Link]) -> dict[int, int]:
    """The link that each linked glyph is in."""
    if not links or not len(glyphs.codes):
        return {}
    middle = (glyphs.boxes[:, :2] + glyphs.boxes[:, 2:]) / 2
    order = np.argsort(middle[:, 1], kind="stable")
    heights = middle[order, 1]
    found: dict[int, int] = {}
    for number, link in enumerate(links):
        for x1, y1, x2, y2 in link.boxes:
            near = order[np.searchsorted(heights, y1) : np.searchsorted(heights, y2, side="right")]
            inside = near[(middle[near, 0] >= x1) & (middle[near, 0] <= x2)]
            found.update((glyph, number) for glyph in inside.tolist())
    return found


def _struck(glyphs: Glyphs, sizes: Floats, baseline: Floats, strokes: Floats) -> Flags:
    """Which glyphs a thin line along the writing strikes out, shape (n,)."""
    flags = np.zeros(len(sizes), dtype=bool)
    angles = glyphs.of("angle")
    for angle in (0, 90, 180, 270):
        own = np.flatnonzero((angles == angle) & ~glyphs.is_space)
        if not len(own):
            continue
        a, b = (turned(glyphs.boxes[own, i : i + 2], np.full(len(own), angle)) for i in (0, 2))
        left, right = np.minimum(a[:, 0], b[:, 0]), np.maximum(a[:, 0], b[:, 0])
        c, d = (turned(strokes[:, i : i + 2], np.full(len(strokes), angle)) for i in (0, 2))
        low, high = np.minimum(c, d), np.maximum(c, d)
        height = (low[:, 1] + high[:, 1]) / 2
        order = np.argsort(baseline[own], kind="stable")
        lines, size = baseline[own][order], sizes[own][order]
        first = np.searchsorted(lines, height + _STRIKE_BAND[0] * size.min())
        last = np.searchsorted(lines, height + _STRIKE_BAND[1] * size.max(), side="right")
        along = high[:, 0] - low[:, 0] > high[:, 1] - low[:, 1]
        for i in np.flatnonzero(along & (last > first)).tolist():
            near = order[first[i] : last[i]]
            em, off = sizes[own][near], baseline[own][near] - height[i]
            middle = (left[near] + right[near]) / 2
            hit = (
                (off > _STRIKE_BAND[0] * em)
                & (off < _STRIKE_BAND[1] * em)
                & (high[i, 1] - low[i, 1] < _STRIKE_PEN * em)
            )
            hit &= (middle > low[i, 0]) & (middle < high[i, 0])
            if hit.any():
                reach = _OVERHANG * float(em[hit].max())
                within = left[near][hit].min() - low[i, 0] < reach and high[i, 0] - right[near][hit].max() < reach
                flags[own[near[hit]]] |= bool(within)
    return flags
