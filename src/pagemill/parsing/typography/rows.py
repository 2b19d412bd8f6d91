"""Rows of a page: pieces of text on one baseline, with what their fonts tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from statistics import median

import msgspec

from pagemill.document.geometry import Box, union_box
from pagemill.document.page import Mark, Style, TextLine
from pagemill.document.spans import cut
from pagemill.parsing.lines import Row
from pagemill.parsing.typography.thresholds import TYPOGRAPHY

_BREAKS_ANYWHERE = ((0x2E80, 0xA4CF), (0xF900, 0xFB00), (0xFF00, 0xFFF0), (0xE00, 0xE80))
"""Scripts whose lines may end after any character."""


def _breaks(char: str) -> bool:
    return any(low <= ord(char) < high for low, high in _BREAKS_ANYWHERE)


@dataclass(eq=False)
class Piece:
    """A line of the text layer: text without a wide gap. Of right-to-left pages x runs from the right edge."""

    line: TextLine
    x1: float
    x2: float
    words: tuple[tuple[str, float, float], ...]
    """Text, start and end of each word, in reading order."""
    offset: int = 0
    """Where in the line's text its words begin, as far as a part of a line knows."""
    order: int = 0
    """Place in the order in which the page's lines were written."""
    cut: bool = False
    """It ends inside a word that the piece written next goes on with."""

    @cached_property
    def text(self) -> str:
        """Without white space at its ends."""
        return self.line.text.strip()

    @cached_property
    def size(self) -> float:
        """Font size in pixels."""
        return self.line.font_size or 0.8 * (self.line.box[3] - self.line.box[1])

    @cached_property
    def baseline(self) -> float:
        """Where its letters stand, as y; boxes reach below it by the same share of their font size."""
        return self.line.box[3] - 0.25 * self.size

    def part(self, start: int, end: int) -> Piece:
        """Some of its words."""
        words = self.words[start:end]
        offset = self.offset
        for text, _, _ in self.words[:start]:
            if (found := self.line.text.find(text, offset)) >= 0:
                offset = found + len(text)
        return Piece(
            self.line,
            words[0][1],
            max(word[2] for word in words),
            words,
            offset,
            self.order,
            self.cut and end >= len(self.words),
        )

    def share(self, mark: Mark) -> float:
        """Share of its characters with a mark."""
        if not self.line.spans:
            return 0.0
        marked = sum(span.end - span.start for span in self.line.spans if span.mark is mark)
        return marked / max(1, len(self.text))

    @cached_property
    def _coded(self) -> tuple[int, int]:
        """How many characters are of fixed pitch, and how many there are that fonts of fixed pitch have."""
        text = self.line.text
        spans = [text[span.start : span.end] for span in self.line.spans if span.mark is Mark.CODE]
        inked = "".join(text.split())
        common = len(inked) if text.isascii() else sum(char < "\u2e80" for char in inked)
        return len("".join("".join(spans).split())), common

    @property
    def may_be_code(self) -> bool:
        """Whether all of it is set in a font of fixed pitch, but for what such fonts lack."""
        marked, common = self._coded
        return marked >= 0.97 * common

    @cached_property
    def fixed(self) -> bool:
        """Whether all of it is set in a font of fixed pitch."""
        text = self.line.text
        marked, _ = self._coded
        if not marked or not self.may_be_code:
            return False
        # East Asian comments in code are set in another font. A line of prose with code in it has more of that.
        first = next((span for span in self.line.spans if span.mark is Mark.CODE), None)
        is_comment = first is not None and not text[: first.start].strip() and not text.lstrip()[:1].isalnum()
        return is_comment or text.isascii() or sum(char >= "\u2e80" for char in text) <= marked / 2

    @cached_property
    def bold(self) -> bool:
        """Whether all of it is bold."""
        return self.share(Mark.BOLD) > 0.9 if self.line.spans else self.line.bold


