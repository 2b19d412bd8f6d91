"""Routes of the search over jobs, and of their collections."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from pagemill.document.jobs import Collection, Collections, Hits
from pagemill.rest.models import ERRORS, answer, returns
from pagemill.rest.parameters import ONLY_KNOWN
from pagemill.rest.sending import MAX_NAME
from pagemill.rest.server import Server

MAX_HITS = 200
MAX_QUERY = 1000
"""Characters."""


def router(server: Server) -> APIRouter:
    """The routes of the search."""
    routes = APIRouter(prefix="/v1", tags=["search"], responses=ERRORS, dependencies=[ONLY_KNOWN])
    owner_of = Depends(server.owner)

    @routes.get("/search", responses={200: returns(Hits)})
    async def find(
        q: Annotated[str, Query(min_length=1, max_length=MAX_QUERY)],
        collection: Annotated[str | None, Query(max_length=MAX_NAME)] = None,
        job: Annotated[str | None, Query(max_length=MAX_NAME, description="The id of a job.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = 20,
        languages: Annotated[str | None, Query(description="Codes with commas, such as en,ko.")] = None,
        owner: str = owner_of,
    ) -> Response:
        """Find pages of jobs that have finished, by words in any language and by similar spelling."""
        codes = [code.strip() for code in (languages or "").split(",") if code.strip()]
        row = None if job is None else await server.get(job, owner)
        hits = await server.search.search(owner, q, collection=collection, job=row, languages=codes, limit=limit)
        return answer(Hits(hits))

    @routes.get("/collections", responses={200: returns(Collections)})
    async def collections(owner: str = owner_of) -> Response:
        """The collections of the key."""
        found = await asyncio.to_thread(server.jobs.collections, owner)
        return answer(Collections([Collection(name=name, jobs=jobs, pages=pages) for name, jobs, pages in found]))

    return routes
