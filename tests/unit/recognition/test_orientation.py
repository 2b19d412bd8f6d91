import pytest

from pagemill.recognition.base import DetectedLine, RecognizedText
from pagemill.recognition.reader import evidence, longest, reading_quad, runs_vertically, turned
from pagemill.recognition.verdict import size_of


def quad(x1, y1, x2, y2):
    return ((x1, y1), (x2, y1), (x2, y2), (x1, y2))


def lines(*quads):
    return [DetectedLine(polygon=one, score=1.0) for one in quads]


def test_a_page_stands_on_its_side_when_most_text_does():
    flat, tall, digit = quad(0, 0, 300, 20), quad(0, 0, 20, 300), quad(0, 0, 12, 24)
    assert not runs_vertically(lines(flat, flat, tall))
    assert runs_vertically(lines(tall, tall, tall, flat))
    assert not runs_vertically(lines(*[digit] * 5, *[flat] * 2))
    assert not runs_vertically([])


@pytest.mark.parametrize(("degrees", "first"), [(0, (0, 0)), (90, (0, 20)), (180, (300, 20)), (270, (300, 0))])
def test_turning_moves_the_corner_that_becomes_top_left(degrees, first):
    after = turned(quad(0, 0, 300, 20), degrees)
    assert after[0] == first
    assert size_of(after) == ((300, 20) if degrees % 180 == 0 else (20, 300))


def test_a_tall_line_is_read_upwards_and_a_narrow_character_upright():
    tall, one = quad(0, 0, 20, 300), quad(0, 0, 12, 24)
    assert reading_quad(tall)[0] == (0, 300)
    assert size_of(reading_quad(tall)) == (300, 20)
    assert reading_quad(one) == one


def test_samples_are_long_lines():
    quads = [quad(0, 0, width, 10) for width in (5, 500, 10, 400)]
    assert set(longest(quads, 2)) <= {1, 3, 2, 0}
    assert len(longest(quads * 50, 6)) == 6
    assert longest([], 6) == []


def test_letters_and_digits_are_evidence():
    good, bad = RecognizedText(text="legible text", confidence=0.95), RecognizedText(text="~.·,", confidence=0.9)
    assert evidence([good]) > evidence([bad]) == 0
