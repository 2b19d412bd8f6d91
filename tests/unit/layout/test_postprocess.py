import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pagemill.document.labels import Label
from pagemill.layout.onnx_engine import to_regions
from pagemill.layout.onnx_models import Candidates

LABELS = (Label.TEXT, Label.IMAGE, Label.TABLE, Label.INLINE_FORMULA)


def run(*rows: tuple[int, float, float, float, float, float], size: tuple[int, int] = (1000, 1000)) -> list:
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    candidates = Candidates(table[:, 2:], table[:, 1], table[:, 0].astype(np.intp))
    return to_regions(candidates, LABELS, size)


def test_boxes_are_clipped_and_invalid_ones_dropped() -> None:
    nan, inf = float("nan"), float("inf")
    regions = run(
        (0, 0.9, -5, -5, 100, 100),
        (0, 0.9, nan, 0, 300, 300),
        (0, nan, 500, 500, 600, 600),
        (0, 0.9, 0, 0, inf, 10),
        (0, 0.9, 700, 700, 700, 800),
        (0, 0.9, 2000, 0, 2100, 50),
    )
    assert [region.box for region in regions] == [(0, 0, 100, 100)]


def test_the_better_of_two_boxes_of_a_class_stays() -> None:
    regions = run((0, 0.5, 0, 0, 100, 100), (0, 0.8, 5, 5, 105, 105))
    assert [region.score for region in regions] == [0.8]


def test_boxes_of_two_classes_need_more_overlap_to_exclude_each_other() -> None:
    assert len(run((0, 0.8, 0, 0, 100, 100), (2, 0.5, 20, 0, 120, 100))) == 2
    assert len(run((0, 0.8, 0, 0, 100, 100), (2, 0.5, 5, 0, 105, 100))) == 1


def test_text_inside_text_and_tables_goes_but_stays_inside_pictures() -> None:
    assert len(run((0, 0.9, 0, 0, 400, 400), (0, 0.9, 10, 10, 100, 100))) == 1
    assert [r.label for r in run((2, 0.9, 0, 0, 400, 400), (0, 0.9, 10, 10, 100, 100))] == [Label.TABLE]
    assert len(run((1, 0.9, 0, 0, 400, 400), (0, 0.9, 10, 10, 100, 100))) == 2
    assert len(run((0, 0.9, 0, 0, 400, 400), (3, 0.9, 10, 10, 100, 100))) == 2


def test_a_picture_of_the_whole_page_goes_unless_it_is_all_there_is() -> None:
    assert [r.label for r in run((1, 0.9, 0, 0, 1000, 990), (0, 0.9, 100, 100, 300, 300))] == [Label.TEXT]
    assert [r.label for r in run((1, 0.9, 0, 0, 1000, 990))] == [Label.IMAGE]


@given(arrays(np.float64, st.tuples(st.integers(0, 30), st.just(5)), elements=st.floats(width=32)), st.randoms())
def test_any_model_output_gives_sane_regions_whatever_its_order(table: np.ndarray, random) -> None:
    classes = np.arange(len(table), dtype=np.intp) % len(LABELS)
    candidates = Candidates(table[:, 1:], table[:, 0], classes)
    regions = to_regions(candidates, LABELS, (640, 480))
    for region in regions:
        x1, y1, x2, y2 = region.box
        assert 0 <= x1 < x2 <= 640
        assert 0 <= y1 < y2 <= 480
        assert np.isfinite(region.score)
