"""What a model's answer is worth: loops, truncation, emptiness, echoes of the prompt, broken tables and formulas.

Pure functions over hostile text: every check runs in time linear in its length. An answer that the model ended by
itself gets the benefit of the doubt: forms have hundreds of empty cells, contents have dot leaders, matrices have
zeros. One that ran into its limit while it repeated itself was a loop, whatever it repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pagemill.document.labels import Task

if TYPE_CHECKING:
    from pagemill.inference.chat import Answer

MAX_CHARACTERS = 400_000
"""An answer of 8,192 tokens has some 40,000 characters; of a longer one than this, only so much is looked at."""
_UNFINISHED = frozenset({"length", "max_tokens", "repetition", "abort", "error", "content_filter"})
"""Finish reasons of answers that the model did not end by itself. Servers have several names for one that it did."""
_GRAM = 8
"""Characters by which a place is found again: about two words, or a short clause of Chinese."""
_SHINGLE = 24
_MIN_SHINGLED = 1500
_REPEATED_SHARE = 0.75
"""Of all shingles that stood in the text before: prose has below 0.05, a long list of like entries up to 0.6."""
_NOT_SPOKEN = re.compile(r"<[^<>]{0,200}>|\\[A-Za-z]{1,30}|&[a-z]{2,8};")
"""Tags, commands of LaTeX and character references: what is not read aloud."""
_LATEX_TOKEN = re.compile(r"\\(?:begin|end)\s{0,3}\{([A-Za-z*]{1,30})\}|\\[A-Za-z]{1,30}|\\.|[{}]", re.DOTALL)
_SPACING = re.compile(r"(?:\\(?:quad|qquad|hspace\{[^{}]{0,20}\}|[,;:! ])[\s~&]{0,8}){24}")
_TABLE_TAG = re.compile(r"<(/?)table\b", re.IGNORECASE)
_REFERENCE = re.compile(r"<\|(ref|det)\|>[^<>|]{0,200}<\|/\1\|>")
_TABLE_MARK = re.compile(r"<table\b|<[fel]cel>|^\s{0,3}\|.{0,400}\|\s{0,3}$", re.IGNORECASE | re.MULTILINE)


class Flaw(StrEnum):
    """What is wrong with an answer, from the least to the worst: the category of the record's problem."""

    FORMULA = "unbalanced_formula"
    TABLE = "unbalanced_table"
    NO_TABLE = "no_table"
    TRUNCATED = "truncated"
    REPETITION = "repetition"
    ECHO = "prompt_echo"
    EMPTY = "empty_text"


