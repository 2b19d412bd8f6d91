"""Right-to-left lines put in logical order by where their glyphs stand.

PDF producers draw such lines letter by letter in either order, and PDFium turns some words round and others not: what
is displayed is all that can be trusted. The Unicode bidirectional algorithm (UAX #9) is applied backwards: figures and
Latin words run from left to right, all else from the right.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import accumulate, groupby, islice, pairwise
from operator import itemgetter
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pagemill.imaging.glyphs import Glyphs, is_right_to_left
from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.late import re

# All in units of the font size (em).
_SAME_LINE = 0.25
_SCRIPT_SIZE, _RAISED, _SCRIPT_GAP = 0.85, 0.6, 0.3
"""Superscripts and subscripts: their size over that of the line, how far off the baseline, how far from a letter."""
_BESIDE = 0.25
"""How far a mark may be beside its letter."""
_REPEATED = 0.5
"""Share of a mark's width that lies over its letter."""
_ABOVE_LETTERS = 0.35
"""Least height of the foot of a mark over the baseline; letters stand on it."""
_GAP_BETWEEN_PIECES = 0.9
"""A wider gap is one between columns or cells; ``glyph_lines`` cuts there, too."""
_WORD_GAP = 0.18
"""Letters of an Arabic word that do not join stand up to 0.14 apart, words 0.23 or more (drawn pages, Noto fonts)."""
_GAP_WITHIN_WORD = 0.6
"""The same of letters that follow each other in the content of a page with white space between others: boxes of
replacement texts are those of the ink, which is up to 0.56 apart in fonts of fixed pitch."""
_LETTERS_PER_SPACE = 15
"""Most letters for each such space."""
_LOW = 0.5
"""Height of a box up to which it is that of the ink of a mark, rather than of a letter."""
_LEAST_STEPS, _WIDEST_PITCH, _ON_PITCH = 8, 0.7, 0.02
"""Steps of the pen from which a fixed pitch is known, the widest one (0.6 is usual), and how far off it one may be."""
_ON_GRID = 0.08
"""The same of letters far apart, in steps of the pen. Not measured."""
_LEAST_DRAWN = 0.001
"""Width of a space with a width, in pixels."""
_DRAWS_SPACES = 0.8
"""Least share of the gaps between words in which a space is drawn, on pages where no other gap is one. Not measured."""
_STRONG = {"R": "R", "AL": "R", "L": "L", "EN": "N", "AN": "N"}
_CONTROLS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks, embeddings and isolates of the bidirectional algorithm: what they did is displayed."""
_LAST_FIGURES = re.compile(r"(?<![^\W_])(\d+(?:[.,:/]\d+)*)[^\w)\]}]{0,3}$")
_WRONG = re.compile(r"[(\[{«](?=\s|$)|(?:^|(?<=\s))(?:[)\]}»]|[.,:;!?،؛؟](?=\s|$|[\u0590-\u08ff])|[,:;!?،؛؟])")
"""Brackets with a space inside, and signs that end a sentence behind one."""
_LEAST_LINES, _MORE_LINES = 3, 1.5
"""Pieces that begin at one place, and how many times more of them than end at one, where text is set from there."""
_BRACKETS = ("()", "[]", "{}", "«»")
_CLOSING = {pair[1]: pair[0] for pair in _BRACKETS}
_MIRRORED = {ord(a): ord(b) for a, b in zip("()[]{}«»<>‹›≤≥", ")(][}{»«><›‹≥≤", strict=True)}
_WEAK = frozenset(("AN", "EN", "NSM", "CS", "ES", "ET", "BN"))


class _Item(msgspec.Struct, frozen=True):
    """A glyph and the marks upon it, as displayed."""

    index: int
    left: float
    right: float
    size: float
    char: str
    kind: str
    """``R`` right-to-left letter, ``L`` other letter, ``N`` figure, or empty."""
    pen: float
    """Where it is set."""
    run: int
    """Number of its text object."""
    face: int
    """Number of its style."""
    vague: bool = False
    """Its box is that of the ink of a mark upon it."""
    marks: tuple[int, ...] = ()


def as_written(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The characters of a page with the brackets and signs as the file has them.

    PDFium cuts each of its lines into stretches of one direction, and turns the signs of those round that it takes for
    right-to-left ones: of right-to-left letters, and of neutral signs behind them or at the start of a line that is
    mostly of such letters.
    """
    if not is_right_to_left(codes).any():
        return codes
    result = codes.copy()
    for line in np.split(np.arange(len(codes)), np.flatnonzero(codes == ord("\n")) + 1):
        if not is_right_to_left(codes[line]).any():
            continue
        kinds = [_stretch_kind(chr(code)) for code in codes[line].tolist()]
        stretches = [kind for kind, _ in groupby(kinds)]
        is_leftward = stretches.count("R") >= stretches.count("L")
        for i, kind in zip(line.tolist(), kinds, strict=True):
            if kind in ("R", "L"):
                is_leftward = kind == "R"
            elif kind == "" and is_leftward:
                result[i] = _MIRRORED.get(int(codes[i]), codes[i])
    return result


