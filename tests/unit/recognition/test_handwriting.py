"""Handwriting told from print by shapes of ink that have no twin."""

import cv2
import numpy as np
import pytest

from pagemill.recognition.handwriting import is_handwriting


def lines(repeated: int | None, count: int = 10) -> list[np.ndarray]:
    """Lines of 20 curves of ink: of so many letters in two sizes and blurred, or each drawn once."""
    random, images = np.random.default_rng(0), []
    curves = random.uniform(4, 32, (repeated or 20 * count, 7, 2))
    for line in range(count):
        image = np.full((48, 820, 3), 245, np.uint8)
        for place in range(20):
            curve = curves[(7 * line + 3 * place) % repeated if repeated else 20 * line + place]
            shift = np.array([10 + 40 * place + random.uniform(0, 1), 6 + random.uniform(0, 1)])
            cv2.polylines(image, [np.int32(16 * (curve + shift))], False, (40, 40, 40), 3, cv2.LINE_AA, 4)
        noise = random.normal(0, 6, image.shape)
        images.append(np.clip(cv2.GaussianBlur(image, (0, 0), 0.8) + noise, 0, 255).astype(np.uint8))
    return images


@pytest.mark.parametrize(
    ("doubtful", "others", "expected"),
    [
        (lines(None), [], True),
        ([255 - line for line in lines(None)], lines(12), True),
        (lines(12), [], False),
        (lines(None, 3), [], False),  # too few shapes
        (lines(40, 4)[:1] * 4, lines(40), False),
    ],
)
def test_ink_is_written_by_hand_where_no_shape_is_there_twice(
    doubtful: list[np.ndarray], others: list[np.ndarray], expected: bool
) -> None:
    assert is_handwriting(doubtful, others) is expected


def test_words_that_hang_from_a_line_are_no_handwriting() -> None:
    words = lines(None)
    for line in words:
        for left in range(8, 800, 40):
            line[8:18, left : left + 37] = 40
    assert not is_handwriting(words, [])
