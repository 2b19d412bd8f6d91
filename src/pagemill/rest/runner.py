"""Runs jobs: some at once, on shared services, each with a writing thread and a run directory of its own."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from msgspec import structs

from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.reporting import ParseDisplay, RunOutcome
from pagemill.app.run_writer import RunWriter, opened_run
from pagemill.app.status import size_on_disk
from pagemill.document.jobs import JobState
from pagemill.errors import (
    DamagedRunError,
    DifferentRunError,
    InputError,
    NetworkError,
    NoSpaceError,
    PagemillError,
    TooLargeError,
)
from pagemill.parsing.page import ParsedPage
from pagemill.rest.errors import FetchError, HttpError, reported
from pagemill.rest.fetching import FETCH_S, Fetch, fetch, require_urls
from pagemill.rest.jobs import JobFile, JobRow, JobTable
from pagemill.rest.options import PASSWORD, for_clients, job_options
from pagemill.rest.settings import ServeSettings
from pagemill.runtime.flight import Share
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.runtime.supervisor import Life
from pagemill.store.reading import RunReader

log = logging.getLogger(__name__)

_FILE = re.compile(r"(?<!\w)\d{4,}\.\w+")
"""The name of a file of a job here; see :func:`pagemill.rest.uploads.document`."""
RETRY_S = 30.0
"""Seconds after which a job is tried again whose model server does not answer."""


@dataclass(slots=True)
class ActiveJob:
    """A running job and its progress."""

    row: JobRow
    total: int | None = None
    ended: int = 0
    failed: int = 0
    since: float = field(default_factory=time.monotonic)
    ended_before: int = 0
    """Pages that had ended when this process opened the run."""
    pages: dict[str, int] = field(default_factory=dict)
    """Pages of documents, by the document's id."""
    writer: RunWriter | None = None
    stopped: str | None = None
    """Reason for stopping early: ``cancel``, ``shutdown``, ``pages``."""
    fetch: Fetch = field(default_factory=Fetch)
    """How its URLs are fetched."""

    def __post_init__(self) -> None:
        self.total, self.failed = self.row.pages, self.row.failed
        self.ended = self.ended_before = self.row.ended

    def stop(self, why: str) -> None:
        """End it when its pages in flight are finished."""
        self.stopped = self.stopped or why
        self.fetch.abort()
        if self.writer is not None:
            self.writer.stop()

    @property
    def rate(self) -> float | None:
        """Pages per second since this process opened the run; None while there is none."""
        done, seconds = self.ended - self.ended_before, time.monotonic() - self.since
        return done / seconds if done and seconds > 0 else None


