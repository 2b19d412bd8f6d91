"""LaTeX of a formula from its symbols and the thin rules among them, by geometry alone.

A formula is made from the inside out: rules, shortest first, become fractions, roots and bars over what stands above
and below them; accents take their letters; rows between large delimiters become matrices; what is left is read from
left to right, and what stands off the line is raised or lowered. Nothing is ever dropped: a symbol that fits nowhere
is read where it stands. All distances are in units of the font size (em), where they come from TeX's own rules
(The TeXbook, appendix G): scripts are off by 0.15 em at least, the axis is 0.25 em above the baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from pagemill.document.geometry import Box, union_box
from pagemill.document.symbols import Symbol
from pagemill.formulas import signs
from pagemill.formulas.check import renders
from pagemill.formulas.line import (
    FULL_SIZE,
    Item,
    are_alike,
    baseline_of,
    fence_marks,
    is_apart,
    is_script,
    is_script_of,
    with_limits,
    with_words,
)
from pagemill.formulas.nodes import AXIS, Node, are_near, node_of, without_pieces

MOST_SYMBOLS = 1_500
"""A page of formulas holds about that many symbols; in one formula they are not a formula."""
_ROW_PITCH = 0.8
"""Minimum distance of two rows: TeX sets 1.2, and 0.9 in the smallest matrix."""
_HOLDS_ROWS = 1.9
"""Minimum height of a delimiter around two rows."""
_COLUMN_GAP = 0.7
"""Minimum space between two columns; TeX sets 1.0."""
_QUAD = 0.95
_BINOMIAL_PITCH = 1.28
"""Minimum distance of the rows of a binomial coefficient (1.36 in TeX), which a column vector does not have (1.2)."""
_BAR_GAP, _CHAIN_GAP = 0.8, 0.35
"""Farthest that a numerator is from its bar, and one part of it from the next."""


def latex_of_symbols(symbols: Sequence[Symbol], rules: Sequence[Box] = ()) -> str | None:
    """The LaTeX of one formula, or None where none that renders can be made.

    Args:
        symbols: The symbols of the formula alone, in any order.
        rules: Thin level lines in its frame.
    """
    if not 0 < len(symbols) <= MOST_SYMBOLS:
        return None
    # Some fonts draw large signs at a size of their own.
    body = max([s.size for s in symbols if s.text.isalnum()] or [s.size for s in symbols])
    nodes = without_pieces([node_of(symbol, body) for symbol in symbols])
    if any(not node.latex and node.kind == "ordinary" for node in nodes):
        return None  # a glyph that nobody knows
    try:
        latex = _layout(_with_bars(nodes, list(rules))).latex.strip()
    except RecursionError:
        return None
    # What does not render would be shown as its source; the plain text of the formula is better than that.
    return latex if renders(latex) else None


# --- rules: fractions, roots, bars


def _with_bars(nodes: list[Node], rules: list[Box]) -> list[Node]:
    """Nodes with what rules make of them done, from the shortest rule to the longest."""
    braces = [node for node in nodes if node.kind == "brace"]
    # Short first: the bar of an inner fraction is shorter than the one around it, so it is done when that is reached.
    rules = sorted(rules, key=lambda rule: rule[2] - rule[0])
    for place, rule in enumerate(rules):
        if any(are_near(((rule[0] + rule[2]) / 2, (rule[1] + rule[3]) / 2), brace.middle, 0.4 * brace.size)
               or (brace.box[1] - 1 < (rule[1] + rule[3]) / 2 < brace.box[3] + 1
               and min(abs(rule[0] - brace.box[2]), abs(rule[2] - brace.box[0])) < 0.2 * brace.size)
               for brace in braces):  # fmt: skip
            continue  # the arms of a brace
        nodes = _with_bar(nodes, rule, rules[place + 1 :])
    for root in [node for node in nodes if node.kind == "root"]:
        nodes = _with_root(nodes, root, None)
    return nodes


def _with_bar(nodes: list[Node], rule: Box, longer: Sequence[Box]) -> list[Node]:
    x1, y1, x2, y2 = rule
    y = (y1 + y2) / 2
    # A longer bar above or below belongs to an outer fraction: what is beyond it is not part of this one.
    over = [other for other in longer if min(x2, other[2]) - max(x1, other[0]) > 0.5 * (x2 - x1)]
    highest = max((other[3] for other in over if other[3] < y1), default=float("-inf"))
    lowest = min((other[1] for other in over if other[1] > y2), default=float("inf"))
    inside = [n for n in nodes if x1 < n.middle[0] < x2]
    em = max((n.size for n in inside), default=0.0)
    if not em:
        return nodes
    for root in nodes:
        # TeX sets a root as a sign and a rule that begins where the sign ends: this rule is its bar, not that of a
        # fraction.
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
        return [*rest, Node(latex, box, y + AXIS * size, size, "part")]
    # What has text on one side alone is not a fraction. Over a single letter authors write \bar, which is shorter.
    bar = "underline" if above else "overline"
    if below and len(below) == 1 and below[0].text.isalpha() and len(below[0].text) == 1:
        bar = "bar"
    return [*rest, Node(rf"\{bar}{{{done[0].latex}}}", box, done[0].baseline, done[0].size, "part")]


def _chain(nodes: list[Node], y: float, em: float, *, up: bool) -> list[Node]:
    """The nodes that follow on each other without a gap, away from a bar at ``y``."""
    taken: list[Node] = []
    # A numerator stands off its bar farther than its own parts from each other.
    edge, reach = y, _BAR_GAP * em
    for node in sorted(nodes, key=lambda n: -n.box[3] if up else n.box[1]):
        gap = edge - node.box[3] if up else node.box[1] - edge
        if gap > reach:
            break
        taken.append(node)
        edge = min(edge, node.box[1]) if up else max(edge, node.box[3])
        reach = _CHAIN_GAP * em
    return taken


def _with_root(nodes: list[Node], root: Node, rule: Box | None) -> list[Node]:
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
        and n.size < FULL_SIZE * em
        and root.box[0] - 0.1 * em < n.box[2] < root.box[2]
        and root.box[1] - 0.6 * em < n.middle[1] < root.middle[1] + 0.2 * em
    ]
    rest = [n for n in nodes if n is not root and n not in below and n not in degree]
    if not below:
        return [*rest, Node(r"\surd", root.box, root.baseline, em)]
    inner = _layout(below)
    box = union_box([root.box, inner.box, *(n.box for n in degree), *([rule] if rule else [])])
    shown = f"[{_layout(degree).latex}]" if degree else ""
    return [*rest, Node(rf"\sqrt{shown}{{{inner.latex}}}", box, inner.baseline, inner.size, "part")]


# --- a part without rules


def _layout(nodes: list[Node]) -> Node:
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
        # The rows of `aligned` have their relations below each other; in centred rows these are anywhere.
        aligned = max(known) - min(known) < 0.6 * size
    lines = [
        _split_line(row, start) if aligned else part.latex for row, start, part in zip(rows, starts, done, strict=True)
    ]
    name = "aligned" if aligned else "gathered"
    latex = rf"\begin{{{name}}} " + r" \\ ".join(lines) + rf" \end{{{name}}}"
    return Node(latex, box, (box[1] + box[3]) / 2 + AXIS * size, size, "part")


def _relation_start(row: Sequence[Node]) -> float | None:
    return min((node.box[0] for node in row if node.kind == "relation" and node.size > 0), default=None)


def _split_line(row: list[Node], start: float | None) -> str:
    """A row with the mark of alignment before its first relation."""
    if start is None:
        return _line(row).latex
    left = [node for node in row if node.middle[0] < start]
    right = [node for node in row if node.middle[0] >= start]
    return f"{_line(left).latex if left else ''} &{_line(right).latex}".strip()


def _rows(nodes: list[Node]) -> list[list[Node]]:
    """Nodes by row, from top to bottom."""
    largest = max(node.size for node in nodes)
    full = [node for node in nodes if node.size >= FULL_SIZE * largest and node.kind not in ("accent", "brace")]
    groups: list[list[Node]] = []
    # By signs of full size only: baselines of scripts lie between those of rows.
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
    # Closer than rows are set: scripts or a tall fraction. To split these would tear the formula.
    if any(b - a < _ROW_PITCH * largest for a, b in pairwise(lines)):
        return [nodes]
    bands = [(min(n.box[1] for n in group), max(n.box[3] for n in group)) for group in solid]
    rows: list[list[Node]] = [[] for _ in solid]
    member = {id(node): i for i, group in enumerate(solid) for node in group}
    for node in nodes:
        y = node.middle[1]
        nearest = min(range(len(bands)), key=lambda i: max(bands[i][0] - y, y - bands[i][1]))
        # Scripts, accents and braces go with the row that they are nearest to.
        rows[member.get(id(node), nearest)].append(node)
    return rows


def _is_stray(group: list[Node], groups: list[list[Node]], em: float) -> bool:
    """Whether a group of one sign stands within the height of another group."""
    if len(group) > 1:
        return False
    y = group[0].middle[1]
    others = [other for other in groups if other is not group]
    return any(min(n.box[1] for n in o) - 0.1 * em < y < max(n.box[3] for n in o) + 0.1 * em for o in others)


def _with_arrows(nodes: list[Node]) -> list[Node]:
    """Arrows that stand over a single letter turned to accents."""
    for arrow in [node for node in nodes if node.text == "→" and node.width < 1.2 * node.size]:
        x = arrow.middle[0]
        below = [n for n in nodes if n is not arrow and n.box[0] < x < n.box[2] and n.middle[1] > arrow.box[3]]
        if below:
            base = min(below, key=lambda n: n.box[1])
            # The arrow of a vector is set lower than what stands beside it would be.
            if (
                base.size >= FULL_SIZE * arrow.size
                and base.box[1] - arrow.box[3] < 0.35 * arrow.size
                and (base.kind in ("ordinary", "letter") and base.width < arrow.width + 0.3 * arrow.size)
            ):
                arrow.kind, arrow.text = "accent", "\u20d7"
    return nodes


def _with_accents(nodes: list[Node]) -> list[Node]:
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
        # A wide hat spans what is below it; a narrow one belongs to the sign nearest to its middle.
        if len(wide) > 1 and accent.width > 0.6 * em and name in signs.WIDE:
            base, name = wide, signs.WIDE[name]
        else:
            base = sorted(under, key=lambda n: (abs(n.box[1] - accent.box[3]) + abs(n.middle[0] - x)))[:1]
        nodes = [node for node in nodes if node is not accent and node not in base]
        if base:
            inner = _layout(base) if len(base) > 1 else base[0]
            box = union_box([accent.box, *(n.box for n in base)])
            latex = {"ı": "i", "ȷ": "j", r"\imath": r"\imath"}.get(inner.latex, inner.latex)
            nodes.append(Node(rf"\{name}{{{latex}}}", box, inner.baseline, inner.size, "part"))
        else:
            nodes.append(Node(rf"\{name}{{}}", accent.box, accent.baseline, em, "part"))
    return nodes


def _with_braces(nodes: list[Node]) -> list[Node]:
    """Braces over and under a part, with their labels. TeX makes each of four pieces, the outer ones of one kind."""
    pieces = sorted((node for node in nodes if node.kind == "brace"), key=lambda node: node.box[0])
    nodes = [node for node in nodes if node.kind != "brace"]
    groups: list[list[Node]] = []
    for piece in pieces:
        if groups and len(groups[-1]) < 4 and abs(piece.middle[1] - groups[-1][-1].middle[1]) < 0.5 * piece.size:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    for group in groups:
        box = union_box(piece.box for piece in group)
        em, over = group[0].size, group[0].text == "⏜"
        inside = [n for n in nodes if box[0] - 0.2 * em < n.middle[0] < box[2] + 0.2 * em]
        # A chain, as the next line of the formula may be above or below: a gap ends the part and its label.
        high = _chain([n for n in inside if n.middle[1] < box[1]], box[1], em, up=True)
        low = _chain([n for n in inside if n.middle[1] > box[3]], box[3], em, up=False)
        base, label = (low, high) if over else (high, low)
        if not base:
            nodes.append(Node(r"\overbrace{}" if over else r"\underbrace{}", box, box[3], em, "part"))
            continue
        inner = _layout(base)
        name, mark = ("overbrace", "^") if over else ("underbrace", "_")
        latex = rf"\{name}{{{inner.latex}}}" + (f"{mark}{{{_layout(label).latex}}}" if label else "")
        whole = union_box([box, *(n.box for n in (*base, *label))])
        nodes = [n for n in nodes if n not in base and n not in label]
        nodes.append(Node(latex, whole, inner.baseline, inner.size, "part"))
    return nodes


# --- matrices and cases

_ENVIRONMENTS = {"()": "pmatrix", "[]": "bmatrix", "{}": "Bmatrix", "||": "vmatrix", "∥∥": "Vmatrix", "‖‖": "Vmatrix"}


def _with_arrays(nodes: list[Node]) -> list[Node]:
    """Rows between large delimiters made matrices, those behind a lone brace made cases; the innermost first."""
    # One pair a round: an array takes the place of its nodes, and the delimiters around it are paired after that.
    for _ in range(len(nodes)):
        found = None
        large = [n for n in nodes if n.kind in ("open", "close", "fence") and n.height > _HOLDS_ROWS * n.size]
        large.sort(key=lambda n: n.box[0])
        for left, right in pairwise(large):
            if left.kind != "close" and right.kind != "open" and are_alike(left, right):
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
    # From the right, so that cases within cases are done before those around them.
    for brace in sorted(braces, key=lambda n: -n.box[0]):
        closed = any(n.text == "}" and are_alike(n, brace) and n.box[0] > brace.box[0] for n in nodes)
        inner = _between(nodes, brace, float("inf"))
        if not closed and inner and len(_rows(inner)) > 1:
            nodes = [n for n in nodes if n not in inner and n is not brace]
            nodes.append(_array(inner, brace, None))
    return nodes


def _between(nodes: list[Node], left: Node, end: float) -> list[Node]:
    reach = 0.4 * left.size
    return [
        n
        for n in nodes
        if n is not left
        and left.box[2] - 0.1 * left.size < n.middle[0] < end
        and left.box[1] - reach < n.middle[1] < left.box[3] + reach
    ]


def _array(inner: list[Node], left: Node, right: Node | None) -> Node:
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
    return Node(latex, box, (left.box[1] + left.box[3]) / 2 + AXIS * size, size, "part")


def _column_cuts(nodes: list[Node], em: float) -> list[float]:
    """Where columns end: in the middle of space that no row fills."""
    cuts = [float("-inf")]
    reached: float | None = None
    for node in sorted(nodes, key=lambda n: n.box[0]):
        if reached is not None and node.box[0] - reached > _COLUMN_GAP * em:
            cuts.append((reached + node.box[0]) / 2)
        reached = max(reached or node.box[2], node.box[2])
    return [*cuts, float("inf")]


def _line(nodes: list[Node]) -> Node:
    box = union_box(node.box for node in nodes)
    nodes = with_words(sorted(nodes, key=lambda node: node.box[0]))
    em = max(node.size for node in nodes)
    baseline = baseline_of(nodes, em)
    nodes, limits = with_limits(nodes, em)
    items: list[Item] = []
    for node in sorted(nodes, key=lambda node: node.box[0]):
        off = baseline - node.baseline
        if items and is_script_of(node, items[-1].low):
            items[-1].low.append(node)
            continue
        if node in limits or not items or not is_script(node, off, em):
            items.append(Item(node, *limits.get(node, ([], []))))
        elif off > 0:
            items[-1].high.append(node)
        else:
            items[-1].low.append(node)
    fences = fence_marks([item.node for item in items])
    return Node(_written(items, fences, em), box, baseline, em, "part")


def _written(items: Sequence[Item], fences: dict[Node, str], em: float) -> str:
    out = ""
    last: Item | None = None
    for item in items:
        node = item.node
        latex = node.latex
        if node.text in signs.DELIMITERS and node.text not in "/\\":
            latex = fences.get(node, "") + signs.DELIMITERS[node.text]
        # A bar with space on both sides is a relation, as in {x | x > 0}; that of an absolute value is close to its
        # content.
        if node.kind == "fence" and node not in fences and not (item.low or item.high) and is_apart(node, items):
            latex, node.kind = r"\mid" if node.text == "|" else r"\parallel", "relation"
        spaced = node.kind in ("relation", "operator")
        if last is not None:
            edge = max([last.node.box[2], *(n.box[2] for n in (*last.low, *last.high))])
            # So wide a gap is meant, as before the condition of a formula: LaTeX would close it.
            if node.box[0] - edge > _QUAD * em and not spaced and last.node.kind != "relation":
                out = f"{out} \\quad "
        if last is not None and (spaced or last.node.kind in ("relation", "operator")):
            out = f"{out} "
        out = signs.joined(out, latex)
        out = out + _scripts(item)
        last = item
    return " ".join(out.split(" ")).strip()


def _scripts(item: Item) -> str:
    low = f"_{{{_layout(item.low).latex}}}" if item.low else ""
    if not item.high:
        return low
    # LaTeX writes primes alone without a caret; beside another superscript they need a command.
    if all(set(n.latex) <= {"'"} for n in item.high):
        return "".join(n.latex for n in item.high) + low
    latex = _layout(item.high).latex
    if item.high and "'" in latex:
        latex = latex.replace("'", r"\prime ")
    return f"{low}^{{{latex}}}"
