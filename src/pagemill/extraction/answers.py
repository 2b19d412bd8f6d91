"""From a model's answer to values: untrusted text, in linear time."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from pagemill.document.labels import Task
from pagemill.extraction.schema import leaves
from pagemill.extraction.thresholds import THRESHOLDS
from pagemill.recognition.vlm.guard import MAX_CHARACTERS, UNFINISHED, find_loop

if TYPE_CHECKING:
    from pagemill.inference.chat import Answer

_END_OF_REASONING = "</think>"


class Flaw(StrEnum):
    """What is wrong with an answer; the category of the problem in the result."""

    EMPTY = "empty_answer"
    TRUNCATED = "truncated"
    REPETITION = "repetition"
    INVALID_JSON = "invalid_json"
    SCHEMA = "schema"
    """It is JSON, and some values are not as the schema says."""
    REPEATED_KEY = "repeated_key"
    """It is JSON, and an object gives a key several values."""


class Reading(NamedTuple):
    """Values of an answer, or why there are none."""

    values: dict[str, Any] | None
    flaw: Flaw | None = None
    message: str = ""
    """Why there are no values, or what is doubtful about them."""


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
        return Reading(None, Flaw.EMPTY, "the model returned an empty answer")
    if answer.finish_reason in UNFINISHED:
        if loop := find_loop(text, unfinished=True, task=Task.PAGE):
            said = " ".join(text[loop.start : loop.start + min(loop.period, 40)].split())
            return Reading(None, Flaw.REPETITION, f"the model repeats itself, {loop.repeats:.0f} times: {said!r}")
        return Reading(None, Flaw.TRUNCATED, f"the answer was cut off ({answer.finish_reason})")
    start = text.find("{")
    if start < 0:
        return Reading(None, Flaw.INVALID_JSON, f"the answer holds no JSON object: {' '.join(text.split())[:100]!r}")
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
        return Reading(None, Flaw.INVALID_JSON, f"the answer holds more than {THRESHOLDS.max_values:,} values")
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
