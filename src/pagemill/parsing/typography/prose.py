"""Rows of a column in paragraphs, headings, list items and code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from math import inf
from statistics import median

from pagemill.document.geometry import Box, split_when, union_box
from pagemill.document.page import Mark, Style
from pagemill.document.structure.headings import TEXT_TAGS
from pagemill.late import re
from pagemill.parsing.lines import join_rows
from pagemill.parsing.lists import BULLET, Marker, follows, marker, parsed_marker
from pagemill.parsing.typography.cells import LEADERS
from pagemill.parsing.typography.rows import Leading, PageRow, Piece, leading_at, same_size, spaced_of
from pagemill.parsing.typography.thresholds import TYPOGRAPHY

_DASHES = frozenset("-–—*+")
_TAG_HEADING = re.compile(r"H[1-6]?$|Title$")
_ENDS = re.compile(r"[.,;:。，、；：]\s*$")
_WORD = re.compile(r"[^\W\d_]{3}")
"""A formula in capitals has none."""
_PAGE_NUMBER = re.compile(r"\d{1,4}|[ivxlc]{1,6}")
_FEW_LEADERS = re.compile(r"[.·…]\s+\d{1,4}$")
_DOTS = re.compile(r"(?:[.·…]\s*){4,}")
"""A rule, or room for an answer: no text."""
_NUMBERED = re.compile(r"^(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S")


class Kind(Enum):
    """What rows are."""

    TEXT = "text"
    HEADING = "heading"
    ITEM = "item"
    CODE = "code"
    ENTRY = "entry"
    """Of a table of contents or an index."""


@dataclass(slots=True)
class Passage:
    """Rows that are one paragraph, heading, list item or block of code."""

    kind: Kind
    rows: list[PageRow]
    sign: str = ""
    """Marker of an item as printed."""
    start: Marker | None = None
    """The same, parsed."""
    marker_x: float = 0.0
    text_x: float = 0.0
    """Where the text of an item starts."""
    depth: int = 0
    """Of an item from 0; of anything else the number of items that it is inside of."""
    gap: float = 0.0
    """Distance to the baseline above, in distances of a paragraph's rows."""
    gap_below: float = 0.0

    @property
    def box(self) -> Box:
        """In page pixels."""
        return union_box(row.box for row in self.rows)

    @property
    def text(self) -> str:
        """Rows joined; of an item without its marker."""
        return join_rows([row.as_row() for row in self.rows])

    @property
    def size(self) -> float:
        """Font size in pixels."""
        return median(row.size for row in self.rows)


