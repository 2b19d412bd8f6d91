"""The server behind the routes: jobs, results, access, and periodic clean-up."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self

import msgspec
from starlette.requests import HTTPConnection  # FastAPI reads the annotation

from pagemill.blocking import cancelled
from pagemill.document.jobs import Job, JobState
from pagemill.errors import NoSpaceError, OutputError
from pagemill.rest.errors import ConflictError, NotFoundError, TooManyError, UnavailableError
from pagemill.rest.events import Changes
from pagemill.rest.jobs import JobRow, JobTable
from pagemill.rest.keys import KeyRing
from pagemill.rest.models import job_model
from pagemill.rest.results import MOST_PAGES, JobResults
from pagemill.rest.runner import ActiveJob, Runner
from pagemill.rest.search import JobSearch
from pagemill.rest.settings import ServeSettings
from pagemill.runtime.flight import FlightControl
from pagemill.runtime.services import Services
from pagemill.runtime.supervisor import Life
from pagemill.store.files import output_errors
from pagemill.store.lock import RunLock

log = logging.getLogger(__name__)

_SWEEP_S = 300.0
_RETRY_AFTER_S = 10
_LEAST_FREE_BYTES = 512 * 2**20
"""Minimum free space for accepting jobs: it is reserved for accepted ones."""
_JOB_EVERY_S = 0.5
"""Minimum seconds between two state events of a job that is watched."""
_ID = re.compile("[0-9a-f]{20}")
"""Folders of jobs; see :func:`pagemill.rest.jobs.new_id`."""
_REMOVING = "removing"
"""Marks the folder of a job that is being removed."""
_FIRST_FILES = ("lock", "salt", "jobs", "lost+found")
"""Entries allowed in a folder without a table: created by a server that was killed early, or by a file system."""
_BODIES_AT_ONCE = 2
"""JSON bodies with files that are in memory at once."""


class Server:
    """An async context manager: jobs run while it is entered.

    Args:
        settings: Settings of the server.
        life: State of this process.
    """

    def __init__(self, settings: ServeSettings, life: Life | None = None) -> None:
        self.settings = settings
        self.life = life or Life()
        self.stopping = asyncio.Event()
        """Set when the server is shutting down: event streams end, and no job is accepted."""
        self.broken = asyncio.Event()
        """Set when the runner has died of a defect: another process has to resume the jobs."""
        self.ready = False
        self.counts: Counter[str] = Counter()
        """For the metrics."""
        self.bodies = asyncio.Semaphore(_BODIES_AT_ONCE)
        self.changes = Changes()
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        folder = self.settings.jobs_folder
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(_make_folders, self.settings.data, folder)
            # Before the table is opened: a second server on the same data would run every job again.
            stack.enter_context(await asyncio.to_thread(RunLock, self.settings.data / "lock"))
            self.keys = await asyncio.to_thread(KeyRing, self.settings.api_keys, self.settings.data)
            self.jobs = await asyncio.to_thread(JobTable, self.settings.data / "jobs.sqlite")
            stack.callback(self.jobs.close)
            await asyncio.to_thread(_remove_unknown, folder, self.jobs.ids())
            self.services = await stack.enter_async_context(
                Services(self.settings.parse, self.settings.runtime, self.settings.layout)
            )
            await self.services.prepare()
            await self.services.share()
            self.search = await stack.enter_async_context(
                JobSearch(self.settings.data / "search", self.jobs, self.results_of, self.stopping.is_set)
            )
            # Images that clients look at are decoded beside the pages of jobs, but few at once.
            self.image_flight = FlightControl(max_pages=4, max_bytes=2**30)
            self.runner = Runner(
                self.settings, self.jobs, self.services, self.life, changed=self.changes.notify, ended=self._ended
            )
            await self.runner.load()
            self._running = asyncio.create_task(self.runner.run())
            self._running.add_done_callback(self._runner_ended)
            self._sweeping = asyncio.create_task(self._sweep_now_and_then())
            stack.push_async_callback(self._stop)
            self.ready = True
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def stop(self) -> None:
        """Accept no more jobs, end event streams, and let the pages in flight finish. Idempotent."""
        self.stopping.set()
        self.changes.notify_all()
        self.runner.stop()
        self.services.stop_waiting()  # no page waits for a model server that is down

    async def require_ready(self) -> None:
        """Check that the server accepts jobs.

        Raises:
            UnavailableError: The server is starting or stopping, or its runner has died.
            NoSpaceError: The disk is nearly full.
        """
        if not self.ready or self.stopping.is_set():
            raise UnavailableError("the server is starting or stopping", retry_after_s=5)
        if (await asyncio.to_thread(shutil.disk_usage, self.settings.data)).free < _LEAST_FREE_BYTES:
            raise NoSpaceError("the server's disk is nearly full", remedy="Remove jobs, or free some space.")

    async def owner(self, request: HTTPConnection) -> str:
        """The owner that a request belongs to; in routes: ``Depends(server.owner)``.

        Raises:
            UnauthorizedError: The key is missing or wrong.
        """
        return self.keys.owner(request.headers)

    @contextlib.asynccontextmanager
    async def accepting(self, owner: str) -> AsyncIterator[None]:
        """Count a job as waiting while it is received in the block.

        Raises:
            TooManyError: There are too many jobs.
            PagemillError: See :meth:`require_ready`.
        """
        await self.require_ready()
        limits, waiting = self.settings.limits, await asyncio.to_thread(self.jobs.count_unfinished)
        refusal = None
        # Those that are being received count as well: a thousand uploads at once would all find room.
        if sum(waiting.values()) + self._accepting.total() >= limits.max_queued:
            refusal = "the queue is full", "Try again later."
        elif waiting.get(owner, 0) + self._accepting[owner] >= limits.max_jobs_per_key:
            refusal = f"{limits.max_jobs_per_key:,} jobs of this key are not finished", "Wait until some are."
        if refusal is not None:
            self.counts["refused"] += 1
            raise TooManyError(refusal[0], remedy=refusal[1], retry_after_s=_RETRY_AFTER_S)
        self._accepting[owner] += 1
        try:
            yield
        finally:
            self._accepting[owner] -= 1

    async def discard(self, id: str) -> None:
        """Delete the folder of a job that was not accepted; not that of one that was."""
        if await asyncio.to_thread(self.jobs.get, id) is None:
            await asyncio.to_thread(shutil.rmtree, self.settings.jobs_folder / id, ignore_errors=True)

    async def get(self, id: str, owner: str) -> JobRow:
        """A job of an owner.

        Raises:
            NotFoundError: There is none.
        """
        row = await asyncio.to_thread(self.jobs.get, id, owner)
        if row is None:
            raise NotFoundError("there is no such job", remedy="Check the id; the job may have been removed.")
        return row

    async def results(self, id: str, owner: str) -> JobResults:
        """What a job has produced so far.

        Raises:
            NotFoundError: There is no such job.
        """
        return await asyncio.to_thread(self.results_of, await self.get(id, owner))

    def results_of(self, row: JobRow) -> JobResults:
        """What a job has produced so far. Blocks."""
        return JobResults(row, self.jobs.documents(row.job), self.settings.jobs_folder / row.id)

    def active(self, id: str) -> ActiveJob | None:
        """The progress of a running job."""
        return self.runner.active.get(id)

    async def job(self, row: JobRow) -> Job:
        """A job as clients get it."""
        documents = await asyncio.to_thread(self.jobs.documents, row.job)
        return job_model(row, documents, self.active(row.id))

    async def events(self, id: str, owner: str, after: str = "") -> AsyncIterator[tuple[str, str | None, bytes]]:
        """Events of a job until it finishes: kind (``page``, ``job``), id, data as JSON.

        Events come out of the run directory, not of memory: a client that was away, or whose server was restarted,
        asks for those after the last one that it has, and misses none. Of a job that has started over it gets all.

        Args:
            id: The job.
            owner: The job's owner.
            after: Id of the last event that is known already.
        """
        with self.changes.watched(id) as changed:
            while True:
                changed.clear()
                # The state first: pages that end after it was read are in the next round.
                try:
                    results = await self.results(id, owner)
                except NotFoundError:  # it was removed
                    return
                ended = results.row.has_ended
                while pages := await asyncio.to_thread(results.events, after):
                    for after, page in pages:
                        yield "page", after, msgspec.json.encode(page)
                    if len(pages) < MOST_PAGES:
                        break
                yield "job", None, msgspec.json.encode(await self.job(results.row))
                if ended or self.stopping.is_set():
                    return
                await asyncio.sleep(_JOB_EVERY_S)
                await changed.wait()

    async def wait(self, id: str, owner: str, timeout_s: float) -> JobRow:
        """Wait until a job has finished, or for ``timeout_s``, and return it as it is then."""
        with contextlib.suppress(TimeoutError), self.changes.watched(id) as changed:
            async with asyncio.timeout(timeout_s):
                while not (await self.get(id, owner)).has_ended and not self.stopping.is_set():
                    await changed.wait()
                    changed.clear()
        return await self.get(id, owner)

    async def cancel(self, id: str, owner: str) -> JobRow:
        """Cancel a job: it ends when its pages in flight are finished."""
        await self.get(id, owner)
        await self.runner.cancel(id)
        return await self.get(id, owner)

    async def retry(self, id: str, owner: str, password: str | None = None) -> JobRow:
        """Parse the failed pages of a job again.

        Args:
            id: The job.
            owner: The job's owner.
            password: Instead of the one that came with the job.

        Raises:
            ConflictError: It has not ended, or no page failed.
        """
        row = await self.get(id, owner)
        if row.state is JobState.FINISHED and not row.failed:
            raise ConflictError("no page of the job failed", remedy="There is nothing to parse again.")
        async with self.accepting(owner):
            if not await asyncio.to_thread(self.jobs.retry, id, password):
                raise ConflictError("the job has not finished", remedy="Wait, or cancel it.")
        row = await self.get(id, owner)
        self.runner.add(row)
        self.changes.notify(id)
        return row

    async def remove(self, id: str) -> None:
        """Delete a job that has finished, with its files.

        Raises:
            ConflictError: It has not ended, or not any more.
        """

        def forget() -> bool:
            mark = self.settings.jobs_folder / id / _REMOVING  # the next start deletes the rest after a kill
            with contextlib.suppress(OSError):  # the disk may be full
                mark.touch()
            if self.jobs.remove(id):
                return True
            mark.unlink(missing_ok=True)
            return False

        if not await asyncio.to_thread(forget):
            raise ConflictError("the job has not finished", remedy="Wait, or cancel it.")
        self.changes.notify(id)
        await self.discard(id)
        self.counts["removed"] += 1
        self.search.remove(id)

    async def sweep(self) -> None:
        """Remove the jobs that ended long ago, and the oldest of those that take too much space."""
        retention = self.settings.retention
        total = await asyncio.to_thread(self.jobs.stored_bytes)
        for id, finished, size in await asyncio.to_thread(self.jobs.ended):
            # By age first, then by space: the list is oldest first, so that the first job that may stay ends the sweep.
            is_old = finished < time.time() - retention.keep_days * 86_400
            if not is_old and total <= retention.keep_gib * 2**30:
                return
            with contextlib.suppress(ConflictError):  # it was just retried
                await self.remove(id)
                total -= size

    def _ended(self, id: str) -> None:
        """A job has finished: put it into the index, beside the runner."""
        self.counts["ended"] += 1
        task = asyncio.create_task(self.search.put(id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sweep_now_and_then(self) -> None:
        while True:
            try:
                await self.sweep()
            except Exception:
                log.exception("cannot remove old jobs; retrying in %g s", _SWEEP_S)
            await asyncio.sleep(_SWEEP_S)

    def _runner_ended(self, running: asyncio.Task[None]) -> None:
        if not running.cancelled() and (error := running.exception()) is not None:
            log.critical("the job runner stopped unexpectedly: jobs are no longer processed", exc_info=error)
            self.ready = False
            self.broken.set()

    async def _stop(self) -> None:
        self.ready = False
        self.stop()
        await cancelled(self._sweeping)
        await asyncio.gather(self._running, return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _make_folders(data: Path, jobs: Path) -> None:
    """Make the folders of the server, readable by their owner only.

    Raises:
        OutputError: The folder holds something else, or results without the table of their jobs.
    """
    with output_errors(data):
        if data.exists():
            table = data / "jobs.sqlite"
            foreign = [path.name for path in data.iterdir() if not path.name.startswith(_FIRST_FILES)]
            results = jobs.is_dir() and any(jobs.iterdir())
            # Somebody else's folder, or ours without its table: either way jobs would be started over what is there.
            if (foreign or results) and not (table.exists() and table.stat().st_size):
                raise OutputError(
                    f"{data} contains {'jobs' if results else foreign[0]} but no table of jobs",
                    remedy="Restore its jobs.sqlite from a backup, or choose another --data folder.",
                )
        else:
            data.mkdir(parents=True, mode=0o700)
        jobs.mkdir(mode=0o700, exist_ok=True)


def _remove_unknown(folder: Path, known: set[str]) -> None:
    """Delete what was being received, or removed, when an earlier process died; results of unknown jobs stay."""
    with output_errors(folder):
        for path in folder.iterdir():
            if path.name in known:
                continue
            if _ID.fullmatch(path.name) and ((path / _REMOVING).exists() or not (path / "run").exists()):
                shutil.rmtree(path, ignore_errors=True)
            else:
                log.warning("%s belongs to no job in the table: ignored", path)
