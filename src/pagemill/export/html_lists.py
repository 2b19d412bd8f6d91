"""Lines of a list region as nested HTML lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ORDINAL = re.compile(r"(\d{1,3})[.)]\s+")
_BULLET = re.compile(r"[^\w\s(\[<\"'“‘①-⑳㉠-㉻]\s*|ㅇ\s+")
_DEEPEST = 8


@dataclass(slots=True)
class _Open:
    tag: str
    indent: int


def list_html(lines: Iterable[str]) -> str:
    """Items as ``ul`` and ``ol``, deeper where they are indented; any other marker (``(a)``, ``①``) stays as text."""
    out: list[str] = []
    stack: list[_Open] = []
    for line in lines:
        text = line.lstrip()
        if not text:
            continue
        indent = len(line) - len(text)
        while len(stack) > 1 and indent < stack[-1].indent:
            out.append(f"</li></{stack.pop().tag}>")
        ordinal = _ORDINAL.match(text)
        tag = "ol" if ordinal else "ul"
        if not stack or (indent > stack[-1].indent and len(stack) < _DEEPEST):
            out.append(f"<{tag}>")
            stack.append(_Open(tag, indent))
        elif stack[-1].tag != tag:
            out.append(f"</li></{stack[-1].tag}>\n<{tag}>")
            stack[-1].tag = tag
        else:
            out.append("</li>\n")
        mark = ordinal or _BULLET.match(text)
        value = f' value="{int(ordinal[1])}"' if ordinal else ""
        out.append(f"<li{value}>{escape(text[mark.end() :] if mark else text, quote=False)}")
    while stack:
        out.append(f"</li></{stack.pop().tag}>")
    return "".join(out)
