"""Glyphs made here, as PDFium would give them."""

import numpy as np
import pytest

from pagemill.imaging.glyph_lines import lines_of_glyphs
from pagemill.imaging.glyphs import STYLE, Glyphs, valid_unicode
from pagemill.imaging.right_to_left import in_reading_order

SIZE = 20.0


def make_glyphs(placed, *, baseline=100.0, styles=1):
    """Glyphs from (characters at one place, x1, x2, *index of style); a space has no width of its own."""
    codes, boxes, origins, style = [], [], [], []
    for characters, x1, x2, *which in placed:
        for char in characters:
            codes.append(ord(char))
            height = 0.0 if char == " " else SIZE
            boxes.append((x1, baseline - 0.8 * height, x2, baseline + 0.2 * height))
            origins.append((x1, baseline))
            style.append(which[0] if which else 0)
    return Glyphs(
        np.array(codes, dtype=np.uint32),
        np.array(boxes, dtype=np.float64),
        np.array(origins, dtype=np.float64),
        np.array(style, dtype=np.int32),
        np.array([(SIZE, 0, False, False, False, False, 0, False, 0)] * styles, dtype=STYLE),
    )


def letters(text, *, start, advance, width, style=0):
    """One glyph after the other; white space is a point where the next letter begins."""
    x, placed = start, []
    for char in text:
        placed.append((char, x, x if char == " " else x + width, style))
        x += 0.2 * SIZE if char == " " else advance
    return placed


def texts_of(glyphs):
    kept = glyphs.select(~glyphs.repeated())
    return [line.text for line in lines_of_glyphs(in_reading_order(kept), 2000, 200)]


@pytest.mark.parametrize("ligature", ["ff", "ffi", "..."])
def test_a_ligature_that_repeats_a_letter_keeps_all_of_them(ligature):
    assert texts_of(make_glyphs([("e", 100, 110), (ligature, 110, 122), ("t", 122, 128)])) == [f"e{ligature}t"]


def test_letters_drawn_once_more_count_once():
    word = [("b", 100, 110), ("o", 110, 120)]
    assert texts_of(make_glyphs([*word, *word])) == ["bo"]
    other = [(*glyph, 1) for glyph in word]
    assert texts_of(make_glyphs([word[0], other[0], word[1], other[1]], styles=2)) == ["bo"]


def test_words_are_told_apart_where_letters_overlap():
    tight = letters("the vision here", start=100, advance=8, width=13)
    assert texts_of(make_glyphs(tight)) == ["the vision here"]


def test_white_space_no_wider_than_a_hair_is_none():
    placed = [*letters("vis", start=100, advance=10, width=10), (" ", 130, 130)]
    placed += letters("ion", start=130.5, advance=10, width=10)
    assert texts_of(make_glyphs(placed)) == ["vision"]


def test_a_tight_text_object_has_a_spacing_of_its_own():
    tight = letters("Major Findings", start=100, advance=8, width=13, style=1)
    loose = letters("that go on at length without an overlap", start=tight[-1][2], advance=10, width=10)
    (line,) = texts_of(make_glyphs([*tight, *loose], styles=2))
    assert line.startswith("Major Findings")


def test_a_lam_alef_ligature_that_was_turned_round_reads_lam_alef():
    # from right to left: kha, the ligature as its font maps it (alef, lam), lam
    assert texts_of(make_glyphs([("خ", 120, 130), ("ال", 110, 120), ("ل", 100, 110)])) == ["خلال"]


def test_alef_and_lam_as_two_glyphs_stay():
    assert texts_of(make_glyphs([("ا", 120, 125), ("ل", 112, 120), ("م", 100, 112)])) == ["الم"]


def test_a_vowel_mark_over_the_next_letter_follows_it():
    turned = make_glyphs([("ي", 120, 130), (" ", 120, 120), ("ً", 104, 107), ("ض", 100, 119.8), ("ا", 95, 100)])
    assert texts_of(turned) == ["يضًا"]


def test_a_vowel_mark_over_its_own_letter_stays():
    sound = make_glyphs([("ض", 110, 130), ("ً", 114, 117), ("ا", 105, 116)])
    assert texts_of(sound) == ["ضًا"]


