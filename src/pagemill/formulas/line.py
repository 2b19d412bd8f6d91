"""What stands on one line of a formula: words, limits of operators, scripts, delimiters that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import msgspec

from pagemill.document.geometry import union_box
from pagemill.formulas import signs
from pagemill.formulas.nodes import Node

FULL_SIZE = 0.85
"""Minimum size of a symbol on the line in units of the largest; scripts have 0.7."""
_OFF_LINE = 0.08
"""How far a smaller symbol stands off the line at least when it is a script."""
_FAR_OFF_LINE = 0.3
"""The same for one of full size."""
_TALL = 1.3
"""Height of a delimiter that is larger than those of running text, which have 1.0."""
_WORD_GAP, _SPACE = 0.2, 0.65
"""Most space between letters of a word, and between words."""
_RELATION_SPACE = 0.2
"""Minimum space on both sides of a bar that is a relation; TeX sets 0.28, and beside a bar the side of its glyph."""
_LIMIT_GAP = 0.45
"""Most space between the symbols of a limit, in units of the operator's line: around a relation some set 0.35."""
_SPOKEN = "if for and or otherwise where with when such that all is else on in of to the as"
_TEXT_WORDS = frozenset(_SPOKEN.split())


def are_alike(a: Node, b: Node) -> bool:
    """Whether two delimiters have one height and one level."""
    return abs(a.height - b.height) < 0.3 * a.height and abs(a.middle[1] - b.middle[1]) < 0.25 * a.height


class Item(msgspec.Struct, eq=False):
    """A node on the line with its scripts."""

    node: Node
    low: list[Node]
    high: list[Node]


def baseline_of(nodes: list[Node], em: float) -> float:
    """Where most of the full-size symbols stand; the first of them where they disagree."""
    full = [
        n
        for n in nodes
        if n.size >= FULL_SIZE * em and n.kind in ("ordinary", "letter", "word", "relation", "operator", "function")
    ]
    # A minus sign or a dot counts as much as any other, but parts that are done may have been placed by estimate.
    return median(n.baseline for n in full or [n for n in nodes if n.size >= FULL_SIZE * em] or nodes)


def is_script_of(node: Node, low: Sequence[Node]) -> bool:
    """Whether a symbol is a script of what stands lowered right before it: it may reach the line again."""
    if not low:
        return False
    last = low[-1]
    beside = -0.3 * last.size < node.box[0] - last.box[2] < 0.3 * last.size
    return beside and node.size < FULL_SIZE * last.size and abs(node.baseline - last.baseline) < 0.7 * last.size


def is_script(node: Node, off: float, em: float) -> bool:
    """Whether a symbol so far off the line is raised or lowered, and not only drawn unevenly."""
    # Fonts give large signs any baseline, so that their place says nothing.
    if node.height > 1.5 * em and node.kind in ("open", "close", "fence", "big"):
        return False
    return abs(off) > (_OFF_LINE if node.size < FULL_SIZE * em else _FAR_OFF_LINE) * em


def with_words(nodes: list[Node]) -> list[Node]:
    """Upright letters in a row joined to words, functions and text; nodes from left to right."""
    words: list[Node] = []
    done: list[Node] = []
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
            words.append(Node("", node.box, node.baseline, node.size, "word", node.text))
    return sorted([*done, *_spoken(words, done)], key=lambda node: node.box[0])


def _spoken(words: list[Node], others: list[Node]) -> list[Node]:
    """Words with their LaTeX; those that stand next to each other are one text."""
    phrases: list[Node] = []
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


def with_limits(nodes: list[Node], em: float) -> tuple[list[Node], dict[Node, tuple[list[Node], list[Node]]]]:
    """What stands right below and above large operators, apart from the other nodes."""
    limits: dict[Node, tuple[list[Node], list[Node]]] = {}
    for node in [n for n in nodes if n.kind in ("big", "function")]:
        free = [n for n in nodes if n is not node and n.kind not in ("big", "function")]
        low = _limit(free, node, em, lambda n, op: n.box[1] > op.box[3] - 0.12 * em)
        high = _limit(free, node, em, lambda n, op: n.box[3] < op.box[1] + 0.12 * em)
        if low or high:
            limits[node] = (low, high)
            nodes = [n for n in nodes if n not in low and n not in high]
    return nodes, limits


def _limit(nodes: list[Node], operator: Node, em: float, beyond: Callable[[Node, Node], bool]) -> list[Node]:
    """The smaller symbols beyond an operator's edge that are over or under it, and those that continue from them."""
    small = [n for n in nodes if n.size < FULL_SIZE * em and beyond(n, operator)]
    taken = [n for n in small if min(n.box[2], operator.box[2]) > max(n.box[0], operator.box[0])]
    # Beside the slanted sign of an integral stand its limits as scripts; only above and below it they are limits.
    if not taken or (operator.text in signs.INTEGRALS and all(n.middle[0] > operator.middle[0] for n in taken)):
        return []
    grown = True
    while grown:
        grown = False
        left, right = min(n.box[0] for n in taken), max(n.box[2] for n in taken)
        for node in small:
            if node not in taken and max(left - node.box[2], node.box[0] - right) < _LIMIT_GAP * em:
                taken.append(node)
                grown = True
    return taken


def fence_marks(nodes: list[Node]) -> dict[Node, str]:
    r"""``\left`` and ``\right`` for delimiters larger than those of running text that belong together."""
    marks: dict[Node, str] = {}
    stack: list[Node] = []
    for node in nodes:
        if node.kind == "open" or (node.kind == "fence" and not any(n.text == node.text for n in stack)):
            stack.append(node)
        elif node.kind in ("close", "fence"):
            while stack:
                left = stack.pop()
                # A bar that is still open at a closing bracket has no partner: it is a relation, or a norm of another
                # kind.
                if left.kind == node.kind == "fence" and left.text != node.text:
                    continue
                if left.kind != "fence" or node.kind == "fence":
                    if min(left.height, node.height) > _TALL * node.size and are_alike(left, node):
                        marks[left], marks[node] = r"\left", r"\right"
                    break
    return _crossing_free(nodes, marks)


def _crossing_free(nodes: list[Node], marks: dict[Node, str]) -> dict[Node, str]:
    """The marks, or none where they would not nest."""
    depth = 0
    for node in nodes:
        depth += {r"\left": 1, r"\right": -1}.get(marks.get(node, ""), 0)
        if depth < 0:
            return {}
    # LaTeX refuses \left without its \right: then all delimiters keep the size of running text.
    return marks if depth == 0 else {}


def is_apart(node: Node, items: Sequence[Item]) -> bool:
    """Whether a bar has the spaces of a relation on both sides."""
    ends = [max([i.node.box[2], *(n.box[2] for n in (*i.low, *i.high))]) for i in items if i.node.box[2] <= node.box[0]]
    starts = [item.node.box[0] for item in items if item.node.box[0] >= node.box[2]]
    least = _RELATION_SPACE * node.size
    return bool(ends and starts) and node.box[0] - max(ends) > least and min(starts) - node.box[2] > least
