"""From a model's answer to values: untrusted text, in linear time."""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pagemill.document.labels import Task
from pagemill.extraction.schema import leaves
from pagemill.extraction.thresholds import THRESHOLDS
from pagemill.recognition.vlm.guard import MAX_CHARACTERS, UNFINISHED, Flaw, find_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pagemill.inference.chat import Answer
    from pagemill.recognition.vlm.asking import Asker, Question

_END_OF_REASONING = "</think>"


_ATTEMPTS = {Flaw.TRUNCATED: 2, Flaw.REPETITION: 2}
"""Maximum number of answers by the flaw of the first: a long one costs most."""


class Reading(NamedTuple):
    """Values of an answer, or why there are none."""

    values: dict[str, Any] | None
    flaw: Flaw | None = None
    message: str = ""
    """Why there are no values, or what is doubtful about them."""
    problems: int = 0
    """How many things are wrong with the values."""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    if math.isinf(value := float(number)):
        raise ValueError(f"{number[:20]} is out of range")
    return value


def _whole(number: str) -> int:
    _finite(number)  # larger ones no reader of the results could take
    return int(number)


def _decoder(repeated: list[str]) -> json.JSONDecoder:
    """A decoder that notes keys of an object that have several values, of which it takes the last one."""

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            repeated.extend(key for key, value in pairs if value != found[key])
        return found

    return json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, parse_int=_whole, object_pairs_hook=note)


def read_answer(answer: Answer, *, keep_blanks: bool = False) -> Reading:
    """Find the JSON object in an answer: the first one, after any reasoning, inside or outside of a code fence.

    Empty texts become nulls, and leave lists, unless they are kept.
    """
    text = answer.text[:MAX_CHARACTERS]
    text = text[text.rfind(_END_OF_REASONING) + len(_END_OF_REASONING) :] if _END_OF_REASONING in text else text
    if not text.strip():
        return Reading(None, Flaw.NO_VALUES, "the model returned an empty answer")
    if answer.finish_reason in UNFINISHED:
        if loop := find_loop(text, unfinished=True, task=Task.PAGE):
            loop_text = " ".join(text[loop.start : loop.start + min(loop.period, 40)].split())
            return Reading(None, Flaw.REPETITION, f"the model repeats itself, {loop.repeats:.0f} times: {loop_text!r}")
        return Reading(None, Flaw.TRUNCATED, f"the answer was cut off ({answer.finish_reason})")
    start = text.find("{")
    if start < 0:
        return Reading(None, Flaw.INVALID_JSON, f"the answer contains no JSON object: {' '.join(text.split())[:100]!r}")
    repeated: list[str] = []
    try:
        values, _ = _decoder(repeated).raw_decode(text, start)
        msgspec.json.encode(values)  # half a character, an escape such as \\ud83d, cannot be written
        count = sum(1 for _ in islice(leaves(values), THRESHOLDS.max_values + 1))
    except ValueError as error:
        return Reading(None, Flaw.INVALID_JSON, f"the answer is not JSON: {error}")
    except RecursionError:
        return Reading(None, Flaw.INVALID_JSON, "the answer is nested too deeply")
    if count > THRESHOLDS.max_values:
        return Reading(None, Flaw.INVALID_JSON, f"the answer contains more than {THRESHOLDS.max_values:,} values")
    doubt = f"the answer gives {repeated[0][:60]!r} several values: the last one is taken" if repeated else ""
    if not keep_blanks:
        values = {key: _without_blanks(value) for key, value in values.items()}
    return Reading(values, Flaw.REPEATED_KEY if doubt else None, doubt)


def _without_blanks(value: Any) -> Any:
    """Empty texts are nulls, since models write one for the other; lists hold neither, nor objects of nothing else."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, dict):
        return {key: _without_blanks(each) for key, each in value.items()}
    if isinstance(value, list):
        return [item for item in map(_without_blanks, value) if any(leaf is not None for _, leaf in leaves(item))]
    return value


async def values_of(
    asker: Asker, question: Question, problems: Callable[[Mapping[str, Any]], list[str]], *, keep_blanks: bool = False
) -> Reading:
    """The values that a model gives, of the answer with the fewest problems; or the flaw of the last answer.

    Args:
        asker: Asks the model.
        question: Asks for JSON.
        problems: Returns the problems of an answer's values.
        keep_blanks: Empty texts of an answer are values.

    Raises:
        PagemillError: As :meth:`pagemill.recognition.vlm.asking.Asker.answers`.
    """

    def check(answer: Answer) -> Reading:
        reading = read_answer(answer, keep_blanks=keep_blanks)
        if reading.values is None:
            return reading
        found = ([reading.message] if reading.flaw else []) + problems(reading.values)
        return Reading(reading.values, reading.flaw or Flaw.SCHEMA, found[0], len(found)) if found else reading

    readings = [reading for reading, _ in await asker.answers(question, check, _ATTEMPTS, THRESHOLDS.attempts)]
    usable = [reading for reading in readings if reading.values is not None]
    return min(usable, key=lambda each: each.problems, default=readings[-1])
