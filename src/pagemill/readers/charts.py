"""Charts of Office files as tables: the values that are stored with them."""

from __future__ import annotations

from typing import Any

from pagemill.document.labels import Label
from pagemill.readers.base import Block, Inline, cell, tables
from pagemill.tables.table import Cell

_C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_CX = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
CHARTS = (f"{_C}chart", f"{_CX}chart")
"""Elements that stand for a chart, which the attribute ``r:id`` names."""
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_MOST_POINTS = 10_000


def chart_blocks(root: Any) -> list[Block]:
    """A chart's title and its data: a column of categories, and one for each series.

    Args:
        root: Element ``c:chartSpace``, or ``cx:chartSpace`` of the kinds that came with Office 2016.
    """
    if root.tag.startswith(_CX):
        return _of_2016(root)
    blocks: list[Block] = []
    axes = [each for each in root.iter(f"{_C}title") if (each.getparent().tag or "").endswith("Ax")]
    for heading in [*root.iterfind(f".//{_C}chart/{_C}title"), *axes]:
        title = Inline("".join(each.text or "" for each in heading.iter(f"{_A}t"))).block(label=Label.FIGURE_TITLE)
        blocks += [title] if title else []
    names: dict[int, str] = {}
    cells: list[Cell] = []
    columns = 0
    for series in root.iter(f"{_C}ser"):
        own = dict(_points(series, "cat", "xVal"))
        if any(names.get(at, text) != text for at, text in own.items()):  # as the series of XY charts may have
            columns += 1
            cells.append(cell(Inline(""), 0, columns, header=True))
            cells += (cell(Inline(text), at + 1, columns) for at, text in own.items())
        else:
            names |= own
        columns += 1
        name = next((each.text or "" for each in series.iterfind(f"{_C}tx//{_C}v")), "")
        cells.append(cell(Inline(name), 0, columns, header=True))
        labels = _labels(series)
        values = _points(series, "val", "yVal")
        cells += (cell(Inline(" ".join((text, *labels.get(at, ())))), at + 1, columns) for at, text in values)
        if sizes := _points(series, "bubbleSize"):
            columns += 1
            cells.append(cell(Inline(name), 0, columns, header=True))
            cells += (cell(Inline(text), at + 1, columns) for at, text in sizes)
        if len(cells) > _MOST_POINTS:
            break
    if columns:
        cells += [cell(Inline(""), 0, 0, header=True), *(cell(Inline(text), at + 1, 0) for at, text in names.items())]
        blocks += tables(cells)
    return blocks


def _of_2016(root: Any) -> list[Block]:
    """Funnels, waterfalls, trees and their like: a table for each series, as their categories need not be the same."""
    blocks: list[Block] = []
    for heading in root.iter(f"{_CX}title"):
        title = Inline("".join(each.text or "" for each in heading.iter(f"{_A}t"))).block(label=Label.FIGURE_TITLE)
        blocks += [title] if title else []
    series = {each.get("val"): each.getparent() for each in root.iter(f"{_CX}dataId")}
    for data in root.iter(f"{_CX}data"):
        owner = series.get(data.get("id"))
        name = "" if owner is None else next((each.text or "" for each in owner.iterfind(f"{_CX}tx//{_CX}v")), "")
        cells = [cell(Inline(""), 0, 0, header=True), cell(Inline(name), 0, 1, header=True)]
        for column, kind in enumerate(("strDim", "numDim")):
            levels = [_values(each) for each in data.iterfind(f"{_CX}{kind}/{_CX}lvl")]
            points = _joined(levels) if levels else []
            cells += (cell(Inline(text), at + 1, column, header=False) for at, text in points)
        blocks += tables(cells)
    return blocks


def _labels(series: Any) -> dict[int, tuple[str]]:
    """The labels of points that someone has typed."""
    found = {}
    for label in series.iter(f"{_C}dLbl"):
        at, text = label.find(f"{_C}idx"), "".join(each.text or "" for each in label.iterfind(f"{_C}tx//{_A}t"))
        if at is not None and (at.get("val") or "").isdecimal() and text.strip():
            found[int(at.get("val"))] = (f"({text.strip()})",)
    return found


def _points(series: Any, *names: str) -> list[tuple[int, str]]:
    found = next((each for name in names if (each := series.find(f"{_C}{name}")) is not None), None)
    if found is None:
        return []
    levels = [_values(level) for level in found.iter(f"{_C}lvl")]
    return _joined(levels) if levels else _values(found)


def _joined(levels: list[list[tuple[int, str]]]) -> list[tuple[int, str]]:
    """Categories in levels, the innermost first: ``East / e1``. An outer one is written once, at its first point."""
    paths = dict(levels[0])
    for level in levels[1:]:
        outer, rest = "", dict(level)
        for at in sorted(paths | rest):
            outer = rest.get(at, outer)
            if at in paths and outer:
                paths[at] = f"{outer} / {paths[at]}"
    return list(paths.items())


def _values(node: Any) -> list[tuple[int, str]]:
    points = list(node.iter(f"{_C}pt", f"{_CX}pt"))[:_MOST_POINTS]
    found = ((point.get("idx") or "0", point.find(f"{_C}v") if point.tag == f"{_C}pt" else point) for point in points)
    return [(int(at), value.text or "") for at, value in found if value is not None and at.isdecimal()]
