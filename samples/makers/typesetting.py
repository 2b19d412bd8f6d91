"""Set blocks into columns with reportlab and note, in drawing order, what was put on each page."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from xml.sax.saxutils import escape

from reportlab import rl_config
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, Table, TableStyle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


FONT_FOLDERS = (Path("/usr/share/fonts/truetype/liberation"), Path("/usr/share/fonts/truetype/nanum"))
"""Where Debian's fonts-liberation and fonts-nanum put their files."""

Element = dict[str, Any]
"""One truth element: ``label`` (a pagemill label), ``text`` or ``html`` or ``latex``, and what else is known."""


@dataclass(frozen=True)
class Cell:
    """A table cell; ``text`` may hold no markup."""

    text: str
    colspan: int = 1
    rowspan: int = 1


@dataclass(frozen=True)
class Block:
    """Something to set in a column: a paragraph of ``text``, or a drawing of fixed ``height``."""

    label: str
    text: str = ""
    style: ParagraphStyle | None = None
    markup: str | None = None
    """reportlab markup where it says more than the text (superscripts, bold lead-ins)."""
    bullet: str | None = None
    height: float = 0.0
    draw: Callable[[Canvas, float, float, float], None] | None = None
    """Called with canvas, left, bottom and width, in points."""
    table: Table | None = None
    space_after: float = 0.0
    facts: Element = field(default_factory=dict)
    """Further truth: ``level``, ``html``, ``list_item``, ``bordered``, ..."""


@dataclass
class Column:
    """A column of a page in points, y upwards; ``floats`` come first, ``notes`` stand at its foot."""

    left: float
    bottom: float
    width: float
    top: float
    floats: Sequence[Block] = ()
    notes: Sequence[Block] = ()


def register_fonts(names: Sequence[str]) -> None:
    """Register TrueType fonts by file name without suffix.

    Raises:
        FileNotFoundError: A font is missing; says which Debian packages bring it.
    """
    for name in names:
        found = [folder / f"{name}.ttf" for folder in FONT_FOLDERS if (folder / f"{name}.ttf").is_file()]
        if not found:
            raise FileNotFoundError(f"font {name}.ttf is missing: apt-get install fonts-liberation fonts-nanum")
        pdfmetrics.registerFont(TTFont(name, str(found[0])))


def new_canvas(path: Path, size: tuple[float, float], title: str, author: str) -> Canvas:
    """A canvas whose bytes depend on its content alone (no dates, no random ids)."""
    rl_config.useA85 = 0
    canvas = Canvas(str(path), pagesize=size, invariant=1, pageCompression=1)
    canvas.setTitle(title)
    canvas.setAuthor(author)
    return canvas


def table_html(rows: Sequence[Sequence[Cell]]) -> str:
    """The table as minimal HTML: rows of ``td``, spans as attributes, no sections."""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            spans = "".join(
                f' {name}="{value}"'
                for name, value in (("rowspan", cell.rowspan), ("colspan", cell.colspan))
                if value > 1
            )
            cells.append(f"<td{spans}>{escape(cell.text)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def build_table(
    rows: Sequence[Sequence[Cell]],
    widths: Sequence[float],
    style: list[tuple[Any, ...]],
    row_height: float | None = None,
) -> Table:
    """A reportlab table of the same rows, with its spans; ``style`` holds reportlab commands."""
    grid: list[list[str]] = [[""] * len(widths) for _ in rows]
    taken: set[tuple[int, int]] = set()
    spans: list[tuple[Any, ...]] = []
    for y, row in enumerate(rows):
        x = 0
        for cell in row:
            while (y, x) in taken:
                x += 1
            grid[y][x] = cell.text
            taken.update((y + dy, x + dx) for dy in range(cell.rowspan) for dx in range(cell.colspan))
            if cell.rowspan > 1 or cell.colspan > 1:
                spans.append(("SPAN", (x, y), (x + cell.colspan - 1, y + cell.rowspan - 1)))
            x += cell.colspan
    table = Table(grid, colWidths=list(widths), rowHeights=[row_height] * len(rows) if row_height else None)
    table.setStyle(TableStyle(spans + style))
    return table


