import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.document.geometry import as_array, intersection
from pagemill.document.labels import Label
from pagemill.layout.base import DetectedRegion
from pagemill.layout.fallback import SOURCE, complete_regions
from pagemill.layout.misread import is_panel

PAGE = np.random.default_rng(0).integers(0, 256, (1400, 1000, 3), dtype=np.uint8)
"""Ink everywhere, so that no part of a figure shows nothing but text."""


def region(label: Label, *box: float, score: float = 0.9) -> DetectedRegion:
    return DetectedRegion(box=(box[0], box[1], box[2], box[3]), label=label, score=score, source="model")


def text(x1: float, x2: float, y: float, count: int, pitch: float = 30.0, height: float = 20.0) -> list:
    return [(x1, y + i * pitch, x2, y + i * pitch + height) for i in range(count)]


def homes(regions: list[DetectedRegion], lines: list) -> list[int]:
    """How many regions hold each line."""
    return [sum(intersection(r.box, line) > 0.9 * intersection(line, line) for r in regions) for line in lines]


def labels(regions: list[DetectedRegion]) -> list[Label]:
    return sorted(r.label for r in regions)


def test_a_page_without_regions_is_clustered_by_columns() -> None:
    lines = [*text(50, 480, 100, 12), *text(520, 950, 100, 12), *text(520, 950, 520, 4)]
    regions = complete_regions([], lines, PAGE)
    assert labels(regions) == [Label.TEXT] * 3
    assert {r.source for r in regions} == {SOURCE}
    assert homes(regions, lines) == [1] * len(lines)


def test_a_page_filling_figure_of_text_is_dissolved() -> None:
    lines = [*text(50, 480, 100, 30), *text(520, 950, 100, 30)]
    regions = complete_regions([region(Label.IMAGE, 20, 50, 980, 1300)], lines, PAGE)
    assert labels(regions) == [Label.TEXT] * 2


def test_a_poster_keeps_its_picture_and_loses_no_words() -> None:
    lines = text(300, 700, 1000, 2)
    regions = complete_regions([region(Label.IMAGE, 0, 0, 1000, 1400)], lines, PAGE)
    assert Label.IMAGE in labels(regions)
    assert labels(regions) != [Label.IMAGE]


def test_a_chart_keeps_the_labels_inside_it() -> None:
    lines = [(110, 300, 130, 315), (110, 400, 130, 415), (300, 580, 360, 595), *text(100, 900, 700, 5)]
    regions = complete_regions([region(Label.CHART, 100, 250, 500, 600)], lines, PAGE)
    assert labels(regions) == [Label.CHART, Label.TEXT]


