"""Plots: well-formed, with every point inside, whatever the figures are."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill_bench.plot import bars_svg, page_html, saturation_svg
from pagemill_bench.saturation import Level, Percentiles, knee_of

SVG = "{http://www.w3.org/2000/svg}"
positive = st.floats(1e-4, 1e5)


def level_of(in_flight: int, rate: float, *seconds: float) -> Level:
    times = Percentiles(p50=seconds[0], p95=seconds[1], p99=seconds[2])
    return Level(
        in_flight=in_flight,
        answered=1,
        failed=0,
        seconds=1,
        requests_per_s=rate,
        prompt_tokens_per_s=None,
        output_tokens_per_s=0,
        latency_s=times,
        first_token_s=times if in_flight % 2 else None,
    )


@given(st.dictionaries(st.integers(1, 4096), st.tuples(positive, positive, positive, positive), min_size=1, max_size=9))
def test_all_points_lie_in_the_drawing(figures: dict[int, tuple[float, ...]]):
    levels = [level_of(load, *figures[load]) for load in sorted(figures)]
    drawing = ElementTree.fromstring(saturation_svg(levels, knee_of(levels), "a < b"))
    width, height = float(drawing.attrib["width"]), float(drawing.attrib["height"])
    points = [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in drawing.iter(f"{SVG}circle")]
    assert len(points) == 4 * len(levels) + sum(level.first_token_s is not None for level in levels)
    assert all(0 < x < width and 0 < y < height for x, y in points)
    texts = [each.text or "" for each in drawing.iter(f"{SVG}text")]
    assert "a < b" in texts
    assert sum(text.startswith("knee") for text in texts) == 2


def test_a_level_without_answers_is_drawn_without_latencies():
    level = level_of(1, 0.0, 1, 1, 1)
    drawn = saturation_svg([level], knee_of([level]), "t")
    ElementTree.fromstring(drawn)
    assert "knee" not in drawn


def test_a_bar_for_what_was_measured_and_the_reason_for_what_was_not():
    drawing = ElementTree.fromstring(bars_svg([("one", 4.0, "4"), ("two", 2.0, "2"), ("bad", None, "why")], "u", "t"))
    *_, one, two, bad = (float(each.attrib["width"]) for each in drawing.iter(f"{SVG}rect") if "y" in each.attrib)
    assert one == pytest.approx(2 * two)
    assert bad == 0
    assert "why" in [each.text for each in drawing.iter(f"{SVG}text")]


def test_the_page_quotes_its_text():
    assert "&lt;script&gt;" in page_html("<svg/>", "t", "<script>")
