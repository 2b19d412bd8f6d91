import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.imaging.limits import DecodeLimits

LIMITS = DecodeLimits()


def test_a4_is_rendered_at_the_default_resolution():
    assert LIMITS.render_size(595.0, 842.0) == (1653, 2339, 200.0)


def test_tiny_pages_are_enlarged_and_huge_ones_shrunk():
    assert LIMITS.render_size(72, 36) == (1000, 500, 1000.0)
    width, height, dpi = LIMITS.render_size(14_400, 14_400)
    assert (width, height) == (5000, 5000)
    assert dpi == pytest.approx(25)


points = st.floats(1e-3, 1e6)


@given(points, points)
def test_any_page_gets_pixels_within_the_working_size(width: float, height: float):
    columns, rows, dpi = LIMITS.render_size(width, height)
    assert columns >= 1
    assert rows >= 1
    assert max(columns, rows) <= LIMITS.max_side
    assert columns * rows <= LIMITS.max_pixels * 1.01
    assert 0 < dpi <= LIMITS.max_dpi


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_the_factor_brings_any_image_within_the_working_size(width: int, height: int):
    factor = LIMITS.factor_for(width, height)
    assert 0 < factor <= 1
    assert width * height * factor * factor <= LIMITS.max_pixels * 1.001
    assert max(width, height) * factor <= LIMITS.max_side * 1.001