@pytest.mark.parametrize("box", [(-30, 5, -10, 90), (10, 10, 10, 90), (400, 10, 500, 100), (-3, 5, 90, 90)])
def test_a_figure_beside_the_page_is_no_panel(box: tuple[float, ...]) -> None:
    lines = np.array([[10.0, 10.0, 60.0, 20.0], [10.0, 30.0, 60.0, 40.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not is_panel(np.array(box, float), lines, np.full((200, 300, 3), 255, np.uint8))


@pytest.mark.parametrize(("panel", "is_figure"), [("filled", False), ("outlined", True), ("two", True)])
def test_text_on_a_coloured_panel_is_no_figure(panel: str, is_figure: bool) -> None:
    pixels = np.full((1400, 1000, 3), (214, 232, 220), np.uint8)
    pixels[420:560, 120:480] = (190, 40, 45)
    if panel == "outlined":
        pixels[425:555, 125:475] = (214, 232, 220)
    if panel == "two":
        pixels[420:560, 520:680] = (190, 40, 45)
    lines = text(140, 420, 440, 2, pitch=50)
    found = complete_regions([region(Label.IMAGE, 100, 400, 700, 600)], lines, pixels)
    assert (Label.IMAGE in labels(found)) is is_figure
    assert homes(found, lines) == [1, 1]


def test_a_figure_keeps_what_is_no_text_of_it() -> None:
    pixels = np.full((1400, 1000, 3), 255, np.uint8)
    pixels[120:380, 150:650] = 90
    lines = text(100, 700, 420, 6)
    regions = complete_regions([region(Label.IMAGE, 90, 100, 710, 600)], lines, pixels)
    picture = next(r for r in regions if r.label is Label.IMAGE)
    assert picture.box == (150, 120, 650, 380)
    assert labels(regions) == [Label.IMAGE, Label.TEXT]


def test_a_line_cut_by_its_region_and_the_line_after_it_join_the_region() -> None:
    lines = text(100, 900, 100, 6)
    (only,) = complete_regions([region(Label.TEXT, 100, 95, 500, 255)], lines, PAGE)
    assert only.box == (100, 100, 900, 270)
    assert (only.source, only.score) == ("model", 0.9)


def test_a_region_over_two_columns_is_split() -> None:
    lines = [*text(50, 480, 100, 8), *text(520, 950, 100, 8)]
    regions = complete_regions([region(Label.TEXT, 50, 100, 950, 340)], lines, PAGE)
    assert sorted(r.box[0] for r in regions) == [50, 520]


def test_text_regions_without_lines_are_dropped_but_pictures_and_formulas_stay() -> None:
    found = [region(Label.TEXT, 10, 10, 90, 30), region(Label.IMAGE, 300, 300, 500, 500)]
    found.append(region(Label.DISPLAY_FORMULA, 300, 600, 500, 640))
    regions = complete_regions(found, text(100, 900, 700, 3), PAGE)
    assert labels(regions) == [Label.DISPLAY_FORMULA, Label.IMAGE, Label.TEXT]


def test_a_table_without_columns_is_text() -> None:
    assert labels(complete_regions([region(Label.TABLE, 90, 90, 910, 300)], text(100, 900, 100, 6), PAGE)) == ["text"]


@pytest.mark.parametrize("found", [[], [region(Label.REFERENCE_CONTENT, 90, 95, 910, 310)]])
def test_a_borderless_table_is_found(found: list[DetectedRegion]) -> None:
    lines = [(x, y, x + 80, y + 20) for y in range(100, 300, 30) for x in (100, 400, 650, 820)]
    regions = complete_regions(found, [*lines, *text(100, 900, 500, 6)], PAGE)
    assert labels(regions) == [Label.TABLE, Label.TEXT]


def test_three_newspaper_columns_are_no_table() -> None:
    lines = [*text(50, 330, 100, 9), *text(350, 640, 100, 9), *text(660, 950, 100, 9)]
    assert labels(complete_regions([], lines, PAGE)) == [Label.TEXT] * 3


def test_a_heading_taken_for_a_header_is_restored_but_a_running_head_is_not() -> None:
    lines = [(100, 120, 500, 145), *text(100, 900, 165, 10)]
    heading = region(Label.HEADER, 100, 120, 500, 145, score=0.7)
    assert Label.HEADER not in labels(complete_regions([heading], lines, PAGE))
    lines[0] = (100, 40, 500, 65)
    assert Label.HEADER in labels(complete_regions([region(Label.HEADER, 100, 40, 500, 65, score=0.7)], lines, PAGE))


def test_a_page_of_two_columns_is_no_table() -> None:
    lines = [*text(50, 480, 100, 30), *text(520, 950, 100, 30)]
    assert labels(complete_regions([region(Label.TABLE, 30, 80, 970, 1020)], lines, PAGE)) == [Label.TEXT] * 2


def test_a_formula_gives_up_the_paragraph_in_it() -> None:
    lines = [(300, 105, 600, 150), *text(100, 900, 170, 3)]
    regions = complete_regions([region(Label.DISPLAY_FORMULA, 100, 100, 900, 260)], lines, PAGE)
    assert labels(regions) == [Label.DISPLAY_FORMULA, Label.TEXT]


def test_no_lines_leave_the_regions_alone() -> None:
    found = [region(Label.TEXT, 10, 10, 90, 30)]
    assert complete_regions(found, [], PAGE) == found
    assert complete_regions(found, [(float("nan"), 0, 5, 5), (7, 7, 7, 9)], PAGE) == found


box = st.tuples(st.integers(0, 900), st.integers(0, 1300), st.integers(3, 600), st.integers(3, 60)).map(
    lambda b: (float(b[0]), float(b[1]), min(1000.0, b[0] + b[2]), min(1400.0, b[1] + b[3]))
)
models = st.tuples(st.sampled_from(list(Label)), box).map(lambda item: region(item[0], *item[1]))


@settings(deadline=None)
@given(st.lists(models, max_size=8), st.lists(box, max_size=40))
def test_every_line_lies_in_a_region(found: list[DetectedRegion], lines: list) -> None:
    regions = complete_regions(found, lines, PAGE)
    if not lines:
        return
    frames = as_array(r.box for r in regions)
    for x1, y1, x2, y2 in lines:
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        assert ((frames[:, :2] <= [x, y]).all(axis=1) & (frames[:, 2:] >= [x, y]).all(axis=1)).any()


def test_cells_belong_to_the_table_not_to_text_inside_it() -> None:
    lines = [(x, y, x + 60, y + 20) for y in range(100, 300, 30) for x in (100, 300, 500)]
    found = [region(Label.TABLE, 90, 90, 600, 310), region(Label.TEXT, 90, 95, 330, 150)]
    assert labels(complete_regions(found, lines, PAGE)) == [Label.TABLE]


def test_text_in_a_row_with_a_header_is_one_too() -> None:
    lines = [(100, 40, 200, 60), (800, 40, 900, 60), *text(100, 900, 120, 6)]
    found = [region(Label.HEADER, 100, 40, 200, 60), region(Label.TEXT, 800, 40, 900, 60)]
    assert labels(complete_regions(found, lines, PAGE)).count(Label.HEADER) == 2


def test_blocks_of_the_press_keep_to_their_columns() -> None:
    """Gutters are a third of a line wide, boxes touch across them now and then, and the model saw one region."""
    columns = [(50.0, 340.0), (348.0, 638.0), (646.0, 936.0)]
    lines = [line for start, end in columns for line in text(start, end, 120, 20, pitch=24)]
    lines[7], lines[33] = (50.0, 288.0, 346.0, 308.0), (340.0, 432.0, 640.0, 452.0)
    lines.append((50.0, 80.0, 930.0, 112.0))
    regions = complete_regions([region(Label.TABLE, 45, 70, 945, 640)], lines, PAGE)
    assert len(regions) >= 4
    assert sum(r.box[2] - r.box[0] > 400 for r in regions) == 1
    assert homes(regions, lines) == [1] * len(lines)
