"""The benchmark of the host path runs, and every region of every page comes back."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiohttp")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "host_path.py"


@pytest.mark.slow
@pytest.mark.integration
def test_it_reads_all_regions_and_prints_a_table_a_case():
    options = ["--pages", "2", "--kinds", "PNG", "--latencies", "0", "50", "--rounds", "1", "--no-memory"]
    done = subprocess.run([sys.executable, BENCHMARK, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith("pagemill")] == ["pagemill"] * 2
    assert "2 pages, PNG of 0.4 MB, 50 ms" in done.stdout


def test_what_is_in_flight_counts_from_the_first_request_to_the_last(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    from host_path_sides import mean_in_flight

    # time, in flight, requests so far: two are in flight for a second, then three for half of one
    samples = [(0.0, 0, 4), (1.0, 2, 6), (2.0, 3, 7), (2.5, 3, 8), (9.0, 0, 8)]
    assert mean_in_flight(samples) == pytest.approx((2 * 1.0 + 3 * 0.5) / 1.5)
    assert mean_in_flight(samples, full=3) == pytest.approx(3)
    assert mean_in_flight(samples, full=4) is mean_in_flight([]) is mean_in_flight([(0.0, 0, 4), (1.0, 0, 4)]) is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_comment_changes_the_file_and_no_pixel(kind, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    from crops import sample_page
    from host_path import with_comment
    from pagemill.imaging.decode import decode_image

    page = sample_page(0, kind)
    changed = with_comment(page, b"page 7", kind)
    assert changed != page
    assert (decode_image(changed).pixels == decode_image(page).pixels).all()