@dataclass(slots=True)
class Column:
    """What the rows of a column are measured by."""

    rows: Sequence[PageRow]
    leading: Leading
    body: float
    """Font size of running text in pixels."""
    body_style: int | None
    body_bold: bool
    styles: Sequence[Style]
    """Of the page."""
    page_middle: float
    """In pixels."""
    left: float = field(init=False)
    right: float = field(init=False)
    text_edges: frozenset[int] = field(init=False)
    """Where rows start that go on with the row above them, to two pixels."""
    code_looks: frozenset[tuple[float, bool]] = field(init=False)
    """Font sizes and weights of code, whose rows so are no headings."""
    has_foreign_code: bool = field(init=False)
    """Whether rows of code have letters of another font."""
    spaced: Mapping[int, float] = field(init=False)
    """Distance between rows that are set with more space than others in their font size, by ``id`` of the row."""
    narrow: Mapping[int, float] = field(init=False)
    """Where rows of narrower paragraphs end, such as quotations, by ``id`` of the row."""
    entry_end: float | None = field(init=False)
    """Where the page numbers of entries end; None in a column without such."""
    has_tagged_headings: bool = field(init=False)
    """Whether the file's tags name a heading here: where none does, its author made headings of bold paragraphs."""

    def __post_init__(self) -> None:
        self.has_tagged_headings = any(_TAG_HEADING.match(row.tag) for row in self.rows)
        starts = Counter(round(row.x1 / 2) * 2 for row in self.rows)
        self.left = min((x for x, _ in starts.most_common(3)), default=0.0)
        self.text_edges = frozenset(
            round(row.x1 / 2) * 2
            for row in self.rows
            if row.above is not None
            and not row.fixed
            and row.above.style == row.style
            and abs(row.x1 - row.above.x1) < 2
            and row.pitch < 1.9 * row.size
        )
        # Code is not wrapped, and may run into the margin.
        ends = sorted(row.x2 for row in self.rows if not row.fixed) or sorted(row.x2 for row in self.rows)
        self.right = ends[max(0, int(0.97 * len(ends)) - 1)] if len(ends) > 20 else (ends[-1] if ends else 0.0)
        self.has_foreign_code = any(row.fixed and row.foreign for row in self.rows)
        led = [row.x2 for row in self.rows if LEADERS.search(row.text)]
        self.entry_end = median(led) if len(led) > 1 else None
        run: list[PageRow] = []
        looks: set[tuple[float, bool]] = set()
        for row in self.rows:
            goes_on = run and row.above is run[-1] and row.pitch < TYPOGRAPHY.solid * row.size
            goes_on = goes_on and same_size(run[-1].size, row.size) and run[-1].bold == row.bold
            run = [*run, row] if row.fixed and goes_on else [row] if row.fixed else []
            if len(run) > TYPOGRAPHY.heading_code_rows:
                looks.add((row.size, row.bold))
        self.code_looks = frozenset(looks)
        self.spaced = spaced_of(self.rows, self.leading, self.right)
        self.narrow = self._narrow()

    def _narrow(self) -> dict[int, float]:
        """Where rows of narrower paragraphs end: of runs of rows that are full if the longest of them is."""
        ends: dict[int, float] = {}
        for run in split_when(self.rows, lambda above, row: not self._is_solid(above, row)):
            end = max(row.x2 for row in run)
            least = TYPOGRAPHY.column_width * run[0].size
            narrower = len(run) >= TYPOGRAPHY.column_rows and run[0].x1 + least < end < self.right - run[0].size
            # The rows of an address may be as long as each other, but none goes on inside a sentence.
            goes_on = any(row.text[0].isalpha() and not row.text[0].isupper() for row in run[1:])
            if narrower and goes_on and not any(_has_room(above, row, end) for above, row in pairwise(run)):
                ends |= {id(row): end for row in run}
        return ends

    def _is_solid(self, above: PageRow, row: PageRow) -> bool:
        """Whether a row is set as the one above it, right below it."""
        alike = same_size(above.size, row.size) and above.bold == row.bold and not row.fixed and not above.fixed
        close = row.above is above and row.pitch <= TYPOGRAPHY.looser * self.usual(row)
        return alike and close and abs(row.x1 - above.x1) < TYPOGRAPHY.aligned * row.size

    def is_coloured(self, row: PageRow) -> bool:
        """Whether a row has another colour than running text, and is no link."""
        if row.style is None or self.body_style is None or row.main.share(Mark.LINK) > 0:
            return False
        return self.colour(row) != self.styles[self.body_style].colour

    def colour(self, row: PageRow) -> int:
        """The colour of most of a row."""
        return 0 if row.style is None else self.styles[row.style].colour

    def is_emphatic(self, row: PageRow) -> bool:
        """Whether most of a row is bold or italic."""
        return row.style is not None and (self.styles[row.style].bold or self.styles[row.style].italic)

    def is_entry(self, row: PageRow) -> bool:
        """Whether a row ends an entry of a table of contents: by its leaders, or as others have their numbers there."""
        if self.entry_end is None:
            return False
        if LEADERS.search(row.text):
            return True
        near = TYPOGRAPHY.aligned * row.size
        apart = len(row.pieces) > 1 and row.pieces[-1].x1 - row.pieces[-2].x2 > TYPOGRAPHY.cell_gap * row.size
        number = (apart and _PAGE_NUMBER.fullmatch(row.pieces[-1].text)) or _FEW_LEADERS.search(row.text)
        return abs(row.x2 - self.entry_end) < near and bool(number)

    def contrasts(self, row: PageRow) -> bool:
        """Whether a row differs in weight or slant from running text that is bold."""
        if not self.body_bold or row.style is None or self.body_style is None or row.fixed:
            return False
        own, body = self.styles[row.style], self.styles[self.body_style]
        return (own.bold, own.italic) != (body.bold, body.italic)

    def usual(self, row: PageRow) -> float:
        """Distance between the rows of a paragraph in this font size."""
        return self.spaced.get(id(row)) or leading_at(self.leading, row)


