"""From the answer for a whole page to its elements: labels, boxes, cleaned contents.

The answer is grounded (:mod:`pagemill.recognition.vlm.grounding`). Nothing that the model wrote is dropped: text
outside all references, text for a picture and text around a table become elements of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from pagemill.document.geometry import Box
from pagemill.document.labels import TASK_OF_LABEL, Label, Task
from pagemill.document.page import ContentFormat
from pagemill.recognition.base import PageElement, Problem
from pagemill.recognition.vlm.cleanup import LONGEST_CAPTION, STEPS, clean
from pagemill.recognition.vlm.grounding import MAX_ELEMENTS, GroundedElement, parse_grounded
from pagemill.recognition.vlm.guard import Flaw, latex_fault
from pagemill.recognition.vlm.table_answers import split_tables

LABELS: Mapping[str, Label] = MappingProxyType(
    {
        "title": Label.DOC_TITLE,
        "sub_title": Label.PARAGRAPH_TITLE,
        "figure": Label.IMAGE,
        **{f"{kind}_caption": Label.FIGURE_TITLE for kind in ("image", "figure", "chart", "table", "code")},
        **{f"{kind}_footnote": Label.VISION_FOOTNOTE for kind in ("image", "figure", "table")},
        "equation": Label.DISPLAY_FORMULA,
        "formula": Label.DISPLAY_FORMULA,
        "equation_number": Label.FORMULA_NUMBER,
        "page_number": Label.NUMBER,
        "page_footnote": Label.FOOTNOTE,
        "code": Label.ALGORITHM,
        "list": Label.TEXT,
        **{label.value: label for label in Label},
    }
)
"""Our labels by the model's: those in published outputs of DeepSeek-OCR, their variants, and our own."""

_WHOLE_ANSWER = frozenset({"reasoning", "fences"})
"""Clean-up steps that apply to a whole answer."""
_PICTURES = frozenset({Label.HEADER_IMAGE, Label.FOOTER_IMAGE})


def read_answer(text: str, steps: Sequence[str]) -> tuple[tuple[PageElement, ...], Problem | None]:
    """Parse the answer for a page.

    Args:
        text: As the model wrote it, or its sound part.
        steps: Names of :data:`pagemill.recognition.vlm.cleanup.STEPS`, for the content of each element.

    Returns:
        Its elements in the order of the answer, which is reading order. An answer without references is one text
        without a box, reported as a problem.
    """
    for step in steps:
        if step in _WHOLE_ANSWER:
            text = STEPS[step](text, Task.TEXT)
    page = parse_grounded(text)
    if not any(element.label for element in page.elements):
        return _without_places(text, steps)
    elements = tuple(
        _placed(read) if element.label else read for element in page.elements for read in _read(element, steps)
    )
    if page.truncated:
        message = f"the answer ends inside a reference or a table, or has more than {MAX_ELEMENTS:,} elements"
        return elements, Problem(Flaw.TRUNCATED, message)
    return elements, None


def label_of(name: str) -> Label | None:
    """The layout class of a model's label; None if it is unknown."""
    return LABELS.get(re.sub(r"[\s-]+", "_", name.strip().lower()))


def _without_places(text: str, steps: Sequence[str]) -> tuple[tuple[PageElement, ...], Problem]:
    element = _cleaned(Label.TEXT, (), text, steps)
    if not element.content:
        return (), Problem(Flaw.EMPTY, "the answer is empty after clean-up")
    problem = Problem(
        "no_grounding",
        "the model returned no boxes: its text is one region of the whole page",
        "The server must run the model of the card, and leave special tokens in its answers (skip_special_tokens).",
    )
    return (element,), problem


def _read(element: GroundedElement, steps: Sequence[str]) -> Iterator[PageElement]:
    """An element, and further ones if it holds more than one element."""
    boxes = element.boxes
    label, content = label_of(element.label), element.content
    if label is None:
        # In answers to "OCR this image" the text takes the place of the label, with no content.
        label, content = Label.TEXT, content or element.label
    if TASK_OF_LABEL[label] is Task.SKIP or label in _PICTURES:
        yield PageElement(label=label, boxes=boxes, content=None, content_format=ContentFormat.TEXT)
        if not content:
            return
        label = Label.TEXT
    if not content and not boxes:  # as at the end of a truncated answer
        return
    pieces = [(piece.strip(), is_table) for piece, is_table in split_tables(content) if piece.strip()] or [("", False)]
    around = sum(len(piece) for piece, is_table in pieces if not is_table)
    tables = sum(is_table for _, is_table in pieces)
    if label is Label.TABLE and (len(pieces) == 1 or (tables == 1 and around <= LONGEST_CAPTION)):
        yield _cleaned(Label.TABLE, boxes, content, steps)  # with its caption
        return
    for piece, is_table in pieces:
        if is_table:
            yield _cleaned(Label.TABLE, boxes, piece, steps)
        else:
            yield _cleaned(Label.TEXT if label is Label.TABLE else label, boxes, piece, steps)


def _placed(element: PageElement) -> PageElement:
    """An element with text whose place the model did not give, or garbled: its region will be the whole page."""
    if element.boxes or not element.content or element.problem:
        return element
    return replace(element, problem=Problem("no_grounding", "the model gave no box for it that can be read"))


def _cleaned(label: Label, boxes: tuple[Box, ...], content: str, steps: Sequence[str]) -> PageElement:
    task = TASK_OF_LABEL[label]
    cleaned = clean(content, task if task in (Task.TABLE, Task.FORMULA) else Task.TEXT, steps)
    problem = cleaned.problem
    if not cleaned.content and task is not Task.ABANDON:
        problem = Problem(Flaw.EMPTY, "the model returned a box without content")
    elif task is Task.FORMULA and (fault := latex_fault(cleaned.content)):
        problem = Problem(Flaw.FORMULA, f"the formula is broken: {fault}")
    return PageElement(
        label=label,
        boxes=boxes,
        content=cleaned.content or None,
        content_format=cleaned.content_format,
        problem=problem,
    )
