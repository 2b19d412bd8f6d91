import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill_eval.reading_order import reading_order

TRUTH = ["The title", "Rag is cut, washed and beaten.", "The pulp is scooped from a vat.", "It is hung up to dry."]


def test_same_blocks_are_exact() -> None:
    score = reading_order(TRUTH, TRUTH)
    assert score.exact
    assert score.kendall_tau == 1.0
    assert score.missing == ()


def test_merged_and_split_blocks_do_no_harm() -> None:
    predicted = [
        "The title\nRag is cut, washed",
        "and beaten.",
        "The pulp is scooped from a vat. It is hung up to dry.",
    ]
    assert reading_order(predicted, TRUTH).exact


def test_misread_characters_do_no_harm() -> None:
    assert reading_order(["The tit1e", "Rag ls cut, washed and beaten", *TRUTH[2:]], TRUTH).exact


def test_spacing_errors_do_no_harm() -> None:
    assert reading_order(["물레 시공고", "물레시장"], ["물레시 공고", "물 레 시 장"]).exact


def test_a_badly_read_element_does_not_take_its_neighbour() -> None:
    caption, table = "Table 1 Rag and paper", "January 1284 899 70 % April 1310 904 69 % July 842 564 67 %"
    assert reading_order([caption, table.replace("January 1284", "", 1)], [caption, table]).exact
    misread = caption.replace("Rag", "Rog")
    assert reading_order([misread, table.replace("January", "", 1)], [caption, table]).exact


def test_swapped_blocks_are_not_exact() -> None:
    score = reading_order([TRUTH[0], TRUTH[2], TRUTH[1], TRUTH[3]], TRUTH)
    assert not score.exact
    assert score.kendall_tau == pytest.approx(4 / 6)


def test_interleaved_columns_are_not_exact() -> None:
    left, right = "alpha beta gamma delta epsilon zeta", "one two three four five six seven"
    mixed = [word for pair in zip(left.split(), right.split(), strict=False) for word in pair]
    assert not reading_order(mixed, [left, right]).exact


def test_missing_element() -> None:
    score = reading_order([TRUTH[0], TRUTH[1], TRUTH[3]], TRUTH)
    assert not score.exact
    assert score.missing == (2,)
    assert score.kendall_tau == 1.0


def test_a_short_element_is_not_found_inside_a_longer_one() -> None:
    assert reading_order(["a vat of pulp", "vat"], ["a vat of pulp", "vat"]).exact


def test_a_long_element_is_placed_before_the_short_one_that_it_begins_with() -> None:
    assert reading_order(["a vat of pulp", "a vat"], ["a vat", "a vat of pulp"]).kendall_tau == -1.0


def test_a_repeated_text_counts_each_time() -> None:
    assert reading_order(["Yes", "No", "Yes"], ["Yes", "No", "Yes"]).missing == ()
    assert reading_order(["Yes", "No"], ["Yes", "No", "Yes"]).missing == (2,)


def test_nothing_read() -> None:
    score = reading_order([], TRUTH)
    assert score.missing == (0, 1, 2, 3)
    assert not score.exact


def test_blank_truth_is_refused() -> None:
    with pytest.raises(ValueError, match="blank"):
        reading_order(["x"], [" "])


@given(st.permutations(TRUTH))
def test_tau_is_1_only_for_the_true_order(order: list[str]) -> None:
    score = reading_order(order, TRUTH)
    assert score.exact == (order == TRUTH)
    assert (score.kendall_tau == 1.0) == (order == TRUTH)
    assert -1.0 <= score.kendall_tau <= 1.0