@dataclass(eq=False)
class PageRow:
    """Pieces on one baseline of a column, from the left; of right-to-left pages from the right."""

    pieces: list[Piece]
    bullet: str = ""
    """A bullet that is drawn as a shape before the text."""
    bullet_x: float = 0.0
    number: Piece | None = None
    """Of the paragraph that it begins, printed in the margin."""
    initial: Piece | None = None
    """The drop cap that its first word begins with."""
    panel: int | None = None
    """The shaded area of a block of code that it stands in."""
    above: PageRow | None = field(default=None, repr=False)
    """The row before it in its column."""
    joint: str | None = None
    """What takes the place of the hyphen at its end, where the words of the page tell."""
    word_goes_on: bool | None = None
    """Whether it ends inside a Korean word; None where that is not known."""
    parted: bool = False
    """A table or picture stands between it and the row above."""

    @cached_property
    def main(self) -> Piece:
        """The longest piece; of justified text with code in it, which has a size of its own, one without."""
        told = [piece for piece in self.pieces if not piece.fixed and any(map(str.isalpha, piece.text))]
        return max(told or self.pieces, key=lambda piece: len(piece.text))

    @cached_property
    def text(self) -> str:
        """All of it, with single spaces between the pieces."""
        return " ".join(piece.text for piece in self.pieces)

    @cached_property
    def box(self) -> Box:
        """In page pixels."""
        return union_box(piece.line.box for piece in self.pieces)

    @property
    def x1(self) -> float:
        """Where it starts."""
        return self.pieces[0].x1

    @cached_property
    def x2(self) -> float:
        """Where it ends."""
        return max(piece.x2 for piece in self.pieces)

    @property
    def trailing_space(self) -> bool:
        """Whether a space is drawn at its end."""
        return self.pieces[-1].line.text.endswith(" ")

    @property
    def baseline(self) -> float:
        """Of its longest piece."""
        return self.main.baseline

    @property
    def size(self) -> float:
        """Font size of its longest piece in pixels."""
        return self.main.size

    @property
    def style(self) -> int | None:
        """Of its longest piece."""
        return self.main.line.style

    @cached_property
    def fixed(self) -> bool:
        """Whether all of it is set in a font of fixed pitch."""
        return all(piece.fixed for piece in self.pieces)

    @cached_property
    def foreign(self) -> bool:
        """Whether it has East Asian characters, which most fonts of fixed pitch lack: comments are in another font."""
        return max(self.text, default="") >= "\u2e80"

    @cached_property
    def mixed(self) -> bool:
        """Whether East Asian letters begin it or follow a word; in code they are in comments, strings or tables."""
        text = self.text
        if text.isascii():
            return False
        first = next((place for place, char in enumerate(text) if char >= "\u2e80"), len(text))
        letters = any(char.isascii() and char.isalpha() for char in text)
        follows = text[:first].rstrip()[-1:].isalnum() or not first
        return letters and follows and text[:1].isalnum() and first < len(text)

    @cached_property
    def bold(self) -> bool:
        """Whether all of it is bold, a marker before the text aside."""
        told = [piece for piece in self.pieces if len(piece.text) > 3] or self.pieces
        return all(piece.bold for piece in told)

    @property
    def tag(self) -> str:
        """Standard type of its structure element."""
        return self.main.line.tag

    @property
    def pitch(self) -> float:
        """Distance to the baseline above; infinite for the first row of a column."""
        return self.baseline - self.above.baseline if self.above is not None else float("inf")

    @cached_property
    def words(self) -> tuple[tuple[str, float, float], ...]:
        """Text, start and end of each word."""
        return tuple(word for piece in self.pieces for word in piece.words)

    def first_chunk(self) -> float:
        """Width of what would have to fit at the end of the row above: the first word, or character."""
        return first_chunk(self.words[0]) if self.words else self.x2 - self.x1

    def as_row(self) -> Row:
        """The row as the rest of page assembly knows it, behind its number and its drop cap."""
        before = [piece for piece in (self.number, self.initial) if piece is not None]
        text = self.text if self.initial is None else self.initial.line.text + self.text
        return Row(
            lines=[piece.line for piece in (*before, *self.pieces)],
            text=text if self.number is None else f"{self.number.text} {text}",
            box=self.box,
            size=self.size,
            bold=self.bold,
            joint=self.joint,
            trailing_space=self.trailing_space,
            word_goes_on=self.word_goes_on,
        )


def first_chunk(word: tuple[str, float, float]) -> float:
    """Width of the least part of a word, with its start and end, that a line takes up: a character, or all of it."""
    text, start, end = word
    if text.isascii():
        return end - start
    kept = next((place for place, char in enumerate(text) if _breaks(char)), len(text))
    return (end - start) * max(1, kept) / max(1, len(text))


def same_size(a: float, b: float) -> bool:
    """Whether two font sizes are one."""
    return abs(a - b) <= TYPOGRAPHY.same_size * max(a, b)


