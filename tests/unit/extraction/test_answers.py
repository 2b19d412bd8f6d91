import pytest
from extraction_pages import answer

from pagemill.extraction.answers import read_answer
from pagemill.recognition.vlm.guard import Flaw


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "x"}',
        '```json\n{"a": "x"}\n```',
        'Here it is: {"a": " x "} I hope that helps.',
        '<think>{"a": "wrong"}</think>{"a": "x"}',
    ],
)
def test_json_is_found_in_what_surrounds_it(text):
    assert read_answer(answer(text)).values == {"a": "x"}


def test_blanks_are_nulls():
    values = {"a": " ", "b": ["", None, "x", {"c": None}, {"c": ""}], "d": {"e": ""}, "f": 0, "g": False}
    assert read_answer(answer(values)).values == {"a": None, "b": ["x"], "d": {"e": None}, "f": 0, "g": False}


@pytest.mark.parametrize(
    ("text", "finish_reason", "flaw"),
    [
        ("", "stop", Flaw.NO_VALUES),
        ("  ", "length", Flaw.NO_VALUES),
        ("I cannot see an invoice.", "stop", Flaw.INVALID_JSON),
        ('{"a": ', "stop", Flaw.INVALID_JSON),
        ('{"a": NaN}', "stop", Flaw.INVALID_JSON),
        ('{"a": 1e400}', "stop", Flaw.INVALID_JSON),
        ('{"a": 1' + "0" * 400 + "}", "stop", Flaw.INVALID_JSON),
        ('{"a": "\\ud83d"}', "stop", Flaw.INVALID_JSON),
        ('{"a": "x", "b": "the be', "length", Flaw.TRUNCATED),
        ('{"a": "' + "and so on " * 50, "length", Flaw.REPETITION),
        ("[" * 100_000 + "{", "stop", Flaw.INVALID_JSON),
        ('{"a": ' + "[" * 100_000, "stop", Flaw.INVALID_JSON),
        ('{"a": [' + "1," * 30_000 + "1]}", "stop", Flaw.INVALID_JSON),
    ],
)
def test_flaws(text, finish_reason, flaw):
    reading = read_answer(answer(text, finish_reason=finish_reason))
    assert (reading.values, reading.flaw) == (None, flaw)
    assert reading.message


@pytest.mark.parametrize(
    ("text", "values", "key"),
    [
        ('{"a": 1, "a": 2}', {"a": 2}, "a"),
        ('{"a": [{"b": {"c": 1}, "b": {"c": 2}}]}', {"a": [{"b": {"c": 2}}]}, "b"),
        ('{"a": 1, "a": 1}', {"a": 1}, None),
        ('{"a": {"b": 1}, "c": {"b": 2}}', {"a": {"b": 1}, "c": {"b": 2}}, None),
    ],
)
def test_a_key_with_several_values_is_doubtful(text, values, key):
    message = f"the answer gives {key!r} several values: the last one is taken" if key else ""
    assert read_answer(answer(text))[:3] == (values, Flaw.REPEATED_KEY if key else None, message)
