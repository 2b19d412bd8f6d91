"""A document set with ReportLab's Platypus."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    Flowable,
    ListFlowable,
    ListItem,
    Paragraph,
    Preformatted,
    SimpleDocTemplate,
    Spacer,
    Table,
)

from roundtrips.markdown import BOLD, CODE, ITALIC, STRIKE, SUB, SUP, Block, Run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FOLDERS = "/usr/share/fonts/truetype"
_TAGS = ((CODE, "font"), (SUP, "super"), (SUB, "sub"), (ITALIC, "i"), (BOLD, "b"), (STRIKE, "strike"))
_SIZES = (18, 15, 12.5, 11, 10, 10)


@cache
def _family(name: str) -> tuple[str, str, str]:
    """Names of the text font, its bold and the fixed-pitch font, registered."""
    if name == "Helvetica":
        return "Helvetica", "Helvetica-Bold", "Courier"
    if name == "Nanum":
        files = [f"nanum/NanumGothic{s}.ttf" for s in ("", "Bold", "", "Bold")]
        mono = "nanum/NanumGothicCoding.ttf"
    else:
        files = [f"dejavu/DejaVuSerif{s}.ttf" for s in ("", "-Bold", "-Italic", "-BoldItalic")]
        mono = "dejavu/DejaVuSansMono.ttf"
    for suffix, file in zip(("", "-Bold", "-Italic", "-BoldItalic"), files, strict=True):
        pdfmetrics.registerFont(TTFont(name + suffix, f"{_FOLDERS}/{file}"))
    pdfmetrics.registerFont(TTFont(name + "-Mono", f"{_FOLDERS}/{mono}"))
    pdfmetrics.registerFontFamily(name, name, name + "-Bold", name + "-Italic", name + "-BoldItalic")
    return name, name + "-Bold", name + "-Mono"


def make(blocks: Sequence[Block], target: Path, *, rules: bool, font: str, korean: bool) -> None:
    """Set blocks as PDF.

    Args:
        blocks: The document.
        target: The file.
        rules: Draw a grid in tables.
        font: ``Helvetica`` or ``DejaVu``.
        korean: Take a font with Hangul instead.
    """
    text, bold, mono = _family("Nanum" if korean else font)
    body = ParagraphStyle("body", fontName=text, fontSize=10, leading=13.5, spaceAfter=6)
    heads = [
        ParagraphStyle(f"h{i}", body, fontName=bold, fontSize=s, leading=1.25 * s, spaceBefore=s * 0.7, keepWithNext=1)
        for i, s in enumerate(_SIZES, 1)
    ]
    code = ParagraphStyle("code", body, fontName=mono, fontSize=8, leading=10, leftIndent=8)
    quote = ParagraphStyle("quote", body, leftIndent=18, textColor=colors.HexColor("#555555"))

    def inline(runs: Sequence[Run]) -> str:
        out = ""
        for run in runs:
            part = escape(run.text)
            for mark, tag in _TAGS:
                if mark in run.marks:
                    part = f'<{tag} face="{mono}">{part}</{tag}>' if mark == CODE else f"<{tag}>{part}</{tag}>"
            if run.href and run.href[0] != "#":
                part = f'<a href="{escape(run.href)}" color="blue">{part}</a>'
            out += part
        return out

    def flowables(some: Sequence[Block], style: ParagraphStyle) -> list[Flowable]:
        out: list[Flowable] = []
        for block in some:
            match block.kind:
                case "heading":
                    out.append(Paragraph(inline(block.runs), heads[block.level - 1]))
                case "paragraph":
                    out.append(Paragraph(inline(block.runs), style))
                case "list":
                    items: list[Any] = [ListItem(flowables(item.children, style)) for item in block.children]
                    kind = (
                        {"bulletType": "bullet", "start": "•"}
                        if block.start is None
                        else {"bulletType": "1", "start": block.start}
                    )
                    out.append(ListFlowable(items, bulletFontName=text, **kind))
                case "code":
                    out.append(Preformatted(block.text, code, maxLineLength=80))
                    out.append(Spacer(1, 4))
                case "quote":
                    out += flowables(block.children, quote)
                case "table":
                    grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.grey)] if rules else []
                    cells = [[Paragraph(inline(cell), body) for cell in row] for row in block.rows]
                    cells[0] = [Paragraph(f"<b>{inline(cell)}</b>", body) for cell in block.rows[0]]
                    out.append(Table(cells, style=[*grid, ("VALIGN", (0, 0), (-1, -1), "TOP")], spaceAfter=8))
        return out

    title = next((run.text for block in blocks if block.kind == "heading" for run in block.runs), "")
    SimpleDocTemplate(str(target), title=title, author="", leftMargin=64, rightMargin=64).build(flowables(blocks, body))
