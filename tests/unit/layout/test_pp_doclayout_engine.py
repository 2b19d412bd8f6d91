"""The engine around a model that answers what a test wants."""

import numpy as np
import pytest

from pagemill.document.labels import Label
from pagemill.errors import EngineError
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.preprocess import INPUT_SIDE, resize_pages
from pagemill.layout.pp_doclayout.settings import Interpolation, PPDocLayoutSettings
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine, _choose
from pagemill.layout.settings import LayoutSettings


class Answers:
    """A model that gives one text region a page, in the upper half, or no numbers for pages of one colour."""

    labels = tuple(Label)
    max_batch = 4

    def predict(self, pages, interpolation, mask_threshold):
        answers = []
        for page in pages:
            scores = np.zeros((300, len(Label)), dtype=np.float32)
            scores[0, list(Label).index(Label.TEXT)] = 0.9
            boxes = np.tile(np.array([0.0, 0.0, 1.0, 0.5], dtype=np.float32), (300, 1))
            if page.min() == page.max():
                scores[:] = np.nan
            answers.append(RawPage(scores, boxes, np.zeros(300, dtype=np.float32)))
        return answers


@pytest.fixture
def engine():
    return PPDocLayoutEngine(Answers(), PPDocLayoutSettings())


def page(width: int, height: int) -> np.ndarray:
    pixels = np.full((height, width, 3), 255, np.uint8)
    pixels[0, 0] = 0
    return pixels


def test_every_page_gets_its_own_regions_in_its_own_pixels(engine):
    found = engine.detect([page(100, 200), page(300, 50)])
    assert [[region.box for region in regions] for regions in found] == [[(0, 0, 100, 100)], [(0, 0, 300, 25)]]
    assert engine.detect([]) == []


def test_a_page_without_numbers_raises_and_is_never_an_empty_page(engine):
    with pytest.raises(EngineError, match="returned NaN"):
        engine.detect([page(100, 200), np.zeros((20, 20, 3), np.uint8)])


def test_pages_of_all_sizes_are_stretched_to_the_input():
    colours = np.array([10, 120, 250], dtype=np.uint8)
    pages = [np.broadcast_to(colours, (height, width, 3)) for width, height in ((1, 1), (3000, 2), (800, 800))]
    for interpolation in Interpolation:
        batch = resize_pages(pages, interpolation)
        assert batch.shape == (3, INPUT_SIDE, INPUT_SIDE, 3)
        assert (batch == colours).all()


def test_resizing_writes_where_it_is_told():
    out = np.full((3, INPUT_SIDE, INPUT_SIDE, 3), 7, dtype=np.uint8)
    batch = resize_pages([page(50, 60)[::-1]], Interpolation.BICUBIC, out)
    assert batch.base is out
    assert out[0].max() == 255
    assert (out[1:] == 7).all()


def test_a_settings_file_stands_in_for_the_model(tmp_path):
    path = tmp_path / "layout.toml"
    path.write_text("model = 'weights'\n[filters]\nthreshold = 0.2\n")
    assert _choose(LayoutSettings(model_path=path)).model == "weights"
    (tmp_path / "weights").mkdir()
    chosen = _choose(LayoutSettings(model_path=path))
    assert chosen.model == str(tmp_path / "weights")
    assert chosen.filters.threshold == 0.2


def test_a_folder_is_the_model(tmp_path):
    assert _choose(LayoutSettings(model_path=tmp_path)).model == str(tmp_path)
