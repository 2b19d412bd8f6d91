"""Which of the served models is meant."""

import pytest

from pagemill.errors import UsageError
from pagemill.inference.models import choose_model


@pytest.mark.parametrize(
    ("served", "wanted", "chosen"),
    [
        ({"s": ["x"]}, None, "x"),
        ({"s": ["x", "glm-ocr"]}, None, "glm-ocr"),
        ({"s": ["x", "zai-org/GLM-OCR"]}, None, "zai-org/GLM-OCR"),
        ({"s": ["x", "y"]}, "y", "y"),
        ({"s": ["x", "y"], "t": ["y"]}, "y", "y"),
        ({"s": ["x"], "t": ["x"]}, None, "x"),
        ({"s": ["x"], "t": ["y"]}, "y", "y"),
        ({"s": ["x"], "t": ["glm-ocr"]}, None, "glm-ocr"),
        ({"s": ["glm-ocr"], "t": ["zai-org/GLM-OCR"], "u": ["zai-org/GLM-OCR"]}, None, "zai-org/GLM-OCR"),
        ({"s": ["zai-org/GLM-OCR"], "t": ["glm-ocr"]}, None, "glm-ocr"),
    ],
)
def test_choice_of_the_model(served, wanted, chosen):
    assert choose_model(served, wanted, ("glm-ocr", "zai-org/GLM-OCR")) == chosen


@pytest.mark.parametrize(
    ("served", "wanted"),
    [
        ({"s": []}, None),
        ({"s": ["x", "y"]}, None),
        ({"s": ["x"], "t": ["y"]}, None),
        ({"s": ["x"]}, "y"),
        ({"s": ["x"], "t": ["y"]}, "z"),
        ({"s": ["x"], "t": []}, None),
        ({"s": ["x", "y"], "t": ["x"]}, None),
    ],
)
def test_a_model_that_is_not_served_or_not_clear(served, wanted):
    with pytest.raises(UsageError) as caught:
        choose_model(served, wanted, ("glm-ocr",))
    assert "s serves" in caught.value.remedy


def test_names_that_a_server_gives_do_nothing_to_a_terminal():
    served = {"http://a:1": {f"\x1b[2J{number}": None for number in range(30)}}
    with pytest.raises(UsageError) as caught:
        choose_model(served, None, ["glm-ocr"])
    assert "\x1b" not in str(caught.value.remedy)
    assert "and 10 more" in str(caught.value.remedy)
