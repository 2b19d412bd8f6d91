"""Formulas of the web and of OpenDocument (MathML) as LaTeX."""

from __future__ import annotations

from functools import reduce
from typing import Any

from pagemill.formulas import signs

_TOKENS = ("mi", "mn", "mo", "ms", "mtext")
_LARGE = frozenset("∑∏∐∫∬∭∮⋃⋂⋁⋀⨁⨂")
"""Operators with limits above and below."""
_ACCENTS = {"^": "hat", "¯": "bar", "‾": "overline", "~": "tilde", "→": "vec", "˙": "dot", "¨": "ddot", "´": "acute"}
_UNSEEN = dict.fromkeys(range(0x2061, 0x2065))
"""Signs of application and multiplication."""
_SILENT = ("annotation", "annotation-xml", "-comment", "mphantom")
_MOST_DEPTH = 60
_MOST_CHARACTERS = 20_000
"""Characters of a formula's markup: joining its pieces takes quadratic time. Longer ones become plain text."""


def latex_of_mathml(node: Any) -> str:
    """LaTeX of an element ``math`` of a parsed page: that which it has beside it, or our own."""
    for each in node.css("annotation"):
        # What the author wrote, as MathJax and Wikipedia keep it beside their MathML: better than any conversion.
        if each.attributes.get("encoding") == "application/x-tex":
            return str(each.text()).strip()
    is_long = len(node.html or "") > _MOST_CHARACTERS
    return " ".join(node.text(separator=" ").split()) if is_long else _latex(node, 0).strip()


def _latex(node: Any, depth: int) -> str:
    tag = node.tag
    if tag in _TOKENS:
        return _token(node)
    if depth > _MOST_DEPTH:
        return signs.latex_of(node.text(), "r")
    children = [each for each in node.iter() if each.tag not in _SILENT]
    parts = [_latex(child, depth + 1) for child in children]
    base = parts[0] if parts else ""
    # Without braces a script would apply to the last letter alone.
    held = f"{{{base}}}" if len(base) > 1 and not base.removeprefix("\\").isalpha() else base
    is_large = base.removeprefix("\\") in signs.LIMIT_FUNCTIONS or (children and children[0].text().strip() in _LARGE)
    match tag, len(parts):
        case "mfrac", 2:
            return rf"\frac{{{base}}}{{{parts[1]}}}"
        case "mroot", 2:
            return rf"\sqrt[{parts[1]}]{{{base}}}"
        case "msqrt", _:
            return rf"\sqrt{{{reduce(signs.joined, parts, '')}}}"
        case ("msub", 2) | ("msup", 2):
            return f"{held}{'_' if tag == 'msub' else '^'}{{{parts[1]}}}"
        case ("munder", 2) | ("mover", 2):
            sign = children[1].text().strip()
            accent = signs.ACCENTS.get(sign) or _ACCENTS.get(sign, "")
            if tag == "mover" and accent:
                return signs.accented(accent, base)
            if is_large:
                return f"{base}{'_' if tag == 'munder' else '^'}{{{parts[1]}}}"
            return rf"\{'underset' if tag == 'munder' else 'overset'}{{{parts[1]}}}{{{base}}}"
        case ("msubsup", 3) | ("munderover", 3):
            return f"{base if is_large else held}_{{{parts[1]}}}^{{{parts[2]}}}"
        case "mtable", _:
            return rf"\begin{{matrix}}{signs.ROW_END.join(parts)}\end{{matrix}}"
        case ("mtr", _) | ("mlabeledtr", _):
            return " & ".join(parts)
        case "mfenced", _:
            first, last = (node.attributes.get(name, sign) or "" for name, sign in (("open", "("), ("close", ")")))
            inside = (node.attributes.get("separators", ",") or "")[:1].join(parts)
            return signs.joined(rf"\left{signs.DELIMITERS.get(first, first or '.')}", inside) + (
                rf"\right{signs.DELIMITERS.get(last, last or '.')}"
            )
        case "semantics", _:
            return base
    return reduce(signs.joined, parts, "")


def _token(node: Any) -> str:
    text = " ".join(node.text().split()).translate(_UNSEEN)
    if node.tag in ("mtext", "ms"):
        return signs.quoted(text)
    if text in signs.FUNCTIONS:
        return f"\\{text}"
    look = signs.LOOKS.get(node.attributes.get("mathvariant") or "", "r")
    return reduce(
        signs.joined, (" " if each == " " else signs.latex_of(*signs.letter_of(each, look)) for each in text), ""
    )
