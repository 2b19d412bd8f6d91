"""Bullets are recognised by their shape, whatever was read in their place; letters stay letters."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
from PIL import Image, ImageDraw

from pagemill.document.page import TextLine, Word
from pagemill.parsing.bullets import restore_bullets

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

SIZE = 32
HEIGHT = round(SIZE / 0.72)
LEFT = 100
TEXT = "사업을 추진한다"


def polygon(corners: int, turn: float) -> Callable[[ImageDraw.ImageDraw, float, float, float, bool], None]:
    def draw(canvas: ImageDraw.ImageDraw, x: float, y: float, radius: float, filled: bool) -> None:
        angles = [math.radians(turn + 360 * corner / corners) for corner in range(corners)]
        points = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
        canvas.polygon(points, outline=0, width=3, fill=0 if filled else None)

    return draw


def circle(canvas: ImageDraw.ImageDraw, x: float, y: float, radius: float, filled: bool) -> None:
    canvas.ellipse((x - radius, y - radius, x + radius, y + radius), outline=0, width=2, fill=0 if filled else None)


def numbered(canvas: ImageDraw.ImageDraw, x: float, y: float, radius: float, filled: bool) -> None:
    circle(canvas, x, y, radius, filled)
    canvas.rectangle((x - 2, y - 7, x + 1, y + 7), fill=0)


def reference_mark(canvas: ImageDraw.ImageDraw, x: float, y: float, radius: float, filled: bool) -> None:
    reach = radius * 0.9
    canvas.line((x - reach, y - reach, x + reach, y + reach), fill=0, width=3)
    canvas.line((x - reach, y + reach, x + reach, y - reach), fill=0, width=3)
    for dx, dy in ((0, 1), (0, -1), (1, 0), (-1, 0)):
        circle(canvas, x + 0.72 * radius * dx, y + 0.72 * radius * dy, 2.5, True)


square, diamond, up, right = polygon(4, 45), polygon(4, 0), polygon(3, -90), polygon(3, 0)


def page(draws: list[Callable[[ImageDraw.ImageDraw], None]]) -> NDArray[np.uint8]:
    """Lines of blocks as wide as syllables, each with something drawn before it."""
    image = Image.new("L", (800, 80 * len(draws) + 80), 255)
    canvas = ImageDraw.Draw(image)
    for row, draw in enumerate(draws):
        top = 40 + 80 * row
        for place in range(8):
            x = LEFT + 45 + place * SIZE
            canvas.rectangle((x, top + 8, x + SIZE - 5, top + HEIGHT - 8), outline=0, width=3)
            canvas.line((x, top + 22, x + SIZE - 5, top + 22), fill=0, width=3)
        draw(canvas)
    return np.repeat(np.asarray(image)[..., None], 3, axis=2)


def line(row: int, said: str, rest: str = TEXT, engine: str = "tesseract") -> TextLine:
    """A line as read: with something for the bullet, or without it."""
    top = 40.0 + 80 * row
    words = [
        Word(word, (LEFT + 45 + 90.0 * place, top, LEFT + 130 + 90.0 * place, top + HEIGHT))
        for place, word in enumerate(rest.split())
    ]
    start = float(LEFT + 42)
    if said:
        words.insert(0, Word(said, (float(LEFT), top, LEFT + 30.0, top + HEIGHT)))
        start = float(LEFT)
    text = f"{said} {rest}".strip()
    return TextLine(text=text, box=(start, top, 420.0, top + HEIGHT), engine=engine, words=tuple(words))


def before(
    draw: Callable[..., None], radius: float, *, filled: bool = False, row: int = 0
) -> Callable[[ImageDraw.ImageDraw], None]:
    return lambda canvas: draw(canvas, LEFT + 15, 40 + 80 * row + HEIGHT / 2, radius, filled)


@pytest.mark.parametrize(
    ("draw", "radius", "filled", "sign"),
    [
        (square, 17, False, "□"), (square, 17, True, "■"), (circle, 12, False, "○"), (circle, 12, True, "●"),
        (circle, 6, False, "◦"), (diamond, 14, False, "◇"), (diamond, 14, True, "◆"), (up, 14, False, "△"),
        (up, 14, True, "▲"), (right, 14, True, "▶"), (reference_mark, 13, False, "※"),
    ],
)  # fmt: skip
def test_what_was_read_for_a_bullet_gives_way_to_its_shape(draw, radius, filled, sign) -> None:
    pixels = page([before(draw, radius, filled=filled)])
    for said in ("", "디", "ㅁ", "口", "|", "O"):
        (restored,) = restore_bullets([line(0, said)], pixels)
        assert restored.text == f"{sign} {TEXT}", said
        assert restored.words[0].text == sign, said
        assert restored.box[0] <= LEFT + 15, said


def test_circled_numbers_count_up_whatever_was_read() -> None:
    said = ["(01)", "(②)", "0)", "(4"]
    pixels = page([before(numbered, 13, row=row) for row in range(4)])
    restored = restore_bullets([line(row, text) for row, text in enumerate(said)], pixels)
    assert [one.text[0] for one in restored] == list("①②③④")


def test_small_signs_need_another_line_that_starts_so() -> None:
    alone = page([before(circle, 3, filled=True), lambda _: None])
    lines = [line(0, ""), line(1, "")]
    assert [one.text for one in restore_bullets(lines, alone)] == [TEXT, TEXT]
    both = page([before(circle, 3, filled=True, row=row) for row in range(2)])
    assert [one.text for one in restore_bullets(lines, both)] == [f"• {TEXT}"] * 2


@pytest.mark.parametrize("said", ["。", "o", ""])
@pytest.mark.parametrize("rest", ["氣候溫和人口約二千三百萬", "夏は暑く冬は雪が降ります"])
def test_a_full_stop_at_the_start_of_a_chinese_or_japanese_line_is_no_bullet(said: str, rest: str) -> None:
    pixels = page([before(circle, 6, row=row) for row in range(2)])
    lines = [line(0, said, rest), line(1, said, rest)]
    assert restore_bullets(lines, pixels) == lines


def test_a_small_ring_before_chinese_characters_of_a_korean_page_is_a_bullet() -> None:
    pixels = page([before(circle, 6), lambda _: None])
    restored = restore_bullets([line(0, "o", "事業推進"), line(1, "")], pixels)
    assert [one.text for one in restored] == ["◦ 事業推進", TEXT]


def test_a_ring_read_as_two_brackets_is_a_bullet() -> None:
    (restored,) = restore_bullets([line(0, "()")], page([before(circle, 12)]))
    assert restored.text == f"○ {TEXT}"


def test_roman_numerals_read_as_bars() -> None:
    def bars(canvas: ImageDraw.ImageDraw) -> None:
        for x in (LEFT + 5, LEFT + 17):
            canvas.rectangle((x, 50, x + 3, 76), fill=0)

    assert restore_bullets([line(0, "||")], page([bars]))[0].text == f"Ⅱ {TEXT}"


def numeral(canvas: ImageDraw.ImageDraw) -> None:
    """``Ⅲ.`` before the first line."""
    for x in (LEFT - 34, LEFT - 24, LEFT - 14):
        canvas.rectangle((x, 50, x + 3, 76), fill=0)
    canvas.rectangle((LEFT - 5, 73, LEFT - 2, 76), fill=0)


@pytest.mark.parametrize("said", [".", "1.", "\\\\.", "L."])
def test_a_roman_numeral_left_out_or_read_as_something_else_is_told_by_its_strokes(said: str) -> None:
    (restored,) = restore_bullets([line(0, said)], page([numeral]))
    assert restored.text == f"Ⅲ. {TEXT}"


def test_a_numeral_found_as_a_line_of_its_own_is_not_read_twice() -> None:
    lines = [line(0, ".")]
    place = (LEFT - 36.0, 48.0, LEFT - 8.0, 78.0)
    alone = msgspec.structs.replace(lines[0], text="11", box=place, polygon=None, words=())
    assert [one.text for one in restore_bullets([*lines, alone], page([numeral]))] == [f"Ⅲ. {TEXT}"]


def test_a_number_stays_where_no_numeral_is_drawn() -> None:
    (restored,) = restore_bullets([line(0, "1.")], page([lambda _: None]))
    assert restored.text == f"1. {TEXT}"


@pytest.mark.parametrize("said", ["O", "o", "0"])
def test_latin_letters_stay(said: str) -> None:
    pixels = page([before(circle, 12)])
    assert restore_bullets([line(0, said, "menino foi")], pixels)[0].text == f"{said} menino foi"


def test_a_text_layer_gets_the_bullets_that_it_lacks_and_keeps_those_that_it_has() -> None:
    pixels = page([before(square, 17)])
    assert restore_bullets([line(0, "", engine="text-layer")], pixels)[0].text == f"□ {TEXT}"
    assert restore_bullets([line(0, "ㅁ", engine="text-layer")], pixels)[0].text == f"ㅁ {TEXT}"


def test_syllables_and_rules_are_no_bullets() -> None:
    def rule(canvas: ImageDraw.ImageDraw) -> None:
        canvas.line((LEFT + 15, 0, LEFT + 15, 200), fill=0, width=3)

    for pixels in (page([lambda _: None]), page([rule])):
        assert restore_bullets([line(0, "")], pixels)[0].text == TEXT


def test_a_ticked_box_is_one_and_the_empty_ones_beside_it_are_too() -> None:
    def ticked(canvas: ImageDraw.ImageDraw) -> None:
        before(square, 17)(canvas)
        canvas.line((LEFT + 9, 62, LEFT + 13, 67, LEFT + 20, 56), fill=0, width=3)

    lines = [line(0, ""), line(1, "", rest="□ 둘째")]
    assert [restored.text[:1] for restored in restore_bullets(lines, page([ticked]))] == ["☑", "☐"]
    assert restore_bullets([line(0, "国")], page([ticked]))[0].text.startswith("国")
