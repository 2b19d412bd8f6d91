"""What is told as a photograph of a page, and its light evened."""

import numpy as np
import pytest

from pagemill.imaging.photograph import as_scanned, evenly_lit, line_evenly_lit, photographed_area

HEIGHT, WIDTH = 1000, 760


def page(paper: int = 255) -> np.ndarray:
    """Rows of short black strokes on even paper."""
    pixels = np.full((HEIGHT, WIDTH, 3), paper, dtype=np.uint8)
    for top in range(80, HEIGHT - 80, 24):
        for left in range(60, WIDTH - 60, 9):
            pixels[top : top + 10, left : left + 2] = 30
    return pixels


def shaded(pixels: np.ndarray, *, dark: float, light: float = 1.0, noise: float = 1.5) -> np.ndarray:
    """The page below a lamp that stands to its upper left, with the noise of a sensor."""
    y, x = np.mgrid[0 : pixels.shape[0], 0 : pixels.shape[1]]
    lamp = light + (dark - light) * (x / pixels.shape[1] + y / pixels.shape[0]) / 2
    grain = np.random.default_rng(1).normal(0, noise, pixels.shape)
    return np.clip(pixels * lamp[..., None] + grain, 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    ("dark", "light", "noise"),
    [
        pytest.param(0.6, 0.95, 1.5, id="shaded"),
        pytest.param(0.25, 0.4, 3.0, id="dark and noisy"),
        pytest.param(0.55, 1.35, 1.5, id="half of it overexposed"),
    ],
)
def test_shaded_paper_is_a_photograph(dark, light, noise):
    assert photographed_area(shaded(page(), dark=dark, light=light, noise=noise)) == (0, 0, WIDTH, HEIGHT)


def gradient() -> np.ndarray:
    """A slide whose ground goes from dark to light."""
    pixels = page(0)
    pixels[:] = np.linspace(60, 240, HEIGHT).astype(np.uint8)[:, None, None]
    return pixels


def picture_on_white() -> np.ndarray:
    """A rendered page with a photograph on it."""
    pixels = page()
    pixels[200:500, 100:500] = shaded(np.full((300, 400, 3), 200, np.uint8), dark=0.3)
    return pixels


NO_PHOTOGRAPHS = {  # drawn by the test: each process collects all of them
    "rendering": page,
    "rendering on coloured ground": lambda: page(238),
    "scan": lambda: shaded(page(245), dark=1.0, noise=3.0),
    "scan, a little uneven": lambda: shaded(page(240), dark=0.99, noise=2.0),
    "slide with a gradient": gradient,
    "page with a photograph on it": picture_on_white,
    "blank page": lambda: np.full((HEIGHT, WIDTH, 3), 255, np.uint8),
    "too small to tell": lambda: shaded(page(), dark=0.5)[:40, :40],
    "one pixel": lambda: page()[:1, :1],
}


@pytest.mark.parametrize("name", NO_PHOTOGRAPHS)
def test_scans_and_renderings_are_no_photographs(name):
    assert photographed_area(NO_PHOTOGRAPHS[name]()) is None


def test_a_photograph_on_a_white_page_is_told_without_the_margin():
    whole = np.full((HEIGHT + 200, WIDTH + 300, 3), 255, dtype=np.uint8)
    whole[120 : 120 + HEIGHT, 150 : 150 + WIDTH] = shaded(page(), dark=0.6, light=0.95)
    area = photographed_area(whole)
    assert area == pytest.approx((150, 120, 150 + WIDTH, 120 + HEIGHT), abs=3)


def test_light_is_evened_and_ink_stays():
    even = evenly_lit(shaded(page(), dark=0.3, light=0.9, noise=0.0))
    paper = even[60:76, 60:-60]
    assert paper.min() > 240
    assert even[85, 60:-60:9].max() < 90
    assert evenly_lit(page()).tobytes() == page().tobytes()


def test_the_colour_of_the_lamp_goes():
    tinted = (shaded(page(), dark=0.6, noise=0.0) * np.array([0.8, 1.0, 0.7])).astype(np.uint8)
    paper = evenly_lit(tinted)[60:76, 60:-60].reshape(-1, 3)
    assert np.ptp(paper.mean(axis=0)) < 3


def test_layout_sees_a_page_without_the_table_top_at_its_edges() -> None:
    pixels = np.full((1000, 1000, 3), 230, np.uint8)  # paper a little grey
    pixels[:10], pixels[:, -20:] = 40, 40  # a table top above and on the right
    pixels[500:520, 960:990] = 0  # a word that ends at the edge

    at_margin = as_scanned(pixels, (100, 100, 900, 900))
    up_to_edge = as_scanned(pixels, (100, 100, 990, 900))

    assert (at_margin == 255).mean() > 0.99
    assert not up_to_edge[505:515, 965:985].any()


def test_the_edge_of_a_shadow_across_a_line_is_not_ink():
    line = np.full((36, 600, 3), 250, np.uint8)
    line[8:28, 20:580:9] = 30
    shadow = np.clip(np.arange(600) / 200 - 0.5, 0.5, 1.0)[:, None]
    lit = line_evenly_lit((line * shadow).astype(np.uint8))
    paper, ink = lit[2:6], lit[8:28, 20:580:9]
    assert paper.min() > 220
    assert ink.max() < 90


def test_a_line_that_is_lit_evenly_stays_as_it_is():
    line = np.full((36, 600, 3), 250, np.uint8)
    line[8:28, 20:580:9] = 30
    assert line_evenly_lit(line) is line


def test_a_line_of_light_letters_on_dark_paper_stays_as_it_is():
    line = np.full((36, 600, 3), (20, 40, 110), np.uint8)
    line[8:28, 20:300:9] = 245  # else the paper beyond them would become white
    assert line_evenly_lit(line) is line


def of_a_display(depth: float) -> np.ndarray:
    """A page whose red, green and blue ripple, each a third of a wave after the other."""
    pixels = page(225).astype(np.float64)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    waves = np.stack([np.sin(2 * np.pi * ((x + y) / 14 + phase / 3)) for phase in range(3)], axis=2)
    return np.clip(pixels * (1 + depth * waves), 0, 255).astype(np.uint8)


def test_the_moire_of_a_display_is_taken_off_and_letters_stay():
    taken = of_a_display(0.12)
    lit = evenly_lit(taken)
    assert (lit[..., 0] == lit[..., 1]).all() and (lit[..., 0] == lit[..., 2]).all()
    margin = lit[:60].astype(float)
    assert taken[:60, :, 0].std() > 15 and margin.std() < 4 and margin.mean() > 245
    assert lit[80:90, 60:62].max() < 60


def test_colours_of_paper_stay():
    lit = evenly_lit(shaded(page(), dark=0.6))
    pixels = page(230)
    pixels[200:400, 100:600] = (200, 40, 40)
    coloured = evenly_lit(pixels)
    assert (lit[..., 0] != lit[..., 1]).any()
    assert (coloured[..., 0] != coloured[..., 1]).any()
