"""Right-to-left lines put in logical order by where their glyphs stand.

PDF producers draw such lines letter by letter in either order, and PDFium turns some words round and others not: what
is displayed is all that can be trusted. The Unicode bidirectional algorithm (UAX #9) is applied backwards: figures and
Latin words run from left to right, all else from the right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.document.direction import is_set_from_left
from pagemill.imaging.glyphs import Glyphs, is_right_to_left
from pagemill.imaging.types import Flags, Floats, Indices

# All in units of the font size (em).
_SAME_LINE = 0.25
_SCRIPT_SIZE, _RAISED, _SCRIPT_GAP = 0.85, 0.6, 0.3
"""Superscripts and subscripts: their size over that of the line, how far off the baseline, how far from a letter."""
_BESIDE = 0.25
"""How far a mark may be beside its letter."""
_REPEATED = 0.5
"""Share of a mark's width that lies over its letter."""
_GAP_BETWEEN_PIECES = 0.9
"""A wider gap is one between columns or cells; ``glyph_lines`` cuts there, too."""
_WORD_GAP = 0.18
"""Letters of an Arabic word that do not join stand up to 0.14 apart, words 0.23 or more (drawn pages, Noto fonts)."""
_GAP_WITHIN_WORD = 0.6
"""The same of letters that follow each other in the content of a page with white space between others: boxes of
replacement texts are those of the ink, which is up to 0.56 apart in fonts of fixed pitch."""
_LETTERS_PER_SPACE = 15
"""Most letters for each such space."""
_LEAST_DRAWN = 0.001
"""Width of a space with a width, in pixels."""
_DRAWS_SPACES = 0.8
"""Least share of the gaps between words in which a space is drawn, on pages where no other gap is one. Not measured."""
_STRONG = {"R": "R", "AL": "R", "L": "L", "EN": "N", "AN": "N"}
_CONTROLS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks, embeddings and isolates of the bidirectional algorithm: what they did is displayed."""
_LAST_FIGURES = re.compile(r"(?<![^\W\d_])\d+(?:[.,:/]\d+)*\s?$")
_ENDS = frozenset(".,:;!?،؛؟")
"""Signs that end a sentence, and begin none."""
_BRACKETS = ("()", "[]", "{}", "«»")
_CLOSING = {pair[1]: pair[0] for pair in _BRACKETS}
_MIRRORED = {ord(a): ord(b) for pair in (*_BRACKETS, "<>", "‹›", "≤≥") for a, b in (pair, pair[::-1])}
_WEAK = frozenset(("AN", "EN", "NSM", "CS", "ES", "ET", "BN"))


@dataclass(frozen=True, slots=True)
class _Item:
    """A glyph and the marks upon it, as displayed."""

    index: int
    left: float
    right: float
    size: float
    char: str
    kind: str
    """``R`` right-to-left letter, ``L`` other letter, ``N`` figure, or empty."""
    run: int
    """Number of its text object."""
    face: int
    """Number of its style."""
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
    glyphs = glyphs.select(~np.isin(glyphs.codes, _CONTROLS))
    level = glyphs.of("angle") == 0
    rtl = is_right_to_left(glyphs.codes) & level
    space = len(glyphs.codes)
    glyphs, whole = _with_whole_boxes(glyphs)
    spaced, draws = _spacing(glyphs, rtl)
    lines = []
    for chain in _with_marks(glyphs, list(_chains(glyphs))):
        pieces = _pieces(_items(glyphs, chain, whole)) if level[chain].all() else []
        pieces.sort(key=lambda items: min(item.index for item in items))
        lines.append(_Line(chain, pieces, _parted(glyphs, chain, rtl), _draws(pieces, draws)))
    pieces = [piece for line in lines for piece in line.pieces]
    page = _Page(_directions(pieces, float(np.median(glyphs.sizes))), spaced, _are_runs(pieces))
    # Where the codes of brackets are those of their looks, few of them match.
    best = min((_ordered(lines, rtl, page, space, looks=looks) for looks in (False, True)), key=lambda found: found[2])
    order, turned, _, mirrored = best
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
    return replace(widened.select(np.array(order, dtype=np.int64)), turned=np.array(turned, dtype=bool))


def _ordered(
    lines: Sequence[_Line], rtl: Flags, page: _Page, space: int, *, looks: bool
) -> tuple[list[int], list[bool], int, list[int]]:
    """The glyphs in logical order.

    Returns:
        The glyphs, which of them are of lines put in order here, the number of brackets that have no counterpart or
        stand on the wrong side of a space, and the glyphs to mirror.
    """
    order: list[int] = []
    turned: list[bool] = []
    mirrored: list[int] = []
    wrong = 0
    for line in lines:
        own: list[int] = []
        is_turned = bool(rtl[line.glyphs].any())
        for piece in line.pieces:
            chars = _with_spaces(piece, line, page, space)
            found = _logical(chars, page.base_of(piece), page, looks=looks)
            is_turned |= found.places != sorted(found.places)
            read = [chars[place] for place in found.places]
            wrong += _misplaced(found.chars)
            mirrored += [chars[place].index for place in found.mirrored]
            tight = _inside_brackets(found.chars)
            own += [
                index
                for place, item in enumerate(read)
                if not (item.index == space and place in tight)
                for index in (item.index, *item.marks)
            ]
            own.append(space)
        if not is_turned:
            own = line.glyphs.tolist()
        order += own
        turned += [is_turned] * len(own)
    return order, turned, wrong, mirrored


@dataclass(frozen=True, slots=True)
class _Line:
    """Glyphs on one baseline, the pieces that they are displayed in, and what white space parts in the content."""

    glyphs: Indices
    pieces: list[list[_Item]]
    parted: set[frozenset[int]]
    draws: tuple[bool, bool, bool]
    """All spaces are drawn between neighbours of which none, one and both are right-to-left letters."""


@dataclass(frozen=True, slots=True)
class _Page:
    """What all lines of a page tell about each."""

    bases: tuple[int | None, int | None]
    """Base levels of pieces of mostly right-to-left letters, and of others; None where each tells its own."""
    spaced: bool
    """White space stands between the words in the content."""
    runs: bool
    """Text objects are of one direction, and end where that does."""

    def base_of(self, piece: Sequence[_Item]) -> int:
        """Base level of a piece: 1 where it is set from the right."""
        kinds = [item.kind for item in piece]
        mostly = kinds.count("R") > kinds.count("L")
        base = self.bases[0 if mostly else 1]
        if not mostly and base and piece[-1].char in _ENDS and piece[0].char not in _ENDS:
            return 0
        return int(mostly) if base is None else base


def _directions(pieces: Sequence[Sequence[_Item]], size: float) -> tuple[int | None, int | None]:
    """Base levels by the side at which the lines of a page begin, of mostly right-to-left letters and others."""
    edges: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for piece in pieces:
        kinds = [item.kind for item in piece]
        edges[kinds.count("R") <= kinds.count("L")].append((piece[0].left, max(item.right for item in piece)))

    def side(own: Sequence[tuple[float, float]], otherwise: int | None) -> int | None:
        if is_set_from_left(own, size / 2):
            return 0
        return 1 if is_set_from_left([(-right, -left) for left, right in own], size / 2) else otherwise

    page = side([*edges[0], *edges[1]], None)
    mostly = side(edges[0], page)
    return mostly, side(edges[1], mostly)


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


def _spacing(glyphs: Glyphs, rtl: Flags) -> tuple[bool, bool]:
    """Whether white space stands between right-to-left words in the content, and whether the pen moves over none."""
    made = glyphs.is_space & (glyphs.codes == ord(" "))
    between = made[1:-1] & rtl[:-2] & rtl[2:]
    # PDFium sees a move of the pen within a text object.
    moved = made[1:] & rtl[:-1] & (glyphs.style[1:] == glyphs.style[:-1])
    moved &= glyphs.boxes[1:, 2] - glyphs.boxes[1:, 0] <= _LEAST_DRAWN
    return bool(rtl.sum() <= _LETTERS_PER_SPACE * between.sum()), not moved.any()


def _draws(pieces: Sequence[Sequence[_Item]], page_draws: bool) -> tuple[bool, bool, bool]:
    """Whether all spaces of a line are drawn between neighbours of which none, one and both are right-to-left."""
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
    return none, one, False


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


def repeated_marks(glyphs: Glyphs) -> Flags:
    """Which glyphs show a mark whose letter says both, shape (n,): typst gives either the text of the two.

    Args:
        glyphs: As PDFium gives them: the characters of one glyph have its pen position.
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
    for same in by_text.values():
        for a, b in pairwise(sorted(same)):
            narrow, wide = sorted((a, b), key=lambda item: item[1] - item[0])
            overlap = min(a[1], b[1]) - max(a[0], b[0])
            if overlap > _REPEATED * (narrow[1] - narrow[0]) and 0 < abs(a[2] - b[2]) < _RAISED * size[wide[3][0]]:
                repeated[narrow[3]] = True
    return repeated


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
    own = set(base)
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
        own = i, float(boxes[i, 0]), float(boxes[i, 2]), float(size[i]), char, kind, int(glyphs.style[i]), int(face[i])
        items.append(_Item(*own, carried.get(i, ())))
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


