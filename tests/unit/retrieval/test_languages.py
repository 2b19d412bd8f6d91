import pytest

from pagemill.retrieval.languages import language_of


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
        ("Бумага", ["ru"], "ru"),
        ("123 %", ["en"], "und"),
        ("", [], "und"),
    ],
)
def test_language_by_script_and_by_what_was_read(text, candidates, expected):
    assert language_of(text, candidates) == expected
