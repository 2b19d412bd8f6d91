"""How much of a document's Markdown another Markdown text has: F1 per kind of element."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations, groupby
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rapidfuzz.distance import Indel

from roundtrips.markdown import BOLD, CODE, ITALIC, STRIKE, SUB, SUP, Block, Run, html_cells, parse, plain, spans

if TYPE_CHECKING:
    from collections.abc import Sequence

SAME_TEXT = 0.9
"""Normalised indel similarity from which two texts match, as the contract says."""
MEASURES = (
    *("words", "headings", "levels", "items", "depth", "code", "cells"),
    *("links", "emphasis", "strike", "inline_code", "scripts"),
)
_QUOTES = str.maketrans("‘’“”\u00a0\u202f\u2011", "''\"\"  -", "\u00ad\u200b\u200e\u200f\ufe0f")
_EACH_ITS_OWN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"


@dataclass
class Elements:
    """What a Markdown text has, in order. An element is its text and a key that must be equal, or be compared."""

    words: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, list[tuple[str, int | str]]] = field(
        default_factory=lambda: {k: [] for k in MEASURES if k not in {"words", "levels", "depth"}}
    )


def elements(markdown: str) -> Elements:
    """Elements of a Markdown text."""
    found = Elements()
    for block in parse(markdown):
        _collect(block, found, 0)
    return found


def _collect(block: Block, found: Elements, depth: int) -> None:
    kinds = found.kinds
    match block.kind:
        case "heading":
            kinds["headings"].append((_folded(plain(block.runs)), block.level))
            _collect_inline(block.runs, found, marks=False)
        case "paragraph":
            _collect_inline(block.runs, found, marks=True)
        case "list":
            for item in block.children:
                first = item.children[0] if item.children else None
                if first and first.kind == "paragraph" and plain(first.runs).strip():
                    kinds["items"].append((_folded(plain(first.runs)), depth + 1))
                for child in item.children:
                    _collect(child, found, depth + 1)
        case "code":
            kinds["code"].append((re.sub(r"\s+", "", _folded(block.text)), ""))
            found.words.update(words(block.text))
        case "table":
            for row in block.rows:
                for cell in row:
                    if text := _folded(plain(cell)):
                        kinds["cells"].append((text, ""))
                    _collect_inline(cell, found, marks=False)
        case "html":
            cells, text = html_cells(block.text)
            kinds["cells"] += [(_folded(cell), "") for cell in cells if cell]
            found.words.update(words(text))
        case _:
            for child in block.children:
                _collect(child, found, depth)


def _collect_inline(runs: Sequence[Run], found: Elements, *, marks: bool) -> None:
    kinds = found.kinds
    found.words.update(words(plain(runs)))
    for href, group in groupby(runs, lambda run: run.href):
        if href and href.startswith(("http://", "https://")):
            kinds["links"].append((_folded(plain(list(group))), _target(href)))
    for mark in (SUP, SUB):
        kinds["scripts"] += [(_plain_script(text), mark) for text in spans(runs, {mark})]
    for kind, of in (("emphasis", {BOLD, ITALIC}), ("strike", {STRIKE}), ("inline_code", {CODE})) if marks else ():
        kinds[kind] += [(_folded(text), "") for text in spans(runs, of)]


def _plain_script(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("−", "-")


def _target(href: str) -> str:
    """A target as browsers and Markdown parsers may both write it."""
    href = unquote(href)
    return href + "/" if re.fullmatch(r"https?://[^/?#]+", href) else href


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text).translate(_QUOTES)).strip()


def words(text: str) -> list[str]:
    """Words without the punctuation at their ends; each Han character and kana is a word."""
    spaced = re.sub(f"([{_EACH_ITS_OWN}])", r" \1 ", _folded(text))
    stripped = (re.sub(r"^[\W_]+|[\W_]+$", "", word) for word in spaced.split())
    return [word for word in stripped if word]


@dataclass
class Comparison:
    """Scores of a document by measure, for the kinds that it has, and what was missed and added."""

    scores: dict[str, float]
    missed: dict[str, list[str]]
    extra: dict[str, list[str]]


def compare(truth: Elements, other: Elements) -> Comparison:
    """Compare a text's elements with the true ones."""
    scores: dict[str, float] = {}
    missed: dict[str, list[str]] = {}
    extra: dict[str, list[str]] = {}
    if total := truth.words.total():
        scores["words"] = 2 * (truth.words & other.words).total() / (total + other.words.total())
        missed["words"] = [f"{w} ×{n}" for w, n in (truth.words - other.words).most_common()]
        extra["words"] = [f"{w} ×{n}" for w, n in (other.words - truth.words).most_common()]
    for kind, true in truth.kinds.items():
        out = other.kinds[kind]
        exact_key = kind in {"links", "scripts"}
        pairs = match(true, out, exact_key=exact_key)
        found, used = {i for i, _ in pairs}, {j for _, j in pairs}
        missed[kind] = [_shown(e) for i, e in enumerate(true) if i not in found]
        extra[kind] = [_shown(e) for j, e in enumerate(out) if j not in used]
        if not true:
            continue
        scores[kind] = 2 * len(pairs) / (len(true) + len(out))
        if kind == "headings":
            levels = [(true[i][1], out[j][1]) for i, j in pairs]
            same = [_sign(a[0], b[0]) == _sign(a[1], b[1]) for a, b in combinations(levels, 2)]
            scores["levels"] = scores[kind] * (sum(same) / len(same) if same else 1.0)
            extra["levels"] = [f"{true[i][1]} as {out[j][1]}: {true[i][0]}" for i, j in pairs]
        if kind == "items":
            wrong = [(i, j) for i, j in pairs if true[i][1] != out[j][1]]
            scores["depth"] = 2 * (len(pairs) - len(wrong)) / (len(true) + len(out))
            extra["depth"] = [f"{true[i][1]} as {out[j][1]}: {true[i][0]}" for i, j in wrong]
    return Comparison(scores, missed, extra)


def _shown(element: tuple[str, int | str]) -> str:
    return f"{element[0]} [{element[1]}]" if element[1] != "" else element[0]


def _sign(a: int | str, b: int | str) -> int:
    return (int(a) > int(b)) - (int(a) < int(b))


def match(
    true: Sequence[tuple[str, int | str]], out: Sequence[tuple[str, int | str]], *, exact_key: bool
) -> list[tuple[int, int]]:
    """Pairs of equal texts first, then greedily the most similar; each is used once, in order of the truth."""
    free = dict.fromkeys(range(len(out)))
    places: dict[tuple[str, int | str], list[int]] = {}
    for j, (text, key) in enumerate(out):
        places.setdefault((text, key if exact_key else ""), []).append(j)
    pairs = []
    left = []
    for i, (text, key) in enumerate(true):
        equal = places.get((text, key if exact_key else ""))
        if equal:
            j = equal.pop(0)
            del free[j]
            pairs.append((i, j))
        else:
            left.append(i)
    for i in left:
        text, key = true[i]
        best, similarity = None, SAME_TEXT
        for j in free:
            if exact_key and out[j][1] != key:
                continue
            value = Indel.normalized_similarity(text, out[j][0], score_cutoff=similarity)
            if value >= similarity and (best is None or value > similarity):
                best, similarity = j, value
        if best is not None:
            del free[best]
            pairs.append((i, best))
    return sorted(pairs)