def passages_of(rows: Sequence[PageRow], column: Column) -> list[Passage]:
    """Cut the rows of a column, from top to bottom, into passages."""
    rows = [row for row in _with_run_ins(rows, column) if row.fixed or not _DOTS.fullmatch(row.text)]
    passages: list[Passage] = []
    for place, row in enumerate(rows):
        after = rows[place + 1] if place + 1 < len(rows) else None
        last = passages[-1] if passages else None
        if last is not None and (row.parted or row.above is not last.rows[-1]):
            last = None
        coded = (row.fixed and _is_code(row, last, after, column)) or _is_comment(row, after, last, column)
        if row.panel is not None or (coded and not row.bullet):
            if last is not None and last.kind is Kind.CODE and _same_code(last, row, column):
                last.rows.append(row)
            else:
                passages.append(Passage(Kind.CODE, [row], gap=row.pitch / column.usual(row)))
            continue
        is_entry = column.is_entry(row)
        item = None if is_entry else _item(row, after, last, column, passages)
        if is_entry and last is not None and _wraps_entry(last, row, column):
            last.rows.append(row)
            last.kind = Kind.ENTRY
        elif is_entry:
            passages.append(Passage(Kind.ENTRY, [row], gap=row.pitch / column.usual(row)))
        elif item is not None:
            passages.append(item)
        elif (
            last is not None
            and row.number is None
            and last.kind not in (Kind.CODE, Kind.ENTRY)
            and (_wraps_entry(last, row, column) or _goes_on(last, row, after, column))
        ):
            last.rows.append(row)
        else:
            passages.append(Passage(Kind.TEXT, [row], gap=row.pitch / column.usual(row)))
    for above, below in pairwise(passages):
        above.gap_below = below.gap
    return passages


def _with_run_ins(rows: Sequence[PageRow], column: Column) -> list[PageRow]:
    """Rows with headings that run in parted from their text: bold, set off above, and an em quad before the text."""
    parted: list[PageRow] = []
    for place, row in enumerate(rows):
        set_off = row.pitch > TYPOGRAPHY.heading_gap * column.usual(row)
        at = _run_in(row) if set_off and not (row.bullet or row.number or marker(row.text)) else 0
        if at and not _ENDS.search(row.pieces[at - 1].text):
            parted.append(PageRow(row.pieces[:at], above=row.above, parted=row.parted))
            row = PageRow(row.pieces[at:], above=parted[-1], panel=row.panel, joint=row.joint)
            if place + 1 < len(rows):
                rows[place + 1].above = row
        parted.append(row)
    return parted


def _run_in(row: PageRow) -> int:
    """The number of pieces of a heading that runs in, its number among them; 0 where there is none."""
    low, high = TYPOGRAPHY.quad
    # A formula in it is not bold.
    plain = (at for at, p in enumerate(row.pieces) if p.share(Mark.BOLD) < 0.5 or not _is_bold_at(p, -1))
    at = next(plain, 0)
    return at if at and low < (row.pieces[at].x1 - row.pieces[at - 1].x2) / row.size < high else 0


def _wraps_entry(last: Passage, row: PageRow, column: Column) -> bool:
    """Whether a row goes on with an entry whose first row left the number no room: it hangs, close to it."""
    first, above = last.rows[0], last.rows[-1]
    close = same_size(above.size, row.size) and row.pitch <= TYPOGRAPHY.looser * column.usual(above)
    hangs = row.x1 > first.x1 + TYPOGRAPHY.indent[0] * row.size
    return column.entry_end is not None and last.kind in (Kind.TEXT, Kind.ITEM) and close and hangs


def _is_code(row: PageRow, last: Passage | None, after: PageRow | None, column: Column) -> bool:
    """Whether a row of fixed pitch is code: no heading, and not the rest of a paragraph that has code in it."""
    alone = after is None or not after.fixed or after.pitch > TYPOGRAPHY.looser * column.usual(row)
    # The last row of a block may be a string or a comment of another colour.
    solid = last is not None and last.kind is Kind.CODE and row.pitch < TYPOGRAPHY.looser * _code_pitch(last, column)
    heads = _heads(row, column) or (alone and column.is_coloured(row) and not solid)
    if heads and (last is None or last.kind is not Kind.CODE or row.style != last.rows[-1].style):
        return False
    if alone and row.mixed and not (last is not None and last.kind is Kind.CODE and _is_inside(last, row, column)):
        return False  # prose with code in it
    if last is None or last.kind is Kind.CODE:
        return True
    above = last.rows[-1]
    continues = row.pitch <= TYPOGRAPHY.looser * column.usual(above) and not above.fixed
    continues = continues and row.bold == above.bold
    return not (continues and any(piece.share(Mark.CODE) > 0 for piece in above.pieces) and above.x2 > 0.8 * row.x2)


def _is_comment(row: PageRow, after: PageRow | None, last: Passage | None, column: Column) -> bool:
    """Whether a row is a comment at rows of code, in another script or slanted, and as close to them."""
    slanted = row.main.share(Mark.ITALIC) > 0.9
    if last is None or last.kind is not Kind.CODE or not (row.foreign or slanted):
        return False
    if _heads(row, column) or row.bold > any(other.bold for other in last.rows):
        return False  # of a heading, which may be all that a page has but code
    usual = _code_pitch(last, column)
    inside = row.x1 > min(other.x1 for other in last.rows) - 0.5 * row.size
    if inside and row.pitch < 1.3 * usual and row.foreign and all(piece.may_be_code for piece in row.pieces):
        return True
    return (
        after is not None
        and after.fixed
        and row.pitch < (2.2 if row.foreign else 1.3) * usual
        and after.pitch < 1.2 * usual
        and inside
    )


