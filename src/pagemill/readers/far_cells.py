"""Sheets with remote cells, which dochan would refuse: the empty rows and columns between are removed."""

from __future__ import annotations

import posixpath
import re
import zipfile
from bisect import bisect_right
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

from pagemill.readers.html import ordinal
from pagemill.readers.packages import xml_root

_SHEET = re.compile(r"xl/worksheets/[^/]+\.xml")
_PLACE = re.compile(r"\$?([A-Z]{1,3})\$?([0-9]{1,7})")


class _Axis:
    """Rows or columns: of a gap between those that are used one is left."""

    def __init__(self, used: Iterable[int]) -> None:
        self._used = sorted({0, *used})
        self._new = [0]
        for before, after in zip(self._used, self._used[1:], strict=False):
            self._new.append(self._new[-1] + min(after - before, 2))

    def __call__(self, old: int) -> int:
        at = bisect_right(self._used, old) - 1
        return self._new[at] + min(old - self._used[at], 1)


def without_gaps(path: Path, target: Path, most: int) -> list[str]:
    """Write a copy of a spreadsheet whose sheets have no wide gaps.

    Args:
        path: The spreadsheet.
        target: The copy.
        most: Places of cells up to which a sheet stays as it is.

    Returns:
        The members that are the changed sheets.
    """
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        changed: dict[str, bytes] = {}
        for name in filter(_SHEET.fullmatch, source.namelist()):
            root = xml_root(source.read(name), huge_tree=True)
            cells = [each for each in root.iter("{*}c") if len(each)]
            places = [place for cell in cells if (place := _place(cell.get("r"))) is not None]
            # The address of a cell is optional: one without is where the cell before it ends, and moves with that.
            if len(places) < len(cells) or not places:
                continue
            columns, rows = (_Axis(values) for values in zip(*places, strict=True))
            if max(row for _, row in places) * max(column for column, _ in places) <= most:
                continue
            changed[name] = _moved(root, columns, rows)
            folder, base = posixpath.split(name)
            relations = f"{folder}/_rels/{base}.rels"
            for each in xml_root(source.read(relations)) if relations in source.namelist() else ():
                about = posixpath.normpath(posixpath.join(folder, each.get("Target") or "")).lstrip("/")
                # Comments are a part of their own, which names their cells by address.
                if (each.get("Type") or "").endswith("/comments") and about in source.namelist():
                    changed[about] = _moved(xml_root(source.read(about), huge_tree=True), columns, rows)
        for member in source.infolist():
            archive.writestr(member, changed.get(member.filename) or source.read(member))
    return [name for name in changed if _SHEET.fullmatch(name)]


def _place(text: str | None) -> tuple[int, int] | None:
    match = _PLACE.fullmatch(text or "")
    return (_number(match[1]), int(match[2])) if match else None


def _number(letters: str) -> int:
    return reduce(lambda number, letter: number * 26 + ord(letter) - ord("A") + 1, letters, 0)


def _moved(root: Any, columns: _Axis, rows: _Axis) -> bytes:
    """The XML with its cells, merged cells, links and comments in their new places."""
    from lxml import etree

    def new(match: re.Match[str]) -> str:
        return f"{ordinal(columns(_number(match[1])), 'A')}{rows(int(match[2]))}"

    for each in root.iter("{*}row", "{*}c", "{*}mergeCell", "{*}hyperlink", "{*}comment", "{*}dimension"):
        name = "r" if etree.QName(each).localname in ("row", "c") else "ref"
        value = each.get(name) or ""
        each.set(name, str(rows(int(value))) if value.isdecimal() else _PLACE.sub(new, value))
    for row in root.iter("{*}row"):
        for cell in [each for each in row if not len(each)]:  # only its format: it may share a place now
            row.remove(cell)
    found: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
    return found
