"""Tree edit distance similarity (TEDS) of two HTML tables.

The definition is that of Zhong, ShafieiBavani and Jimeno Yepes, "Image-based table recognition: data, model, and
evaluation" (ECCV 2020), as its reference scorer computes it: an ordered tree of the table's elements, insertion and
deletion at cost 1, renaming at cost 1 where tags or spans differ, else at the normalised Levenshtein distance of the
cells' characters and inline tags; ``1 - distance / nodes``, where nodes counts every element below ``<table>`` of the
larger table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lxml import etree, html
from rapidfuzz.distance import Levenshtein

from pagemill.errors import MissingDependencyError, TooLargeError

if TYPE_CHECKING:
    from lxml.html import HtmlElement

MAX_NODES = 3000
"""Most tree nodes of one table: the exact distance takes time and memory with the product of both sizes."""


@dataclass(slots=True, eq=False)
class _Node:
    tag: str
    spans: tuple[int, int] = (1, 1)
    content: tuple[str, ...] = ()
    children: list[_Node] = field(default_factory=list)


class _Costs:
    """The cost model, in the shape that apted asks for."""

    valuecls = float

    def rename(self, a: _Node, b: _Node) -> float:
        if a.tag != b.tag or a.spans != b.spans:
            return 1.0
        if not a.content and not b.content:
            return 0.0
        return Levenshtein.distance(a.content, b.content) / max(len(a.content), len(b.content))

    def delete(self, node: _Node) -> float:
        return 1.0

    def insert(self, node: _Node) -> float:
        return 1.0

    def children(self, node: _Node) -> list[_Node]:
        return node.children


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
        MissingDependencyError: apted is not installed.
        TooLargeError: A table has more than `MAX_NODES` nodes.
    """
    try:
        from apted import APTED
    except ImportError as error:
        raise MissingDependencyError("TEDS needs the package apted", remedy="Install it: pip install apted") from error

    predicted, true = _first_table(predicted_html), _first_table(true_html)
    if predicted is None or true is None:
        return 0.0
    nodes = max(_descendants(predicted), _descendants(true))
    if nodes > MAX_NODES:
        raise TooLargeError(f"a table of {nodes} elements is too large for TEDS (at most {MAX_NODES})")
    trees = (_tree(predicted, structure_only), _tree(true, structure_only))
    if not nodes:
        return 1.0
    return 1.0 - float(APTED(*trees, _Costs()).compute_edit_distance()) / nodes


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


def _descendants(table: HtmlElement) -> int:
    return sum(1 for _ in table.iterdescendants(etree.Element))


def _tree(element: HtmlElement, structure_only: bool) -> _Node:
    if element.tag in ("td", "th"):
        content = () if structure_only else tuple(_tokens(element))
        return _Node("td", (_span(element, "colspan"), _span(element, "rowspan")), content)
    children = [_tree(child, structure_only) for child in element.iterchildren(etree.Element)]
    return _Node(str(element.tag), children=children)


def _span(element: HtmlElement, name: str) -> int:
    try:
        return int(element.get(name, "1"))
    except ValueError:
        return 1


def _tokens(cell: HtmlElement) -> list[str]:
    """Characters and inline tags of a cell, in document order."""
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
