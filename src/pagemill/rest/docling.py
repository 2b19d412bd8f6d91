"""docling-serve's API: a client that was written for it works by changing the URL. See ``docs/serve.md``."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute

from pagemill._version import __version__
from pagemill.errors import PagemillError, UsageError
from pagemill.rest.archives import zipped
from pagemill.rest.docling_options import Conversion, conversion
from pagemill.rest.docling_results import ConvertedDocument, failure, task_status
from pagemill.rest.errors import NotFoundError, UnauthorizedError, sentence, status_of
from pagemill.rest.middleware import error_answer
from pagemill.rest.results import JobResults
from pagemill.rest.sending import Sending, from_base64, noted, sending, waited
from pagemill.rest.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from pagemill.rest.jobs import JobRow

_NOTE = "docling.json"
_MOST_WAIT_S = 60.0


class Source(msgspec.Struct, kw_only=True):
    """One of the ``sources`` of a request."""

    kind: str
    base64_string: str | None = None
    filename: str | None = None
    url: str | None = None
    headers: dict[str, Any] = {}


class SourcesRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A request with sources in its body."""

    sources: list[Source]
    options: dict[str, Any] = {}
    target: dict[str, Any] = {}
    callbacks: list[Any] = []


class _Route(APIRoute):
    """Answers errors as docling-serve does, with ``detail``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except PagemillError as error:
                answer = error_answer(error)
                body = msgspec.json.decode(answer.body) | {"detail": sentence(error.message, error.remedy)}
                headers = {
                    name: answer.headers[name] for name in ("retry-after", "www-authenticate") if name in answer.headers
                }
                return JSONResponse(body, status_code=status_of(error), headers=headers)
            except RequestValidationError as error:
                return JSONResponse({"detail": str(error.errors()[0]["msg"])}, status_code=422)

        return handled


def router(server: Server) -> APIRouter:
    """The routes of docling-serve."""
    routes = APIRouter(tags=["docling-serve"], route_class=_Route)
    owner_of = Depends(server.owner)

    @routes.get("/health", include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @routes.get("/ready", include_in_schema=False)
    async def ready() -> dict[str, str]:
        await server.require_ready()
        return {"status": "ok"}

    @routes.get("/version", include_in_schema=False)
    async def version() -> dict[str, str]:
        return {"pagemill": __version__}

    async def take_source(request: Request, owner: str) -> JobRow:
        async with sending(server, owner) as job, job.body(request) as body:
            return await _take_source(job, body)

    async def take_file(request: Request, owner: str) -> JobRow:
        async with sending(server, owner) as job:
            form = await job.form(request)
            fields: dict[str, Any] = {name: values[0] if len(values) == 1 else values for name, values in form.items()}
            return await _submit(job, fields, str(fields.pop("target_type", "inbody")))

    @routes.post("/v1/convert/source")
    async def convert_source(request: Request, owner: str = owner_of) -> Response:
        """Convert URLs or files in base64, and wait."""
        return await _converted(server, await take_source(request, owner))

    @routes.post("/v1/convert/file")
    async def convert_file(request: Request, owner: str = owner_of) -> Response:
        """Convert files of a multipart request, and wait."""
        return await _converted(server, await take_file(request, owner))

    @routes.post("/v1/convert/source/async")
    async def convert_source_later(request: Request, owner: str = owner_of) -> Response:
        """Convert URLs or files in base64; the answer is the task."""
        row = await take_source(request, owner)
        return JSONResponse(await _status(server, row.id, owner))

    @routes.post("/v1/convert/file/async")
    async def convert_file_later(request: Request, owner: str = owner_of) -> Response:
        """Convert files of a multipart request; the answer is the task."""
        row = await take_file(request, owner)
        return JSONResponse(await _status(server, row.id, owner))

    @routes.get("/v1/status/poll/{id}")
    async def poll(id: str, wait: Annotated[float, Query(ge=0)] = 0, owner: str = owner_of) -> Response:
        """The state of a task; with ``wait``, the answer comes when it has ended, or after that many seconds."""
        if wait:
            with _as_task():
                await server.wait(id, owner, min(wait, _MOST_WAIT_S))
        return JSONResponse(await _status(server, id, owner))

    @routes.get("/v1/result/{id}")
    async def result(id: str, owner: str = owner_of) -> Response:
        """The result of a task that has ended."""
        with _as_task():
            results = await server.results(id, owner)
        if not results.row.has_ended:
            raise NotFoundError("Task result not found. Please wait for a completion status.")
        if results.row.state != "finished":
            return JSONResponse({"kind": "TaskFailureResult", "failure": failure(results)})
        return await _answer(server, results)

    open_sockets = 0

    @routes.websocket("/v1/status/ws/{id}")
    async def watch(socket: WebSocket, id: str, api_key: str = "") -> None:
        nonlocal open_sockets
        await socket.accept()
        if open_sockets >= server.settings.limits.max_streams:
            await _tell(socket, "error", error="Too many connections: poll the task.")
            await socket.close(1013)
            return
        open_sockets += 1
        try:
            await _watch(server, socket, id, api_key)
        except WebSocketDisconnect:  # the client has gone
            pass
        finally:
            open_sockets -= 1

    return routes


async def _take_source(job: Sending, body: bytes) -> JobRow:
    try:
        sent = msgspec.json.decode(body, type=SourcesRequest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"the body is not a request for conversion: {str(error)[:200]}") from None
    del body
    if sent.callbacks:
        raise UsageError("callbacks are not supported", remedy="Poll the status of the task.")
    if len(sent.sources) > job.server.settings.limits.max_files:
        raise UsageError("the request has too many sources", remedy="Send several.")
    for each in sent.sources:
        if each.kind == "http" and each.url is not None:
            if each.headers:
                raise UsageError("headers of a source are not supported", remedy="Send the file.")
            job.add_url(each.url)
        elif each.kind == "file" and each.base64_string is not None:
            content = from_base64(each.base64_string)
            each.base64_string = None
            await job.add_file(each.filename or "", content)
        else:
            raise UsageError(f"a source of kind {each.kind[:100]!r} is not supported", remedy="Use http or file.")
    return await _submit(job, sent.options, str(sent.target.get("kind", "inbody")))


async def _submit(job: Sending, given: dict[str, Any], target: str) -> JobRow:
    wanted = conversion(given, target)
    await job.note(_NOTE, msgspec.json.encode(wanted))
    return await job.submit(wanted.options)


async def _converted(server: Server, row: JobRow) -> Response:
    """The result of a job when it has ended."""
    remedy = f"Get the result at /v1/result/{row.id}, or use the /async form of the request."
    return await _answer(server, await waited(server, row, remedy))


async def _answer(server: Server, results: JobResults) -> Response:
    row = results.row
    note = await asyncio.to_thread(noted, server, row.id, _NOTE)
    wanted = Conversion(formats=["md"]) if note is None else msgspec.json.decode(note, type=Conversion)
    documents = [ConvertedDocument(results, wanted, number) for number in range(len(results.documents))]
    if wanted.target == "zip" or len(documents) > 1:
        headers = {"Content-Disposition": 'attachment; filename="converted_docs.zip"'}
        return StreamingResponse(zipped(_members(documents)), media_type="application/zip", headers=headers)
    seconds = round((row.finished or row.created) - (row.started or row.created), 3)
    return StreamingResponse(documents[0].json(seconds), media_type="application/json")


def _members(documents: list[ConvertedDocument]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of the archive: those of each document, and what went wrong."""
    names = documents[0].results.file_names("status")  # as that of the errors
    told = {}
    for each in documents:
        name = names[each.results.documents[each.number].id]
        status = each.status()
        # By the name in the archive: two documents of a request may have one name.
        told[name + PurePosixPath(each.name).suffix] = {"status": status, "errors": each.errors()}
        if status != "failure":
            for suffix, content in each.files(each.conversion.formats):
                yield f"{name}.{suffix}", content
    yield "status.json", iter([msgspec.json.encode(told)])


