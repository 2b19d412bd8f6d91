"""The figures of a profile add up, and name what holds the run up."""

import pytest
from traced_run import profile, traced

from pagemill.profiling.trace import Trace
from pagemill.tracing import INPUT, Span


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
