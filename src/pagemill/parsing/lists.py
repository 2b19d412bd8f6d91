"""List items: how they are marked, and which lines make one item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pagemill.parsing.lines import join_rows
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.parsing.lines import Row

BULLET = re.compile(r"^[•‣◦▪▫■□●○◆◇▶►➢➤✓✔∙⁃※❖❍◎☐☒\uf0b7\u00b7](?=\s|\w)\s*|^[-–—*ㅇ\ufffd\uf06c-\uf0fc]\s+(?=\S)")
NUMBER = re.compile(
    r"^(?:\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5}|[가나다라마바사아자차카타파하])[.)](?=\s)"
    r"|[①-⑳㉠-㉻]\s?|\[\d{1,3}\](?=\s))\s*"
)
_NOTE = re.compile(r"^(?:\*{1,3}|[†‡§]+)\s*(?=\w)|^\d{1,3}\)\s*(?=[^\W\d])")


def marker(text: str) -> str:
    """The marker that a list item starts with, stripped; empty when there is none."""
    match = BULLET.match(text) or NUMBER.match(text)
    return match.group().strip() if match else ""


def is_list(rows: Sequence[Row]) -> bool:
    """Whether the rows of a block are list items: the first is marked, and another one or a bullet confirms it."""
    if not rows or not marker(rows[0].text):
        return False
    if BULLET.match(rows[0].text):
        return True
    numbered = [row for row in rows if NUMBER.match(row.text)]
    return len(numbered) >= 2


def is_bulleted(rows: Sequence[Row]) -> bool:
    """Whether rows in two pieces are bullets and their texts rather than the cells of a table."""
    starts = sum(bool(BULLET.match(row.text)) for row in rows)
    texts = all(len(row.lines) <= 2 for row in rows)
    return starts >= 2 and starts >= PARSING.bulleted_rows * len(rows) and texts and bool(BULLET.match(rows[0].text))


def items_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Cut the rows of a list into items; rows without a marker go on with the item before them."""
    items: list[list[Row]] = []
    for row in rows:
        if not items or marker(row.text) or _NOTE.match(row.text):
            items.append([row])
        else:
            items[-1].append(row)
    return items


def notes_text(rows: Sequence[Row]) -> str:
    """Footnotes as text, each a paragraph of its own."""
    return "\n\n".join(join_rows(item) for item in items_of(rows))


def list_text(rows: Sequence[Row]) -> str:
    """A list as text: one item a line with its marker as printed, two spaces deeper for every level of indent."""
    items = items_of(rows)
    left = np.array([item[0].box[0] for item in items])
    step = max(float(np.median([row.size for row in rows])), 1.0)
    depths = _depths(left, step)
    return "\n".join("  " * depth + join_rows(item) for depth, item in zip(depths, items, strict=True))


def _depths(left: np.ndarray[tuple[int, ...], np.dtype[np.float64]], step: float) -> list[int]:
    """Nesting depth by left edge: edges further apart than a letter's width are different levels."""
    edges: list[float] = []
    for x in np.sort(left):
        if not edges or x - edges[-1] > step:
            edges.append(float(x))
    return [int(np.searchsorted(np.array(edges), x, side="right") - 1) for x in left]