class Runner:
    """Starts waiting jobs when there is room, and ends them.

    Args:
        settings: Settings of the server.
        jobs: The table.
        services: Entered and shared.
        life: State of this process; its vitals count the pages of all jobs.
        changed: Called with the id of a job when it or one of its pages has changed.
        ended: Called with the id of a job that has finished.
    """

    def __init__(
        self,
        settings: ServeSettings,
        jobs: JobTable,
        services: Services,
        life: Life,
        *,
        changed: Callable[[str], None],
        ended: Callable[[str], None],
    ) -> None:
        self.active: dict[str, ActiveJob] = {}
        self._settings = settings
        self._jobs = jobs
        self._services = services
        self._life = life
        self._changed = changed
        self._ended = ended
        self._waiting: dict[str, JobRow] = {}
        self._owners: dict[str, Share] = {}
        self._wake = asyncio.Event()
        self._stopping = False
        self._later: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Queue the unfinished jobs of earlier processes, before new ones are accepted: those would run twice."""
        self._waiting = {each.id: each for each in await asyncio.to_thread(self._jobs.unfinished)}

    async def run(self) -> None:
        """Run the loaded jobs, and those that are added, until :meth:`stop`."""
        async with asyncio.TaskGroup() as tasks:
            while not self._stopping:
                # Before the look at what waits: a job that is added during it wakes the next round.
                self._wake.clear()
                while len(self.active) < self._settings.limits.active_jobs and (row := self._next()) is not None:
                    self.active[row.id] = ActiveJob(row)
                    tasks.create_task(self._work(self.active[row.id]))
                await self._wake.wait()

    def add(self, row: JobRow) -> None:
        """Run a job when there is room."""
        self._waiting[row.id] = row
        self._wake.set()

    async def cancel(self, id: str) -> None:
        """Cancel a job; :meth:`run` stores its end when its pages in flight are finished."""
        await asyncio.to_thread(self._jobs.cancel, id)
        if (row := self._waiting.pop(id, None)) is not None:
            try:
                await self._end(ActiveJob(row), JobState.CANCELLED, None)
            except Exception:  # the table cannot be written now: it is cancelled when its turn comes
                self.add(structs.replace(row, cancelled=True))
                raise
        elif (job := self.active.get(id)) is not None:
            job.stop("cancel")

    def stop(self) -> None:
        """Start no more jobs, and end those that run when their pages in flight are finished."""
        self._stopping = True
        for job in self.active.values():
            job.stop("shutdown")
        for task in self._later:
            task.cancel()
        self._wake.set()

    def _next(self) -> JobRow | None:
        """The oldest waiting job of the owner who has the fewest jobs running; not one that is just ending."""
        running = Counter(job.row.owner for job in self.active.values())
        # A job that was retried while it ends must not run twice in one folder.
        ready = (row for row in self._waiting.values() if row.id not in self.active)
        row = min(ready, key=lambda each: (running[each.owner], each.job), default=None)
        return None if row is None else self._waiting.pop(row.id)

    async def _work(self, job: ActiveJob) -> None:
        id = job.row.id
        try:
            await self._run(job)
        except Exception as error:
            try:
                await self._failed(job, error)
            except Exception as error:
                # As after a kill: the table lists it as unfinished, and its run knows how far it is.
                _log(error, "the state of job %s cannot be stored; it will be retried in %g s", id, RETRY_S)
                self._try_later(id)
        finally:
            self.active.pop(id, None)
            self._forget_owner(job.row.owner)
            self._changed(id)
            self._wake.set()

    async def _failed(self, job: ActiveJob, error: Exception) -> None:
        id = job.row.id
        if not isinstance(error, PagemillError):
            log.error("job %s failed by a defect", id, exc_info=error)
            error = PagemillError("the job failed by a defect of pagemill", remedy="Report it with the log.")
        if job.stopped == "cancel":
            await self._end(job, JobState.CANCELLED, None)
        elif job.stopped == "shutdown" and isinstance(error, (NetworkError, NoSpaceError, FetchError)):
            await self._requeue(job)
        elif job.stopped is None and isinstance(error, (NetworkError, NoSpaceError)):
            # It was accepted: it waits until its model server answers, or there is space again.
            log.warning("job %s will be retried in %g s: %s", id, RETRY_S, error.category)
            await self._requeue(job)
            self._try_later(id)
        else:
            await self._end(job, JobState.FAILED, error)

    async def _run(self, job: ActiveJob) -> None:
        row = job.row
        if row.cancelled:
            await self._end(job, JobState.CANCELLED, None)
            return
        await asyncio.to_thread(self._jobs.start, row.id)
        self._changed(row.id)
        documents = await asyncio.to_thread(self._jobs.documents, row.job)
        options = job_options(row.options | ({PASSWORD: row.password} if row.password else {}), self._settings)
        # One more than is allowed, so that a job over the limit can be distinguished from one that is exactly at it.
        limit = self._settings.limits.max_job_pages + 1
        options = replace(options, source=replace(options.source, limit=limit))
        folder = self._settings.jobs_folder / row.id
        await self._fetch(job, folder / "inputs", documents)
        try:
            try:
                outcome = await self._parse(job, folder, documents, options, fresh=False)
            except (DifferentRunError, DamagedRunError) as error:
                if row.retry:
                    error.remedy = "Its results stay as they are; send the failed files as a new job."
                    raise
                # Begun by another version or with another model: results are not mixed. The inputs are there.
                log.warning("job %s starts over: its run is %s", row.id, error.category)
                outcome = await self._parse(job, folder, documents, options, fresh=True)
        except PagemillError as error:
            raise _with_names(error, folder / "inputs", documents) from error
        await self._conclude(job, outcome, folder / "inputs", documents)

    async def _fetch(self, job: ActiveJob, inputs: Path, documents: list[JobFile]) -> None:
        missing = [(document.url, inputs / document.file) for document in documents if document.url is not None]
        missing = [(url, path) for url, path in missing if not path.exists()]
        if not missing:
            return
        require_urls(self._settings.allow_urls)
        limits = self._settings.limits
        deadline = time.monotonic() + limits.upload_timeout_s
        left = limits.max_job_bytes - await asyncio.to_thread(size_on_disk, inputs)
        for url, path in missing:
            most, limit_s = min(limits.max_file_bytes, left), min(FETCH_S, deadline - time.monotonic())
            await asyncio.to_thread(fetch, url, path, most, limit_s=limit_s, by=job.fetch)
            left -= path.stat().st_size

    async def _parse(
        self, job: ActiveJob, folder: Path, documents: list[JobFile], options: ParseOptions, *, fresh: bool
    ) -> RunOutcome:
        row, out = job.row, folder / "run"
        owner = self._owners.setdefault(row.owner, Share())
        directory = DirectoryOptions(report=False, fresh=fresh, retry_failed=row.retry == 1 and not fresh)
        # A worker that died with this run open charges its pages, as `pagemill parse` does; a plain restart does not.
        again = row.opened and not row.retry and not fresh and self._life.death is not None
        async with Pipeline(self._services.borrowed(options.settings), Share(owner)) as pipeline:
            await pipeline.prepare()
            async with opened_run(
                out, directory, pipeline=pipeline, life=self._life, again=again, progress=_Progress(job, self)
            ) as writer:
                await asyncio.to_thread(self._jobs.opened, row.id)
                job.writer = writer
                job.failed = writer.outcome.summary.failed
                if job.stopped is not None:
                    writer.stop()
                return await writer.parse([folder / "inputs" / document.file for document in documents], options)

    async def _conclude(self, job: ActiveJob, outcome: RunOutcome, inputs: Path, documents: list[JobFile]) -> None:
        summary = outcome.summary
        job.ended, job.failed = summary.pages + summary.skipped, summary.failed
        most = self._settings.limits.max_job_pages
        if job.stopped == "shutdown":
            await self._requeue(job)  # it is resumed by the next start
            return
        if job.stopped == "cancel":
            await self._end(job, JobState.CANCELLED, None)
        elif job.stopped == "pages" or job.ended > most:
            error: PagemillError = TooLargeError(f"the job has more than {most:,} pages", remedy="Send several jobs.")
            await self._end(job, JobState.FAILED, error)
        elif summary.failed and summary.failed == summary.pages:
            place, message, remedy = outcome.failures[0] if outcome.failures else ("", "no page could be read", None)
            error = _with_names(InputError(message, remedy=remedy), inputs, documents)
            error.category = next(iter(summary.failures_by_kind), "input")
            name = next(
                (document.name for document in documents if PurePath(place).name.startswith(document.id)), job.row.name
            )
            if name not in error.message:
                error.message = f"{name}: {error.message}"
            await self._end(job, JobState.FAILED, error)
        else:
            job.total = job.ended
            # Pages of earlier processes were never seen by this one: their documents are counted in the run.
            if job.ended_before:
                job.pages |= await asyncio.to_thread(_document_pages, inputs.parent / "run")
            await self._end(job, JobState.FINISHED, None)

    async def _requeue(self, job: ActiveJob) -> None:
        await asyncio.to_thread(self._jobs.requeue, job.row.id, pages=job.total, ended=job.ended, failed=job.failed)

    def _try_later(self, id: str) -> None:
        again = asyncio.create_task(self._add_later(id))
        self._later.add(again)
        again.add_done_callback(self._later.discard)

    async def _add_later(self, id: str) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            try:
                row = await asyncio.to_thread(self._jobs.get, id)
            except Exception as error:
                _log(error, "job %s cannot be read; it will be retried in %g s", id, RETRY_S)
                continue
            if row is not None and not row.has_ended:
                self.add(row)
            return

    async def _end(self, job: ActiveJob, state: JobState, error: PagemillError | None) -> None:
        id = job.row.id
        size = await asyncio.to_thread(size_on_disk, self._settings.jobs_folder / id)
        await asyncio.to_thread(
            self._jobs.end,
            job.row,
            state,
            pages=job.total,
            ended=job.ended,
            failed=job.failed,
            size=size,
            error=None if error is None else reported(error),
            document_pages=job.pages,
        )
        log.info("job %s %s: %d pages, %d failed", id, state, job.ended, job.failed)
        self._changed(id)
        self._ended(id)

    def page_ended(self, job: ActiveJob) -> None:
        """A page of a job has finished."""
        if job.total is not None and job.total > self._settings.limits.max_job_pages:
            job.stop("pages")
        self._changed(job.row.id)

    def _forget_owner(self, owner: str) -> None:
        if all(job.row.owner != owner for job in self.active.values()):
            self._owners.pop(owner, None)


class _Progress(ParseDisplay):
    """Counts the pages of a job."""

    def __init__(self, job: ActiveJob, runner: Runner) -> None:
        self._job = job
        self._runner = runner

    def opened(self, finished_before: int) -> None:
        """The run is open."""
        self._job.ended = self._job.ended_before = finished_before
        self._job.since = time.monotonic()

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        """A page is finished and written."""
        job = self._job
        job.ended += 1
        job.failed += page.record.status == "failed"
        job.total = total
        if page.record.status == "failed" and page.record.page_number is None:
            job.pages[page.document.doc_id] = 0  # the file was not opened
        elif page.document.page_count is not None:
            job.pages[page.document.doc_id] = page.document.page_count
        self._runner.page_ended(job)


def _document_pages(out: Path) -> dict[str, int]:
    """Pages of each document of a run that is complete: earlier processes knew those that they finished."""
    with RunReader.open(out) as reader:
        counted = "SELECT doc_id, sum(page > 0) FROM pages JOIN documents USING (document) GROUP BY document"
        return dict(reader.query(counted))


def _log(error: Exception, message: str, *values: object) -> None:
    """Log an error, with its traceback where it is a defect."""
    log.error(f"{message}: %s", *values, error, exc_info=not isinstance(error, PagemillError))


def with_names(text: str, inputs: Path, documents: list[JobFile]) -> str:
    """A message with the client's names of files, and without the folders of the server."""
    names = {document.file: document.name for document in documents}
    for folder in (f"{inputs}/", str(inputs), str(inputs.parent)):
        text = text.replace(folder, "")
    # All in one go: a client may call its file as another one is called here.
    return _FILE.sub(lambda match: names.get(match[0], match[0]), text)


def _with_names(error: PagemillError, inputs: Path, documents: list[JobFile]) -> PagemillError:
    # Made for clients already: it names no file of the server.
    if isinstance(error, HttpError):
        return error
    error.message = with_names(error.message, inputs, documents)
    error.remedy = error.remedy and for_clients(with_names(error.remedy, inputs, documents))
    return error