def _with_spaces(piece: Sequence[_Item], line: _Line, page: _Page, space: int) -> list[_Item]:
    """A piece as displayed with the spaces that are not drawn."""
    shown = [piece[0]]
    for before, item in pairwise(piece):
        follows = page.spaced and before.kind == item.kind == "R" and abs(item.index - before.index) == 1
        draws = line.draws[(before.kind == "R") + (item.kind == "R")]
        least = _GAP_WITHIN_WORD if follows or draws else _WORD_GAP
        apart = _gap(before, item) > least * item.size
        if before.kind == item.kind == "R":
            apart |= frozenset((before.index, item.index)) in line.parted
        elif not draws:
            # Producers put the space of a Latin word at its wrong side.
            apart |= {before.kind, item.kind} == {"R", "L"}
        if apart and not (before.char.isspace() or item.char.isspace()):
            shown.append(_Item(space, before.right, item.left, item.size, " ", "", -1, -1))
        shown.append(item)
    return shown


def _gap(a: _Item, b: _Item) -> float:
    return max(b.left - a.right, a.left - b.right)


class _Logical(NamedTuple):
    places: list[int]
    """Displayed places in logical order."""
    chars: str
    """Characters in that order."""
    mirrored: list[int]
    """Displayed places of the brackets that look other than they are written."""


