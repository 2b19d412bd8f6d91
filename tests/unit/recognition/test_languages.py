import pytest

from pagemill.errors import LanguageError
from pagemill.recognition.languages import (
    ALPHABETS,
    TESSDATA_NAMES,
    Plan,
    languages_covered_by,
    plan,
    primary_subtag,
    script_of,
    script_share,
    scripts_of_language,
    tags_of_text,
)

LATIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
ENGINES = {
    "rapidocr": frozenset({"en", "de", "zh", "ja"}),
    "tesseract:ko": frozenset({"ko"}),
    "tesseract:vi": frozenset({"vi"}),
}


def test_coverage_needs_every_letter_in_both_cases():
    assert "en" in languages_covered_by(LATIN)
    assert "de" not in languages_covered_by(LATIN | set("äöü"))
    assert "de" in languages_covered_by(LATIN | set("äöüßÄÖÜ"))
    assert languages_covered_by(frozenset("äöü")) == frozenset()


def test_every_language_has_a_tessdata_name():
    assert set(TESSDATA_NAMES) == set(ALPHABETS)


@pytest.mark.parametrize(("character", "script"), [("a", "LATIN"), ("한", "HANGUL"), ("中", "CJK"), ("ж", "CYRILLIC")])
def test_scripts_of_letters(character, script):
    assert script_of(character) == script


@pytest.mark.parametrize("character", ["1", " ", ".", "ㅁ"])
def test_what_is_no_letter_has_no_script(character):
    assert script_of(character) is None


def test_scripts_of_languages():
    assert scripts_of_language("ko") == {"HANGUL"}
    assert scripts_of_language("en") == {"LATIN"}
    assert "HIRAGANA" in scripts_of_language("ja")


def test_script_share_counts_letters_only():
    assert script_share("가1나2 ab", frozenset({"HANGUL"})) == 0.5
    assert script_share("123", frozenset({"HANGUL"})) == 0.0


def test_tags_tell_what_the_script_tells():
    assert tags_of_text("The mill") == ("und-Latn",)
    assert tags_of_text("これは紙です") == ("ja",)
    assert tags_of_text("这是纸") == ("zh",)
    assert tags_of_text("이것은 종이 paper") == ("ko", "und-Latn") or tags_of_text("이것은 종이 paper")[0] in {
        "ko",
        "und-Latn",
    }
    assert tags_of_text("") == ()


def test_subtags():
    assert {primary_subtag(tag) for tag in ("ko", "KO", "ko-KR", " ko_KR ")} == {"ko"}


def test_a_plan_asks_only_the_engines_that_are_needed():
    assert plan(["en"], ENGINES, "rapidocr").others == ()
    assert plan(["ko", "en"], ENGINES, "rapidocr").others == (("ko", "tesseract:ko"),)


def test_detection_leaves_out_languages_in_scripts_the_primary_writes():
    assert plan(None, ENGINES, "rapidocr").others == (("ko", "tesseract:ko"),)


def test_accents_the_primary_lacks_need_the_other_engine_for_all_lines():
    made = plan(["vi", "ko"], ENGINES, "rapidocr")
    assert made.primary == "tesseract:vi"
    assert made.others == (("ko", "tesseract:ko"),)


def test_an_uncovered_language_names_what_to_install():
    with pytest.raises(LanguageError) as caught:
        plan(["en", "ru"], ENGINES, "rapidocr")
    assert "ru" in str(caught.value)
    assert "tesseract-ocr-rus" in (caught.value.remedy or "")


QUICKER = {**ENGINES, "rapidocr:latin": frozenset({"en", "de"})}


def test_languages_the_quicker_recognizer_knows_are_read_by_it():
    assert plan(["en", "de"], QUICKER, "rapidocr").primary == "rapidocr:latin"
    assert plan(["ko", "en"], QUICKER, "rapidocr") == Plan("rapidocr:latin", (("ko", "tesseract:ko"),), ("ko", "en"))
    assert plan(["en", "zh"], QUICKER, "rapidocr").primary == "rapidocr"
    assert plan(["ko"], QUICKER, "rapidocr").primary == "rapidocr"  # Korean pages may hold ideographs


def test_detection_starts_with_all_scripts():
    made = plan(None, QUICKER, "rapidocr")
    assert (made.primary, made.latin, made.others) == ("rapidocr", "rapidocr:latin", (("ko", "tesseract:ko"),))
    assert plan(None, ENGINES, "rapidocr").latin is None