def _is_inside(block: Passage, row: PageRow, column: Column) -> bool:
    """Whether a row is right below code, or indented in it."""
    indented = row.x1 > min(other.x1 for other in block.rows) + 0.8 * row.size
    return row.pitch <= 1.5 * _code_pitch(block, column) or (indented and _same_code(block, row, column))


def _code_pitch(block: Passage, column: Column) -> float:
    """Distance between the rows of a block of code."""
    return min([*(row.pitch for row in block.rows[1:] if row.pitch > 0), column.usual(block.rows[0])])


def _same_code(block: Passage, row: PageRow, column: Column) -> bool:
    """Whether a row belongs to the block of code above it: blank lines are as high as others, other gaps are not."""
    if row.panel is not None or block.rows[-1].panel is not None:
        return row.panel == block.rows[-1].panel
    mixed = row.foreign or block.rows[-1].foreign  # letters of other fonts are larger, and make rows higher
    if not mixed and not same_size(row.size, block.rows[-1].size):
        return False
    lines = row.pitch / _code_pitch(block, column)
    mixed = mixed or column.has_foreign_code  # also blank lines may be set in such a font
    whole = abs(lines - round(lines)) < TYPOGRAPHY.blank_line or (mixed and lines < TYPOGRAPHY.mixed_lines)
    return whole and lines <= TYPOGRAPHY.code_bridge


def _item(
    row: PageRow, after: PageRow | None, last: Passage | None, column: Column, passages: Sequence[Passage]
) -> Passage | None:
    """The list item that a row begins; None where it begins none."""
    if row.bullet:
        gap = row.pitch / column.usual(row)
        return Passage(Kind.ITEM, [row], row.bullet, Marker("•"), row.bullet_x, row.x1, gap=gap)
    sign, start = _marker(row)
    if not sign or sign.startswith("[") or not set(row.text) - {*sign, " "}:
        return None  # a row of stars
    text_x = _text_x(row, sign)
    item = Passage(Kind.ITEM, [row], sign, start, row.x1, text_x, gap=row.pitch / column.usual(row))
    tagged = row.tag in ("LI", "Lbl", "LBody", "L")
    if tagged and _heads_text(row, after, text_x, column):
        return None
    if tagged or (BULLET.match(row.text) and sign[0] not in _DASHES):
        return item
    set_off = after is not None and after.x1 < row.x1 - row.size and item.gap > TYPOGRAPHY.heading_gap
    if set_off and sign[0] not in _DASHES and _is_centred_alone(item, column):
        return None  # a heading above its text
    indented = row.x1 > column.left + 0.8 * row.size
    bold_item = indented and row.size < TYPOGRAPHY.larger * column.body  # with a paragraph or code below it
    heads = _heads(row, column) or (column.is_coloured(row) and column.is_emphatic(row))
    if ((heads and not bold_item) or _TAG_HEADING.match(row.tag)) and sign[0] not in _DASHES:
        return None
    followed = sign[0] not in _DASHES and _follower(row, start, column)
    if start.kind == "A." and start.value == 1 and not followed:
        return None  # an initial
    if last is not None and not followed and _wrapped(last, row, column):
        return None  # a line of running text that begins so by accident
    siblings = [
        other for other in passages[-40:] if other.kind is Kind.ITEM and abs(other.marker_x - row.x1) < 0.7 * row.size
    ]
    if any(follows(other.start, start) for other in siblings[-1:]):
        return item
    if sign.isdecimal():
        return item if followed else None
    hangs = after is not None and after.above is row and abs(after.x1 - text_x) < 0.4 * row.size and after.x1 > row.x1
    if sign[0] in _DASHES or start.value in (None, 1) or hangs or indented or siblings:
        return item
    return item if followed else None


def _heads_text(row: PageRow, after: PageRow | None, text_x: float, column: Column) -> bool:
    """Whether a numbered row that its file calls an item is a heading: bold, above text at the edge of its number."""
    if after is None or after.above is not row or column.has_tagged_headings or not _heads(row, column):
        return False
    is_outside = abs(after.x1 - row.x1) < 0.4 * row.size < text_x - after.x1
    return is_outside and not _heads(after, column) and not _marker(after)[0] and not after.bullet


