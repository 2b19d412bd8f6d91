from __future__ import annotations

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.joining import goes_on, join_pair


def joined(lines):
    pieces = [" ".join(line.split()) for line in lines if line.split()]
    return functools.reduce(join_pair, pieces) if pieces else ""


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["the corpo-", "ration was"], "the corporation was"),
        (["a well-", "known man"], "a well-known man"),
        (["state-of-the-", "art work"], "state-of-the-art work"),
        (["the Anglo-", "Saxon era"], "the Anglo-Saxon era"),
        (["from 1990-", "1995 on"], "from 1990- 1995 on"),
        (["a dash -", "here"], "a dash - here"),
        (["http://www.a.org/x/", "y.html"], "http://www.a.org/x/y.html"),
        (["汉字在这里换", "行没有空格"], "汉字在这里换行没有空格"),
        (["삼성카드 홈페이지", "에서 확인"], "삼성카드 홈페이지에서 확인"),
        (["일시불 및", "할부 이용금액"], "일시불 및 할부 이용금액"),
        (["  spaces   inside ", "", " and out "], "spaces inside and out"),
        ([], ""),
    ],
)
def test_joining_lines(lines, text):
    assert joined(lines) == text


@given(st.lists(st.text(max_size=20), max_size=8))
def test_joining_never_loses_a_letter(lines):
    kept = [char for char in joined(lines) if char.isalnum()]
    assert kept == [char for char in "".join(lines) if char.isalnum()]


@pytest.mark.parametrize(
    ("before", "after", "on"),
    [
        ("no one thing that no", "ledger records", True),
        ("The end.", "Another start", False),
        ("required trans-", "Atlantic trade", True),
        ("그 결과를", "정리하고자 한다", True),
    ],
)
def test_going_on(before, after, on):
    assert goes_on(before, after) == on
