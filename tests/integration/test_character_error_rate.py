from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from character_error_rate import character_error_rate, normalise


def test_equal_texts_have_no_errors() -> None:
    assert character_error_rate("paper mill", "paper mill") == 0.0


def test_decomposed_hangul_equals_composed() -> None:
    assert character_error_rate(unicodedata.normalize("NFD", "물레시 공고"), "물레시 공고") == 0.0


def test_a_missing_space_is_an_error_but_its_width_is_not() -> None:
    assert character_error_rate("물레시공고", "물레시 공고") == pytest.approx(1 / 6)
    assert character_error_rate(" 물레시 \n\t공고", "물레시 공고") == 0.0


def test_case_and_punctuation_count() -> None:
    assert character_error_rate("Mill", "mill.") == pytest.approx(2 / 5)


def test_empty_truth() -> None:
    assert character_error_rate("", " ") == 0.0
    assert math.isinf(character_error_rate("x", ""))


@given(st.text(), st.text())
def test_bounds(predicted: str, truth: str) -> None:
    rate = character_error_rate(predicted, truth)
    longest = max(len(normalise(predicted)), len(normalise(truth)))
    assert rate >= 0.0
    assert not normalise(truth) or rate <= longest / len(normalise(truth))
