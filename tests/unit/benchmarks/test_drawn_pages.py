"""Drawn pages: the same by seed, and what their truth says is what is drawn."""

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pypdfium2
import pytest

from chromium_pipe import CHROMIUM
from pagemill.errors import MissingDependencyError
from pages import languages
from pages.camera import SCENES, photograph
from pages.draw import FORM_SEEDS, HELD_BACK, PRESS_SEEDS, Press, composition
from pages.forms import FORMS
from pages.languages import FONTS, LANGUAGES, language
from pages.layouts import COMMON, LAYOUTS, build
from pages.tables import make_table, true_html

drawn = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.fixture
def any_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "_installed", lambda: frozenset().union(*FONTS.values()))
    for module in ("layouts", "forms"):
        monkeypatch.setattr(f"pages.{module}.check_font", lambda family: family)


def test_every_language_and_layout_has_a_seed() -> None:
    special = (*range(FORM_SEEDS, FORM_SEEDS + 5), *range(PRESS_SEEDS, PRESS_SEEDS + 5))
    made = Counter(composition(seed) for seed in (*range(16 * len(COMMON)), *special))
    assert {language for language, _ in made} == set(LANGUAGES)
    assert {layout for _, layout in made} == set(LAYOUTS)
    assert all(made[code, layout] == 1 for code in LANGUAGES for layout in COMMON)


def test_pages_of_forms_are_before_those_of_the_press_in_each_million() -> None:
    for million in (0, HELD_BACK):
        assert all(composition(million + FORM_SEEDS + i)[1] in FORMS for i in (0, 7, 99_999))
        assert not any(composition(million + seed)[1] in FORMS for seed in (FORM_SEEDS - 1, PRESS_SEEDS))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.usefixtures("any_font")
def test_a_page_is_the_same_by_seed(layout: str) -> None:
    code = "ja" if layout == "vertical" else "ko"
    first, second, other = (build(code, layout, Random(seed)) for seed in (5, 5, 6))
    assert first[1] == second[1]
    assert first[0].blocks == second[0].blocks
    assert first[1] != other[1]


@pytest.mark.parametrize("code", LANGUAGES)
def test_sentences_have_no_gaps_left(code: str) -> None:
    random = Random(1)
    sentences = [language(code).sentence(random) for _ in range(300)]
    assert not any("{" in sentence or "  " in sentence or sentence != sentence.strip() for sentence in sentences)
    assert len(set(sentences)) > 150


@pytest.mark.parametrize("seed", range(12))
def test_cells_and_spans_fill_every_place_of_a_table_once(seed: int) -> None:
    random = Random(seed)
    columns = random.randint(3, 6)
    grid = make_table(language("en"), random, columns, random.randint(3, 8), spans=True)
    taken: Counter[tuple[int, int]] = Counter()
    for row, cells in enumerate(grid):
        column = 0
        for cell in cells:
            while taken[row, column]:
                column += 1
            taken.update((r, c) for r in range(row, row + cell.rows) for c in range(column, column + cell.columns))
    assert set(taken) >= {(r, c) for r in range(len(grid)) for c in range(columns)}
    assert {place for place, count in taken.items() if count} == {
        (r, c) for r in range(len(grid)) for c in range(columns)
    }
    assert max(taken.values()) == 1
    assert true_html(grid).count("<tr>") == len(grid)


@drawn
@pytest.mark.slow
def test_the_text_layer_of_a_drawn_page_is_its_truth(tmp_path: Path) -> None:
    with Press(tmp_path) as press:
        try:
            page = press.page(1)
        except MissingDependencyError as error:
            pytest.skip(str(error))
    document = pypdfium2.PdfDocument(page.pdf)
    assert len(document) == 1
    layer = "".join(document[0].get_textpage().get_text_range().split())
    texts = ["".join(block.text.split()) for block in page.blocks if block.text]
    assert len(texts) > 8
    assert all(text in layer for text in texts)
    for block in page.blocks:
        assert block.boxes, block
        assert all(0 <= x1 < x2 <= 1 and 0 <= y1 < y2 <= 1 for x1, y1, x2, y2 in block.boxes), block
    assert page.scan.exists()


def _page_with_a_cross(x: float, y: float) -> np.ndarray:
    page = np.full((700, 500, 3), 255, np.uint8)
    page[int(y * 700) - 4 : int(y * 700) + 5, int(x * 500) - 4 : int(x * 500) + 5] = (0, 0, 255)
    return page


@pytest.mark.parametrize("severity", [0.0, 1.0])
@pytest.mark.parametrize("place", [(0.2, 0.15), (0.8, 0.5), (0.5, 0.85)])
def test_the_camera_shows_where_a_point_of_the_page_is(severity: float, place: tuple[float, float]) -> None:
    import cv2

    taken = photograph(_page_with_a_cross(*place), severity, seed=3)
    image = cv2.imdecode(np.frombuffer(taken.jpeg, np.uint8), cv2.IMREAD_COLOR).astype(int)
    assert (image.shape[1], image.shape[0]) == taken.size
    red = image[..., 2] - image[..., :2].max(axis=2)
    y, x = np.argwhere(red > 0.6 * red.max()).mean(axis=0)
    expected = taken.map([place])[0]
    assert np.hypot(*(expected - (x, y))) < 4


def test_a_photograph_is_the_same_by_seed() -> None:
    page = _page_with_a_cross(0.5, 0.5)
    first, second, other = (photograph(page, 0.5, seed) for seed in (1, 1, 2))
    assert first.jpeg == second.jpeg
    assert first.jpeg != other.jpeg


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_is_a_photograph_of_its_own(scene: str) -> None:
    page = _page_with_a_cross(0.5, 0.5)
    first, second, plain = (photograph(page, 0.5, 1, each) for each in (scene, scene, ""))
    assert first.jpeg == second.jpeg
    assert first.jpeg != plain.jpeg


def test_an_unknown_scene_is_refused() -> None:
    with pytest.raises(ValueError, match="a scene is one of book"):
        photograph(_page_with_a_cross(0.5, 0.5), 0.5, 1, "sea")
