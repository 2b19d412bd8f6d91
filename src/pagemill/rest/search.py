"""Search over the jobs of an owner. The index is derived: it is brought up to date when the server starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from pagemill.errors import OutputError, PagemillError
from pagemill.rest.errors import UnavailableError
from pagemill.rest.models import ErrorAnswer
from pagemill.rest.results import PAGES_OF_A_SOURCE
from pagemill.rest.sending import MAX_NAME
from pagemill.rest.server import Server
from pagemill.retrieval.library import DEPTH, Library, LibraryHit

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from pagemill.rest.jobs import JobRow

    T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_HITS = 200
MAX_QUERY = 1000
"""Characters."""
_NICE = 10
_INDEXING_S = 10.0
"""Longest time that a search in a job waits for it to be indexed."""
_ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"model": ErrorAnswer}}


class Snippet(BaseModel):
    """A text around the best hits."""

    text: str
    marks: list[tuple[int, int]] = Field(description="Start and end of each hit, in code points.")


class Hit(BaseModel):
    """A page that was found."""

    job: str
    document: str
    name: str
    n: int
    page_number: int | None
    score: float
    snippet: Snippet
    box: tuple[float, float, float, float] | None = Field(description="Of the best region, in pixels of the page.")
    region_id: int | None
    label: str | None


class Hits(BaseModel):
    """Pages that were found, best first."""

    hits: list[Hit]


class Collection(BaseModel):
    """A collection of jobs."""

    model_config = ConfigDict(json_schema_extra={"example": {"name": "reports", "jobs": 3, "pages": 240}})
    name: str
    jobs: int
    pages: int


class Collections(BaseModel):
    """The collections of the key."""

    collections: list[Collection]


class JobSearch:
    """Keeps the index of all jobs up to date, on one thread of low priority, and searches it.

    Args:
        server: Its jobs; not entered yet.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._library: Library | None = None
        self._opening = threading.Lock()
        server.on_finished(self._put)
        server.on_removed(self._remove)
        server.add_service(self)

    async def __aenter__(self) -> JobSearch:
        """Index what is missing, beside everything else."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pagemill.rest.search", initializer=_be_nice)
        self._thread.submit(self._logged, self._bring_up_to_date)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop. What is not indexed then is when the server starts again."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    async def search(
        self, owner: str, query: str, *, collection: str | None, job: str | None, languages: list[str], limit: int
    ) -> list[Hit]:
        """Find pages; see :meth:`pagemill.retrieval.library.Library.search`.

        Raises:
            NotFoundError: There is no such job.
            UnavailableError: The job has ended, but others are put into the index before it.
        """
        if job is not None:
            row = await self._server.get(job, owner)
            if row.has_ended and not await asyncio.to_thread(self._is_complete, row):
                # It has just ended: no hits would mean that its pages do not have the words.
                await asyncio.wait({asyncio.create_task(self._put(job))}, timeout=_INDEXING_S)
                if not await asyncio.to_thread(self._is_complete, row):
                    raise UnavailableError(
                        "the job is not in the search index yet", remedy="Search again later.", retry_after_s=10
                    )

        def found() -> list[Hit]:
            top = limit
            while True:
                hits = self._index().search(
                    query, owner=owner, collection=collection, run=job, languages=languages, top=top
                )
                shown = [hit for hit in map(self._shown, hits) if hit]
                # Pages of jobs that were just removed are still in the index: others take their places.
                if len(shown) >= limit or len(hits) < top or top == DEPTH:
                    return shown[:limit]
                top = min(2 * top, DEPTH)

        return await asyncio.to_thread(found)

    def _is_complete(self, row: JobRow) -> bool:
        """Whether all pages of a job that has ended are in the index."""
        if self._index().runs().get(row.id) == _stamp(row):
            return True
        reader = self._server.run_reader(row.id)
        if reader is not None:
            reader.close()
        return reader is None  # it ended before there were any

    def _index(self) -> Library:
        with self._opening:
            if self._library is None:
                self._library = Library(self._server.settings.data / "search")
            return self._library

    async def _put(self, id: str) -> None:
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):  # closed: the next start does it
            await asyncio.wrap_future(self._thread.submit(self._logged, lambda: self._put_job(id)))

    async def _remove(self, id: str) -> None:
        with contextlib.suppress(RuntimeError):  # closed: the next start does it
            # Not waited for: a search leaves out jobs that are gone.
            self._thread.submit(self._logged, lambda: self._index().remove(id))

    def _logged(self, work: Callable[[], object]) -> None:
        try:
            work()
        except PagemillError as error:
            log.warning("the search index is not up to date: %s", error.message)
        except Exception:
            log.exception("the search index is not up to date, by a defect")

    def _put_job(self, id: str) -> None:
        row = self._server.jobs.get(id)
        if row is None:  # removed meanwhile
            self._index().remove(id)
            return
        reader = self._server.run_reader(id)
        if reader is None:
            return
        with reader:
            stamp = _stamp(row)
            damages = self._index().put(
                id,
                reader,
                owner=row.owner,
                collection=row.collection or "",
                stamp=stamp,
                stopped=self._server.stopping.is_set,
            )
        for message in damages:
            log.warning("job %s: a page is not in the search index: %s", id, message)

    def _bring_up_to_date(self) -> None:
        known = self._index().runs()
        ended = {id for id, _, _ in self._server.jobs.ended()}
        for id in known.keys() - self._server.jobs.ids():
            self._index().remove(id)
        for id in ended:
            row = self._server.jobs.get(id)
            if row is not None and known.get(id) != _stamp(row) and not self._server.stopping.is_set():
                self._logged(lambda id=id: self._put_job(id))  # type: ignore[misc]

    def _shown(self, hit: LibraryHit) -> Hit | None:
        """A hit as the API gives it; None if its job was removed meanwhile."""
        row = self._server.jobs.get(hit.run)
        reader = None if row is None else self._server.run_reader(hit.run)
        if row is None or reader is None:
            return None
        names = {each.id: each.name for each in self._server.jobs.documents(row.job)}
        with reader:
            place = reader.query("SELECT source, page FROM pages WHERE page_id = ?", (hit.page_id,))
            try:
                page = reader.page(hit.page_id)
            except OutputError:
                return None
        if not place:
            return None
        found = hit.found
        region = next((each for each in page.regions if each.index == found.region), None)
        return Hit(
            job=hit.run,
            document=page.doc_id,
            name=names.get(page.doc_id, page.doc_id),
            n=place[0][0] * PAGES_OF_A_SOURCE + place[0][1],
            page_number=found.page_number,
            score=found.score,
            snippet=Snippet(text=found.snippet, marks=list(found.marks)),
            box=None if region is None else region.bbox,
            region_id=found.region,
            label=found.label,
        )

    async def collections(self, owner: str) -> list[Collection]:
        """The collections of an owner, by name."""
        found = await asyncio.to_thread(self._server.jobs.collections, owner)
        return [Collection(name=name, jobs=jobs, pages=pages) for name, jobs, pages in found]


def router(server: Server, search: JobSearch) -> APIRouter:
    """The routes of the search."""
    routes = APIRouter(prefix="/v1", tags=["search"], responses=_ERRORS)
    owner_of = Depends(server.owner)

    @routes.get("/search")
    async def find(
        q: Annotated[str, Query(min_length=1, max_length=MAX_QUERY)],
        collection: Annotated[str | None, Query(max_length=MAX_NAME)] = None,
        job: Annotated[str | None, Query(max_length=MAX_NAME, description="The id of a job.")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_HITS)] = 20,
        languages: Annotated[str | None, Query(description="Codes with commas, such as en,ko.")] = None,
        owner: str = owner_of,
    ) -> Hits:
        """Find pages of jobs that have ended, by words in any language and by similar spelling."""
        codes = [code.strip() for code in (languages or "").split(",") if code.strip()]
        hits = await search.search(owner, q, collection=collection, job=job, languages=codes, limit=limit)
        return Hits(hits=hits)

    @routes.get("/collections")
    async def collections(owner: str = owner_of) -> Collections:
        """The collections of the key."""
        return Collections(collections=await search.collections(owner))

    return routes


def _stamp(row: JobRow) -> str:
    """Changes whenever a job has ended."""
    return f"{row.finished} {row.ended} {row.failed}"


def _be_nice() -> None:
    """Indexing gives way to parsing."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
