"""Markdown as blocks and runs: what producers set, and what the scorer compares."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

from lxml import html as lxml_html
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence, Set

BOLD, ITALIC, STRIKE, CODE, SUP, SUB = "bold", "italic", "strike", "code", "sup", "sub"
_NODES = {"strong": BOLD, "em": ITALIC, "s": STRIKE}
_TAGS = {
    "b": BOLD, "strong": BOLD, "i": ITALIC, "em": ITALIC, "s": STRIKE, "del": STRIKE, "strike": STRIKE,
    "code": CODE, "sup": SUP, "sub": SUB,
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ")
_SUBSCRIPTS = str.maketrans("0123456789+-=()", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎")
_UNICODE_SCRIPTS = {
    **{raised: (SUP, chr(plain)) for plain, raised in ((p, chr(r)) for p, r in _SUPERSCRIPTS.items())},
    **{lowered: (SUB, chr(plain)) for plain, lowered in ((p, chr(r)) for p, r in _SUBSCRIPTS.items())},
}


@dataclass(frozen=True)
class Run:
    """Text with the same marks."""

    text: str
    marks: frozenset[str] = frozenset()
    href: str | None = None


@dataclass
class Block:
    """A block: ``heading``, ``paragraph``, ``list``, ``item``, ``code``, ``table``, ``quote``, ``rule`` or ``html``."""

    kind: str
    runs: list[Run] = field(default_factory=list)
    children: list[Block] = field(default_factory=list)
    level: int = 0
    start: int | None = None
    """First number of an ordered list."""
    text: str = ""
    """Of code; HTML as it is."""
    rows: list[list[list[Run]]] = field(default_factory=list)


_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def parse(markdown: str) -> list[Block]:
    """Blocks of CommonMark with tables and strikethrough."""
    return [block for node in SyntaxTreeNode(_PARSER.parse(markdown)).children for block in _block(node)]


def _block(node: SyntaxTreeNode) -> Iterator[Block]:
    kids = node.children
    match node.type:
        case "heading":
            yield Block("heading", _inline(kids), level=int(node.tag[1]))
        case "paragraph":
            yield Block("paragraph", _inline(kids))
        case "bullet_list" | "ordered_list":
            start = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
            items = [Block("item", children=[b for kid in item.children for b in _block(kid)]) for item in kids]
            yield Block("list", children=items, start=start)
        case "fence" | "code_block":
            yield Block("code", text=node.content.rstrip("\n"))
        case "blockquote":
            yield Block("quote", children=[b for kid in kids for b in _block(kid)])
        case "table":
            rows = [row for part in kids for row in part.children]
            yield Block("table", rows=[[_inline(cell.children) for cell in row.children] for row in rows])
        case "hr":
            yield Block("rule")
        case "html_block":
            yield Block("html", text=node.content)


def _inline(nodes: Sequence[SyntaxTreeNode]) -> list[Run]:
    runs: list[Run] = []
    tags: list[str] = []

    def walk(node: SyntaxTreeNode, marks: frozenset[str], href: str | None) -> None:
        open_marks = marks | frozenset(tags)
        match node.type:
            case "text":
                runs.append(Run(node.content, open_marks, href))
            case "code_inline":
                runs.append(Run(node.content, open_marks | {CODE}, href))
            case "softbreak" | "hardbreak":
                runs.append(Run(" ", open_marks, href))
            case "html_inline":
                if tag := re.fullmatch(r"<(/?)(\w+)[^>]*>", node.content):
                    name = _TAGS.get(tag[2].lower())
                    if name and not tag[1]:
                        tags.append(name)
                    elif name in tags:
                        tags.remove(name)
                    elif tag[2].lower() == "br":
                        runs.append(Run(" ", open_marks, href))
            case "image":
                pass
            case _:
                marks = marks | {_NODES[node.type]} if node.type in _NODES else marks
                href = str(node.attrs["href"]) if node.type == "link" else href
                for child in node.children:
                    walk(child, marks, href)

    for node in nodes:
        walk(node, frozenset(), None)
    return tidy(runs)


def tidy(runs: Sequence[Run]) -> list[Run]:
    """Runs with white space folded, Unicode scripts as marks, and equal neighbours joined."""
    split: list[Run] = []
    for run in runs:
        for char in run.text if CODE in run.marks else re.sub(r"\s+", " ", run.text):
            kind, plain = _UNICODE_SCRIPTS.get(char, ("", char))
            if kind and CODE not in run.marks:
                split.append(Run(plain, run.marks | {kind}, run.href))
            else:
                split.append(Run(char, run.marks, run.href))
    joined: list[Run] = []
    for run in split:
        last = joined[-1] if joined else None
        if run.text == " " and CODE not in run.marks and (last is None or last.text.endswith(" ")):
            continue
        if last and (last.marks, last.href) == (run.marks, run.href):
            joined[-1] = replace(last, text=last.text + run.text)
        else:
            joined.append(run)
    while joined and not joined[-1].text.strip():
        joined.pop()
    if joined and CODE not in joined[-1].marks:
        joined[-1] = replace(joined[-1], text=joined[-1].text.rstrip())
    return joined


def plain(runs: Sequence[Run]) -> str:
    """Text of runs, scripts as Unicode where all of a script exists in it."""
    return "".join(map(_plain_run, runs))


def _plain_run(run: Run) -> str:
    for mark, table in ((SUP, _SUPERSCRIPTS), (SUB, _SUBSCRIPTS)):
        if mark in run.marks and all(ord(char) in table for char in run.text):
            return run.text.translate(table)
    return run.text


def spans(runs: Sequence[Run], marks: Set[str]) -> Iterator[str]:
    """Text of the longest sequences of runs that have one of the marks."""
    for has, group in groupby(runs, lambda run: bool(marks & run.marks)):
        text = plain(list(group)).strip()
        if has and text:
            yield text


def html_cells(source: str) -> tuple[list[str], str]:
    """Cells of the tables of a block of HTML, and all of its text."""
    try:
        root = lxml_html.fragment_fromstring(source, create_parent="div")
    except (ValueError, lxml_html.etree.LxmlError):
        return [], ""
    for comment in root.xpath("//comment()"):
        comment.drop_tree()
    for script in root.iter("sup", "sub"):
        table = _SUPERSCRIPTS if script.tag == "sup" else _SUBSCRIPTS
        if script.text and all(ord(char) in table for char in script.text):
            script.text = script.text.translate(table)
    return [_folded(cell.text_content()) for cell in root.iter("td", "th")], _folded(" ".join(root.itertext()))


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# Writing


def write(blocks: Sequence[Block]) -> str:
    """Blocks as Markdown that parses to the same blocks."""
    return "\n\n".join(filter(None, (_written(block) for block in _apart(blocks)))) + "\n"


def _apart(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks with a comment between two lists of a kind, which would be one."""
    for before, block in zip([None, *blocks], blocks, strict=False):
        if before and before.kind == block.kind == "list" and (before.start is None) == (block.start is None):
            yield Block("html", text="<!-- -->")
        yield block