async def _status(server: Server, id: str, owner: str) -> dict[str, Any]:
    with _as_task():
        results = await server.results(id, owner)
    position = None
    if results.row.state == "queued":
        waiting = await asyncio.to_thread(server.jobs.unfinished)
        position = 1 + sum(each.job < results.row.job and each.state == "queued" for each in waiting)
    return task_status(results, position)


@contextlib.contextmanager
def _as_task() -> Iterator[None]:
    """Report a missing job in the words of docling-serve, which its clients look for."""
    try:
        yield
    except NotFoundError:
        raise NotFoundError("Task not found.") from None


async def _watch(server: Server, socket: WebSocket, id: str, api_key: str) -> None:
    try:
        headers = dict(socket.headers)
        owner = server.keys.owner(headers | ({"x-api-key": api_key} if api_key else {}))
        await _tell(socket, "connection", task=await _status(server, id, owner))
        async for told in _states(server, id, owner, socket):
            await _tell(socket, "update", task=told)
    except (UnauthorizedError, NotFoundError) as error:  # the job may also be removed while it is watched
        await _tell(socket, "error", error=error.message)
    with _still_there():
        await socket.close()


async def _states(server: Server, id: str, owner: str, socket: WebSocket) -> AsyncIterator[dict[str, Any]]:
    """The states of a task whenever they change, the last one when it has ended. Ends when the client goes."""

    async def gone() -> None:  # what the client says ("next") has no meaning here
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass

    leaving = asyncio.create_task(gone())
    before = None
    try:
        with server.changes.watched(id) as changed:
            while not server.stopping.is_set():
                changed.clear()
                told = await _status(server, id, owner)
                if told != before:
                    yield told
                    before = told
                if told["task_status"] in ("success", "failure"):
                    return
                waiting = asyncio.create_task(changed.wait())
                await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if leaving.done():
                    return
    finally:
        leaving.cancel()


async def _tell(
    socket: WebSocket, message: str, *, task: dict[str, Any] | None = None, error: str | None = None
) -> None:
    with _still_there():
        await socket.send_json({"message": message, "task": task, "error": error})


@contextlib.contextmanager
def _still_there() -> Iterator[None]:
    """Raise what the server raises on a connection that is closed as a WebSocketDisconnect."""
    try:
        yield
    except RuntimeError as error:
        raise WebSocketDisconnect(1006) from error