def _stretch_kind(char: str) -> str:
    kind = unicodedata.bidirectional(char)
    return {"R": "R", "AL": "R", "L": "L"}.get(kind, "weak" if kind in _WEAK else "")


def in_reading_order(glyphs: Glyphs) -> Glyphs:
    """Put the level lines of a page with right-to-left letters in logical order; other pages stay as they are.

    White space that PDFium made up in such lines is made again from the gaps between the glyphs.
    """
    level = glyphs.of("angle") == 0
    if not (is_right_to_left(glyphs.codes) & level).any():
        return glyphs
    glyphs = _with_forms(glyphs.select(~np.isin(glyphs.codes, _CONTROLS)))
    level = glyphs.of("angle") == 0
    rtl = is_right_to_left(glyphs.codes) & level
    space = len(glyphs.codes)
    glyphs, whole = _with_whole_boxes(glyphs)
    spaced = _is_spaced(glyphs, rtl)
    lines = []
    for chain in _with_marks(glyphs, list(_chains(glyphs))):
        pieces = _pieces(_items(glyphs, chain, whole)) if level[chain].all() else []
        lines.append((chain, pieces))
    every = [piece for _, pieces in lines for piece in pieces]
    page = _Page(_pitches(every), spaced, _are_runs(every))
    shown = []
    for number, (chain, pieces) in enumerate(lines):
        if len(pieces) > 1 and all(_is_code(piece, page) for piece in pieces) and _on_grid(pieces, page):
            pieces = [[item for piece in pieces for item in piece]]
            lines[number] = chain, pieces
        parted, draws = _parted(glyphs, chain, rtl), _draws(pieces)
        shown.append([_with_spaces(piece, parted, draws, page, space) for piece in pieces])
    # Where the codes of brackets are those of their looks, few of them match.
    every = [piece for pieces in shown for piece in pieces]
    size = float(np.median(glyphs.sizes))
    tops = [round(glyphs.origins[piece[0].index, 1] / size) for piece in every]
    beside = [count > 1 for count in map(Counter(tops).__getitem__, tops)]
    _, read = min((_read(every, beside, page, size, looks) for looks in (False, True)), key=itemgetter(0))
    found = iter(read)
    order: list[int] = []
    numbers: list[int] = []
    mirrored: list[int] = []
    for (chain, _), pieces in zip(lines, shown, strict=True):
        own = list(zip(pieces, islice(found, len(pieces)), strict=True))
        if not (rtl[chain].any() or any(logical.places != sorted(logical.places) for _, logical in own)):
            order += chain.tolist()
            numbers += [-1] * len(chain)
            continue
        # PDFium turns the order of the cells of a row round where most are of right-to-left letters.
        if 2 * sum(logical.base for _, logical in own) >= len(own):
            own.reverse()
        for items, logical in own:
            mirrored += [items[place].index for place in logical.mirrored]
            glyphs_of = [
                index
                for number, place in enumerate(logical.places)
                if not (items[place].index == space and number in logical.tight)
                for index in (items[place].index, *items[place].marks)
            ]
            numbers += [len(order)] * (len(glyphs_of) + 1)
            order += [*glyphs_of, space]
    codes = glyphs.codes.copy()
    codes[mirrored] = [_MIRRORED[code] for code in codes[mirrored].tolist()]
    # The one space that stands for all those made here comes last, after the glyphs.
    widened = Glyphs(
        np.append(codes, np.uint32(0x20)),
        np.append(glyphs.boxes, np.zeros((1, 4)), axis=0),
        np.append(glyphs.origins, np.zeros((1, 2)), axis=0),
        np.append(glyphs.style, glyphs.style[:1]),
        glyphs.styles,
    )
    return replace(widened.select(np.array(order, dtype=np.int64)), pieces=np.array(numbers))


class _Page(msgspec.Struct, frozen=True):
    """What all lines of a page tell about each."""

    pitches: dict[int, float]
    """Pitches of the styles of fixed pitch, in em."""
    spaced: bool
    """White space stands between the words in the content."""
    runs: bool
    """Text objects are of one direction, and end where that does."""


