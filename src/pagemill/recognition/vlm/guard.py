"""Checks of a model's answer: loops, truncation, emptiness, echoes of the prompt, broken tables and formulas.

Pure functions over untrusted text in linear time. An answer that the model finished gets the benefit of the doubt:
forms have hundreds of empty cells, tables of contents have dot leaders, matrices have zeros. An answer that reached its
token limit while repeating itself is a loop, whatever it repeats.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from pagemill.document.labels import Task
from pagemill.late import re
from pagemill.recognition.vlm.table_answers import split_tables

if TYPE_CHECKING:
    from pagemill.inference.chat import Answer

MAX_CHARACTERS = 400_000
"""An answer of 8,192 tokens has about 40,000 characters; only this much of a longer one is read."""
UNFINISHED = frozenset({"length", "max_tokens", "repetition", "abort", "error", "content_filter"})
"""Finish reasons of answers that the model did not finish. Servers use several names for one that it did."""
_GRAM = 8
"""Length of a shingle in characters: about two words, or a short clause of Chinese."""
_SHINGLE = 24
_MIN_SHINGLED = 1500
_REPEATED_SHARE = 0.75
"""Share of shingles that occurred before: below 0.05 in prose, up to 0.6 in a long list of similar entries."""
_NOT_SPOKEN = re.compile(r"<[^<>]{0,200}>|\\[A-Za-z]{1,30}|&[a-z]{2,8};")
"""Tags, LaTeX commands and character references: everything that is not text."""
_LATEX_TOKEN = re.compile(r"\\(begin|end)\s{0,3}\{([A-Za-z*]{1,30})\}|\\[A-Za-z]{1,30}|\\.|[{}]", re.DOTALL)
_TABLE_TAG = re.compile(r"<(/?)table\b", re.IGNORECASE)
_REFERENCE = re.compile(r"<\|(ref|det)\|>[^<>|]{0,200}<\|/\1\|>")
_TABLE_MARK = re.compile(r"<table\b|<[fel]cel>|^\s{0,3}\|.{0,400}\|\s{0,3}$", re.IGNORECASE | re.MULTILINE)


class Flaw(StrEnum):
    """A flaw of an answer, in rising severity; the category of the problem in the record.

    The last four are of answers that are to be JSON.
    """

    FORMULA = "unbalanced_formula"
    TABLE = "unbalanced_table"
    NO_TABLE = "no_table"
    TRUNCATED = "truncated"
    REPETITION = "repetition"
    ECHO = "prompt_echo"
    EMPTY = "empty_text"
    SCHEMA = "schema"
    """It is JSON, and some values do not match the schema."""
    REPEATED_KEY = "repeated_key"
    """It is JSON, and an object gives a key several values."""
    INVALID_JSON = "invalid_json"
    NO_VALUES = "empty_answer"


class AnswerCheck(NamedTuple):
    """The result of checking an answer."""

    flaw: Flaw | None = None
    message: str = ""
    sound: str | None = None
    """A looping answer without its repetitions after the first. None if all is sound."""
    finished: bool = True
    """Whether the model ended its answer."""

    @property
    def severity(self) -> int:
        """0 for a good answer; the lower of two flawed ones is better."""
        return [None, *Flaw].index(self.flaw)


class Run(NamedTuple):
    """A stretch of text that repeats itself."""

    start: int
    end: int
    period: int
    """Length of the repeated part in characters."""

    @property
    def repeats(self) -> float:
        """Number of repetitions; the last may be partial."""
        return (self.end - self.start) / self.period


def judge(answer: Answer, task: Task, prompt: str) -> AnswerCheck:
    """Check a raw answer, before any clean-up.

    Args:
        answer: The server's answer.
        task: The task of the request.
        prompt: Its prompt.
    """
    text = answer.text[:MAX_CHARACTERS]
    if not text.strip():
        return AnswerCheck(flaw=Flaw.EMPTY, message="the model returned an empty answer")
    if _is_echo(text, prompt):
        return AnswerCheck(flaw=Flaw.ECHO, message="the model repeated the prompt")
    unfinished = answer.finish_reason in UNFINISHED
    loop = find_loop(text, unfinished=unfinished, task=task)
    if loop is not None:
        repeated = " ".join(text[loop.start : loop.start + min(loop.period, 40)].split())
        message = f"the model repeats itself from character {loop.start} on, {loop.repeats:.0f} times: {repeated!r}"
        sound = text[: loop.start + loop.period]
        if not unfinished:
            sound += answer.text[loop.start + int(loop.repeats) * loop.period :]
        return AnswerCheck(flaw=Flaw.REPETITION, message=message, sound=sound, finished=not unfinished)
    if answer.finish_reason == "repetition":  # the server saw text that was stripped from the end
        return AnswerCheck(flaw=Flaw.REPETITION, message="the server stopped an answer that repeated itself")
    if task is not Task.TABLE and repeated_share(_prose(text) if task is Task.PAGE else text) >= _REPEATED_SHARE:
        return AnswerCheck(flaw=Flaw.REPETITION, message="nearly all of the answer is repeated")
    if unfinished:
        length = f" after {answer.completion_tokens} tokens" if answer.completion_tokens else ""
        return AnswerCheck(flaw=Flaw.TRUNCATED, message=f"the answer was cut off{length} ({answer.finish_reason})")
    if task is Task.TABLE:
        return _judge_table(text)
    if task is Task.FORMULA and (fault := latex_fault(text)):
        return AnswerCheck(flaw=Flaw.FORMULA, message=f"the formula is broken: {fault}")
    return AnswerCheck()


def find_loop(text: str, *, unfinished: bool, task: Task) -> Run | None:
    """The first stretch that is a loop and not a form, leader or matrix.

    Args:
        text: The answer.
        unfinished: It reached its token limit, so a repetition at its end would have continued.
        task: Equal rows and cells are common in a table, and so on a page.
    """
    for run in repeating_runs(text):
        if unfinished and run.end >= len(text) - 1 and run.repeats >= 4 and run.end - run.start >= 64:
            return run
        if run.repeats < 10 or run.end - run.start < 200:
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
    """Periodic stretches of text, at least two periods long, in order.

    One pass: outside a stretch, the distance to the last occurrence of the same eight characters is tried as period. A
    wrong guess ends at the next differing character, so a stretch may be found late by less than a period.
    """
    runs: list[Run] = []
    seen: dict[str, int] = {}
    period = start = 0
    for position in range(_GRAM - 1, len(text)):
        if period and text[position] != text[position - period]:
            if position - start >= 2 * period:
                runs.append(Run(start, position, period))
            period = 0
        gram = text[position - _GRAM + 1 : position + 1]
        if not period and (last := seen.get(gram)) is not None:
            period = position - last
            start = last - _GRAM + 1
        seen[gram] = position
    if period and len(text) - start >= 2 * period:
        runs.append(Run(start, len(text), period))
    return runs


def _prose(text: str) -> str:
    """A page's answer without its references, which look alike, and without its tables."""
    return " ".join(piece for piece, is_table in split_tables(_REFERENCE.sub(" ", text)) if not is_table)