def pieces_of(lines: Iterable[TextLine], width: float, *, right_to_left: bool, written: bool = True) -> list[Piece]:
    """Lines as pieces, seen in a mirror on right-to-left pages.

    Args:
        lines: In the order in which they were written, or are read.
        width: Of the page.
        right_to_left: Whether it is read so.
        written: Whether that a line follows another tells that it was written on from it.
    """
    pieces = []
    for order, line in zip(count(0, 1 if written else 2), lines, strict=False):
        words = line.words or ()
        placed = [(word.text, *_along(word.box, width, right_to_left)) for word in words if word.text.strip()]
        start, end = _along(line.box, width, right_to_left)
        pieces.append(Piece(line, start, end, tuple(placed) or ((line.text.strip(), start, end),), order=order))
    return pieces


def cut_piece(piece: Piece, at: int, width: float, *, right_to_left: bool) -> list[Piece]:
    """A piece as two, the second of which begins with one of its words; the one piece where words tell no boxes."""
    line = piece.line
    words = [word for word in line.words if word.text.strip()]
    start = 0
    for word in words[:at]:
        start = line.text.find(word.text, start) + len(word.text)
    lines = []
    for own, first, end in ((words[:at], 0, start), (words[at:], start, len(line.text))):
        if not own or start < at:
            return [piece]
        first += len(line.text[first:end]) - len(line.text[first:end].lstrip())
        box = union_box(word.box for word in own)
        spans = cut(line.spans, first, end)
        # Their sizes may differ by far; the height of a box of words is about one.
        size = line.font_size and min(max(line.font_size, 0.9 * (box[3] - box[1])), 1.1 * (box[3] - box[1]))
        text = line.text[first:end]
        lines.append(msgspec.structs.replace(line, text=text, box=box, words=tuple(own), spans=spans, font_size=size))
    return [replace(part, order=piece.order) for part in pieces_of(lines, width, right_to_left=right_to_left)]


def _along(box: Box, width: float, mirrored: bool) -> tuple[float, float]:
    return (width - box[2], width - box[0]) if mirrored else (box[0], box[2])


def rows_of_pieces(pieces: Iterable[Piece]) -> list[PageRow]:
    """Pieces in rows from top to bottom."""
    groups: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda piece: (piece.baseline, piece.x1)):
        for group in reversed(groups[-3:]):
            near = min(piece.size, group[0].size)
            if (
                abs(piece.baseline - group[0].baseline) <= TYPOGRAPHY.same_baseline * near
                and not any(min(piece.x2, other.x2) - max(piece.x1, other.x1) > 0.3 * near for other in group)
                and not any(_are_apart(other, piece) for other in group)
            ):
                group.append(piece)
                break
        else:
            groups.append([piece])
    rows = [PageRow(sorted(group, key=lambda piece: piece.x1)) for group in groups]
    rows.sort(key=lambda row: row.baseline)
    for above, row in zip([None, *rows], rows, strict=False):
        row.above = above
    return rows


def _are_apart(one: Piece, other: Piece) -> bool:
    """Whether two pieces on one baseline are of different texts: the title of an invoice right of its sender."""
    larger = max(one.size, other.size)
    if larger <= TYPOGRAPHY.other_size * min(one.size, other.size):
        return False
    gap = max(one.x1, other.x1) - min(one.x2, other.x2)
    # Not the number of a line, nor an amount behind its label.
    return gap > TYPOGRAPHY.other_gap * larger and all(any(map(str.isalpha, piece.text)) for piece in (one, other))


Leading = dict[tuple[float, bool], float]
"""Distance between the rows of a paragraph in pixels, by font size and whether it is of fixed pitch."""


def leading_of(rows: Sequence[PageRow]) -> Leading:
    """The leading of a column: the smallest distance that occurs often enough, for each font size.

    Rows closer to each other than their font size overlap and tell nothing.
    """
    pitches: dict[tuple[float, bool], Counter[float]] = {}
    right = max((row.x2 for row in rows), default=0.0)
    for row in rows:
        above = row.above
        if above is None or abs(row.size - above.size) > TYPOGRAPHY.scaled * row.size or row.fixed != above.fixed:
            continue
        ratio = row.pitch / row.size
        # Where the next word had room, a wide gap is that of paragraphs; code is not wrapped.
        spaced = ratio > TYPOGRAPHY.widest_leading and right - above.x2 > row.first_chunk() + row.size
        if 0.85 < ratio < 2.6 and (row.fixed or not spaced):
            pitches.setdefault((round(row.size, 1), row.fixed), Counter())[round(ratio, 2)] += 1
    result: Leading = {}
    for (size, fixed), counts in pitches.items():
        total = sum(counts.values())
        for ratio in sorted(counts):
            near = sum(count for other, count in counts.items() if 0 <= other - ratio <= 0.06)
            wide = ratio > TYPOGRAPHY.widest_leading  # between blocks of code, or of two paragraphs
            least = 3 if wide and fixed else 2 if wide or total > 3 else 1
            if near >= max(least, TYPOGRAPHY.leading * total):
                result[size, fixed] = (ratio + 0.03) * size
                break
    return result