def _read(
    pieces: Sequence[Sequence[_Item]], beside: Sequence[bool], page: _Page, size: float, looks: bool
) -> tuple[int, list[_Logical]]:
    """Pieces as displayed in logical order, and how many signs stand wrong in it.

    Those that begin or end at one place have one base level: that of the side at which they begin, but where brackets
    and full stops are as they are written in the other.

    Args:
        pieces: Pieces of the page.
        beside: Which of them stand beside others, as cells do.
        page: The page of the pieces.
        size: Font size of most letters.
        looks: Whether the codes of brackets are those of their looks.
    """
    ways = [(_logical(piece, 0, page, looks=looks), _logical(piece, 1, page, looks=looks)) for piece in pieces]
    leftward = [2 * sum(item.kind == "R" for item in p) > sum(item.kind in ("R", "L") for item in p) for p in pieces]
    edges = [
        ((0, round(piece[0].left * 2 / size)), (1, round(max(item.right for item in piece) * 2 / size)))
        for piece in pieces
    ]
    counts = Counter(edge for both in edges for edge in both)
    groups: dict[tuple[int, int], list[int]] = {}
    for number, both in enumerate(edges):
        few, many = sorted(both, key=counts.__getitem__)
        told = counts[many] >= _LEAST_LINES and counts[many] > _MORE_LINES * counts[few]
        groups.setdefault(many if told else (2, leftward[number]), []).append(number)
    coded = [_is_code(piece, page) for piece in pieces]
    sides = Counter(side for (side, _), own in groups.items() for _ in own)
    totals = [sum(way[base].wrong for way in ways) for base in (0, 1)]
    usual = totals[1] < totals[0] if totals[0] != totals[1] else sides[1] > sides[0]
    base_of = [0] * len(pieces)
    cost = 0
    for (side, of), own in groups.items():
        # Cells may begin at the left though they are read from the right; code that does is read from there.
        as_usual = (sides[0] or sides[1]) and (side == 2 or 2 * sum(leftward[i] or beside[i] for i in own) >= len(own))
        as_usual = as_usual and not (side == 0 and 2 * sum(coded[i] and not beside[i] for i in own) > len(own))
        expected = int(usual if as_usual else of if side == 2 else side)
        wrong = [sum(ways[i][base].wrong for i in own) + (base != expected) for base in (0, 1)]
        base = 1 - expected if wrong[1 - expected] < wrong[expected] else expected
        cost += wrong[base]
        for i in own:
            base_of[i] = 1 - base if ways[i][1 - base].wrong < ways[i][base].wrong else base
    return cost, [way[base] for way, base in zip(ways, base_of, strict=True)]


def _is_code(piece: Sequence[_Item], page: _Page) -> bool:
    return all(item.face in page.pitches or item.char.isspace() for item in piece)


def _on_grid(pieces: Sequence[Sequence[_Item]], page: _Page) -> bool:
    """Whether pieces of fixed pitch are a whole number of letters from each other's signs: comments behind code."""
    for before, piece in pairwise(pieces):
        a, b = before[-1], piece[0]
        pitch = page.pitches.get(a.face) if a.face == b.face else None  # none of white space in another font
        steps = (b.pen - a.pen) / (pitch * a.size) if pitch else 0.5
        if abs(steps - round(steps)) > _ON_GRID or (a.char + b.char).isalnum():
            return False
    return True


def _with_whole_boxes(glyphs: Glyphs) -> tuple[Glyphs, dict[int, int]]:
    """Letters and marks of one glyph with the box of all of it, which PDFium cuts into slices; and the letter of each.

    It has them apart where it takes the mark for a sign between two directions.
    """
    marks = np.flatnonzero([unicodedata.category(chr(code)) == "Mn" for code in glyphs.codes.tolist()])
    places = [(style, *origin) for style, origin in zip(glyphs.style.tolist(), glyphs.origins.tolist(), strict=True)]
    wanted = {places[mark] for mark in marks.tolist()}
    is_mark = set(marks.tolist())
    letters = {
        places[i]: i for i in np.flatnonzero(~glyphs.is_space).tolist() if i not in is_mark and places[i] in wanted
    }
    of = {mark: letters[places[mark]] for mark in marks.tolist() if places[mark] in letters}
    boxes = glyphs.boxes.copy()
    for mark, letter in of.items():
        both = boxes[[mark, letter]]
        boxes[letter] = *both[:, :2].min(axis=0), *both[:, 2:].max(axis=0)
    return replace(glyphs, boxes=boxes), of


