"""The record of a run's work."""

import json

import pytest

from pagemill.profiling import trace as module
from pagemill.profiling.gpu_use import GpuSample
from pagemill.profiling.trace import Figures, Trace, Work, tracks
from pagemill.tracing import Span


def span(started: float, ended: float, *, worker: int = 1, resource: str = "pagemill.compute", stage: str = "layout"):
    return Span(stage, "work", resource, worker, started - 0.5, started, ended, 1, "p_1", 0.1)


def test_figures_count_time_and_know_percentiles_within_a_twentieth():
    figures = Figures()
    for hundredth in range(1, 101):
        figures.add(span(1.0, 1.0 + hundredth / 100))
    assert figures.calls == 100
    assert figures.busy == pytest.approx(50.5)
    assert figures.queued == pytest.approx(50.0)
    assert figures.longest == pytest.approx(1.0)
    assert figures.quantile(0.95) == pytest.approx(0.95, rel=0.06)
    assert figures.quantile(1.0) <= figures.longest
    other = Figures()
    other.merge(figures)
    assert other.quantile(0.5) == figures.quantile(0.5)


def test_spans_of_servers_get_as_many_tracks_as_overlap():
    of_servers = [span(at, at + 2, worker=0, resource="servers") for at in (0, 1, 2.5)]
    of_threads = [span(0, 1, worker=7), span(2, 3, worker=9), span(4, 5, worker=7)]
    placed = [(track, each.resource, each.started) for track, each in tracks(of_servers + of_threads)]
    assert sorted(place for place in placed if place[1] == "servers") == [
        (0, "servers", 0),
        (0, "servers", 2.5),
        (1, "servers", 1),
    ]
    assert [track for track, resource, _ in placed if resource != "servers"] == [0, 1, 0]


def test_spans_beyond_the_most_count_in_the_figures(monkeypatch):
    monkeypatch.setattr(module, "MAX_SPANS", 2)
    trace = Trace()
    for at in range(5):
        trace.work(span(at, at + 1))
    assert (len(trace.spans), trace.left_out) == (2, 3)
    assert trace.figures[Work("pagemill.compute", "layout", "work")].calls == 5


def test_the_trace_file_is_one_json_object_with_every_span():
    trace = Trace()
    trace.started = 0.0
    for at in range(3):
        trace.work(span(at, at + 0.25, stage='a "stage"'))
    file = "".join(trace.chrome({"GPU 0": [GpuSample(1.0, 0.5, 0.25, 3.0, None)]}))
    events = json.loads(file)["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X"]
    assert [(event["ts"], event["dur"], event["name"]) for event in spans] == [
        (0.0, 250000.0, 'a "stage"'),
        (1e6, 250000.0, 'a "stage"'),
        (2e6, 250000.0, 'a "stage"'),
    ]
    assert {"SM %": 50.0} in [event.get("args") for event in events]
