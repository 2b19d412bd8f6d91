"""Class names of published layout models, mapped onto pagemill's labels."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pagemill.document.labels import Label

if TYPE_CHECKING:
    from collections.abc import Mapping

_OTHER_NAMES = {
    # CDLA (PicoDet of PaddleOCR's PP-Structure) and PubLayNet
    "title": Label.PARAGRAPH_TITLE,  # which title is the document's is decided later, by size and position
    "figure": Label.IMAGE,
    "figure_caption": Label.FIGURE_TITLE,
    "table_caption": Label.FIGURE_TITLE,
    "equation": Label.DISPLAY_FORMULA,
    "list": Label.TEXT,
    # older PP-DocLayout models
    "formula": Label.DISPLAY_FORMULA,
    "table_title": Label.FIGURE_TITLE,
    "chart_title": Label.FIGURE_TITLE,
    "figure_table_chart_title": Label.FIGURE_TITLE,
    # DocStructBench
    "plain_text": Label.TEXT,
    "abandon": Label.ASIDE_TEXT,
    "table_footnote": Label.VISION_FOOTNOTE,
    "isolate_formula": Label.DISPLAY_FORMULA,
    "formula_caption": Label.FORMULA_NUMBER,
    # DocLayNet
    "caption": Label.FIGURE_TITLE,
    "list_item": Label.TEXT,
    "page_footer": Label.FOOTER,
    "page_header": Label.HEADER,
    "picture": Label.IMAGE,
    "section_header": Label.PARAGRAPH_TITLE,
    # D4LA
    "doctitle": Label.DOC_TITLE,
    "paratitle": Label.PARAGRAPH_TITLE,
    "paratext": Label.TEXT,
    "listtext": Label.TEXT,
    "regiontitle": Label.PARAGRAPH_TITLE,
    "regionlist": Label.TEXT,
    "date": Label.TEXT,
    "letterhead": Label.TEXT,
    "letterdear": Label.TEXT,
    "letterclose": Label.TEXT,
    "lettersign": Label.TEXT,
    "regionkv": Label.TEXT,
    "abstract": Label.ABSTRACT,
    "author": Label.TEXT,
    "tablename": Label.FIGURE_TITLE,
    "figurename": Label.FIGURE_TITLE,
    "catalog": Label.CONTENT,
    "pageheader": Label.HEADER,
    "pagefooter": Label.FOOTER,
    "pagenumber": Label.NUMBER,
    "number": Label.NUMBER,
    "other_text": Label.TEXT,
}

# CDLA calls an entry of a bibliography "reference"; in PP-DocLayout that is the whole block and is not read.
_CDLA_OVERRIDES = {"reference": Label.REFERENCE_CONTENT}

LABEL_OF_NAME: Mapping[str, Label] = MappingProxyType({**_OTHER_NAMES, **{label.value: label for label in Label}})
"""Label of a class name in lower case with underscores."""

CDLA_NAMES = (
    "text",
    "title",
    "figure",
    "figure_caption",
    "table",
    "table_caption",
    "header",
    "footer",
    "reference",
    "equation",
)
"""Classes of the CDLA data set in the order of PaddleOCR's PicoDet checkpoint."""


def labels_of(names: tuple[str, ...]) -> tuple[Label, ...]:
    """Our labels of a model's class names; a name that is not known reads as plain text, so that nothing is lost."""
    overrides = _CDLA_OVERRIDES if names == CDLA_NAMES else {}
    keys = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in names]
    return tuple(overrides.get(key) or LABEL_OF_NAME.get(key, Label.TEXT) for key in keys)
