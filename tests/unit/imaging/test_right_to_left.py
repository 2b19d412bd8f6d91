"""Right-to-left lines as PDF producers display them, and in logical order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import STYLE, Glyphs
from pagemill.imaging.right_to_left import (
    as_written,
    in_reading_order,
    levels_of_display,
    logical_places,
    repeated_marks,
)

SIZE = 20.0
ADVANCE = 10.0
SPACE = 6.0


def displayed(shown, *, left=100.0):
    """Places of the characters of a line as it is displayed from left to right: (character, x1, x2)."""
    placed, x = [], left
    for char in shown:
        if char == " ":
            x += SPACE
            continue
        placed.append((char, x, x + ADVANCE))
        x += ADVANCE
    return placed


def glyphs_of(placed, order=None):
    """Glyphs of a baseline, in the order in which the content draws them."""
    placed = [placed[i] for i in order] if order is not None else placed
    return Glyphs(
        np.array([ord(char) for char, _, _ in placed], dtype=np.uint32),
        np.array([(x1, 84.0, x2, 104.0) for _, x1, x2 in placed]),
        np.array([(x1, 100.0) for _, x1, _ in placed]),
        np.zeros(len(placed), dtype=np.int32),
        np.array([(SIZE, 0, False, False, False, False, 0, False, 0)], dtype=STYLE),
    )


def text_of(glyphs):
    (line,) = lines_of_glyphs(in_reading_order(glyphs), 2000, 200)
    return line.text


LINES = [
    ("ةيدلبلا ةرشنلا", "النشرة البلدية"),
    (".2027 ماع يف", "في عام 2027."),
    ("ةئملا يف 19.4 اهردق", "قدرها 19.4 في المئة"),
    ("ءانيملا :1 لكشلا", "الشكل 1: الميناء"),
    ("ةطخ Open Data 4 ىلع قفاو", "وافق على Open Data 4 خطة"),
    ("ةنيدملا )PDF( سلجم", "مجلس (PDF) المدينة"),
    ("םולש 2024-05-12 ךיראת", "תאריך 2024-05-12 שלום"),
    ("56 34 12 םירפסמ", "מספרים 12 34 56"),
    ("57.7% רועיש", "שיעור 57.7%"),
]


def shape(shown):
    """Brackets as they look: those of the literals above stand in the order of display."""
    return shown.replace(")PDF(", "(PDF)")


@pytest.mark.parametrize(("shown", "text"), LINES)
def test_the_order_of_the_display_counts_not_that_of_the_content(shown, text):
    placed = displayed(shape(shown))
    count = len(placed)
    shuffled = np.random.default_rng(1).permutation(count).tolist()
    for order in (range(count), range(count)[::-1], shuffled):
        assert text_of(glyphs_of(placed, order)) == text


@given(st.lists(st.sampled_from(["אב", "גדה", "12", "3.50", "של"]), min_size=1, max_size=7), st.randoms())
def test_any_words_and_figures_come_back_whatever_the_content_order(words, random):
    words = ["שלום", *words, "עולם", "טוב"]
    shown = " ".join(word if word[0].isdigit() else word[::-1] for word in reversed(words))
    placed = displayed(shown)
    order = list(range(len(placed)))
    random.shuffle(order)
    assert text_of(glyphs_of(placed, order)) == " ".join(words)


@given(st.lists(st.integers(0, 2), max_size=30))
def test_every_place_is_read_once(levels):
    assert sorted(logical_places(levels)) == list(range(len(levels)))


def test_a_right_to_left_word_in_another_line_is_turned_alone():
    shown = "Total םוכס due"
    assert levels_of_display(list("ab אב c"), 0) == [0, 0, 0, 1, 1, 0, 0]
    assert text_of(glyphs_of(displayed(shown))) == "Total סכום due"


def test_a_vowel_mark_stays_with_the_letter_under_it():
    # Displayed from the left: kaf, lam, meem; the mark stands over the lam and is drawn first.
    placed = [("\u064e", 113, 117), *displayed("كلم")]
    assert text_of(glyphs_of(placed)) == "مل\u064eك"


def test_presentation_forms_become_letters():
    assert text_of(glyphs_of(displayed("\ufee2\ufee0\ufecb"))) == "علم"


def test_other_lines_stay_as_they_came():
    glyphs = glyphs_of(displayed("plain words"))
    assert in_reading_order(glyphs) is glyphs


def test_cells_with_figures_stay_apart_from_the_words_beside_them():
    placed = [*displayed("57.7%", left=100), *displayed("ددعلا", left=303)]
    lines = lines_of_glyphs(in_reading_order(glyphs_of(placed)), 2000, 200)
    assert sorted(line.text for line in lines) == sorted(["57.7%", "العدد"])


def test_a_mark_at_the_end_of_another_line_goes_to_its_letter():
    upper, lower = displayed("ةيدلبلا"), displayed("اضيا", left=300.0)
    first, second = glyphs_of(upper), glyphs_of(lower)
    mark = Glyphs(
        np.array([0x64B], dtype=np.uint32),
        np.array([[333.0, 118, 337, 124]]),
        np.array([[333.0, 131]]),
        first.style[:1],
        first.styles,
    )
    joined = Glyphs(
        np.concatenate([first.codes, mark.codes, second.codes]),
        np.concatenate([first.boxes, mark.boxes, second.boxes + np.array([0, 40, 0, 40])]),
        np.concatenate([first.origins, mark.origins, second.origins + np.array([0, 40])]),
        np.zeros(12, dtype=np.int32),
        first.styles,
    )
    assert [line.text for line in lines_of_glyphs(in_reading_order(joined), 2000, 400)] == ["البلدية", "ا\u064bيضا"]


def test_letters_whose_boxes_are_the_ink_make_one_word_where_others_are_parted_by_spaces():
    # A space parts two words in the content; the alef stands 0.35 em off, as in a font of fixed pitch.
    placed = [("ب", 100, 110), ("ا", 117, 120), (" ", 120, 132), ("ج", 132, 142), ("د", 142, 152)]
    glyphs = glyphs_of(placed, order=[4, 3, 2, 1, 0])
    assert text_of(glyphs) == "دج اب"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("ةحفصلا يف جمدم CSS (", "(CSS مدمج في الصفحة"),  # it opens, and the line after closes it
        ("(ةكبشلا — نم", "من — الشبكة)"),
        ("،)باب راد(", "(دار باب)،"),
    ],
)
def test_brackets_open_behind_a_space_and_close_before_one(shown, text):
    assert text_of(glyphs_of(displayed(shown))) == text


def test_lines_that_begin_at_the_left_are_read_from_there_whatever_their_letters():
    rows = ["ةملك :", "ةليوطلا ىرخالا ةملكلا .", "5 ةحفصلا"]
    parts = [glyphs_of(displayed(row)) for row in rows]
    glyphs = Glyphs(
        np.concatenate([part.codes for part in parts]),
        np.concatenate([part.boxes + np.array([0, 40 * i, 0, 40 * i]) for i, part in enumerate(parts)]),
        np.concatenate([part.origins + np.array([0, 40 * i]) for i, part in enumerate(parts)]),
        np.concatenate([part.style for part in parts]),
        parts[0].styles,
    )
    texts = [line.text for line in lines_of_glyphs(in_reading_order(glyphs), 2000, 400)]
    assert texts == ["كلمة :", "الكلمة الاخرى الطويلة .", "الصفحة 5"]


def test_a_glyph_that_says_its_letter_as_the_letter_does_is_read_once():
    # As typst writes it: the letter and the mark upon it both have the replacement text of the two.
    codes = [0x645, 0x64B, 0x645, 0x64B]
    glyphs = Glyphs(
        np.array(codes, dtype=np.uint32),
        np.array([(100.0, 84, 106, 104), (106, 84, 112, 104), (103, 82, 106, 90), (106, 82, 109, 90)]),
        np.array([(100.0, 100)] * 2 + [(103.0, 97)] * 2),
        np.zeros(4, dtype=np.int32),
        np.array([(SIZE, 0, False, False, False, False, 0, False, 0)], dtype=STYLE),
    )
    assert repeated_marks(glyphs, lambda index: glyphs.boxes[index]).tolist() == [False, False, True, True]


def test_letters_and_marks_of_a_font_whose_glyphs_say_both_are_those_that_are_drawn():
    ink = np.array([(100.0, 92, 110, 103), (104, 80, 107, 84)])
    glyphs = Glyphs(
        np.array([0x64B, 0x631, 0x651, 0x636], dtype=np.uint32),
        np.array([(100.0, 80, 110, 106)] * 2 + [(104, 76, 107, 102)] * 2),
        np.array([(100.0, 100)] * 2 + [(104.0, 97)] * 2),
        np.zeros(4, dtype=np.int32),
        np.array([(SIZE, 0, False, False, False, False, 0, False, 0)], dtype=STYLE),
    )
    assert repeated_marks(glyphs, lambda index: ink[index // 2]).tolist() == [True, False, False, True]


@pytest.mark.parametrize(("codes", "text"), [("لإ", "لإ"), ("إل", "لإ"), ("...", "…")])
def test_characters_that_pdfium_makes_of_one_glyph_are_in_the_order_of_the_letters(codes, text):
    assert text_of(glyphs_of([("م", 110.0, 120.0), *((char, 100.0, 110.0) for char in codes)])) == "م" + text


@pytest.mark.parametrize(
    ("shown", "text"), [("func( x ) # םש", "func( x ) # שם"), ("array[ i ] = { 1, 2 } םש", "array[ i ] = { 1, 2 } שם")]
)
def test_brackets_of_words_from_left_to_right_stay(shown, text):
    assert text_of(glyphs_of(displayed(shown))) == text


@pytest.mark.parametrize(("space", "text"), [(" ", "رياضيات"), ("", "رياضيا ت")])
def test_letters_of_a_word_alone_may_be_apart_on_a_page_that_writes_its_spaces(space, text):
    """Letters of fixed pitch: a word alone in its cell has no spaces that tell, other lines have."""
    first = [(char, 400.0 - 10 * i, 410.0 - 10 * i) for i, char in enumerate(space.join(["بيت", "دار", "باب"]))]
    word = [(char, 300.0 - 10 * i, 310.0 - 10 * i) for i, char in enumerate("رياضيا")]
    placed = [*first, *word, ("ت", 233.0, 242.0)]
    glyphs = glyphs_of(placed)
    below = np.arange(len(placed)) >= len(first)
    glyphs.boxes[below, 1::2] += 40
    glyphs.origins[below, 1] += 40
    _, line = lines_of_glyphs(in_reading_order(glyphs), 2000, 200)
    assert line.text == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("שלום )עולם( טוב\r\n(x)\r\n", "שלום (עולם) טוב\r\n(x)\r\n"),  # turned round in the first line alone
        ("call f(x) and g[0] # שם", "call f(x) and g[0] # שם"),
        ("(שם: f)", ")שם: f)"),  # behind Latin letters signs are as written
    ],
)
def test_brackets_that_pdfium_turns_round_are_as_written_again(given, text):
    codes = np.array([ord(char) for char in given], dtype=np.uint32)
    assert "".join(map(chr, as_written(codes).tolist())) == text


@pytest.mark.parametrize(
    ("shown", "base", "runs", "text"),
    [
        (")(f דוק", 1, None, "קוד f()"),  # codes as written: of neutral brackets the one behind is at the left
        ("print(x) סיפדה", 1, None, "הדפיס print(x)"),  # the bracket closes what the Latin words open (N0)
        ("GB 4 ןורכיז", 1, None, "זיכרון GB 4"),
        ("GB 4 ןורכיז", 1, (1, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4), "זיכרון 4 GB"),  # of text objects of their own
        ("x 1.7 הסרג y", 0, None, "x גרסה 1.7 y"),
        ("1.7 םיקלח", 0, (1, 1, 1, 1, 2, 2, 2, 2, 2), "1.7 חלקים"),  # the space is the number's
        ("1.7 םיקלח", 0, (1, 1, 1, 2, 2, 2, 2, 2, 2), "חלקים 1.7"),
        (")1(]א[רפסמ", 0, None, "מספר[א](1)"),
        ("٤٢ ددع", 0, None, "عدد ٤٢"),
    ],
)
def test_levels_of_mixed_lines(shown, base, runs, text):
    chars = list(shown)
    places = logical_places(levels_of_display(chars, base, runs, [0] * len(chars)))
    assert "".join(chars[place] for place in places) == text


def test_a_comment_behind_code_is_of_its_line():
    comment, code = displayed("قيلعت #", left=100), displayed(")ر(بلطا", left=306)
    for off, texts in ((0.0, ["اطلب(ر) # تعليق"]), (3.0, ["# تعليق", "اطلب(ر)"])):
        placed = [*comment, *((char, x1 + off, x2 + off) for char, x1, x2 in code)]
        lines = lines_of_glyphs(in_reading_order(glyphs_of(placed)), 2000, 200)
        assert sorted(line.text for line in lines) == sorted(texts)


def test_left_aligned_cells_are_read_from_the_right_where_their_brackets_say_so():
    rows = ["(ב)א", "(בא)גדה", "א (ב)", "(תחא)שלוש"]
    placed, tops = [], []
    for number, row in enumerate(rows):
        shown = displayed(row[::-1])  # codes as written, displayed from the right
        placed += shown
        tops += [40.0 * number] * len(shown)
    glyphs = glyphs_of(placed)
    glyphs.boxes[:, 1::2] += np.array(tops)[:, None]
    glyphs.origins[:, 1] += np.array(tops)
    lines = lines_of_glyphs(in_reading_order(glyphs), 2000, 400)
    assert [line.text for line in lines] == rows


def test_a_letter_apart_from_its_mark_has_the_box_of_both():
    # PDFium cuts the box of the two in slices, and puts another letter between them.
    word = displayed("אבגד", left=100.0)
    glyphs = glyphs_of([*word[:2], ("\u05b7", 120.0, 125.0), ("ה", 140.0, 150.0), ("ג", 125.0, 130.0), word[3]])
    glyphs.origins[2] = glyphs.origins[4] = (120.0, 100.0)
    glyphs.style[[2, 4]] = 1
    glyphs = Glyphs(glyphs.codes, glyphs.boxes, glyphs.origins, glyphs.style, np.repeat(glyphs.styles, 2))
    assert text_of(glyphs) == "הדג\u05b7בא"
