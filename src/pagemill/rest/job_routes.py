"""Routes of jobs: send, list, watch, cancel, remove, retry."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pagemill.document.jobs import Job, Jobs, JobState
from pagemill.rest.errors import UnavailableError
from pagemill.rest.jobs import MAX_NUMBER
from pagemill.rest.models import ERRORS, NewJob, Retry, answer, returns
from pagemill.rest.parameters import ONLY_KNOWN
from pagemill.rest.sending import MAX_NAME, decoded, sending
from pagemill.rest.server import Server
from pagemill.rest.uploads import body_of

_MAX_JSON = 1 << 20
_LONGEST_WAIT_S = 60.0
_FIELDS = frozenset({"options", "collection"})
_MULTIPART: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "options": {"type": "string", "description": 'A JSON object, such as {"languages": ["ko"]}.'},
                        "collection": {"type": "string"},
                    },
                }
            },
            **returns(NewJob)["content"],
        },
    }
}


def router(server: Server) -> APIRouter:
    """The routes below ``/v1/jobs`` that are about jobs as a whole."""
    routes = APIRouter(prefix="/v1/jobs", tags=["jobs"], responses=ERRORS, dependencies=[ONLY_KNOWN])
    owner_of = Depends(server.owner)

    @routes.post("", status_code=202, responses={202: returns(Job)}, openapi_extra=_MULTIPART)
    async def send(
        request: Request,
        owner: str = owner_of,
        idempotency_key: Annotated[str | None, Header(max_length=MAX_NAME)] = None,
    ) -> Response:
        """Send files, or URLs where the server fetches some. The job is stored durably when the answer comes."""
        row = await _accept(server, request, owner, idempotency_key)
        return answer(await server.job(row), 202, Location=f"/v1/jobs/{row.id}")

    @routes.get("", responses={200: returns(Jobs)})
    async def list_jobs(
        state: JobState | None = None,
        collection: str | None = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        after: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None,
        owner: str = owner_of,
    ) -> Response:
        """The jobs of the key, the newest first."""
        rows = await asyncio.to_thread(
            server.jobs.find, owner, state=state, collection=collection, limit=limit, before=after
        )
        following = str(rows[-1].job) if len(rows) == limit else None
        return answer(Jobs([await server.job(row) for row in rows], following))

    @routes.get("/{id}", responses={200: returns(Job)})
    async def get_job(
        id: str, wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT_S)] = 0, owner: str = owner_of
    ) -> Response:
        """A job; with ``wait``, the answer comes when it has finished, or after that many seconds."""
        row = await (server.wait(id, owner, wait) if wait else server.get(id, owner))
        return answer(await server.job(row))

    @routes.delete("/{id}", responses={202: returns(Job), 204: {"description": "It is removed."}})
    async def delete_job(id: str, owner: str = owner_of) -> Response:
        """Cancel an unfinished job; remove a finished one with all its files."""
        row = await server.get(id, owner)
        if row.has_ended:
            await server.remove(id)
            return Response(status_code=204)
        return answer(await server.job(await server.cancel(id, owner)), 202)

    @routes.post("/{id}/cancel", responses={200: returns(Job)})
    async def cancel_job(id: str, owner: str = owner_of) -> Response:
        """Cancel an unfinished job. Unlike DELETE, this never removes a job that finishes at the same time."""
        row = await server.get(id, owner)
        return answer(await server.job(row if row.has_ended else await server.cancel(id, owner)))

    retry_body = {"content": {**returns(Retry)["content"]}}

    @routes.post(
        "/{id}/retry", status_code=202, responses={202: returns(Job)}, openapi_extra={"requestBody": retry_body}
    )
    async def retry_job(id: str, request: Request, owner: str = owner_of) -> Response:
        """Parse the failed pages of a job again, with a password if one is sent. 409 if it runs, or no page failed."""
        body = b"".join([chunk async for chunk in body_of(request, _MAX_JSON)])
        how = decoded(body, Retry, "the body does not say how to retry", "See /openapi.json.") if body else Retry()
        return answer(await server.job(await server.retry(id, owner, how.password)), 202)

    @routes.get("/{id}/events", response_class=StreamingResponse)
    async def watch(
        id: str,
        last_event_id: Annotated[str, Header(max_length=MAX_NAME)] = "",
        owner: str = owner_of,
    ) -> StreamingResponse:
        """Server-sent events: ``page`` for each page that ends, ``job`` when the job changes, last when it ends."""
        await server.get(id, owner)
        if server.counts["streams_open"] >= server.settings.limits.max_streams:
            server.counts["streams_refused"] += 1
            raise UnavailableError("too many event streams are open", remedy="Poll the job.", retry_after_s=10)

        async def stream() -> Any:
            async for kind, event, data in server.events(id, owner, last_event_id):
                head = f"event: {kind}\n" + (f"id: {event}\n" if event is not None else "")
                yield f"{head}data: {data.decode()}\n\n"

        # Counted before anything is awaited: a thousand that come at once must not all find room.
        server.counts["streams_open"] += 1
        return _CountedStream(server, stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    return routes


class _CountedStream(StreamingResponse):
    """An event stream that is counted as open until it has finished, however that comes."""

    def __init__(self, server: Server, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._server.counts["streams_open"] -= 1


async def _accept(server: Server, request: Request, owner: str, idempotency: str | None) -> Any:
    is_known = (
        idempotency is not None and await asyncio.to_thread(server.jobs.by_idempotency, owner, idempotency) is not None
    )
    async with sending(server, owner, is_known=is_known) as job:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
            body = b"".join([chunk async for chunk in body_of(request, _MAX_JSON)])
            sent = decoded(body, NewJob, "the body is not a job", "See /openapi.json.")
            for source in sent.sources:
                job.add_url(source.url)
            options, collection = sent.options, sent.collection
        else:
            fields = await job.form(request, _FIELDS)
            text, remedy = fields.get("options", ["{}"])[-1].encode(), 'Send {"languages": ["en"]}, for example.'
            options = decoded(text, dict[str, Any], "the options are not a JSON object", remedy)
            collection = fields.get("collection", [""])[-1] or None
        return await job.submit(options, collection=collection, idempotency=idempotency)
