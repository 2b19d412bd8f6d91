"""Conclusions from the lines of a page: its script, and whether they are reliable."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import msgspec
import numpy as np

from pagemill.imaging.types import Pixels
from pagemill.recognition.base import Quad, RecognizedText
from pagemill.recognition.languages import Plan, script_of, script_share
from pagemill.recognition.scripts import FIGURES, FLIPPED

FOREIGN_LINE = 0.3  # share of a line's ink left unread that hints at another script
_SOME_FOREIGN = 0.08  # the same where the page is known to hold the other script
_TRACE_OF_FOREIGN = 0.03  # the same for a figure with one syllable behind it
_LONG = 3  # line heights
_FOREIGN_PAGE = 0.6  # share of the text, by length, that makes a page illegible
ENOUGH_LINES = 3
SCRIPT_SEEN = 0.5  # share of a script that the primary cannot read, in a line's image or in those of a sample
_HEAD_DOWN = 0.6  # share of a sample that stands upside down
_LATIN = frozenset({"LATIN"})
_STRAY = 0.05  # share of other letters in a line that is all Latin: misread signs
UNSURE = 0.9  # confidence of a figure whose last syllable was read as a sign
_CERTAIN = 0.9999  # confidence of a line that is not in another script, whatever it looks like; see reads_certainly
_CERTAIN_LETTERS = 6
DOUBTFUL = 0.8  # confidence under which a reading needs a second look
_CHINESE_OR_JAPANESE = frozenset({"CJK", "HIRAGANA", "KATAKANA"})
_IDEOGRAPHS = 2  # in a line that the Korean engine is not sure of; a single one is Hangul misread, in one of 60 lines
POORLY_READ = 0.82
"""Quality of a page under which its text is not to be relied upon: pages of scripts of which the engine reads Latin
look-alikes (Thai, Hebrew, Armenian, Khmer) have 0.36 to 0.78, print and legible handwriting 0.87 and more."""

_NOT_READ = RecognizedText(text="", confidence=0.0)


class Line(msgspec.Struct, eq=False):
    """A line on its way through the engines."""

    quad: Quad
    image: Pixels
    text: RecognizedText = _NOT_READ
    engine: str = ""
    unread: float = 0.0
    hanja: bool = False
    has_unread_stamp: bool = False
    shares: dict[str, float] | None = None
    """Result of :func:`script_shares`, if computed."""

    def take(self, other: Line) -> None:
        """Become another reading, with its image and place."""
        self.quad, self.image, self.text, self.engine = other.quad, other.image, other.text, other.engine
        self.unread = other.unread


def mean_shares(lines: list[Line]) -> dict[str, float]:
    """The scripts of some lines together."""
    total: Counter[str] = Counter()
    for line in lines:
        total.update({script: share / len(lines) for script, share in (line.shares or {}).items()})
    return dict(total)


def upright_shares(shares: dict[str, float]) -> dict[str, float]:
    """The shares of text that stands on its feet."""
    return {script: share for script, share in shares.items() if script[0] != FLIPPED and script != FIGURES}


def is_head_down(shares: dict[str, float]) -> bool:
    """Whether most of a sample seems to stand upside down."""
    return sum(share for script, share in shares.items() if script[0] == FLIPPED) >= _HEAD_DOWN


def scripts_by_share(shares: dict[str, float], least: float) -> list[str]:
    """The scripts of which there is enough, the commonest first."""
    upright = upright_shares(shares)
    return sorted((script for script, share in upright.items() if share >= least), key=lambda each: -upright[each])


def strange_script(line: Line, plan: Plan, least: float = SCRIPT_SEEN) -> str | None:
    """The script that a line seems to be in, where the primary does not read it."""
    if line.engine != plan.primary or line.shares is None:
        return None
    seen = next(iter(scripts_by_share(line.shares, least)), None)
    return seen if seen not in plan.familiar and seen != "VIETNAMESE" else None


def reads_certainly(line: Line) -> bool:
    """Whether a line is surely in a script of the primary.

    Of 54 English words in three fonts, each alone, four looked Cyrillic, as "Appendix" does; all were read with over
    0.9999. No Russian or Greek word of as many letters is; of shorter ones "Море" is, as "Mope".
    """
    letters = sum(script_of(character) is not None for character in line.text.text)
    return letters >= _CERTAIN_LETTERS and line.text.confidence >= _CERTAIN and line.unread <= _TRACE_OF_FOREIGN


def looks_like(line: Line, scripts: frozenset[str]) -> bool:
    """Whether a line seems to be in one of the scripts."""
    return line.shares is not None and any(line.shares.get(script, 0.0) >= SCRIPT_SEEN for script in scripts)


def is_latin(line: Line) -> bool:
    """Whether a line read with all scripts holds Latin letters alone; a stray sign of another is a misreading."""
    letters = sum(script_of(character) is not None for character in line.text.text)
    return not may_hold_more(line) and letters > 0 and script_share(line.text.text, _LATIN) >= 1 - _STRAY


def may_hold_more(line: Line) -> bool:
    """Whether a line on a page that holds another script may hold some of it."""
    return line.unread > _SOME_FOREIGN or line.text.confidence < DOUBTFUL


def is_sure(line: Line) -> bool:
    """Whether a line reads well."""
    return line.text.confidence >= UNSURE


def is_unsure(line: Line) -> bool:
    """Whether a line of text reads badly, or leaves much of its ink unread."""
    return is_long(line) and (line.text.confidence < DOUBTFUL or line.unread > FOREIGN_LINE)


def may_be_mixed(line: Line) -> bool:
    """Whether a line of a page in another script may end in some of it, as ``30,000원`` does."""
    return line.unread > _TRACE_OF_FOREIGN or line.text.confidence < UNSURE


def holds_ideographs(line: Line) -> bool:
    """Whether the primary engine saw Chinese characters in a line; in one that runs down the page they mean nothing."""
    (left, top), (right, bottom) = line.quad[:2]
    ideographs = sum(script_of(character) == "CJK" for character in line.text.text)
    return ideographs >= _IDEOGRAPHS and abs(right - left) > abs(bottom - top)


def reads_below(lines: list[Line], least: float) -> bool:
    """Whether the quality of a text is surely too low."""
    quality = quality_of(lines)
    return quality is not None and quality < least


def is_poor_snippet(lines: list[Line]) -> bool:
    """Whether there are too few lines for a verdict on a text, and none of them reads well."""
    return len(lines) < ENOUGH_LINES and all(line.text.confidence < DOUBTFUL for line in lines)


def quality_of(lines: list[Line]) -> float | None:
    """See :attr:`ReadPage.quality`."""
    return _mean(lines, [line.text.confidence * (1 - line.unread) for line in lines])


def is_mostly_unread(lines: list[Line]) -> bool:
    """Whether most of the text, by length, is unread."""
    long = [line for line in lines if is_long(line)]
    return (_mean(long, [line.unread for line in long]) or 0.0) > _FOREIGN_PAGE


def is_ideographic(texts: Iterable[RecognizedText]) -> bool:
    """Whether what was read is mostly Chinese or Japanese, which nothing but Hangul is mistaken for.

    On its side, in vertical lines, it looks like other scripts.
    """
    return script_share("".join(text.text for text in texts), _CHINESE_OR_JAPANESE) > SCRIPT_SEEN


def _mean(lines: list[Line], values: list[float]) -> float | None:
    """Mean weighted by the lengths of lines; None for too few of them."""
    lengths = [size_of(line.quad)[0] for line in lines]
    return float(np.average(values, weights=lengths)) if len(lines) >= ENOUGH_LINES and any(lengths) else None


def is_long(line: Line) -> bool:
    """Whether it has the shape of a line of text; photographs give scraps, and blobs as large as themselves."""
    length, height = size_of(line.quad)
    return length > _LONG * height


def size_of(quad: Quad) -> tuple[float, float]:
    """Length of the top edge and of the left edge, in pixels."""
    return math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])
