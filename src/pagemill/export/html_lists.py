"""Lines of a list region as nested HTML lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ORDINAL = re.compile(r"(\d{1,3})[.)]\s+")
BULLET = re.compile(r"[^\w\s(\[<\"'“‘①-⑳㉠-㉻☐☒]\s*|ㅇ\s+")
_OWN_MARK = re.compile(r"[(（]?\w{1,3}[.)）]\s|[①-⑳㉠-㉻☐☒]")
"""What needs no bullet before it: ``(a)``, ``iv.``, ``가.``, ``①``, check boxes."""
_DEEPEST = 8


@dataclass(slots=True)
class _Open:
    tag: str
    indent: int


def list_html(lines: Iterable[str]) -> str:
    """Items as ``ul`` and ``ol``, deeper where they are indented; other marks stay as text."""
    out: list[str] = []
    stack: list[_Open] = []
    for line in lines:
        text = line.lstrip()
        if not text:
            continue
        indent = len(line) - len(text)
        while len(stack) > 1 and indent < stack[-1].indent:
            out.append(f"</li></{stack.pop().tag}>")
        ordinal = ORDINAL.match(text)
        tag = "ol" if ordinal else "ul"
        if not stack or (indent > stack[-1].indent and len(stack) < _DEEPEST):
            out.append(f"<{tag}>")
            stack.append(_Open(tag, indent))
        elif stack[-1].tag != tag:
            out.append(f"</li></{stack[-1].tag}>\n<{tag}>")
            stack[-1].tag = tag
        else:
            out.append("</li>\n")
        mark = ordinal or BULLET.match(text)
        text = text[mark.end() :] if mark else text
        value = f' value="{int(ordinal[1])}"' if ordinal else ""
        style = ' class="marked"' if not ordinal and _OWN_MARK.match(text) else ""
        out.append(f"<li{value}{style}>{escape(text, quote=False)}")
    while stack:
        out.append(f"</li></{stack.pop().tag}>")
    return "".join(out)