def leading_at(leading: Leading, row: PageRow) -> float:
    """The leading at a row: of its font size, else of those that are known."""
    if (known := leading.get((round(row.size, 1), row.fixed))) is not None:
        return known
    near = [pitch / size for (size, _), pitch in leading.items() if size]
    return row.size * (median(near) if near else 1.33)


def spaced_of(rows: Sequence[PageRow], leading: Leading, right: float) -> dict[int, float]:
    """Distances between rows that are set with more space than others in their font size, by ``id`` of the row.

    Double-spaced text beside other text, or in a font that is itself set wide: most of its rows are full.

    Args:
        rows: Of a column.
        leading: Of that column.
        right: Its edge.
    """
    apart: list[tuple[float, PageRow, PageRow]] = []
    for row in rows:
        above = row.above
        if above is None or row.fixed or not same_size(above.size, row.size):
            continue
        if TYPOGRAPHY.looser * leading_at(leading, row) < row.pitch < TYPOGRAPHY.double * row.size:
            apart.append((row.pitch / row.size, above, row))
    found: dict[int, float] = {}
    for ratio in {round(ratio, 2) for ratio, _, _ in apart}:
        near = [(above, row) for other, above, row in apart if abs(other - ratio) <= 0.03]
        full = [(above, row) for above, row in near if right - above.x2 <= row.first_chunk() + row.size]
        if len(full) >= max(TYPOGRAPHY.column_rows, TYPOGRAPHY.full_spaced * len(near)):
            found |= {id(each): row.pitch for above, row in full for each in (above, row)}
    return found


def begins(row: PageRow, leading: Leading, right: float) -> bool:
    """Whether a row is the first one of a paragraph: by its distance, or as its first word had room above.

    Args:
        row: Of a column.
        leading: Of that column.
        right: Its edge.
    """
    if row.above is None or row.pitch > TYPOGRAPHY.looser * leading_at(leading, row):
        return True
    return right - row.above.x2 > row.first_chunk() + row.size


def body_of(pieces: Sequence[Piece], styles: Sequence[Style]) -> tuple[float, int | None, bool]:
    """Font size in pixels, style and weight of running text: what most characters of the page have that are no code."""
    prose = [piece for piece in pieces if not piece.fixed]
    ratios = sorted(
        piece.size / styles[piece.line.style].size
        for piece in pieces
        if piece.line.style is not None and piece.line.style < len(styles) and styles[piece.line.style].size
    )
    if not prose:
        return 0.0, None, False
    told = [place for place, style in enumerate(styles) if not style.fixed_pitch]
    if told and ratios:
        code = sum(style.characters for style in styles if style.fixed_pitch)
        # What is bold or slanted and less than code is headings between it.
        plain = [
            place
            for place in told
            if not (styles[place].bold or styles[place].italic) or styles[place].characters > code
        ]
        sizes: Counter[float] = Counter()
        for place in told:
            sizes[styles[place].size] += styles[place].characters
        size, _ = sizes.most_common(1)[0]
        body = next((place for place in plain if styles[place].size == size), None)
        return size * ratios[len(ratios) // 2], body, body is not None and styles[body].bold
    characters: Counter[float] = Counter()
    for piece in prose:
        characters[round(piece.size, 1)] += len(piece.text)
    bold = sum(len(piece.text) for piece in prose if piece.bold)
    return characters.most_common(1)[0][0], prose[0].line.style, 2 * bold > characters.total()


def give_body_size(pieces: Iterable[Piece], body: float) -> None:
    """Give lines of running text with much code in them its size: inline code is set smaller."""
    for piece in pieces:
        if piece.share(Mark.CODE) > 0.0 and not piece.fixed and 0.7 * body < piece.size < body:
            piece.size = body
            piece.__dict__.pop("baseline", None)  # measured by the size