def _with_forms(glyphs: Glyphs) -> Glyphs:
    """Characters that PDFium makes of one, in the order of letters of one glyph: as displayed; dots as the ellipsis.

    In lines from the right it spells presentation forms out in the logical order, but the text that a font gives to a
    glyph from its end.
    """
    if len(glyphs.codes) < 2:
        return glyphs
    one = np.column_stack([glyphs.boxes, glyphs.origins, glyphs.style])
    starts = np.append(0, np.flatnonzero((one[1:] != one[:-1]).any(axis=1) | glyphs.is_space[1:]) + 1)
    stops = np.append(starts[1:], len(one))
    codes, order = glyphs.codes.copy(), np.arange(len(one))
    kept = np.ones(len(one), dtype=bool)
    for start, stop in zip(starts[stops - starts > 1].tolist(), stops[stops - starts > 1].tolist(), strict=True):
        text = "".join(map(chr, codes[start:stop].tolist()))
        if text == "...":
            codes[start], kept[start + 1 : stop] = ord("…"), False
        elif text in _spelled_forms() and text[::-1] not in _spelled_forms():
            order[start:stop] = order[start:stop][::-1]
    return replace(glyphs, codes=codes).select(order[kept])


@cache
def _spelled_forms() -> Set[str]:
    """Ligatures of letters among the Arabic presentation forms, spelled out."""
    forms = (unicodedata.normalize("NFKC", chr(code)) for code in (*range(0xFB50, 0xFE00), *range(0xFE70, 0xFEFF)))
    return {form for form in forms if len(form) > 1 and form.isalpha()}


def _is_spaced(glyphs: Glyphs, rtl: Flags) -> bool:
    """Whether white space stands between right-to-left words in the content."""
    between = (glyphs.codes[1:-1] == ord(" ")) & (rtl[:-2] | rtl[2:])
    return bool(rtl.sum() <= _LETTERS_PER_SPACE * between.sum())


def _pitches(pieces: Sequence[Sequence[_Item]]) -> dict[int, float]:
    """Pitches of the styles in which most characters are equally far from the next, in em."""
    steps: dict[int, list[float]] = {}
    for piece in pieces:
        for a, b in pairwise(piece):
            if a.face == b.face and b.pen > a.pen:
                steps.setdefault(a.face, []).append((b.pen - a.pen) / b.size)
    pitches = {}
    for face, own in steps.items():
        ((pitch, count),) = Counter(round(step, 2) for step in own).most_common(1)
        if 2 * count > len(own) >= _LEAST_STEPS and pitch < _WIDEST_PITCH:
            pitches[face] = median(step for step in own if round(step, 2) == pitch)
    return pitches


def _draws(pieces: Sequence[Sequence[_Item]]) -> tuple[bool, bool]:
    """Whether all spaces of a line are drawn between neighbours of which none, and one, is a right-to-left letter."""
    drawn, gaps = [0, 0, 0], [0, 0, 0]
    for piece in pieces:
        last, is_drawn = piece[0], False
        for item in piece[1:]:
            if item.char.isspace():
                is_drawn = True
                continue
            count = (last.kind == "R") + (item.kind == "R")
            drawn[count] += is_drawn
            gaps[count] += not is_drawn and _gap(last, item) > _WORD_GAP * item.size
            last, is_drawn = item, False
    none, one = (own > _DRAWS_SPACES * (own + other) for own, other in zip(drawn[:2], gaps[:2], strict=True))
    return none, one


def _are_runs(pieces: Sequence[Sequence[_Item]]) -> bool:
    """Whether text objects are of one direction each: none has letters of both, and few end within Latin text."""
    kinds: dict[int, set[str]] = {}
    within = [0, 0]
    for piece in pieces:
        last: _Item | None = None
        for item in piece:
            kinds.setdefault(item.run, set()).add(item.kind)
            if item.kind == "L" and last is not None and last.face == item.face:
                within[last.run == item.run] += 1
            last = item if item.kind == "L" else None if item.kind else last
    return within[1] >= 9 * within[0] and not any({"R", "L"} <= own for own in kinds.values())


def repeated_marks(glyphs: Glyphs, ink_of: Callable[[Indices], Floats]) -> Flags:
    """Which glyphs show a mark whose letter says both, shape (n,): typst gives either the text of the two.

    Args:
        glyphs: Glyphs in the order of PDFium: the characters of one glyph have its pen position.
        ink_of: Gives the boxes of what is drawn of the glyphs with these indices.
    """
    repeated = np.zeros(len(glyphs.codes), dtype=bool)
    marks = [code for code in np.unique(glyphs.codes).tolist() if unicodedata.category(chr(code)) == "Mn"]
    if not marks:
        return repeated
    is_mark = np.isin(glyphs.codes, marks)
    members: dict[tuple[float, float], list[int]] = {}
    for i in np.flatnonzero(~glyphs.is_space).tolist():
        members.setdefault((glyphs.origins[i, 0], glyphs.origins[i, 1]), []).append(i)
    by_text: dict[tuple[int, ...], list[tuple[float, float, float, list[int]]]] = {}
    for (_, y), own in members.items():
        if len(own) > 1 and is_mark[own].any():
            text = tuple(sorted(glyphs.codes[own].tolist()))
            left, right = float(glyphs.boxes[own, 0].min()), float(glyphs.boxes[own, 2].max())
            by_text.setdefault(text, []).append((left, right, y, own))
    size = glyphs.sizes
    repeated |= _borrowed(glyphs, is_mark, members.values(), ink_of)
    for same in by_text.values():
        for a, b in pairwise(sorted(same)):
            narrow, wide = sorted((a, b), key=lambda item: item[1] - item[0])
            overlap = min(a[1], b[1]) - max(a[0], b[0])
            if overlap > _REPEATED * (narrow[1] - narrow[0]) and 0 < abs(a[2] - b[2]) < _RAISED * size[wide[3][0]]:
                repeated[narrow[3]] = True
    return repeated


