"""Display formulas of a text layer, found by their symbols and written as LaTeX.

A layout model sees that there is a formula, or does not; a text layer tells it glyph by glyph. Lines without words that
hold signs of mathematics are put together with what stands above, below and beside them, and are a display formula
where no words stand on the same line. What is found here replaces what the layout model says about the same place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from pagemill.document.direction import runs_leftwards
from pagemill.document.geometry import Box, area, components, intersection, union_box
from pagemill.document.labels import FIGURES, Label
from pagemill.document.page import TextLine
from pagemill.document.symbols import Symbol
from pagemill.formulas.compose import latex_of_symbols
from pagemill.formulas.signs import BIG, FUNCTIONS, INTEGRALS, RELATIONS
from pagemill.imaging.page import TextLayer
from pagemill.late import re
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.thresholds import PARSING

SOURCE = "symbols"
"""``DetectedRegion.source`` of the formulas found here, and of their numbers."""

_NUMBER = re.compile(r"^[(\[]\s*[A-Z]?\.?\d{1,3}(?:[.\-–]\d{1,3}){0,2}[a-z′']?\s*[)\]]$")
_WORD = re.compile(r"[^\W\d_]{3,}|[\u0590-\u08ff\u0e00-\u0e7f\u3040-\u30ff\u3131-\ud7a3\u4e00-\u9fff]+")
_CAMEL = re.compile(r"[a-z][A-Z]")
_MEANS = RELATIONS | BIG | INTEGRALS | frozenset("+−±√⎛⎡⎧⎷")
_LEAST_SYMBOLS = 3
_SENTENCE = 12
"""Letters in a row that are no name of a function, but words of a script without spaces. Not measured."""


class Zone(msgspec.Struct, eq=False):
    """A display formula."""

    symbols: list[Symbol]
    rules: list[Box]
    lines: list[TextLine]
    number: TextLine | None = None
    latex: str | None = None

    @property
    def box(self) -> Box:
        """Box of its ink."""
        return union_box([*(symbol.box for symbol in self.symbols), *self.rules])

    @property
    def size(self) -> float:
        """Size of its largest letters."""
        return _size(self.symbols)


class _Element(msgspec.Struct, eq=False):
    """A line without words, a sign that is of no line, or a rule."""

    box: Box
    symbols: list[Symbol]
    line: TextLine | None = None
    size: float = 0.0

    def __post_init__(self) -> None:
        self.size = _size(self.symbols) if self.symbols else 0.0

    @property
    def is_rule(self) -> bool:
        return not self.symbols


def _size(symbols: Sequence[Symbol]) -> float:
    return max([symbol.size for symbol in symbols if symbol.text.isalnum()] or [symbol.size for symbol in symbols])


def find_zones(layer: TextLayer, lines: Sequence[TextLine]) -> list[Zone]:
    """The display formulas of a page, with their LaTeX where it can be written.

    Args:
        layer: With its symbols; none, or too many, make no formulas.
        lines: Of the page, from this layer.
    """
    if not layer.symbols or len(layer.symbols) > PARSING.max_symbols:
        return []
    owned, free = symbols_of_lines(layer.symbols, lines)
    prose: list[TextLine] = []
    numbers: list[TextLine] = []
    elements: list[_Element] = []
    for line, own in sorted(zip(lines, owned, strict=True), key=lambda each: each[0].box[1]):
        if not own:
            continue
        if _NUMBER.match(line.text.strip()):
            numbers.append(line)
        elif _is_prose(line, own) or _ends_paragraph(line, prose):
            prose.append(line)
        else:
            elements.append(_Element(union_box(symbol.box for symbol in own), own, line))
    elements += [_Element(symbol.box, [symbol]) for symbol in free]
    elements += [_Element(rule, []) for rule in layer.rules]
    if len(elements) > PARSING.max_formula_elements:
        return []
    zones = _zones(elements)
    for zone in zones:
        _take_words(zone, prose, owned, lines, inside=True)
    zones = [zone for zone in zones if not _stands_among(zone, prose)]
    for zone in zones:
        _take_words(zone, prose, owned, lines, inside=False)
        zone.number = _number_of(zone, numbers, prose)
        x1, y1, x2, y2 = zone.box
        for line, own in zip(lines, owned, strict=True):
            x, y = (line.box[0] + line.box[2]) / 2, (line.box[1] + line.box[3]) / 2
            if not own and x1 <= x <= x2 and y1 <= y <= y2:
                zone.lines.append(line)
    for zone in zones:
        zone.latex = latex_of_symbols(zone.symbols, zone.rules)
    return zones


def _zones(elements: Sequence[_Element]) -> list[Zone]:
    """Elements put together to what may be formulas."""
    pairs = [(i, j) for i, a in enumerate(elements) for j, b in enumerate(elements[:i]) if _belong(a, b)]
    zones = []
    for members in components(len(elements), pairs):
        group = [elements[i] for i in members]
        symbols = [symbol for element in group for symbol in element.symbols]
        zone = Zone(symbols, [e.box for e in group if e.is_rule], [e.line for e in group if e.line is not None])
        if is_formula(symbols, zone.rules):
            zones.append(zone)
    return zones


def symbols_of_lines(symbols: Sequence[Symbol], lines: Sequence[TextLine]) -> tuple[list[list[Symbol]], list[Symbol]]:
    """The symbols of each line, and those of no line."""
    owned: list[list[Symbol]] = [[] for _ in lines]
    free: list[Symbol] = []
    order = sorted(range(len(lines)), key=lambda i: lines[i].box[1])
    tallest = max((line.box[3] - line.box[1] for line in lines), default=0.0)
    tops = [lines[i].box[1] for i in order]
    for symbol in symbols:
        x, y = (symbol.box[0] + symbol.box[2]) / 2, (symbol.box[1] + symbol.box[3]) / 2
        best, least = -1, float("inf")
        for place in range(bisect_left(tops, y - tallest - 2), bisect_left(tops, y + 2)):
            left, top, right, bottom = lines[order[place]].box
            if left - 2 <= x <= right + 2 and top - 1 <= y <= bottom + 1:
                off = abs(y - (top + bottom) / 2)
                if off < least:
                    best, least = order[place], off
        (owned[best] if best >= 0 else free).append(symbol)
    return owned, free


def _ends_paragraph(line: TextLine, prose: Sequence[TextLine]) -> bool:
    """Whether a line goes on from words right above it: a display formula is set off, and stands in the middle."""
    size = line.font_size or line.box[3] - line.box[1]
    for above in prose:
        close = -0.3 * size < line.box[1] - above.box[3] < PARSING.formula_set_off * size
        aligned = abs(line.box[0] - above.box[0]) < size or abs(line.box[2] - above.box[2]) < size
        wider = above.box[2] - above.box[0] > line.box[2] - line.box[0]
        if close and aligned and wider:
            return True
    return False


def _is_prose(line: TextLine, symbols: Sequence[Symbol]) -> bool:
    """Whether a line is made of words; right-to-left letters name no variables."""
    if any(map(runs_leftwards, line.text)):
        return True
    words = [word for word in _WORD.findall(line.text) if _is_word(word)]
    if not words:
        return False
    letters = sum(symbol.text.isalpha() and not symbol.math for symbol in symbols)
    share = PARSING.formula_prose
    if len(words) == 1 and len(words[0]) < _SENTENCE and any(symbol.text in RELATIONS for symbol in symbols):
        share = PARSING.formula_prose_relation  # a function with a name
    return min(letters, sum(map(len, words))) >= share * len(symbols)


def _is_word(word: str) -> bool:
    """Whether letters are a word and not variables set side by side, or a function and its variable."""
    if any("\u0370" <= char <= "\u03ff" or char > "\uffff" for char in word) or _CAMEL.search(word):
        return False
    return not any(name in word and len(word) - len(name) < 3 for name in FUNCTIONS if len(name) > 2)


def is_formula(symbols: Sequence[Symbol], rules: Sequence[Box]) -> bool:
    """Whether symbols say something that only a formula says."""
    if len(symbols) < _LEAST_SYMBOLS or any(runs_leftwards(symbol.text[0]) for symbol in symbols):
        return False
    means = sum(symbol.text in _MEANS for symbol in symbols)
    operands = sum(symbol.text.isalnum() for symbol in symbols)
    by_font = any(symbol.math for symbol in symbols) or any(not symbol.text.isascii() for symbol in symbols)
    return operands > 1 and (means > 0 or bool(rules)) and (by_font or means > 0)


def _belong(a: _Element, b: _Element) -> bool:
    """Whether two elements are parts of one formula."""
    if a.is_rule and b.is_rule:
        return False
    em = max(a.size, b.size)
    x = max(a.box[0] - b.box[2], b.box[0] - a.box[2])
    y = max(a.box[1] - b.box[3], b.box[1] - a.box[3])
    if a.is_rule or b.is_rule:
        rule, other = (a, b) if a.is_rule else (b, a)
        within = rule.box[0] - 0.5 * em < (other.box[0] + other.box[2]) / 2 < rule.box[2] + 0.5 * em
        beside = y < 0 and x < 0.6 * em
        over_part = rule.box[0] > other.box[0] - 0.3 * em and rule.box[2] < other.box[2] + 0.3 * em
        return beside or (x < 0 and y < PARSING.formula_bar_gap * em and (within or over_part))
    if y < 0:
        low = min(a.box[3] - a.box[1], b.box[3] - b.box[1])
        return x < (PARSING.formula_gap if -y > 0.3 * low else 0.5) * em
    rise = PARSING.formula_rise
    if _may_have_limits(a, b) or _may_have_limits(b, a):
        rise = PARSING.formula_limit_gap
    if any(symbol.text in "⏜⏟⏞" for symbol in (*a.symbols, *b.symbols)):
        rise = PARSING.formula_bar_gap
    return x < 0 and y < rise * em


def _may_have_limits(a: _Element, b: _Element) -> bool:
    """Whether there is an operator in ``a`` over or under which ``b`` stands in smaller type."""
    small = max(symbol.size for symbol in b.symbols)
    return any(
        symbol.text in BIG | INTEGRALS
        and small < 0.9 * symbol.size
        and min(symbol.box[2], b.box[2]) > max(symbol.box[0], b.box[0])
        for symbol in a.symbols
    )


def _stands_among(zone: Zone, prose: Sequence[TextLine]) -> bool:
    """Whether words stand right beside a formula: then it is part of their line."""
    x1, y1, x2, y2 = zone.box
    apart = PARSING.formula_apart * zone.size
    for line in prose:
        left, top, right, bottom = line.box
        level = min(y2, bottom) - max(y1, top) > 0.4 * min(y2 - y1, bottom - top)
        if level and max(left - x2, x1 - right) < apart:
            return True
    return False


def _take_words(
    zone: Zone,
    prose: list[TextLine],
    owned: Sequence[Sequence[Symbol]],
    lines: Sequence[TextLine],
    *,
    inside: bool,
) -> None:
    """Give a formula the few words that stand on its line: "for all"; ``inside`` its frame those alone: "otherwise"."""
    x1, y1, x2, y2 = zone.box
    size = zone.size
    for line in list(prose):
        left, top, right, bottom = line.box
        short = len(line.text.split()) <= PARSING.formula_aside_words
        if not short or max(left - x2, x1 - right) >= PARSING.formula_gap * size or top > y2 or bottom < y1:
            continue
        foot = bottom - 0.25 * (bottom - top)
        level = any(abs(symbol.baseline - foot) < 0.25 * size for symbol in zone.symbols)
        if inside:  # a line of its own in a frame of several
            level = left >= x1 and right <= x2 + size and top >= y1 - 1 and bottom <= y2 + 0.3 * size
            level &= y2 - y1 > 2 * (bottom - top)
        if level:
            index = next(i for i, other in enumerate(lines) if other is line)
            zone.symbols.extend(owned[index])
            zone.lines.append(line)
            prose.remove(line)


def _number_of(zone: Zone, numbers: Sequence[TextLine], prose: Sequence[TextLine]) -> TextLine | None:
    """The number of a formula: the nearest on its line, with no words between them."""
    x1, y1, x2, y2 = zone.box
    found: TextLine | None = None
    nearest = float("inf")
    for line in numbers:
        left, top, right, bottom = line.box
        gap = max(left - x2, x1 - right)
        if not y1 - 2 < (top + bottom) / 2 < y2 + 2 or not 0 < gap < nearest:
            continue
        span = (x2, left) if left > x2 else (right, x1)
        if not any(p.box[1] < (top + bottom) / 2 < p.box[3] and span[0] < p.box[0] < span[1] for p in prose):
            found, nearest = line, gap
    return found


def with_zones(regions: Sequence[DetectedRegion], zones: Sequence[Zone]) -> tuple[list[DetectedRegion], dict[int, str]]:
    """Regions with the formulas of the symbols in place of what they cover, and the LaTeX of formulas by index.

    A formula inside a table or picture that holds other things as well stays part of it.
    """
    kept: list[Zone] = []
    gone: set[int] = set()
    for zone in zones:
        if zone.latex is None:
            continue
        covered = {i for i, region in enumerate(regions) if _covers(zone, region)}
        if zone.number is not None:
            number = zone.number.box
            covered |= {i for i, r in enumerate(regions) if intersection(number, r.box) > 0.6 * area(r.box)}
        if any(intersection(zone.box, region.box) > 0.5 * area(zone.box) and i not in covered
               for i, region in enumerate(regions) if region.label in FIGURES | {Label.TABLE}):  # fmt: skip
            continue
        gone |= covered
        kept.append(zone)
    result = [region for i, region in enumerate(regions) if i not in gone]
    latex: dict[int, str] = {}
    for zone in kept:
        assert zone.latex is not None
        box = union_box([zone.box, *(line.box for line in zone.lines)])
        latex[len(result)] = zone.latex
        result.append(DetectedRegion(box=box, label=Label.DISPLAY_FORMULA, score=None, source=SOURCE))
        if zone.number is not None:
            result.append(DetectedRegion(box=zone.number.box, label=Label.FORMULA_NUMBER, score=None, source=SOURCE))
    return result, latex


def _covers(zone: Zone, region: DetectedRegion) -> bool:
    """Whether a formula takes the place of a region."""
    shared = intersection(zone.box, region.box)
    if region.label is Label.DISPLAY_FORMULA:
        return shared > 0.3 * min(area(zone.box), area(region.box))
    return shared > 0.6 * area(region.box)
