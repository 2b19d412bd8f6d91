import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pagemill.recognition.ctc import decode_greedy

ALPHABET = ("", "a", "b", "c", " ")


def one_hot(classes: list[int]) -> np.ndarray:
    probabilities = np.full((len(classes), len(ALPHABET)), 0.025, np.float32)
    probabilities[np.arange(len(classes)), classes] = 0.9
    return probabilities


def test_repeats_merge_unless_a_blank_stands_between():
    read = decode_greedy(one_hot([1, 1, 0, 1, 2, 2]), ALPHABET, 6)
    assert read.text == "aab"
    assert abs(read.confidence - 0.9) < 1e-6


def test_words_have_their_place_in_the_line_and_padding_does_not_count():
    read = decode_greedy(one_hot([1, 0, 4, 0, 2, 0, 0, 0, 0, 0]), ALPHABET, 5)
    assert read.text == "a b"
    (first, left, first_end), (second, second_start, right) = read.word_spans
    assert (first, second) == ("a", "b")
    assert left == 0.0 and right == 1.0 and first_end <= 0.5 <= second_start
    assert read.centers == (0.1, 0.5, 0.9)


def test_a_line_of_blanks_reads_empty():
    read = decode_greedy(one_hot([0, 0, 0]), ALPHABET, 3)
    assert (read.text, read.confidence, read.centers) == ("", 0.0, ())


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_every_character_has_a_center_and_no_outer_space(classes):
    read = decode_greedy(one_hot(classes), ALPHABET, len(classes))
    assert len(read.centers) == len(read.text)
    assert read.text == read.text.strip()
    assert all(0 <= start < end <= 1 for _, start, end in read.word_spans)
    assert " ".join(word for word, _, _ in read.word_spans) == " ".join(read.text.split())
