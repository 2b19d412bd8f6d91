"""The actor on each machine of a cluster: it has the services of the machine and parses units of pages."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import ray

from pagemill import tracing
from pagemill._version import __version__
from pagemill.blocking import LoopThread
from pagemill.cluster.catalogue import UnitCatalogue
from pagemill.cluster.exchange import Verdict
from pagemill.cluster.metrics import WorkerMetrics
from pagemill.cluster.units import Unit, UnitPageResult, UnitResult, WorkerTask, decode_unit, encode
from pagemill.document.page import PageError
from pagemill.errors import NoSpaceError, OutputError, PagemillError, UsageError
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.flight import Turn
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources.items import is_url
from pagemill.store.files import write_whole
from pagemill.store.paths import FOLDER, crop_file
from pagemill.store.records import encode_line

log = logging.getLogger(__name__)

_LEAST_DISK = 256 * 2**20
"""Free bytes required for copies of remote files: some large PDFs. Not measured."""
_ROOM_CHECK_S = 2.0
_ROOM_S = 30.0
"""Wait for pages in flight to delete their copies."""
_LEAVE_S = 10.0
"""From SIGTERM to exit: clouds give a preempted machine 30 s or more. Computations cannot be interrupted."""
_DRAIN_CHECK_S = 5.0
_SEND_S = 1.0
"""Time for Ray to send the results of the last calls."""


class PageWorker:
    """Parses units, several at once, on one set of services: microbatches fill across units.

    Ray Data creates it once in each of its actors and calls it on threads.
    """

    def __init__(self, task: WorkerTask, exchange: Any) -> None:
        self._task = task
        self._exchange = exchange
        self._id = ray.get_runtime_context().get_actor_id()
        self._loop = LoopThread("pagemill.loop")
        self._gate = _Gate()
        self._metrics = WorkerMetrics()
        self._started: set[int] = set()
        self._parsing: set[asyncio.Task[Any] | None] = set()
        self._leaving = False
        self._log = PageLog()
        if task.log_level < logging.WARNING:
            logger = logging.getLogger("pagemill")
            logger.setLevel(task.log_level)
            logger.addHandler(self._log)
        with suppress(ValueError):  # not on the main thread: then Ray's handler ends the process at once
            signal.signal(signal.SIGTERM, self._on_sigterm)
        threading.Thread(target=self._watch_machine, name="pagemill.drain", daemon=True).start()
        self._error: PagemillError | None = None
        try:
            self._services = self._loop.call(self._open())
        except PagemillError as error:  # each unit reports it: an exception here would reach the driver as one of Ray's
            self._error = error

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Parse a unit: one row in, one row out."""
        data = row["unit"]
        if not data:  # the driver has its result
            return {"result": b""}
        unit = decode_unit(data)
        try:
            self._wait_for_room(unit)
        except NoSpaceError as error:
            return {"result": encode(_failed(unit, error))}
        # The process is about to exit. A unit that is not returned is executed again by Ray, on another worker.
        while self._leaving:
            time.sleep(_LEAVE_S)
        self._started.add(unit.number)
        try:
            return {"result": encode(self._loop.call(self._parse_in_turn(unit)))}
        finally:
            self._started.discard(unit.number)

    def _wait_for_room(self, unit: Unit) -> None:
        """Wait a while if the disk for copies of remote files is full, as long as the unit is wanted.

        Raises:
            NoSpaceError: It is still full. The driver gives the unit to another machine, or ends the run.
        """
        folder, end = tempfile.gettempdir(), time.monotonic() + _ROOM_S
        while any(is_url(source.uri) for source in unit.sources) and shutil.disk_usage(folder).free < _LEAST_DISK:
            if not ray.get(self._exchange.is_wanted.remote(unit.number)):
                return
            if time.monotonic() > end:
                least = f"{_LEAST_DISK // 2**20} MiB"
                raise NoSpaceError(
                    f"{folder} has less than {least} left for copies of remote files",
                    remedy="Free space there, or set TMPDIR where the workers start, and repeat the command to resume.",
                )
            time.sleep(_ROOM_CHECK_S)

    def _watch_machine(self) -> None:
        """Exit when Ray drains the machine: it does not notify actors."""
        node = ray.get_runtime_context().get_node_id()
        while not self._leaving:
            with suppress(Exception):  # the driver handles a head that does not answer
                if node in ray._private.state.state.get_draining_nodes():
                    self._on_sigterm()
            time.sleep(_DRAIN_CHECK_S)

    def _on_sigterm(self, *_: object) -> None:
        """The machine is about to be taken away."""
        if not self._leaving:
            self._leaving = True
            threading.Thread(target=self._leave, name="pagemill.leave", daemon=True).start()

    def _leave(self) -> None:
        """Return the units in flight with the pages that are finished, and exit."""

        def cancel() -> None:
            for task in self._parsing:
                if task is not None:
                    task.cancel()

        self._loop.loop.call_soon_threadsafe(cancel)
        end = time.monotonic() + _LEAVE_S
        while self._started and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(_SEND_S)
        os._exit(128 + signal.SIGTERM)  # a death to Ray, which starts the actor again where there is room

    async def _open(self) -> Services:
        task = self._task
        if task.version != __version__:
            raise UsageError(
                f"the driver has pagemill {task.version}, a worker on {_host()} {__version__}",
                remedy="Install the same version on all machines.",
            )
        try:
            os.chdir(task.folder)
        except OSError as error:
            raise UsageError(
                f"a worker on {_host()} has no folder {task.folder}: {error.strerror}",
                remedy="Start the run in a folder that all machines share, such as the one of the input.",
            ) from error
        self._out = task.out if (task.out / FOLDER / task.token).exists() else None
        services = await Services(task.settings, task.runtime, task.layout).__aenter__()
        await services.prepare()
        await services.share()
        return services

    async def _parse_in_turn(self, unit: Unit) -> UnitResult:
        """Parse a unit as soon as it may run beside the others; until then it has not started.

        The death of the worker must not count as an attempt of a page that waits behind the one that caused it.
        """
        async with self._gate.entered(alone=unit.alone):
            verdict = await self._exchange.begin.remote(unit.number, self._id)
            if verdict == Verdict.PARSE:
                return await self._parse(unit)
        return UnitResult(number=unit.number, node=_host(), died=verdict == Verdict.DIED)

    async def _parse(self, unit: Unit) -> UnitResult:
        if self._error is not None:
            return _failed(unit, self._error)
        if self._leaving:
            return UnitResult(number=unit.number, node=_host(), left=True)
        pages: list[UnitPageResult] = []
        problems: dict[str, PageError] = {}
        task = asyncio.current_task()
        self._parsing.add(task)
        asked = [page for source in unit.sources for page in source.pages.values()]
        wanted = {page.page_id for page in asked}
        self._metrics.admitted(len(wanted))
        attempts = max(page.attempts for page in asked)
        try:
            async with Pipeline(self._services.borrowed(), Turn(number=unit.number)) as pipeline:
                stream = pipeline.stream(
                    [source.uri for source in unit.sources],
                    self._task.source,
                    catalogue=UnitCatalogue(unit),
                    max_attempts=attempts + 1,  # one here: the driver decides whether there is another, and where
                )
                async with aclosing(stream) as parsed:
                    async for page in parsed:
                        if not isinstance(page, ParsedPage):
                            continue
                        if page.record.page_id in wanted:
                            pages.append(await asyncio.to_thread(self._result, page))
                            self._metrics.parsed(page.record.status)
                        elif page.record.errors:
                            problems[page.record.source] = page.record.errors[0]
        except PagemillError as error:
            return _failed(unit, error, pages)
        except asyncio.CancelledError:
            return UnitResult(number=unit.number, node=_host(), pages=pages, left=True)
        finally:
            self._parsing.discard(task)
            self._metrics.admitted(len(pages) - len(wanted))
        return UnitResult(number=unit.number, node=_host(), pages=pages, problems=problems)

    def _result(self, page: ParsedPage) -> UnitPageResult:
        """The result of a page for the driver, without crops that could be written into the output directory from here.

        A machine may not see that directory, or not be allowed to write more: mounts and quotas are per machine.
        """
        crops = list(page.crops)
        if self._out is not None:
            try:
                for name, data in crops:  # on the disk before the driver's transaction that names them
                    write_whole(crop_file(self._out, name), [data], durable=True)
                crops = []
            except OutputError as error:  # the driver's attempt decides
                log.warning("%s; the driver writes the crops instead", error.message)
        return UnitPageResult(
            record=encode_line(page.record),
            crops=crops,
            preview=page.preview,
            retryable=page.retryable,
            unserved=page.unserved,
            log=self._log.take(page.record.page_id),
        )


