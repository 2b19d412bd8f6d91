"""Charts of Office files as tables: the values that are stored with them."""

from __future__ import annotations

from typing import Any

from pagemill.document.labels import Label
from pagemill.readers.base import Block, Inline, cell, tables
from pagemill.tables.table import Cell

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MOST_POINTS = 10_000


def chart_blocks(root: Any) -> list[Block]:
    """A chart's title and its data: a column of categories, and one for each series.

    Args:
        root: Element ``c:chartSpace``.
    """
    blocks: list[Block] = []
    heading = root.find(f".//{_C}chart/{_C}title")
    if heading is not None:
        title = Inline("".join(each.text or "" for each in heading.iter(f"{_A}t"))).block(label=Label.FIGURE_TITLE)
        blocks += [title] if title else []
    names: dict[int, str] = {}
    cells: list[Cell] = []
    columns = 0
    for number, series in enumerate(root.iter(f"{_C}ser"), 1):
        name = next((each.text or "" for each in series.iterfind(f"{_C}tx//{_C}v")), "")
        cells.append(cell(Inline(name), 0, number, header=True))
        names |= {at: text for at, text in _points(series, "cat", "xVal") if at not in names}
        cells += (cell(Inline(text), at + 1, number) for at, text in _points(series, "val", "yVal"))
        columns = number
        if len(cells) > _MOST_POINTS:
            break
    if columns:
        cells += [cell(Inline(""), 0, 0, header=True), *(cell(Inline(text), at + 1, 0) for at, text in names.items())]
        blocks += tables(cells)
    return blocks


def _points(series: Any, *names: str) -> list[tuple[int, str]]:
    found = next((each for name in names if (each := series.find(f"{_C}{name}")) is not None), None)
    points = [] if found is None else list(found.iter(f"{_C}pt"))[:_MOST_POINTS]
    return [
        (int(point.get("idx") or 0), value.text or "")
        for point in points
        if (value := point.find(f"{_C}v")) is not None and (point.get("idx") or "0").isdecimal()
    ]
