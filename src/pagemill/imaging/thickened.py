"""Letters that a browser thickens: bold text in a font that has no bold cut.

Skia draws such letters as Type 3 glyphs without a name, as it does letters of fonts that it cannot embed. Nothing but
their outlines tells which of these are thicker: a letter that a page has in both forms is wider and higher in one of
them. A font holds letters of one form, so that it is known by any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from pagemill.document.geometry import Box, split_when

_LEAST, _MOST = 0.008, 0.085
"""Growth of a letter's width and height, in em: Skia thickens by a 24th to a 32nd of the font size, less at slanted
edges. More is another typeface."""
_FROM = 0x1100
"""First code point of Korean letters; fonts for scripts before it have bold cuts."""


def thickened(
    codes: Sequence[int],
    style: Sequence[int],
    fonts: Sequence[int],
    ems: Sequence[float],
    box_of: Callable[[int], Box | None],
) -> set[int]:
    """The text objects of a page whose letters are thickened.

    Args:
        codes: Codes of the glyphs.
        style: The text object of each glyph.
        fonts: The font of each text object, 0 for one with a name.
        ems: The font size of each text object, in units of the boxes.
        box_of: The box of a glyph's outline, by its index.
    """
    nameless = [i for i, (code, own) in enumerate(zip(codes, style, strict=True)) if code >= _FROM and fonts[own]]
    drawn: dict[int, list[tuple[float, float, int]]] = defaultdict(list)
    for i in nameless:
        em, box = ems[style[i]], box_of(i)
        if em > 0 and box is not None:
            drawn[codes[i]].append(((box[2] - box[0]) / em, abs(box[3] - box[1]) / em, fonts[style[i]]))
    votes: dict[int, list[bool]] = defaultdict(list)
    for letters in drawn.values():
        widths, heights, _ = zip(*letters, strict=True)
        grown = max(widths) - min(widths), max(heights) - min(heights)
        if min(grown) > _LEAST and max(grown) < _MOST:
            middle = (max(widths) + min(widths) + max(heights) + min(heights)) / 2
            for width, height, font in letters:
                votes[font].append(width + height > middle)
    told = {font: 2 * sum(own) > len(own) for font, own in votes.items()}
    # With no more than a space between them.
    runs = split_when(nameless, lambda before, i: i - before > 2)
    return {style[i] for run in runs for i in _thick(run, [told.get(fonts[style[i]]) for i in run])}


def _thick(run: Sequence[int], told: Sequence[bool | None]) -> Iterator[int]:
    """The glyphs of a run that are thickened: of which nothing is known, those nearest to one that is."""
    known = [place for place, is_thick in enumerate(told) if is_thick is not None]
    # Letters that the page has in one form only say nothing: they are like the nearest letter that does.
    walls = [0, *((left + right) // 2 + 1 for left, right in pairwise(known)), len(run)]
    for place, (start, end) in zip(known, pairwise(walls), strict=False):
        if told[place]:
            yield from run[start:end]
