"""LaTeX of a formula from its symbols and the thin rules among them, by geometry alone.

A formula is made from the inside out: rules, shortest first, become fractions, roots and bars over what stands above
and below them; accents take their letters; rows between large delimiters become matrices; what is left is read from
left to right, and what stands off the line is raised or lowered. Nothing is ever dropped: a symbol that fits nowhere
is read where it stands. All distances are in units of the font size (em), where they come from TeX's own rules
(The TeXbook, appendix G): scripts are off by 0.15 em at least, the axis is 0.25 em above the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from pagemill.document.geometry import union_box
from pagemill.formulas import signs
from pagemill.formulas.check import renders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.document.geometry import Box
    from pagemill.document.symbols import Symbol

MOST_SYMBOLS = 1_500
"""A page of formulas holds about that many symbols; in one formula they are no formula."""
_AXIS = 0.25
_FULL_SIZE = 0.85
"""Least size of a symbol on the line in units of the largest; scripts have 0.7."""
_OFF_LINE = 0.08
"""How far a smaller symbol stands off the line at least when it is a script."""
_FAR_OFF_LINE = 0.3
"""The same for one of full size."""
_ROW_PITCH = 0.8
"""Least distance of two rows: TeX sets 1.2, and 0.9 in the smallest matrix."""
_TALL = 1.3
"""Height of a delimiter that is larger than those of running text, which have 1.0."""
_HOLDS_ROWS = 1.9
"""Least height of a delimiter around two rows."""
_COLUMN_GAP = 0.7
"""Least space between two columns; TeX sets 1.0."""
_WORD_GAP, _SPACE = 0.2, 0.65
"""Most space between letters of a word, and between words."""
_QUAD = 0.95
_RELATION_SPACE = 0.2
"""Least space on both sides of a bar that is a relation; TeX sets 0.28, and beside a bar the side of its glyph."""
_BINOMIAL_PITCH = 1.28
"""Least distance of the rows of a binomial coefficient (1.36 in TeX), which a column vector does not have (1.2)."""
_BAR_GAP, _CHAIN_GAP = 0.8, 0.35
"""Farthest that a numerator is from its bar, and one part of it from the next."""
_SPOKEN = "if for and or otherwise where with when such that all is else on in of to the as"
_TEXT_WORDS = frozenset(_SPOKEN.split())


@dataclass(slots=True, eq=False)
class _Node:
    """A symbol, or a part of the formula that is done."""

    latex: str
    box: Box
    baseline: float
    size: float
    kind: str = "ordinary"
    """``ordinary``, ``letter`` (upright), ``word``, ``relation``, ``operator`` (binary), ``big``, ``function`` (with
    limits), ``open``, ``close``, ``fence``, ``accent``, ``root`` (its sign alone), ``brace``, ``part`` (done)."""
    text: str = ""

    @property
    def middle(self) -> tuple[float, float]:
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]

    @property
    def width(self) -> float:
        return self.box[2] - self.box[0]


_BINARY = frozenset("+−-±∓×÷·⋅∗∪∩∧∨⊕⊗⊙∖")


def latex_of_symbols(symbols: Sequence[Symbol], rules: Sequence[Box] = ()) -> str | None:
    """The LaTeX of one formula, or None where none that renders can be made.

    Args:
        symbols: Of the formula alone, in any order.
        rules: Thin level lines in its frame.
    """
    if not 0 < len(symbols) <= MOST_SYMBOLS:
        return None
    # Some fonts draw large signs at a size of their own.
    body = max([s.size for s in symbols if s.text.isalnum()] or [s.size for s in symbols])
    nodes = _without_pieces([_node(symbol, body) for symbol in symbols])
    if any(not node.latex and node.kind == "ordinary" for node in nodes):
        return None  # a glyph that nobody knows
    try:
        latex = _layout(_with_bars(nodes, list(rules))).latex.strip()
    except RecursionError:
        return None
    return latex if renders(latex) else None


def _node(symbol: Symbol, body: float) -> _Node:
    text, style = signs.letter_of(symbol.text, symbol.style)
    node = _Node(signs.latex_of(text, style), symbol.box, symbol.baseline, min(symbol.size, body), text=text)
    if text in signs.ACCENTS:
        node.kind = "accent"
    elif text == "√":
        node.kind = "root"
    elif text in "⏜⏟":
        node.kind = "brace"
    elif text in signs.BIG or text in signs.INTEGRALS:
        node.kind = "big"
    elif text in signs.OPEN:
        node.kind = "open"
    elif text in signs.CLOSE:
        node.kind = "close"
    elif text in signs.FENCES and text not in "/\\":
        node.kind = "fence"
    elif text in signs.RELATIONS:
        node.kind = "relation"
    elif text in _BINARY:
        node.kind = "operator"
    elif (text.isalpha() and style in "rs" and not signs.latex_of(text, style).startswith("\\")) or _is_word_sign(text):
        node.kind = "letter"
    return _centred(node)


def _is_word_sign(text: str) -> bool:
    """Whether a character is a letter that mathematics does not use."""
    return text.isalpha() and signs.latex_of(text, "r").startswith(r"\text")


def _centred(node: _Node) -> _Node:
    """The node with a baseline below its middle: fonts give those of large signs at will."""
    if node.kind in ("big", "open", "close", "fence"):
        node.baseline = node.middle[1] + _AXIS * node.size
    return node


# --- what was set in several glyphs


def _without_pieces(nodes: list[_Node]) -> list[_Node]:
    """Join the pieces of delimiters and roots, dots, and signs set one over the other."""
    nodes = _joined_pieces(nodes)
    nodes = _joined_dots(nodes)
    for over, under, latex in (
        ("\u0338", "=", r"\neq"),
        ("\u0338", "∈", r"\notin"),
        ("/", "∈", r"\notin"),
        ("\u0338", "∃", r"\nexists"),
        ("∼", "=", r"\cong"),
        ("↦", "→", r"\mapsto"),
        ("−", "→", r"\longrightarrow"),
        ("=", "⇒", r"\Longrightarrow"),
        ("⇐", "⇒", r"\Longleftrightarrow"),
        ("←", "→", r"\longleftrightarrow"),
    ):
        nodes = _joined_signs(nodes, over, under, latex)
    for slash in [node for node in nodes if node.text == "\u0338"]:
        slash.latex, slash.kind = r"\not", "relation"
    return nodes


def _joined_pieces(nodes: list[_Node]) -> list[_Node]:
    pieces = [node for node in nodes if node.text in signs.PIECES or node.text == signs.EXTENSION]
    if any(node.text == signs.EXTENSION for node in pieces):  # some producers name the first piece as the whole
        pieces += [node for node in nodes if node.kind in ("open", "close", "root") and node not in pieces]
    bars = [node for node in nodes if node.text in ("|", "∥")]
    rest = [node for node in nodes if node not in pieces and node not in bars]
    for group in (*_stacks(pieces), *_stacks(bars)):
        texts = [node.text for node in group if node.text != signs.EXTENSION]
        if len(group) == 1 and texts and texts[0] not in signs.PIECES:
            rest.append(group[0])
            continue
        sign = signs.PIECES.get(texts[0], texts[0]) if texts else "|"
        box = union_box(node.box for node in group)
        node = _Node(signs.DELIMITERS.get(sign, ""), box, 0.0, group[0].size, text=sign)
        node.kind = "open" if sign in signs.OPEN else "close" if sign in signs.CLOSE else "fence"
        if sign == "√":
            node.kind = "root"
        rest.append(_centred(node) if len(group) > 1 or node.kind != "fence" else group[0])
    return rest


def _stacks(nodes: list[_Node]) -> list[list[_Node]]:
    """Nodes that stand one on the other in one column."""
    stacks: list[list[_Node]] = []
    for node in sorted(nodes, key=lambda node: (node.box[1], node.box[0])):
        for stack in stacks:
            last = stack[-1]
            overlap = min(last.box[2], node.box[2]) - max(last.box[0], node.box[0])
            if overlap > 0 and -0.5 * node.size < node.box[1] - last.box[3] < 0.25 * node.size:
                stack.append(node)
                break
        else:
            stacks.append([node])
    return stacks


def _joined_dots(nodes: list[_Node]) -> list[_Node]:
    """Three dots in a row, a column or a diagonal are one sign."""
    dots = sorted((node for node in nodes if node.text in (".", "·", "⋅")), key=lambda node: (node.box[0], node.box[1]))
    gone: set[_Node] = set()
    made: list[_Node] = []
    for first in dots:
        if first in gone:
            continue
        for second in dots:
            step = (second.middle[0] - first.middle[0], second.middle[1] - first.middle[1])
            if second is first or second in gone or max(map(abs, step)) > 0.75 * first.size:
                continue
            if second.text != first.text or max(map(abs, step)) < 0.1 * first.size or step[0] < -0.1 * first.size:
                continue
            place = (second.middle[0] + step[0], second.middle[1] + step[1])
            third = next(
                (
                    n
                    for n in dots
                    if n not in (first, second) and n not in gone and _near(n.middle, place, 0.12 * first.size)
                ),
                None,
            )
            if third is None:
                continue
            level, upright = abs(step[1]) < 0.1 * first.size, abs(step[0]) < 0.1 * first.size
            latex = r"\vdots" if upright else r"\ddots" if not level else r"\ldots" if first.text == "." else r"\cdots"
            box = union_box(node.box for node in (first, second, third))
            baseline = first.baseline if level else (box[1] + box[3]) / 2 + _AXIS * first.size
            made.append(_Node(latex, box, baseline, first.size))
            gone |= {first, second, third}
            break
    return [*(node for node in nodes if node not in gone), *made]


def _near(a: tuple[float, float], b: tuple[float, float], reach: float) -> bool:
    return abs(a[0] - b[0]) < reach and abs(a[1] - b[1]) < reach


def _joined_signs(nodes: list[_Node], over: str, under: str, latex: str) -> list[_Node]:
    """Two signs that overlap, or that nothing separates, as one relation."""
    result = list(nodes)
    for first in [node for node in nodes if node.text == over]:
        for second in result:
            if second.text != under or second is first:
                continue
            overlap = min(first.box[2], second.box[2]) - max(first.box[0], second.box[0])
            off = abs(first.middle[1] - second.middle[1])
            if overlap > 0 and off < 0.5 * first.size and first.middle[0] <= second.middle[0] + 0.3 * first.size:
                box = union_box((first.box, second.box))
                result = [node for node in result if node not in (first, second)]
                result.append(_Node(latex, box, second.baseline, second.size, "relation"))
                break
    return result


# --- rules: fractions, roots, bars


def _with_bars(nodes: list[_Node], rules: list[Box]) -> list[_Node]:
    """Nodes with what rules make of them done, from the shortest rule to the longest."""
    braces = [node for node in nodes if node.kind == "brace"]
    rules = sorted(rules, key=lambda rule: rule[2] - rule[0])
    for place, rule in enumerate(rules):
        if any(_near(((rule[0] + rule[2]) / 2, (rule[1] + rule[3]) / 2), brace.middle, 0.4 * brace.size)
               or (brace.box[1] - 1 < (rule[1] + rule[3]) / 2 < brace.box[3] + 1
               and min(abs(rule[0] - brace.box[2]), abs(rule[2] - brace.box[0])) < 0.2 * brace.size)
               for brace in braces):  # fmt: skip
            continue  # the arms of a brace
        nodes = _with_bar(nodes, rule, rules[place + 1 :])
    for root in [node for node in nodes if node.kind == "root"]:
        nodes = _with_root(nodes, root, None)
    return nodes


def _with_bar(nodes: list[_Node], rule: Box, longer: Sequence[Box]) -> list[_Node]:
    x1, y1, x2, y2 = rule
    y = (y1 + y2) / 2
    over = [other for other in longer if min(x2, other[2]) - max(x1, other[0]) > 0.5 * (x2 - x1)]
    highest = max((other[3] for other in over if other[3] < y1), default=float("-inf"))
    lowest = min((other[1] for other in over if other[1] > y2), default=float("inf"))
    inside = [n for n in nodes if x1 < n.middle[0] < x2]
    em = max((n.size for n in inside), default=0.0)
    if not em:
        return nodes
    for root in nodes:
        if root.kind == "root" and abs(root.box[2] - x1) < 0.35 * em and abs(root.box[1] - y) < 0.4 * em:
            return _with_root(nodes, root, rule)
    narrow = [
        n for n in inside if n.box[0] > x1 - 0.3 * em and n.box[2] < x2 + 0.3 * em and highest < n.middle[1] < lowest
    ]
    above = _chain([n for n in narrow if n.middle[1] < y and n.box[3] < y + 0.25 * em], y, em, up=True)
    below = _chain([n for n in narrow if n.middle[1] > y and n.box[1] > y - 0.25 * em], y, em, up=False)
    if not above and not below:
        return nodes
    rest = [n for n in nodes if n not in above and n not in below]
    done = [_layout(part) for part in (above, below) if part]
    box = union_box([rule, *(part.box for part in done)])
    if above and below:
        size = max(part.size for part in done)
        latex = rf"\frac{{{done[0].latex}}}{{{done[1].latex}}}"
        return [*rest, _Node(latex, box, y + _AXIS * size, size, "part")]
    bar = "underline" if above else "overline"
    if below and len(below) == 1 and below[0].text.isalpha() and len(below[0].text) == 1:
        bar = "bar"
    return [*rest, _Node(rf"\{bar}{{{done[0].latex}}}", box, done[0].baseline, done[0].size, "part")]


def _chain(nodes: list[_Node], y: float, em: float, *, up: bool) -> list[_Node]:
    """The nodes that follow on each other without a gap, away from a bar at ``y``."""
    taken: list[_Node] = []
    edge, reach = y, _BAR_GAP * em
    for node in sorted(nodes, key=lambda n: -n.box[3] if up else n.box[1]):
        gap = edge - node.box[3] if up else node.box[1] - edge
        if gap > reach:
            break
        taken.append(node)
        edge = min(edge, node.box[1]) if up else max(edge, node.box[3])
        reach = _CHAIN_GAP * em
    return taken


def _with_root(nodes: list[_Node], root: _Node, rule: Box | None) -> list[_Node]:
    """A root with what stands under its bar; without a bar, with what stands next to it."""
    em = root.size
    x1, y, x2, _ = rule or (root.box[2], root.box[1], root.box[2] + 0.9 * em, 0.0)
    below = [
        n
        for n in nodes
        if n is not root
        and x1 - 0.15 * em < n.middle[0] < x2 + 0.1 * em
        and n.box[1] > y - 0.2 * em
        and n.middle[1] < root.box[3] + 0.1 * em
    ]
    if rule is None:
        below = sorted(below, key=lambda n: n.box[0])[:1]
    degree = [
        n
        for n in nodes
        if n is not root
        and n not in below
        and n.size < _FULL_SIZE * em
        and root.box[0] - 0.1 * em < n.box[2] < root.box[2]
        and root.box[1] - 0.6 * em < n.middle[1] < root.middle[1] + 0.2 * em
    ]
    rest = [n for n in nodes if n is not root and n not in below and n not in degree]
    if not below:
        return [*rest, _Node(r"\surd", root.box, root.baseline, em)]
    inner = _layout(below)
    box = union_box([root.box, inner.box, *(n.box for n in degree), *([rule] if rule else [])])
    shown = f"[{_layout(degree).latex}]" if degree else ""
    return [*rest, _Node(rf"\sqrt{shown}{{{inner.latex}}}", box, inner.baseline, inner.size, "part")]


# --- a part without rules


def _layout(nodes: list[_Node]) -> _Node:
    """A part of the formula done: rows, and on each the line from left to right."""
    nodes = _with_accents(_with_arrows(nodes))
    nodes = _with_braces(nodes)
    nodes = _with_arrays(nodes)
    rows = _rows(nodes)
    if len(rows) == 1:
        return _line(rows[0])
    done = [_line(row) for row in rows]
    box = union_box(row.box for row in done)
    size = max(row.size for row in done)
    starts = [_relation_start(row) for row in rows]
    aligned = len([s for s in starts if s is not None]) > 1
    if aligned:
        known = [s for s in starts if s is not None]
        aligned = max(known) - min(known) < 0.6 * size
    lines = [
        _split_line(row, start) if aligned else part.latex for row, start, part in zip(rows, starts, done, strict=True)
    ]
    name = "aligned" if aligned else "gathered"
    latex = rf"\begin{{{name}}} " + r" \\ ".join(lines) + rf" \end{{{name}}}"
    return _Node(latex, box, (box[1] + box[3]) / 2 + _AXIS * size, size, "part")


def _relation_start(row: Sequence[_Node]) -> float | None:
    return min((node.box[0] for node in row if node.kind == "relation" and node.size > 0), default=None)


def _split_line(row: list[_Node], start: float | None) -> str:
    """A row with the mark of alignment before its first relation."""
    if start is None:
        return _line(row).latex
    left = [node for node in row if node.middle[0] < start]
    right = [node for node in row if node.middle[0] >= start]
    return f"{_line(left).latex if left else ''} &{_line(right).latex}".strip()


def _rows(nodes: list[_Node]) -> list[list[_Node]]:
    """Nodes by the row that they stand in, from top to bottom."""
    largest = max(node.size for node in nodes)
    full = [node for node in nodes if node.size >= _FULL_SIZE * largest and node.kind not in ("accent", "brace")]
    groups: list[list[_Node]] = []
    for node in sorted(full, key=lambda node: node.baseline):
        if groups and node.baseline - groups[-1][-1].baseline < _ROW_PITCH * largest * 0.75:
            groups[-1].append(node)
        else:
            groups.append([node])
    # A single sign far off the line is a script of full size (a prime, a degree), not a row.
    solid = [group for group in groups if len(groups) == 1 or not _is_stray(group, groups, largest)]
    if len(solid) < 2:
        return [nodes]
    lines = [median(node.baseline for node in group) for group in solid]
    if any(b - a < _ROW_PITCH * largest for a, b in pairwise(lines)):
        return [nodes]
    bands = [(min(n.box[1] for n in group), max(n.box[3] for n in group)) for group in solid]
    rows: list[list[_Node]] = [[] for _ in solid]
    member = {id(node): i for i, group in enumerate(solid) for node in group}
    for node in nodes:
        y = node.middle[1]
        nearest = min(range(len(bands)), key=lambda i: max(bands[i][0] - y, y - bands[i][1]))
        rows[member.get(id(node), nearest)].append(node)
    return rows


def _is_stray(group: list[_Node], groups: list[list[_Node]], em: float) -> bool:
    """Whether a group of one sign stands within the height of another group."""
    if len(group) > 1:
        return False
    y = group[0].middle[1]
    others = [other for other in groups if other is not group]
    return any(min(n.box[1] for n in o) - 0.1 * em < y < max(n.box[3] for n in o) + 0.1 * em for o in others)


def _with_arrows(nodes: list[_Node]) -> list[_Node]:
    """Arrows that stand over a single letter turned to accents."""
    for arrow in [node for node in nodes if node.text == "→" and node.width < 1.2 * node.size]:
        x = arrow.middle[0]
        below = [n for n in nodes if n is not arrow and n.box[0] < x < n.box[2] and n.middle[1] > arrow.box[3]]
        if below:
            base = min(below, key=lambda n: n.box[1])
            # The arrow of a vector is set lower than what stands beside it would be.
            if (
                base.size >= _FULL_SIZE * arrow.size
                and base.box[1] - arrow.box[3] < 0.35 * arrow.size
                and (base.kind in ("ordinary", "letter") and base.width < arrow.width + 0.3 * arrow.size)
            ):
                arrow.kind, arrow.text = "accent", "\u20d7"
    return nodes


def _with_accents(nodes: list[_Node]) -> list[_Node]:
    """Accents put on what they stand over."""
    accents = [node for node in nodes if node.kind == "accent"]
    for accent in accents:
        x = accent.middle[0]
        em = accent.size
        others = [node for node in nodes if node.kind != "accent"]
        under = [
            n
            for n in others
            if n.box[0] - 0.12 * em < x < n.box[2] + 0.18 * em
            and -0.45 * em < n.box[1] - accent.box[3] < 0.6 * em
            and n.middle[1] > accent.middle[1]
        ]
        wide = [
            n
            for n in others
            if accent.box[0] - 0.15 * em < n.middle[0] < accent.box[2] + 0.15 * em
            and -0.3 * em < n.box[1] - accent.box[3] < 0.7 * em
        ]
        name = signs.ACCENTS[accent.text]
        if len(wide) > 1 and accent.width > 0.6 * em and name in signs.WIDE:
            base, name = wide, signs.WIDE[name]
        else:
            base = sorted(under, key=lambda n: (abs(n.box[1] - accent.box[3]) + abs(n.middle[0] - x)))[:1]
        nodes = [node for node in nodes if node is not accent and node not in base]
        if base:
            inner = _layout(base) if len(base) > 1 else base[0]
            box = union_box([accent.box, *(n.box for n in base)])
            latex = {"ı": "i", "ȷ": "j", r"\imath": r"\imath"}.get(inner.latex, inner.latex)
            nodes.append(_Node(rf"\{name}{{{latex}}}", box, inner.baseline, inner.size, "part"))
        else:
            nodes.append(_Node(rf"\{name}{{}}", accent.box, accent.baseline, em, "part"))
    return nodes


def _with_braces(nodes: list[_Node]) -> list[_Node]:
    """Braces over and under a part, with their labels. TeX makes each of four pieces, the outer ones of one kind."""
    pieces = sorted((node for node in nodes if node.kind == "brace"), key=lambda node: node.box[0])
    nodes = [node for node in nodes if node.kind != "brace"]
    groups: list[list[_Node]] = []
    for piece in pieces:
        if groups and len(groups[-1]) < 4 and abs(piece.middle[1] - groups[-1][-1].middle[1]) < 0.5 * piece.size:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    for group in groups:
        box = union_box(piece.box for piece in group)
        em, over = group[0].size, group[0].text == "⏜"
        inside = [n for n in nodes if box[0] - 0.2 * em < n.middle[0] < box[2] + 0.2 * em]
        high = _chain([n for n in inside if n.middle[1] < box[1]], box[1], em, up=True)
        low = _chain([n for n in inside if n.middle[1] > box[3]], box[3], em, up=False)
        base, label = (low, high) if over else (high, low)
        if not base:
            nodes.append(_Node(r"\overbrace{}" if over else r"\underbrace{}", box, box[3], em, "part"))
            continue
        inner = _layout(base)
        name, mark = ("overbrace", "^") if over else ("underbrace", "_")
        latex = rf"\{name}{{{inner.latex}}}" + (f"{mark}{{{_layout(label).latex}}}" if label else "")
        whole = union_box([box, *(n.box for n in (*base, *label))])
        nodes = [n for n in nodes if n not in base and n not in label]
        nodes.append(_Node(latex, whole, inner.baseline, inner.size, "part"))
    return nodes


# --- matrices and cases

_ENVIRONMENTS = {"()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "∥∥": "Vmatrix", "‖‖": "Vmatrix"}


def _with_arrays(nodes: list[_Node]) -> list[_Node]:
    """Rows between large delimiters made matrices, those behind a lone brace made cases; the innermost first."""
    for _ in range(len(nodes)):
        found = None
        large = [n for n in nodes if n.kind in ("open", "close", "fence") and n.height > _HOLDS_ROWS * n.size]
        large.sort(key=lambda n: n.box[0])
        for left, right in pairwise(large):
            if left.kind != "close" and right.kind != "open" and _alike(left, right):
                inner = _between(nodes, left, right.box[0])
                if inner and len(_rows(inner)) > 1:
                    found = (left, right, inner)
                    break
        if found is None:
            break
        left, right, inner = found
        nodes = [n for n in nodes if n not in inner and n is not left and n is not right]
        nodes.append(_array(inner, left, right))
    braces = [n for n in nodes if n.text == "{" and n.height > _HOLDS_ROWS * n.size]
    for brace in sorted(braces, key=lambda n: -n.box[0]):
        closed = any(n.text == "}" and _alike(n, brace) and n.box[0] > brace.box[0] for n in nodes)
        inner = _between(nodes, brace, float("inf"))
        if not closed and inner and len(_rows(inner)) > 1:
            nodes = [n for n in nodes if n not in inner and n is not brace]
            nodes.append(_array(inner, brace, None))
    return nodes


def _alike(a: _Node, b: _Node) -> bool:
    return abs(a.height - b.height) < 0.3 * a.height and abs(a.middle[1] - b.middle[1]) < 0.25 * a.height


def _between(nodes: list[_Node], left: _Node, end: float) -> list[_Node]:
    reach = 0.4 * left.size
    return [
        n
        for n in nodes
        if n is not left
        and left.box[2] - 0.1 * left.size < n.middle[0] < end
        and left.box[1] - reach < n.middle[1] < left.box[3] + reach
    ]


def _array(inner: list[_Node], left: _Node, right: _Node | None) -> _Node:
    rows = _rows(inner)
    size = max(node.size for node in inner)
    box = union_box([left.box, *(n.box for n in inner), *([right.box] if right else [])])
    cuts = _column_cuts(inner, size)
    cells = [[[n for n in row if a < n.middle[0] <= b] for a, b in pairwise(cuts)] for row in rows]
    body = r" \\ ".join(" & ".join(_layout(cell).latex if cell else "" for cell in row) for row in cells)
    lines = [median(node.baseline for node in row) for row in rows]
    pair = f"{left.text}{right.text}" if right else ""
    if pair == "()" and len(rows) == 2 and len(cuts) == 2 and lines[1] - lines[0] > _BINOMIAL_PITCH * size:
        latex = rf"\binom{{{_layout(rows[0]).latex}}}{{{_layout(rows[1]).latex}}}"
    elif right is None:
        latex = rf"\begin{{cases}} {body} \end{{cases}}"
    elif name := _ENVIRONMENTS.get(pair):
        latex = rf"\begin{{{name}}} {body} \end{{{name}}}"
    else:
        matrix = rf"\begin{{matrix}} {body} \end{{matrix}}"
        latex = rf"\left{left.latex} {matrix} \right{right.latex}"
    return _Node(latex, box, (left.box[1] + left.box[3]) / 2 + _AXIS * size, size, "part")


def _column_cuts(nodes: list[_Node], em: float) -> list[float]:
    """Where columns end: in the middle of space that no row fills."""
    cuts = [float("-inf")]
    reached: float | None = None
    for node in sorted(nodes, key=lambda n: n.box[0]):
        if reached is not None and node.box[0] - reached > _COLUMN_GAP * em:
            cuts.append((reached + node.box[0]) / 2)
        reached = max(reached or node.box[2], node.box[2])
    return [*cuts, float("inf")]


# --- one line


@dataclass(slots=True, eq=False)
class _Item:
    """A node on the line with its scripts."""

    node: _Node
    low: list[_Node]
    high: list[_Node]


def _line(nodes: list[_Node]) -> _Node:
    box = union_box(node.box for node in nodes)
    nodes = _with_words(sorted(nodes, key=lambda node: node.box[0]))
    em = max(node.size for node in nodes)
    baseline = _baseline(nodes, em)
    nodes, limits = _with_limits(nodes, em)
    items: list[_Item] = []
    for node in sorted(nodes, key=lambda node: node.box[0]):
        off = baseline - node.baseline
        if items and _is_script_of(node, items[-1].low):
            items[-1].low.append(node)
            continue
        if node in limits or not items or not _is_script(node, off, em):
            items.append(_Item(node, *limits.get(node, ([], []))))
        elif off > 0:
            items[-1].high.append(node)
        else:
            items[-1].low.append(node)
    fences = _pairs([item.node for item in items])
    return _Node(_written(items, fences, em), box, baseline, em, "part")


def _baseline(nodes: list[_Node], em: float) -> float:
    """Where most of the full-size symbols stand; the first of them where they disagree."""
    full = [
        n
        for n in nodes
        if n.size >= _FULL_SIZE * em and n.kind in ("ordinary", "letter", "word", "relation", "operator", "function")
    ]
    # A minus sign or a dot says as much as any other, but parts that are done may have been placed by estimate.
    return median(n.baseline for n in full or [n for n in nodes if n.size >= _FULL_SIZE * em] or nodes)


def _is_script_of(node: _Node, low: Sequence[_Node]) -> bool:
    """Whether a symbol is a script of what stands lowered right before it: it may reach the line again."""
    if not low:
        return False
    last = low[-1]
    beside = -0.3 * last.size < node.box[0] - last.box[2] < 0.3 * last.size
    return beside and node.size < _FULL_SIZE * last.size and abs(node.baseline - last.baseline) < 0.7 * last.size


def _is_script(node: _Node, off: float, em: float) -> bool:
    if node.height > 1.5 * em and node.kind in ("open", "close", "fence", "big"):
        return False
    return abs(off) > (_OFF_LINE if node.size < _FULL_SIZE * em else _FAR_OFF_LINE) * em


def _with_words(nodes: list[_Node]) -> list[_Node]:
    """Upright letters in a row joined to words, functions and text; nodes from left to right."""
    words: list[_Node] = []
    done: list[_Node] = []
    for node in nodes:
        if node.kind != "letter":
            done.append(node)
            continue
        for word in words:
            gap = node.box[0] - word.box[2]
            level = (
                abs(node.baseline - word.baseline) < 0.1 * word.size and abs(node.size - word.size) < 0.1 * word.size
            )
            limit = _WORD_GAP
            if word.text in signs.FUNCTIONS:  # the next word may be close, and be one with it: lim sup
                limit = _WORD_GAP + 0.1 if word.text == "lim" else _WORD_GAP / 2
            if level and -0.3 * word.size < gap < limit * word.size:
                word.text += node.text
                word.box = union_box((word.box, node.box))
                break
        else:
            words.append(_Node("", node.box, node.baseline, node.size, "word", node.text))
    return sorted([*done, *_spoken(words, done)], key=lambda node: node.box[0])


def _spoken(words: list[_Node], others: list[_Node]) -> list[_Node]:
    """Words with their LaTeX; those that stand next to each other are one text."""
    phrases: list[_Node] = []
    for word in sorted(words, key=lambda word: word.box[0]):
        last = phrases[-1] if phrases else None
        gap = word.box[0] - last.box[2] if last else 0.0
        level = last is not None and abs(word.baseline - last.baseline) < 0.1 * word.size
        free = last is not None and not any(last.box[2] < n.middle[0] < word.box[0] for n in others)
        spoken = word.text not in signs.FUNCTIONS and len(word.text) > 1
        if (
            last
            and level
            and free
            and spoken
            and gap < _SPACE * word.size
            and last.text not in signs.FUNCTIONS
            and len(last.text) > 1
        ):
            last.text += f" {word.text}"
            last.box = union_box((last.box, word.box))
        else:
            phrases.append(word)
    for phrase in phrases:
        if phrase.text in signs.FUNCTIONS:
            phrase.latex = f"\\{phrase.text}"
            phrase.kind = "function" if phrase.text in signs.LIMIT_FUNCTIONS else "word"
        elif " " in phrase.text or phrase.text in _TEXT_WORDS or not phrase.text.isascii():
            phrase.latex = rf"\text{{{phrase.text}}}"
        elif phrase.text in signs.LIMIT_FUNCTIONS:
            phrase.latex, phrase.kind = rf"\operatorname{{{phrase.text}}}", "function"
        else:
            phrase.latex = rf"\mathrm{{{phrase.text}}}" if len(phrase.text) > 1 else phrase.text
    return phrases


def _may_speak(word: _Node) -> bool:
    return word.text not in signs.FUNCTIONS and len(word.text) > 1


def _with_limits(nodes: list[_Node], em: float) -> tuple[list[_Node], dict[_Node, tuple[list[_Node], list[_Node]]]]:
    """What stands right below and above large operators, apart from the other nodes."""
    limits: dict[_Node, tuple[list[_Node], list[_Node]]] = {}
    for node in [n for n in nodes if n.kind in ("big", "function")]:
        free = [n for n in nodes if n is not node and n.kind not in ("big", "function")]
        low = _limit(free, node, em, lambda n, op: n.box[1] > op.box[3] - 0.12 * em)
        high = _limit(free, node, em, lambda n, op: n.box[3] < op.box[1] + 0.12 * em)
        if low or high:
            limits[node] = (low, high)
            nodes = [n for n in nodes if n not in low and n not in high]
    return nodes, limits


def _limit(nodes: list[_Node], operator: _Node, em: float, beyond: Callable[[_Node, _Node], bool]) -> list[_Node]:
    """The smaller symbols beyond an operator's edge that are over or under it, and those that go on from them."""
    small = [n for n in nodes if n.size < _FULL_SIZE * em and beyond(n, operator)]
    taken = [n for n in small if min(n.box[2], operator.box[2]) > max(n.box[0], operator.box[0])]
    if not taken or (operator.text in signs.INTEGRALS and all(n.middle[0] > operator.middle[0] for n in taken)):
        return []
    grown = True
    while grown:
        grown = False
        left, right = min(n.box[0] for n in taken), max(n.box[2] for n in taken)
        for node in small:
            if node not in taken and max(left - node.box[2], node.box[0] - right) < 0.3 * em:
                taken.append(node)
                grown = True
    return taken


