"""One result from the answers about several parts of a document.

The rules, which ``docs/extract.md`` states, too: objects are merged field by field; lists are joined in page order, and
a text or number that an earlier part gave already is left out; of several values of one field the first that is
founded wins, and the others are kept as alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pagemill.extraction.result import Alternative, Source
from pagemill.extraction.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from pagemill.extraction.schema import Path_


@dataclass(slots=True)
class Leaf:
    """A value with its place."""

    value: Any
    source: Source | None = None
    alternatives: list[Alternative] = field(default_factory=list)


def tree_of(values: Any, sources: Mapping[Path_, Source], path: Path_ = ()) -> Any:
    """Values of the same shape, each with its place."""
    if isinstance(values, dict):
        return {key: tree_of(value, sources, (*path, key)) for key, value in values.items()}
    if isinstance(values, list):
        return [tree_of(value, sources, (*path, index)) for index, value in enumerate(values)]
    return Leaf(values, sources.get(path))


def plain(tree: Any) -> Any:
    """The values of a tree alone."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list) else tree.value


def merged(first: Any, later: Any) -> Any:
    """A tree and that of a later part of the document; ``first`` is changed."""
    if isinstance(first, dict) and isinstance(later, dict):
        for key, value in later.items():
            first[key] = merged(first[key], value) if key in first else value
        return first
    if isinstance(first, list) and isinstance(later, list):
        known = {_key(item): item for item in first if isinstance(item, Leaf)}
        for item in later:
            # Objects are kept even if equal: two rows of an invoice may have the same article, amount and price.
            if not isinstance(item, Leaf) or (earlier := known.get(_key(item))) is None:
                first.append(item)
            elif earlier.source is None:  # the model named it before it saw it
                earlier.source = item.source
        return first
    if isinstance(first, Leaf) and isinstance(later, Leaf):
        return _chosen(first, later)
    is_nothing = isinstance(first, Leaf) and first.value is None
    return later if is_nothing else first  # two kinds of value: a schema that allows both is rare


def _chosen(first: Leaf, later: Leaf) -> Leaf:
    if later.value is None:
        return first
    if first.value is None:
        return later
    # A value that is found on a page beats one that is not, whichever came first: the latter may be invented.
    if first.source is None and later.source is not None:
        first, later = later, first
    others = [*first.alternatives, *later.alternatives]
    if _key(first) != _key(later):
        others.append(Alternative(value=later.value, source=later.source))
    first.alternatives = others[: THRESHOLDS.max_alternatives]
    return first


def _key(leaf: Leaf) -> tuple[str, str]:
    return type(leaf.value).__name__, str(leaf.value)
