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
    vitals, counts = server.life.vitals, server.counts
    requests = {f'{{status="{number}xx"}}': counts[f"requests_{number}xx"] for number in range(1, 6)}
    families: list[tuple[str, str, str, dict[str, int]]] = [
        ("jobs", "gauge", "Jobs by state.", {f'{{state="{state}"}}': states.get(state, 0) for state in JobState}),
        *((f"{name}_total", "counter", help, {"": counts[name]}) for name, help in _COUNTERS.items()),
        ("requests_total", "counter", "Requests by status.", requests),
        (
            *("pages_total", "counter", "Pages that ended."),
            {'{status="done"}': vitals.done, '{status="failed"}': vitals.failed},
        ),
        ("pages_in_flight", "gauge", "Pages in flight.", {"": vitals.in_flight}),
        ("event_streams", "gauge", "Open event streams.", {"": counts["streams_open"]}),
        ("worker_restarts", "gauge", "Restarts of the worker process.", {"": server.life.number}),
    ]
    for name, kind, help, samples in families:
        yield f"# HELP pagemill_{name} {help}\n# TYPE pagemill_{name} {kind}\n"
        yield from (f"pagemill_{name}{labels} {value}\n" for labels, value in samples.items())