def _borrowed(
    glyphs: Glyphs, is_mark: Flags, members: Iterable[Sequence[int]], ink_of: Callable[[Indices], Floats]
) -> Flags:
    """Letters of glyphs that draw a mark alone, and marks of those that draw a letter, in fonts whose glyphs say both.

    Such a font gives a glyph the text of the first letter with a mark that it was used for. The text of a replacement
    is no such text: PDFium cuts what it replaces into slices.
    """
    both = [
        own
        for own in map(np.array, members)
        if len(own) > 1 and is_mark[own].any() and not is_mark[own].all() and len(np.unique(glyphs.boxes[own, 0])) == 1
    ]
    borrowed = np.zeros(len(glyphs.codes), dtype=bool)
    if not both:
        return borrowed
    first = np.array([own[0] for own in both])
    ink, baseline, size = ink_of(first), glyphs.origins[first, 1], glyphs.sizes[first]
    alone = (baseline - ink[:, 3] > _ABOVE_LETTERS * size) | (ink[:, 1] > baseline)
    if alone.any():
        for own, draws_mark in zip(both, alone.tolist(), strict=True):
            borrowed[own[is_mark[own] != draws_mark]] = True
    return borrowed


def _chains(glyphs: Glyphs) -> Iterator[Indices]:
    """Cut the stream where the baseline or the direction changes; white space stays with what is before it."""
    size, angle = glyphs.sizes, glyphs.of("angle")
    baseline, boxes = glyphs.origins[:, 1], glyphs.boxes
    start, main, before = 0, -1, -1
    for i in np.flatnonzero(~glyphs.is_space).tolist():
        if main < 0:
            main = i
        elif unicodedata.category(chr(glyphs.codes[i])) != "Mn":
            em, small = max(size[i], size[main]), min(size[i], size[main])
            off = abs(baseline[i] - baseline[main])
            gap = max(boxes[i, 0] - boxes[before, 2], boxes[before, 0] - boxes[i, 2])
            script = small < _SCRIPT_SIZE * em and off < _RAISED * em and gap < _SCRIPT_GAP * em
            if angle[i] != angle[main] or not (script or off < _SAME_LINE * em):
                yield np.arange(start, i)
                start, main = i, i
            elif size[i] >= _SCRIPT_SIZE * em:
                main = i
        before = i
    if start < len(glyphs.codes):
        yield np.arange(start, len(glyphs.codes))


def _with_marks(glyphs: Glyphs, chains: list[Indices]) -> list[Indices]:
    """Chains with the marks upon their letters: PDFium takes marks for lines of their own, or for ends of others."""
    is_mark = np.array([unicodedata.category(chr(code)) == "Mn" for code in glyphs.codes.tolist()])
    if not is_mark.any():
        return chains
    shown = ~glyphs.is_space
    boxes, baseline, size = glyphs.boxes, glyphs.origins[:, 1], glyphs.sizes
    chain_of = np.zeros(len(is_mark), dtype=np.int64)
    stray = np.zeros(len(is_mark), dtype=bool)
    for number, chain in enumerate(chains):
        chain_of[chain] = number
        own = chain[shown[chain]]
        # A mark alone, or a glyph for a mark that says its letter, too.
        stray[own] = bool(is_mark[own].any()) and len(np.unique(boxes[own], axis=0)) == 1
    letters = np.flatnonzero(shown & ~is_mark & ~stray)
    if not len(letters):
        return chains
    for mark in np.flatnonzero(is_mark).tolist():
        middle = (boxes[mark, 0] + boxes[mark, 2]) / 2
        beside = np.maximum(boxes[letters, 0] - middle, middle - boxes[letters, 2]).clip(min=0)
        off = np.abs(baseline[letters] - baseline[mark])
        near = (beside < _BESIDE * size[letters]) & (off < _RAISED * size[letters])
        if near.any():
            same = (chain_of == chain_of[mark]) & stray if stray[mark] else mark
            chain_of[same] = chain_of[letters[np.where(near, off + beside, np.inf).argmin()]]
    order = np.concatenate(chains)
    moved = [order[chain_of[order] == number] for number in range(len(chains))]
    return [chain for chain in moved if len(chain)]