def _marker(row: PageRow) -> tuple[str, Marker]:
    """What a row begins with, if it is an item: also a number without a sign behind it that stands apart."""
    if len(row.words) > 1:
        (first, _, end), (_, start, _) = row.words[:2]
        if first.isdecimal() and len(first) < 4 and start - end > TYPOGRAPHY.bare_number_gap * row.size:
            return first, Marker("1", int(first))
    sign = marker(row.text)
    return sign, parsed_marker(row.text) or Marker(sign)


def _follower(row: PageRow, start: Marker, column: Column) -> bool:
    """Whether a row below has the next number at the same edge."""
    seen = False
    for other in column.rows:
        if other is row:
            seen = True
        elif seen and abs(other.x1 - row.x1) < 0.7 * row.size and follows(start, _marker(other)[1]):
            return True
    return False


def _wrapped(last: Passage, row: PageRow, column: Column) -> bool:
    """Whether a row must go on with the paragraph above: that is full, close, and neither begins a list."""
    above = last.rows[-1]
    if not same_size(above.size, row.size) or row.pitch > TYPOGRAPHY.looser * column.usual(row):
        return False
    edges = [last.text_x if last.kind is Kind.ITEM else above.x1]
    if sign := marker(last.rows[0].text):
        edges.append(_text_x(last.rows[0], sign))  # of a reference
    if min(abs(row.x1 - edge) for edge in edges) > TYPOGRAPHY.aligned * row.size:
        return False
    return not _ended(above, row, column)


def _text_x(row: PageRow, sign: str) -> float:
    """Where the text behind a marker starts."""
    seen = ""
    for text, start, end in row.words:
        if len(seen) >= len(sign):
            return start
        seen += text
        if len(seen) > len(sign):  # the marker is glued to its text
            return start + (end - start) * len(sign) / max(1, len(text))
    return row.x2


def _ended(above: PageRow, row: PageRow, column: Column) -> bool:
    """Whether a row was ended on purpose: the first word of the next one had room beside it."""
    return _has_room(above, row, column.narrow.get(id(above), column.right))


def _has_room(above: PageRow, row: PageRow, right: float) -> bool:
    """Whether the first word of a row had room beside the row above it, whose column ends at ``right``."""
    goes_on = row.text[0].islower() and (above.text[-1].isalpha() or above.text[-1] == ",")
    fits = TYPOGRAPHY.word_fits + (TYPOGRAPHY.narrower if goes_on else 0.0)
    return right - above.x2 > row.first_chunk() + (0.25 + fits) * row.size


def _goes_on(last: Passage, row: PageRow, after: PageRow | None, column: Column) -> bool:
    """Whether a row belongs to the paragraph or item above it."""
    above = last.rows[-1]
    if above.initial is not None:
        return True  # a drop cap is as high as two rows
    if LEADERS.search(above.text):
        return False  # entries of a table of contents or menu
    if _is_parted(above) and not _is_parted(row):
        return False  # a title or name, and its date at the other edge
    inline = row.fixed and not above.fixed and 0.7 * above.size < row.size  # a row of nothing but inline code
    if not (inline or same_size(above.size, row.size) or same_size(last.size, row.size)):
        return False
    usual = column.usual(above)
    if row.pitch > TYPOGRAPHY.looser * usual:
        return False
    bold_goes_on = _is_bold_at(above.pieces[-1], -1) and _is_bold_at(row.pieces[0], 0)
    ended = _ended(above, row, column)
    parts = above.bold != row.bold or (_heads(above, column) != _heads(row, column) and above.style != row.style)
    if parts and (ended or not above.bold) and not bold_goes_on:
        return False  # bold ends in the middle of a sentence where a row is full
    centred = _centred(above, row, column) and (len(last.rows) < 2 or _centred(last.rows[-2], above, column))
    if ended and not centred and not _justified_pair(last, column):
        return False
    em = row.size
    near = TYPOGRAPHY.aligned * em
    signs = marker(row.text)[:1], marker(last.rows[0].text)[:1]
    if signs == ("[", "[") and abs(row.x1 - last.rows[0].x1) < near:
        return False  # the next reference
    if last.kind is Kind.ITEM:
        if len(last.rows) == 1:
            return abs(row.x1 - last.text_x) < 1.2 * em or last.marker_x - near < row.x1 < last.text_x + near
        return abs(row.x1 - above.x1) < near
    if abs(row.x1 - above.x1) < near or centred:
        return True
    first = len(last.rows) == 1
    low, high = TYPOGRAPHY.indent
    outdent, indent = above.x1 - row.x1, row.x1 - above.x1
    runs_in = above.pitch < TYPOGRAPHY.same_baseline * em
    if first and low * em <= outdent and (runs_in or outdent <= high * em):
        return True  # the first row is indented, or begins behind its heading
    sign = marker(above.text)
    if first and sign and abs(row.x1 - _text_x(above, sign)) < near:
        return True  # the number of a reference hangs
    # All rows but the first hang, as in bibliographies.
    hangs = after is not None and abs(after.x1 - row.x1) < near and same_size(after.size, row.size)
    hangs = hangs and after is not None and after.pitch < 1.2 * usual
    hangs = hangs or (abs(above.x1 - column.left) < near and round(row.x1 / 2) * 2 in column.text_edges)
    is_next = after is None or (after.pitch > TYPOGRAPHY.looser * usual and abs(after.x1 - above.x1) < near)
    hangs = hangs or (is_next and last.gap > TYPOGRAPHY.looser)
    return first and low * em <= indent <= 2 * high * em and hangs


