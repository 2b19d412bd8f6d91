"""Charts of Office files as tables: the values that are stored with them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
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
    axes = [each for each in root.iter(f"{_C}title") if (each.getparent().tag or "").endswith("Ax")]
    blocks = _titles([*root.iterfind(f".//{_C}chart/{_C}title"), *axes])
    names: dict[int, str] = {}
    columns: list[list[Cell]] = []
    for series in root.iter(f"{_C}ser"):
        own = dict(_points(series, "cat", "xVal"))
        # The series of XY charts may have places of their own, which then get a column.
        if any(names.get(at, text) != text for at, text in own.items()):
            columns.append(_column(len(columns) + 1, "", own.items()))
        else:
            names |= own
        name, labels = series.findtext(f"{_C}tx//{_C}v") or "", _labels(series)
        values = [(at, f"{text} {labels[at]}" if at in labels else text) for at, text in _points(series, "val", "yVal")]
        columns.append(_column(len(columns) + 1, name, values))
        if sizes := _points(series, "bubbleSize"):
            columns.append(_column(len(columns) + 1, name, sizes))
        if sum(map(len, columns)) > _MOST_POINTS:
            break
    return blocks + ([*tables([*chain(*columns), *_column(0, "", names.items())])] if columns else [])


def _of_2016(root: Any) -> list[Block]:
    """Funnels, waterfalls, trees and their like: a table for each series, as their categories need not be the same."""
    blocks = _titles(root.iter(f"{_CX}title"))
    series = {each.get("val"): each.getparent() for each in root.iter(f"{_CX}dataId")}
    for data in root.iter(f"{_CX}data"):
        owner = series.get(data.get("id"))
        name = "" if owner is None else owner.findtext(f"{_CX}tx//{_CX}v") or ""
        cells: list[Cell] = []
        for column, (kind, title) in enumerate((("strDim", ""), ("numDim", name))):
            levels = [_values(each) for each in data.iterfind(f"{_CX}{kind}/{_CX}lvl")]
            cells += _column(column, title, _joined(levels) if levels else [])
        blocks += tables(cells)
    return blocks


def _titles(found: Iterable[Any]) -> list[Block]:
    texts = ("".join(each.text or "" for each in title.iter(f"{_A}t")) for title in found)
    return [block for text in texts for block in Inline(text).blocks(label=Label.FIGURE_TITLE)]


def _column(number: int, name: str, points: Iterable[tuple[int, str]]) -> list[Cell]:
    """A column of the table: its name, and the texts of its points below it."""
    texts = (cell(Inline(text), at + 1, number) for at, text in points)
    return [cell(Inline(name), 0, number, header=True), *texts]


def _labels(series: Any) -> dict[int, str]:
    """The labels of points that someone has typed."""
    found = {}
    for label in series.iter(f"{_C}dLbl"):
        at, text = label.find(f"{_C}idx"), "".join(each.text or "" for each in label.iterfind(f"{_C}tx//{_A}t"))
        if at is not None and (at.get("val") or "").isdecimal() and text.strip():
            found[int(at.get("val"))] = f"({text.strip()})"
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
