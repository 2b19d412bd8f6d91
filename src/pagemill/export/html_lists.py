"""Lines of a list region as nested HTML lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pagemill.document.marks import inline_html
from pagemill.document.page import Span
from pagemill.document.spans import cut, lines_of
from pagemill.late import re

ORDINAL = re.compile(r"(\d{1,3})[.)]\s+")
_BULLET = re.compile(r"[^\w\s(\[<\"'“‘①-⑳㉠-㉻□☐☑☒]\s*|ㅇ\s+")
_LEVEL_MARK = re.compile("[□■▢▣○●◯◎⊙❍◇◆❖△▲▽▼▷▶►▻☆★※](?=.*[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])")
OWN_MARK = re.compile(r"[(（]?\w{1,3}[.)）]\s|[①-⑳㉠-㉻□☐☑☒]")
"""Markers that need no bullet: ``(a)``, ``iv.``, ``가.``, ``①``, check boxes."""
_DEEPEST = 8
PAGE_ANCHOR = "#page-"
"""Prefix of the addresses of pages."""


def without_bullet(text: str) -> str:
    """The text of a list item without its bullet; in East Asian text shapes stay, which mark levels and notes there."""
    bullet = None if _LEVEL_MARK.match(text) else _BULLET.match(text)
    return text[bullet.end() :] if bullet else text


class _Open(msgspec.Struct):
    tag: str
    indent: int


def list_html(
    lines: Iterable[str], spans: Sequence[Span] = (), blocks: Mapping[int, Sequence[tuple[int, str]]] | None = None
) -> str:
    """Items as ``ul`` and ``ol``, deeper where they are indented; other marks stay as text.

    Args:
        lines: One item each.
        spans: Inline marks of the lines joined by line breaks.
        blocks: By the number of the line before them, what is inside of items: how many, and markup.
    """
    out: list[str] = []
    stack: list[_Open] = []
    for number, (line, marks) in enumerate(lines_of("\n".join(lines), spans)):
        text = line.lstrip()
        if not text:
            continue
        indent = len(line) - len(text)
        while len(stack) > 1 and indent < stack[-1].indent:
            out.append(f"</li></{stack.pop().tag}>")
        ordinal = ORDINAL.match(text)
        tag = "ol" if ordinal else "ul"
        # Bounded, as crafted input could nest without end.
        if not stack or (indent > stack[-1].indent and len(stack) < _DEEPEST):
            out.append(f"<{tag}>")
            stack.append(_Open(tag, indent))
        # A list of another kind at the same level is another list.
        elif stack[-1].tag != tag:
            out.append(f"</li></{stack[-1].tag}>\n<{tag}>")
            stack[-1].tag = tag
        else:
            out.append("</li>\n")
        text = text[ordinal.end() :] if ordinal else without_bullet(text)
        # As printed: a list may begin with any number, and may miss one.
        value = f' value="{int(ordinal[1])}"' if ordinal else ""
        style = ' class="marked"' if not ordinal and (OWN_MARK.match(text) or _LEVEL_MARK.match(text)) else ""
        marks = cut(marks, len(line) - len(text), len(line))
        out.append(f"<li{value}{style}>{inline_html(text, marks, pages=PAGE_ANCHOR)}")
        for depth, markup in (blocks or {}).get(number, ()):
            while len(stack) > max(1, depth):
                out.append(f"</li></{stack.pop().tag}>")
            out.append(f"\n{markup}\n")
    while stack:
        out.append(f"</li></{stack.pop().tag}>")
    return "".join(out)
