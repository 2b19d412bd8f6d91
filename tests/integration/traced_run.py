"""The trace of a run that never was, and its profile."""

from pagemill.profiling.profile import Profile, make_profile
from pagemill.profiling.trace import Trace
from pagemill.tracing import INPUT, Span


def traced() -> Trace:
    """Two pages: 6 s of recognition and 2 s of layout on two threads, 1 s of rendering in one process; 5 s of wall."""
    trace = Trace()
    start = trace.started = 100.0

    def work(stage: str, resource: str, worker: int, started: float, ended: float) -> None:
        trace.work(Span(stage, "do", resource, worker, start + started, start + started, start + ended, 1, "p", 0.5))

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
