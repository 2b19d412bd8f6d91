"""Recognizers that were downloaded: found, preferred to others, and read with. The files are tiny ones of our own."""

import string

import pytest
from tiny_recognizer import line_of, write

from pagemill.config.model_cards import ModelKind, card_names, load_card
from pagemill.config.model_files import MODELS_VARIABLE
from pagemill.errors import CorruptInputError
from pagemill.recognition import rapidocr_engine
from pagemill.recognition.languages import ALPHABETS, plan

LATIN = string.ascii_letters + string.digits
CARDS = [card for card in map(load_card, card_names()) if card.kind is ModelKind.LINES]


@pytest.fixture
def models(monkeypatch, tmp_path):
    """The folder of models, empty at first."""
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rapidocr_engine.dictionary.cache_clear()
    return tmp_path / "models"


def place_of(models, name):
    return models / name / load_card(name).files[0].name


def offered():
    return {offer.name: offer for offer in rapidocr_engine.offers()}


def test_without_downloads_only_the_embedded_ones_are_offered(models):
    assert offered().keys() == {"rapidocr", "rapidocr:latin"}


def test_what_is_downloaded_reads_the_languages_of_its_dictionary(models):
    write(place_of(models, "pp-ocrv5-korean"), LATIN + ALPHABETS["ko"])
    write(place_of(models, "pp-ocrv5-eslav"), LATIN + "".join({*ALPHABETS["ru"], *ALPHABETS["ru"].upper()}))
    found = offered()
    assert found["pp-ocrv5:korean"].languages >= {"ko", "en"}
    assert "ru" in found["pp-ocrv5:eslav"].languages
    assert "ko" not in found["pp-ocrv5:eslav"].languages


def test_it_is_taken_in_place_of_tesseract():
    engines = {
        "rapidocr": frozenset({"en"}),
        "pp-ocrv5:korean": frozenset({"ko", "en"}),
        "tesseract:ko": frozenset({"ko"}),
        "tesseract:ru": frozenset({"ru"}),
    }
    assert dict(plan(None, engines, "rapidocr").others) == {"ko": "pp-ocrv5:korean", "ru": "tesseract:ru"}
    assert dict(plan(["ko", "en"], engines, "rapidocr").others) == {"ko": "pp-ocrv5:korean"}


def test_vietnamese_has_an_engine_of_its_own_where_one_reads_it():
    engines = {"rapidocr": frozenset({"en"}), "tesseract:vi": frozenset({"vi"})}
    found = plan(None, engines, "rapidocr")
    assert (found.vietnamese, found.engine_of("VIETNAMESE"), found.others) == ("tesseract:vi", "tesseract:vi", ())
    assert plan(None, {"rapidocr": frozenset({"en"})}, "rapidocr").vietnamese is None


def test_it_reads_lines(models):
    characters = "가나다라"
    path = write(models / "ko.onnx", characters)
    engine = rapidocr_engine.RapidOcrRecognizer(model=path)
    (read,) = engine.recognize([line_of("가다 라나", characters)])
    assert read.text == "가다라나"
    assert read.confidence > 0.9
    assert list(read.centers) == sorted(read.centers)


def test_it_gives_text_that_runs_from_right_to_left_in_the_order_of_reading(models):
    characters = "אבגד12"
    path = write(models / "he.onnx", characters)
    engine = rapidocr_engine.RapidOcrRecognizer(model=path)
    (read,) = engine.recognize([line_of("דגבא", characters)])
    assert read.text == "אבגד"
    assert list(read.centers) == sorted(read.centers, reverse=True)
    (read,) = engine.recognize([line_of("דג12בא", characters)])
    assert read.text == "אב12גד"


def test_a_file_that_is_no_model_is_named(models):
    path = place_of(models, "pp-ocrv5-thai")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no model")
    with pytest.raises(CorruptInputError, match="th_PP-OCRv5"):
        offered()


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_every_card_names_one_file_and_is_among_the_best_for_the_cpu(card):
    assert card.cpu_best
    assert card.files[0].name.endswith("PP-OCRv5_rec_mobile.onnx")