def test_a_mark_drawn_before_an_arabic_ligature_leaves_its_letters_in_order():
    glyphs = make_glyphs([("\u064e", 100, 112), ("\u0627\u0644", 100, 112)])
    codes = in_reading_order(glyphs).codes.tolist()
    assert [chr(code) for code in codes if chr(code).isalpha()] == ["\u0644", "\u0627"]


def test_a_right_to_left_word_whose_letters_follow_from_left_to_right_is_turned_round():
    turned = [("ر", 100, 108), ("ي", 108, 116), ("ر", 116, 124), ("ق", 124, 132), ("ت", 132, 140), (" ", 95, 95)]
    sound = [("س", 85, 95), ("ن", 77, 85), ("و", 69, 77), ("ي", 59, 69)]
    assert texts_of(make_glyphs([*turned, *sound])) == ["تقرير سنوي"]


def test_a_ligature_in_a_word_that_was_turned_round_keeps_its_letters_in_order():
    # from left to right as drawn: mim, sin, the ligature as PDFium turns it (alef, lam), alef
    drawn = [("م", 100, 108), ("س", 108, 116), ("ال", 116, 124), ("ا", 124, 128)]
    assert texts_of(make_glyphs(drawn)) == ["الاسم"]


@pytest.mark.parametrize("figures", ["١٢٣", "۱۲۳"])
def test_arabic_figures_run_from_left_to_right(figures):
    assert texts_of(make_glyphs(letters(figures, start=100, advance=8, width=8))) == [figures]


def word_by_word(text, *, gap, letter=0.0):
    """Glyphs of words that are placed one by one, without any space between them; gaps in em."""
    x, placed = 100.0, []
    for word in text.split():
        for char in word:
            placed.append((char, x, x + 10))
            x += 10 + letter * SIZE
        x += gap * SIZE
    return placed


@pytest.mark.parametrize("gap", [0.2, 0.28, 0.4])
def test_words_that_are_placed_one_by_one_are_parted_by_their_gaps(gap):
    text = "ever since the mill was built in a valley"
    assert texts_of(make_glyphs(word_by_word(text, gap=gap))) == [text]


def test_letters_that_kerning_parts_are_of_one_word():
    assert texts_of(
        make_glyphs([*letters("kerni", start=100, advance=10, width=10), ("n", 152, 162), ("g", 162, 172)])
    ) == ["kerning"]


@pytest.mark.parametrize("made_up", [False, True])
def test_letters_that_are_spaced_out_are_of_one_word(made_up):
    placed = word_by_word("LETTER SPACED", gap=0.3, letter=0.3)
    if made_up:  # as PDFium does between letters that are drawn one by one
        placed = [glyph for char, x1, x2 in placed for glyph in ((char, x1, x2), (" ", x2, x2))]
    assert texts_of(make_glyphs(placed)) == ["LETTER SPACED"]


def test_labels_in_a_row_are_words_of_their_own():
    placed = [glyph for char, x1, x2 in word_by_word("A B C", gap=0.3) for glyph in ((char, x1, x2), (" ", x2, x2))]
    assert texts_of(make_glyphs(placed)) == ["A B C"]


def test_leaders_are_no_words():
    assert texts_of(make_glyphs(word_by_word(". . . . .", gap=0.3))) == ["....."]


def test_a_gap_that_may_be_a_space_lowers_the_confidence():
    (line,) = lines_of_glyphs(make_glyphs(word_by_word("wide mill", gap=0.16)), 2000, 200)
    assert line.confidence == pytest.approx(1 - 0.5 / 9, abs=0.001)
    (line,) = lines_of_glyphs(make_glyphs(word_by_word("wide mill", gap=0.28)), 2000, 200)
    assert line.confidence == 1.0


def test_a_character_without_a_unicode_value_lowers_the_confidence():
    (line,) = lines_of_glyphs(make_glyphs(word_by_word("wi\ufffd", gap=0)), 2000, 200)
    assert line.confidence == pytest.approx(2 / 3, abs=0.001)


def test_halves_of_characters_that_were_turned_round_are_joined():
    assert valid_unicode("\udc5a\ud835\udc5b\ud835 \ud835\udc5a \ud835") == "𝑚𝑛 𝑚 \ufffd"
