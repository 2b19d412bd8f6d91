"""Diagrams of Office (SmartArt) as nested lists: their texts, in the order and at the depth that their data give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pagemill.readers.base import MOST_DEPTH, Block, Inline, list_item

_DGM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
RELATIONS = f"{_DGM}relIds"
"""The element that stands for a diagram."""
DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
"""Its attribute: the relation to its data."""


def diagram_blocks(root: Any) -> Iterator[Block]:
    """The texts of a diagram.

    Args:
        root: Element ``dgm:dataModel``.
    """
    points = {each.get("modelId"): each for each in root.iter(f"{_DGM}pt")}
    inner: defaultdict[str | None, list[tuple[int, str]]] = defaultdict(list)
    for each in root.iter(f"{_DGM}cxn"):
        if each.get("type", "parOf") == "parOf":
            order = each.get("srcOrd") or ""
            inner[each.get("srcId")].append((int(order) if order.isdecimal() else 0, each.get("destId") or ""))
    waiting = [(name, -1) for name, point in points.items() if point.get("type") == "doc"]
    seen: set[str | None] = set()
    while waiting:
        name, depth = waiting.pop()
        # Connections of a damaged file lead in circles, or nowhere.
        if name in seen or name not in points:
            continue
        seen.add(name)
        lines = ("".join(each.text or "" for each in line.iter(f"{_A}t")) for line in points[name].iter(f"{_A}p"))
        text = Inline(" ".join(filter(None, lines)))
        if depth >= 0 and text.text.strip(" \t\n•"):
            yield from list_item(text, depth, "•")
        waiting += [(other, min(depth + 1, MOST_DEPTH)) for _, other in sorted(inner[name], reverse=True)]
        if not waiting:  # points that nothing leads to
            loose = (each for each, point in points.items() if each not in seen and point.get("type", "node") == "node")
            waiting += [(each, 0) for each in islice(loose, 1)]
