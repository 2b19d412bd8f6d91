"""Which boxes stay: against the same rules box by box, and what holds for any boxes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from layout_postprocess import CLASS_OF, LABELS, BoxSet, ours, random_boxes, random_settings, scalar_reference
from pagemill.document.labels import Label
from pagemill.layout.filters import BoxFilter
from pagemill.layout.pp_doclayout.settings import FilterSettings, Merge


def boxes_of(*rows: tuple[Label, float, tuple[float, float, float, float]], size=(1000, 1400)) -> BoxSet:
    return BoxSet(
        boxes=np.array([row[2] for row in rows], dtype=np.float32).reshape(-1, 4),
        scores=np.array([row[1] for row in rows], dtype=np.float32),
        classes=np.array([CLASS_OF[row[0]] for row in rows], dtype=np.intp),
        order=np.arange(len(rows)),
        size=size,
    )


def kept(page: BoxSet, chosen: FilterSettings | None = None) -> list[int]:
    return [int(i) for i in ours([page], chosen or FilterSettings())[0]]


@pytest.mark.parametrize("seed", range(0, 60, 5))
def test_the_same_boxes_as_box_by_box(seed):
    page = random_boxes(seed, 2 * seed, [(2480, 3508), (3508, 2480), (300, 300)][seed % 3])
    for spare_stronger in (True, False):
        chosen = random_settings(seed, spare_stronger=spare_stronger)
        assert kept(page, chosen) == scalar_reference(page, chosen)


def test_a_box_of_the_same_class_goes_earlier_than_one_of_another():
    near = ((0, 0, 100, 100), (0, 0, 100, 70))  # intersection over union 0.7
    assert kept(boxes_of((Label.TEXT, 0.9, near[0]), (Label.TEXT, 0.8, near[1]))) == [0]
    union = FilterSettings(merge=Merge.UNION, merges={})
    assert kept(boxes_of((Label.TEXT, 0.9, near[0]), (Label.TABLE, 0.8, near[1])), union) == [0, 1]
    same = ((0, 0, 100, 100), (0, 0, 100, 100))
    assert kept(boxes_of((Label.TEXT, 0.8, same[0]), (Label.TABLE, 0.9, same[1])), union) == [1]


def test_a_suppressed_box_suppresses_none():
    chain = boxes_of(
        (Label.TEXT, 0.9, (0, 0, 100, 100)), (Label.TEXT, 0.8, (20, 0, 120, 100)), (Label.TEXT, 0.7, (40, 0, 140, 100))
    )
    assert kept(chain) == [0, 2]
    assert kept(chain, FilterSettings(nms=False, merge=Merge.UNION)) == [0, 1, 2]


def test_merge_modes_by_class():
    outer, inner = (0, 0, 200, 200), (10, 10, 60, 60)
    text = boxes_of((Label.TEXT, 0.9, outer), (Label.TEXT, 0.8, inner))
    assert kept(text) == [0]
    assert kept(text, FilterSettings(merges={Label.TEXT: Merge.SMALL})) == [1]
    assert kept(text, FilterSettings(merges={Label.TEXT: Merge.UNION})) == [0, 1]
    # A bibliography keeps its entries, not the box around them.
    entries = boxes_of((Label.TEXT, 0.9, outer), (Label.REFERENCE, 0.8, inner))
    assert kept(entries, FilterSettings(merges={Label.TEXT: Merge.UNION, Label.REFERENCE: Merge.SMALL})) == [1]


def test_of_two_boxes_that_would_drop_each_other_the_stronger_stays():
    twins = boxes_of((Label.TEXT, 0.6, (0, 0, 100, 100)), (Label.PARAGRAPH_TITLE, 0.8, (0, 0, 100, 95)))
    assert kept(twins) == [1]
    assert kept(twins, FilterSettings(spare_stronger=False)) == []  # the rules of glmocr
    entry = boxes_of((Label.TEXT, 0.9, (0, 0, 200, 200)), (Label.REFERENCE, 0.8, (10, 10, 60, 60)))
    assert kept(entry) == [0]
    assert kept(entry, FilterSettings(spare_stronger=False)) == []


@pytest.mark.parametrize("label", [Label.IMAGE, Label.SEAL, Label.CHART])
def test_pictures_stay_where_they_lie_in_another_box(label):
    page = boxes_of((Label.TABLE, 0.9, (0, 0, 200, 200)), (label, 0.8, (10, 10, 60, 60)))
    assert kept(page) == [0, 1]
    assert kept(page, FilterSettings(never_contained=frozenset())) == [0]


def test_an_image_that_fills_the_page_goes_unless_it_is_alone():
    whole, text = (0, 0, 1000, 1400), (Label.TEXT, 0.5, (100, 100, 900, 300))
    assert kept(boxes_of((Label.IMAGE, 0.9, whole), text)) == [1]
    assert kept(boxes_of((Label.IMAGE, 0.9, whole))) == [0]
    assert kept(boxes_of((Label.CHART, 0.9, whole), text), FilterSettings(merge=Merge.UNION)) == [0, 1]
    most = (0, 0, 1000, 0.9 * 1400)  # more than a landscape page may hold, less than a portrait page may
    assert 0 in kept(boxes_of((Label.IMAGE, 0.9, most), text), FilterSettings(merge=Merge.UNION))
    landscape = boxes_of((Label.IMAGE, 0.9, (0, 0, 1260, 1000)), text, size=(1400, 1000))
    assert kept(landscape, FilterSettings(merge=Merge.UNION)) == [1]


def test_three_hundred_equal_boxes_are_one():
    page = boxes_of(*[(Label.TEXT, 0.9, (10, 10, 500, 500))] * 300)
    assert kept(page) == [0]


numbers = st.one_of(
    st.floats(-3000, 6000, width=32), st.sampled_from([np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 0.0, -0.0])
)


@given(st.data())
def test_any_numbers_give_a_choice_of_finite_boxes(data):
    count = data.draw(st.integers(0, 40))
    boxes = data.draw(st_numpy.arrays(np.float64, (count, 4), elements=numbers))
    scores = data.draw(st_numpy.arrays(np.float32, count, elements=numbers))
    classes = data.draw(st_numpy.arrays(np.intp, count, elements=st.integers(0, len(LABELS) - 1)))
    chosen = random_settings(data.draw(st.integers(0, 20)))
    indices = BoxFilter(chosen, LABELS).keep(boxes, scores, classes, (2480, 3508))
    assert len(set(indices.tolist())) == len(indices)
    assert np.isfinite(boxes[indices]).all()
    assert np.isfinite(scores[indices]).all()
    finite = np.isfinite(boxes).all(axis=1) & np.isfinite(scores)
    assert len(indices) > 0 or not finite.any() or chosen.merge is not Merge.UNION


@given(st.integers(0, 10_000), st.integers(1, 60), st.randoms(use_true_random=False))
def test_the_order_of_the_boxes_does_not_matter(seed, count, shuffler):
    page = random_boxes(seed, count)
    permutation = list(range(count))
    shuffler.shuffle(permutation)
    mixed = BoxSet(
        page.boxes[permutation], page.scores[permutation], page.classes[permutation], page.order[permutation], page.size
    )
    assert sorted(permutation[i] for i in kept(mixed)) == sorted(kept(page))


@given(st.integers(0, 10_000), st.integers(1, 60))
def test_kept_boxes_are_kept_again_where_nothing_is_merged(seed, count):
    page = random_boxes(seed, count)
    chosen = FilterSettings(merge=Merge.UNION, merges={})
    first = kept(page, chosen)
    rest = BoxSet(page.boxes[first], page.scores[first], page.classes[first], page.order[first], page.size)
    assert kept(rest, chosen) == list(range(len(first)))