class Typesetter:
    """Fills columns with blocks, page after page, and keeps the truth."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self.pages: list[list[Element]] = []

    def start_page(self) -> None:
        """Begin a page; elements placed from now on belong to it."""
        if self.pages:
            self.canvas.showPage()
        self.pages.append([])

    def line(self, label: str, text: str, x: float, y: float, font: str, size: float, align: str = "left") -> None:
        """Draw one line of text and note it."""
        self.canvas.setFont(font, size)
        draw = {
            "left": self.canvas.drawString,
            "right": self.canvas.drawRightString,
            "centre": self.canvas.drawCentredString,
        }
        draw[align](x, y, text)
        self.pages[-1].append({"label": label, "text": text})

    def fill(self, column: Column, blocks: list[Block]) -> list[Block]:
        """Set blocks from the top of a column down; returns what did not fit, a split paragraph first.

        Raises:
            ValueError: Even the column's own floats and notes do not fit.
        """
        top = column.top
        for block in column.floats:
            top = self._place(block, column.left, top, column.width, column.bottom)
        bottom = column.bottom + sum(_height(note, column.width) for note in column.notes)
        if column.notes:
            bottom += 12.0
        rest = list(blocks)
        while rest:
            block = rest[0]
            needed = _height(block, column.width)
            keep = 40.0 if block.label == "paragraph_title" else 0.0  # a heading stays with two lines of its text
            if needed + keep <= top - bottom:
                top = self._place(block, column.left, top, column.width, bottom) - block.space_after
                rest.pop(0)
                continue
            if block.style is not None and block.label == "text" and block.bullet is None:
                rest[:1] = self._split(block, column.left, top, column.width, bottom)
            break
        top = bottom - 6.0
        if column.notes:
            self.canvas.setLineWidth(0.4)
            self.canvas.line(column.left, top, column.left + 60.0, top)
            top -= 3.0
        for note in column.notes:
            top = self._place(note, column.left, top, column.width, 0.0)
        return rest

    def _split(self, block: Block, left: float, top: float, width: float, bottom: float) -> list[Block]:
        """Set as many lines of a paragraph as fit; the rest as a block that continues it."""
        parts = _paragraph(block).split(width, top - bottom)
        if len(parts) < 2:
            return [block]
        first = cast("Paragraph", parts[0])
        _, height = first.wrap(width, top - bottom)
        first.drawOn(self.canvas, left, top - height)
        head, tail = _cut_text(block.text, _drawn_text(first))
        self.pages[-1].append({"label": block.label, "text": head, "continues": True, **block.facts})
        _, markup_tail = _cut_markup(block.markup or escape(block.text), head)
        style = ParagraphStyle("rest", parent=block.style, firstLineIndent=0)
        return [Block("text", tail, style, markup_tail, space_after=block.space_after, facts=block.facts)]

    def _place(self, block: Block, left: float, top: float, width: float, bottom: float) -> float:
        height = _height(block, width)
        if top - height < bottom - 0.01:
            raise ValueError(f"{block.label} of {height:.0f} pt does not fit")
        y = top - height
        if block.table is not None:
            block.table.wrapOn(self.canvas, width, height)
            block.table.drawOn(self.canvas, left + (width - sum(block.table._colWidths)) / 2, y)  # type: ignore[attr-defined]
        elif block.draw is not None:
            block.draw(self.canvas, left, y, width)
        else:
            paragraph = _paragraph(block)
            paragraph.wrap(width, height)
            paragraph.drawOn(self.canvas, left, y)
        element: Element = {"label": block.label}
        if block.text:
            element["text"] = block.text
        self.pages[-1].append(element | block.facts)
        return y


def _paragraph(block: Block) -> Paragraph:
    if block.style is None:
        raise ValueError(f"{block.label} has no style")
    return Paragraph(block.markup or escape(block.text), block.style, bulletText=block.bullet)


def _height(block: Block, width: float) -> float:
    if block.table is not None:
        return float(block.table.wrap(width, 1e6)[1])
    if block.draw is not None:
        return block.height
    return float(_paragraph(block).wrap(width, 1e6)[1])


def _drawn_text(paragraph: Paragraph) -> str:
    """All words of a wrapped paragraph, hyphens at line ends included."""
    words: list[str] = []
    for line in paragraph.blPara.lines:  # type: ignore[attr-defined]
        parts = line[1] if isinstance(line, tuple) else [word.text for word in line.words]
        words.extend(parts)
    return " ".join(words)


def _cut_text(text: str, drawn: str) -> tuple[str, str]:
    """Cut logical text where its drawn beginning ends; spaces and hyphens do not count."""
    count = len(re.sub(r"[\s\-\u00ad]", "", drawn))
    for position, character in enumerate(text):
        if count == 0:
            return text[:position].rstrip(), text[position:].lstrip(" -")
        count -= character not in " -"
    return text, ""


def _cut_markup(markup: str, head: str) -> tuple[str, str]:
    """Cut markup after the words of ``head``; the cut must not fall inside a tag's content."""
    position, left = 0, len(head.replace(" ", ""))
    for match in re.finditer(r"<[^>]*>|&[a-z]+;|.", markup, re.DOTALL):
        if left == 0:
            break
        position = match.end()
        if not match.group().startswith("<") and not match.group().isspace():
            left -= 1
    return markup[:position], markup[position:].lstrip()
