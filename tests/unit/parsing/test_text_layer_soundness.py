import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from pagemill.document.labels import Label
from pagemill.document.page import TextLine, Word
from pagemill.imaging.page import TextLayer
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.doubts import unmapped_characters
from pagemill.parsing.text_layer_soundness import (
    holds_unsaid_text,
    is_garbled,
    is_unmapped,
    judge,
    lines_not_read,
    merge_lines,
    unread_ink,
)

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
        "Từ tháng mười năm ngoái, ủy ban độc lập đã mở một phòng đọc. Sở giao thông đã trồng cây ở hai bên đường. " * 2,
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


@pytest.mark.parametrize("shape", [(3, 16_000, 3), (16_000, 3, 3)])
def test_a_page_of_a_few_pixels_has_no_unread_ink(shape):
    assert unread_ink(np.full(shape, 255, dtype=np.uint8), []) == 0


def test_merging_keeps_the_layer_where_both_have_a_line():
    merged = merge_lines(
        [line("layer", (0, 0, 100, 10))], [line("read", (2, 1, 98, 11)), line("new", (0, 50, 100, 60))]
    )
    assert [item.text for item in merged] == ["layer", "new"]
    assert merge_lines([], [line("read")])[0].text == "read"


def test_what_is_read_takes_the_place_of_lines_that_say_nothing():
    unmapped = line("\ufffd\ufffd\ufffd", (50, 10, 400, 30))
    elsewhere = line("\ufffd\ufffd\ufffd", (50, 100, 400, 120))
    prose, title = line(PROSE), line("Title", (48, 8, 402, 32))
    again = line("A paper mi1l", (52.0, 51.0, 690.0, 69.0))
    assert merge_lines([unmapped, prose, elsewhere], [title, again]) == [prose, title, elsewhere]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\ufffd\ufffd \ufffd", True),
        ("Rent due: \ufffd\ufffd\ufffd", True),
        ("\ufffd", False),
        ("\ufffd in a line", False),
        (PROSE + "\ufffd x\ufffd", False),
    ],
)
def test_a_line_or_a_word_in_it_says_nothing(text, found):
    assert is_unmapped(line(text)) is found


def slanting(text):
    """A line that runs up the page from corner to corner."""
    corners = ((30.0, 560.0), (730.0, 20.0), (750.0, 45.0), (50.0, 585.0))
    return TextLine(text=text, box=(30.0, 20.0, 750.0, 585.0), polygon=corners)


def test_a_watermark_says_nothing_of_the_text_in_the_box_around_it():
    mark = slanting("CONFIDENTIAL")
    scan = page_with_strips(range(40, 560, 40))
    assert judge(TextLayer(lines=(mark,), characters=12, unmapped=0), scan).verdict == "partial"
    hidden = tuple(line("word" * 9, (58.0, top, 600.0, top + 14.0)) for top in range(40, 560, 40))
    noted = TextLayer(lines=(mark,), hidden_lines=hidden, characters=12, unmapped=0)
    assert judge(noted, scan).verdict == "partial"
    read, again = line(PROSE), slanting("CONFIDENTAL")
    assert merge_lines([mark], [read, again]) == [mark, read]


@pytest.mark.parametrize(("box", "found"), [((50, 400, 300, 440), True), ((20, 10, 760, 590), False)])
def test_a_watermark_is_no_unsaid_text_but_what_is_in_the_box_around_it_may_be(box, found):
    region = DetectedRegion(box=box, label=Label.TEXT, score=0.9, source="e")
    assert holds_unsaid_text([region], [slanting("CONFIDENTIAL")], [], BLANK) is found


@pytest.mark.parametrize(("label", "found"), [(Label.TEXT, True), (Label.TABLE, True), (Label.CHART, False)])
def test_text_and_tables_are_looked_for_beside_the_layer(label, found):
    region = DetectedRegion(box=(50, 400, 300, 440), label=label, score=0.9, source="e")
    assert holds_unsaid_text([region], [line(PROSE)], [], BLANK) is found


@pytest.mark.parametrize(("right", "found"), [(90.0, True), (610.0, False)], ids=["numbers", "all"])
def test_numbers_in_the_layer_do_not_say_the_items_behind_them(right, found):
    tops = range(340, 500, 40)
    lines = [line("1.", (58.0, top - 4.0, right, top + 16.0)) for top in tops]
    region = DetectedRegion(box=(50, 330, 620, 500), label=Label.TEXT, score=0.9, source="e")
    assert holds_unsaid_text([region], lines, [], page_with_strips(tops)) is found


PASTED = DetectedRegion(box=(50, 330, 620, 500), label=Label.TEXT, score=0.9, source="e")


@pytest.mark.parametrize(
    ("others", "found"),
    [([], True), ([replace(PASTED, label=Label.IMAGE, box=(40, 320, 640, 520))], False)],
    ids=["an image of text", "lettering of a picture"],
)
def test_a_region_of_text_that_is_an_image_is_unsaid_but_not_what_layout_takes_for_a_picture(others, found):
    pixels = page_with_strips(range(340, 500, 40))
    assert holds_unsaid_text([PASTED, *others], [line(PROSE)], [PASTED.box], pixels) is found


