"""Search over the jobs of an owner. The index is derived: it is brought up to date when the server starts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from pagemill.document.jobs import SearchResult, Snippet
from pagemill.errors import OutputError, PagemillError
from pagemill.rest.errors import UnavailableError
from pagemill.rest.jobs import JobRow, JobTable
from pagemill.rest.results import PAGES_OF_A_SOURCE, JobResults
from pagemill.retrieval.hits import SearchHit
from pagemill.retrieval.library import Library
from pagemill.retrieval.ranking import DEPTH

log = logging.getLogger(__name__)

_NICE = 10
_INDEXING_S = 10.0
"""Longest time that a search in a job waits for it to be indexed."""
_SETTLING_S = 1.0
"""The same of a search in all jobs, which has hits to show meanwhile. Not measured."""


class JobSearch:
    """Keeps the index of all jobs up to date, on one thread of low priority, and searches it.

    Args:
        folder: Folder of the index.
        jobs: The job table.
        results_of: The results of a job; blocks.
        stopped: Whether the server is shutting down.
    """

    def __init__(
        self, folder: Path, jobs: JobTable, results_of: Callable[[JobRow], JobResults], stopped: Callable[[], bool]
    ) -> None:
        self._folder = folder
        self._jobs = jobs
        self._results_of = results_of
        self._stopped = stopped
        self._library: Library | None = None
        self._opening = threading.Lock()

    async def __aenter__(self) -> Self:
        """Index missing jobs in the background."""
        # One: SQLite has one writer, and jobs are indexed in the order in which they ended.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pagemill.rest.search", initializer=_be_nice)
        self._thread.submit(self._logged, self._bring_up_to_date)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop. The rest is indexed at the next start of the server."""
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)

    async def search(
        self, owner: str, query: str, *, collection: str | None, job: JobRow | None, languages: list[str], limit: int
    ) -> list[SearchResult]:
        """Find pages; see :meth:`pagemill.retrieval.library.Library.search`.

        Raises:
            UnavailableError: The job has finished, but others are put into the index before it.
        """
        if job is not None and job.has_ended and not await asyncio.to_thread(self._is_complete, job):
            # It has just ended: no hits would mean that its pages do not have the words.
            await asyncio.wait({asyncio.create_task(self.put(job.id))}, timeout=_INDEXING_S)
            if not await asyncio.to_thread(self._is_complete, job):
                raise UnavailableError(
                    "the job is not in the search index yet", remedy="Search again later.", retry_after_s=10
                )
        if job is None:
            await self._drained()
        run = job.id if job else None

        def found() -> list[SearchResult]:
            top = limit
            while True:
                hits = self._index().search(
                    query, owner=owner, collection=collection, run=run, languages=languages, top=top
                )
                shown = [hit for hit in map(self._shown, hits) if hit]
                # Pages of jobs that were just removed are still in the index: others take their places.
                if len(shown) >= limit or len(hits) < top or top == DEPTH:
                    return shown[:limit]
                top = min(2 * top, DEPTH)

        return await asyncio.to_thread(found)

    async def _drained(self) -> None:
        """Wait briefly for jobs that have just finished: a search then is expected to find them."""
        with contextlib.suppress(RuntimeError):  # closed
            await asyncio.wait({asyncio.wrap_future(self._thread.submit(lambda: None))}, timeout=_SETTLING_S)

    def _is_complete(self, row: JobRow) -> bool:
        """Whether all pages of a job that has finished are in the index."""
        if self._index().runs().get(row.id) == _stamp(row):
            return True
        with self._results_of(row).reader() or contextlib.nullcontext() as reader:
            return reader is None  # it ended before there were any

    def _index(self) -> Library:
        with self._opening:
            if self._library is None:
                self._library = Library(self._folder)
            return self._library

    async def put(self, id: str) -> None:
        """Bring the index up to date with a job that has finished, after those that ended before."""
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):  # closed: the next start does it
            await asyncio.wrap_future(self._thread.submit(self._logged, lambda: self._put_job(id)))

    def remove(self, id: str) -> None:
        """Remove a job from the index, later: a search leaves out jobs that are gone."""
        with contextlib.suppress(RuntimeError):  # closed: the next start does it
            self._thread.submit(self._logged, lambda: self._index().remove(id))

    def _logged(self, work: Callable[[], object]) -> None:
        try:
            work()
        except PagemillError as error:
            log.warning("the search index is out of date: %s", error.message)
        except Exception:
            log.exception("internal error: the search index is out of date")

    def _put_job(self, id: str) -> None:
        row = self._jobs.get(id)
        if row is None:  # removed meanwhile
            self._index().remove(id)
            return
        reader = self._results_of(row).reader()
        if reader is None:
            return
        with reader:
            damages = self._index().put(
                id,
                reader,
                owner=row.owner,
                collection=row.collection or "",
                stamp=_stamp(row),
                stopped=self._stopped,
            )
        for message in damages:
            log.warning("job %s: a page is not in the search index: %s", id, message)

    def _bring_up_to_date(self) -> None:
        known = self._index().runs()
        # Jobs that were removed while the server was down, or just before it died.
        for id in known.keys() - self._jobs.ids():
            self._index().remove(id)
        for id, _, _ in self._jobs.ended():
            row = self._jobs.get(id)
            if row is not None and known.get(id) != _stamp(row) and not self._stopped():
                self._logged(lambda id=id: self._put_job(id))  # type: ignore[misc]

    def _shown(self, hit: SearchHit) -> SearchResult | None:
        """A hit as the API gives it; None if its job was removed meanwhile."""
        row = self._jobs.get(hit.run)
        results = None if row is None else self._results_of(row)
        reader = None if results is None else results.reader()
        if results is None or reader is None:
            return None
        with reader:
            place = reader.query("SELECT source, page FROM pages WHERE page_id = ?", (hit.page_id,))
            try:
                page = reader.page(hit.page_id)
            except OutputError:
                return None
        if not place:
            return None
        region = next((region for region in page.regions if region.index == hit.region), None)
        return SearchResult(
            job=hit.run,
            document=page.doc_id,
            name=results.name_of(page.doc_id),
            n=place[0][0] * PAGES_OF_A_SOURCE + place[0][1],
            page_number=hit.page_number,
            score=hit.score,
            snippet=Snippet(text=hit.snippet, marks=list(hit.marks)),
            box=None if region is None else region.bbox,
            bbox_2d=hit.bbox_2d,
            region_id=hit.region,
            label=hit.label,
        )


def _stamp(row: JobRow) -> str:
    """Changes whenever a job has finished."""
    return f"{row.finished} {row.ended} {row.failed}"


def _be_nice() -> None:
    """Indexing gives way to parsing."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
