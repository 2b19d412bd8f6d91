"""Tree edit distance similarity (TEDS) of two HTML tables.

The definition is that of Zhong, ShafieiBavani and Jimeno Yepes, "Image-based table recognition: data, model, and
evaluation" (ECCV 2020), as its reference scorer computes it: an ordered tree of the table's elements, insertion and
deletion at cost 1, renaming at cost 1 where tags or spans differ, else at the normalised Levenshtein distance of the
cells' characters and inline tags; ``1 - distance / nodes``, where nodes counts every element below ``<table>`` of the
larger table.

The reference scorer takes its distances from the package apted. This is the exact distance, and the same number
wherever apted finds the least one: for all tables whose rows hold cells. With elements below ``<th>``, which the
reference scorer makes inner nodes, apted misses it now and then (`docs/evaluation.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from lxml import etree, html
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from pagemill.errors import TooLargeError
from pagemill_eval.tree_distance import tree_distance

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_NODES = 5000
"""Most tree nodes of one table: the exact distance takes time and memory with the product of both sizes. Two tables of
5,000 take 1.5 GB and 4 s (19 columns) to 23 s (9 columns)."""
MAX_TEXT_STEPS = 2e11
"""Bound on the product of both tables' characters, which the cells' distances take time with (about 5 s)."""
_PRIVATE = 0xF0000
"""First code point of plane 15, which is for private use: tags in a cell are coded as such characters."""


@dataclass(slots=True)
class LabelledTree:
    """A tree whose nodes have a label, and a content where it has a distance of its own."""

    parents: list[int] = field(default_factory=list)
    """Parents of nodes, as in :data:`~pagemill_eval.tree_distance.Tree`."""
    labels: list[object] = field(default_factory=list)
    """Nodes of different labels are renamed at cost 1."""
    contents: list[Sequence[str]] = field(default_factory=list)
    """A text, or a list of tokens; of nodes with equal labels the normalised Levenshtein distance counts."""

    def add(self, parent: int, label: object, content: Sequence[str] = "") -> int:
        """Append a node in document order and return its number; the root's parent is -1."""
        self.parents.append(parent)
        self.labels.append(label)
        self.contents.append(content)
        return len(self.parents) - 1

    def distance(self, other: LabelledTree) -> float:
        """Tree edit distance."""
        return tree_distance(tuple(self.parents), tuple(other.parents), _rename_costs(self, other))


def teds(predicted_html: str, true_html: str, structure_only: bool = False) -> float:
    """Score a predicted table against the true one.

    Header cells (``th``) count as ``td``, which is all that PubTabNet's truth has. Of each text the first table
    counts. HTML may be malformed; without a table on either side the score is 0.

    Args:
        predicted_html: Text that holds a ``<table>``.
        true_html: Text that holds a ``<table>``.
        structure_only: Leave the cells' content out (TEDS-S).

    Returns:
        Similarity, at most 1.

    Raises:
        TooLargeError: A table has more than `MAX_NODES` nodes, or both have too much text.
    """
    predicted, true = _first_table(predicted_html), _first_table(true_html)
    if predicted is None or true is None:
        return 0.0
    # The larger tree divides the distance, as published: padding a prediction with cells must cost.
    nodes = max(descendants(predicted), descendants(true))
    one, two = (table_tree(element, structure_only, ("td", "th")) for element in (predicted, true))
    return _similarity(one, two, nodes)


def reference_teds(
    predicted_html: str, true_html: str, structure_only: bool = False, most_nodes: int | None = None
) -> float:
    """The exact rules of the reference scorer, PubTabNet's.

    Only a table directly below ``<body>`` counts, so that a fragment without ``<html>`` scores 0; a header cell
    (``th``) has no text, and its spans are not compared. An error of the reference scorer, such as of spans that are no
    numbers, is a score of 0.

    Args:
        predicted_html: An HTML document.
        true_html: An HTML document.
        structure_only: Leave the cells' content out (TEDS-S).
        most_nodes: Instead of `MAX_NODES`.

    Returns:
        Similarity; below 0 where a wrong tree is larger than what counts as its nodes.

    Raises:
        TooLargeError: As of :func:`teds`.
    """
    predicted, true = _body_table(predicted_html), _body_table(true_html)
    if predicted is None or true is None:
        return 0.0
    nodes = max(descendants(predicted), descendants(true))
    if not nodes:
        return 0.0  # it divides by 0
    try:
        one, two = (table_tree(element, structure_only, ("td",), strict=True) for element in (predicted, true))
    except ValueError:
        return 0.0
    return _similarity(one, two, nodes, most_nodes)


def descendants(element: HtmlElement) -> int:
    """Number of elements below one."""
    return sum(1 for _ in element.iterdescendants(etree.Element))


def check_nodes(nodes: int, most: int | None = None) -> None:
    """Refuse trees that would take minutes.

    Raises:
        TooLargeError: There are more than ``most``, or `MAX_NODES`.
    """
    most = most or MAX_NODES
    if nodes > most:
        raise TooLargeError(f"a table of {nodes} elements is too large for TEDS (at most {most})")


