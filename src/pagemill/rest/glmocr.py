"""``POST /glmocr/parse`` of GLM-OCR's own server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from pagemill.document.jobs import JobState
from pagemill.document.labels import TASK_OF_LABEL, Task
from pagemill.document.page import PageResult, Status
from pagemill.errors import InputError, PagemillError, UsageError
from pagemill.rest.errors import sentence, status_of
from pagemill.rest.result_routes import shortfall
from pagemill.rest.results import JobResults
from pagemill.rest.sending import Sending, decoded, from_base64, sending, waited
from pagemill.rest.server import Server

MAX_PAGES = 2000
"""Pages of an answer, which is made in memory."""
_DATA_URI = re.compile(r"data:(?P<kind>[\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII)
_SUFFIXES = {
    "application/pdf": ".pdf",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/jpg": ".jpg",
    "image/webp": ".webp",
    "image/bmp": ".bmp",
    "image/tiff": ".tiff",
}


class ParseRequest(msgspec.Struct):
    """A request with images in its body."""

    images: list[str] | str


def router(server: Server) -> APIRouter:
    """The route of GLM-OCR's server."""
    routes = APIRouter(tags=["glmocr"])
    owner_of = Depends(server.owner)

    @routes.post("/glmocr/parse")
    async def parse(request: Request, owner: str = owner_of) -> Response:
        """Parse images and PDFs, and wait: data URIs or URLs in JSON, or files in multipart/form-data."""
        try:
            async with sending(server, owner) as job:
                await _receive(job, request)
                row = await job.submit({})
            results = await waited(server, row, f"See /v1/jobs/{row.id}.")
            return JSONResponse(await asyncio.to_thread(_answer, results), headers=await shortfall(results))
        except PagemillError as error:  # their clients expect a text
            return JSONResponse({"error": sentence(error.message, error.remedy)}, status_code=status_of(error))

    return routes


async def _receive(job: Sending, request: Request) -> None:
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        for url in (await job.form(request, frozenset({"urls"}))).get("urls", ()):
            job.add_url(url.strip())
        return
    async with job.body(request) as body:
        await _receive_images(job, body)


async def _receive_images(job: Sending, body: bytes) -> None:
    images = decoded(body, ParseRequest, "the body is not a JSON object with images").images
    del body
    for image in [images] if isinstance(images, str) else images:
        if image.startswith(("http://", "https://")):
            job.add_url(image)
            continue
        match = _DATA_URI.match(image)
        if match is None:  # a path, of which no server should read what is there
            raise UsageError("an image is neither a data URI nor an http(s) URL", remedy="Send its content.")
        content = from_base64(image[match.end() :])
        number = len(job.documents) + 1
        await job.add_file(f"image-{number}{_SUFFIXES.get((match['kind'] or '').lower(), '')}", content)


def _answer(results: JobResults) -> dict[str, Any]:
    """The answer when a job has finished. Raises why one of its pages was not read: their server gives no text then."""
    if results.row.error is not None:
        error = results.row.error
        raise InputError(error.message, remedy=error.remedy)
    if results.row.state is not JobState.FINISHED:
        raise InputError("the job was cancelled")
    reader = results.reader()
    if reader is None:
        raise InputError("the job has no results")
    found: list[list[list[dict[str, Any]]]] = []
    texts: list[str] = []
    count = 0
    with reader:
        for document in results.documents:
            pages = []
            markdown = []
            for page in results.pages_of(reader, document):
                count += 1
                if count > MAX_PAGES:
                    raise UsageError(
                        f"the answer has over {MAX_PAGES:,} pages", remedy=f"See /v1/jobs/{results.row.id}."
                    )
                if results.named(page).status is Status.FAILED:
                    reason = page.errors[0].message if page.errors else "a page could not be read"
                    source = "" if page.source in reason else f"{page.source}: "
                    raise InputError(f"{source}{reason}", remedy=f"See /v1/jobs/{results.row.id}/pages.")
                pages.append(list(_regions(page)))
                markdown.append(page.markdown)
            found.append(pages)
            texts.append("\n\n".join(markdown))
    return {"json_result": found[0] if len(found) == 1 else found, "markdown_result": "\n\n---\n\n".join(texts)}


def _regions(page: PageResult) -> Iterator[dict[str, Any]]:
    """The regions of a page as GLM-OCR's server gives them: without running heads, and with its coarse labels."""
    index = 0
    for region in page.regions:
        task = TASK_OF_LABEL[region.label]
        if task is Task.ABANDON or (task is not Task.SKIP and not region.content):
            continue
        label = "image" if task is Task.SKIP else task.value
        shown = {"index": index, "label": label, "native_label": region.label.value, "content": region.content}
        yield shown | {"bbox_2d": list(region.bbox_2d)}
        index += 1
