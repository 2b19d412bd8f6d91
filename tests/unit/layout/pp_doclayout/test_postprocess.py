"""From raw outputs to regions, without a model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from pagemill.document.labels import Label
from pagemill.errors import EngineError
from pagemill.layout.pp_doclayout.outputs import RawPage
from pagemill.layout.pp_doclayout.postprocess import PostProcessor
from pagemill.layout.pp_doclayout.settings import FilterSettings, Merge

LABELS = tuple(Label)
SIZE = (1000, 1500)


def raw(*rows: tuple[Label, float, tuple[float, float, float, float], float], masks=None) -> RawPage:
    """A page with one query a row: label, score, box in shares of the page, vote."""
    scores = np.zeros((len(rows), len(LABELS)), dtype=np.float32)
    for query, row in enumerate(rows):
        scores[query, LABELS.index(row[0])] = row[1]
    return RawPage(
        scores=scores,
        boxes=np.array([row[2] for row in rows], dtype=np.float32).reshape(-1, 4),
        order=np.array([row[3] for row in rows], dtype=np.float32),
        masks=masks,
    )


def regions(page: RawPage, size=SIZE, **chosen):
    return PostProcessor(FilterSettings(**chosen), LABELS, "test").regions(page, size)


def test_regions_come_in_reading_order_and_in_page_pixels():
    found = regions(
        raw((Label.TEXT, 0.9, (0.1, 0.5, 0.9, 0.9), 2.0), (Label.DOC_TITLE, 0.8, (0.1, 0.1, 0.9, 0.2), 1.0))
    )
    assert [(region.label, region.order) for region in found] == [(Label.DOC_TITLE, 0), (Label.TEXT, 1)]
    assert found[0].box == pytest.approx((100, 150, 900, 300))
    assert found[0].score == pytest.approx(0.8)
    assert {region.source for region in found} == {"test"}


def test_thresholds_for_all_classes_and_for_one():
    page = raw((Label.TEXT, 0.35, (0.1, 0.5, 0.9, 0.9), 2.0), (Label.TABLE, 0.35, (0.1, 0.1, 0.9, 0.2), 1.0))
    assert len(regions(page)) == 2
    assert [r.label for r in regions(page, threshold=0.5, thresholds={Label.TABLE: 0.2})] == [Label.TABLE]
    assert [r.label for r in regions(page, thresholds={Label.TABLE: 0.4})] == [Label.TEXT]


def test_a_query_may_give_two_classes():
    page = raw((Label.TEXT, 0.9, (0.1, 0.1, 0.9, 0.9), 0.0), (Label.TEXT, 0.1, (0.1, 0.1, 0.2, 0.2), 1.0))
    page.scores[0, LABELS.index(Label.TABLE)] = 0.5
    assert len(regions(page)) == 1  # the boxes are equal
    assert [r.label for r in regions(page, nms=False, merge=Merge.UNION)] == [Label.TEXT, Label.TABLE]


def test_boxes_are_cut_to_the_page_and_those_off_it_go():
    page = raw((Label.TEXT, 0.9, (-0.1, -0.1, 0.5, 1.2), 0.0), (Label.TABLE, 0.9, (1.1, 0.2, 1.3, 0.4), 1.0))
    assert [region.box for region in regions(page)] == [pytest.approx((0, 0, 500, 1500))]


def test_boxes_grow_by_class():
    page = raw((Label.TEXT, 0.9, (0.4, 0.4, 0.6, 0.6), 0.0), (Label.TABLE, 0.9, (0.1, 0.1, 0.2, 0.2), 1.0))
    text, table = regions(page, unclips={Label.TEXT: (1.5, 2.0)})
    assert text.box == pytest.approx((350, 450, 650, 1050))
    assert table.box == pytest.approx((100, 150, 200, 300))


def test_outlines_only_where_they_say_more_than_the_box():
    mask = np.zeros((2, 200, 200), dtype=bool)
    mask[0] = np.abs(np.arange(200)[:, None] - np.arange(200)[None, :]) < 40
    mask[1] = True
    page = raw(
        (Label.TEXT, 0.9, (0.1, 0.1, 0.5, 0.5), 0.0),
        (Label.TABLE, 0.9, (0.6, 0.6, 0.9, 0.9), 1.0),
        masks=np.packbits(mask, axis=2),
    )
    slanted, plain = regions(page)
    assert slanted.polygon is not None
    assert plain.polygon is None
    assert regions(page, polygons=False)[0].polygon is None
    wide = regions(page, unclip=(1.2, 1.2))[0].polygon
    assert max(x for x, _ in wide) > max(x for x, _ in slanted.polygon)


def test_corners_of_v4_are_the_outline():
    corners = np.array(
        [[[0.1, 0.1], [0.5, 0.2], [0.5, 0.5], [0.1, 0.4]], [[0.6, 0.6], [0.9, 0.6], [0.9, 0.9], [0.6, 0.9]]]
    )
    corners = corners.astype(np.float32)
    page = raw((Label.TEXT, 0.9, (0.1, 0.1, 0.5, 0.5), 0.0), (Label.TABLE, 0.9, (0.6, 0.6, 0.9, 0.9), 1.0))
    order = np.array([[[0, -5], [5, 0]], [[-5, -5], [5, -5]]], dtype=np.float32)  # the table goes first
    table, text = regions(RawPage(page.scores, page.boxes, order, corners=corners))
    assert (table.label, table.polygon) == (Label.TABLE, None)
    assert text.polygon[1] == pytest.approx((500, 300))


def test_a_page_without_regions_is_empty():
    assert regions(raw((Label.TEXT, 0.1, (0.1, 0.1, 0.5, 0.5), 0.0))) == []
    assert regions(raw()) == []


def test_a_model_that_answers_no_numbers_fails_the_page():
    page = raw((Label.TEXT, np.nan, (0.1, 0.1, 0.5, 0.5), 0.0), (Label.TEXT, 0.5, (np.nan,) * 4, 0.0))
    page.scores[0] = np.nan
    with pytest.raises(EngineError, match="returned NaN") as caught:
        regions(page)
    assert "float32" in caught.value.remedy


def test_a_model_with_other_classes_fails_the_page():
    page = raw((Label.TEXT, 0.5, (0.1, 0.1, 0.5, 0.5), 0.0))
    with pytest.raises(EngineError, match="scores"):
        regions(RawPage(page.scores[:, :7], page.boxes, page.order))


def test_three_hundred_equal_boxes_are_one_region():
    assert len(regions(raw(*[(Label.TEXT, 0.9, (0.1, 0.1, 0.9, 0.9), 0.0)] * 300))) == 1


anything = st.one_of(st.floats(-1, 2, width=32), st.sampled_from([np.nan, np.inf, -np.inf, 3e38, -3e38]))


@given(st.data())
def test_whatever_the_model_says_regions_are_finite_and_on_the_page(data):
    queries = data.draw(st.integers(1, 20))
    page = RawPage(
        scores=data.draw(st_numpy.arrays(np.float32, (queries, len(LABELS)), elements=anything)),
        boxes=data.draw(st_numpy.arrays(np.float32, (queries, 4), elements=anything)),
        order=data.draw(st_numpy.arrays(np.float32, queries, elements=anything)),
        masks=data.draw(st_numpy.arrays(np.uint8, (queries, 200, 25), elements=st.integers(0, 255))),
    )
    width, height = data.draw(st.sampled_from([(1000, 1500), (1, 1), (3, 4000), (150, 150)]))
    try:
        found = regions(page, (width, height))
    except EngineError:
        sound = np.isfinite(page.scores).all(axis=1) & np.isfinite(page.boxes).all(axis=1)
        assert not sound.any()
        return
    for region in found:
        x1, y1, x2, y2 = region.box
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
        assert np.isfinite(region.score)
        assert all(0 <= x <= width and 0 <= y <= height for x, y in region.polygon or ())
    orders = [region.order for region in found]
    assert orders == sorted(orders)