_SEVERITY = {flaw: rank for rank, flaw in enumerate(Flaw, start=1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCheck:
    """What an answer is worth."""

    flaw: Flaw | None = None
    message: str = ""
    sound_end: int | None = None
    """Where the sound part of a looping answer ends: after the first of what is repeated. None when all is sound."""
    sound_again: int | None = None
    """Where what comes after the loop begins, in an answer that the model ended by itself."""

    @property
    def severity(self) -> int:
        """0 for a good answer; of two flawed ones the lower is the better."""
        return _SEVERITY[self.flaw] if self.flaw else 0


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text that repeats itself."""

    start: int
    period: int
    """Length of what is repeated, in characters."""
    length: int
    """Of the whole stretch."""

    @property
    def end(self) -> int:
        """Behind the last repeated character."""
        return self.start + self.length

    @property
    def repeats(self) -> float:
        """How often it stands there, the last one maybe in part."""
        return self.length / self.period


def judge(answer: Answer, task: Task, prompt: str) -> AnswerCheck:
    """Judge an answer as it came, before any clean-up.

    Args:
        answer: What the server sent.
        task: What was asked for.
        prompt: In which words.
    """
    text = answer.text[:MAX_CHARACTERS]
    if not text.strip():
        return AnswerCheck(flaw=Flaw.EMPTY, message="the model answered nothing")
    if _is_echo(text, prompt):
        return AnswerCheck(flaw=Flaw.ECHO, message="the model repeated the question")
    unfinished = answer.finish_reason in _UNFINISHED
    loop = find_loop(text, unfinished=unfinished, task=task)
    if loop is not None:
        said = " ".join(text[loop.start : loop.start + min(loop.period, 40)].split())
        message = f"the model repeats itself from character {loop.start} on, {loop.repeats:.0f} times: {said!r}"
        again = None if unfinished else loop.start + loop.length // loop.period * loop.period
        return AnswerCheck(flaw=Flaw.REPETITION, message=message, sound_end=loop.start + loop.period, sound_again=again)
    if answer.finish_reason == "repetition":  # the server has seen what was taken off the end
        return AnswerCheck(flaw=Flaw.REPETITION, message="the server ended an answer that repeated itself")
    if task is not Task.TABLE and repeated_share(_prose(text) if task is Task.PAGE else text) >= _REPEATED_SHARE:
        return AnswerCheck(flaw=Flaw.REPETITION, message="nearly all of the answer is said more than once")
    if unfinished:
        length = f" after {answer.completion_tokens} tokens" if answer.completion_tokens else ""
        return AnswerCheck(flaw=Flaw.TRUNCATED, message=f"the answer was cut off{length} ({answer.finish_reason})")
    if task is Task.TABLE:
        return _judge_table(text)
    if task is Task.FORMULA and (fault := latex_fault(text)):
        return AnswerCheck(flaw=Flaw.FORMULA, message=f"the formula is broken: {fault}")
    return AnswerCheck()


def find_loop(text: str, *, unfinished: bool, task: Task) -> Run | None:
    """The first stretch that is a loop, not a form, a leader or a matrix.

    Args:
        text: The answer.
        unfinished: It ran into its limit, so a repetition that reaches its end would have gone on.
        task: In a table, and so on a page that may hold one, equal rows and cells are common.
    """
    grams = len(text) - _GRAM + 1
    # A quick look first: of 64 characters that repeat themselves four times, 40 grams stood there before.
    if grams - len({text[start : start + _GRAM] for start in range(grams)}) < (40 if unfinished else 150):
        return None
    for run in repeating_runs(text):
        if unfinished and run.end >= len(text) - 1 and run.repeats >= 4 and run.length >= 64:
            return run
        if run.repeats < 10 or run.length < 200:
            continue
        spoken = _NOT_SPOKEN.sub("", text[run.start : run.start + run.period])
        letters = sum(character.isalpha() for character in spoken)
        characters = sum(character.isalnum() for character in spoken)
        if task is Task.TEXT:
            is_loop = letters >= 2 or (characters and run.repeats >= 100)
        else:
            is_loop = (letters >= 10 and run.repeats >= 40) or (characters and run.repeats >= 400)
        if is_loop:
            return run
    return None


def repeating_runs(text: str) -> list[Run]:
    """Stretches of text in which every character equals the one a period before, at least twice, in order.

    One pass: where no period holds, the distance to the last place with the same eight characters is tried as one. A
    wrong guess ends at the next character that differs, so some stretches are found late by less than a period.
    """
    runs: list[Run] = []
    seen: dict[str, int] = {}
    period = start = 0
    for position in range(_GRAM - 1, len(text)):
        if period and text[position] != text[position - period]:
            if position - start >= 2 * period:
                runs.append(Run(start, period, position - start))
            period = 0
        gram = text[position - _GRAM + 1 : position + 1]
        if not period and (last := seen.get(gram)) is not None:
            period = position - last
            start = last - _GRAM + 1
        seen[gram] = position
    if period and len(text) - start >= 2 * period:
        runs.append(Run(start, period, len(text) - start))
    return runs


def _prose(text: str) -> str:
    """A page's answer without its references, which are all alike, and without its tables."""
    text = _REFERENCE.sub(" ", text)
    pieces: list[str] = []
    done, inside = 0, False
    for tag in _TABLE_TAG.finditer(text):
        closes = bool(tag.group(1))
        if closes == inside:
            if not closes:
                pieces.append(text[done : tag.start()])
            done, inside = tag.end(), not closes
    if not inside:
        pieces.append(text[done:])
    return " ".join(pieces)


def repeated_share(text: str) -> float:
    """Share of a text's shingles that stood in it before; 0 for a short text.

    Only letters count, so that a loop is seen that numbers its turns, and dot leaders are none.
    """
    plain = re.sub(r"[\W\d_]+", " ", text)
    if len(plain) < _MIN_SHINGLED:
        return 0.0
    count = len(plain) - _SHINGLE + 1
    return 1 - len({plain[start : start + _SHINGLE] for start in range(count)}) / count


def latex_fault(text: str) -> str | None:
    r"""What is broken in a formula: braces, environments, ``\left`` without ``\right``, endless space."""
    depth = 0
    fences = 0
    environments: list[str] = []
    for match in _LATEX_TOKEN.finditer(text):
        token = match.group()
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if depth < 0:
                return "a brace closes that was never opened"
        elif match.group(1) is not None:
            if token.startswith("\\begin"):
                environments.append(match.group(1))
            elif not environments or environments.pop() != match.group(1):
                return f"\\end{{{match.group(1)}}} without its beginning"
        elif token == "\\left":
            fences += 1
        elif token == "\\right":
            fences -= 1
    if depth:
        return "a brace is not closed"
    if environments:
        return f"\\begin{{{environments[-1]}}} without its end"
    if fences:
        return "\\left and \\right do not match"
    if _SPACING.search(text):
        return "nothing but space for a long stretch"
    return None


def _judge_table(text: str) -> AnswerCheck:
    if not _TABLE_MARK.search(text):
        return AnswerCheck(flaw=Flaw.NO_TABLE, message="the answer holds no table")
    opened = closed = 0
    for match in _TABLE_TAG.finditer(text):
        if match.group(1):
            closed += 1
        else:
            opened += 1
    if opened != closed:
        return AnswerCheck(flaw=Flaw.TABLE, message=f"{opened} tables are opened and {closed} closed")
    return AnswerCheck()


def _is_echo(text: str, prompt: str) -> bool:
    """The prompt and nothing else, once or several times; or a long prompt at the beginning."""
    said, asked = _words(text[: 40 * len(prompt) + 1000]), _words(prompt)
    if not asked:
        return False
    if len(asked) >= 30 and said.startswith(asked):
        return True
    return not said.replace(asked, "") and len(text) <= 40 * len(prompt) + 1000


def _words(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
