"""OpenTelemetry spans, only where the user has configured them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from local_web import Handler, serving
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from pagemill import tracing
from pagemill.errors import UsageError
from pagemill.profiling.telemetry import PageSpans, exported
from pagemill.profiling.trace import Trace


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def recorded() -> tuple[PageSpans, InMemorySpanExporter]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return PageSpans(provider.get_tracer("test")), memory


def span(page: str, started: float) -> tracing.Span:
    return tracing.Span("layout", "detect", "pagemill.compute", 7, started - 0.5, started, started + 2, 3, page, 1.5)


def test_a_page_is_a_trace_of_its_own_and_its_work_is_in_it():
    listener, memory = recorded()
    started = time.perf_counter()
    for page in ("a_0001", "b_0001"):
        listener.work(span(page, started))
        listener.waited("layout", page, started - 1, started + 2)
        listener.ended(page, failed=page == "b_0001")
    spans = {(each.name, each.attributes["pagemill.page"]): each for each in memory.get_finished_spans()}
    assert {name for name, _ in spans} == {"page", "layout", "layout: detect"}
    for page in ("a_0001", "b_0001"):
        root = spans["page", page]
        assert root.parent is None
        for name in ("layout", "layout: detect"):
            assert spans[name, page].parent.span_id == root.context.span_id
    assert spans["page", "a_0001"].status.status_code is StatusCode.UNSET
    assert spans["page", "b_0001"].status.status_code is StatusCode.ERROR
    work = spans["layout: detect", "a_0001"]
    assert (work.end_time - work.start_time) / 1e9 == pytest.approx(2)
    assert abs(work.start_time - time.time_ns()) < 60e9
    assert work.attributes["pagemill.queued_s"] == pytest.approx(0.5)


def test_a_microbatch_belongs_to_no_page_and_a_stopped_page_is_not_left_open():
    listener, memory = recorded()
    listener.work(span("", 1))
    listener.work(span("a_0001", 1))
    listener.close()
    (batch,) = (each for each in memory.get_finished_spans() if "pagemill.page" not in each.attributes)
    assert batch.parent is None
    assert batch.attributes["pagemill.items"] == 3
    assert [each.name for each in memory.get_finished_spans()].count("page") == 1


def test_a_profile_and_spans_may_be_made_of_the_same_run():
    listener, memory = recorded()
    trace = Trace()
    with tracing.listening(trace), tracing.listening(listener):
        tracing.timed(lambda: None, "pagemill.compute", operation="detect", stage="layout")()
        tracing.moved(5)
        tracing.ended("a_0001", failed=False)
    assert tracing.LISTENER.get() is None
    assert len(trace.spans) == len(memory.get_finished_spans()) == 1
    assert (trace.pages, sum(trace.bytes.values())) == (1, 5)


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        {"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
    ],
)
def test_nobody_listens_where_nothing_is_configured(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with exported():
        assert tracing.LISTENER.get() is None


def test_a_library_leaves_the_environment_to_its_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    with exported(configure=False):
        assert tracing.LISTENER.get() is None


def test_an_exporter_that_is_not_supported_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    with pytest.raises(UsageError, match="zipkin"), exported():
        pass


def test_without_the_packages_a_configured_run_continues_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with exported():
        assert tracing.LISTENER.get() is None
    assert "no span is sent" in caplog.text


@pytest.mark.slow
@pytest.mark.integration
def test_a_run_sends_a_trace_of_each_page_to_the_configured_address(tmp_path: Path):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    received: list[bytes] = []

    class Collector(Handler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(200)

    sample = Path(__file__).parents[3] / "samples" / "report.pdf"
    command = [sys.executable, "-m", "pagemill", "parse", sample, "-o", tmp_path / "out", "--pages", "1-2"]
    with serving(Collector) as server:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": server.url}
        subprocess.run(command, env=os.environ | environment, check=True, timeout=300)
    spans = [
        each
        for body in received
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for each in scope.spans
    ]
    roots = [each for each in spans if each.name == "page"]
    assert len(roots) == 2
    stages = {each.name for each in spans if each.parent_span_id == roots[0].span_id}
    assert {"decode", "analysis"} <= stages, stages
