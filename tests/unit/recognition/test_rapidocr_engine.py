"""The packaged recognizer."""

import pytest

from pagemill.errors import MissingDependencyError
from pagemill.recognition import rapidocr_engine


def test_a_recognizer_that_a_wheel_lacks_is_installed_again_not_downloaded(monkeypatch, tmp_path):
    monkeypatch.setattr(rapidocr_engine, "RECOGNITION_MODEL", tmp_path / "no.onnx")
    with pytest.raises(MissingDependencyError, match=r"the model no\.onnx is missing"):
        rapidocr_engine.dictionary.__wrapped__()
