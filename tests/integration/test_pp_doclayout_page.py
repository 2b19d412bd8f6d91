"""A layout model that breaks fails its page, with the reason in the record, and no other page."""

import asyncio

import cv2
import numpy as np
import pytest

import pagemill
from pagemill.document.labels import Label
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.settings import PPDocLayoutSettings
from pagemill.layout.pp_doclayout_engine import PPDocLayoutEngine
from pagemill.runtime import engines

pytestmark = pytest.mark.integration


class Breaks:
    """A model that gives no numbers for wide pages: all NaN, or arrays of a kind that NumPy does not know."""

    labels = tuple(Label)
    max_batch = 8

    def __init__(self, how: str) -> None:
        self._how = how

    def predict(self, pages, interpolation, mask_threshold):
        scores = np.zeros((300, len(Label)), dtype=np.float32)
        sound = RawPage(scores, np.zeros((300, 4), dtype=np.float32), np.zeros(300, dtype=np.float32))
        wide = [page.shape[1] > page.shape[0] for page in pages]
        if any(wide) and self._how == "raises":
            raise TypeError("Got unsupported ScalarType BFloat16")
        broken = RawPage(np.full_like(scores, np.nan), sound.boxes, sound.order)
        return [broken if is_wide else sound for is_wide in wide]


@pytest.mark.parametrize(
    ("how", "said"), [("nan", "returned NaN"), pytest.param("raises", "BFloat16", marks=pytest.mark.slow)]
)
def test_the_page_fails_and_its_neighbours_do_not(how, said, tmp_path, monkeypatch):
    load = engines.load

    def loaded(group, name):
        if group != engines.LAYOUT_ENGINES:
            return load(group, name)
        return lambda settings: PPDocLayoutEngine(Breaks(how), PPDocLayoutSettings())

    monkeypatch.setattr(engines, "load", loaded)
    for name, (width, height) in {"a": (200, 300), "b": (300, 200), "c": (200, 280)}.items():
        cv2.imwrite(str(tmp_path / f"{name}.png"), np.full((height, width, 3), 255, np.uint8))

    async def parse():
        stream = pagemill.stream(tmp_path, layout_engine="pp-doclayout-v3")
        return {page.page_id[0]: page async for page in stream}

    pages = asyncio.run(parse())
    assert {name: page.status.value for name, page in pages.items()} == {"a": "done", "b": "failed", "c": "done"}
    (error,) = pages["b"].errors
    assert error.component == "layout"
    assert said in error.message