def _written(block: Block) -> str:
    match block.kind:
        case "heading":
            return "#" * block.level + " " + _written_runs(block.runs).replace("#", "\\#")
        case "paragraph":
            text = _written_runs(block.runs)
            return re.sub(r"^(\d+)([.)])(?=\s|$)|^([#+=-])", lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", text)
        case "code":
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
            return f"{fence}\n{block.text}\n{fence}"
        case "quote":
            return "\n".join("> " + line if line else ">" for line in write(block.children).rstrip("\n").split("\n"))
        case "list":
            items = []
            for index, item in enumerate(block.children):
                mark = "- " if block.start is None else f"{block.start + index}. "
                body = write(item.children).rstrip("\n")
                items.append(
                    mark + body.replace("\n", "\n" + " " * len(mark)).replace("\n" + " " * len(mark) + "\n", "\n\n")
                )
            return "\n".join(items)
        case "table":
            rows = [
                "| " + " | ".join(_written_runs(cell).replace("|", "\\|") for cell in row) + " |" for row in block.rows
            ]
            return "\n".join([rows[0], "|" + "---|" * len(block.rows[0]), *rows[1:]])
        case "rule":
            return "***"
        case _:
            return block.text


def _written_runs(runs: Sequence[Run], marks: Sequence[str] = ("link", STRIKE, BOLD, ITALIC)) -> str:
    """Runs with one mark after the other opened around its longest groups."""
    if not marks:
        return "".join(map(_written_run, runs))
    mark, *others = marks
    groups: list[tuple[str | bool | None, list[Run]]] = []
    for run in runs:
        value = run.href if mark == "link" else mark in run.marks
        if groups and groups[-1][0] == value:
            groups[-1][1].append(run)
        else:
            groups.append((value, [run]))
    out = ""
    for index, (value, group) in enumerate(groups):
        inner = _written_runs(group, others)
        if not value or not inner.strip():
            out += inner
            continue
        body = inner.strip()
        before, after = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
        if mark == "link":
            wrapped = f"[{body}](<{value}>)"
        else:
            follows = groups[index + 1][1][0].text[:1] if index + 1 < len(groups) else " "
            precedes = groups[index - 1][1][-1].text[-1:] if index else " "
            sign = {STRIKE: "~~", BOLD: "**", ITALIC: "*"}[mark]
            safe = (before or _is_space(precedes)) and (after or _is_space(follows) or follows in ".,;:!?)")
            tag = {STRIKE: "s", BOLD: "b", ITALIC: "i"}[mark]
            safe = safe and body[0] not in "*_~" and body[-1] not in "*_~\\"
            wrapped = f"{sign}{body}{sign}" if safe else f"<{tag}>{body}</{tag}>"
        out += before + wrapped + after
    return out


def _is_space(char: str) -> bool:
    return not char or char.isspace()


def _written_run(run: Run) -> str:
    if CODE in run.marks:
        ticks = "`" * (1 + max(map(len, re.findall("`+", run.text)), default=0))
        pad = " " if run.text[:1] in "` " or run.text[-1:] in "` " else ""
        text = f"{ticks}{pad}{run.text}{pad}{ticks}"
    else:
        text = re.sub(r"([\\`*_\[\]<>~])", r"\\\1", run.text).replace("&", "&amp;")
    for mark in (SUP, SUB):
        if mark in run.marks:
            text = f"<{mark}>{text}</{mark}>"
    return text


# Changing


def each_runs(blocks: Sequence[Block], change: Callable[[list[Run]], list[Run]]) -> list[Block]:
    """Blocks with their runs changed; what is left without text is removed."""
    changed = []
    for block in blocks:
        new = replace(
            block,
            runs=tidy(change(block.runs)),
            children=each_runs(block.children, change),
            rows=[[tidy(change(cell)) for cell in row] for row in block.rows],
        )
        if block.kind in {"heading", "paragraph"} and not plain(new.runs).strip():
            continue
        if block.kind in {"list", "item", "quote"} and not new.children:
            continue
        if block.kind == "table" and not any(plain(cell) for row in new.rows for cell in row):
            continue
        changed.append(new)
    return changed


def slug(text: str) -> str:
    """Anchor of a heading, as GitHub makes it."""
    return "".join(c for c in text.lower().replace(" ", "-") if c in "-_" or unicodedata.category(c)[0] in "LNM")


def flat(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks and those within them."""
    for block in blocks:
        yield block
        yield from flat(block.children)


def all_runs(blocks: Iterable[Block]) -> Iterator[Run]:
    """Runs of blocks and of the cells of their tables."""
    for block in blocks:
        yield from block.runs
        yield from (run for row in block.rows for cell in row for run in cell)
