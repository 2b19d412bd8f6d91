"""Spans of work, told to whoever listens."""

from __future__ import annotations

import functools
import threading

import pytest

from pagemill import tracing
from pagemill.profiling.trace import Trace


@pytest.fixture
def trace():
    listener = Trace()
    token = tracing.LISTENER.set(listener)
    yield listener
    tracing.LISTENER.reset(token)


def double(number: int) -> int:
    return 2 * number


def test_without_a_listener_a_function_stays_what_it_is():
    assert tracing.timed(double, "threads") is double
    with tracing.stage("layout"), tracing.span("request", "servers"):
        tracing.moved(1)
        tracing.ended("p", failed=False)


def test_a_span_has_the_stage_and_page_of_its_caller_and_the_thread_that_did_it(trace):
    tracing.PAGE.set("doc_1")
    with tracing.stage("analysis"):
        call = tracing.timed(functools.partial(double, 4), "threads")
    results = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    (span,) = trace.spans
    assert results == [8]
    assert (span.stage, span.operation, span.page, span.items) == ("analysis", "double", "doc_1", 1)
    assert span.worker != threading.get_ident()
    assert span.queued <= span.begun <= span.ended


def test_a_microbatch_is_of_no_single_page(trace):
    tracing.PAGE.set("doc_1")
    tracing.timed(lambda: None, "threads", operation="the engine", items=8, stage="layout")()
    (span,) = trace.spans
    assert (span.stage, span.operation, span.page, span.items) == ("layout", "the engine", "", 8)


def test_what_raises_is_work_as_well(trace):
    def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        tracing.timed(fail, "threads")()
    with pytest.raises(ValueError), tracing.stage("recognition"), tracing.span("request", "servers"):
        fail()
    assert [span.operation for span in trace.spans] == [
        "test_what_raises_is_work_as_well.<locals>.fail",
        "request",
    ]
    assert trace.waits["recognition"].pages == 1
