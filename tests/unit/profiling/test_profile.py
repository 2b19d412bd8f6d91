"""The figures of a profile add up, and name what holds the run up."""

from __future__ import annotations

import pytest

from pagemill.profiling.html import profile_html, stage_lines, summary_lines
from pagemill.profiling.profile import Freed, Profile, make_profile
from pagemill.profiling.trace import Trace
from pagemill.tracing import INPUT, Span


def traced() -> Trace:
    """Two pages: 6 s of recognition and 2 s of layout on two threads, 1 s of rendering in one process; 5 s of wall."""
    trace = Trace()
    start = trace.begun = 100.0

    def work(stage: str, resource: str, worker: int, begun: float, ended: float) -> None:
        trace.work(Span(stage, "do", resource, worker, start + begun, start + begun, start + ended, 1, "p", 0.5))

    work(INPUT, "pagemill.decoder", 1, 0.0, 0.5)
    work("decode", "pagemill.decoder", 1, 0.5, 1.5)
    work("recognition", "pagemill.compute", 2, 1.0, 4.0)
    work("recognition", "pagemill.compute", 3, 1.0, 4.0)
    work("layout", "pagemill.compute", 2, 4.0, 5.0)
    work("layout", "pagemill.compute", 3, 4.0, 5.0)
    trace.waited("recognition", "p", start + 1, start + 4.5)
    trace.moved("decode", 3_000_000)
    trace.pages, trace.failed, trace.first_page, trace.last_page = 2, 1, start + 4.75, start + 5.0
    return trace


def profile(trace: Trace) -> Profile:
    return make_profile(
        trace,
        schedule="streaming",
        workers={"pagemill.compute": 2, "pagemill.decoder": 1},
        cores=2,
        cpu_s=9.0,
        peak_memory_mib=512.0,
        machine={},
        gpus=[],
    )


def test_stage_times_add_up_and_the_busiest_resource_is_the_bottleneck():
    found = profile(traced())
    stages = {each.name: each for each in found.stages}
    assert [each.name for each in found.stages] == ["recognition", "layout", "decode", INPUT]
    assert stages["recognition"].busy_s == pytest.approx(6.0)
    assert stages["recognition"].concurrency == pytest.approx(1.2)
    assert stages["recognition"].page_s == pytest.approx(3.5)
    assert stages["decode"].bytes == 3_000_000
    assert sum(each.share for each in found.stages) == pytest.approx(1.0)
    assert sum(each.busy_s for each in found.stages) == pytest.approx(sum(each.busy_s for each in found.resources[1:]))
    assert sum(each.busy_s for each in found.operations) == pytest.approx(sum(each.busy_s for each in found.stages))
    busy = {each.name: each.busy for each in found.resources}
    assert busy == {
        "CPU cores": pytest.approx(0.9),
        "compute threads": pytest.approx(0.8),
        "PDF rendering processes": pytest.approx(0.3),
    }
    assert found.bottleneck == ("compute threads", "recognition")
    assert (found.pages, found.failed, found.wall_s) == (2, 1, pytest.approx(5.0))
    assert found.first_page_s == pytest.approx(4.75)


def test_a_projection_has_the_rate_of_the_run_and_the_work_of_each_stage():
    projection = profile(traced()).project(7200)
    assert projection.hours == pytest.approx(5.0)
    assert projection.stages["recognition"] == pytest.approx(6.0)


def test_servers_hold_a_run_up_that_waits_for_them():
    trace = traced()
    for at in range(4):
        trace.work(Span("recognition", "request", "servers", 0, 101.0, 101.0, 104.9 + at / 100, 1, "p", 0.0))
    assert profile(trace).bottleneck == ("servers", "recognition")


def test_a_run_without_pages_has_no_bottleneck():
    found = profile(Trace())
    assert (found.pages, found.bottleneck, found.stages) == (0, None, [])
    assert "0 pages" in next(summary_lines(found))


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
