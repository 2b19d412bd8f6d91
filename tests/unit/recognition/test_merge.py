import numpy as np
import pytest

from pagemill.recognition.base import RecognizedText
from pagemill.recognition.merge import hanja_stretches, replace, stretches

HANGUL = frozenset({"HANGUL"})


def read(text: str, confidence: float = 1.0) -> RecognizedText:
    centers = tuple((index + 0.5) / len(text) for index in range(len(text)))
    return RecognizedText(text=text, confidence=confidence, centers=centers)


def again(text: str, *answers: tuple[str, float]) -> str:
    line = read(text)
    pairs = zip(stretches(line, HANGUL), answers, strict=True)
    merged = replace(line, [(stretch, read(*answer)) for stretch, answer in pairs])
    assert len(merged.centers) == len(merged.text)
    assert list(merged.centers) == sorted(merged.centers)
    assert [word for word, _, _ in merged.word_spans] == merged.text.split()
    return merged.text


def test_stretches_are_what_stands_between_hangul():
    line = read("제12조 인공지능(41) 문의: 02-1234 끝.")
    assert [line.text[s.start : s.end] for s in stretches(line, HANGUL)] == ["12", "(41)", ": 02-1234"]


def test_a_stretch_is_cut_at_the_middle_of_its_neighbours():
    (stretch,) = stretches(read("가12나"), HANGUL)
    assert (stretch.left, stretch.right) == (0.25, 0.75)
    assert stretch.cut(np.zeros((10, 100, 3), np.uint8)).shape == (10, 50, 3)


def test_a_sure_second_reading_replaces_the_first():
    assert again("지능(41) 사업", ("(AI)", 0.98)) == "지능(AI) 사업"


def test_an_unsure_second_reading_does_not():
    assert again("지능(41) 사업", ("(AI)", 0.6)) == "지능(41) 사업"


def test_a_bracket_lost_at_the_cut_stays():
    assert again("전환(2%) 사업", ("DX)", 0.98)) == "전환(DX) 사업"
    assert again("전환(2%) 사업", ("(DX", 0.98)) == "전환(DX) 사업"


def test_a_figure_keeps_its_digits_and_spaces():
    assert again("총 2026년", ("026", 0.99)) == "총 2026년"
    assert again("기간: 26년", (":26", 0.99)) == "기간: 26년"


def test_half_a_neighbour_is_not_added_to_a_figure():
    assert again("수강료 45.000원", ("45,000号", 0.97)) == "수강료 45.000원"
    assert again("수강료 45.000원", ("45,000", 0.97)) == "수강료 45,000원"


def test_the_first_letter_of_the_next_syllable_is_no_7():
    assert again("우물 446개에서", ("4467", 0.98)) == "우물 446개에서"
    assert again("우물 195개에서", ("1957H", 0.95)) == "우물 195개에서"
    assert again("우물 44명에서", ("447", 0.98)) == "우물 447명에서"
    assert again("우물 44 개에서", ("447", 0.98)) == "우물 447 개에서"


def test_a_sign_lost_at_the_cut_stays():
    assert again("12. 모집", ("12", 0.99)) == "12. 모집"


def test_middle_dots_are_one_character():
    assert again("시ㆍ군ㆍ구") == "시·군·구"


@pytest.mark.parametrize(
    ("line", "paper", "merged"),
    [
        ("عام 2021. منذ", ".2027", "عام 2027. منذ"),
        ("الجدول 7: محطة", ":2", "الجدول 2: محطة"),
        ("نحو (41) سنة", "(47)", "نحو (47) سنة"),
        ("نسبة 36.3% من", "36.8%", "نسبة 36.8% من"),
        ("בשנת 2020. לפי", ".2026", "בשנת 2026. לפי"),
    ],
)
def test_signs_beside_a_figure_stay_at_its_side_in_text_from_right_to_left(line, paper, merged):
    length = len(line)
    whole = RecognizedText(text=line, confidence=1.0, centers=tuple(1 - (i + 0.5) / length for i in range(length)))
    (stretch,) = stretches(whole, frozenset({"ARABIC", "HEBREW"}))
    assert replace(whole, [(stretch, read(paper))]).text == merged


def korean(*characters: tuple[str, float, float]) -> RecognizedText:
    text, centers, confidences = zip(*characters, strict=True)
    return RecognizedText(text="".join(text), confidence=0.5, centers=centers, confidences=confidences)


def test_hanja_takes_the_place_of_what_was_read_there_and_hangul_beside_it_stays():
    line = korean(("4", 0.05, 0.1), ("%", 0.1, 0.1), ("@", 0.15, 0.1), ("하", 0.25, 0.8), ("여", 0.35, 0.9))
    first = korean(("收", 0.06, 0.9), ("斂", 0.15, 0.6))
    (stretch,) = hanja_stretches(line, first)
    assert replace(line, [(stretch, korean(("收", 0.2, 0.99), ("斂", 0.5, 0.99)))]).text == "收斂하여"
    assert replace(line, [(stretch, korean(("4", 0.2, 0.99)))]).text == "收斂하여", "as first seen"


def test_a_particle_and_a_space_among_hanja_stay():
    line = korean(("버", 0.05, 0.6), ("쁘", 0.15, 0.0), ("의", 0.25, 0.4), (" ", 0.32, 1.0), ("4", 0.4, 0.1))
    first = korean(("問", 0.05, 0.99), ("題", 0.15, 0.7), ("解", 0.4, 0.98))
    (stretch,) = hanja_stretches(line, first)
    assert replace(line, [(stretch, read(""))]).text == "問題의 解"


def test_hangul_that_both_engines_are_unsure_of_stays():
    line = korean(("구", 0.05, 0.6), ("분", 0.15, 0.6), ("한", 0.25, 0.95))
    first = korean(("7", 0.05, 0.9), ("是", 0.15, 0.6))
    (stretch,) = hanja_stretches(line, first)
    assert replace(line, [(stretch, read("是", 0.6))]).text == "구분한"


def test_syllables_that_all_have_one_place_are_no_error():
    line = korean(("구", 0.3, 0.6), ("분", 0.3, 0.6), ("4", 0.7, 0.1))
    first = korean(("區", 0.2, 0.9), ("分", 0.4, 0.9))
    (stretch,) = hanja_stretches(line, first)
    assert "區分" in replace(line, [(stretch, read(""))]).text