def _parted(glyphs: Glyphs, chain: Indices, rtl: Flags) -> set[frozenset[int]]:
    """Neighbours as displayed with white space between them in the content, whose gap may be none (wide boxes)."""
    shown = chain[~glyphs.is_space[chain]].tolist()
    first, last = list(range(len(shown))), list(range(len(shown)))
    """Bounds of the word of other letters that each is in, as places in the content."""
    left = glyphs.boxes[:, 0]
    forward = [not (rtl[a] or rtl[b]) and left[a] < left[b] for a, b in pairwise(shown)]
    for i, same in enumerate(forward):
        first[i + 1] = first[i] if same else i + 1
    for i in reversed(range(len(forward))):
        last[i] = last[i + 1] if forward[i] else i
    return {
        frozenset((shown[first[i]], shown[last[i + 1]]) if not forward[i] else (a, b))
        for i, (a, b) in enumerate(pairwise(shown))
        if b - a > 1
    }


def _items(glyphs: Glyphs, chain: Indices, whole: dict[int, int]) -> list[_Item]:
    """What is displayed from left to right: letters with their marks, and spaces with a width."""
    boxes, size, face = glyphs.boxes, glyphs.sizes, glyphs.of("face")
    width = boxes[:, 2] - boxes[:, 0]
    spaces = glyphs.is_space
    base: list[int] = []
    marks: list[int] = []
    for i in chain.tolist():
        if spaces[i] and width[i] <= _LEAST_DRAWN:
            continue
        (marks if unicodedata.category(chr(glyphs.codes[i])) == "Mn" else base).append(i)
    middle = (boxes[:, 0] + boxes[:, 2]) / 2
    bearer = _bearers(base, marks, boxes, middle)
    own, letters = set(base), set(whole.values())
    bearer |= {mark: whole[mark] for mark in marks if whole.get(mark) in own}
    for mark, letter in bearer.items():
        glyphs.origins[mark, 1] = glyphs.origins[letter, 1]  # else they would begin a line of their own
    carried: dict[int, tuple[int, ...]] = {}
    for mark, letter in bearer.items():
        carried[letter] = (*carried.get(letter, ()), mark)
    items = []
    for i in base:
        char = chr(glyphs.codes[i])
        kind = _STRONG.get(unicodedata.bidirectional(char), "")
        (left, top, right, bottom), em, pen = boxes[i].tolist(), float(size[i]), float(glyphs.origins[i, 0])
        low = i in letters and bottom - top < _LOW * em
        run = int(glyphs.style[i])
        items.append(_Item(i, left, right, em, char, kind, pen, run, int(face[i]), low, carried.get(i, ())))
    return sorted(items, key=lambda item: (item.left + item.right, item.index))


def _bearers(base: Sequence[int], marks: Sequence[int], boxes: Floats, middle: Floats) -> dict[int, int]:
    """For each mark the letter that it stands over: the one whose box holds its middle, else the nearest."""
    if not base:
        return {}
    letters = np.array(base)
    result = {}
    for mark in marks:
        outside = np.maximum(boxes[letters, 0] - middle[mark], middle[mark] - boxes[letters, 2]).clip(min=0)
        result[mark] = int(letters[np.lexsort((np.abs(middle[letters] - middle[mark]), outside))[0]])
    return result


def _pieces(items: Sequence[_Item]) -> list[list[_Item]]:
    pieces: list[list[_Item]] = []
    reach = 0.0
    for item in items:
        if not pieces or item.left - reach > _GAP_BETWEEN_PIECES * item.size:
            pieces.append([])
            reach = item.right
        pieces[-1].append(item)
        reach = max(reach, item.right)
    return pieces