@pytest.mark.parametrize(
    ("said", "image", "found"),
    [
        ([380, 420], (50, 330, 620, 360), True),
        ([340, 380, 420], (50, 330, 620, 360), False),
        ([380, 420], (700, 330, 780, 360), False),
        ([380, 420], (0, 0, 800, 600), False),
    ],
    ids=["a line is an image", "behind a line", "beside the text", "background"],
)
def test_an_image_in_a_region_of_text_is_unsaid_where_it_shows_a_line(said, image, found):
    tops = [340, 380, 420]
    lines = [line("Said in the layer", (58.0, top - 4.0, 610.0, top + 16.0)) for top in said]
    region = DetectedRegion(box=(50, 330, 620, 440), label=Label.TEXT, score=0.9, source="e")
    assert holds_unsaid_text([region], lines, [image], page_with_strips(tops)) is found


def read_words(*words):
    """A line that was read, of words with their left and right edges."""
    boxes = tuple(Word(text, (left, 10.0, right, 30.0)) for text, left, right in words)
    text, box = " ".join(word.text for word in boxes), (boxes[0].box[0], 10.0, boxes[-1].box[2], 30.0)
    return TextLine(text=text, box=box, words=boxes)


@pytest.mark.parametrize(
    ("read", "rest"),
    [
        (
            read_words(("Name:", 50, 98), ("Johannes", 104, 190), ("of", 195, 215), ("Mainz", 220, 600)),
            "Johannes of Mainz",
        ),
        (read_words(("No.", 20, 40), ("Name:", 50, 100), ("12", 104, 120)), "No.|12"),
        (read_words(("Name:", 50, 100), ("_", 104, 120)), ""),
        (read_words(("Na", 48, 78), ("me:", 80, 104)), ""),
        (read_words(("Johannes", 104, 190)), "Johannes"),
    ],
    ids=["long value", "short values on both sides", "a stroke", "nothing else", "apart"],
)
def test_of_a_line_that_is_partly_in_the_layer_the_other_words_are_taken(read, rest):
    label = line("Name:", (50.0, 10.0, 100.0, 30.0))
    kept, *found = merge_lines([label], [read])
    assert kept is label
    assert "|".join(part.text for part in found) == rest
    assert not any(part.box[0] < 100 < part.box[2] for part in found)


def test_what_is_read_replaces_mapped_lines_beside_an_unmapped_one():
    name, value = line("Total sum", (50, 10, 110, 30)), line("\ufffd\ufffd\ufffd", (125, 10, 180, 30))
    read = line("Total sum 4,938.24", (48, 8, 182, 32))
    assert merge_lines([name, value], [read]) == [read]


def test_no_word_is_lost_where_only_a_part_of_a_line_is_read():
    words = (Word("Rent", (50, 10, 90, 30)), Word("due", (95, 10, 130, 30)), Word("\ufffd" * 6, (135, 10, 200, 30)))
    mixed = TextLine(text="Rent due " + "\ufffd" * 6, box=(50, 10, 200, 30), words=words)
    value, name = line("938.24", (133, 9, 202, 31)), line("Rent due", (48, 9, 132, 31))
    assert merge_lines([mixed], [value]) == [value, mixed]
    assert merge_lines([mixed], [name]) == [name, mixed]
    assert merge_lines([mixed], [name, value]) == [name, value]


def test_unmapped_characters_that_are_given_are_said():
    (said,) = unmapped_characters([line("Rent \ufffd"), line("Rent 1\ufffd\ufffd4,00")])
    assert said.message.startswith("1 line of the text layer has characters without Unicode values")
    assert not list(unmapped_characters([line("Rent \ufffd"), line("\ufffd Rent")]))
    (said,) = unmapped_characters([line("practical di\ufffdculties")])
    assert "1 line" in said.message


def test_lines_of_an_unsound_layer_that_are_not_read_are_counted():
    nothing, elsewhere = line("\ufffd\ufffd\ufffd", (50, 10, 400, 30)), line("\ufffd\ufffd\ufffd", (50, 100, 400, 120))
    pixels = page_with_strips([12, 102])
    given = replace(layer(PROSE), lines=(nothing, elsewhere))
    assert lines_not_read(given, [line("Title", (48, 8, 402, 32))], pixels) == 1
    assert lines_not_read(given, [], pixels) == 2


def test_memory_does_not_grow_with_the_square_of_the_lines():
    lines = tuple(line("word", (x, y, x + 20.0, y + 10.0)) for x in range(0, 700, 14) for y in range(0, 590, 20))
    crowded = TextLayer(lines=lines, hidden_lines=lines, characters=4 * len(lines), unmapped=0)
    tracemalloc.start()
    try:
        assert judge(crowded, BLANK).verdict == "sound"
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("unsaid", "is_lacking"),
    [((), False), ((140,), True), ((100,), False), ((180,), False), ((100, 140), True)],
    ids=["none", "between two lines", "first line", "last line", "two lines"],
)
def test_ink_in_the_place_of_a_line_of_a_paragraph_is_text_that_the_layer_lacks(unsaid, is_lacking):
    tops = [100, 120, 140, 160, 180]
    pixels = page_with_strips(tops)
    pixels[140:152, 300:] = 255  # a short line
    lines = tuple(line(PROSE, (58.0, top - 1.0, 602.0, top + 13.0)) for top in tops if top not in unsaid)
    text = TextLayer(lines=lines, characters=len(lines) * 90, unmapped=0)
    judgement = judge(text, pixels)
    assert judgement.lacks_line is is_lacking
    assert judgement.verdict == ("partial" if is_lacking else "sound")