def _logical(shown: Sequence[_Item], base: int, page: _Page, *, looks: bool) -> _Logical:
    """A piece in logical order, whose codes are those of the ``looks`` of its brackets, or of what is written."""
    runs = [item.run for item in shown] if page.runs else None
    chars = [item.char for item in shown]
    levels = levels_of_display(chars, base, runs, [item.face for item in shown])
    mirrored = [i for i, char in enumerate(chars) if looks and levels[i] % 2 and ord(char) in _MIRRORED]
    for i in mirrored:
        chars[i] = chr(_MIRRORED[ord(chars[i])])
    places = logical_places(levels)
    return _Logical(places, "".join(chars[place] for place in places), mirrored)


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
            told = runs is not None and faces is not None and faces[last] == faces[i] and blanks[i] > blanks[last]
            if last >= 0 and not (told and kind != "L" and runs[last] != runs[i]):
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
            if found := _LAST_FIGURES.search("".join(chars[:moved])):
                blank = found[0][-1:].isspace()
                if not (runs is not None and blank and runs[moved - 1] == runs[moved - 2]):
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
    """How many brackets of a text have no counterpart, or a space on their inner side."""
    return sum(
        abs(text.count(pair[0]) - text.count(pair[1]))
        + len(re.findall(rf"\{pair[0]}(?:\s|$)|(?:^|\s)\{pair[1]}", text))
        for pair in _BRACKETS
    )


def _inside_brackets(text: str) -> set[int]:
    """Places of spaces behind opening brackets and before closing ones."""
    return {found.start() + bool(found[1]) for found in re.finditer(r"([(\[{«])\s|\s[)\]}»]", text)}
