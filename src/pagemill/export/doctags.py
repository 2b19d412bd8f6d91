"""A document as DocTags: the markup of layout and content that Docling and the models trained with it read and write.

Written after the published vocabulary: boxes on a grid of 500, tables as OTSL (https://arxiv.org/abs/2305.03393).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.page import PageResult, Region
from pagemill.export.context import heading_level
from pagemill.export.formats import ExportFormat
from pagemill.export.markdown import plain_content, table_of
from pagemill.export.parts import captions_of
from pagemill.tables.table import Table

_GRID = 500
_MOST_LEVELS = 6
_TAGS = {
    Label.HEADER: "page_header",
    Label.HEADER_IMAGE: "page_header",
    Label.FOOTER: "page_footer",
    Label.FOOTER_IMAGE: "page_footer",
    Label.NUMBER: "page_footer",
    Label.FOOTNOTE: "footnote",
    Label.VISION_FOOTNOTE: "footnote",
    Label.FIGURE_TITLE: "caption",
    Label.ALGORITHM: "code",
    **dict.fromkeys(FORMULAS, "formula"),
    **dict.fromkeys(FIGURES, "picture"),
}


def document_doctags(pages: Iterable[PageResult]) -> Iterator[str]:
    """The markup in pieces that are to be written one after the other.

    Args:
        pages: In page order, all of one document.
    """
    opening = "<doctag>"
    for page in pages:
        yield opening
        opening = "<page_break>\n"
        captions = captions_of(page.regions)
        for region in page.regions:
            # Captions are inside the element that they belong to, formula numbers stand by themselves.
            if region.caption_of is None or region.label is Label.FORMULA_NUMBER:
                yield _element(region, captions.get(region.index, ()))
    yield "</doctag>\n" if opening != "<doctag>" else ""


def _element(region: Region, captions: Sequence[Region]) -> str:
    place, table = _place(region), table_of(region)
    caption = "".join(f"<caption>{_place(caption)}{_text(caption)}</caption>" for caption in captions)
    if table is not None:
        return f"<otsl>{place}{caption}{_otsl(table)}</otsl>\n"
    if region.list_item:
        items = "".join(
            f"<list_item>{place}{_escaped(item)}</list_item>\n" for item in plain_content(region).split("\n")
        )
        return f"<unordered_list>{items}</unordered_list>\n"
    tag = _TAGS.get(region.label, "text")
    if region.label is Label.DOC_TITLE:
        tag = "title"
    elif (level := heading_level(region)) is not None:
        tag = f"section_header_level_{max(1, min(level - 1, _MOST_LEVELS))}"
    return f"<{tag}>{place}{caption}{'' if tag == 'picture' else _text(region)}</{tag}>\n"


def _place(region: Region) -> str:
    return "".join(f"<loc_{min(_GRID, round(side * _GRID / 1000))}>" for side in region.bbox_2d)


def _text(region: Region) -> str:
    return _escaped(plain_content(region))


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def _otsl(table: Table) -> str:
    """Cells row by row: a cell with text, an empty one, what a cell above or at the left covers, the end of a row."""
    grid = [["<ecel>"] * table.columns for _ in range(table.rows)]
    for cell in table.cells:
        # First all that the cell covers, then the cell itself over its first place.
        for row in range(cell.row_span):
            for column in range(cell.column_span):
                covered = "<xcel>" if row and column else "<ucel>" if row else "<lcel>"
                grid[cell.row + row][cell.column + column] = covered
        kind = ("ched" if cell.header else "fcel") if cell.text else "ecel"
        grid[cell.row][cell.column] = f"<{kind}>{_escaped(' '.join(cell.text.split()))}"
    return "".join(f"{''.join(row)}<nl>" for row in grid)


FORMAT = ExportFormat(ending="-doctags", suffix=".doctags", text=lambda pages, _: document_doctags(pages))
