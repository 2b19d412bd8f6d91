import pytest

from pagemill.recognition.languages import ALPHABETS
from pagemill.retrieval.languages import is_known, language_of, may_be


@pytest.mark.parametrize(
    ("text", "candidates", "expected"),
    [
        ("물레시 한지 박물관", ["ko", "en"], "ko"),
        ("한글 표준 ABC Company", ["ko", "en"], "ko"),
        ("A paper mill", ["ko", "en"], "en"),
        ("A paper mill", [], "und-Latn"),
        ("Une feuille", ["fr", "de"], "und-Latn"),
        ("물레시", [], "ko"),
        ("東京の紙", [], "ja"),
        ("造纸", [], "zh"),
        ("造紙", ["zh-Hant", "en"], "zh-Hant"),
        ("A paper mill", ["zh-Hant", "en"], "en"),
        ("東京", ["ja", "en"], "ja"),
        ("東京", ["ja", "zh"], "zh"),
        ("A paper mill", ["sr", "en"], "en"),
        ("Бумага", ["ru"], "ru"),
        ("123 %", ["en"], "und"),
        ("", [], "und"),
    ],
)
def test_language_by_script_and_by_what_was_read(text, candidates, expected):
    assert language_of(text, candidates) == expected


@pytest.mark.parametrize("language", ALPHABETS)
def test_each_language_that_is_read_is_reported(language):
    letters = ALPHABETS[language] or "abc"
    assert language_of(letters, [language]) == language
    if language_of(letters, []) != "und-Latn":
        assert language_of("A paper mill", [language, "en"]) == "en"


@pytest.mark.parametrize(
    ("tag", "language", "may"),
    [
        ("en", "en", True),
        ("und-Latn", "en", True),
        ("und-Latn", "EN", True),
        ("und-Latn", "ko", False),
        ("und-Cyrl", "ru", True),
        ("und-Latn", "und-Latn", True),
        ("und", "en", False),
        ("ko", "en", False),
    ],
)
def test_a_script_may_be_any_language_that_is_written_in_it(tag, language, may):
    assert may_be(tag, language) is may


def test_codes_of_languages_are_known():
    assert all(map(is_known, ["en", "EN", "zh-Hant", "und", "und-Latn", "und-cyrl"]))
    assert not any(map(is_known, ["english", "eng", "", "xx", "und-Abcd", "latn"]))