def span_of(element: HtmlElement, name: str, strict: bool = False) -> int:
    """Value of ``colspan`` or ``rowspan``, 1 if there is none or it is not a number.

    Raises:
        ValueError: It is not a number, and strict.
    """
    try:
        return int(element.get(name, "1"))
    except ValueError:
        if strict:
            raise
        return 1


def _similarity(predicted: LabelledTree, true: LabelledTree, nodes: int, most_nodes: int | None = None) -> float:
    if predicted == true:  # however large
        return 1.0
    check_nodes(nodes, most_nodes)
    return 1.0 - predicted.distance(true) / nodes


def _first_table(text: str) -> HtmlElement | None:
    # libxml2 ends at a NUL, and refuses lone surrogates and, in str input, an encoding declaration.
    data = text.replace("\0", "").encode("utf-8", errors="replace")
    if not data.strip():
        return None
    parser = html.HTMLParser(remove_comments=True, remove_pis=True, encoding="utf-8")
    try:
        root = html.document_fromstring(data, parser=parser)
    except etree.ParserError:  # nothing but comments or whitespace
        return None
    return next(root.iter("table"), None)


def _body_table(text: str) -> HtmlElement | None:
    if not text:
        return None
    data = text.replace("\0", "").encode("utf-8", errors="replace")
    parser = html.HTMLParser(remove_comments=True, encoding="utf-8")
    try:
        root = html.fromstring(data, parser=parser)
    except (etree.ParserError, AssertionError):
        return None
    return root.find("body/table")


def _tokens(cell: HtmlElement) -> Sequence[str]:
    """Characters and inline tags of a cell, in document order."""
    if not len(cell):
        return cell.text or ""
    tokens = list(cell.text or "")
    for child in cell.iterchildren(etree.Element):
        tokens.append(f"<{child.tag}>")
        tokens += _tokens(child)
        if child.tag != "unk":
            tokens.append(f"</{child.tag}>")
        # The reference scorer drops what follows a cell nested in a cell.
        if child.tag != "td":
            tokens += list(child.tail or "")
    return tokens


def table_tree(
    element: HtmlElement,
    structure_only: bool,
    cells: tuple[str, ...],
    content: Callable[[HtmlElement], Sequence[str]] = _tokens,
    *,
    strict: bool = False,
) -> LabelledTree:
    """The tree of a table.

    Args:
        element: The table.
        structure_only: Leave the cells' content out.
        cells: Tags of its cells.
        content: Content of a cell.
        strict: See :func:`span_of`.

    Raises:
        ValueError: A span is not a number, and ``strict``.
    """
    tree = LabelledTree()
    waiting = [(element, -1)]
    while waiting:
        element, parent = waiting.pop()
        if element.tag in cells:
            label = ("td", span_of(element, "colspan", strict), span_of(element, "rowspan", strict))
            tree.add(parent, label, "" if structure_only else content(element))
            continue
        number = tree.add(parent, str(element.tag))
        waiting += [(child, number) for child in element.iterchildren(etree.Element, reversed=True)]
    return tree


def _rename_costs(one: LabelledTree, two: LabelledTree) -> NDArray[np.float64]:
    numbers: dict[object, int] = {}
    labels = [np.array([numbers.setdefault(label, len(numbers)) for label in tree.labels]) for tree in (one, two)]
    costs: NDArray[np.float64] = (labels[0][:, None] != labels[1]).astype(np.float64)
    rows, columns = ([index for index, content in enumerate(tree.contents) if content] for tree in (one, two))
    # A content against none is all distance; two without are equal.
    filled = [np.zeros(len(tree.parents), dtype=bool) for tree in (one, two)]
    filled[0][rows], filled[1][columns] = True, True
    costs[filled[0][:, None] != filled[1]] = 1.0
    if rows and columns:
        first, second = _strings([one.contents[row] for row in rows], [two.contents[column] for column in columns])
        texts = [sorted(set(each)) for each in (first, second)]
        if sum(map(len, texts[0])) * sum(map(len, texts[1])) > MAX_TEXT_STEPS:
            raise TooLargeError("two tables have too much text for TEDS")
        distances = cdist(*texts, scorer=Levenshtein.normalized_distance, dtype=np.float64)
        places = [{text: place for place, text in enumerate(each)} for each in texts]
        spread = distances[np.ix_([places[0][text] for text in first], [places[1][text] for text in second])]
        block = np.ix_(rows, columns)
        costs[block] = np.maximum(costs[block], spread)
    return costs


def _strings(*sides: list[Sequence[str]]) -> list[list[str]]:
    """Contents as texts, in which one character stands for each token."""
    if all(isinstance(content, str) for content in chain(*sides)):
        return [list(map(str, side)) for side in sides]
    characters = {character for content in chain(*sides) for token in content for character in token}
    free = (chr(code) for code in range(_PRIVATE, 0x110000) if chr(code) not in characters)
    coded: dict[str, str] = {}

    def code(token: str) -> str:
        if len(token) == 1:
            return token
        if token not in coded:
            coded[token] = next(free)
        return coded[token]

    return [
        [content if isinstance(content, str) else "".join(map(code, content)) for content in side] for side in sides
    ]
