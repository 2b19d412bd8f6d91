"""From a model's answer to the content of a region: steps that the model card names, then those that always run.

Answers are untrusted: a model writes what it reads, and a document may contain anything. Tables are rebuilt from cells
and text; text and formulas are recorded as the model wrote them and sanitised where they are shown
(:mod:`pagemill.export`). Every step runs in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from pagemill.document.labels import Task
from pagemill.document.page import ContentFormat
from pagemill.recognition.base import Problem
from pagemill.recognition.vlm.grounding import parse_grounded
from pagemill.recognition.vlm.guard import Flaw
from pagemill.recognition.vlm.table_answers import read_table

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
LONGEST_CAPTION = 300
_FENCE = re.compile(r"(`{3,}|~{3,})([^`\n]*)")
_WHOLE_TABLE = re.compile(r"<table\b.*</table\s{0,9}>", re.IGNORECASE | re.DOTALL)
_UNWRAPPED = frozenset({"markdown", "md", "text", "plaintext"})
"""Languages of a fence that the model, not the page, put around a text. No table or formula is a code block."""
_LISTING = re.compile(r"(^(?:`{3,}|~{3,}).*?(?:^(?:`{3,}|~{3,})[ \t]*$|\Z)|`[^`\n]{1,500}`)", re.MULTILINE | re.DOTALL)
_IN_FORMULA = r"(?:\\[\\$]|[^$\n]|\n(?!\n))*+"
_INLINE_FORMULA = re.compile(
    rf"\\[\\$]|\$\${_IN_FORMULA}\$\$|\$\$|\$(?!\s*\d{_IN_FORMULA}\$\s?\d)({_IN_FORMULA})\$(?!\$)"
)
"""In its group what stands between single dollars, in one paragraph; starting and followed by a digit, two prices."""
_INLINE_DELIMITERS = re.compile(r"(?<!\\)\\([()])")
_ESCAPED_NUMBER = re.compile(r"(?<!\\)\\\[(\d[\d\s,;.–-]{0,40})\\\]")
_BRACE_OR_DOLLAR = re.compile(r"\\.|[{}$]", re.DOTALL)
_NO_WORDS = re.compile(r"[\\{}$%#&_^~]")
_DISPLAY_DELIMITERS = re.compile(r"(?<!\\)\\[\[\]]|\$\$")
_INSIDE = r"(?:[^\\]|\\(?![\[\]]))*+"
_DISPLAYED = re.compile(
    rf"^[ \t]*\\\[(?P<alone>{_INSIDE})\\\][ \t]*$|(?<!\\)\\\[(?P<inner>{_INSIDE})\\\]", re.MULTILINE
)
_SIGNS = re.compile(r"[\\^_{}=<>+\n]")
_LEADERS = re.compile(r"([.·…‥_])\1{3,}|(?:[.·…] ){4,}[.·…]?")
_SPECIAL = re.compile(r"<[|｜]/?[\w▁]{1,30}[|｜]>")
_CENTER = re.compile(r"</?center>|<div\s{1,3}align=[\"']?center[\"']?>|(?<=\n)</div>|</div>$", re.IGNORECASE)


class Cleaned(NamedTuple):
    """The content of a region."""

    content: str
    content_format: ContentFormat
    problem: Problem | None = None


def clean(text: str, task: Task, steps: Iterable[str]) -> Cleaned:
    """Turn an answer into the content of a region.

    Args:
        text: The answer, or its sound part.
        task: The task of the request.
        steps: Names of :data:`STEPS`, in order.

    Returns:
        Markdown for text, HTML for a table (also if text was requested and only a table came back), LaTeX for a
        formula. An answer without the requested table becomes text, with a problem. A few words beside a table become
        its caption; more are reported as a problem.
    """
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    for step in steps:
        text = STEPS[step](text, task)
    text = text.strip()
    if task is Task.FORMULA:
        lines = (line.strip() for line in text.split("\n"))  # an empty line ends a formula in Markdown
        return Cleaned("\n".join(line for line in lines if line), ContentFormat.LATEX)
    answer = read_table(text) if task is Task.TABLE or _WHOLE_TABLE.fullmatch(text) else None
    if answer and task is not Task.TABLE and answer[1]:
        answer = None  # words between tables: all of it is the text
    if answer:
        table, beside = answer
        if len(beside) <= LONGEST_CAPTION:
            table = replace(table, caption=" ".join(filter(None, (table.caption, beside))))
            return Cleaned(table.to_html(), ContentFormat.HTML)
        problem = Problem("beside_table", f"left out beside the table: {beside[:500]}")
        return Cleaned(table.to_html(), ContentFormat.HTML, problem)
    if task is Task.TABLE:
        problem = Problem(Flaw.NO_TABLE, "the model returned no table for this table region; its text is kept")
        return Cleaned(text, ContentFormat.MARKDOWN, problem)
    return Cleaned(text, ContentFormat.MARKDOWN)


def fences(text: str, task: Task) -> str:
    """Remove a code fence around the whole answer, unless the region is code."""
    lines = text.strip().split("\n")
    opening = _FENCE.fullmatch(lines[0])
    if not opening or (task is Task.TEXT and opening.group(2).strip().lower() not in _UNWRAPPED):
        return text
    closing = len(lines) - 1 if lines[-1].strip() == opening.group(1) and len(lines) > 1 else len(lines)
    return "\n".join(lines[1:closing])


def delimiters(text: str, task: Task) -> str:
    r"""Remove stray delimiters of a formula (``$$``, ``\[``, ``\(``, ``$``); in text make them dollars."""
    if task is not Task.FORMULA:
        return _outside_code(text, _with_dollars)
    text = _INLINE_DELIMITERS.sub("$", _DISPLAY_DELIMITERS.sub("\n", text)).strip()
    if not (text.startswith("$") and text.endswith("$")):
        return text
    pieces = _between_dollars(text)
    if len(pieces) % 2 == 0:  # unpaired
        return text
    for index in range(0, len(pieces), 2):  # text between formulas
        if pieces[index].strip() and not _NO_WORDS.search(pieces[index]):
            pieces[index] = f"\\text{{{pieces[index]}}}"
    return "".join(pieces)


def _between_dollars(text: str) -> list[str]:
    r"""Split a text at its dollars, except those in braces: in ``\text{ if $x$}`` they belong to LaTeX."""
    pieces: list[str] = []
    depth = start = 0
    for mark in _BRACE_OR_DOLLAR.finditer(text):
        if mark[0] == "$" and depth <= 0:
            pieces.append(text[start : mark.start()])
            start = mark.end()
        depth += (mark[0] == "{") - (mark[0] == "}")
    return [*pieces, text[start:]]


def _with_dollars(prose: str) -> str:
    prose = _ESCAPED_NUMBER.sub(r"[\1]", prose)  # a Markdown escape, not a formula
    return _DISPLAYED.sub(_as_displayed, _INLINE_DELIMITERS.sub("$", prose))


def _as_displayed(match: re.Match[str]) -> str:
    """A formula where it is alone on its lines, or has signs of LaTeX; else brackets that the model has escaped."""
    alone, inner = match["alone"], match["inner"]
    if alone is not None:
        return f"$${alone}$$"
    return f"$${inner}$$" if _SIGNS.search(inner) else f"[{inner}]"


def inline_math(text: str, task: Task) -> str:
    """Remove blanks inside dollars: few renderers read ``$ x $`` as a formula, all read ``$x$``."""
    return _outside_code(text, _closed_up) if task is Task.TEXT else text


def leaders(text: str, task: Task) -> str:
    """Shorten dot leaders and fill-in blanks to three marks."""
    if task is Task.FORMULA:
        return text
    return _outside_code(text, lambda prose: _LEADERS.sub(lambda match: match.group()[0] * 3, prose))


def special_tokens(text: str, task: Task) -> str:
    """Remove DeepSeek-OCR's references with their boxes, and other special tokens."""
    if "<|ref|>" in text or "<|det|>" in text:
        text = "\n\n".join(element.content for element in parse_grounded(text).elements if element.content)
    return _SPECIAL.sub("", text)


def reasoning(text: str, task: Task) -> str:
    """Remove the reasoning of a reasoning model."""
    head, mark, rest = text.partition("</think>")
    return rest if mark and head.lstrip().startswith("<think>") else text


def center(text: str, task: Task) -> str:
    """Remove ``<center>``, for example around captions."""
    return _CENTER.sub("", text)


STEPS: Mapping[str, Callable[[str, Task], str]] = {
    step.__name__: step for step in (reasoning, fences, delimiters, inline_math, leaders, special_tokens, center)
}
"""Steps that ``cleanup`` in a model card may name."""


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply a change outside code only: inside it dollars, brackets and dots are literal."""
    return "".join(piece if index % 2 else change(piece) for index, piece in enumerate(_LISTING.split(text)))


def _closed_up(text: str) -> str:
    """Remove blanks inside single dollars; a dollar whose pair is missing is prose."""
    return _INLINE_FORMULA.sub(lambda match: f"${match[1].strip()}$" if (match[1] or "").strip() else match[0], text)
