"""DeepSeek-OCR's grounded page output: references with boxes, each followed by its content.

``<|ref|>label<|/ref|><|det|>[[x1, y1, x2, y2], ...]<|/det|>`` and then Markdown, up to the next reference. Coordinates
run from 0 to 999 over the page's width and height. They are parsed as numbers, never evaluated; a truncated page is
reported as truncated, not dropped. Grammar and quirks: the model's published scripts and outputs
(https://github.com/deepseek-ai/DeepSeek-OCR).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pagemill.document.geometry import Box

GRID = 999
"""Coordinate of the right and bottom edge."""
MAX_ELEMENTS = 1000
"""The densest newspaper pages have about 300."""
_PLACE = r"<\|det\|>((?:[^<]|<(?!\|)){0,20000}+)<\|/det\|>"
_REFERENCE = re.compile(
    rf"<\|ref\|>([^<|]{{0,200}})<\|/ref\|>\s{{0,8}}(?:{_PLACE}|<\|det\|>([\[\]\d\s,.+-]{{0,20000}}))?"
)
"""The second group: a place whose end the model forgot."""
_STRAY_PLACE = re.compile(_PLACE)
_NUMBER = re.compile(r"(?:(?<=[\[\s,])-)?\d{1,20}+(?:\.\d{1,20})?")
"""A minus touches its number: in ``- 350`` it is a slip of the model."""
_END = re.compile(r"<[|｜]end▁of▁sentence[|｜]>|</s>")
_OPEN_TAIL = re.compile(r"<\|(?:ref|det)\|>[^<]{0,20000}(?:<[|/a-z]{0,8})?$|<\|?(?:/?(?:r|re|ref|d|de|det)?\|?)?$")
_CENTER = re.compile(r"</?center>", re.IGNORECASE)
_OPENING = re.compile(r"<table", re.IGNORECASE | re.ASCII)
_TABLE_TAG = re.compile(r"<(/?)table", re.IGNORECASE | re.ASCII)


class GroundedElement(NamedTuple):
    """One reference and its content."""

    label: str
    """The model's own label: title, sub_title, text, image, image_caption, table, table_caption, table_footnote,
    equation, ...; empty for content before the first reference."""
    boxes: tuple[Box, ...]
    """Shares of the page's width and height (0-1, clipped, corners in order); several if one element spans columns;
    none if the model gave no valid one."""
    content: str
    """Markdown, HTML or LaTeX as the model wrote it; empty for images."""


class GroundedPage(NamedTuple):
    """A page as the model read it."""

    elements: tuple[GroundedElement, ...]
    truncated: bool
    """The output ends inside a reference or a table, or has more elements than any real page."""


def parse_grounded(text: str) -> GroundedPage:
    """Parse a grounded page.

    HTML of a table that follows the reference of its caption is moved to the table; ``<center>`` around captions is
    removed.
    """
    ending = _END.search(text)
    body = text[: ending.start()] if ending else text
    tail = _OPEN_TAIL.search(body, max(0, len(body) - 20_050))
    truncated = tail is not None and not ending
    if tail:
        body = body[: tail.start()]
    elements: list[GroundedElement] = []
    matches = list(_REFERENCE.finditer(body))
    first = _STRAY_PLACE.sub("", body[: matches[0].start()] if matches else body)
    if first.strip():
        elements.append(GroundedElement("", (), first.strip()))
    for index, match in enumerate(matches[:MAX_ELEMENTS]):
        end = matches[index + 1].start() if index + 1 < len(matches) else len(body)
        content = _STRAY_PLACE.sub("", _CENTER.sub("", body[match.end() : end])).strip()
        boxes = tuple(_boxes(match[2] or match[3] or ""))
        elements.append(GroundedElement(match.group(1).strip(), boxes, content))
    tags = [tag.group(1) for tag in _TABLE_TAG.finditer(body)]
    open_table = bool(tags) and not tags[-1]
    return GroundedPage(tuple(_untangled(elements)), truncated or open_table or len(matches) > MAX_ELEMENTS)


def _boxes(place: str) -> Iterator[Box]:
    """The boxes of a place: four numbers each, whatever else the model wrote between them."""
    for piece in place.split("]"):
        numbers = _NUMBER.findall(piece)
        if len(numbers) == 4 and (box := _box(numbers)):
            yield box


def _box(numbers: Sequence[str]) -> Box | None:
    x1, y1, x2, y2 = (min(max(float(number) / GRID, 0.0), 1.0) for number in numbers)
    left, right = sorted((x1, x2))
    top, bottom = sorted((y1, y2))
    return (left, top, right, bottom) if right > left and bottom > top else None


def _untangled(elements: list[GroundedElement]) -> list[GroundedElement]:
    """An empty table directly followed by its caption has its HTML after the caption."""
    result = elements[:]
    for i in range(1, len(result)):
        table, caption = result[i - 1], result[i]
        opening = _OPENING.search(caption.content)
        if opening and not table.content and (table.label, caption.label) == ("table", "table_caption"):
            result[i - 1] = table._replace(content=caption.content[opening.start() :].strip())
            result[i] = caption._replace(content=caption.content[: opening.start()].strip())
    return result
