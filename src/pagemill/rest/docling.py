"""docling-serve's API: its clients work after changing the URL. See ``docs/serve.md``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute

from pagemill._version import __version__
from pagemill.document.json_text import json_text
from pagemill.errors import PagemillError, UsageError
from pagemill.rest.archives import zipped
from pagemill.rest.docling_options import (
    FORMATS,
    IMAGE_MODES,
    TARGETS,
    Chunking,
    Conversion,
    chunked,
    conversion,
    flag,
)
from pagemill.rest.docling_results import ConvertedDocument, failure, task_status
from pagemill.rest.errors import NotFoundError, UnauthorizedError, sentence, status_of
from pagemill.rest.jobs import JobRow
from pagemill.rest.middleware import error_answer
from pagemill.rest.results import JobResults
from pagemill.rest.sending import SYNC_WAIT_S, Sending, decoded, from_base64, read_note, sending, waited
from pagemill.rest.server import Server

_NOTE = "docling.json"
_MOST_WAIT_S = 60.0
Chunker = Literal["hybrid", "hierarchical"]
SentAs = Literal["source", "file"]


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


class ChunkRequest(SourcesRequest, kw_only=True, forbid_unknown_fields=True):
    """A request for chunks with sources in its body."""

    convert_options: dict[str, Any] = {}
    chunking_options: dict[str, Any] = {}
    include_converted_doc: bool = False


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
                # Both forms: docling's clients read `detail`, ours the category and the remedy.
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

    @routes.get("/v1/capabilities", dependencies=[owner_of])
    async def capabilities() -> dict[str, Any]:
        """Supported features of docling-serve: sources, targets, formats, limits."""
        limits = server.settings.limits
        return {
            "versions": None,
            "stages": {},
            "sources": ["file", "http"] if server.settings.allow_urls else ["file"],
            "targets": {"allowed": TARGETS, "default": TARGETS[0]},
            "output_formats": list(FORMATS),
            "image_export_modes": IMAGE_MODES,
            "limits": {
                "max_document_timeout": SYNC_WAIT_S,
                "max_images_scale": 1.0,
                "max_sources_per_request": limits.max_files,
                "max_num_pages": limits.max_job_pages,
                "max_file_size": limits.max_file_bytes,
            },
            "features": {"api_key_required": server.keys.required, "artifact_storage": False, "websocket": True},
        }

    async def receive(request: Request, owner: str, kind: SentAs, chunker: str = "") -> JobRow:
        async with sending(server, owner) as job:
            if kind == "source":
                async with job.body(request) as body:
                    return await _take_source(job, body, chunker)
            form = await job.form(request)
            # A field that came once is a value, as in JSON; a repeated one is a list.
            fields: dict[str, Any] = {name: values[0] if len(values) == 1 else values for name, values in form.items()}
            return await _submit(job, _of_form(fields, chunker))

    def add_conversions(kind: SentAs) -> None:
        @routes.post(f"/v1/convert/{kind}")
        async def convert(request: Request, owner: str = owner_of) -> Response:
            """Convert URLs or files in base64 (``source``), or files of a multipart request (``file``), and wait."""
            return await _converted(server, await receive(request, owner, kind))

        @routes.post(f"/v1/convert/{kind}/async")
        async def convert_later(request: Request, owner: str = owner_of) -> Response:
            """Convert without waiting; the answer is the task."""
            row = await receive(request, owner, kind)
            return JSONResponse(await _status(server, row.id, owner))

        @routes.post(f"/v1/chunk/{{chunker}}/{kind}")
        async def chunk(request: Request, chunker: Chunker, owner: str = owner_of) -> Response:
            """Cut URLs or base64 files (``source``), or files of a multipart request (``file``), into chunks."""
            return await _converted(server, await receive(request, owner, kind, chunker))

        @routes.post(f"/v1/chunk/{{chunker}}/{kind}/async")
        async def chunk_later(request: Request, chunker: Chunker, owner: str = owner_of) -> Response:
            """Cut into chunks without waiting; the answer is the task."""
            row = await receive(request, owner, kind, chunker)
            return JSONResponse(await _status(server, row.id, owner))

    # Paths of their own, as docling-serve's OpenAPI document has them, not a parameter of one path.
    add_conversions("source")
    add_conversions("file")

    @routes.get("/v1/status/poll/{id}")
    async def poll(id: str, wait: Annotated[float, Query(ge=0)] = 0, owner: str = owner_of) -> Response:
        """The state of a task; with ``wait``, the answer comes when it has finished, or after that many seconds."""
        if wait:
            with _as_task():
                await server.wait(id, owner, min(wait, _MOST_WAIT_S))
        return JSONResponse(await _status(server, id, owner))

    @routes.get("/v1/result/{id}")
    async def result(id: str, owner: str = owner_of) -> Response:
        """The result of a task that has finished."""
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
        # Accepted before it may be refused: a client of docling-serve expects the reason as a message, not as a status.
        await socket.accept()
        if open_sockets >= server.settings.limits.max_streams:
            await _send(socket, "error", error="Too many connections: poll the task.")
            await socket.close(1013)
            return
        open_sockets += 1
        try:
            await _watch(server, socket, id, api_key)
        except WebSocketDisconnect:  # the client disconnected
            pass
        finally:
            open_sockets -= 1

    return routes


async def _take_source(job: Sending, body: bytes, chunker: str) -> JobRow:
    sent = decoded(body, ChunkRequest if chunker else SourcesRequest, "the body is not a request for conversion")
    del body
    # A server that calls addresses of its clients could be made to call others (request forgery).
    if sent.callbacks:
        raise UsageError("callbacks are not supported", remedy="Poll the status of the task.")
    if len(sent.sources) > job.server.settings.limits.max_files:
        raise UsageError("the request has too many sources", remedy="Send several.")
    for source in sent.sources:
        if source.kind == "http" and source.url is not None:
            if source.headers:
                raise UsageError("headers of a source are not supported", remedy="Send the file.")
            job.add_url(source.url)
        elif source.kind == "file" and source.base64_string is not None:
            content = from_base64(source.base64_string)
            # Dropped one by one: a body may hold hundreds of megabytes of base64, and each content as well.
            source.base64_string = None
            await job.add_file(source.filename or "", content)
        else:
            raise UsageError(f"a source of kind {source.kind[:100]!r} is not supported", remedy="Use http or file.")
    target = str(sent.target.get("kind", "inbody"))
    if not isinstance(sent, ChunkRequest):
        return await _submit(job, conversion(sent.options, target))
    wanted = conversion(sent.options | sent.convert_options, target)
    return await _submit(job, chunked(wanted, chunker, sent.chunking_options, with_document=sent.include_converted_doc))


def _of_form(fields: dict[str, Any], chunker: str) -> Conversion:
    """The options in the fields of a form. In chunk requests a prefix separates conversion and chunking options."""
    target = str(fields.pop("target_type", "inbody"))
    if not chunker:
        return conversion(fields, target)
    with_document = flag("include_converted_doc", fields.pop("include_converted_doc", False))
    of_chunker = {name: fields.pop(name) for name in list(fields) if name.startswith("chunking_")}
    wanted = conversion({name.removeprefix("convert_"): value for name, value in fields.items()}, target)
    options = {name.removeprefix("chunking_"): value for name, value in of_chunker.items()}
    return chunked(wanted, chunker, options, with_document=with_document)


async def _submit(job: Sending, wanted: Conversion) -> JobRow:
    await job.note(_NOTE, msgspec.json.encode(wanted))
    return await job.submit(wanted.options)


async def _converted(server: Server, row: JobRow) -> Response:
    """The result of a job when it has finished."""
    remedy = f"Get the result at /v1/result/{row.id}, or use the /async form of the request."
    return await _answer(server, await waited(server, row, remedy))


async def _answer(server: Server, results: JobResults) -> Response:
    row = results.row
    wanted = await _wanted(server, row.id)
    documents = [ConvertedDocument(results, wanted, number) for number in range(len(results.documents))]
    seconds = round((row.finished or row.created) - (row.started or row.created), 3)
    if wanted.chunking is not None:
        return StreamingResponse(_chunks(documents, wanted.chunking, seconds), media_type="application/json")
    # docling-serve, too, answers with an archive when there is more than one document.
    if wanted.target == "zip" or len(documents) > 1:
        headers = {"Content-Disposition": 'attachment; filename="converted_docs.zip"'}
        return StreamingResponse(zipped(_members(documents)), media_type="application/zip", headers=headers)
    return StreamingResponse(documents[0].json(seconds), media_type="application/json")


async def _wanted(server: Server, id: str) -> Conversion:
    """The conversion that a job's request wanted; Markdown for jobs of other APIs."""
    note = await asyncio.to_thread(read_note, server, id, _NOTE)
    return Conversion(formats=["md"]) if note is None else msgspec.json.decode(note, type=Conversion)


