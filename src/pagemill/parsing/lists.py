"""Lists: how items are marked, which lines are items, and how deep each item is nested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import split_when
from pagemill.document.labels import PICTURES, Label
from pagemill.late import re
from pagemill.parsing.blocks import Block
from pagemill.parsing.lines import Row, join_rows
from pagemill.parsing.thresholds import PARSING

SHAPES = "□■▢▣○●◯◎⊙❍◇◆❖△▲▽▼▷▶►▻☆★※"
"""Bullets whose shape tells the level, as in Korean and Japanese official documents, in the order of the levels."""
BULLET = re.compile(
    rf"^[{SHAPES}•‣◦▪▫➢➤✓✔∙⁃☐☑☒\uf0b7\u00b7ㆍ・](?=\s|\w)\s*|^[-–—*ㅁㅇ\ufffd\uf06c-\uf0fc]\s+(?=\S)|^o\s+(?=[\uac00-\ud7a3])"
)
_SYLLABLES = "가나다라마바사아자차카타파하"
NUMBER = re.compile(
    rf"^(?:\(?(?:\d{{1,3}}|[A-Za-z]|[ivxIVX]{{1,5}}|[{_SYLLABLES}])[.)](?=\s)"
    r"|[①-⑳㉠-㉻]\s?|\[\d{1,3}\](?=\s))\s*"
)
_CLOSE_NUMBER = re.compile(rf"^(?:[{_SYLLABLES}][.)]|\d{{1,2}}\)|\((?:\d{{1,2}}|[{_SYLLABLES}])\))(?=[\uac00-\ud7a3])")
"""A Korean item's number without a space after it."""
_NOTE = re.compile(r"^(?:\*{1,3}|[†‡§]+)\s*(?=\w)|^\d{1,3}\)\s*(?=[^\W\d])")
_BETWEEN = PICTURES | {Label.NUMBER, Label.HEADER, Label.FOOTER, Label.FIGURE_TITLE, Label.FOOTNOTE, Label.ASIDE_TEXT}
"""What may stand between two parts of a list."""
_DASHES = "-–—―*"
_ORDERED = ("1.", "가.", "1)", "가)", "(1)", "(가)", "①", "㉮")
"""Korean official documents nest numbers in this order (Regulation on Administrative Efficiency, article 4)."""
_BULLETS = ("□■▢▣◇◆❖☆★", "○●◯◎⊙❍△▲▽▼▷▶►▻ㅁㅇo•◦➢➤", _DASHES + "⁃", "·ㆍ・∙▪▫‣")
"""The usual order of bullets."""


class Marker(NamedTuple):
    """What a list item starts with."""

    kind: str
    """Alike for items of one list: the bullet, or the number's form with 1, 가 or ① in it."""
    value: int | None = None
    """Of a number."""

    @property
    def rank(self) -> int:
        """Usual depth among markers of its sort."""
        if self.kind in _ORDERED:
            return _ORDERED.index(self.kind)
        return next((rank for rank, bullets in enumerate(_BULLETS) if self.kind in bullets), len(_BULLETS))


def marker(text: str) -> str:
    """The marker that a list item starts with, stripped; empty when there is none."""
    match = BULLET.match(text) or NUMBER.match(text) or _CLOSE_NUMBER.match(text)
    return match.group().strip() if match else ""


def parsed_marker(text: str) -> Marker | None:
    """What kind of marker a text starts with; None for no list item, and for the number of a reference."""
    sign = marker(text)
    if not sign or sign.startswith("["):
        return None
    if len(sign) == 1 and (sign in _DASHES or BULLET.match(text)):
        return Marker("-" if sign in _DASHES else sign)
    if len(sign) == 1:
        first = "①" if "①" <= sign <= "⑳" else "㉮"
        return Marker(first, ord(sign) - ord(first) + 1)
    inner = sign.strip("().")
    if inner.isdigit():
        return Marker(sign.replace(inner, "1"), int(inner))
    if inner in _SYLLABLES:
        return Marker(sign.replace(inner, "가"), _SYLLABLES.index(inner) + 1)
    if len(inner) == 1:
        return Marker(sign.replace(inner, "A" if inner.isupper() else "a"), ord(inner.lower()) - ord("a") + 1)
    return Marker(sign.replace(inner, "i"))


def follows(before: Marker | None, after: Marker | None) -> bool:
    """Whether two markers are of successive items of one list."""
    if before is None or after is None or before.kind != after.kind:
        return False
    return before.value is None or after.value is None or after.value == before.value + 1


