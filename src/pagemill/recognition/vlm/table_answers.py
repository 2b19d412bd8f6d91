"""Tables in the formats that models write (HTML, OTSL, Markdown) to one plain HTML. The input is untrusted."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pagemill.tables.html import MAX_CELLS, MAX_CHARACTERS, MAX_SLOTS, parse_table
from pagemill.tables.table import Cell, Table, build_table

if TYPE_CHECKING:
    from collections.abc import Sequence

_OTSL = re.compile(r"<(fcel|ecel|lcel|ucel|xcel|ched|rhed|srow|nl)>")
"""Optimised Table Structure Language (https://arxiv.org/abs/2305.03393): a full or empty cell; a cell merged with its
left neighbour, its upper one, or both; the end of a row. The three before the last are Docling's column, row and
section headers."""
_OTSL_HEADS = frozenset({"ched"})
_OTSL_CELLS = frozenset({"fcel", "ecel", "ched", "rhed", "srow"})
_KNOWN_TAG = re.compile(
    r"</?(?:table|thead|tbody|tfoot|tr|td|th|caption|colgroup|col|br|p|div|span|sup|sub|b|i|u|s|em|strong|small|font|"
    r"center|ul|ol|li|a|img|code|pre|h[1-6]|html|head|body|meta|style|script|template|title)(?=[\s/>])|<!(?=--|doctype)",
    re.IGNORECASE,
)
_SCRIPT = re.compile(r"<(su[pb])>\s{0,3}([0-9+\-=()n]{1,12})\s{0,3}</\1>", re.IGNORECASE)
_RAISED = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-=()n", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙ")
_OPENING = re.compile(r"<table(?=[\s/>])", re.IGNORECASE)
_TABLE_EDGE = re.compile(r"<(/?)(table|tr|td|th)(?=[\s/>])[^<>]{0,1000}>?", re.IGNORECASE)
_MARK = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|")
_TAG = re.compile(r"<[^<>]{0,1000}>")
_RULE = re.compile(r"\|?(?:\s{0,9}:?-{1,200}:?\s{0,9}\|){0,200}\s{0,9}:?-{1,200}:?\s{0,9}\|?")


def read_table(text: str) -> tuple[Table, str] | None:
    """The tables of an answer, stacked into one, and the text outside of them, without markup: captions, remarks.

    None if it contains no table, or one over the limits.
    """
    if len(text) > MAX_CHARACTERS:
        return None
    if _OPENING.search(text):
        pieces = split_tables(text)
        # A model may split a table, or see several in one region: keep all of their rows.
        parsed = [parse_table(_protected(piece)) for piece, is_table in pieces if is_table]
        tables = [each for each in parsed if each is not None]
        table = _stacked(tables)
        beside = " ".join([piece for piece, is_table in pieces if not is_table] + [part.caption for part in tables[1:]])
    elif _OTSL.search(text):
        table, beside = parse_otsl(text)
    else:
        table, beside = _parse_pipes(text)
    if table is None:
        return None
    return table, " ".join(_TAG.sub(" ", beside).split())


def split_tables(html: str) -> list[tuple[str, bool]]:
    """A text as its outermost tables, the last one possibly unclosed, and the text around them, in order.

    A table that starts inside another one, but in none of its cells, closes it: the model forgot to.

    Returns:
        Each piece with whether it is a table.
    """
    pieces: list[tuple[str, bool]] = []
    depth = start = 0
    in_cell = False
    for edge in _TABLE_EDGE.finditer(html):
        closes, name = bool(edge[1]), edge[2].lower()
        if name != "table":
            if depth == 1:
                in_cell = name != "tr" and not closes
        elif closes:
            if depth == 1:
                pieces.append((html[start : edge.end()], True))
                start = edge.end()
            depth = max(0, depth - 1)
        elif not depth or (depth == 1 and not in_cell):
            pieces.append((html[start : edge.start()], depth > 0))
            depth, start, in_cell = 1, edge.start(), False
        else:
            depth += 1
    return [*pieces, (html[start:], depth > 0)]


def _stacked(tables: Sequence[Table]) -> Table | None:
    """Tables stacked under the caption of the first."""
    if len(tables) < 2:
        return tables[0] if tables else None
    rows, columns = sum(table.rows for table in tables), max(table.columns for table in tables)
    if rows * columns > MAX_SLOTS:
        return None
    cells: list[Cell] = []
    first = 0
    for table in tables:
        cells += [replace(cell, row=first + cell.row) for cell in table.cells]
        first += table.rows
    return replace(build_table(cells), caption=tables[0].caption)


def parse_otsl(text: str) -> tuple[Table | None, str]:
    """A table in OTSL, and the text before its first cell and after the ends of its rows.

    No table if it is beyond the limits of HTML tables.
    """
    grid: list[list[tuple[str, str]]] = [[]]
    matches = list(_OTSL.finditer(text))
    if len(matches) > MAX_CELLS:
        return None, ""
    beside = [text[: matches[0].start()] if matches else text]
    ends = [match.start() for match in matches[1:]] + [len(text)]
    for match, end in zip(matches, ends, strict=True):
        if match.group(1) == "nl":
            grid.append([])
            beside.append(text[match.end() : end])
        else:
            grid[-1].append((match.group(1), text[match.end() : end].strip()))
    grid = [row for row in grid if row]
    columns = max(map(len, grid), default=0)
    if not columns or len(grid) * columns > MAX_SLOTS:
        return None, ""
    kinds = [[kind for kind, _ in row] + ["ecel"] * (columns - len(row)) for row in grid]
    cells: list[Cell] = []
    taken: set[tuple[int, int]] = set()
    for row, entries in enumerate(grid):
        for column, (kind, said) in enumerate(entries):
            if (row, column) in taken:
                continue
            width, height = _spans(kinds, taken, row, column) if kind in _OTSL_CELLS else (1, 1)
            taken.update((r, c) for r in range(row, row + height) for c in range(column, column + width))
            header = kind in _OTSL_HEADS
            cells.append(Cell(row=row, column=column, row_span=height, column_span=width, text=said, header=header))
    return build_table(cells), " ".join(beside)


def _spans(kinds: list[list[str]], taken: set[tuple[int, int]], row: int, column: int) -> tuple[int, int]:
    """Column and row span of a cell; it never covers another cell."""
    width = height = 1
    columns = len(kinds[0])
    while column + width < columns and kinds[row][column + width] == "lcel" and (row, column + width) not in taken:
        width += 1
    while (
        row + height < len(kinds)
        and kinds[row + height][column] == "ucel"
        and all(
            kinds[row + height][c] not in _OTSL_CELLS and (row + height, c) not in taken
            for c in range(column, column + width)
        )
    ):
        height += 1
    return width, height


def _protected(html: str) -> str:
    """Protect formulas from the HTML parser: text that only looks like a tag, superscripts and subscripts."""
    html = _SCRIPT.sub(
        lambda match: match.group(2).translate(_RAISED if match.group(1).lower() == "sup" else _LOWERED), html
    )
    pieces: list[str] = []
    done = 0
    for match in re.finditer("<", html):
        if not _KNOWN_TAG.match(html, match.start()):
            pieces += [html[done : match.start()], "&lt;"]
            done = match.end()
    return "".join([*pieces, html[done:]])


def _parse_pipes(text: str) -> tuple[Table | None, str]:
    """A Markdown table and the lines beside it."""
    lines = text.split("\n")
    rows = [line.strip() for line in lines if line.strip().startswith("|") and line.count("|") >= 2]
    if len(rows) < 2 or sum(map(len, rows)) > MAX_CHARACTERS:
        return None, ""
    has_rule = len(rows[1]) < 2000 and _RULE.fullmatch(rows[1]) is not None
    entries = [_entries(row) for row in rows if len(row) >= 2000 or not _RULE.fullmatch(row)]
    if sum(map(len, entries)) > MAX_CELLS or len(entries) * max(map(len, entries), default=0) > MAX_SLOTS:
        return None, ""
    cells = [
        Cell(row=r, column=c, text=_MARK.sub("\n", said.strip().replace("\\|", "|")), header=has_rule and r == 0)
        for r, row in enumerate(entries)
        for c, said in enumerate(row)
    ]
    kept = set(rows)
    return build_table(cells) if cells else None, "\n".join(line for line in lines if line.strip() not in kept)


def _entries(row: str) -> list[str]:
    """The cells of a row of a Markdown table, without its outer bars."""
    entries = _BAR.split(row)[1:]
    return entries if len(entries) > 1 and entries[-1].strip() else entries[:-1] or entries
