"""Captions: which texts are captions, and which figure or table they belong to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pagemill.document.labels import FIGURES, RUNNING_TEXT, TITLES, Label
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.geometry import Box
    from pagemill.parsing.blocks import Block

_NAME = (
    r"^[<\[〈【(『「]?\s*(?P<kind>fig(?:ure|\.)?|table|tab\.|chart|scheme|plate|exhibit|listing|graph|map|abb(?:ildung|\.)"
    r"|tabelle|tableau|그림|표|도표|사진|图|圖|表|図)\s*(?:[A-Z]?\d{1,3}(?:[.\-–]\d{1,3})*|[IVX]{1,5}|[A-Z])"
)
_CAPTION = re.compile(_NAME + r"(?:\s*[.:)\]>〉】|–—\-』」]|\s+(?-i:(?=[^a-z\s]))|$)", re.IGNORECASE)
ONLY_NAME = re.compile(_NAME + r"[.:)\]>〉】|』」]?$", re.IGNORECASE)
NUMBERED_HEADING = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S")
_SENTENCE = re.compile(_NAME + r"\s+(?-i:[a-z])", re.IGNORECASE)
_TABLE_WORDS = frozenset({"table", "tab.", "tabelle", "tableau", "표", "表"})


def mark_captions(blocks: Sequence[Block]) -> None:
    """Label blocks that start as captions do (``Figure 3.``, ``Table 1 Results``, ``<표 2>``).

    What a model took for a caption and reads as a sentence about a figure or table is text, or a numbered heading on a
    page that shows nothing to be captioned.
    """
    shown = any(block.label in FIGURES | {Label.TABLE, Label.ALGORITHM} for block in blocks)
    for block in blocks:
        if block.label is Label.FIGURE_TITLE and _SENTENCE.match(block.plain):
            block.label = Label.TEXT
        elif block.label is Label.FIGURE_TITLE and not shown and NUMBERED_HEADING.match(block.plain):
            block.label = Label.PARAGRAPH_TITLE
        elif (
            block.label in RUNNING_TEXT | TITLES
            and 0 < len(block.rows) <= PARSING.caption_rows
            and is_caption(block.plain)
        ):
            block.label = Label.FIGURE_TITLE


def is_caption(text: str) -> bool:
    """Whether a text starts as a caption does, and not as a sentence about a figure."""
    match = _CAPTION.match(text)
    if match is None or _SENTENCE.match(text):  # the hyphen in "Table 2-2 shows" separates nothing
        return False
    return not text[match.end() :].lstrip()[:1].islower()


def caption_targets(labels: Sequence[Label], boxes: Sequence[Box], texts: Sequence[str], height: int) -> dict[int, int]:
    """For every caption the nearest figure or table, by index; a table's caption prefers tables.

    Args:
        labels: Of all regions of a page.
        boxes: Theirs, in pixels.
        texts: What they say, each in one line; looked at where the label is a caption's.
        height: Of the page in pixels.
    """
    pictures = [i for i, label in enumerate(labels) if label in FIGURES]
    tables = [i for i, label in enumerate(labels) if label is Label.TABLE]
    targets: dict[int, int] = {}
    for i, label in enumerate(labels):
        if label is not Label.FIGURE_TITLE:
            continue
        match = _CAPTION.match(texts[i])
        kind = match.group("kind").lower() if match else ""
        preferred, others = (tables, pictures) if kind in _TABLE_WORDS else (pictures, tables)
        if not kind:
            preferred, others = pictures + tables, []
        for candidates in (preferred, others):
            near = {j: _distance(boxes[i], boxes[j]) for j in candidates}
            best = min(near, key=lambda j: near[j], default=None)
            if best is not None and near[best] < PARSING.caption_distance * height:
                targets[i] = best
                break
    return targets


def _distance(a: Box, b: Box) -> float:
    """Gap between two boxes in pixels; a gap sideways counts double, captions stand above or below."""
    x = max(a[0] - b[2], b[0] - a[2], 0.0)
    y = max(a[1] - b[3], b[1] - a[3], 0.0)
    return 2 * x + y
