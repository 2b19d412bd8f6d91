"""Routes about the server: health, metrics, what it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import StrEnum

import msgspec
from fastapi import APIRouter, Depends, Response

from pagemill._version import __version__
from pagemill.document.jobs import JobState
from pagemill.export.formats import served_formats
from pagemill.imaging.formats import SUFFIXES, document_suffixes
from pagemill.rest.models import Options, answer, returns
from pagemill.rest.options import DECLARED, engines_of
from pagemill.rest.server import Server

_COUNTERS = {
    "accepted": "Jobs accepted.",
    "ended": "Jobs ended.",
    "removed": "Jobs removed.",
    "refused": "Jobs refused for a limit of the queue.",
    "streams_refused": "Event streams refused.",
}


def router(server: Server) -> APIRouter:
    """The routes about the server itself."""
    routes = APIRouter(tags=["server"])

    @routes.get("/healthz")
    async def alive() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @routes.get("/readyz")
    async def ready() -> dict[str, str]:
        """The server accepts jobs."""
        await server.require_ready()
        return {"status": "ready"}

    @routes.get("/metrics", dependencies=[Depends(server.owner)])
    async def metrics() -> Response:
        """Counters and gauges for Prometheus."""
        states = await asyncio.to_thread(server.jobs.count_states)
        text = "".join(_exposition(server, states))
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    @routes.get("/v1/options", dependencies=[Depends(server.owner)], responses={200: returns(Options)})
    async def options() -> Response:
        """What jobs can choose, and the limits of the server."""
        offered = Options(
            version=__version__,
            languages=await server.services.languages(),
            engines=engines_of(server.settings),
            suffixes=sorted(SUFFIXES.keys() | document_suffixes()),
            options=[
                {
                    "key": each.key,
                    "help": each.help,
                    "type": "list" if each.many else each.kind.__name__,
                    "choices": list(each.kind) if issubclass(each.kind, StrEnum) else None,
                }
                for each in DECLARED
            ],
            formats={suffix: each.title or suffix for suffix, each in served_formats().items()},
            limits={
                key: value
                for key, value in msgspec.to_builtins(server.settings.limits).items()
                if isinstance(value, int)
            },
            allow_urls=server.settings.allow_urls,
            needs_key=server.keys.required,
        )
        return answer(offered)

    return routes


def _exposition(server: Server, states: dict[str, int]) -> Iterator[str]:
    """The text format of Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats/."""
    yield "# HELP pagemill_jobs Jobs by state.\n# TYPE pagemill_jobs gauge\n"
    for state in JobState:
        yield f'pagemill_jobs{{state="{state}"}} {states.get(state, 0)}\n'
    for name, help in _COUNTERS.items():
        yield f"# HELP pagemill_{name}_total {help}\n# TYPE pagemill_{name}_total counter\n"
        yield f"pagemill_{name}_total {server.counts[name]}\n"
    yield "# HELP pagemill_requests_total Requests by status.\n# TYPE pagemill_requests_total counter\n"
    for status in ("1xx", "2xx", "3xx", "4xx", "5xx"):
        yield f'pagemill_requests_total{{status="{status}"}} {server.counts[f"requests_{status}"]}\n'
    vitals = server.life.vitals
    yield "# HELP pagemill_pages_total Pages that ended.\n# TYPE pagemill_pages_total counter\n"
    yield f'pagemill_pages_total{{status="done"}} {vitals.done}\n'
    yield f'pagemill_pages_total{{status="failed"}} {vitals.failed}\n'
    gauges = {
        "pages_in_flight": ("Pages in flight.", vitals.in_flight),
        "event_streams": ("Open event streams.", server.counts["streams_open"]),
        "worker_restarts": ("Restarts of the worker process.", server.life.number),
    }
    for name, (help, value) in gauges.items():
        yield f"# HELP pagemill_{name} {help}\n# TYPE pagemill_{name} gauge\npagemill_{name} {value}\n"
