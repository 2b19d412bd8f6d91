"""Handwriting told from print by shapes of ink that have no twin."""

import cv2
import numpy as np
import pytest

from pagemill.recognition.handwriting import Shapes, are_handwritten, shapes_of


def lines(repeated: int | None, count: int = 10) -> list[np.ndarray]:
    """Lines of 20 curves of ink: of so many letters in two sizes and blurred, or each drawn once."""
    random, images = np.random.default_rng(repeated or 0), []
    curves = random.uniform(2, 33, (repeated or 20 * count, 5, 2))
    for line in range(count):
        image = np.full((48, 820, 3), 245, np.uint8)
        for place in range(20):
            curve = curves[(7 * line + 3 * place) % repeated if repeated else 20 * line + place]
            shift = np.array([10 + 40 * place + random.uniform(0, 1), 6 + random.uniform(0, 1)])
            cv2.polylines(image, [np.int32(16 * (curve + shift))], False, (40, 40, 40), 2, cv2.LINE_AA, 4)
        noise = random.normal(0, 6, image.shape)
        images.append(np.clip(cv2.GaussianBlur(image, (0, 0), 0.8) + noise, 0, 255).astype(np.uint8))
    return images


def verdicts(judged: list[np.ndarray], others: list[np.ndarray], *, of_few: bool = False) -> list[bool]:
    return are_handwritten(shapes_of(judged, others), [of_few] * len(judged))


@pytest.mark.parametrize(
    ("judged", "others", "expected"),
    [
        (lines(None), [], True),
        (lines(None, 1), lines(12), True),
        ([255 - line for line in lines(None)], lines(12), True),
        (lines(12), [], False),
        (lines(40, 4)[:1] * 4, lines(40), False),
        (lines(12, 1), [cv2.resize(line, None, fx=1.6, fy=1.6) for line in lines(12)], False),  # a heading
    ],
)
def test_ink_is_written_by_hand_where_no_shape_is_there_twice(
    judged: list[np.ndarray], others: list[np.ndarray], expected: bool
) -> None:
    assert verdicts(judged, others) == [expected] * len(judged)


def test_a_line_by_hand_is_told_from_those_in_print() -> None:
    mixed = [*lines(None, 1), *lines(12, 2)]
    assert verdicts(mixed, lines(12)) == [True, False, False]
    assert verdicts([mixed[0][:, :210]], lines(12)) == [False]  # five shapes
    assert verdicts(lines(None, 2), []) == [False, False]  # a title page, perhaps


def test_a_line_without_shapes_is_not_judged() -> None:
    blank = np.full((48, 820, 3), 245, np.uint8)
    assert verdicts([blank], lines(12)) == [False]
    assert verdicts([], lines(12)) == []


def test_ideographs_seldom_repeat() -> None:
    assert not any(verdicts(lines(None, 4), [], of_few=True))
    assert all(verdicts(lines(None, 8), [], of_few=True))
    assert are_handwritten([Shapes(60, 2), Shapes(60, 50)], [True, True]) == [False, False]


def test_words_that_hang_from_a_line_are_no_handwriting() -> None:
    words = lines(None)
    for line in words:
        for left in range(8, 800, 40):
            line[8:18, left : left + 37] = 40
    assert not any(verdicts(words, []))
