"""Right-to-left lines put in logical order by where their glyphs stand.

PDF producers draw such lines letter by letter in either order, and PDFium turns some words round and others not: what
is displayed is all that can be trusted. The Unicode bidirectional algorithm (UAX #9) is applied backwards: figures and
Latin words run from left to right, all else from the right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, pairwise

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
_STRONG = {"R": "R", "AL": "R", "L": "L", "EN": "N", "AN": "N"}
_SIGNS = {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}
_CONTROLS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks, embeddings and isolates of the bidirectional algorithm: what they did is displayed."""
_LAST_FIGURES = re.compile(r"[(\[]?\d+(?:[.,:/]\d+)*\s?$")
_ENDS = ".,:;!?،؛؟"
"""Signs that follow a closing bracket without a space."""
_BRACKETS = ("()", "[]", "{}", "«»")


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
    marks: tuple[int, ...] = ()


def in_reading_order(glyphs: Glyphs) -> Glyphs:
    """Put the level lines that hold right-to-left letters in logical order; others stay as they are.

    White space that PDFium made up in such lines is made again from the gaps between the glyphs.
    """
    rtl = is_right_to_left(glyphs.codes) & (glyphs.of("angle") == 0)
    if not rtl.any():
        return glyphs
    glyphs = glyphs.select(~np.isin(glyphs.codes, _CONTROLS))
    rtl = is_right_to_left(glyphs.codes) & (glyphs.of("angle") == 0)
    count = len(glyphs.codes)
    codes, order = glyphs.codes.copy(), []
    spaces = glyphs.is_space[1:-1] & (glyphs.codes[1:-1] == ord(" ")) & rtl[:-2] & rtl[2:]
    spaced = bool(rtl.sum() <= _LETTERS_PER_SPACE * spaces.sum())
    chains = _with_marks(glyphs, list(_chains(glyphs)))
    from_left = _is_from_left(glyphs, chains)
    for chain in chains:
        if rtl[chain].any():
            order += _reordered(glyphs, chain, rtl, codes, count, spaced=spaced, from_left=from_left)
        else:
            order += chain.tolist()
    # The one space that stands for all those made here comes last, after the glyphs.
    widened = Glyphs(
        np.append(codes, np.uint32(0x20)),
        np.append(glyphs.boxes, np.zeros((1, 4)), axis=0),
        np.append(glyphs.origins, np.zeros((1, 2)), axis=0),
        np.append(glyphs.style, glyphs.style[:1]),
        glyphs.styles,
    )
    return widened.select(np.array(order, dtype=np.int64))


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


def _is_from_left(glyphs: Glyphs, chains: Sequence[Indices]) -> bool:
    """Whether the lines begin at the left, though most of their letters run from the right."""
    shown = [own for chain in chains if len(own := chain[~glyphs.is_space[chain]])]
    edges = [(float(glyphs.boxes[own, 0].min()), float(glyphs.boxes[own, 2].max())) for own in shown]
    return is_set_from_left(edges, float(np.median(glyphs.sizes)) / 2)


def _reordered(
    glyphs: Glyphs, chain: Indices, rtl: Flags, codes: NDArray[np.uint32], space: int, *, spaced: bool, from_left: bool
) -> list[int]:
    """A chain in logical order; brackets are turned round in ``codes`` where they are mirrored."""
    order: list[int] = []
    parted = _parted(glyphs, chain, rtl)
    pieces = _pieces(_items(glyphs, chain))
    for piece in sorted(pieces, key=lambda items: min(item.index for item in items)):
        order += _logical(piece, codes, space, parted, spaced=spaced, from_left=from_left)
        order.append(space)
    return order


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


def _items(glyphs: Glyphs, chain: Indices) -> list[_Item]:
    """What is displayed from left to right: letters with their marks, and spaces with a width."""
    boxes, size = glyphs.boxes, glyphs.sizes
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
    for mark, letter in bearer.items():
        glyphs.origins[mark, 1] = glyphs.origins[letter, 1]  # else they would begin a line of their own
    carried: dict[int, tuple[int, ...]] = {}
    for mark, letter in bearer.items():
        carried[letter] = (*carried.get(letter, ()), mark)
    items = []
    for i in base:
        char = chr(glyphs.codes[i])
        kind = _STRONG.get(unicodedata.bidirectional(char), "")
        items.append(_Item(i, float(boxes[i, 0]), float(boxes[i, 2]), float(size[i]), char, kind, carried.get(i, ())))
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


def _logical(
    piece: list[_Item],
    codes: NDArray[np.uint32],
    space: int,
    parted: Set[frozenset[int]],
    *,
    spaced: bool,
    from_left: bool,
) -> list[int]:
    """A piece in logical order, where ``parted`` has the neighbours in the content with white space between them."""
    shown = [piece[0]]
    for before, item in pairwise(piece):
        follows = spaced and before.kind == item.kind == "R" and abs(item.index - before.index) == 1
        least = _GAP_WITHIN_WORD if follows else _WORD_GAP
        apart = _gap(before, item) > least * item.size or frozenset((before.index, item.index)) in parted
        # Producers put the space of a Latin word at its wrong side.
        apart |= {before.kind, item.kind} == {"R", "L"}
        if apart and not (before.char.isspace() or item.char.isspace()):
            shown.append(_Item(space, before.right, item.left, item.size, " ", ""))
        shown.append(item)
    chars = [item.char for item in shown]
    levels = levels_of_display(chars, from_left=from_left)
    turned = mirrored(chars, levels)
    for place, char in turned.items():
        codes[shown[place].index] = ord(char)
    tight = _inside_brackets(chars, levels, turned)
    return [
        index
        for place in logical_places(levels)
        if not (shown[place].index == space and place in tight)
        for index in (shown[place].index, *shown[place].marks)
    ]