def _with_spaces(
    piece: Sequence[_Item], parted: Set[frozenset[int]], draws: tuple[bool, bool], page: _Page, space: int
) -> list[_Item]:
    """A piece as displayed with the spaces that are not drawn.

    Args:
        piece: From left to right.
        parted: Neighbours with white space between them in the content.
        draws: Whether all spaces are drawn between neighbours of which none, and one, is a right-to-left letter.
        page: The page of the piece.
        space: Index of the space.
    """
    shown = [piece[0]]
    for before, item in pairwise(piece):
        leftward = (before.kind == "R") + (item.kind == "R")
        step = (item.pen - before.pen) / item.size
        gap = _gap(before, item) / item.size
        is_parted = frozenset((before.index, item.index)) in parted
        if before.face == item.face and abs(step - page.pitches.get(item.face, -1.0)) < _ON_PITCH:
            apart = False
        elif before.vague or item.vague:
            apart = gap > _GAP_WITHIN_WORD or is_parted
        elif leftward == 2:
            follows = page.spaced and abs(item.index - before.index) == 1
            apart = gap > (_GAP_WITHIN_WORD if follows else _WORD_GAP) or is_parted
        elif draws[leftward]:
            apart = gap > (_WORD_GAP if is_parted else _GAP_WITHIN_WORD)
        else:
            # Producers put the space of a Latin word at its wrong side.
            apart = gap > _WORD_GAP or {before.kind, item.kind} == {"R", "L"}
        if apart and not (before.char.isspace() or item.char.isspace()):
            shown.append(_Item(space, before.right, item.left, item.size, " ", "", before.right, -1, -1))
        shown.append(item)
    return shown


def _gap(a: _Item, b: _Item) -> float:
    return max(b.left - a.right, a.left - b.right)


class _Logical(NamedTuple):
    places: list[int]
    """Displayed places in logical order."""
    tight: set[int]
    """Which of them are spaces inside brackets between right-to-left words."""
    mirrored: list[int]
    """Displayed places of the brackets that look other than they are written."""
    wrong: int
    """How many signs are misplaced."""
    base: int


def _logical(shown: Sequence[_Item], base: int, page: _Page, *, looks: bool) -> _Logical:
    """A piece in logical order, whose codes are those of the ``looks`` of its brackets, or of what is written."""
    runs = [item.run for item in shown] if page.runs else None
    chars = [item.char for item in shown]
    levels = levels_of_display(chars, base, runs, [item.face for item in shown])
    mirrored = [i for i, char in enumerate(chars) if looks and levels[i] % 2 and ord(char) in _MIRRORED]
    for i in mirrored:
        chars[i] = chr(_MIRRORED[ord(chars[i])])
    places = logical_places(levels)
    text = "".join(chars[place] for place in places)
    leftward = "".join(char if levels[place] == 1 else "x" for char, place in zip(text, places, strict=True))
    return _Logical(places, _inside_brackets(leftward), mirrored, _misplaced(text), base)


def levels_of_display(
    chars: Sequence[str], base: int, runs: Sequence[int] | None = None, faces: Sequence[int] | None = None
) -> list[int]:
    """The embedding levels of characters as displayed from left to right.

    Args:
        chars: One by one, with the spaces between words.
        base: 0 for a line from left to right, 1 for one from right to left.
        runs: Text objects that they are of, where these are of one direction each; -1 for spaces that are not drawn.
        faces: Their styles.

    Returns:
        0 for left-to-right ones in a line from left to right, 1 for right-to-left ones, 2 for figures and words from
        left to right between them.
    """
    types = [unicodedata.bidirectional(char) for char in chars]
    kinds = [_STRONG.get(kind, "") for kind in types]
    figures = _figures(chars, types)
    return (_from_right if base else _from_left)(chars, types, kinds, figures, runs, faces)


def _from_right(
    chars: Sequence[str],
    types: Sequence[str],
    kinds: Sequence[str],
    figures: Sequence[bool],
    runs: Sequence[int] | None,
    faces: Sequence[int] | None,
) -> list[int]:
    """Levels in a line from the right: what stands between two Latin letters is of the same words.

    So is a figure after one (rule W7), where the text objects do not tell that the figure comes first.
    """
    levels = [2 if kind == "L" or figure else 1 for kind, figure in zip(kinds, figures, strict=True)]
    letters = _next_letters(kinds)
    blanks = [0, *accumulate(map(str.isspace, chars))]
    last = -1
    for i, kind in enumerate(kinds):
        if kind == "R" or types[i] == "AN":
            last = -1
        elif kind == "L" or (figures[i] and last >= 0):
            apart = runs is not None and runs[last] != runs[i] and (faces is None or faces[last] == faces[i])
            if last >= 0 and not (apart and kind != "L" and blanks[i] > blanks[last]):
                levels[last:i] = [2] * (i - last)
            last = i
        elif figures[i] and (after := letters[i]) > i and not blanks[after] - blanks[i]:
            last = i
        elif (opening := _CLOSING.get(chars[i])) and last >= 0 and _is_open(chars, levels, last, opening):
            levels[last : i + 1] = [2] * (i + 1 - last)
            last = i
    return levels


