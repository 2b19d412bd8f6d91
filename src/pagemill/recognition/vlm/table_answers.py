"""Tables in the formats that models write (HTML, OTSL, Markdown) to one plain HTML. The input is untrusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pagemill.late import re
from pagemill.tables.html import MAX_CELLS, MAX_SLOTS, parse_table
from pagemill.tables.table import Cell, Table, build_table

_OTSL = re.compile(r"<(fcel|ecel|lcel|ucel|xcel|ched|rhed|srow|nl)>")
"""Optimised Table Structure Language (https://arxiv.org/abs/2305.03393): a full or empty cell; a cell merged with its
left neighbour, its upper one, or both; the end of a row. The three before the last are Docling's column, row and
section headers."""
_OTSL_MERGED = frozenset({"lcel", "ucel", "xcel"})
_STRUCTURE = "table|thead|tbody|tfoot|tr|td|th|caption|colgroup|col|html|head|body|meta|style|script|template|title"
_INLINE = "br|p|div|span|sup|sub|b|i|u|s|em|strong|small|font|center|ul|ol|li|a|img|code|pre|h[1-6]"
_ATTRIBUTE = r"""\s{1,9}[\w:-]{1,40}\s{0,9}=\s{0,9}(?:"[^"<>]{0,1000}"|'[^'<>]{0,1000}'|[^\s"'<>]{1,1000})"""
_MARKUP = rf"/?(?:{_STRUCTURE})[\s/>]|/?(?:{_INLINE})(?:{_ATTRIBUTE})*+\s{{0,9}}/?>|!--|!doctype"
"""What follows the ``<`` of a tag. In ``a<b and b>c`` it is a sign: attributes of inline tags have values."""
_NO_TAG = re.compile(rf"<(?!{_MARKUP})", re.IGNORECASE)
_TAG = re.compile(rf"<(?={_MARKUP})[^<>]{{0,1000}}>", re.IGNORECASE)
_CUT_TAG = re.compile(rf"<(?:/?[a-z]{{0,10}}|(?:{_STRUCTURE})\s[^<>]{{0,1000}})\s*$", re.IGNORECASE)
"""The last tag of an answer that was cut off inside of it."""
_SCRIPT = re.compile(r"<(su[pb])>\s{0,3}([0-9+\-=()n]{1,12})\s{0,3}</\1>", re.IGNORECASE)
_RAISED = str.maketrans("0123456789+-=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-=()n", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙ")
_OPENING = re.compile(r"<table(?=[\s/>])", re.IGNORECASE)
_TABLE_EDGE = re.compile(r"<(/?)(table|tr|td|th)(?=[\s/>])[^<>]{0,1000}>?", re.IGNORECASE)
_CELL = re.compile(r"<t[dh](?=[\s/>])", re.IGNORECASE)
_MARK = re.compile(r"<br\s{0,3}/?>", re.IGNORECASE)
_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"(?:\|\s*:?-+:?\s*)+\|?")


def read_table(text: str) -> tuple[Table, str] | None:
    """The tables of an answer, stacked into one, and the text outside of them, without markup: captions, remarks.

    None if it contains no table, or one over the limits.
    """
    if _OPENING.search(text):
        tables: list[Table] = []
        around: list[str] = []
        for piece, is_table in split_tables(text):
            found = parse_table(_protected(_CUT_TAG.sub("", piece)), marks=False) if is_table else None
            if found is not None:
                around.append(found.caption if tables else "")
                # A model may split a table, or see several in one region: keep all of their rows.
                tables.append(found)
            elif is_table and _CELL.search(piece):
                return None  # over the limits: without this one, the others would pass for all that was read
            else:
                around.append(piece)
        table, beside = _stacked(tables), " ".join(around)
    elif _OTSL.search(text):
        table, beside = parse_otsl(_CUT_TAG.sub("", text))
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
    cells: list[Cell] = []
    first = 0
    for table in tables:
        cells += [replace(cell, row=first + cell.row) for cell in table.cells]
        first += table.rows
    stacked = _built(cells)
    return stacked and replace(stacked, caption=tables[0].caption)


def _built(cells: Sequence[Cell]) -> Table | None:
    """A table of cells that do not overlap; None of no cells, or beyond the limits of HTML tables."""
    rows = max((cell.row + cell.row_span for cell in cells), default=0)
    columns = max((cell.column + cell.column_span for cell in cells), default=0)
    return build_table(cells) if cells and len(cells) <= MAX_CELLS and rows * columns <= MAX_SLOTS else None


def parse_otsl(text: str) -> tuple[Table | None, str]:
    """A table in OTSL, and the text before its first cell and after the ends of its rows."""
    before, *marks = _OTSL.split(text)
    beside = [before]
    grid: list[list[tuple[str, str]]] = [[]]
    for kind, entry in zip(marks[::2], marks[1::2], strict=True):
        if kind == "nl":
            grid.append([])
            beside.append(entry)
        else:
            # An entry with text is a cell, whatever its mark.
            grid[-1].append(("fcel" if kind in _OTSL_MERGED and entry.strip() else kind, entry.strip()))
    grid = [row for row in grid if row]
    kinds = [[kind for kind, _ in row] for row in grid]
    cells: list[Cell] = []
    for row, entries in enumerate(grid):
        for column, (kind, entry) in enumerate(entries):
            if kind not in _OTSL_MERGED:
                width, height = _spans(kinds, row, column)
                header = kind == "ched"
                cells.append(
                    Cell(row=row, column=column, row_span=height, column_span=width, text=entry, header=header)
                )
    return _built(cells), " ".join(beside)


def _spans(kinds: list[list[str]], row: int, column: int) -> tuple[int, int]:
    """Column and row span of a cell: as far as its neighbours are merged with it, and no other cell stands there."""
    right = range(column + 1, len(kinds[row]))
    end = next((c for c in right if kinds[row][c] != "lcel"), len(kinds[row]))
    bottom = row + 1
    while bottom < len(kinds) and kinds[bottom][column : column + 1] == ["ucel"]:
        if not _OTSL_MERGED.issuperset(kinds[bottom][column:end]):
            break
        bottom += 1
    return end - column, bottom - row


def _protected(html: str) -> str:
    """Protect formulas from the HTML parser: text that only looks like a tag, superscripts and subscripts."""
    html = _SCRIPT.sub(lambda match: match[2].translate(_RAISED if match[1].lower() == "sup" else _LOWERED), html)
    return _NO_TAG.sub("&lt;", html)


def _parse_pipes(text: str) -> tuple[Table | None, str]:
    """A Markdown table and the lines beside it."""
    lines = [line.strip() for line in text.split("\n")]
    rows = [line for line in lines if line.startswith("|") and line.count("|") >= 2]
    if len(rows) < 2:
        return None, ""
    has_rule = _RULE.fullmatch(rows[1]) is not None
    cells = [
        Cell(row=r, column=c, text=_MARK.sub("\n", entry.strip().replace("\\|", "|")), header=has_rule and r == 0)
        for r, row in enumerate(row for row in rows if not _RULE.fullmatch(row))
        for c, entry in enumerate(_entries(row))
    ]
    table_lines = set(rows)
    return _built(cells), "\n".join(line for line in lines if line not in table_lines)


def _entries(row: str) -> list[str]:
    """The cells of a row of a Markdown table, without its outer bars."""
    entries = _BAR.split(row)[1:]
    return entries if len(entries) > 1 and entries[-1].strip() else entries[:-1] or entries