def _is_parted(row: PageRow) -> bool:
    return any(right.x1 - left.x2 > TYPOGRAPHY.parted_gap * row.size for left, right in pairwise(row.pieces))


def _is_bold_at(piece: Piece, place: int) -> bool:
    """Whether the first or last character of a piece is bold."""
    text = piece.line.text.rstrip()
    at = len(text) - 1 if place else 0
    return any(span.start <= at < span.end for span in piece.line.spans if span.mark is Mark.BOLD)


def _centred(above: PageRow, row: PageRow, column: Column) -> bool:
    middle = (above.x1 + above.x2) / 2
    near = abs(middle - (row.x1 + row.x2) / 2) < 0.6 * row.size
    inner = min(above.x1, row.x1) > column.left + row.size and max(above.x2, row.x2) < column.right - 0.5 * row.size
    return near and (inner or abs(above.x1 - row.x1) > row.size)


def _justified_pair(last: Passage, column: Column) -> bool:
    """Whether a paragraph ends its rows before the column's edge: a quotation that is narrower on both sides."""
    if len(last.rows) < 2:
        return False
    ends = [row.x2 for row in last.rows]
    return max(ends) - min(ends) < 0.3 * last.size and column.right - max(ends) > last.size


def _heads(row: PageRow, column: Column) -> bool:
    """Whether a row is set as headings are: larger than running text, or bold where that is not."""
    if not column.body:  # a page of nothing but code
        return False
    if row.fixed and any(same_size(row.size, size) and row.bold == bold for size, bold in column.code_looks):
        return False
    if row.size >= TYPOGRAPHY.larger * column.body:
        return True
    return row.bold and not column.body_bold and row.size >= TYPOGRAPHY.smallest_heading * column.body


def mark_headings(passages: Sequence[Passage], column: Column) -> None:
    """Make headings of the passages that are set as such and stand alone on their rows."""
    usual_gap = _usual_gap(passages)
    for place, passage in enumerate(passages):
        below = passages[place + 1] if place + 1 < len(passages) else None
        if passage.kind is Kind.TEXT and _is_heading(passage, below, column, usual_gap):
            passage.kind = Kind.HEADING
    edges = [
        passage.rows[0].x1
        for passage in passages
        if passage.kind is Kind.HEADING and not any(abs(passage.rows[0].x1 - edge) < 3 for edge in column.text_edges)
    ]
    alone = [
        passage.kind is Kind.TEXT
        and len(passage.rows) == 1
        and passage.gap > TYPOGRAPHY.heading_gap
        and column.is_coloured(passage.rows[0])
        for passage in passages
    ]
    colours = {
        column.colour(passage.rows[0])
        for passage, set_off in zip(passages, alone, strict=True)
        if passage.kind is Kind.HEADING
        or (set_off and column.is_emphatic(passage.rows[0]) and not _ENDS.search(passage.text))
    }
    for place, passage in enumerate(passages):
        coloured = alone[place] and column.colour(passage.rows[0]) in colours
        hangs = _hangs_out(passages, place, column) and any(abs(x - passage.rows[0].x1) < 2 for x in edges)
        if hangs or coloured:
            passage.kind = Kind.HEADING
        elif passage.kind is Kind.TEXT and passage.rows[0].fixed and column.is_coloured(passage.rows[0]):
            passage.kind = Kind.CODE
    run: list[Passage] = []
    for place, passage in enumerate(passages):
        is_row = passage.kind is Kind.HEADING and len(passage.rows) == 1
        solid = run and passage.gap <= TYPOGRAPHY.looser and passage.rows[0].style == run[-1].rows[0].style
        run = [*run, passage] if is_row and solid else [passage] if is_row else []
        below = passages[place + 1] if place + 1 < len(passages) else None
        ends = below is None or below.kind is not Kind.HEADING or below.gap > TYPOGRAPHY.looser
        if ends and len(run) >= TYPOGRAPHY.heading_run:
            for other in run:
                other.kind = Kind.TEXT  # an address, say, that is bold as a whole