def repeated_share(text: str) -> float:
    """Share of shingles that occurred before in a text; 0 for a short text.

    Only letters count: a loop that numbers its turns is found, and dot leaders are not.
    """
    plain = re.sub(r"[\W\d_]+", " ", text)
    if len(plain) < _MIN_SHINGLED:
        return 0.0
    count = len(plain) - _SHINGLE + 1
    return 1 - len({plain[start : start + _SHINGLE] for start in range(count)}) / count


def latex_fault(text: str) -> str | None:
    r"""The defect of a formula: braces, environments, or ``\left`` and ``\right`` that do not match."""
    wanted: list[str] = []
    for match in _LATEX_TOKEN.finditer(text):
        token, begins, environment = match.group(), match.group(1) == "begin", match.group(2)
        if environment is not None:
            token = f"\\end{{{environment}}}"
        if token in ("{", "\\left") or begins:
            wanted.append({"{": "}", "\\left": "\\right"}.get(token, token))
        elif (token in ("}", "\\right") or environment is not None) and (not wanted or wanted.pop() != token):
            return f"{token} without its beginning"
    return f"{wanted[-1]} is missing" if wanted else None


def _judge_table(text: str) -> AnswerCheck:
    if not _TABLE_MARK.search(text):
        return AnswerCheck(flaw=Flaw.NO_TABLE, message="the answer contains no table")
    closes = [bool(match.group(1)) for match in _TABLE_TAG.finditer(text)]
    opened, closed = closes.count(False), closes.count(True)
    if opened != closed:
        return AnswerCheck(flaw=Flaw.TABLE, message=f"table tags: {opened} opened, {closed} closed")
    return AnswerCheck()


def _is_echo(text: str, prompt: str) -> bool:
    """Whether an answer is the prompt alone, once or several times, or begins with a long prompt."""
    answered, asked = _words(text), _words(prompt)
    return bool(asked) and (not answered.replace(asked, "") or (len(asked) >= 30 and answered.startswith(asked)))


def _words(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())