def _pairs(nodes: list[_Node]) -> dict[_Node, str]:
    r"""``\left`` and ``\right`` for delimiters larger than those of running text that belong together."""
    marks: dict[_Node, str] = {}
    stack: list[_Node] = []
    for node in nodes:
        if node.kind == "open" or (node.kind == "fence" and not any(n.text == node.text for n in stack)):
            stack.append(node)
        elif node.kind in ("close", "fence"):
            while stack:
                left = stack.pop()
                if left.kind == node.kind == "fence" and left.text != node.text:
                    continue
                if left.kind != "fence" or node.kind == "fence":
                    if min(left.height, node.height) > _TALL * node.size and _alike(left, node):
                        marks[left], marks[node] = r"\left", r"\right"
                    break
    return _crossing_free(nodes, marks)


def _crossing_free(nodes: list[_Node], marks: dict[_Node, str]) -> dict[_Node, str]:
    """The marks, or none where they would not nest."""
    depth = 0
    for node in nodes:
        depth += {r"\left": 1, r"\right": -1}.get(marks.get(node, ""), 0)
        if depth < 0:
            return {}
    return marks if depth == 0 else {}


def _is_apart(node: _Node, items: Sequence[_Item]) -> bool:
    """Whether a bar has the spaces of a relation on both sides."""
    ends = [max([i.node.box[2], *(n.box[2] for n in (*i.low, *i.high))]) for i in items if i.node.box[2] <= node.box[0]]
    starts = [item.node.box[0] for item in items if item.node.box[0] >= node.box[2]]
    least = _RELATION_SPACE * node.size
    return bool(ends and starts) and node.box[0] - max(ends) > least and min(starts) - node.box[2] > least