def _gap(a: _Item, b: _Item) -> float:
    return max(b.left - a.right, a.left - b.right)


def levels_of_display(chars: Sequence[str], *, from_left: bool = False) -> list[int]:
    """The embedding levels of characters as displayed from left to right.

    Args:
        chars: One by one, with the spaces between words.
        from_left: The line is set from the left, whatever its letters.

    Returns:
        0 for left-to-right ones in a line that is mostly of such letters, 1 for right-to-left ones, 2 for figures and
        words from left to right between them.
    """
    kinds = [_STRONG.get(unicodedata.bidirectional(char), "") for char in chars]
    if from_left or kinds.count("R") <= kinds.count("L"):
        levels = _levels_in_left_to_right(kinds)
        return _with_last_figures(chars, levels) if from_left else levels
    figures = _figures(chars, kinds)
    levels = [2 if kind == "L" or figure else 1 for kind, figure in zip(kinds, figures, strict=True)]
    letters = _next_letters(kinds)
    blanks = [0, *accumulate(map(str.isspace, chars))]
    # What stands between two Latin letters or after one, up to a figure, is of the same words.
    last = -1
    for i, kind in enumerate(kinds):
        if kind == "R":
            last = -1
        elif kind == "L" or (figures[i] and last >= 0):
            if last >= 0:
                levels[last:i] = [2] * (i - last)
            last = i
        elif figures[i] and (after := letters[i]) > i and not blanks[after] - blanks[i]:
            last = i
    return levels


def _next_letters(kinds: Sequence[str]) -> list[int]:
    """For each place that of the Latin letter that comes next before any right-to-left one; itself where none does."""
    result = list(range(len(kinds)))
    following = -1
    for i in reversed(range(len(kinds))):
        result[i] = following if following >= 0 else i
        if kinds[i] in ("L", "R"):
            following = i if kinds[i] == "L" else -1
    return result


def _levels_in_left_to_right(kinds: Sequence[str]) -> list[int]:
    """Right-to-left words in a line of other letters: from the first to the last letter of theirs."""
    levels = [0] * len(kinds)
    last = -1
    for i, kind in enumerate(kinds):
        if kind == "L":
            last = -1
        elif kind == "R":
            if last >= 0:
                levels[last:i] = [2 if between == "N" else 1 for between in kinds[last:i]]
            levels[i] = 1
            last = i
    return levels


def _with_last_figures(chars: Sequence[str], levels: list[int]) -> list[int]:
    """Levels where a number that ends right-to-left words is of them; it stands at their left, a bracket behind it."""
    for start in [i for i, level in enumerate(levels) if level == 1 and (i == 0 or levels[i - 1] == 0)]:
        stop = next((i for i in range(start, len(levels)) if levels[i] == 0), len(levels))
        while start and any(
            chars[start - 1] in pair and sum(char in pair for char in chars[start:stop]) % 2 for pair in _BRACKETS
        ):
            start -= 1
            levels[start] = 1
        if found := _LAST_FIGURES.search("".join(chars[:start])):
            for i in range(found.start(), start):
                levels[i] = 2 if chars[i].isdecimal() or chars[i] in ".,:/" else 1
    return levels


def _figures(chars: Sequence[str], kinds: Sequence[str]) -> list[bool]:
    """Which characters are of a number: figures, separators between two of them, signs and units that touch it."""
    types = [unicodedata.bidirectional(char) for char in chars]
    result = [kind == "N" for kind in kinds]
    count = len(chars)
    for i in range(1, count - 1):
        if types[i] in ("CS", "ES") and kinds[i - 1] == kinds[i + 1] == "N":
            # After Arabic letters a hyphen parts two numbers (rules W2 and W4).
            result[i] = types[i] == "CS" or not _after_arabic(types, i)
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


def mirrored(chars: Sequence[str], levels: Sequence[int]) -> dict[int, str]:
    """Signs and brackets as they are written, by their displayed place.

    PDFium turns some brackets round, and all signs in lines that are mostly right-to-left, also those in formulas. A
    bracket opens with the white space before it, and closes with that behind it; one that has both or neither opens
    where none of its kind is open.
    """
    result = {i: _SIGNS[char] for i, char in enumerate(chars) if levels[i] == 2 and 1 in levels and char in _SIGNS}
    if not any(levels):
        return result
    places = logical_places(levels)
    for pair in _BRACKETS:
        own = [place for place in places if chars[place] in pair]
        if all(levels[place] == 0 for place in own) and _is_nested([chars[place] for place in own], pair):
            continue  # of words from left to right, which PDFium leaves as they are
        depth = 0
        for order, place in enumerate(places):
            if chars[place] not in pair:
                continue
            before = chars[places[order - 1]] if order else " "
            after = chars[places[order + 1]] if order + 1 < len(places) else " "
            begins, ends = before.isspace(), after.isspace() or after in _ENDS
            opens = begins if begins != ends else depth == 0
            depth = depth + 1 if opens else max(0, depth - 1)
            result[place] = pair[0] if opens else pair[1]
    return result


def _is_nested(brackets: Sequence[str], pair: str) -> bool:
    depths = list(accumulate(1 if char == pair[0] else -1 for char in brackets))
    return not depths or (min(depths) >= 0 and depths[-1] == 0)


def _inside_brackets(chars: Sequence[str], levels: Sequence[int], brackets: Mapping[int, str]) -> set[int]:
    """Places of spaces behind opening brackets and before closing ones."""
    places = logical_places(levels)
    return {
        space
        for a, b in pairwise(places)
        for bracket, space, side in ((a, b, 0), (b, a, 1))
        if chars[space].isspace() and any(brackets.get(bracket) == pair[side] for pair in _BRACKETS)
    }
