"""A document as Typst source, in several templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roundtrips.markdown import BOLD, CODE, ITALIC, STRIKE, SUB, SUP, Block, Run, all_runs, flat, plain, slug

if TYPE_CHECKING:
    from collections.abc import Sequence

_CALLS = ((CODE, "raw"), (SUB, "sub"), (SUP, "super"), (ITALIC, "emph"), (BOLD, "strong"), (STRIKE, "strike"))
_FONTS = '("{0}", "Noto {1} CJK KR", "Noto {1} CJK JP", "Noto Naskh Arabic", "DejaVu Sans")'
TEMPLATES = {
    "article": """
#set page(numbering: "1")
#set text(font: SERIF, size: 10pt)
#set par(justify: true)
""",
    "handbook": """
#set page(header: context {
  if counter(page).get().first() > 1 [#emph(title) #h(1fr) #counter(page).display()]
})
#set text(font: SANS, size: 10.5pt)
#set table(stroke: none, inset: (x: 8pt, y: 4pt))
#show link: set text(fill: blue)
#show heading: set text(fill: rgb("#134074"))
#show raw.where(block: true): block.with(fill: luma(240), inset: 6pt, width: 100%)
""",
    "columns": """
#set page(columns: 2, margin: 18mm, footer: context align(center, counter(page).display("1 / 1", both: true)))
#set text(font: SERIF, size: 9pt)
#set par(justify: true, first-line-indent: 1em)
#set heading(numbering: "1.1")
#set table(stroke: (x: none, y: 0.5pt))
#show raw: set text(size: 7pt)
""",
}


def source(blocks: Sequence[Block], language: str, template: str) -> str:
    """A document in a template, with a label at the first heading of each name that is linked."""
    title = _string(next((plain(block.runs) for block in blocks if block.kind == "heading"), ""))
    head = f"#set document(title: {title})\n#let title = {title}\n#set text(lang: {_string(language)})\n"
    look = TEMPLATES[template].replace("SERIF", _FONTS.format("Libertinus Serif", "Serif"))
    head += look.replace("SANS", _FONTS.format("DejaVu Sans", "Sans")) + "#let anchored(name) = none\n"
    body = "#" + _blocks(blocks)
    for name in {run.href[1:] for run in all_runs(flat(blocks)) if run.href and run.href[0] == "#"}:
        body = body.replace(f"#anchored({_string(name)})]", f"#metadata(none)#label({_string(name)})]", 1)
    return head + body


def _blocks(blocks: Sequence[Block]) -> str:
    return "{" + "; ".join(map(_block, blocks)) + "}"


def _block(block: Block) -> str:
    match block.kind:
        case "heading":
            anchor = _string(slug(plain(block.runs)))
            return f"[#heading(level: {block.level}, {_inline(block.runs)})#anchored({anchor})]"
        case "paragraph":
            return f"par({_inline(block.runs)})"
        case "list":
            items = "".join(", " + _blocks(item.children) for item in block.children)
            return f"enum(start: {block.start}{items})" if block.start is not None else f"list({items[2:]})"
        case "code":
            return f"raw(block: true, {_string(block.text)})"
        case "quote":
            return f"quote(block: true, {_blocks(block.children)})"
        case "table":
            head, *rows = ["".join(", " + _inline(cell) for cell in row) for row in block.rows]
            return f"table(columns: {len(block.rows[0])}, table.header({head[2:]}){''.join(rows)})"
        case _:
            return '""'


def _inline(runs: Sequence[Run]) -> str:
    parts = []
    for run in runs:
        text = _string(run.text)
        for mark, call in _CALLS:
            if mark in run.marks:
                text = f"{call}({text})"
        if run.href:
            anchor = f"label({_string(run.href[1:])})" if run.href[0] == "#" else _string(run.href)
            text = f"link({anchor}, {text})"
        parts.append(text)
    return "{" + "; ".join(parts or ['""']) + "}"


def _string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
