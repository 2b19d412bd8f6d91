"""A document as a page of HTML, in several styles."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from roundtrips.markdown import BOLD, CODE, ITALIC, STRIKE, SUB, SUP, Block, Run, plain, slug

if TYPE_CHECKING:
    from collections.abc import Sequence

_TAGS = ((SUB, "sub"), (SUP, "sup"), (CODE, "code"), (ITALIC, "em"), (BOLD, "strong"), (STRIKE, "s"))
_CJK = '"Noto {0} CJK KR", "Noto {0} CJK JP", "Noto Naskh Arabic"'
_FONTS = {"sans": _CJK.format("Sans"), "serif": _CJK.format("Serif")}
_CSS = {
    "web": """
body{font:15px/1.5 "Liberation Sans","DejaVu Sans",%(sans)s,sans-serif;color:#24292f}
h1,h2{border-bottom:1px solid #d0d7de;padding-bottom:.3em} a{color:#0969da;text-decoration:none}
pre{background:#f6f8fa;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere}
code{font-family:"DejaVu Sans Mono",%(sans)s,monospace;font-size:85%%}
:not(pre)>code{background:#eff1f3;padding:.2em .4em}
table{border-collapse:collapse} td,th{border:1px solid #d0d7de;padding:6px 13px}
tr:nth-child(even){background:#f6f8fa}
blockquote{border-left:4px solid #d0d7de;padding-left:1em;margin-left:0;color:#57606a}
""",
    "book": """
body{font:11pt/1.35 "DejaVu Serif",%(serif)s,serif;text-align:justify;hyphens:auto}
h1{font-size:1.7em;text-align:center} h2{font-size:1.3em} h3{font-size:1.1em;font-style:italic}
h4,h5,h6{font-size:1em} p{margin:0;text-indent:1.5em} li p,td p{text-indent:0} a{color:inherit}
pre{font-size:9pt;white-space:pre-wrap;overflow-wrap:anywhere}
code{font-family:"DejaVu Sans Mono",%(serif)s,monospace}
table{border-collapse:collapse;border-top:1.5pt solid;border-bottom:1.5pt solid;margin:1em auto}
th{border-bottom:.5pt solid} td,th{padding:2pt 8pt;text-align:left}
""",
    "columns": """
body{font:9.5pt/1.3 "Liberation Serif","DejaVu Serif",%(serif)s,serif;columns:2;column-gap:8mm;text-align:justify}
h1{column-span:all;text-align:center;font-size:16pt} h2{font-size:12pt} h3,h4,h5,h6{font-size:10pt}
pre,code{font-family:"DejaVu Sans Mono",%(sans)s,monospace;font-size:7pt}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;font-size:8pt} td,th{padding:1pt 4pt;text-align:left;overflow-wrap:anywhere}
""",
    "report": """
@page{size:A4;margin:25mm 20mm;@top-left{content:string(title);font-size:8pt}
@bottom-right{content:counter(page)" / "counter(pages)}}
h1{string-set:title content()} body{font:10.5pt/1.4 "DejaVu Sans",%(sans)s,sans-serif}
h1,h2,h3{color:#134074} pre,code{font-family:"DejaVu Sans Mono",%(sans)s,monospace;font-size:8.5pt}
pre{border:.5pt solid #aaa;padding:4pt;white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%%} th{background:#134074;color:#fff}
td,th{padding:4pt;border-bottom:.5pt solid #aaa}
""",
}


def page(blocks: Sequence[Block], language: str, *, css: str | None = None, wide: float = math.inf) -> str:
    """A page of HTML.

    Args:
        blocks: The document.
        language: Its language.
        css: Name of a style; None for a bare page, without a title, which pandoc would set above the text.
        wide: Tables with rows of more characters get widths of columns.
    """
    title = next((plain(block.runs) for block in blocks if block.kind == "heading"), "")
    head = f"<title>{escape(title)}</title><style>{_CSS[css] % _FONTS}</style>" if css else ""
    attributes = f' lang="{language}"' + (' dir="rtl"' if language == "ar" else "")
    # LaTeX's babel knows no plain «zh»
    attributes = "" if language == "zh" and not css else attributes
    body = _blocks(blocks, wide)
    return f'<!doctype html><html{attributes}><head><meta charset="utf-8">{head}</head><body>{body}</body></html>'


def _blocks(blocks: Sequence[Block], wide: float) -> str:
    return "\n".join(_block(block, wide) for block in blocks)


def _block(block: Block, wide: float) -> str:
    match block.kind:
        case "heading":
            name = f"h{block.level}"
            return f'<{name} id="{escape(slug(plain(block.runs)))}">{_inline(block.runs)}</{name}>'
        case "paragraph":
            return f"<p>{_inline(block.runs)}</p>"
        case "list":
            tag, start = ("ul", "") if block.start is None else ("ol", f' start="{block.start}"')
            items = "".join(f"<li>{_item(item, wide)}</li>" for item in block.children)
            return f"<{tag}{start}>{items}</{tag}>"
        case "code":
            return f"<pre><code>{escape(block.text)}\n</code></pre>"
        case "quote":
            return f"<blockquote>{_blocks(block.children, wide)}</blockquote>"
        case "table":
            head, *rows = block.rows
            body = "".join(_row(row, "td") for row in rows)
            lines = f"<thead>{_row(head, 'th')}</thead><tbody>{body}</tbody>"
            return f"<table>{_column_widths(block, wide)}{lines}</table>"
        case _:
            return ""


def _item(item: Block, wide: float) -> str:
    first, *others = item.children or [Block("paragraph")]
    inside = _inline(first.runs) if first.kind == "paragraph" else _block(first, wide)
    return inside + _blocks(others, wide)


def _row(row: Sequence[Sequence[Run]], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{_inline(cell)}</{tag}>" for cell in row) + "</tr>"


def _column_widths(table: Block, wide: float) -> str:
    longest = [min(60, max(8, *(len(plain(cell)) for cell in column))) for column in zip(*table.rows, strict=True)]
    if sum(longest) <= wide:
        return ""
    return "<colgroup>" + "".join(f'<col style="width:{100 * n // sum(longest)}%">' for n in longest) + "</colgroup>"


def _inline(runs: Sequence[Run]) -> str:
    out = ""
    for run in runs:
        text = escape(run.text)
        for mark, tag in _TAGS:
            if mark in run.marks:
                text = f"<{tag}>{text}</{tag}>"
        out += f'<a href="{escape(run.href)}">{text}</a>' if run.href else text
    return out
