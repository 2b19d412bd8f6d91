"""Ink of the back taken off a page."""

import cv2
import numpy as np

from pagemill.recognition.show_through import is_paler, without_back

PAPER = (232, 238, 226)


def line(words: str, darkness: float, mirrored: bool = False) -> np.ndarray:
    """A line of print on paper, as dark as said."""
    ink = np.zeros((40, 420), np.uint8)
    cv2.putText(ink, words, (8, 28), cv2.FONT_HERSHEY_SIMPLEX, 0.8, 255, 2, cv2.LINE_AA)
    ink = cv2.GaussianBlur(ink[:, ::-1] if mirrored else ink, (0, 0), 2.0 if mirrored else 0.5)
    return np.uint8(PAPER * (1 - darkness * ink[..., None] / 255))


def test_the_back_goes_and_the_front_stays():
    front, back = line("the harbour office", 0.9), line("not of this page", 0.4, mirrored=True)
    both = np.minimum(front, back)
    assert is_paler([back], [front]) and not is_paler([front], [back])
    page = without_back(np.vstack([both, back]), [back], [front])
    assert (np.abs(page[40:].astype(int) - PAPER) < 12).mean() > 0.995
    strokes = front.mean(axis=2) < 60
    assert page[:40][strokes].mean() < 90
    assert np.abs(page[:40].astype(int) - front)[back.mean(axis=2) < 190].mean() < 25


def test_white_letters_on_black_are_not_paler_than_themselves():
    inverted = 255 - line("the harbour office", 1.0)
    inverted[inverted < 60] = 0
    assert not is_paler([inverted[:, ::-1]], [inverted])
