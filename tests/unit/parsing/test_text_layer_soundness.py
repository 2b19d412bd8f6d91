from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pagemill.document.page import TextLine
from pagemill.imaging.page import TextLayer
from pagemill.parsing.text_layer_soundness import is_garbled, judge, merge_lines, unread_ink

PROSE = "A paper mill is a simple machine with a long memory, and rag is cut, washed and beaten until the fibres part. "
BLANK = np.full((600, 800, 3), 255, dtype=np.uint8)


def line(text, box=(50.0, 50.0, 700.0, 70.0)):
    return TextLine(text=text, box=box)


def layer(text, *, unmapped=0):
    count = sum(not char.isspace() for char in text)
    lines = (line(text),) if text else ()
    return TextLayer(lines=lines, characters=count, unmapped=unmapped)


def page_with_strips(tops):
    """Pixels with text-like strips: letters as small blocks of ink."""
    pixels = BLANK.copy()
    letters = np.random.default_rng(7)
    for top in tops:
        for x in range(60, 600, 9):
            height = letters.integers(6, 13)
            pixels[top + 12 - height : top + 12, x : x + 2] = 0
    return pixels


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (layer(""), "unsound"),
        (layer(PROSE, unmapped=20), "unsound"),
        (layer("~#" * 100), "unsound"),
        (layer("".join(chr(ord(c) - 29) if c.isalpha() else c for c in PROSE) * 2), "unsound"),
        (layer(PROSE), "sound"),
    ],
)
def test_verdicts(given, verdict):
    assert judge(given, BLANK).verdict == verdict


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "다음과 같이 체험 교실을 운영합니다. 종이에 관심이 있는 시민 여러분의 많은 참여를 바랍니다. " * 3,
        "1,284.5 899.2 70.0 % 612.0 475.9 77.8 1,310.2 904.0 " * 4,
        "वा र्षिक",
        "इसी कारण से विद्यालय मंडल ने औसत प्रतीक्षा समय घटाकर 18 मिनट किया। नगर परिषद ने नदी के किनारे व बाहर काम किया। " * 2,
        "กลุ่มวิจัยขนาดเล็กเผยแพร่งบประมาณประจำปี 2019 หลังการตรวจสอบครั้งที่สอง ทำงานช้าๆ ทุกวัน วันละสองครั้ง " * 2,
        "too short to tell",
    ],
)
def test_plausible_text(text):
    assert not is_garbled(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("~#" * 100, id="signs"),
        pytest.param("a" * 200, id="one glyph"),
        pytest.param("bcd fgh jkl mnp qrs tvw xz " * 10, id="letters"),
        pytest.param("thequickbrownfoxjumpsoverthelazydog" * 5, id="no spaces"),
        pytest.param(
            "इसी का रण से वि द्या लय मंडल ने औसत प्रती क्षा समय घटा कर 18 मि नट कि या । दैनि क या ता या त " * 3, id="torn"
        ),
        pytest.param("ใช้เ ช้ฉพาะวัส วั ดุที่ผ่า ผ่ นการรับ รั รอง เก็บสารเคมีไว้ใ ว้นห้อ ห้ งแห้ง " * 3, id="twice"),
        pytest.param("cafÃ© naÃ¯ve Ã©tude dÃ©jÃ  vu Ã¶ffnen Ã¼ber" * 4, id="mojibake"),
    ],
)
def test_garbled_text(text):
    assert is_garbled(text)


def test_a_stamp_over_a_scan_is_partial():
    pixels = page_with_strips(range(50, 500, 30))
    stamp = TextLayer(lines=(line(PROSE, (55, 48, 610, 66)),), characters=90, unmapped=0)
    assert judge(stamp, pixels).verdict == "partial"


def test_a_layer_that_covers_the_ink_is_sound():
    tops = range(50, 500, 30)
    lines = tuple(line(PROSE, (55, top - 2, 610, top + 16)) for top in tops)
    whole = TextLayer(lines=lines, characters=1000, unmapped=0)
    assert judge(whole, page_with_strips(tops)).verdict == "sound"


FOOTER = "Powered by TCPDF (www.tcpdf.org)"


def layer_with_hidden(lines, hidden):
    return TextLayer(
        lines=tuple(lines),
        hidden_lines=tuple(hidden),
        characters=sum(len(one.text) for one in lines),
        unmapped=0,
    )


def test_a_hidden_footer_leaves_a_sound_layer_sound():
    tops = range(50, 110, 30)
    pixels = page_with_strips(tops)
    printed = [line("A short letter of two lines.", (55, top - 2, 610, top + 16)) for top in tops]
    assert judge(layer_with_hidden(printed, [line(FOOTER, (55, 570, 300, 585))]), pixels).verdict == "sound"


def test_hidden_text_alone_is_somebody_elses_reading():
    assert judge(layer_with_hidden([], [line(PROSE)]), BLANK).verdict == "unsound"


def test_a_hidden_reading_of_a_picture_has_the_picture_read():
    """The visible text is kept; what an invisible layer says to stand elsewhere is read from the pixels."""
    tops = range(50, 530, 30)
    pixels = page_with_strips(tops)
    printed = [line(PROSE, (55, top - 2, 610, top + 16)) for top in list(tops)[:12]]
    scanned = [line(PROSE, (55, top - 2, 610, top + 16)) for top in list(tops)[12:]]
    assert unread_ink(pixels, [one.box for one in printed]) < 0.35
    assert judge(layer_with_hidden(printed, scanned), pixels).verdict == "partial"
    assert judge(layer_with_hidden([*printed, *scanned], scanned), pixels).verdict == "sound"


def test_text_that_touches_a_frame_is_unread_ink():
    """Five rows of text in each of three frames, from rule to rule; the first frame is known."""
    tops = [top + 25 * row for top in (40, 220, 400) for row in range(5)]
    framed = page_with_strips(tops)
    for top in (40, 220, 400):
        framed[top - 10 : top + 125, 57:60] = framed[top - 10 : top + 125, 592:595] = 0
        framed[top - 10 : top - 7, 57:595] = framed[top + 122 : top + 125, 57:595] = 0
    assert unread_ink(framed, [(57, 30, 595, 165)]) == pytest.approx(2 / 3, abs=0.05)


def test_an_empty_frame_is_no_text():
    pixels = BLANK.copy()
    for top in range(50, 500, 40):
        pixels[top : top + 2, 100:600] = pixels[top + 24 : top + 26, 100:600] = 0
        pixels[top : top + 26, 100:102] = pixels[top : top + 26, 598:600] = 0
    assert unread_ink(pixels, []) == 0


def test_merging_keeps_the_layer_where_both_have_a_line():
    merged = merge_lines(
        [line("layer", (0, 0, 100, 10))], [line("read", (2, 1, 98, 11)), line("new", (0, 50, 100, 60))]
    )
    assert [item.text for item in merged] == ["layer", "new"]
    assert merge_lines([], [line("read")])[0].text == "read"


def test_memory_does_not_grow_with_the_square_of_the_lines():
    lines = tuple(line("word", (x, y, x + 20.0, y + 10.0)) for x in range(0, 700, 14) for y in range(0, 590, 20))
    crowded = TextLayer(lines=lines, hidden_lines=lines, characters=4 * len(lines), unmapped=0)
    tracemalloc.start()
    try:
        assert judge(crowded, BLANK).verdict == "sound"
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
