"""What is believed of Tesseract's script detection."""

import numpy as np
import pytest

from pagemill.recognition import tesseract_engine
from pagemill.recognition.languages import LANGUAGE_OF_SCRIPT, TESSDATA_NAMES
from pagemill.recognition.tesseract_engine import detect_script, script_of_output


def output(script="Thai", confidence="1.60", orientation="13.58"):
    return (
        "Page number: 0\nOrientation in degrees: 0\nRotate: 0\n"
        f"Orientation confidence: {orientation}\nScript: {script}\nScript confidence: {confidence}\n"
    ).encode()


def test_a_sure_script_is_named():
    assert script_of_output(output()) == "Thai"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"Too few characters",
        output("Latin"),
        output(confidence="0.29"),
        output(orientation="0.35"),
        output("", "x"),
    ],
)
def test_anything_else_is_not_believed(said):
    assert script_of_output(said) is None


def test_every_script_has_a_language_that_can_be_installed():
    assert set(LANGUAGE_OF_SCRIPT.values()) <= TESSDATA_NAMES.keys()


def test_without_the_program_nothing_is_known(monkeypatch):
    monkeypatch.setattr(tesseract_engine, "PROGRAM", "no-such-program")
    assert detect_script(np.full((400, 300, 3), 255, np.uint8)) is None


def test_a_page_without_text_has_no_script():
    assert detect_script(np.full((400, 300, 3), 255, np.uint8)) is None
