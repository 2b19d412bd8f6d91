import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.recognition import decoding
from pagemill.recognition.decoding import decode_greedy, lines_from_map


def test_a_kernel_grows_to_its_line_and_scales_to_the_page():
    probability = np.zeros((100, 300), np.float32)
    probability[40:50, 50:250] = 0.9
    (line,) = lines_from_map(probability, (2.0, 3.0))
    (x1, y1), _, (x2, y2), _ = line.polygon
    grow = 200 * 10 * 1.6 / (2 * 210)  # area * ratio / perimeter
    assert x1 == pytest.approx((50 - grow) * 2, abs=5) and x2 == pytest.approx((250 + grow) * 2, abs=5)
    assert y1 == pytest.approx((40 - grow) * 3, abs=6) and y2 == pytest.approx((50 + grow) * 3, abs=6)
    assert line.score == pytest.approx(0.9, abs=0.15)


@pytest.mark.parametrize("angle", [-20, -3, 3, 20])
def test_corners_of_a_slanted_line_start_at_its_own_top_left(angle):
    probability = np.zeros((300, 300), np.float32)
    box = cv2.boxPoints(((150, 150), (200, 12), angle)).astype(np.int32)
    cv2.fillPoly(probability, [box], 0.9)
    (line,) = lines_from_map(probability, (1, 1))
    a, b, c, d = line.polygon
    assert a[0] < b[0] and d[0] < c[0] and a[1] < d[1] and b[1] < c[1]
    assert np.degrees(np.arctan2(b[1] - a[1], b[0] - a[0])) == pytest.approx(angle, abs=1.5)


def test_specks_and_faint_marks_are_no_lines():
    probability = np.zeros((100, 100), np.float32)
    probability[10, 10] = 1.0
    probability[50:60, 20:80] = 0.35
    assert lines_from_map(probability, (1, 1)) == []


def test_a_bent_line_is_scored_inside_its_outline():
    """Its rectangle is half empty: a mean over that would drop it."""
    x = np.arange(40, 460)
    y = 60 + 14 * np.sin(np.pi * (x - 40) / 420)
    probability = np.zeros((120, 500), np.float32)
    cv2.polylines(probability, [np.stack([x, y], axis=1).astype(np.int32)], False, 0.8, thickness=8)
    (line,) = lines_from_map(probability, (1, 1))
    assert line.score > 0.7
    faint = probability * 0.55
    assert lines_from_map(faint, (1, 1)) == []


def test_a_level_line_is_scored_in_its_rectangle():
    probability = np.zeros((100, 300), np.float32)
    probability[40:50, 50:250] = 0.9
    probability[40:50, 60:250:4] = 0.3  # not bent, but full of holes
    (line,) = lines_from_map(probability, (1, 1))
    assert line.score < 0.8


def test_the_surest_lines_are_kept(monkeypatch):
    monkeypatch.setattr(decoding, "_MAX_LINES", 2)
    probability = np.zeros((100, 100), np.float32)
    for row, value in ((10, 0.6), (40, 0.95), (70, 0.8)):
        probability[row : row + 8, 10:90] = value
    kept = lines_from_map(probability, (1, 1))
    assert [round(line.polygon[0][1] / 30) for line in kept] == [1, 2]


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


def test_a_long_kernel_tells_its_middle_and_its_height():
    probability = np.zeros((100, 400), np.float32)
    x = np.arange(20, 380)
    y = 50 + 12 * np.sin(x / 60)
    for column, middle in zip(x, y, strict=True):
        probability[round(middle) - 4 : round(middle) + 5, column] = 1
    (line,) = lines_from_map(probability, (2.0, 2.0))
    points = np.array(line.middle)
    assert len(points) > 10
    assert abs(points[:, 1] / 2 - np.interp(points[:, 0] / 2, x, y)).max() < 2
    assert line.height == pytest.approx(2 * 10 * 2.6, rel=0.1)
    assert line.height < 0.6 * np.ptp(np.array(line.polygon)[:, 1])


def test_a_short_kernel_has_no_middle():
    probability = np.zeros((100, 400), np.float32)
    probability[40:60, 20:100] = 1
    (line,) = lines_from_map(probability, (1.0, 1.0))
    assert line.middle == ()