def _written(items: Sequence[_Item], fences: dict[_Node, str], em: float) -> str:
    out = ""
    last: _Item | None = None
    for item in items:
        node = item.node
        latex = node.latex
        if node.text in signs.DELIMITERS and node.text not in "/\\":
            latex = fences.get(node, "") + signs.DELIMITERS[node.text]
        if node.kind == "fence" and node not in fences and not (item.low or item.high) and _is_apart(node, items):
            latex, node.kind = r"\mid" if node.text == "|" else r"\parallel", "relation"
        spaced = node.kind in ("relation", "operator")
        if last is not None:
            edge = max([last.node.box[2], *(n.box[2] for n in (*last.low, *last.high))])
            if node.box[0] - edge > _QUAD * em and not spaced and last.node.kind != "relation":
                out = f"{out} \\quad "
        if last is not None and (spaced or last.node.kind in ("relation", "operator")):
            out = f"{out} "
        out = signs.joined(out, latex)
        out = out + _scripts(item)
        last = item
    return " ".join(out.split(" ")).strip()


def _scripts(item: _Item) -> str:
    low = f"_{{{_layout(item.low).latex}}}" if item.low else ""
    if not item.high:
        return low
    if all(set(n.latex) <= {"'"} for n in item.high):
        return "".join(n.latex for n in item.high) + low
    latex = _layout(item.high).latex
    if item.high and "'" in latex:
        latex = latex.replace("'", r"\prime ")
    return f"{low}^{{{latex}}}"
