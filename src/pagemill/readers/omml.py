"""Formulas of Office (OMML) as LaTeX.

Specification: ECMA-376 Part 1, 22.1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from pagemill.formulas import signs

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DELETED = frozenset({f"{_W}del", f"{_W}moveFrom"})
_MOST_DEPTH = 64

_MATRICES = {("(", ")"): "pmatrix", ("[", "]"): "bmatrix", ("|", "|"): "vmatrix", (r"\{", "."): "cases"}

_BARS = {"‾": "overline", "¯": "overline", "\u0305": "overline", "\u0332": "underline", "←": "overleftarrow"}
_BARS |= {"→": "overrightarrow", "^": "hat", "~": "tilde", "˙": "dot", "´": "acute", "`": "grave"}
_GROUPS = {"⏞": "overbrace", "⏟": "underbrace", "⏜": "overparen", "⏝": "underparen"}


def latex_of_omml(formula: Any) -> str:
    """LaTeX of an element ``m:oMath``."""
    return _all(formula, 0)


def _all(node: Any, depth: int) -> str:
    """The elements inside of one, in order."""
    if node is None or depth > _MOST_DEPTH:
        return ""
    # Comments and processing instructions have a function instead of a tag.
    pieces = (_one(child, depth + 1) for child in node if isinstance(child.tag, str))
    return reduce(signs.joined, pieces, "")


def _one(node: Any, depth: int) -> str:
    name = node.tag.removeprefix(_M)
    if name == "r":
        return _run(node)
    if name in _DELETED:
        return ""
    if name == f"{_W}r":  # text that was typed into a formula
        return "".join(signs.quoted(each.text or "") for each in node.iterfind(f"{_W}t"))
    # Properties: those with a meaning are read by their element.
    if name.endswith("Pr"):
        return ""
    write = _WRITERS.get(name)
    return write(node, depth) if write else _all(node, depth)


def _part(node: Any, name: str, depth: int) -> str:
    return _all(node.find(f"{_M}{name}"), depth)


def _setting(node: Any, name: str, default: str = "") -> str:
    """A property of an element: its value, also where that is empty."""
    return _value(node.find(f"{_M}{node.tag.removeprefix(_M)}Pr"), name, default)


def _value(properties: Any, name: str, default: str = "") -> str:
    found = None if properties is None else properties.find(f"{_M}{name}")
    return default if found is None else str(found.get(f"{_M}val") or "")


def _is_on(node: Any, name: str) -> bool:
    return _setting(node, name, "0") not in ("0", "false", "off")


def _run(node: Any) -> str:
    text = "".join(each.text or "" for each in node if each.tag in (f"{_M}t", f"{_W}t"))
    properties = node.find(f"{_M}rPr")
    if properties is not None and properties.find(f"{_M}nor") is not None:
        return signs.quoted(text)
    if text.strip() in signs.FUNCTIONS:
        return f"\\{text.strip()}"
    script, style = (_value(properties, name) for name in ("scr", "sty"))
    look = signs.LOOKS.get(script, "b" if style in ("b", "bi") else "r")
    # Between a fraction and text, a space in the run is one that its author typed.
    pieces = (
        " " if char.isspace() else signs.latex_of(*signs.letter_of(char, look)) for char in text if char != "\u2061"
    )
    return reduce(signs.joined, pieces, "")


def _fraction(node: Any, depth: int) -> str:
    kind, above, below = _setting(node, "type"), _part(node, "num", depth), _part(node, "den", depth)
    if kind == "lin":
        return f"{{{above}}}/{{{below}}}"
    if kind == "noBar":
        return rf"\begin{{matrix}}{above}{signs.ROW_END}{below}\end{{matrix}}"
    return rf"\frac{{{above}}}{{{below}}}"


def _scripts(node: Any, depth: int) -> str:
    low, high = _part(node, "sub", depth), _part(node, "sup", depth)
    scripts = (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")
    base = _part(node, "e", depth)
    if node.tag == f"{_M}sPre":
        return f"{{}}{scripts}{base}"
    # Without braces the script would apply to the last character alone.
    return f"{{{base}}}{scripts}" if len(base) > 1 and not base.isalpha() else f"{base}{scripts}"


def _root(node: Any, depth: int) -> str:
    degree = "" if _is_on(node, "degHide") else _part(node, "deg", depth)
    return rf"\sqrt{f'[{degree}]' if degree else ''}{{{_part(node, 'e', depth)}}}"


def _operator(node: Any, depth: int) -> str:
    # OMML leaves out the sign of an integral: it is the default of an n-ary operator.
    sign = signs.latex_of(_setting(node, "chr", "∫") or "∫", "r")
    low = "" if _is_on(node, "subHide") else _part(node, "sub", depth)
    high = "" if _is_on(node, "supHide") else _part(node, "sup", depth)
    scripts = (f"_{{{low}}}" if low else "") + (f"^{{{high}}}" if high else "")
    return f"{sign}{scripts} {_part(node, 'e', depth)}"


def _delimited(node: Any, depth: int) -> str:
    first, last = (_delimiter(_setting(node, name, sign)) for name, sign in (("begChr", "("), ("endChr", ")")))
    between = signs.latex_of(_setting(node, "sepChr", "|")[:1] or "|", "r")
    inside = between.join(_all(each, depth) for each in node.iterfind(f"{_M}e"))
    matrix = _MATRICES.get((first, last))
    for kind in ("matrix", "aligned"):
        start, end = rf"\begin{{{kind}}}", rf"\end{{{kind}}}"
        is_one = inside.startswith(start) and inside.endswith(end) and inside.count(start) == 1
        if matrix and is_one and (matrix == "cases") == (kind == "aligned"):
            return rf"\begin{{{matrix}}}{inside[len(start) : -len(end)]}\end{{{matrix}}}"
    return signs.joined(rf"\left{first}", inside) + rf"\right{last}"


def _delimiter(sign: str) -> str:
    return signs.DELIMITERS.get(sign, sign or ".")


def _function(node: Any, depth: int) -> str:
    name = _part(node, "fName", depth)
    name = rf"\operatorname{{{name}}}" if name.isalpha() else name
    return signs.joined(name, _part(node, "e", depth))


def _limit(node: Any, depth: int) -> str:
    base, limit = _part(node, "e", depth), _part(node, "lim", depth)
    mark = "_" if node.tag == f"{_M}limLow" else "^"
    if base.removeprefix("\\") in signs.LIMIT_FUNCTIONS or base.startswith((r"\underbrace", r"\overbrace")):
        return f"{base}{mark}{{{limit}}}"
    return rf"\{'underset' if mark == '_' else 'overset'}{{{limit}}}{{{base}}}"


def _accent(node: Any, depth: int) -> str:
    base = _part(node, "e", depth)
    sign = _setting(node, "chr", "\u0302")
    return signs.accented(signs.ACCENTS.get(sign) or _BARS.get(sign, "hat"), base)


def _bar(node: Any, depth: int) -> str:
    return rf"\{'underline' if _setting(node, 'pos', 'bot') == 'bot' else 'overline'}{{{_part(node, 'e', depth)}}}"


def _group(node: Any, depth: int) -> str:
    sign, base = _setting(node, "chr", "⏟"), _part(node, "e", depth)
    if sign in _GROUPS or sign in _BARS:
        return rf"\{_GROUPS.get(sign) or _BARS[sign]}{{{base}}}"
    over = "underset" if _setting(node, "pos", "bot") == "bot" else "overset"
    return rf"\{over}{{{signs.latex_of(sign[:1], 'r')}}}{{{base}}}"


def _matrix(node: Any, depth: int) -> str:
    rows = (" & ".join(_all(each, depth) for each in row.iterfind(f"{_M}e")) for row in node.iterfind(f"{_M}mr"))
    return rf"\begin{{matrix}}{signs.ROW_END.join(rows)}\end{{matrix}}"


def _lines(node: Any, depth: int) -> str:
    rows = (_all(each, depth).replace(r"\&", "&") for each in node.iterfind(f"{_M}e"))  # at which they are aligned
    return rf"\begin{{aligned}}{signs.ROW_END.join(rows)}\end{{aligned}}"


_WRITERS: dict[str, Callable[[Any, int], str]] = {
    **dict.fromkeys(("sSub", "sSup", "sSubSup", "sPre"), _scripts),
    **dict.fromkeys(("limLow", "limUpp"), _limit),
    "f": _fraction,
    "rad": _root,
    "nary": _operator,
    "d": _delimited,
    "func": _function,
    "acc": _accent,
    "bar": _bar,
    "groupChr": _group,
    "m": _matrix,
    "eqArr": _lines,
    "borderBox": lambda node, depth: rf"\boxed{{{_part(node, 'e', depth)}}}",
    "phant": lambda node, depth: _part(node, "e", depth) if _setting(node, "show", "1") not in ("0", "off") else "",
}