def _is_open(chars: Sequence[str], levels: Sequence[int], last: int, opening: str) -> bool:
    """Whether a bracket opens in the words up to a place and is not closed there (rule N0)."""
    depth = 0
    for i in range(last, -1, -1):
        if levels[i] != 2:
            break
        depth += (chars[i] == opening) - (_CLOSING.get(chars[i]) == opening)
        if depth > 0:
            return True
    return False


def _next_letters(kinds: Sequence[str]) -> list[int]:
    """For each place that of the Latin letter that comes next before any right-to-left one; itself where none does."""
    result = list(range(len(kinds)))
    following = -1
    for i in reversed(range(len(kinds))):
        result[i] = following if following >= 0 else i
        if kinds[i] in ("L", "R"):
            following = i if kinds[i] == "L" else -1
    return result


def _from_left(
    chars: Sequence[str],
    types: Sequence[str],
    kinds: Sequence[str],
    figures: Sequence[bool],
    runs: Sequence[int] | None,
    faces: Sequence[int] | None,
) -> list[int]:
    """Levels in a line from the left: right-to-left words from the first to the last letter or Arabic figure of theirs.

    A number at their left, which is behind them, is of them where its space is, and so are closing brackets.
    """
    levels = [0] * len(kinds)
    last = -1
    for i, kind in enumerate(kinds):
        if kind == "L":
            last = -1
        elif kind == "R" or types[i] == "AN":
            if last >= 0:
                levels[last:i] = [2 if figure else 1 for figure in figures[last:i]]
            levels[i] = 2 if figures[i] else 1
            last = i
    for start in [i for i, level in enumerate(levels) if level and (i == 0 or not levels[i - 1])]:
        stop = next((i for i in range(start, len(levels)) if not levels[i]), len(levels))
        while True:
            moved = _with_brackets(chars, kinds, start, stop)
            if (found := _LAST_FIGURES.search("".join(chars[:moved]))) and (
                # What stands between is of the words if it is not of the number.
                runs[found.end(1)] != runs[found.end(1) - 1]
                if runs is not None and found.end(1) < moved
                else moved - found.end(1) < 2
            ):
                moved = found.start()
            if moved == start:
                break
            levels[moved:start] = [2 if figure else 1 for figure in figures[moved:start]]
            start = moved
    return levels


def _with_brackets(chars: Sequence[str], kinds: Sequence[str], start: int, stop: int) -> int:
    """Where words from right to left end at their left, with the brackets that close there (rule N0)."""
    place = start
    while place and not kinds[place - 1]:
        place -= 1
        opening = _CLOSING.get(chars[place])
        if opening and chars[place:stop].count(opening) >= chars[place:stop].count(chars[place]):
            return place
    return start


def _figures(chars: Sequence[str], types: Sequence[str]) -> list[bool]:
    """Which characters are of a number: figures, separators between two of them, signs and units that touch it."""
    result = [kind in ("EN", "AN") for kind in types]
    count = len(chars)
    for i in range(1, count - 1):
        if types[i] in ("CS", "ES") and types[i - 1] == types[i + 1] and result[i - 1]:
            # After Arabic letters a hyphen parts two numbers (rules W2 and W4).
            result[i] = types[i] == "CS" or (types[i - 1] == "EN" and not _after_arabic(types, i))
    for i in range(1, count):
        if types[i] == "ET" and result[i - 1]:
            result[i] = True
    for i in reversed(range(count - 1)):
        if types[i] in ("ET", "ES") and result[i + 1] and not result[i]:
            begins = i == 0 or chars[i - 1].isspace()
            result[i] = not _after_arabic(types, i) and (types[i] == "ET" or begins)
    return result


def _after_arabic(types: Sequence[str], place: int) -> bool:
    """Whether the letter before a place, which stands at its right, is an Arabic one."""
    return next((kind == "AL" for kind in types[place + 1 :] if kind in ("L", "R", "AL")), "AL" in types)


def logical_places(levels: Sequence[int]) -> list[int]:
    """The displayed places in logical order: rule L2 backwards."""
    places = list(range(len(levels)))
    for least in (1, 2):
        start = 0
        while start < len(places):
            stop = start
            while stop < len(places) and levels[places[stop]] >= least:
                stop += 1
            places[start:stop] = places[start:stop][::-1]
            start = max(stop, start + 1)
    return places


def _misplaced(text: str) -> int:
    """How many signs stand wrong: brackets without a counterpart or with a space inside, full stops at the start."""
    unmatched = sum(abs(text.count(pair[0]) - text.count(pair[1])) for pair in _BRACKETS)
    return unmatched + len(_WRONG.findall(text))


def _inside_brackets(text: str) -> set[int]:
    """Places of spaces behind opening brackets and before closing ones."""
    return {found.start() + bool(found[1]) for found in re.finditer(r"([(\[{«])\s|\s[)\]}»]", text)}
