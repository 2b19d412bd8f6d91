"""Lines of a display formula, as OmniDocBench v1.7 divides it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pagemill_eval.benchmarks.omnidocbench.v17_normalise import without_delimiters, without_tags

_NAMES = (
    *("array", "aligned", "align", "align*", "alignedat", "alignedat*", "split", "gather", "gather*", "gathered"),
    *("multline", "multline*", "flalign", "flalign*", "eqnarray", "eqnarray*", "cases"),
)
_ALIGNED = frozenset({"aligned", "align", "align*", "alignedat", "alignedat*"})
_LONGEST_NAME = 100
_BEGIN = re.compile(rf"\\begin\{{({'|'.join(map(re.escape, _NAMES))})\}}\s*((?:\{{[^{{}}]*\}}\s*)*)")
_ANY_BEGIN = re.compile(
    r"\\begin\{(?:array|aligned|align\*?|alignedat\*?|split|gathered?|multline\*?|flalign\*?|eqnarray\*?|cases)\}"
)
_BRACKET = re.compile(rf"\\(begin|end)\{{[^}}]{{0,{_LONGEST_NAME}}}\}}")
_ROW_END = re.compile(r"\\\\\s*\*?(?:\[[^\]]*\])?")
_CELL_END = re.compile(r"&")
_BEFORE = re.compile(r"(?:\\left\s*\\\{|\\left\.)\s*")
_BEHIND = re.compile(r"\s*\\right(?:\.|\\\})\s*$")
_COLUMN_SEPARATORS = re.compile(r"[@!]\{[^}]*\}|[\s|]")
_DIVIDED_COLUMNS = re.compile(r"[lcr]|[lr][lcr]|c[lr]")

_LABEL = re.compile(r"\\label\s*\{[^{}]*\}")
_NUMBER = re.compile(r"\\tag\*?\s*\{[^{}]*\}")
_SPACING = re.compile(r"(?:\\qquad|\\quad|\\[,;!>:]|~)")
_SPACING_AT_END = re.compile(r"(?:(?:\\qquad|\\quad|\\[,;!>:]|~)\s*)+$")
_END_LABEL = re.compile(r"[A-Za-z0-9.\-#]+|(?:\\[A-Za-z#]+)+")
_SHORT_WORD = re.compile(r"[a-z]{1,3}")

_LOGIC = re.compile(
    r"\\(?:Rightarrow|Leftrightarrow|Longrightarrow|Longleftrightarrow|longrightarrow|longleftrightarrow|implies"
    r"|therefore|because|uparrow|downarrow|Updownarrow|forall|exists)\b|单调|否定"
)
_CASE = re.compile(
    r"\(?\d+\)?|\\(?:Rightarrow|Leftrightarrow|Longrightarrow|Longleftrightarrow|implies|therefore|uparrow|downarrow"
    r"|Updownarrow|leftarrow|rightarrow)"
)
_WORDS = re.compile(r"\\(?:text|mathrm|operatorname)\s*\{")
_DEEPEST = 50
"""Environments inside each other, in which cases are looked for: real formulas have up to three."""
_CONTEXT = 200
"""Characters behind ``cases`` that show whether they are steps of a proof."""


@dataclass(frozen=True, slots=True)
class _Block:
    """An environment of several lines that is the whole formula."""

    name: str
    columns: str
    """Columns of an array, without separators."""
    body: str
    rows: list[str]
    in_braces: bool
    """Whether large braces or invisible ones stand around it."""
    behind: str
    """The text after it, except a number."""


def lines_of(latex: str) -> list[tuple[str, int]] | None:
    """The lines of a formula that has several, with their places in it; None for one that stays whole."""
    block = _block(latex)
    behind = ""
    if block and _is_divided(block):
        body, behind = block.body, without_tags(block.behind).strip()
    else:
        body = without_delimiters(latex)
    lines = [line for row in rows_of(body) if (line := without_tags(row).strip())]
    if len(lines) < 2:
        return None
    found: list[tuple[str, int]] = []
    first, place = max(latex.find(body), 0), 0
    for line in lines:
        start = body.find(line, place)
        start = place if start < 0 else start
        place = start + len(line)
        found.append((line, first + start))
    if behind:
        found[-1] = f"{found[-1][0]} {behind}", found[-1][1]
    return found


def rows_of(body: str) -> list[str]:
    """Lines of LaTeX that end outside of braces and environments."""
    return [row for part in _divided(body, _ROW_END, in_braces=True) if (row := part.strip())]


def with_arrays(latex: str, depth: int = _DEEPEST) -> str:
    """A formula in which cases that are steps of a proof are arrays in a large brace; beyond ``depth`` they stay."""
    if not depth:
        return latex
    parts: list[str] = []
    place = 0
    while (begin := latex.find("\\begin{", place)) >= 0:
        parts.append(latex[place:begin])
        match = _BEGIN.match(latex, begin)
        if not match:
            place = begin + len("\\begin{")
            parts.append(latex[begin:place])
            continue
        end = _end_of(latex, match[1], match.end())
        if end < 0:
            place = begin
            break
        body = with_arrays(latex[match.end() : end], depth - 1)
        place = end + len(match[1]) + len("\\end{}")
        if match[1] == "cases" and _are_steps(body, latex[place : place + _CONTEXT]):
            parts.append(f"\\left\\{{ \\begin{{array}}{{l}} {body.strip()} \\end{{array}} \\right.")
        else:
            parts.append(f"{match[0]}{body}\\end{{{match[1]}}}")
    return "".join(parts) + latex[place:]


def _block(latex: str) -> _Block | None:
    latex = without_delimiters(latex)
    before = _BEFORE.match(latex)
    latex = latex[before.end() :].lstrip() if before else latex
    behind = _BEHIND.search(latex)
    latex = latex[: behind.start()].rstrip() if behind else latex
    begin = _BEGIN.match(latex)
    end = _end_of(latex, begin[1], begin.end()) if begin else -1
    if not begin or end < 0:
        return None
    body = latex[begin.end() : end]
    columns = re.search(r"\{([^{}]*)\}", begin[2]) if begin[1] == "array" else None
    return _Block(
        name=begin[1],
        columns=_COLUMN_SEPARATORS.sub("", columns[1]) if columns else "",
        body=body,
        rows=rows_of(body),
        in_braces=bool(before or behind),
        behind=_without_numbers(latex[end + len(begin[1]) + len("\\end{}") :]).strip(),
    )


def _is_divided(block: _Block) -> bool:
    if len(rows_of(block.behind)) > 1:
        return False
    if block.name == "cases":
        return _are_statements(block)
    later = block.rows[1:]
    nested_cases = bool(_ANY_BEGIN.search(block.body)) and any(map(_is_case, later))
    if block.name == "array":
        is_one_brace = block.in_braces and set(block.columns) == {"l"} and bool(later)
        return bool(_DIVIDED_COLUMNS.fullmatch(block.columns)) and not (nested_cases or is_one_brace)
    if block.name in _ALIGNED:
        is_system = sum(map(_has_left_side, block.rows)) > 1 or any(_has_words(row) or _is_case(row) for row in later)
        return not (nested_cases or (block.in_braces and (_ANY_BEGIN.search(block.body) or is_system)))
    return True


def _are_statements(block: _Block) -> bool:
    """Whether the lines of cases follow from each other, rather than being values."""
    if len(block.rows) < 2 or any(len(_cells(row)) > 1 for row in block.rows) or not _LOGIC.search(block.body):
        return False
    if _ANY_BEGIN.search(block.body) or any(_has_logic(row) or _has_words(row) for row in block.rows[1:]):
        return True
    return _has_logic(block.rows[0])


def _are_steps(body: str, behind: str) -> bool:
    rows = rows_of(body)
    if len(rows) < 2 or any(len(_cells(row)) > 1 for row in rows):
        return False
    behind = behind.lstrip()
    return bool(_LOGIC.search(body) or _LOGIC.search(behind) or _BEGIN.match(behind))


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _divided(row, _CELL_END, in_braces=False)]


def _lead(row: str) -> str:
    return row.lstrip("& \t\n\r\f\v")


def _has_left_side(row: str) -> bool:
    cells = _cells(row)
    return len(cells) > 1 and bool(without_tags(cells[0]).strip())


def _is_case(row: str) -> bool:
    return bool(_CASE.match(without_tags(_lead(row)).strip()))


def _has_words(row: str) -> bool:
    return bool(_WORDS.search(_lead(row)))


def _has_logic(row: str) -> bool:
    return bool(_LOGIC.search(_lead(row)))


def _divided(text: str, separator: re.Pattern[str], *, in_braces: bool) -> list[str]:
    """Parts of LaTeX between separators outside of environments and, if ``in_braces``, outside of braces."""
    parts: list[str] = []
    first = place = depth = level = 0
    while place < len(text):
        if bracket := _BRACKET.match(text, place):
            level = level + 1 if bracket[1] == "begin" else max(0, level - 1)
            place = bracket.end()
            continue
        end = separator.match(text, place) if not (depth or level) else None
        if end and (end[0] != "&" or not _is_escaped(text, place)):
            parts.append(text[first:place])
            first = place = end.end()
            continue
        if in_braces and text[place] in "{}" and not _is_escaped(text, place):
            depth = depth + 1 if text[place] == "{" else max(0, depth - 1)
        place += 1
    return [*parts, text[first:]]


def _is_escaped(text: str, place: int) -> bool:
    count = 0
    while count < place and text[place - count - 1] == "\\":
        count += 1
    return count % 2 == 1


def _end_of(latex: str, name: str, place: int) -> int:
    """The end of an environment, given the end of its beginning; -1 if it is not closed."""
    depth = 1
    for tag in re.compile(rf"\\(begin|end)\{{{re.escape(name)}\}}").finditer(latex, place):
        depth += 1 if tag[1] == "begin" else -1
        if not depth:
            return tag.start()
    return -1


def _without_numbers(behind: str) -> str:
    """The text after an environment, without labels and numbers at its end."""
    rest = _LABEL.sub("", behind).rstrip()
    while rest:
        number = _NUMBER.search(rest)
        if number and number.end() == len(rest):
            rest = _without_spacing(rest[: number.start()])
            continue
        opener = rest.rfind({")": "(", "]": "["}.get(rest[-1], "\0"))
        if opener < 0 or not _is_end_label(rest[opener + 1 : -1].strip(), rest[:opener]):
            break
        rest = _without_spacing(rest[:opener])
    return rest


def _without_spacing(text: str) -> str:
    return _SPACING_AT_END.sub("", text.rstrip()).rstrip()


def _is_end_label(label: str, before: str) -> bool:
    if before and not (before[-1].isspace() or _SPACING.search(before[-10:])):
        return False
    return not _SHORT_WORD.fullmatch(label) and bool(_END_LABEL.fullmatch(label))