def _hangs_out(passages: Sequence[Passage], place: int, column: Column) -> bool:
    """Whether a single row begins left of the text below it, and of that above but for headings, as in manual pages."""
    passage = passages[place]
    if passage.kind not in (Kind.TEXT, Kind.CODE) or len(passage.rows) > 1 or place + 1 == len(passages):
        return False
    x1, em = passage.rows[0].x1, passage.size
    above = passages[place - 1] if place else None
    inside = above is None or above.kind is Kind.HEADING or above.rows[0].x1 > x1 + em
    below = passages[place + 1]
    # Items are indented below any paragraph, but not all text; code is, too, and it is set smaller.
    indented = below.kind is Kind.TEXT or (below.kind is Kind.ITEM and min(column.text_edges, default=x1) > x1 + em)
    hangs = indented and min(row.x1 for row in below.rows) > x1 + em
    return inside and hangs and same_size(em, max(em, below.size))


def _usual_gap(passages: Sequence[Passage]) -> float:
    """Distance between paragraphs of running text, in distances of rows."""
    gaps = [
        below.gap
        for above, below in pairwise(passages)
        if above.kind is below.kind is Kind.TEXT and len(below.rows) > 1 and below.gap < 4
    ]
    return median(gaps) if gaps else 1.5


def _is_heading(passage: Passage, below: Passage | None, column: Column, usual_gap: float) -> bool:
    rows = passage.rows
    text = passage.text
    if len(rows) > TYPOGRAPHY.heading_rows or len(text) > TYPOGRAPHY.heading_characters:
        return False
    if not any(char.isalnum() for char in text) or not column.body:
        return False
    tags = {row.tag for row in rows}
    if all(_TAG_HEADING.match(tag) for tag in tags):
        return True
    if passage.size >= TYPOGRAPHY.larger * column.body:
        # A paragraph that opens an article is larger, too, but it is one.
        return len(rows) == 1 or len(text.split()) <= TYPOGRAPHY.opening_words or not _ENDS.search(text)
    apart = min(passage.gap, passage.gap_below or passage.gap) > TYPOGRAPHY.heading_gap and not _ENDS.search(text)
    if passage.size >= TYPOGRAPHY.slightly_larger * column.body and len(rows) == 1 and apart:
        return True
    capitals = text.isupper() and _WORD.search(text) and not column.has_tagged_headings
    if capitals and apart and _is_centred_alone(passage, column):
        return True
    heads_text = below is not None and below.rows[0].style == column.body_style
    contrasts = heads_text and all(column.contrasts(row) for row in rows)
    if not (contrasts or all(_heads(row, column) for row in rows)) or len(rows) > 2:
        return False
    if column.has_tagged_headings and tags <= TEXT_TAGS:
        return False
    if _ENDS.search(text) and not _NUMBERED.match(text):
        return False
    if _NUMBERED.match(text):
        return True
    stands_alone = passage.gap > TYPOGRAPHY.heading_gap or passage.gap == float("inf")
    set_off = passage.gap > 1.08 * usual_gap or passage.gap > passage.gap_below + 0.12 or below is None
    return stands_alone and (set_off or (rows[0].style != column.body_style and passage.gap_below <= usual_gap * 1.05))


def _is_centred_alone(passage: Passage, column: Column) -> bool:
    """Whether rows are centred in their column or, as no row may reach its right edge, on the page."""
    em, middle = passage.size, (column.left + column.right) / 2
    for row in passage.rows:
        off = min(abs((row.x1 + row.x2) / 2 - each) for each in (middle, column.page_middle))
        if off > 0.5 * em or row.x1 - column.left < TYPOGRAPHY.centred_inset * em:
            return False
    return True


def nest(passages: Sequence[Passage], column: Column) -> None:
    """Give items their depth, and paragraphs and code inside items theirs.

    An item is nested where its marker is indented against that of the open item; it closes the items whose markers
    are farther right. Text at the edge of an open item's text belongs to that item.
    """
    stack: list[Passage] = []
    for place, passage in enumerate(passages):
        em = passage.size
        if stack and passage.kind is Kind.TEXT and _is_centred_alone(passage, column):
            below = next((other for other in passages[place + 1 :] if other.kind is Kind.ITEM), None)
            if below is None or not any(follows(item.start, below.start) for item in stack):
                stack = []  # a headline; a formula may be between two items
        if passage.kind is Kind.HEADING:
            stack = []
        elif passage.kind is Kind.ITEM:
            while stack and passage.marker_x < stack[-1].marker_x + TYPOGRAPHY.nested * em:
                stack.pop()
            passage.depth = len(stack)
            stack.append(passage)
        else:
            edge = min(row.x1 for row in passage.rows)
            while stack and edge < stack[-1].text_x - TYPOGRAPHY.nested * em:
                stack.pop()
            if stack and stack[0].text_x < column.left + 0.3 * em and passage.gap > 1.2:
                stack = []  # markers hang in the margin: text at the column's edge is outside of the list
            passage.depth = len(stack)