class PageLog(logging.Handler):
    """Collects log records by page, as the output of a worker does not reach the user: they go to the driver."""

    def __init__(self) -> None:
        super().__init__()
        self._records: defaultdict[str, list[tuple[str, int, str]]] = defaultdict(list)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record for the page that is being parsed."""
        self._records[tracing.PAGE.get()].append((record.name, record.levelno, record.getMessage()))

    def take(self, page_id: str) -> list[tuple[str, int, str]]:
        """Remove and return the log records of this page, and those of no page."""
        return [*self._records.pop("", ()), *self._records.pop(page_id, ())]


class _Gate:
    """Admits many units together, or one alone, which does not wait for those that come later."""

    def __init__(self) -> None:
        self._inside = 0
        self._turn = asyncio.Lock()
        self._empty = asyncio.Event()
        self._empty.set()

    @asynccontextmanager
    async def entered(self, *, alone: bool) -> AsyncIterator[None]:
        if alone:
            async with self._turn:
                await self._empty.wait()
                yield
            return
        async with self._turn:
            self._inside += 1
            self._empty.clear()
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()


def _failed(unit: Unit, error: PagemillError, pages: Sequence[UnitPageResult] = ()) -> UnitResult:
    message = f"{error.message} (on {_host()})"
    what = PageError(component="worker", category=error.category, message=message, remedy=error.remedy)
    return UnitResult(number=unit.number, node=_host(), pages=list(pages), error=what)


def _host() -> str:
    return socket.gethostname()