def is_bulleted(rows: Sequence[Row]) -> bool:
    """Whether rows in two pieces are bullets and their texts rather than the cells of a table."""
    starts = [bool(BULLET.match(row.text)) for row in rows]
    texts = all(len(row.lines) <= 2 for row in rows)
    return texts and sum(starts) >= max(2, PARSING.bulleted_rows * len(rows)) and starts[0]


def _items_of(rows: Sequence[Row]) -> list[list[Row]]:
    """Cut the rows of a list into items; rows without a marker go on with the item before them."""
    return split_when(rows, lambda _, row: bool(marker(row.text) or _NOTE.match(row.text)))


def notes_text(rows: Sequence[Row]) -> str:
    """Footnotes as text, each a paragraph of its own."""
    return "\n\n".join(join_rows(item) for item in _items_of(rows))


def list_text(rows: Sequence[Row]) -> str:
    """A list as text: one item a line with its marker as printed, two spaces deeper for every level."""
    return next(_nested([rows]))


def _nested(lists: Sequence[Sequence[Row]]) -> Iterator[str]:
    """The texts of lists that follow each other, with one nesting."""
    nesting = _Nesting(rtl=is_right_to_left("".join(line.text for rows in lists for row in rows for line in row.lines)))
    for rows in lists:
        yield "\n".join("  " * nesting.depth_of(item[0]) + join_rows(item) for item in _items_of(rows))


def mark_lists(blocks: Sequence[Block]) -> None:
    """Label lone items as lists where others confirm them, and nest the items of lists that follow each other.

    Args:
        blocks: In reading order, with their text; those of lists get a new one.
    """
    for run in _runs(blocks):
        starts = [(block, parsed_marker(block.rows[0].text)) for block in run]
        for number, (block, start) in enumerate(starts):
            others = (other for _, other in starts[:number] + starts[number + 1 :])
            block.is_list = block.is_list or _is_item(start, others)
        for is_list, part in groupby(run, key=lambda block: block.is_list):
            if is_list:
                nested = list(part)
                for block, text in zip(nested, _nested([block.rows for block in nested]), strict=True):
                    block.text = text


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Stretches of running text between headings and tables; pictures and what is in the margins do not end them."""
    own: list[Block] = []
    for block in blocks:
        if block.label is Label.TEXT and block.rows and "\n\n" not in block.text:
            own.append(block)
        elif block.label not in _BETWEEN:
            yield own
            own = []
    yield own


def _is_item(start: Marker | None, others: Iterable[Marker | None]) -> bool:
    """Whether a text that starts with a marker is a list item: its shape says so, or its neighbours in the list do."""
    if start is None or start.kind in SHAPES or start.kind == "①":
        return start is not None
    return any(follows(start, other) or follows(other, start) for other in others)


class _Level(msgspec.Struct):
    start: Marker | None
    edge: float


class _Nesting(msgspec.Struct):
    """Depths of items met one after the other: by their indents and by the kinds of their markers.

    Indents alone do not tell: official documents set 가. below 1. without one, and columns start anywhere.
    """

    rtl: bool = False
    stack: list[_Level] = []
    bottom: float = float("-inf")

    def depth_of(self, row: Row) -> int:
        """The depth of the next item, from 0, by its first row."""
        start = parsed_marker(row.text)
        edge = -row.box[2] if self.rtl else row.box[0]
        kind = start.kind if start else None
        alike = [i for i, level in enumerate(self.stack) if level.start is not None and level.start.kind == kind]
        if self.stack and row.box[3] < self.bottom - row.size:  # the top of another column
            last = self.stack[alike[-1]] if alike else self.stack[0]
            shift = edge - last.edge
            for level in self.stack:
                level.edge += shift
        self.bottom = row.box[3]
        same = [i for i in alike if abs(self.stack[i].edge - edge) <= PARSING.item_edge * row.size]
        if same:
            del self.stack[same[-1] :]
        else:
            while self.stack and self.stack[-1].edge > edge + PARSING.item_indent * row.size:
                self.stack.pop()
            while self.stack and self._beside(self.stack[-1], start, edge, row.size):
                self.stack.pop()
        self.stack.append(_Level(start, edge))
        return len(self.stack) - 1

    @staticmethod
    def _beside(level: _Level, start: Marker | None, edge: float, size: float) -> bool:
        """Whether an item is of a level, and not below it."""
        if edge > level.edge + PARSING.item_indent * size:
            return False
        return level.start is None or start is None or start.rank <= level.start.rank
