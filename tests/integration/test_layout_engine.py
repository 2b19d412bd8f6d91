"""The model inside the package, on pages drawn here."""

from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest

from pagemill.document.labels import Label
from pagemill.layout.onnx_engine import PACKAGED_MODEL, create

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def page() -> np.ndarray:
    """A page with a heading and two columns of words."""
    pixels = np.full((1400, 1000, 3), 255, np.uint8)
    cv2.putText(pixels, "A page with two columns", (200, 110), cv2.FONT_HERSHEY_COMPLEX, 1.4, (0, 0, 0), 3, cv2.LINE_AA)
    words = "several words of plain text here"
    for left in (80, 530):
        for y in range(200, 1200, 28):
            cv2.putText(pixels, words, (left, y), cv2.FONT_HERSHEY_COMPLEX, 0.7, (0, 0, 0), 1, cv2.LINE_AA)
    return pixels


def test_columns_of_text_are_found_and_lie_inside_the_page(page: np.ndarray) -> None:
    (regions,) = create().detect([page])
    texts = [r for r in regions if r.label is Label.TEXT]
    assert any(r.box[2] < 530 for r in texts)
    assert any(r.box[0] > 450 for r in texts)
    assert all(0 <= r.box[0] < r.box[2] <= 1000 and 0 <= r.box[1] < r.box[3] <= 1400 for r in regions)


@pytest.mark.slow
def test_threads_get_the_same_answer(page: np.ndarray) -> None:
    engine = create()
    expected = engine.detect([page])
    with ThreadPoolExecutor(4) as pool:
        assert all(answer == expected for answer in pool.map(engine.detect, [[page]] * 8))


def test_blank_and_tiny_pages_have_no_regions_and_break_nothing() -> None:
    engine = create()
    assert engine.detect([np.full((900, 700, 3), 255, np.uint8)]) == [[]]
    assert len(engine.detect([np.zeros((1, 1, 3), np.uint8), np.zeros((2, 3000, 3), np.uint8)])) == 2


def test_the_model_is_inside_the_package() -> None:
    assert PACKAGED_MODEL.is_file()
