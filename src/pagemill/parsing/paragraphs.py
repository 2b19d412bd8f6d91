"""A region's rows cut into paragraphs, lists and headings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise, takewhile

import numpy as np

from pagemill.document.geometry import split_when
from pagemill.document.joining import goes_on
from pagemill.document.labels import RUNNING_TEXT, TITLES, Label
from pagemill.document.page import Region
from pagemill.late import re
from pagemill.parsing.lines import Row, join_rows
from pagemill.parsing.lists import BULLET, NUMBER, Marker, follows, list_text, marker, parsed_marker
from pagemill.parsing.thresholds import PARSING

HAS_WORD = re.compile(r"[^\W\d_]{3,}|[\u3040-\u30ff\u3131-\ud7a3\u4e00-\u9fff]{2,}")
"""What a heading holds, and a formula does not."""
_SENTENCE_END = re.compile(r"[.!?…。！？:][\"'”’)\]»]*(?:\d{1,3}(?:[,–-]\d{1,3})*)?$")
_LEADER = re.compile(r"^[.·…_\-–—=*~\s]{6,}$")
"""A row of dots or dashes drawn with characters: a rule, not text."""
_STOPS = TITLES | {Label.DISPLAY_FORMULA, Label.ALGORITHM, Label.CONTENT}
"""Labels that no paragraph runs over, as it runs over a picture or a table."""


class RunKind(Enum):
    """What a run of rows is."""

    TEXT = "text"
    LIST = "list"
    HEADING = "heading"


@dataclass(slots=True)
class Passage:
    """Consecutive paragraphs of one kind."""

    kind: RunKind
    paragraphs: list[list[Row]]

    @property
    def rows(self) -> list[Row]:
        """Of all its paragraphs."""
        return [row for paragraph in self.paragraphs for row in paragraph]

    @property
    def marker(self) -> Marker | None:
        """What its first row starts with, if that marks a list item."""
        return parsed_marker(self.rows[0].text)

    @property
    def text(self) -> str:
        """Paragraphs apart by an empty line; list items one a line; a heading on one line."""
        if self.kind is RunKind.LIST:
            return list_text(self.rows)
        return "\n\n".join(join_rows(rows) for rows in self.paragraphs)


def passages(rows: Sequence[Row], body_size: float) -> list[Passage]:
    """Cut a region into passages.

    Args:
        rows: In reading order.
        body_size: Font size of the page's running text in pixels.
    """
    paragraphs = _split_paragraphs([row for row in rows if not _LEADER.match(row.text)])
    parts = [part for paragraph in paragraphs for part in _parts(paragraph, rows, body_size)]
    for before, after in pairwise(parts):
        if after.kind is RunKind.TEXT and follows(before.marker, after.marker):
            after.kind = RunKind.LIST
            before.kind = RunKind.LIST if before.kind is RunKind.TEXT else before.kind
    alike = split_when(parts, _apart)
    return [Passage(run[0].kind, [rows for part in run for rows in part.paragraphs]) for run in alike]


def _apart(before: Passage, after: Passage) -> bool:
    """Whether two neighbours become blocks of their own: other kinds, headings, what may turn out to be a list item."""
    if before.kind is not after.kind or after.kind is RunKind.HEADING:
        return True
    return after.kind is RunKind.TEXT and (before.marker or after.marker) is not None


def _split_paragraphs(rows: Sequence[Row]) -> list[list[Row]]:
    """Cut rows where a paragraph ends: extra space, an indent, or a short line that ends a sentence."""
    if not rows:
        return []
    left = float(np.quantile([row.box[0] for row in rows], PARSING.edge_quantile))
    right = float(np.quantile([row.box[2] for row in rows], 1 - PARSING.edge_quantile))
    pitches = np.array([_middle(b) - _middle(a) for a, b in pairwise(rows)])
    usual = float(np.quantile(pitches[pitches > 0], PARSING.pitch_quantile)) if (pitches > 0).any() else 0.0
    if _hanging(rows, left):
        return split_when(rows, lambda _, row: row.box[0] < left + PARSING.hanging_edge * row.size)
    after = {id(row): following for row, following in pairwise(rows)}
    return split_when(rows, lambda above, below: _breaks(above, below, after.get(id(below)), left, right, usual))


def _hanging(rows: Sequence[Row], left: float) -> bool:
    """Whether each entry starts at the left edge and goes on indented, as in bibliographies and glossaries."""
    outer = [row.box[0] < left + PARSING.hanging_edge * row.size for row in rows]
    starts = sum(outer)
    if not outer[0] or starts < 2 or len(rows) - starts < 2:
        return False
    followed = sum(not after for first, after in pairwise(outer) if first)
    indents = [row.box[0] for row, at_left in zip(rows, outer, strict=True) if not at_left]
    return followed >= PARSING.hanging_followed * starts and np.ptp(indents) < PARSING.hanging_spread * rows[0].size


def ends_sentence(text: str) -> bool:
    """Whether a text ends as a sentence does."""
    return bool(_SENTENCE_END.search(text.rstrip())) or text.rstrip().endswith(("다.", "요.", "음.", "함."))


def mark_continuations(regions: Sequence[Region], is_cut: Callable[[Region, Region | None], bool]) -> None:
    """Note where a paragraph goes on in the next text, over what floats between them, or may go on on the next page.

    Args:
        regions: In reading order, with their content.
        is_cut: Whether a text stops in the middle of a sentence, before another text or, None, at the page's end.
    """
    flow = [region for region in regions if region.label in _STOPS or (region.label in RUNNING_TEXT and region.content)]
    for region, after in zip(flow, [*flow[1:], None], strict=False):
        if region.label in RUNNING_TEXT and not region.list_item and is_cut(region, after):
            region.continues = after is None or (
                after.label is region.label
                and not after.list_item
                and goes_on((region.content or "").rstrip(), after.content or "")
            )


def _middle(row: Row) -> float:
    return (row.box[1] + row.box[3]) / 2


def _breaks(above: Row, below: Row, after: Row | None, left: float, right: float, usual: float) -> bool:
    em = max(above.size, below.size)
    pitch = _middle(below) - _middle(above)
    apart = pitch > PARSING.pitch_break * usual
    if apart and below.box[1] - above.box[3] > PARSING.paragraph_gap * em:
        return True
    if above.size > PARSING.heading_size * below.size or below.size > PARSING.heading_size * above.size:
        return min(len(above.text), len(below.text)) > 1 and above.bold != below.bold
    if BULLET.match(below.text):
        return True
    width = right - left
    off_centre = abs((below.box[0] + below.box[2]) - (left + right))
    centred = off_centre < PARSING.centred * width and below.box[2] < right - em
    indent, flush = below.box[0] - left, PARSING.no_indent * em
    indented = indent > PARSING.indent * em and above.box[0] - left < flush and not centred
    if indented and (after is None or after.box[0] - left < flush) and indent < PARSING.indent_share * width:
        return not marker(above.text) and not above.text.endswith("-")
    if _could_have_fitted(above, below, right) and not centred:
        return True
    short = above.box[2] < right - PARSING.short_row * width
    starts = not below.text[:1].islower()
    return short and starts and ends_sentence(above.text)


def _could_have_fitted(above: Row, below: Row, right: float) -> bool:
    """Whether the first word of a row had room at the end of the row above, so that the break between them is meant."""
    room = right - above.box[2]
    first = below.text.split(None, 1)[0]
    length = (below.box[2] - below.box[0]) * len(first) / max(1, len(below.text))
    lower = below.text[:1].islower() or above.text.rstrip().endswith((",", "-"))
    return room > PARSING.word_fits[lower] * above.size + PARSING.word_width * length


def _parts(paragraph: list[Row], region: Sequence[Row], body_size: float) -> list[Passage]:
    """A heading at the start of a paragraph, its text, and the list at its end: what there is of them.

    A list begins with a bullet, or is all of the text, where that begins with a number that another one confirms.
    """
    heading = _heading(paragraph, region, body_size)
    rest = paragraph[len(heading) :]
    bullet = next((i for i, row in enumerate(rest) if BULLET.match(row.text)), len(rest))
    numbered = [i for i, row in enumerate(rest) if NUMBER.match(row.text)]
    text = 0 if len(numbered) > 1 and numbered[0] == 0 else bullet
    parts = [(RunKind.HEADING, heading), (RunKind.TEXT, rest[:text]), (RunKind.LIST, rest[text:])]
    return [Passage(kind, [rows]) for kind, rows in parts if rows]


def _is_marked_heading(paragraph: Sequence[Row], rest: Sequence[Row]) -> bool:
    """Whether a paragraph that starts with a number is set a little larger there, as a text layer tells for sure."""
    others = paragraph[1:] or rest
    measured = all(line.font_size for row in (*paragraph, *others) for line in row.lines)
    usual = float(np.median([row.size for row in others or paragraph]))
    return measured and paragraph[0].size > PARSING.marked_heading_size * usual


def _heading(paragraph: list[Row], region: Sequence[Row], body_size: float) -> list[Row]:
    """The rows at a paragraph's start that are a heading inside a larger region of running text."""
    first = paragraph[0]
    stands_out = first.bold or first.size > PARSING.heading_size * body_size
    numbered = len(region) <= PARSING.max_compared and NUMBER.match(first.text) and HAS_WORD.search(first.text)
    if not stands_out and not numbered:
        return []
    own = set(map(id, paragraph))
    rest = [row for row in region if id(row) not in own]
    marked = numbered and _is_marked_heading(paragraph, rest)
    if not marked and not (rest and stands_out):
        return []
    usual = max(body_size, float(np.median([row.size for row in rest or paragraph[1:]])))
    largest = (PARSING.marked_heading_size if marked else PARSING.heading_size) * usual
    bold_tells = sum(row.bold for row in region) <= 0.5 * len(region)
    heading = list(takewhile(lambda row: row.size > largest or (row.bold and bold_tells), paragraph))
    text = " ".join(row.text for row in heading)
    says = any(char.isalpha() for char in text) and not BULLET.match(text) and not text.endswith((".", ",", ";"))
    return heading if says and len(heading) <= PARSING.heading_rows else []
