"""The packaged recognizer."""

import numpy as np
import pytest

from pagemill.errors import MissingDependencyError
from pagemill.recognition import rapidocr_engine
from pagemill.recognition.base import DetectedLine


def test_a_recognizer_that_a_wheel_lacks_is_installed_again_not_downloaded(monkeypatch, tmp_path):
    monkeypatch.setattr(rapidocr_engine, "RECOGNITION_MODEL", tmp_path / "no.onnx")
    with pytest.raises(MissingDependencyError, match=r"the model no\.onnx is missing"):
        rapidocr_engine.dictionary.__wrapped__()


class Nearsighted(rapidocr_engine.RapidOcrDetector):
    """Finds a share of a page of eight columns of letters; more of it, or not, where the page is enlarged."""

    def __init__(self, found: int, enlarged: int) -> None:
        self.found, self.enlarged, self.scales = found, enlarged, list[float]()

    def _find(self, page, scale, origin=(0, 0)):
        self.scales.append(scale)
        columns = self.found if len(self.scales) == 1 else self.enlarged
        sides = [(100.0 * column, 100.0 * column + 100) for column in range(columns)]
        quads = [((x, 0.0), (end, 0.0), (end, 1280.0), (x, 1280.0)) for x, end in sides]
        return [DetectedLine(polygon=quad, score=1.0) for quad in quads]


@pytest.mark.parametrize(
    ("found", "enlarged", "kept", "scales"), [(8, 1, 8, [1.0]), (2, 8, 8, [1.0, 2.0]), (2, 1, 2, [1.0, 2.0])]
)
def test_a_page_with_letters_outside_of_all_lines_is_looked_at_enlarged(found, enlarged, kept, scales, monkeypatch):
    monkeypatch.setattr(rapidocr_engine, "letter_groups", lambda page: [])
    page = np.full((1280, 800, 3), 255, np.uint8)
    for y in range(20, 1260, 40):
        for x in range(20, 800, 20):
            page[y : y + 12, x : x + 8] = 0
    detector = Nearsighted(found, enlarged)
    assert len(detector.detect(page)) == kept
    assert detector.scales == scales
