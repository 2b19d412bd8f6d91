import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill_eval.text import (
    anls,
    bleu,
    bleu_counts,
    character_error_rate,
    edit_distance,
    indel_similarity,
    normalise,
    word_error_rate,
)


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


def test_word_errors() -> None:
    assert word_error_rate("the  paper mill", "the old paper mill") == pytest.approx(1 / 4)
    assert word_error_rate("", "") == 0.0
    assert math.isinf(word_error_rate("a", " "))


def test_normalised_distances() -> None:
    assert edit_distance("kitten", "sitting") == pytest.approx(3 / 7)
    assert indel_similarity("kitten", "sitting") == pytest.approx(1 - 5 / 13)
    assert edit_distance("", "") == 0.0
    assert indel_similarity("", "") == 1.0


def test_anls_takes_the_nearest_answer_and_cuts_off() -> None:
    assert anls(" Mill ", ["paper", "mill"]) == 1.0
    assert anls("mall", ["mill"]) == pytest.approx(0.75)
    assert anls("mixx", ["mill"]) == 0.5
    assert anls("axxx", ["mill"]) == 0.0
    assert anls("mixx", ["mill"], threshold=0.6) == 0.0
    assert anls("", []) == 0.0


@given(st.text(), st.text())
def test_distances_are_symmetric_and_bounded(one: str, two: str) -> None:
    assert edit_distance(one, two) == edit_distance(two, one)
    assert 0.0 <= edit_distance(one, two) <= 1.0
    assert edit_distance(one, one) == 0.0
    assert 0.0 <= indel_similarity(one, two) <= 1.0
    assert anls(one, [one]) == 1.0


def test_bleu() -> None:
    """Values of sacrebleu 2.6.0 with the tokenizer 13a and without smoothing."""
    pairs = [("\\frac{a}{b}+1.5,x", "\\frac{a}{c}+1.5,x"), ("a = b", "a = b + c"), ("", "x")]
    assert bleu(bleu_counts(*pair) for pair in pairs) == pytest.approx(0.6153452183313162, abs=1e-9)
    assert bleu([bleu_counts("a b c d e", "a b c d e")]) == 1.0
    assert bleu([bleu_counts("a b c", "a b c")]) == 0.0  # no four words
    assert bleu([bleu_counts("", "a")]) == 0.0
