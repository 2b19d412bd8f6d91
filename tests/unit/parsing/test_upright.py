"""Pages whose text runs sideways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.document.page import TextLine, Word
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.lines import direction, moved, quarter_turn, rows_of
from pagemill.parsing.upright import level_page, turn_to_upright

WIDTH, HEIGHT = 800, 1000


def level(text="a line of running text", y=100.0):
    return TextLine(text=text, box=(50, y, 450, y + 20), words=(Word(text.split()[0], (50, y, 70, y + 20)),))


def with_polygon(line):
    x1, y1, x2, y2 = line.box
    return TextLine(text=line.text, box=line.box, words=line.words, polygon=((x1, y1), (x2, y1), (x2, y2), (x1, y2)))


def turned_lines(lines, degrees, width, height):
    return [moved(line, quarter_turn(degrees % 360, width, height)) for line in lines]


def sideways(line, degrees):
    """The line as it lies on the page turned clockwise."""
    (turned,) = turned_lines([with_polygon(line)], degrees, WIDTH, HEIGHT)
    return turned


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_is_turned_back_until_its_text_runs_level(degrees):
    lines = [level(y=100.0 + 30 * i) for i in range(5)]
    lying = [sideways(line, degrees) for line in lines]
    assert {round(direction(line)) % 360 for line in lying} == {degrees}
    back = turn_to_upright(lying)
    assert (back + degrees) % 360 == 0
    size = (HEIGHT, WIDTH) if degrees % 180 else (WIDTH, HEIGHT)
    assert turned_lines(lying, back, *size) == lines


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_the_images_of_a_page_are_turned_with_its_pixels(degrees):
    pixels = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
    pixels[100:300, 50:90] = 255
    page = DecodedPage(pixels=pixels, image_boxes=((50.0, 100.0, 90.0, 300.0),))
    turned = level_page(page, [], [], turned=degrees).upright
    ys, xs = np.nonzero(turned.pixels[:, :, 0])
    assert turned.image_boxes == ((xs.min(), ys.min(), xs.max() + 1, ys.max() + 1),)


def test_a_stamp_at_the_margin_turns_no_page():
    assert turn_to_upright([*(level(y=100.0 + 30 * i) for i in range(5)), sideways(level(), 270)]) == 0


def test_a_page_upside_down_is_turned_also_with_print_over_it():
    """The print keeps its direction: it is upside down then, and reads from the bottom to the top."""
    lines = [
        *(sideways(level(y=100.0 + 30 * i), 180) for i in range(5)),
        level("Downloaded on"),
        level("a Monday", 130),
    ]
    assert turn_to_upright(lines) == 180
    turned = turned_lines(lines, 180, WIDTH, HEIGHT)
    assert [round(abs(direction(line))) for line in turned] == [0] * 5 + [180] * 2
    assert [row.text for row in rows_of(turned[5:])] == ["Downloaded on", "a Monday"]


def test_a_few_letters_turn_no_page():
    assert turn_to_upright([sideways(level("Fig 1"), 90)]) == 0


def test_level_and_slanted_text_stays():
    assert turn_to_upright([]) == 0
    assert turn_to_upright([level(), level()]) == 0
    slanted = TextLine(text="draft " * 20, box=(0, 0, 500, 500), polygon=((0, 400), (400, 0), (500, 100), (100, 500)))
    assert turn_to_upright([slanted]) == 0


@given(st.lists(st.floats(0, 700, allow_nan=False), min_size=1, max_size=5), st.sampled_from([0, 90, 180, 270]))
def test_turning_there_and_back_changes_nothing(tops, degrees):
    lines = [level(y=top) for top in tops]
    there = turned_lines(lines, degrees, WIDTH, HEIGHT)
    size = (HEIGHT, WIDTH) if degrees % 180 else (WIDTH, HEIGHT)
    for line, back in zip(lines, turned_lines(there, -degrees, *size), strict=True):
        assert back.box == pytest.approx(line.box, abs=0.11)


def test_a_page_in_columns_of_upright_characters_is_laid_on_its_side():
    columns = [TextLine(text="縦に書いた文字", box=(x, 100, x + 20, 240)) for x in range(100, 300, 30)]
    heading = TextLine(text="横の見出し", box=(100, 40, 300, 70))
    page = DecodedPage(pixels=np.full((400, 500, 3), 255, np.uint8))
    laid = level_page(page, [*columns, heading], [], turned=None)
    assert laid.rotation == 270
    assert laid.upright.size == (400, 500)
    assert [line.polygon is None for line in laid.lines] == [*[True] * 7, False]
    assert laid.lines[0].box == (100, 380, 240, 400)
    assert abs(direction(laid.lines[-1])) == 90
