"""OpenTelemetry spans of a run, if the user has configured OpenTelemetry; otherwise nothing is imported."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pagemill import tracing
from pagemill._version import __version__
from pagemill.errors import UsageError
from pagemill.installation import install_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTERS = "OTEL_TRACES_EXPORTER"

log = logging.getLogger(__name__)


@contextmanager
def exported(*, configure: bool = True) -> Iterator[None]:
    """Export the spans of the block to where the user has configured; do nothing where they have not.

    Configured is a tracer provider that the program has set (also by ``opentelemetry-instrument``), or else the
    environment: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/

    Args:
        configure: Heed the environment, as a program does. A library leaves that to its program.

    Raises:
        UsageError: ``OTEL_TRACES_EXPORTER`` names an exporter that is not supported.
    """
    given = _set_provider()
    own = _environment_provider() if given is None and configure else None
    if (provider := given or own) is None:
        yield
        return
    spans = PageSpans(provider.get_tracer("pagemill", __version__))
    try:
        with tracing.listening(spans):
            yield
    finally:
        spans.close()
        if own is not None:
            own.shutdown()  # sends what is left; bounded by the exporter's own time limit
        elif configure and hasattr(provider, "force_flush"):
            provider.force_flush()  # workers of a run exit without the hooks that would do it


def _set_provider() -> Any | None:
    """The tracer provider that the program has set."""
    if "opentelemetry.trace" not in sys.modules:
        return None  # nobody can have set one
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    return None if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider) else provider


def _environment_provider() -> TracerProvider | None:
    """A tracer provider for what the environment asks for."""
    asked = os.environ.get(_EXPORTERS, "").strip() or ("otlp" if any(map(os.environ.get, _ENDPOINTS)) else "none")
    if asked == "none" or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    # Refused: spans that go nowhere would be missed only after the run.
    if asked not in ("otlp", "console"):
        raise UsageError(f"{_EXPORTERS}={asked} is not supported", remedy=f"Set {_EXPORTERS} to otlp, console or none.")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    except ImportError:
        # The variables are often set for all programs of a machine: no reason to refuse the run.
        log.warning("OpenTelemetry is configured but not installed, no span is sent: %s", install_extra("otel"))
        return None
    provider = TracerProvider()
    exporter = OTLPSpanExporter() if asked == "otlp" else ConsoleSpanExporter(out=sys.stderr)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


class PageSpans:
    """Creates a trace per page: a span of the page, with child spans for its stages and pieces of work.

    Microbatches and work for no page have spans of their own. Thread-safe. Implements
    :class:`pagemill.tracing.Listener`.

    Args:
        tracer: Makes the spans.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._pages: dict[str, Span] = {}
        # Spans are timed by a monotonic clock, which OpenTelemetry does not accept.
        self._offset = time.time_ns() - time.perf_counter_ns()
        self._lock = threading.Lock()

    def work(self, span: tracing.Span) -> None:
        """Export a piece of work."""
        attributes = {
            "pagemill.stage": span.stage,
            "pagemill.resource": span.resource,
            "pagemill.items": span.items,
            "pagemill.queued_s": span.started - span.queued,
            "pagemill.cpu_s": span.cpu,
        }
        self._add(f"{span.stage}: {span.operation}", span.page, span.started, span.ended, attributes)

    def waited(self, stage: str, page: str, started: float, ended: float) -> None:
        """Export a page's time in a stage."""
        self._add(stage, page, started, ended, {"pagemill.stage": stage})

    def moved(self, stage: str, size: int) -> None:
        """Nothing: bytes are not exported."""

    def ended(self, page: str, *, failed: bool) -> None:
        """End the span of a page."""
        from opentelemetry.trace import StatusCode

        with self._lock:
            span = self._pages.pop(page, None)
        if span is not None:
            if failed:
                span.set_status(StatusCode.ERROR)
            span.end()

    def close(self) -> None:
        """End the spans of pages that did not finish, such as those of a run that was stopped."""
        with self._lock:
            left, self._pages = self._pages, {}
        for span in left.values():
            span.end()

    def _add(self, name: str, page: str, started: float, ended: float, attributes: dict[str, Any]) -> None:
        from opentelemetry.trace import set_span_in_context

        start = self._nanos(started)
        context = None
        if page:
            attributes["pagemill.page"] = page
            with self._lock:
                # The first piece of work starts the span of its page: nothing reports that a page begins.
                if page not in self._pages:
                    self._pages[page] = self._tracer.start_span(
                        "page", start_time=start, attributes={"pagemill.page": page}
                    )
                context = set_span_in_context(self._pages[page])
        span = self._tracer.start_span(name, context, start_time=start, attributes=attributes)
        span.end(end_time=self._nanos(ended))

    def _nanos(self, moment: float) -> int:
        return self._offset + int(1e9 * moment)
