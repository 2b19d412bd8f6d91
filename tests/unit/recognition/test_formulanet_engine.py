"""The embedded formula engine: a model in a file is found, loaded and asked. The files are tiny ones of our own."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from tiny_formulanet import FRACTION, write

from pagemill.config.model_cards import ModelKind, card_names, load_card
from pagemill.config.model_files import MODELS_VARIABLE
from pagemill.errors import CorruptInputError
from pagemill.recognition import formulanet_engine
from pagemill.recognition.formulanet_engine import FormulaNetRecognizer, as_input

CARD = "pp-formulanet-plus-s"


def print_of(height=40, width=200, ink=20):
    """A crop with a bar of print, with margins."""
    crop = np.full((height + 40, width + 60, 3), 240, np.uint8)
    crop[20 : 20 + height, 30 : 30 + width] = ink
    return crop


@pytest.fixture
def models(monkeypatch, tmp_path):
    """The folder of models, empty at first."""
    monkeypatch.setenv(MODELS_VARIABLE, str(tmp_path / "models"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "models"


def read(path, crop=None):
    (answer,) = FormulaNetRecognizer(path).recognize([print_of() if crop is None else crop])
    return answer.latex


def test_it_is_offered_once_its_file_is_there(models):
    assert formulanet_engine.offers() == []
    write(models / CARD / load_card(CARD).files[0].name, FRACTION)
    (offer,) = formulanet_engine.offers()
    assert offer.name == CARD
    (answer,) = offer.create().recognize([print_of()])
    assert (answer.latex, answer.confidence) == (r"\frac { a } {b }", None)


def test_bytes_of_a_vocabulary_become_text(tmp_path):
    assert read(write(tmp_path / "m.onnx", [0, 12, 10, 11, 2])) == "\u00b5 + x"


def test_an_answer_without_an_end_is_none(tmp_path):
    assert read(write(tmp_path / "loop.onnx", [0, *[10, 11] * 500])) == ""


def test_numbers_beyond_the_vocabulary_are_left_out(tmp_path):
    assert read(write(tmp_path / "m.onnx", [0, 11, 99_999, -4, 2])) == "x"


@pytest.mark.parametrize(
    ("crop", "why"),
    [(np.full((50, 80, 3), 200, np.uint8), "blank"), (print_of(height=2, width=800), "too slender")],
    ids=["blank", "slender"],
)
def test_what_cannot_be_read_is_empty(tmp_path, crop, why):
    assert read(write(tmp_path / "m.onnx", FRACTION), crop) == "", why


def test_the_print_fills_a_black_square_without_its_margins():
    image = as_input(print_of(height=40, width=200, ink=20))
    assert (image.shape, image.dtype) == ((1, 1, 384, 384), np.float32)
    black, ink = (0 - 0.7931) / 0.1738, (20 / 255 - 0.7931) / 0.1738
    rows = np.flatnonzero(np.isclose(image[0, 0, :, 192], ink, atol=1e-3))
    assert len(rows) == pytest.approx(384 * 40 / 200, abs=2)
    assert rows.mean() == pytest.approx(191.5, abs=1)
    assert image[0, 0, 0, 0] == pytest.approx(black, abs=1e-4)
    assert np.isclose(image[0, 0, 192], ink, atol=1e-3).all(), "no margin at the sides"


def test_faint_print_is_found_on_grey_paper():
    assert as_input(print_of(ink=190)) is not None


@pytest.mark.parametrize("fault", ["absent", "bytes", "three channels", "no tokenizer", "no vocabulary", "no end"])
def test_a_file_that_is_no_such_model_is_named(tmp_path, fault):
    path = tmp_path / "formulas.onnx"
    if fault == "bytes":
        path.write_bytes(b"no model")
    elif fault != "absent":
        tokenizer = {
            "no tokenizer": {"other": 1},
            "no vocabulary": {"fast_tokenizer_file": {"model": {"vocab": {}}}},
            "no end": {"fast_tokenizer_file": {"model": {"vocab": {f"t{i}": i for i in range(20)}}}},
        }.get(fault)
        write(path, FRACTION, channels=3 if fault == "three channels" else 1, tokenizer=tokenizer)
    with pytest.raises(CorruptInputError, match=r"formulas\.onnx is not a model that reads formulas") as raised:
        FormulaNetRecognizer(path)
    assert "download it again" in (raised.value.remedy or "")


def test_an_answer_of_another_kind_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="instead of tokens"):
        read(write(tmp_path / "m.onnx", [1.0, 2.0], floats=True))


def test_an_answer_beyond_measure_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="5,000 tokens"):
        read(write(tmp_path / "m.onnx", [11] * 5000))


@pytest.mark.parametrize("name", [name for name in card_names() if load_card(name).kind is ModelKind.FORMULAS])
def test_cards_of_formula_models_are_among_the_best_for_the_cpu(name):
    card = load_card(name)
    assert card.cpu_best and card.files[0].name.endswith(".onnx")


def test_the_engine_is_declared():
    declared = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["entry-points"]
    module, name = declared["pagemill.formula_engines"]["formulanet"].split(":")
    assert (module, getattr(formulanet_engine, name)) == (formulanet_engine.__name__, formulanet_engine.offers)
