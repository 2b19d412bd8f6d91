"""The embedded layout engine is measured without PyTorch."""

import pytest

from pagemill_bench import layout


@pytest.mark.slow
def test_a_row_for_pixels_and_for_each_kind_of_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(layout, "A4_300DPI", (300, 400))
    rows = layout.embedded_rows(pages=1, threads=1, repeats=1)
    assert [name for name, _, _ in rows] == [f"{kind} to regions, 1 threads" for kind in ("pixels", "JPEG", "PNG")]
    for _, milliseconds, rate in rows:
        assert rate == pytest.approx(1000 / milliseconds)