def _chunks(documents: list[ConvertedDocument], wanted: Chunking, seconds: float) -> Iterator[str]:
    """docling-serve's ChunkDocumentResponse."""
    yield '{"chunks":['
    separator = ""
    for document in documents:
        for chunk in document.chunks(wanted):
            yield separator + json_text(chunk)
            separator = ","
    yield '],"documents":['
    for number, document in enumerate(documents):
        yield "," if number else ""
        yield from document.item()
    yield f'],"processing_time":{seconds}}}'


def _members(documents: list[ConvertedDocument]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of the archive: those of each document, and the errors."""
    names = documents[0].results.file_names("status")  # as that of the errors
    statuses = {}
    for document in documents:
        name = names[document.results.documents[document.number].id]
        status = document.status()
        # By the name in the archive: two documents of a request may have one name.
        statuses[name + PurePosixPath(document.name).suffix] = {"status": status, "errors": document.errors()}
        if status != "failure":
            for suffix, content in document.files(document.conversion.formats):
                yield f"{name}.{suffix}", content
    yield "status.json", iter([msgspec.json.encode(statuses)])


async def _status(server: Server, id: str, owner: str) -> dict[str, Any]:
    with _as_task():
        results = await server.results(id, owner)
    position = None
    if results.row.state == "queued":
        waiting = await asyncio.to_thread(server.jobs.unfinished)
        position = 1 + sum(each.job < results.row.job and each.state == "queued" for each in waiting)
    kind = "convert" if (await _wanted(server, id)).chunking is None else "chunk"
    return task_status(results, position, kind)


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
        await _send(socket, "connection", task=await _status(server, id, owner))
        async for state in _states(server, id, owner, socket):
            await _send(socket, "update", task=state)
    except (UnauthorizedError, NotFoundError) as error:  # the job may also be removed while it is watched
        await _send(socket, "error", error=error.message)
    with _still_there():
        await socket.close()


async def _states(server: Server, id: str, owner: str, socket: WebSocket) -> AsyncIterator[dict[str, Any]]:
    """The states of a task whenever they change, the last one when it has finished. Ends when the client goes."""

    async def gone() -> None:  # messages of the client ("next") have no meaning here
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass

    leaving = asyncio.create_task(gone())
    before = None
    try:
        with server.changes.watched(id) as changed:
            # Until the job ends: a socket that stays open would hold up the end of the server.
            while not server.stopping.is_set():
                # Before the state is read: a change that comes after that wakes the next round.
                changed.clear()
                state = await _status(server, id, owner)
                if state != before:
                    yield state
                    before = state
                if state["task_status"] in ("success", "failure"):
                    return
                waiting = asyncio.create_task(changed.wait())
                await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if leaving.done():
                    return
    finally:
        leaving.cancel()


async def _send(
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
