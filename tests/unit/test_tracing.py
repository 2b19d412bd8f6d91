"""Spans of work, told to whoever listens."""

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
    assert span.queued <= span.started <= span.ended


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


def test_a_decision_is_one_line_that_starts_with_its_page(caplog):
    caplog.set_level("INFO", logger="pagemill")
    tracing.PAGE.set("100%s_1")
    log = tracing.PageLogger("pagemill.parsing.page")
    log.info("text layer refused: %s", "no letters")
    log.debug("not asked for")
    assert [record.getMessage() for record in caplog.records] == ["100%s_1: text layer refused: no letters"]
    assert caplog.records[0].name == "pagemill.parsing.page"


def test_what_nobody_reads_is_not_made(caplog):
    caplog.set_level("WARNING", logger="pagemill")

    class Costly:
        def __str__(self) -> str:
            raise AssertionError("formatted")

    tracing.PageLogger("pagemill.parsing.page").info("%s", Costly())
    assert not caplog.records
