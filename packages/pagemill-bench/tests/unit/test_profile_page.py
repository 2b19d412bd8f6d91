"""A profile as people see it: in a terminal and in a browser."""

from traced_run import profile, traced

from pagemill.profiling.profile import Freed
from pagemill.profiling.trace import Trace
from pagemill_bench.profile_page import profile_html, stage_lines, summary_lines


def test_the_page_shows_all_figures_and_runs_no_script():
    trace = traced()
    found = profile(trace)
    found.freed = Freed(stage="recognition", pages=2, seconds=5.0, freed_s=2.0, next_bottleneck="layout")
    assert (
        "Without the time of recognition, 2 pages took 2.00 s instead of 5.00 s: 2.50 times as fast; "
        "the next bottleneck is layout"
    ) in list(summary_lines(found))
    found.projection = found.project(40_781)
    page = "".join(profile_html(found, trace, {}, "<script>alert(1)</script>.pdf"))
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "2.50 times as fast" in page
    assert "40,781 pages" in page
    assert page.count("<rect") == len(trace.spans)
    lines = list(stage_lines(found))
    assert len({len(line) for line in lines}) == 1
    assert lines[1].startswith("recognition")


def test_a_run_without_pages():
    assert "0 pages" in next(summary_lines(profile(Trace())))
