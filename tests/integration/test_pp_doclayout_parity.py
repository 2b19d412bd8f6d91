"""The same answers as the published processor of transformers, on random weights of full size, float32, CPU."""

import numpy as np
import pytest

from pagemill.layout.pp_doclayout.reading_graph import decode_order
from pagemill.layout.pp_doclayout.settings import Interpolation
from pagemill_bench.testing.drawn_pages import draw_page

pytest.importorskip("torch")
pytest.importorskip("transformers", minversion="5.3")
try:
    import torchvision  # noqa: F401
except (ImportError, RuntimeError):  # a build for another torch raises the latter
    pytest.skip("the published processor needs torchvision", allow_module_level=True)
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=[3, 4])
def stock(request, tmp_path_factory):
    from layout_parity import StockPath
    from pagemill_bench.testing.random_layout_model import save_random_model

    return StockPath(save_random_model(tmp_path_factory.mktemp("weights"), version=request.param))


def test_post_processing_gives_the_same_detections(stock):
    from layout_parity import postprocess_parity

    rows = postprocess_parity(stock, [draw_page(seed) for seed in (1, 4, 6)])
    assert sum(row.detections for row in rows) > 100
    for row in rows:
        assert row.same_count
        assert row.same_labels
        assert row.same_order
        assert row.score_difference < 1e-6
        assert row.box_difference < 1e-3
        assert row.outline_iou >= 0.98


def test_bicubic_is_the_published_resize(stock):
    from layout_parity import input_parity

    (row,) = input_parity(stock, [draw_page(1)], Interpolation.BICUBIC)
    assert row.pixel_difference < 0.3
    assert row.matched >= 0.9 * row.detections


def test_the_reading_order_of_v4_on_random_graphs(stock):
    if not hasattr(stock.processor, "_decode_reading_order"):
        pytest.skip("V3 has another")
    for seed in range(30):
        random = np.random.default_rng(seed)
        count = int(random.integers(1, 25))
        before = random.normal(size=(count, count)).astype(np.float32)
        successor = random.normal(-1.5, 1, size=(count, count)).astype(np.float32)
        expected = stock.processor._decode_reading_order(before, successor)
        assert decode_order(before, successor).tolist() == expected.tolist(), seed
