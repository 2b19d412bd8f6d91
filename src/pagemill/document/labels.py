"""The 25 layout classes of PP-DocLayoutV3 and the recognition task that each one asks for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Label(StrEnum):
    """A layout class. The order is the class order of the PP-DocLayoutV3 checkpoint."""

    ABSTRACT = "abstract"
    ALGORITHM = "algorithm"
    ASIDE_TEXT = "aside_text"
    CHART = "chart"
    CONTENT = "content"
    DISPLAY_FORMULA = "display_formula"
    DOC_TITLE = "doc_title"
    FIGURE_TITLE = "figure_title"
    FOOTER = "footer"
    FOOTER_IMAGE = "footer_image"
    FOOTNOTE = "footnote"
    FORMULA_NUMBER = "formula_number"
    HEADER = "header"
    HEADER_IMAGE = "header_image"
    IMAGE = "image"
    INLINE_FORMULA = "inline_formula"
    NUMBER = "number"
    PARAGRAPH_TITLE = "paragraph_title"
    REFERENCE = "reference"
    REFERENCE_CONTENT = "reference_content"
    SEAL = "seal"
    TABLE = "table"
    TEXT = "text"
    VERTICAL_TEXT = "vertical_text"
    VISION_FOOTNOTE = "vision_footnote"


class Task(StrEnum):
    """What recognition does with a region, or with a page as a whole."""

    TEXT = "text"
    TABLE = "table"
    FORMULA = "formula"
    SKIP = "skip"  # saved as a crop, not read
    ABANDON = "abandon"  # kept in the record, left out of the Markdown
    PAGE = "page"  # of no label: the page and all that stands on it


class Category(StrEnum):
    """The seven coarse categories of elements."""

    TITLE = "title"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    FIGURE = "figure"
    FORMULA = "formula"
    OTHER = "other"  # running heads and feet, page numbers, numbers of formulas


_TASKS = {
    Task.TABLE: (Label.TABLE,),
    Task.FORMULA: (Label.DISPLAY_FORMULA, Label.INLINE_FORMULA),
    Task.SKIP: (Label.CHART, Label.IMAGE),
    Task.ABANDON: (
        Label.ASIDE_TEXT,
        Label.FOOTER,
        Label.FOOTER_IMAGE,
        Label.FOOTNOTE,
        Label.HEADER,
        Label.HEADER_IMAGE,
        Label.NUMBER,
        Label.REFERENCE,
    ),
}

TASK_OF_LABEL: Mapping[Label, Task] = MappingProxyType(
    dict.fromkeys(Label, Task.TEXT) | {label: task for task, labels in _TASKS.items() for label in labels}
)
"""The task of every label, after the published GLM-OCR defaults for PP-DocLayoutV3."""

FIGURES = frozenset({Label.IMAGE, Label.CHART})
PICTURES = FIGURES | {Label.HEADER_IMAGE, Label.FOOTER_IMAGE, Label.SEAL}
"""Labels of everything except text."""
FORMULAS = frozenset({Label.DISPLAY_FORMULA, Label.INLINE_FORMULA})
TITLES = frozenset({Label.DOC_TITLE, Label.PARAGRAPH_TITLE})
FURNITURE_LABELS = frozenset({Label.HEADER, Label.FOOTER, Label.NUMBER})
"""Running heads and feet and page numbers, as far as they are text."""
_LONGEST_NUMBER = 40
"""Characters of a page number with what stands beside it: ``Page 12 of 340``."""
RUNNING_TEXT = frozenset({Label.TEXT, Label.ABSTRACT, Label.REFERENCE_CONTENT})
"""Text in paragraphs that continue across columns and pages."""
FLOWING = RUNNING_TEXT | {Label.CONTENT, Label.FOOTNOTE}
"""Text that may be split into columns and paragraphs."""

_CATEGORIES = {
    Category.TITLE: TITLES,
    Category.TABLE: {Label.TABLE},
    Category.FIGURE: FIGURES | {Label.SEAL},
    Category.FORMULA: FORMULAS,
    Category.OTHER: {
        Label.FOOTER,
        Label.FOOTER_IMAGE,
        Label.FORMULA_NUMBER,
        Label.HEADER,
        Label.HEADER_IMAGE,
        Label.NUMBER,
    },
}
_CATEGORY_OF_LABEL = dict.fromkeys(Label, Category.TEXT) | {
    label: category for category, labels in _CATEGORIES.items() for label in labels
}


def category_of(label: Label, *, list_item: bool = False) -> Category:
    """The coarse category of a region; text whose lines are list items (``list_item``) is a list."""
    category = _CATEGORY_OF_LABEL[label]
    return Category.LIST if list_item and category is Category.TEXT else category


def is_page_number(label: Label, text: str) -> bool:
    """Whether a running head or foot is no more than the page's number."""
    is_short = len(text) <= _LONGEST_NUMBER
    return is_short and (label is Label.NUMBER or (label in FURNITURE_LABELS and not any(map(str.isalpha, text))))
