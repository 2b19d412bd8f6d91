import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.describing.answers import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_KEYWORD,
    MAX_KEYWORDS,
    MAX_ROWS,
    MAX_SUMMARY,
    SCHEMA,
    problems,
    read_description,
)
from pagemill.extraction.answers import read_answer
from pagemill.inference.chat import Answer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def test_a_good_answer():
    said = {
        "language": "ko",
        "summary": "분기별\n종이 생산량을 보인다.",
        "keywords": ["종이", "Quarter", "quarter", "", 7],
        "data": [["Quarter", "t"], ["Q1", 4.5], ["Q2", ""], ["Q3"]],
    }
    jsonschema.validate(said | {"data": None, "keywords": ["a"]}, SCHEMA)
    assert problems(said) == []
    description = read_description(said)
    assert description.summary == "분기별 종이 생산량을 보인다."
    assert description.keywords == ("종이", "Quarter", "7")
    assert description.chart == (("Quarter", "t"), ("Q1", "4.5"), ("Q2", ""), ("Q3", ""))
    assert description.language == "ko"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"data": [["only a head", "b"]]}, None),
        ({"data": [["one"], ["column"]]}, None),
        ({"data": "Q1 4"}, None),
        ({"data": [[], {}, None, ["a", "b"], ["c", True]]}, (("a", "b"), ("c", ""))),
    ],
)
def test_what_is_no_table_is_left_out(changed, expected):
    assert read_description({"summary": "S", "keywords": []} | changed).chart == expected


def test_without_a_summary_there_is_no_description():
    for summary in (None, "", " \n", 10**400, True, ["S"], {"S": 1}):
        values = {"summary": summary, "keywords": ["a"]}
        assert problems(values)
        assert read_description(values) is None
    assert problems({"summary": "S"}) == ["the answer has no list of keywords"]


def test_hidden_characters_and_other_languages():
    description = read_description({"summary": "a\u202eb\x00c\ud800", "keywords": None, "language": "<script>"})
    assert (description.summary, description.language) == ("a b c", "")


@given(st.dictionaries(st.sampled_from(["summary", "keywords", "data", "language"]) | st.text(), JSON))
def test_any_answer_is_bounded(values):
    problems(values)
    description = read_description(values)
    if description is not None:
        assert 0 < len(description.summary) <= MAX_SUMMARY
        assert len(description.keywords) <= MAX_KEYWORDS
        assert all(0 < len(word) <= MAX_KEYWORD for word in description.keywords)
        json.dumps(description.summary).encode()
        if description.chart is not None:
            assert len(description.chart) <= MAX_ROWS
            (width,) = set(map(len, description.chart))
            assert width <= MAX_COLUMNS
            assert max(len(cell) for row in description.chart for cell in row) <= MAX_CELL


def test_empty_cells_stay_where_they_are():
    text = '{"summary": "S", "keywords": [], "data": [["", "2020"], ["rags", ""], ["", "5"]]}'
    values = read_answer(Answer(text=text, finish_reason="stop"), keep_blanks=True).values
    assert read_description(values).chart == (("", "2020"), ("rags", ""), ("", "5"))


@pytest.mark.parametrize(
    ("changed", "left_out"),
    [
        ({}, ()),
        ({"data": None}, ()),
        ({"data": []}, ()),
        ({"summary": "S" * (MAX_SUMMARY + 1)}, (f"the summary after {MAX_SUMMARY:,} characters",)),
        ({"keywords": ["k", *map(str, range(MAX_KEYWORDS))]}, (f"keywords after the first {MAX_KEYWORDS}",)),
        ({"keywords": ["k" * (MAX_KEYWORD + 1)]}, (f"the ends of keywords of over {MAX_KEYWORD} characters",)),
        ({"data": "Q1 4"}, ("the data, which are not a table of two rows and columns",)),
        ({"data": [["a", "b"], {"c": "d"}, ["c", "d"]]}, ("rows of the data that are not lists",)),
        ({"data": [["a", "b"], ["c", {"d": 1}]]}, ("cells of the data that are not texts or numbers",)),
        ({"data": [["a", "b"]] * (MAX_ROWS + 1)}, (f"rows of the data after the first {MAX_ROWS}",)),
        ({"data": [["a"] * (MAX_COLUMNS + 1)] * 2}, (f"columns of the data after the first {MAX_COLUMNS}",)),
        ({"data": [["a" * (MAX_CELL + 1), "b"]] * 2}, (f"the ends of cells of over {MAX_CELL} characters",)),
    ],
)
def test_nothing_is_left_out_without_a_word(changed, left_out):
    said = {"summary": "S" * MAX_SUMMARY, "keywords": ["k" * MAX_KEYWORD], "data": [["a", "b" * MAX_CELL]] * 2}
    assert read_description(said | changed).left_out == left_out