def code_text(rows: Sequence[PageRow], right: float, *, is_known: bool) -> str:
    """Code row by row: indents and inner spaces by place, blank lines by distance.

    Args:
        rows: Of a block of code.
        right: Right edge at which long lines wrap.
        is_known: Whether that edge is certain, rather than the end of the longest line.
    """
    words = [word for row in rows for word in row.words if word[0]]
    widths = sorted((end - start) / len(text) for text, start, end in [w for w in words if w[0].isascii()] or words)
    pitch = widths[len(widths) // 2] if widths else 1.0
    words_of = [row.words for row in rows]
    behind = int(_are_numbered(rows))
    if behind:
        words_of = [words[1:] for words in words_of]
    left = min((start for words in words_of for _, start, _ in words), default=0.0)
    pitches = sorted(row.pitch for row in rows[1:] if row.pitch > 0.5 * row.size)
    usual = pitches[len(pitches) // 4] if pitches else 1.0
    lines: list[str] = []
    for place, row in enumerate(rows):
        if place:
            lines += [""] * max(0, min(3, round(row.pitch / usual) - 1))
        line, first, last = "", min((start for _, start, _ in words_of[place]), default=left), left
        # Words of both directions are as wide as all that they have parts in.
        mixed = any(min(a[2], b[2]) - max(a[1], b[1]) > 0.5 * pitch for a, b in pairwise(words_of[place]))
        if mixed:
            line = " " * max(round((first - left) / pitch), 0) + " ".join(p.text for p in row.pieces[behind:])
        for number, (word, start, end) in enumerate(() if mixed else words_of[place]):
            # Words that run against the direction of the page step backwards.
            against = number > 0 and end <= first
            apart = first - end if against else start - last
            near = number > 0 and 0.1 * pitch < apart <= 0.25 * pitch
            parted = near and f"{words_of[place][number - 1][0]}{word}" not in row.text
            gap = 1 if line and (apart > (0.1 if parted else 0.25) * pitch or not (row.fixed or row.foreign)) else 0
            begin = start
            for following in range(number + 1, len(words_of[place])):
                _, other, stop = words_of[place][following]
                if stop > begin:
                    break
                begin = other
            spaces = apart / pitch if against else ((begin if number else first) - left) / pitch - len(line)
            line += " " * max(round(spaces), gap) + word
            first, last = start, end
        sign = rows[place - 1].text[-1:] if place else ""
        if sign == "\u2010":  # hyphenated by the producer: nobody types this sign
            lines[-1] = lines[-1][:-1] + line
        elif (
            place
            and not rows[place - 1].trailing_space
            and _is_wrapped(
                words_of[place - 1], words_of[place], left, right if is_known or sign == "-" else inf, pitch
            )
        ):
            lines[-1] += line
        else:
            lines.append(line)
    return "\n".join(lines)


_PlacedWords = Sequence[tuple[str, float, float]]


def _is_wrapped(above: _PlacedWords, below: _PlacedWords, left: float, right: float, pitch: float) -> bool:
    """Whether a line of code goes on in the next one without a space.

    It had no room for all of a word that it begins with, or broke at a hyphen.
    """
    if not above or not below or abs(below[0][1] - left) > 0.5 * pitch:
        return False
    word, start, end = above[-1]
    is_word = any(map(str.isalnum, word))  # not a line of signs
    if is_word and len(above) == 1 and abs(start - left) < 0.5 * pitch and right - end < pitch:
        return True
    rest = below[0][0]
    chunk = rest.find("-") + 1 or len(rest)
    return len(word) > 1 and word[-1] == "-" and word[-2].isalnum() and right - end < chunk * pitch


def _are_numbered(rows: Sequence[PageRow]) -> bool:
    """Whether rows of code begin with their numbers, in a style of their own: columns of data have that of the rest."""
    heads = [row.pieces[0] for row in rows]
    numbers = [int(head.text) if head.text.isdecimal() and len(head.text) < 6 else -1 for head in heads]
    if len(rows) < TYPOGRAPHY.margin_numbers or numbers != [*range(numbers[0], numbers[0] + len(rows))]:
        return False
    rest = [piece for row in rows for piece in row.pieces[1:]]
    styles = {head.line.style for head in heads}
    return numbers[0] >= 0 and bool(rest) and styles.isdisjoint(piece.line.style for piece in rest)
