"""A born-digital page in blocks, by what its PDF says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from statistics import median

from msgspec import structs

from pagemill.document.direction import is_right_to_left, is_set_from_left
from pagemill.document.geometry import Box, area, intersection, union_box
from pagemill.document.labels import FIGURES, Label
from pagemill.document.page import ANNOTATION, Furniture, Mark, TextLine
from pagemill.imaging.page import TextLayer
from pagemill.late import re
from pagemill.parsing.blocks import Block
from pagemill.parsing.korean import korean_words, mark_broken_words
from pagemill.parsing.lines import direction, is_own_word, words_of
from pagemill.parsing.lists import BULLET
from pagemill.parsing.thresholds import PARSING
from pagemill.parsing.typography.cells import LEADERS, FoundTable, aligned_tables, cells_of
from pagemill.parsing.typography.columns import flows_of
from pagemill.parsing.typography.cut_words import mark_cut_words
from pagemill.parsing.typography.drawn import drawn_rules
from pagemill.parsing.typography.prose import Column, Kind, Passage, code_text, mark_headings, nest, passages_of
from pagemill.parsing.typography.rows import (
    PageRow,
    Piece,
    begins,
    body_of,
    cut_piece,
    give_body_size,
    leading_at,
    leading_of,
    pieces_of,
    rows_of_pieces,
    spaced_of,
)
from pagemill.parsing.typography.ruled import open_tables, ruled_tables, without
from pagemill.parsing.typography.thresholds import TYPOGRAPHY
from pagemill.parsing.typography.turned import turned_tables
from pagemill.parsing.typography.turned_heads import are_of_tables, levelled_heads, restore_turned

SOURCE = "typography"
"""``Region.source`` of what was found by fonts and places."""
_ROMAN = re.compile("(?=[ivxlcdm])m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
"""In small letters, as on the pages before the first chapter: a lone capital may be an answer or initials."""
_NUMBER_WORDS, _NUMBER_CHARACTERS = 5, 30
"""Most of a page number with what goes with it: «Page 3 of 12»."""


def typographic_blocks(
    layer: TextLayer,
    lines: Sequence[TextLine],
    shown: Sequence[Block],
    size: tuple[int, int],
    page_number: int | None,
    rows: Sequence[TextLine] = (),
    *,
    written: bool = True,
    with_heads: bool = True,
) -> list[Block] | None:
    """The blocks of a page in reading order; None where its text alone does not tell its structure.

    Args:
        layer: Of the page.
        lines: Its lines, cleaned, on the upright page.
        shown: Pictures and formulas, which take their places among the text. Text in a picture is its lettering.
        size: Width and height of the page in pixels.
        page_number: From 1, where it is known.
        rows: Lines of tables among what is shown, whose size is that of text, too.
        written: Whether the lines are in the order in which they were written; else in that in which they are read.
        with_heads: Whether turned lines may be heads of columns.
    """
    width, height = size
    turned = [line for line in lines if abs(direction(line)) >= 1]
    heads = levelled_heads(turned, [line for line in lines if abs(direction(line)) < 1]) if with_heads else {}
    stand_ins = {id(line): stand_in for stand_in, line in heads.values()}
    level = [stand_ins.get(id(line), line) for line in lines if abs(direction(line)) < 1 or id(line) in stand_ins]
    tables, turned = turned_tables(layer, [line for line in turned if id(line) not in stand_ins], size, SOURCE)
    characters = sum(len(line.text) for line in lines)
    if sum(len(line.text) for line in turned) > TYPOGRAPHY.most_turned * max(characters, 1):
        return None
    if any(line.engine == ANNOTATION for line in lines):
        return None  # fields of forms have rules of their own
    told = [line for line in level if any(map(str.isalpha, line.text))]
    mirrored = is_right_to_left("".join(line.text for line in level)) and not is_set_from_left(
        [(line.box[0], line.box[2]) for line in told],
        TYPOGRAPHY.aligned * median(line.font_size or line.box[3] - line.box[1] for line in told),
    )
    artifacts = sum(len(line.text) for line in level if line.artifact)
    believed = artifacts < 0.5 * characters
    furniture = [line for line in level if line.artifact and believed]
    # Text on a background is that of the page.
    pictures = [b for b in shown if b.label in FIGURES and area(b.box) <= PARSING.background * width * height]
    lettering = [_picture_of(line, pictures) for line in level]
    body = [
        line
        for line, picture in zip(level, lettering, strict=True)
        if picture is None and not (line.artifact and believed)
    ]
    pieces = pieces_of(body, width, right_to_left=mirrored, written=written)
    if mirrored and pieces:
        pieces = _with_code_from_left(pieces, width)
    for place, block in enumerate(pictures):
        block.inner_lines = tuple(line for line, picture in zip(level, lettering, strict=True) if picture == place)
    page = _Page(layer, pieces, width, height, mirrored=mirrored, page_number=page_number, rows=rows)
    blocks = page.blocks([*shown, *tables])
    if not are_of_tables(blocks, heads):
        return typographic_blocks(layer, lines, shown, size, page_number, rows, written=written, with_heads=False)
    restore_turned(blocks, heads)
    blocks += [_turned_block(line, body) for line in turned]
    return _with_furniture(blocks, furniture, height, width, mirrored)


def _with_code_from_left(pieces: list[Piece], width: float) -> list[Piece]:
    """Pieces of a page read from the right, those of code that stands at the left as on a page read from there."""
    left, _, right, _ = union_box(piece.line.box for piece in pieces)
    own: set[int] = set()
    for fixed, group in groupby(rows_of_pieces(pieces), lambda row: row.fixed):
        code = list(group)
        x1, y1, x2, y2 = union_box(row.box for row in code)
        near = TYPOGRAPHY.code_inset * code[0].size
        if fixed and x1 - left < near < right - x2:
            of = {id(piece) for row in code for piece in row.pieces}
            beside = any(p.line.box[1] < y2 and y1 < p.line.box[3] for p in pieces if id(p) not in of)
            own |= set() if beside else of
    return [
        replace(pieces_of([piece.line], width, right_to_left=False)[0], order=piece.order)
        if id(piece) in own
        else piece
        for piece in pieces
    ]


def is_sentence(text: str) -> bool:
    """Whether a line has so many words that it is no lettering of a picture."""
    return len(text.split()) >= TYPOGRAPHY.sentence_words


def _picture_of(line: TextLine, pictures: Sequence[Block]) -> int | None:
    """The picture that holds most of a line which may be its lettering: text over a photograph is none."""
    for place, picture in enumerate(pictures):
        if is_sentence(line.text):
            break
        if intersection(line.box, picture.box) > 0.7 * area(line.box):
            return place
    return None


def _turned_block(line: TextLine, body: Sequence[TextLine]) -> Block:
    """Text that runs across the page: in the margin it is marginal."""
    x1, _, x2, _ = union_box(other.box for other in body) if body else line.box
    outside = line.box[2] < x1 + 1 or line.box[0] > x2 - 1
    piece = Piece(line, line.box[0], line.box[2], ())
    label = Label.ASIDE_TEXT if outside else Label.VERTICAL_TEXT
    block = Block(line.box, label, [PageRow([piece]).as_row()], SOURCE)
    block.text = line.text.strip()
    block.furniture = Furniture.LIKELY if outside else None  # it may be a title on the spine
    return block


def _with_furniture(
    blocks: list[Block], lines: Sequence[TextLine], height: int, width: int, mirrored: bool
) -> list[Block]:
    """Blocks with those of what the producer marks as furniture, before and after the body."""
    heads: list[Block] = []
    feet: list[Block] = []
    for row in rows_of_pieces(pieces_of(lines, width, right_to_left=mirrored)):
        is_head = row.box[1] + row.box[3] < height
        block = _block([row], Label.HEADER if is_head else Label.FOOTER)
        block.furniture = Furniture.PROVEN
        (heads if is_head else feet).append(block)
    return [*heads, *blocks, *feet]


def _block(rows: Sequence[PageRow], label: Label, text: str | None = None) -> Block:
    block = Block(union_box(row.box for row in rows), label, [row.as_row() for row in rows], SOURCE)
    block.text = " ".join(row.text for row in rows) if text is None else text
    return block


class _Page:
    """A page on the way to its blocks."""

    def __init__(
        self,
        layer: TextLayer,
        pieces: list[Piece],
        width: int,
        height: int,
        *,
        mirrored: bool,
        page_number: int | None,
        rows: Sequence[TextLine] = (),
    ) -> None:
        self._layer, self._pieces = layer, pieces
        self._width, self._height, self._mirrored = width, height, mirrored
        self._number = page_number
        self._numbers: list[Piece] = []
        self._initials: list[tuple[Piece, list[Piece]]] = []
        self._words = words_of(piece.text for piece in pieces)
        self._korean = korean_words(piece.text for piece in pieces)
        others = pieces_of(rows, width, right_to_left=mirrored)
        self._body, self._body_style, self._body_bold = body_of([*pieces, *others], layer.styles)
        give_body_size(pieces, self._body)
        mark_cut_words(pieces, self._words, self._korean)
        self._drawn = drawn_rules(layer.strokes, (box for box, _ in layer.fills), width, mirrored=mirrored)
        least = 6 * (self._body or 10.0)
        self._panels = [box for box, _ in layer.fills if box[2] - box[0] > least and box[3] - box[1] > least / 6]
        self._panels = _stacked(self._panels)
        self._panels.sort(key=area, reverse=True)  # of nested ones the innermost is noted last
        self._shapes = [box for box in (*layer.drawings, *(box for box, _ in layer.fills)) if self._is_bullet(box)]

    def blocks(self, shown: Sequence[Block]) -> list[Block]:
        """All blocks: of the level text, its tables among them, and what is shown."""
        tables = ruled_tables(self._pieces, self._drawn, self._body or 10.0)
        tables += open_tables(without(self._pieces, tables), self._drawn, self._body or 10.0)
        free = without(self._pieces, tables)
        fixed = [*shown, *map(_table_block, tables)]
        heads, feet, free = self._furniture(free, [block.box for block in fixed])
        free, self._initials = drop_caps(free, self._body)
        free, numbers, of_paragraphs = margin_numbers(free, self._width, mirrored=self._mirrored)
        self._numbers = numbers if of_paragraphs else []
        kept = [_stand_in(block, self._width, self._mirrored) for block in fixed]
        stand_ins = {id(piece): block for piece, block in zip(kept, fixed, strict=True)}
        found: list[Block] = []
        for flow in flows_of([*free, *kept]):
            own = [stand_ins[id(piece)] for piece in flow if id(piece) in stand_ins]
            rows = rows_of_pieces(piece for piece in flow if id(piece) not in stand_ins)
            own_pieces = set(map(id, flow))
            widen(rows, [piece for piece in (*free, *kept) if id(piece) not in own_pieces])
            found += self._flow(rows, own)
        found += [_block([PageRow([initial])], Label.TEXT) for initial, _ in self._initials]  # those of no row
        if of_paragraphs:
            return [*heads, *found, *(_block([PageRow([piece])], Label.ASIDE_TEXT) for piece in self._numbers), *feet]
        lines = [_block(rows_of_pieces(numbers), Label.ASIDE_TEXT)] if numbers else []
        for block in lines:
            block.furniture = Furniture.PROVEN
        return [*heads, *found, *lines, *feet]

    def _flow(self, rows: Sequence[PageRow], fixed: Sequence[Block]) -> list[Block]:
        """The blocks of a column; what is fixed parts the rows above it from those below."""
        for row in rows:
            self._give_bullet(row)
            self._give_number(row)
            self._give_initial(row)
        self._give_panels(rows)
        for row in rows:
            above = row.above
            if above is not None:
                above.joint = self._words.joint(above.text, row.text)
            if above is not None and any(above.baseline < block.box[3] - 1 <= row.baseline for block in fixed):
                row.parted = True
        leading = leading_of(rows)
        column = Column(
            rows, leading, self._body, self._body_style, self._body_bold, self._layer.styles, self._width / 2
        )
        units: list[tuple[float, Block | list[PageRow]]] = [(block.box[1], block) for block in fixed]
        start = 0
        is_wide = (
            rows and max(row.x2 for row in rows) - min(row.x1 for row in rows) > TYPOGRAPHY.column_width * self._body
        )
        tables = aligned_tables(rows, self._drawn, leading) if is_wide else []  # narrow justified notes have wide gaps
        for first, end, table in [*tables, (len(rows), len(rows), None)]:
            for row in rows[start:first]:
                if row.parted or row is rows[start] or not isinstance(units[-1][1], list):
                    units.append((row.box[1], []))
                own = units[-1][1]
                assert isinstance(own, list)
                own.append(row)
            if table is not None:
                self._take_back(rows[first:end])
                units.append((table.box[1], _table_block(table)))
            start = end
        blocks: list[Block] = []
        passages: list[Passage] = []
        for _, unit in sorted(units, key=lambda unit: unit[0]):
            if isinstance(unit, Block):
                blocks += self._prose(passages, column)
                passages = []
                blocks.append(unit)
            else:
                passages += passages_of(unit, column)
        return blocks + self._prose(passages, column)

    def _prose(self, passages: list[Passage], column: Column) -> list[Block]:
        mark_headings(passages, column)
        nest(passages, column)
        mark_broken_words([passage.rows for passage in passages if passage.kind is not Kind.CODE], self._korean)
        blocks = [self._passage_block(passage, column) for passage in passages]
        return _lists_joined(self._contents(self._notes(blocks)))

    def _code_end(self, rows: Sequence[PageRow], column: Column) -> tuple[float, bool]:
        """Where lines of code would be wrapped, at the edge of their panel or column, and whether other lines tell."""
        left = min(row.x1 for row in rows)
        if rows[0].panel is not None:
            x1, _, x2, _ = self._panels[rows[0].panel]
            if self._mirrored:
                x1, x2 = self._width - x2, self._width - x1
            # A panel narrower than the text around it is as wide as its longest line.
            outside = max((row.x2 for row in column.rows if row.panel is None), default=float("inf"))
            return x1 + x2 - left, x2 > outside - rows[0].size
        ends = [row.x2 for row in column.rows]
        right = max(ends)
        full = sum(end > right - rows[0].size for end in ends)
        return right, full >= TYPOGRAPHY.column_rows

    def _passage_block(self, passage: Passage, column: Column) -> Block:
        if passage.kind is Kind.CODE:
            self._take_back(passage.rows)
            right, is_known = self._code_end(passage.rows, column)
            block = _block(passage.rows, Label.ALGORITHM, code_text(passage.rows, right, is_known=is_known))
        elif passage.kind is Kind.HEADING:
            block = _block(passage.rows, Label.PARAGRAPH_TITLE, passage.text)
        elif passage.kind is Kind.ITEM:
            text = f"{passage.sign} {passage.text}" if passage.rows[0].bullet else passage.text
            if passage.sign.isdecimal():
                text = f"{passage.sign}.{text.removeprefix(passage.sign)}"
            block = _block(passage.rows, Label.TEXT, "  " * passage.depth + text)
            block.is_list = True
        else:
            label = Label.CONTENT if passage.kind is Kind.ENTRY else Label.TEXT
            block = _block(passage.rows, label, passage.text)
        block.list_depth = passage.depth if passage.kind is not Kind.ITEM else 0
        return block

    def _contents(self, blocks: list[Block]) -> list[Block]:
        """Rows of a table of contents, with leaders and page numbers, as one block of lines."""
        result: list[Block] = []
        for block in blocks:
            led = block.label is Label.TEXT and not block.is_list and block.rows and LEADERS.search(block.plain)
            if led or block.label is Label.CONTENT:
                block.label = Label.CONTENT
                block.text = re.sub(r"(?:\s*[.·…]){4,}\s*", " … ", block.text).rstrip()
                if result and result[-1].label is Label.CONTENT:
                    text = f"{result[-1].text}\n{block.text}"
                    result[-1].append(block)
                    result[-1].text = text
                    continue
            result.append(block)
        return result

    def _notes(self, blocks: list[Block]) -> list[Block]:
        """Label what is set smaller at the foot of the page, below a short rule or behind a raised mark."""
        for block in reversed(blocks):
            if block.label is not Label.TEXT or block.is_list or not block.rows or not self._body:
                break
            if block.size > TYPOGRAPHY.note_size * self._body or block.box[1] < self._height / 2:
                break
            first = block.rows[0].lines[0]
            raised = max(
                (span.end for span in first.spans if span.mark is Mark.SUPERSCRIPT and not span.start), default=0
            )
            ruled = any(
                0 < block.box[1] - rule.position < 3 * block.size and rule.length < 0.6 * self._width
                for rule in self._drawn.horizontal
            )
            if raised or ruled or re.match(r"[\d*†‡§]", block.text):
                block.label = Label.FOOTNOTE
                if 0 < raised < len(block.text) and block.text.startswith(first.text[:raised]):
                    block.text = f"{block.text[:raised]} {block.text[raised:].lstrip()}"
            else:
                break
        return blocks

    def _is_bullet(self, box: Box) -> bool:
        low, high = TYPOGRAPHY.bullet_size
        body = self._body or 1.0
        width, height = box[2] - box[0], box[3] - box[1]
        return low * body < width < high * body and low * body < height < high * body and 0.6 < width / height < 1.7

    def _give_bullet(self, row: PageRow) -> None:
        """Note a bullet that is drawn as a shape before a row."""
        start = row.x1
        for x1, y1, x2, y2 in self._shapes:
            left, right = (self._width - x2, self._width - x1) if self._mirrored else (x1, x2)
            middle = (y1 + y2) / 2
            level = row.baseline - 0.85 * row.size < middle < row.baseline + 0.05 * row.size
            if level and 0 < start - right < TYPOGRAPHY.bullet_gap * row.size:
                row.bullet, row.bullet_x = "•", left
                return

    def _give_panels(self, rows: Sequence[PageRow]) -> None:
        """Note the shaded areas that hold code: most of their rows are of fixed pitch; inline code has narrow ones."""
        for number, (x1, y1, x2, y2) in enumerate(self._panels):
            left, right = (self._width - x2, self._width - x1) if self._mirrored else (x1, x2)
            inside = [
                row
                for row in rows
                if y1 <= row.baseline - 0.3 * row.size <= y2
                and left - 1 <= row.x1
                and row.x2 <= right + max(1.0, 0.5 * row.size)
            ]
            fixed = sum(row.fixed for row in inside)
            if not inside or 2 * fixed <= len(inside):
                continue
            tall = y2 - y1 > 2.2 * inside[0].size
            if tall or right - max(row.x2 for row in inside) > 2 * inside[0].size:
                for row in inside:
                    row.panel = number

    def _give_number(self, row: PageRow) -> None:
        """Give a row that begins a paragraph the number beside it in the margin."""
        for piece in self._numbers:
            if _is_beside(piece, row) and (row.above is None or row.pitch > 1.1 * row.size):
                row.number = piece
                self._numbers.remove(piece)
                return

    def _give_initial(self, row: PageRow) -> None:
        """Give a row the initial that begins its first word."""
        for found in self._initials:
            if found[1][0] is row.pieces[0]:
                row.initial = found[0]
                self._initials.remove(found)
                return

    def _take_back(self, rows: Iterable[PageRow]) -> None:
        """Take number and initial from rows of tables and code, which are written without."""
        for row in rows:
            if row.number is not None:
                self._numbers.append(row.number)
            if row.initial is not None:
                self._initials.append((row.initial, row.pieces))
            row.number = row.initial = None

    def _furniture(self, pieces: Sequence[Piece], fixed: Sequence[Box]) -> tuple[list[Block], list[Block], list[Piece]]:
        """Rows at the edges of the page, set off from the body, that may be running heads, feet or page numbers."""
        rows = rows_of_pieces(pieces)
        heads: list[Block] = []
        feet: list[Block] = []
        taken: set[int] = set()
        leading = leading_of(rows)
        spaced = spaced_of(rows, leading, max((row.x2 for row in rows), default=0.0))
        for edge, blocks, ordered in ((0, heads, rows), (1, feet, rows[::-1])):
            for place, row in enumerate(ordered[:3]):
                inner = ordered[place + 1] if place + 1 < len(ordered) else None
                number = self._is_page_number(row.text)
                outer = row.box[3] if edge == 0 else self._height - row.box[1]
                lone = row.text == str(self._number)
                inside = outer < (TYPOGRAPHY.number_margin if lone and edge == 1 else TYPOGRAPHY.margin) * self._height
                if not inside or (inner is None and not fixed) or len(row.text) > 150:
                    break
                if self._body and inner is not None and row.fixed and inner.fixed and not number:
                    break  # code around a blank line
                if not number and BULLET.match(row.text) and row.text[-1:].isalnum():
                    break  # the first or last item of a list
                # A caption is close to its table, which is no row.
                gaps = [max(box[1] - row.box[3] if edge == 0 else row.box[1] - box[3], 0.0) for box in fixed]
                gap = min(gaps, default=float("inf")) + row.size
                usual = 1.3 * row.size
                if inner is not None:
                    gap = min(gap, abs(inner.baseline - row.baseline))
                    usual = spaced.get(id(inner)) or leading_at(leading, inner)
                least = TYPOGRAPHY.number_gap if number else TYPOGRAPHY.furniture_gap
                apart = gap > least * max(usual, 1.2 * row.size) or outer < TYPOGRAPHY.edge * self._height
                small = row.size <= 1.02 * self._body and not (row.bold and not self._body_bold)
                foot = edge == 1 and outer < TYPOGRAPHY.foot * self._height  # where no title is
                if not apart or not (lone or small or foot):
                    break
                proven = number and self._is_proven_number(row.text)
                label = Label.NUMBER if proven else Label.HEADER if edge == 0 else Label.FOOTER
                block = _block([row], label)
                block.furniture = Furniture.PROVEN if proven else Furniture.LIKELY
                blocks.append(block)
                taken.update(id(piece) for piece in row.pieces)
        return heads, feet[::-1], [piece for piece in pieces if id(piece) not in taken]

    def _is_proven_number(self, text: str) -> bool:
        """Whether a page number is one without a look at other pages: no letters but those of «Page 3 of 12»."""
        # Digits are cut off at nine, as Python refuses to parse thousands of them.
        words = [part for part in re.findall(r"[^\W\d_]+", text) if not _ROMAN.fullmatch(part)]
        numbers = [int(part) for part in re.findall(r"\d{1,9}", text)]
        of_all = len(numbers) == 2 and numbers[0] == self._number and numbers[0] <= numbers[1]
        return not words or (of_all and len(words) <= 2)

    def _is_page_number(self, text: str) -> bool:
        """Whether a text may be the number of this page with a few words; without a known one, a number alone."""
        parts = re.findall(r"\w+", text)
        numbers = [part for part in parts if part.isdecimal() or _ROMAN.fullmatch(part)]
        if not numbers or len(parts) > _NUMBER_WORDS or len(text) > _NUMBER_CHARACTERS:
            return False
        return len(parts) == 1 or str(self._number) in numbers


def _stacked(boxes: Sequence[Box]) -> list[Box]:
    """Boxes that touch below each other, with the same sides, as one: some producers shade code row by row."""
    joined: list[Box] = []
    for box in sorted(boxes, key=lambda box: (round(box[0]), round(box[2]), box[1])):
        last = joined[-1] if joined else None
        if last is not None and abs(last[0] - box[0]) < 2 and abs(last[2] - box[2]) < 2 and box[1] <= last[3] + 2:
            joined[-1] = (last[0], last[1], last[2], max(last[3], box[3]))
        else:
            joined.append(box)
    return joined


def widen(rows: Sequence[PageRow], others: Sequence[Piece]) -> None:
    """Have the rows of a column that make room for what reaches into it start and end where its other rows do."""
    left = min((row.pieces[0].x1 for row in rows), default=0.0)
    right = max((row.pieces[-1].x2 for row in rows), default=0.0)
    before: dict[int, Piece] = {}
    after: dict[int, Piece] = {}
    # Rows beside a picture are short although their text goes on: as they are, each would end a paragraph.
    for other in (other for other in others if other.x1 < right and left < other.x2):
        _, top, _, bottom = other.line.box
        for row in (row for row in rows if top < row.box[3] and row.box[1] < bottom):
            if row.pieces[-1].x2 <= other.x1:
                before[id(row.pieces[-1])] = row.pieces[-1]
            elif row.pieces[0].x1 >= other.x2:
                after[id(row.pieces[0])] = row.pieces[0]
    end = max((piece.x2 for piece in before.values()), default=right)
    start = min((piece.x1 for piece in after.values()), default=left)
    for piece in before.values():
        piece.x2 += right - end
    for piece in after.values():
        piece.x1 -= start - left


def drop_caps(pieces: list[Piece], body: float) -> tuple[list[Piece], list[tuple[Piece, list[Piece]]]]:
    """Part the initials as high as several rows from the text, each with the first pieces of the rows beside it.

    These are moved to where the initial starts, which the rows below them do.
    """
    found: list[tuple[Piece, list[Piece]]] = []
    parted: set[int] = set()
    for initial in pieces:
        if (
            not 0 < len(initial.text) <= 2  # with a quotation mark
            or not initial.text[-1].isalpha()
            or initial.size < TYPOGRAPHY.drop_cap * body
        ):
            continue
        right = [
            piece
            for piece in pieces
            if piece is not initial
            and piece.size < 0.7 * initial.size
            and initial.x1 - 1 <= piece.x1 < initial.x2 + 1.2 * piece.size
        ]
        # Initials that float in a web page end a little above the baseline of their last row; those whose font comes in
        # a few sizes only are smaller than their rows, and begin below the first of them.
        beside = [
            piece
            for piece in right
            if initial.line.box[1] < piece.baseline <= initial.baseline + 0.5 * piece.size
            or (initial.x2 - 0.3 * piece.size < piece.x1 and abs(initial.line.box[1] - piece.baseline) < piece.size)
        ]
        beside.sort(key=lambda piece: piece.baseline)
        if len(beside) > 1 and _ends_word(beside[0].text):
            # Where a space is set behind it, the first row begins farther right than those below.
            apart = beside[0].x1 - min(piece.x1 for piece in beside[1:]) > TYPOGRAPHY.column_gap * beside[0].size
            is_word = apart or is_own_word(initial.text, beside[0].text, (piece.text for piece in pieces))
            for piece in beside:
                piece.x1 = initial.x1
            links = tuple(span for span in initial.line.spans if span.mark is Mark.LINK)  # its weight is no emphasis
            line = structs.replace(initial.line, text=initial.text + " " * is_word, spans=links)
            found.append((replace(initial, line=line), beside))
            parted.add(id(initial))
    return [piece for piece in pieces if id(piece) not in parted], found


def _ends_word(text: str) -> bool:
    """Whether a text may begin with the rest of a word; names beside a letter of an index begin with a capital."""
    return text[0].isalpha() and not (text[0].isupper() and text[1:2].islower())


def margin_numbers(pieces: list[Piece], width: int, *, mirrored: bool) -> tuple[list[Piece], list[Piece], bool]:
    """Part the ascending numbers of paragraphs or lines in a margin from the text.

    Returns:
        The text, the numbers, and whether these are of paragraphs: most stand beside the first row of one.
    """
    parts: list[Piece] = []
    for piece in pieces:  # small numbers are glued to large text
        glued = False
        if piece.line.words and len(piece.words) > 1:
            (first, _, end), (_, start, _) = piece.words[:2]
            glued = _is_number(first) and start - end > _height(piece.line.words[0].box)
        parts += cut_piece(piece, 1, width, right_to_left=mirrored) if glued else [piece]
    digits = [piece for piece in parts if _is_number(piece.text)]
    for outer in (min, max):
        if len(digits) < TYPOGRAPHY.margin_numbers:
            break
        edge = outer(digits, key=lambda piece: piece.x1)
        own = [piece for piece in digits if piece.x1 < edge.x2 and edge.x1 < piece.x2]
        chosen = set(map(id, own))
        text = [piece for piece in parts if id(piece) not in chosen]
        values = [int(piece.text) for piece in sorted(own, key=lambda piece: piece.baseline)]
        steps = Counter(below - above for above, below in pairwise(values))
        usual = max(steps, key=lambda step: (steps[step], -step), default=0)
        if len(own) < TYPOGRAPHY.margin_numbers or usual < 1 or steps[usual] < TYPOGRAPHY.even_steps * steps.total():
            continue
        x1, x2 = min(piece.x1 for piece in own), max(piece.x2 for piece in own)
        if len(own) < 3 * sum(piece.x1 < x2 and x1 < piece.x2 for piece in text):
            continue  # what stands in the margin is more than numbers
        rows = rows_of_pieces(text)
        leading, right = leading_of(rows), max((row.x2 for row in rows), default=0.0)
        beside = [row for row in rows if any(_is_beside(piece, row) for piece in own)]
        if 3 * sum(len(cells_of(row)) > 1 for row in beside) > len(beside):
            continue  # a table counts its rows
        of_paragraphs = 3 * sum(begins(row, leading, right) for row in beside) > 2 * len(beside)
        if not of_paragraphs and not _go_on(beside):
            continue  # rows of a table or list: their numbers are not those of lines
        if not of_paragraphs or 2 * len(rows) > 3 * len(own):
            return text, own, of_paragraphs
    return pieces, [], False


def _go_on(rows: Sequence[PageRow]) -> bool:
    """Whether most rows are those of sentences that go on from one to the next."""
    long = [row for row in rows if is_sentence(row.text)]
    going = [row for row in long if not (row.text[0].isupper() or row.text[0].isdecimal())]
    return 2 * len(long) > len(rows) and 2 * len(going) > len(long)


def _height(box: Box) -> float:
    return box[3] - box[1]


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 5


def _is_beside(number: Piece, row: PageRow) -> bool:
    return abs(number.baseline - row.baseline) < 0.5 * row.size


def _stand_in(block: Block, width: int, mirrored: bool) -> Piece:
    """A piece of text in place of a table or picture, where columns are looked for."""
    x1, y1, x2, y2 = block.box
    start, end = (width - x2, width - x1) if mirrored else (x1, x2)
    return Piece(TextLine(text="", box=block.box, font_size=max(1.0, (y2 - y1) / 20)), start, end, ())


def _table_block(table: FoundTable) -> Block:
    block = Block(table.box, Label.TABLE, [], SOURCE)
    block.table = replace(table.table, line_indices=())
    block.inner_lines = tuple(piece.line for piece in table.pieces)
    block.text = table.table.to_html()
    return block


def _lists_joined(blocks: list[Block]) -> list[Block]:
    """Items that follow each other as one block, a line an item."""
    result: list[Block] = []
    for block in blocks:
        last = result[-1] if result else None
        if last is not None and last.is_list and block.is_list and last.list_depth == block.list_depth:
            text = f"{last.text}\n{block.text}"
            last.append(block)
            last.text = text
        else:
            result.append(block)
    return result
