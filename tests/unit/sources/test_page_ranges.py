import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.errors import UsageError
from pagemill.sources import PageRanges


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("1", 5, [1]),
        ("1,3-5,8-", 9, [1, 3, 4, 5, 8, 9]),
        (" 2 , 1 ", 5, [1, 2]),
        ("-3", 5, [1, 2, 3]),
        ("4-", 3, []),
        ("2-100", 4, [2, 3, 4]),
        ("1-3,2-4", 9, [1, 2, 3, 4]),
        ("999999999", 3, []),
    ],
)
def test_selection(text: str, count: int, expected: list[int]):
    assert PageRanges.parse(text).select(count) == expected


@pytest.mark.parametrize("text", ["", "0", "5-3", "a", "1-2-3", "1,,2", "-", "1.5", "--3", "0-4", "٣", "9999999999"])
def test_nonsense_is_a_usage_error(text: str):
    with pytest.raises(UsageError) as caught:
        PageRanges.parse(text)
    assert caught.value.remedy


@given(st.lists(st.tuples(st.integers(1, 50), st.one_of(st.none(), st.integers(0, 50))), min_size=1, max_size=5))
def test_text_and_back(parts: list[tuple[int, int | None]]):
    ranges = PageRanges(tuple((first, sys.maxsize if extra is None else first + extra) for first, extra in parts))
    assert PageRanges.parse(str(ranges)).select(60) == ranges.select(60)
