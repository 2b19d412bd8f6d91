r"""Text as Markdown: markup characters are escaped, inline marks are written.

A mark is written with asterisks where CommonMark reads them as emphasis. Next to a letter it does not where the mark
begins or ends with punctuation, as in Korean, which sets particles right after a quotation: that punctuation is moved
outside, and what has no other edge becomes ``<b>``, ``<i>`` or ``<s>``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import takewhile

from pagemill.document.marks import TAGS, Inline, Marked, nested, page_of_target, safe_target
from pagemill.document.page import Mark, Span
from pagemill.late import re

_BLOCK_START = re.compile(
    r"^( {0,3})(?=#{1,6}(?:\s|$)|>|```|~~~|[-+*]\s|[-=_*+][-=_*+ \t]*$"
    r"|-[-|: \t]*$|[|:][|: \t]*-[-|: \t]*$"  # below a table's head: the cells of a row beyond its columns are not shown
    r"|\[(?:\\[\s\S]|[^][\\]){1,999}\]:)",  # targets of links are not shown either, whose names may take several lines
    re.MULTILINE,
)
_ORDINAL = re.compile(r"^( {0,3}\d{1,9})(?=[.)](?:[ \t]|$))", re.MULTILINE)
_INLINE_MARKUP = re.compile(r"(?<!\\)(\\*+)(?=<[A-Za-z/!?]|&#?[0-9A-Za-z]{1,31};)|(?<=\])(?=\()")
"""Before a tag or character reference, with the backslashes there, and between the text and the address of a link."""
_EMPHASIS = re.compile(
    r"(?<![\\*])(\*{1,3})(?=[^\s*])([^\n]*?[^\s*])(\1)(?!\*)|(?<![\w\\])(_{1,3})(?=[^\s_])([^\n]*?[^\s_])(\4)(?!\w)"
)
"""Pairs of signs that would make letters italic or bold; in prose, a sign alone stays as printed."""
_BARE_EXCLAMATION = re.compile(r"(?<!\\)((?:\\\\)*)!$")
"""Before the bracket of a link it would make an image of it; after an escaped backslash, too."""
_MATHEMATICS = re.compile(r"(?<!\\)\$(?=\S)[^$]*(?<=\S)\$(?!\d)")
"""Two dollars between which a reader of Markdown would see a formula."""
_LITERAL = re.compile(
    r"[`*]|\\(?=[!-/:-@\[-`{-~]|$)|(?<![^\W_])_|_(?![^\W_])|~(?=~|$)|(?<=~)~|^~"
    r"|<(?=[A-Za-z/!?]|$)|&(?=#?[0-9A-Za-z]{1,31};|$)|\](?=\(|$)",
    re.MULTILINE,
)
"""Characters that would be markup, or part of it, next to written marks."""
_LITERAL_IN_LINK = re.compile(f"{_LITERAL.pattern}|[][]", re.MULTILINE)
_ENTITY = re.compile(r"&(?=#?[0-9A-Za-z]{1,31};)")
_TICKS = re.compile("`+")
_SIGN_CATEGORIES = frozenset(("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Co"))
"""Punctuation and symbols, as CommonMark has them; private characters stand for formulas, which begin with a dollar."""
_SIGNS = {Mark.BOLD: "**", Mark.ITALIC: "*", Mark.STRIKE: "~~"}


def escape(text: str) -> str:
    r"""Escape only what would change the structure: block markers at a line's start, tags, character references, links.

    Pictures and links are not placed by documents: a reader of the Markdown would fetch them. Emphasis marks and
    dollars stay as printed but where two of them would be taken as marks; who reads the plain text must find the words
    as they are on the page.
    """
    if _MATHEMATICS.search(text):
        text = text.replace("$", r"\$")
    text = _EMPHASIS.sub(_as_printed, text)
    # A backslash before a tag is text as well: alone it would cancel ours.
    return _INLINE_MARKUP.sub(lambda place: f"{2 * (place[1] or '')}\\", _BLOCK_START.sub(r"\1\\", text))


def not_a_list(markdown: str) -> str:
    r"""Keep a number that happens to begin a line from beginning a list: ``1986\. A good year``."""
    return _ORDINAL.sub(r"\1\\", markdown)


def _as_printed(match: re.Match[str]) -> str:
    opening, text, closing = (match[i] or match[i + 3] for i in (1, 2, 3))
    return "".join(rf"\{sign}" for sign in opening) + text + "".join(rf"\{sign}" for sign in closing)


def marked(text: str, spans: Sequence[Span]) -> str:
    """A text with its marks as Markdown; :func:`escape` where it has none."""
    if not spans:
        return escape(text)
    return _BLOCK_START.sub(r"\1\\", _Writer(bool(_MATHEMATICS.search(text))).write(nested(text, spans)))


class _Writer:
    """Writes a tree of marks.

    Args:
        dollars: Escape them.
    """

    def __init__(self, dollars: bool) -> None:
        self._dollars = dollars
        self._in_link = False

    def write(self, nodes: Sequence[Inline], before: str = "", after: str = "") -> str:
        """Nodes that stand between two characters; none at the ends of the text."""
        nodes = _spaced(nodes)
        out, closed = "", False
        for place, node in enumerate(nodes):
            if isinstance(node, str):
                out, closed = out + self._literal(node), False
                continue
            follows = _first(nodes[place + 1]) if place + 1 < len(nodes) else after
            if node.mark in _SIGNS:
                inner, signs = self._emphasis(node, out[-1:] or before, follows, closed)
                out, closed = out + inner, signs
                continue
            if node.mark is Mark.LINK:
                out = _BARE_EXCLAMATION.sub(r"\1\\!", out)
                out += self._link(node)
            elif node.mark is Mark.CODE:
                out += _code(_text(node.children))
            else:
                out += self._tagged(node)
            closed = False
        return out

    def _literal(self, text: str) -> str:
        text = (_LITERAL_IN_LINK if self._in_link else _LITERAL).sub(r"\\\g<0>", text)
        return text.replace("$", r"\$") if self._dollars else text

    def _emphasis(self, node: Marked, before: str, after: str, closed: bool) -> tuple[str, bool]:
        """A node with emphasis markers (a tag where they would not be recognized), and whether it ends in one."""
        sign = _SIGNS[node.mark]
        children = list(node.children)
        opening = closing = ""
        if isinstance(children[0], str) and not _opens(before, children[0][0]):
            opening = "".join(takewhile(lambda char: _is_sign(char) or char.isspace(), children[0]))
            children[0] = children[0][len(opening) :]
        if isinstance(children[-1], str) and children[-1] and not _opens(after, children[-1][-1]):
            closing = "".join(takewhile(lambda char: _is_sign(char) or char.isspace(), children[-1][::-1]))[::-1]
            children[-1] = children[-1][: len(children[-1]) - len(closing)]
        children = [child for child in children if child]
        reads = bool(children) and not (closed and not opening)
        outside = opening[-1:] or before, closing[:1] or after
        inside = self.write(children, *(outside if sign[0] == "*" else "~~")) if reads else ""
        bare = inside.strip("*") if sign[0] == "*" else inside  # equal signs in a row are read as one
        # CommonMark would show the signs themselves there, as next to punctuation inside of a word.
        if not bare or not _opens(outside[0], bare[0]) or not _opens(outside[1], bare[-1]):
            return self._tagged(node), False
        return f"{self._literal(opening)}{sign}{inside}{sign}{self._literal(closing)}", not closing

    def _tagged(self, node: Marked) -> str:
        tag = TAGS[node.mark]
        return f"<{tag}>{self.write(node.children, '>', '<')}</{tag}>"

    def _link(self, node: Marked) -> str:
        target = safe_target(node.target)
        # A target that is not safe, or a page of the PDF, which has no address here.
        if target is None or page_of_target(target) is not None:
            return self.write(node.children)
        inner = _text(node.children)
        if inner == target and ":" in target and len(node.children) == 1 and isinstance(node.children[0], str):
            return f"<{target}>"
        self._in_link = True
        inner = self.write(node.children, "[", "]")
        self._in_link = False
        return f"[{inner}]({_destination(target)})"


def _spaced(nodes: Sequence[Inline]) -> list[Inline]:
    """The nodes, with white space moved out of their edges, without empty ones."""
    out: list[Inline] = []
    for node in nodes:
        if isinstance(node, Marked):
            children = _spaced(node.children)
            head = tail = ""
            if children and isinstance(children[0], str):
                kept = children[0].lstrip()
                head, children[0] = children[0][: len(children[0]) - len(kept)], kept
            if children and isinstance(children[-1], str):
                kept = children[-1].rstrip()
                tail, children[-1] = children[-1][len(kept) :], kept
            children = [child for child in children if child]
            inner: list[Inline] = [head, Marked(node.mark, node.target, children) if children else "", tail]
        else:
            inner = [node]
        for each in inner:
            if isinstance(each, str) and out and isinstance(out[-1], str):
                out[-1] += each
            elif each:
                out.append(each)
    return out


def _text(nodes: Sequence[Inline]) -> str:
    return "".join(node if isinstance(node, str) else _text(node.children) for node in nodes)


def _first(node: Inline) -> str:
    """The first character that stands in the Markdown, signs of emphasis aside."""
    if isinstance(node, str):
        return node[0]
    return _first(node.children[0]) if node.mark in (Mark.BOLD, Mark.ITALIC) else "["


def _opens(outside: str, inside: str) -> bool:
    """Whether an emphasis marker between two characters is recognized; the outer one may be missing."""
    return not _is_sign(inside) or not outside or outside.isspace() or _is_sign(outside)


def _is_sign(char: str) -> bool:
    return unicodedata.category(char) in _SIGN_CATEGORIES


def _code(text: str) -> str:
    runs = max(map(len, _TICKS.findall(text)), default=0)
    if runs > 1:  # three and more would begin a block of code at a line's start
        return f"<code>{_LITERAL.sub(lambda sign: chr(92) + sign[0], text)}</code>"
    if not runs:
        return f"`{text}`"
    return f"`` {text} ``" if text.startswith("`") or text.endswith("`") else f"``{text}``"


def _destination(target: str) -> str:
    """An address as it may stand between round brackets."""
    depth = 0
    for char in target:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            break
    if depth:
        target = target.replace("(", "%28").replace(")", "%29")
    return _ENTITY.sub("&amp;", target.replace("\\", "%5C"))
