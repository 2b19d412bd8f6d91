"""Routes of results: pages, images, documents, and all of a job as one file."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from pagemill.document.jobs import Pages
from pagemill.rest.models import ERRORS, answer, returns
from pagemill.rest.parameters import ONLY_KNOWN
from pagemill.rest.results import LONGEST_SIDE, MOST_PAGES, JobResults, split_name
from pagemill.rest.server import Server

SANDBOX = "sandbox; default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'"
"""Content security policy of what comes out of documents: no scripts, no origin, no requests but for pictures."""
_LONG = {"Cache-Control": "private, max-age=3600"}
_EMBEDDED = {"Cross-Origin-Resource-Policy": "cross-origin"}
"""Header of pictures: a sandboxed document has no origin, so that no other value lets it show them."""


def router(server: Server) -> APIRouter:
    """The routes below ``/v1/jobs/{id}`` with results."""
    routes = APIRouter(prefix="/v1/jobs/{id}", tags=["results"], responses=ERRORS, dependencies=[ONLY_KNOWN])
    owner_of = Depends(server.owner)

    @routes.get("/pages", responses={200: returns(Pages)})
    async def pages(
        id: str,
        after: str | None = None,
        limit: Annotated[int, Query(ge=1, le=MOST_PAGES)] = 100,
        status: Literal["done", "failed", "skipped", "running", "waiting"] | None = None,
        owner: str = owner_of,
    ) -> Response:
        """Pages in reading order, also of a job that runs."""
        results = await server.results(id, owner)
        return answer(await asyncio.to_thread(results.pages, after=after, limit=limit, status=status))

    @routes.get("/pages/{n}")
    async def page(id: str, n: int, owner: str = owner_of) -> Response:
        """The record of a page, as in ``ocr_results.jsonl``."""
        results = await server.results(id, owner)
        return Response(await asyncio.to_thread(results.record_json, n), media_type="application/json")

    @routes.get("/pages/{n}/image", response_class=Response)
    async def image(
        request: Request,
        id: str,
        n: int,
        width: Annotated[int | None, Query(ge=16, le=LONGEST_SIDE)] = None,
        owner: str = owner_of,
    ) -> Response:
        """The page as it was read: WebP, its longer side at most 2,000 pixels. Boxes are those of the record."""
        results = await server.results(id, owner)
        data, tag = await results.image(n, width, server.services.decoding, server.image_flight)
        # The image is made first: its tag is the digest of its bytes, as nothing else changes with a retried page.
        if request.headers.get("if-none-match") == f'"{tag}"':
            return Response(status_code=304)
        return Response(data, media_type="image/webp", headers=_LONG | {"ETag": f'"{tag}"'})

    @routes.get("/crops/{name}", response_class=Response)
    @routes.get("/pages/{n}/crops/{name}", response_class=Response, include_in_schema=False)
    async def crop(id: str, name: str, owner: str = owner_of) -> Response:
        """A picture that a record, or a document by its relative link, names."""
        results = await server.results(id, owner)
        data = await asyncio.to_thread(results.crop, name)
        # By content: a name in a record is not proof, and `nosniff` keeps the browser from guessing.
        kind = "image/png" if data.startswith(b"\x89PNG") else "image/jpeg"
        return Response(data, media_type=kind, headers=_LONG | _EMBEDDED)

    @routes.get("/documents/{name}", response_class=StreamingResponse)
    async def document(id: str, name: str, owner: str = owner_of) -> Response:
        """A document of the pages so far: ``{document}.md``, ``.html``, or another format of ``/v1/options``."""
        results = await server.results(id, owner)
        stem, suffix = split_name(name)
        kind, content = await asyncio.to_thread(results.document, stem, suffix)
        headers = {"Content-Security-Policy": SANDBOX, "Content-Disposition": "inline"}
        return StreamingResponse(content, media_type=kind, headers=headers | await shortfall(results))

    @routes.get("/download.zip", response_class=StreamingResponse)
    async def download(id: str, owner: str = owner_of) -> Response:
        """All documents in every format, pictures and records."""
        results = await server.results(id, owner)
        name = quote(f"{results.row.name.rpartition('.')[0] or results.row.name}.zip")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        archive = await asyncio.to_thread(results.archive)
        return StreamingResponse(archive, media_type="application/zip", headers=headers | await shortfall(results))

    return routes


async def shortfall(results: JobResults) -> dict[str, str]:
    """The header of documents that lack pages, or parts of them."""
    lacks = await asyncio.to_thread(results.shortfall)
    return {} if lacks is None else {"Pagemill-Incomplete": lacks}
