"""The published file of OmniDocBench: a JSON list of pages."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from pagemill_eval.benchmarks.omnidocbench.elements import Element

FORMULA = "equation_isolated"
TABLE = "table"
IGNORED = (
    *("equation_caption", "figure_caption", "figure_footnote", "table_caption", "table_footnote"),
    *("code_algorithm", "code_algorithm_caption", "header", "footer", "page_footnote", "page_number"),
)
"""Categories that are neither rewarded nor penalised."""
_POOLED = ("text_block", "title", "code_txt", "code_txt_caption", "reference", *IGNORED, FORMULA, TABLE)
"""Categories that count, in the order in which the pool of a page is made."""


class Detection(msgspec.Struct):
    """An annotated element of a page."""

    category_type: str
    anno_id: int | str | None = None
    order: float | None = None
    text: str | None = None
    latex: str | None = None
    html: str | None = None
    ignore: bool | None = None

    @property
    def content(self) -> str:
        """Its formula, table or text."""
        if self.category_type == FORMULA:
            return self.latex or self.text or ""
        return (self.html if self.category_type == TABLE else self.text) or ""


class Relation(msgspec.Struct):
    """Two elements that belong together."""

    relation_type: str = ""
    source_anno_id: int | str | None = None
    target_anno_id: int | str | None = None


class Extra(msgspec.Struct):
    """What is annotated beside elements."""

    relation: list[Relation] = []


class PageInfo(msgspec.Struct):
    """Where a page is from."""

    image_path: str
    page_attribute: dict[str, Any] = {}


class Page(msgspec.Struct):
    """One page of the benchmark."""

    page_info: PageInfo
    layout_dets: list[Detection]
    extra: Extra | None = None


def true_elements(
    page: Page, *, repeat: bool = True, without: Collection[int | str] = ()
) -> tuple[list[Element], list[Element]]:
    """Text and formulas of a page in reading order, and its tables.

    Blocks that a page's layout cut in two are one element.

    Args:
        page: From the published file.
        repeat: In a chain of three the middle one appears twice, as in v1.5.
        without: Ids of elements to leave out, with all that they are one element with.
    """
    chains = _chains(page) if repeat else _groups(page)
    gone = {each for chain in chains if set(chain) & set(without) for each in chain} | set(without)
    kept = [detection for detection in page.layout_dets if detection.anno_id not in gone]
    return _pooled(kept, [chain for chain in chains if not set(chain) & gone])


def _pooled(
    detections: Sequence[Detection], chains: Sequence[Sequence[int | str]]
) -> tuple[list[Element], list[Element]]:
    by_id = {detection.anno_id: detection for detection in detections if detection.anno_id is not None}
    merged: list[Element] = []
    for chain in chains:
        members = sorted((by_id[each] for each in chain if each in by_id), key=lambda each: each.order or 0)
        if members:
            content = "".join(member.text or member.content for member in members)
            merged.append(Element(members[0].category_type, content, members[0].order or 0))
    parts = {each for chain in chains for each in chain}
    lone = [detection for detection in detections if detection.anno_id is None or detection.anno_id not in parts]
    single = [Element(each.category_type, each.content, each.order or 0) for each in lone]
    pool = _in_order([*single, *merged])
    return [each for each in pool if each.category != TABLE], [each for each in pool if each.category == TABLE]


def _in_order(elements: Sequence[Element]) -> list[Element]:
    """Those that count, the ones without a place in reading order first."""
    ranks = {category: rank for rank, category in enumerate(_POOLED)}
    by_category = sorted(
        (element for element in elements if element.category in ranks), key=lambda each: ranks[each.category]
    )
    return sorted(by_category, key=lambda each: each.start)


def _pairs(page: Page) -> Iterator[list[int | str]]:
    """Ids of blocks that the page's layout cut apart."""
    for relation in page.extra.relation if page.extra else ():
        if relation.relation_type == "truncated":
            yield [each for each in (relation.source_anno_id, relation.target_anno_id) if each is not None]


def _chains(page: Page) -> list[list[int | str]]:
    """Ids of blocks to be joined; relations that share a block make one list, in which it comes again."""
    chains: list[list[int | str]] = []
    for pair in _pairs(page):
        shared = [chain for chain in chains if set(chain) & set(pair)]
        for chain in shared:
            chain += pair
        if not shared:
            chains.append(pair)
    return chains


def _groups(page: Page) -> list[list[int | str]]:
    """Ids of blocks to be joined, each once."""
    groups: list[list[int | str]] = []
    for pair in _pairs(page):
        shared = [group for group in groups if set(group) & set(pair)]
        groups = [group for group in groups if group not in shared]
        groups.append(list(dict.fromkeys(each for group in [*shared, pair] for each in group)))
    return groups


def composed(page: Page) -> Page:
    """A page whose text is composed to NFC."""

    def nfc(text: str | None) -> str | None:
        return text if text is None else unicodedata.normalize("NFC", text)

    detections = [
        msgspec.structs.replace(
            detection, text=nfc(detection.text), latex=nfc(detection.latex), html=nfc(detection.html)
        )
        for detection in page.layout_dets
    ]
    return msgspec.structs.replace(page, layout_dets=detections)
