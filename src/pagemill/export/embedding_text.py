"""The text of a page as it is embedded for search: plain, tables row by row."""

from __future__ import annotations

from pagemill.document.page import ContentFormat, PageResult, Region
from pagemill.export.markdown import plain_content, table_of
from pagemill.export.parts import is_in_text


def embedding_text(page: PageResult) -> str:
    """All text of a page, without markup, running heads, feet and page numbers; empty for a page without text.

    A table becomes one line a row, its cells apart by `` | ``; a cell over several rows or columns is written once.
    """
    return "\n".join(
        filter(None, (region_text(region) for region in page.regions if is_in_text(region, page.leaves_out)))
    )


def region_text(region: Region) -> str:
    """The text of one region, likewise; empty for a picture without lettering."""
    if not region.content:
        return ""
    if region.content_format is ContentFormat.HTML:
        return _rows(region)
    return plain_content(region).replace("\n\n", "\n")


def description_text(region: Region) -> str:
    """The description of a region by a model: summary, keywords, the rows of a chart; empty without a description."""
    described = region.description
    if described is None:
        return ""
    rows = (" | ".join(filter(None, row)) for row in described.chart or ())
    return "\n".join(filter(None, (described.summary, ", ".join(described.keywords), *rows))).strip()


def _rows(region: Region) -> str:
    table = table_of(region)
    if table is None:  # as in the Markdown
        return region.content or ""
    rows: dict[int, list[str]] = {}
    for cell in table.cells:
        # Empty cells say nothing, and would cost tokens.
        if cell.text:
            rows.setdefault(cell.row, []).append(" ".join(cell.text.split()))
    lines = [" | ".join(cells) for cells in rows.values()]
    return "\n".join([table.caption, *lines] if table.caption else lines)
