"""Class names of published layout models, mapped onto pagemill's labels."""

from __future__ import annotations

from pagemill.document.labels import Label

_OTHER_NAMES = {
    # CDLA (PicoDet of PaddleOCR's PP-Structure) and PubLayNet
    "title": Label.PARAGRAPH_TITLE,  # which title is the document's is decided later, by size and position
    "figure": Label.IMAGE,
    "figure_caption": Label.FIGURE_TITLE,
    "table_caption": Label.FIGURE_TITLE,
    "equation": Label.DISPLAY_FORMULA,
    # older PP-DocLayout models
    "formula": Label.DISPLAY_FORMULA,
    "table_title": Label.FIGURE_TITLE,
    "chart_title": Label.FIGURE_TITLE,
    "figure_table_chart_title": Label.FIGURE_TITLE,
    # DocStructBench
    "abandon": Label.ASIDE_TEXT,
    "table_footnote": Label.VISION_FOOTNOTE,
    "isolate_formula": Label.DISPLAY_FORMULA,
    "formula_caption": Label.FORMULA_NUMBER,
    # DocLayNet
    "caption": Label.FIGURE_TITLE,
    "page_footer": Label.FOOTER,
    "page_header": Label.HEADER,
    "picture": Label.IMAGE,
    "section_header": Label.PARAGRAPH_TITLE,
    # D4LA
    "doctitle": Label.DOC_TITLE,
    "paratitle": Label.PARAGRAPH_TITLE,
    "regiontitle": Label.PARAGRAPH_TITLE,
    "tablename": Label.FIGURE_TITLE,
    "figurename": Label.FIGURE_TITLE,
    "catalog": Label.CONTENT,
    "pageheader": Label.HEADER,
    "pagefooter": Label.FOOTER,
    "pagenumber": Label.NUMBER,
}
_LABEL_OF_NAME = {**_OTHER_NAMES, **{label.value: label for label in Label}}


def labels_of(names: tuple[str, ...]) -> tuple[Label, ...]:
    """Our labels of a model's class names; a name that is not known reads as plain text, so that nothing is lost."""
    keys = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in names]
    labels = [_LABEL_OF_NAME.get(key, Label.TEXT) for key in keys]
    if "table_caption" in keys:  # CDLA calls an entry of a bibliography "reference"; elsewhere that is the whole block
        labels = [Label.REFERENCE_CONTENT if label is Label.REFERENCE else label for label in labels]
    return tuple(labels)
