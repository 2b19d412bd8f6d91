"""Symbols as nodes of a formula, and the signs that a font sets in several glyphs put together."""

from __future__ import annotations

import msgspec

from pagemill.document.geometry import Box, union_box
from pagemill.document.symbols import Symbol
from pagemill.formulas import signs

AXIS = 0.25


class Node(msgspec.Struct, eq=False):
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
        """Middle as x and y."""
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2

    @property
    def height(self) -> float:
        """Height of its box."""
        return self.box[3] - self.box[1]

    @property
    def width(self) -> float:
        """Width of its box."""
        return self.box[2] - self.box[0]


_BINARY = frozenset("+−-±∓×÷·⋅∗∪∩∧∨⊕⊗⊙∖")


def node_of(symbol: Symbol, body: float) -> Node:
    """A symbol as a node of its kind, no larger than ``body``."""
    text, style = signs.letter_of(symbol.text, symbol.style)
    node = Node(signs.latex_of(text, style), symbol.box, symbol.baseline, min(symbol.size, body), text=text)
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


def _centred(node: Node) -> Node:
    """The node with a baseline below its middle: fonts give those of large signs at will."""
    if node.kind in ("big", "open", "close", "fence"):
        node.baseline = node.middle[1] + AXIS * node.size
    return node


def without_pieces(nodes: list[Node]) -> list[Node]:
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
    # A slash over a sign that has no negated command: \not strikes any relation.
    for slash in [node for node in nodes if node.text == "\u0338"]:
        slash.latex, slash.kind = r"\not", "relation"
    return nodes


def _joined_pieces(nodes: list[Node]) -> list[Node]:
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
        node = Node(signs.DELIMITERS.get(sign, ""), box, 0.0, group[0].size, text=sign)
        node.kind = "open" if sign in signs.OPEN else "close" if sign in signs.CLOSE else "fence"
        if sign == "√":
            node.kind = "root"
        rest.append(_centred(node) if len(group) > 1 or node.kind != "fence" else group[0])
    return rest


def _stacks(nodes: list[Node]) -> list[list[Node]]:
    """Nodes that stand one on the other in one column."""
    stacks: list[list[Node]] = []
    for node in sorted(nodes, key=lambda node: (node.box[1], node.box[0])):
        for stack in stacks:
            last = stack[-1]
            overlap = min(last.box[2], node.box[2]) - max(last.box[0], node.box[0])
            # Pieces are drawn to touch, and overlap where a delimiter is not a multiple of their height.
            if overlap > 0 and -0.5 * node.size < node.box[1] - last.box[3] < 0.25 * node.size:
                stack.append(node)
                break
        else:
            stacks.append([node])
    return stacks


def _joined_dots(nodes: list[Node]) -> list[Node]:
    """Three dots in a row, a column or a diagonal are one sign."""
    dots = sorted((node for node in nodes if node.text in (".", "·", "⋅")), key=lambda node: (node.box[0], node.box[1]))
    gone: set[Node] = set()
    made: list[Node] = []
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
            # One more step of the same length: a decimal point near two full stops is not an ellipsis.
            third = next(
                (
                    n
                    for n in dots
                    if n not in (first, second) and n not in gone and are_near(n.middle, place, 0.12 * first.size)
                ),
                None,
            )
            if third is None:
                continue
            level, upright = abs(step[1]) < 0.1 * first.size, abs(step[0]) < 0.1 * first.size
            latex = r"\vdots" if upright else r"\ddots" if not level else r"\ldots" if first.text == "." else r"\cdots"
            box = union_box(node.box for node in (first, second, third))
            baseline = first.baseline if level else (box[1] + box[3]) / 2 + AXIS * first.size
            made.append(Node(latex, box, baseline, first.size))
            gone |= {first, second, third}
            break
    return [*(node for node in nodes if node not in gone), *made]


def are_near(a: tuple[float, float], b: tuple[float, float], reach: float) -> bool:
    """Whether two points are closer than that, across and down."""
    return abs(a[0] - b[0]) < reach and abs(a[1] - b[1]) < reach


def _joined_signs(nodes: list[Node], over: str, under: str, latex: str) -> list[Node]:
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
                result.append(Node(latex, box, second.baseline, second.size, "relation"))
                break
    return result
