"""The driver of a run on a cluster: offers units to workers, and decides on results, retries and failures."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from pagemill.blocking import cancelled
from pagemill.cluster.connection import disconnect
from pagemill.cluster.nodes import NodeRates
from pagemill.cluster.units import UNIT_PAGES, UnitResult, WorkerTask, decode_result, encode, make_unit
from pagemill.document.page import PageError
from pagemill.document.shown import count
from pagemill.errors import NetworkError, NoSpaceError, PagemillError, WorkerCrashError
from pagemill.parsing.page import ParsedPage, SkippedPage, dead_page, parse_page
from pagemill.parsing.page_run import PageServices
from pagemill.runtime.stream import Journal
from pagemill.sources.base import PageRef
from pagemill.sources.stream import InputStream
from pagemill.store.nodes import write_node_rates
from pagemill.store.opening import crops_of, delete_own
from pagemill.store.records import decode_page

log = logging.getLogger(__name__)

_CHECK_S = 2.0
"""Interval of the driver's checks for workers that have died."""
_SILENCE_S = 40.0
"""Timeout of the head of the cluster, after which the run ends. It must be below 60 s: that long after the last answer
Ray ends this process without a message."""
_DEATH = "a worker died"
"""Cause of death of a worker: Ray does not report the signal."""
_FORGIVEN_DEATHS = 2
"""Extra worker deaths tolerated, beyond ``max_attempts``, for a page that runs alone, as workers are also killed from
outside. In a drill that killed 30 workers in 300 pages, two such deaths hit one good page by chance."""
_UNBEGUN_S = 60.0
"""Age at which a unit that no worker has started is offered again: ten times the start of a worker. Not measured."""


@dataclass(slots=True)
class _Offered:
    """A unit that was offered and has no result yet."""

    refs: list[PageRef]
    alone: bool
    since: float = field(default_factory=time.monotonic)


class ClusterRun:
    """One stream of pages: plans them, keeps units in flight, and decides on each result.

    - Units are offered while each worker has one more than it parses at once. Ray Data hands them out.
    - A page with a transient failure, and one that was in flight in a worker that died, is retried in isolation after
      all others: in a unit of its own, with nothing else in flight in its worker.
    - The death of a worker counts as an attempt of a page only if the page was alone; the page fails after
      ``max_attempts`` and ``_FORGIVEN_DEATHS`` of them.
    - A result is used once: a second one, from a machine that was considered dead, is dropped.

    Args:
        source: Plans the pages.
        services: For pages without a payload, whose record holds only an error; none of them is used.
        task: Settings for the workers.
        exchange: Handle of an :class:`~pagemill.cluster.exchange.Exchange`.
        results: Called on a thread with the number of workers and the units that each parses at once; yields encoded
            results until the exchange is closed.
        look: Called on a thread; how many workers the cluster has room for, and the ids of those that are alive.
        show: Called at intervals with the number of pages that are done, failed and in flight.
        pages_in_flight: Pages in flight of one worker.
        journal: See :class:`pagemill.runtime.stream.PageStream`.
        max_attempts: Maximum number of attempts of a page, those of earlier processes included.
    """

    def __init__(
        self,
        source: InputStream,
        services: PageServices,
        task: WorkerTask,
        exchange: Any,
        *,
        results: Callable[[int, int], Iterator[bytes]],
        look: Callable[[], tuple[int, Collection[str]]],
        show: Callable[[Mapping[str, int]], None],
        pages_in_flight: int,
        journal: Journal | None,
        max_attempts: int,
    ) -> None:
        self._source = source
        self._services = services
        self._task = task
        self._exchange = exchange
        self._results = results
        self._look = look
        self._show = show
        self._counts = Counter(done=0, failed=0)
        self._journal = journal
        self._max_attempts = max_attempts
        self._max_deaths = max_attempts + _FORGIVEN_DEATHS
        # Two more than are in flight: at any time one is about to end, and one has just arrived.
        self._units = math.ceil(pages_in_flight / UNIT_PAGES) + 2
        self._workers = 1
        self._offered: dict[int, _Offered] = {}
        # While a unit is finished it is in none of the queues, but may still add pages to be retried: the plan must
        # wait.
        self._finishing = False
        self._numbers = 0
        self._planned = 0
        self._alone: deque[PageRef] = deque()
        self._again: deque[_Offered] = deque()
        self._ended: asyncio.Queue[ParsedPage | SkippedPage | UnitResult | Exception | None] = asyncio.Queue(8)
        self._changed = asyncio.Event()
        self._stopped = False
        self._failure: Exception | None = None
        self._results_seen = False
        self._rates = NodeRates()
        self._tasks: list[asyncio.Task[None]] = []

    def stop_admitting(self) -> None:
        """Stop units that no worker has started."""
        self._stopped = True
        self._exchange.stop.remote()
        self._changed.set()

    async def pages(self) -> AsyncGenerator[ParsedPage | SkippedPage]:
        """Yield each page once, when its result is final."""
        await self._living()
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._consume, args=(loop,), name="pagemill.ray", daemon=True).start()
        self._tasks = [asyncio.create_task(self._plan()), asyncio.create_task(self._watch())]
        try:
            while (ended := await self._ended.get()) is not None:
                if isinstance(ended, Exception):
                    raise _of_ray(ended)
                if not isinstance(ended, UnitResult):
                    yield self._counted(ended)
                    continue
                self._finishing = True
                async for page in self._finish(ended):
                    yield self._counted(page)
                self._finishing = False
                self._changed.set()
            if self._failure is not None:
                raise self._failure
        finally:
            await self.close()

    def _counted(self, page: ParsedPage | SkippedPage) -> ParsedPage | SkippedPage:
        if isinstance(page, ParsedPage):
            self._counts[page.record.status] += 1
        return page

    async def close(self) -> None:
        """End the run at once. Idempotent."""
        tasks, self._tasks = self._tasks, []
        if not tasks:
            return
        await cancelled(*tasks)
        self._exchange.stop.remote()
        self._exchange.close.remote()
        with suppress(PagemillError):
            write_node_rates(self._task.out, {})
        # Workers write crops before the driver commits their pages: those of unfinished pages would stay forever.
        if left := [ref.page_id for unit in self._offered.values() for ref in unit.refs]:
            left += [ref.page_id for ref in self._alone]
            await asyncio.to_thread(self._end_workers, left)

    def _end_workers(self, left: list[str]) -> None:
        """Stop workers after an error has ended the run, and delete crops of pages without a record."""
        disconnect()
        delete_own(self._task.out, crops_of(self._task.out, left))

    def _consume(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forward results from a thread. Blocks while the queue is full, which is the back-pressure on the workers."""

        def put(result: UnitResult | Exception) -> None:
            asyncio.run_coroutine_threadsafe(self._ended.put(result), loop).result()

        try:
            for data in self._results(self._workers, self._units):
                if data:
                    put(decode_result(data))
        except Exception as error:
            with suppress(Exception):  # the loop is closed: the run is over
                put(error)

    async def _plan(self) -> None:
        """Offer all pages of the input, then those to be retried in isolation, until all are finished."""
        try:
            try:
                async with aclosing(self._source.pages()) as refs:
                    await self._offer_all(refs)
            except PagemillError as error:  # raised when the pages in flight have ended
                self._failure = error
                self.stop_admitting()
            while self._offered or self._finishing or ((self._alone or self._again) and not self._stopped):
                if self._again and not self._stopped:
                    await self._repeat()
                    continue
                # Only after the others: a page that kills its worker takes the pages beside it along.
                if self._alone and not self._stopped and all(unit.alone for unit in self._offered.values()):
                    await self._offer([self._alone.popleft()], alone=True)
                    continue
                await self._wait()
        except Exception as error:
            await self._ended.put(error)
        else:
            await self._exchange.close.remote()
            await self._ended.put(None)

    async def _offer_all(self, refs: AsyncGenerator[PageRef]) -> None:
        unit: list[PageRef] = []
        async for ref in refs:
            self._planned += 1
            if ref.skip is not None:
                await self._ended.put(SkippedPage(ref=ref, reason=ref.skip))
            elif ref.error is not None:
                await self._fail(ref)
            elif ref.death is not None and ref.attempts >= self._max_deaths:
                await self._ended.put(dead_page(ref))
            elif ref.attempts:
                self._alone.append(ref)
            else:
                unit.append(ref)
            if unit and len(unit) >= self._size():
                await self._offer(unit)
                unit = []
            if self._again:
                await self._repeat()
            if self._stopped:
                return
        if unit:
            await self._offer(unit)

    def _size(self) -> int:
        """Pages of the next unit: few at the start and at the end, so that all workers have work."""
        size = sum(len(unit.refs) for unit in self._offered.values()) // self._workers
        total = self._source.total
        if total is not None:
            size = min(size, (total - self._planned) // (2 * self._workers))
        return max(1, min(size, UNIT_PAGES))

    async def _fail(self, ref: PageRef) -> None:
        """Finish a page without a payload: its record holds only the error."""
        if self._journal is not None:
            await self._journal.started(ref, alone=False)
        await self._ended.put(await parse_page(ref, self._services, self._task.settings))

    async def _offer(self, refs: list[PageRef], *, alone: bool = False, again: bool = False) -> None:
        """Offer a unit once there is room among those in flight; the journal already has one that is offered again."""
        while len(self._offered) >= (self._units + 1) * self._workers and not self._stopped:
            await self._wait()
        if self._stopped:
            return
        # Registered before the worker can have it: its result may come while the offer is still awaited.
        number, self._numbers = self._numbers, self._numbers + 1
        self._offered[number] = _Offered(refs, alone)
        if self._journal is not None and not again:
            for ref in refs:
                await self._journal.started(ref, alone=alone)
        unit = await asyncio.to_thread(make_unit, number, refs, alone=alone)
        await self._exchange.offer.remote(encode(unit))

    async def _repeat(self) -> None:
        """Offer a unit again that was withdrawn, or that a worker returned."""
        unit = self._again.popleft()
        await self._offer(unit.refs, alone=unit.alone, again=True)

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _finish(self, result: UnitResult) -> AsyncGenerator[ParsedPage]:
        """Yield the pages of a unit that are final; the others are retried in isolation."""
        offered = self._offered.pop(result.number, None)
        self._exchange.done.remote(result.number)
        self._results_seen = True
        if offered is None:  # it was withdrawn, or its worker considered dead, and its result came late
            return
        if result.error is not None:
            # The disk of one machine is full, but others deliver: they take the unit, and the run continues.
            if result.error.category == NoSpaceError.category and not result.pages and self._others(result.node):
                self._again.append(offered)
                return
            if self._failure is None:
                self._failure = result.error.exception()
            self.stop_admitting()
        if result.died:
            in_flight = count(len(offered.refs), "page")
            log.warning("a worker died with %s in flight, to be retried in isolation", in_flight)
        pages = {}
        for each in result.pages:
            record = decode_page(each.record)
            pages[record.page_key] = (record, each)
        if result.left and (unfinished := [ref for ref in offered.refs if str(ref.key) not in pages]):
            log.warning("a worker had to leave and returned %s unfinished", count(len(unfinished), "page"))
            self._again.append(_Offered(unfinished, offered.alone))
        for ref in offered.refs:
            if result.died:
                if (dead := await self._after_death(ref, alone=offered.alone)) is not None:
                    yield dead
                continue
            if str(ref.key) not in pages:
                if not (self._stopped or result.left):  # else it is left for the next run, or to another worker
                    lost = await parse_page(_lost(ref, result), self._services, self._task.settings)
                    if (failed := await self._after_failure(ref, lost)) is not None:
                        if ref.unseen and ref.document.uri in result.problems and self._journal is not None:
                            failed = await self._journal.unopened(failed)
                        yield failed
                continue
            record, sent = pages[str(ref.key)]
            page = ParsedPage(
                document=ref.document,
                record=record,
                crops=tuple(sent.crops),
                preview=sent.preview,
                retryable=sent.retryable,
                unserved=sent.unserved,
                node=result.node,
            )
            self._rates.add(result.node)
            for name, level, message in sent.log:
                logging.getLogger(name).log(level, "%s", message)
            if page.retryable or page.unserved:
                if (failed := await self._after_failure(ref, page)) is not None:
                    yield failed
            else:
                yield page

    def _others(self, node: str) -> bool:
        """Whether another machine has delivered pages in the last minute."""
        return bool(self._rates.rates().keys() - {node})

    async def _after_failure(self, ref: PageRef, page: ParsedPage) -> ParsedPage | None:
        """Queue a page for an isolated retry; return it when its attempts are used up."""
        attempts = page.record.attempts
        if attempts >= self._max_attempts:
            return page
        if not page.unserved:  # else the run ends, and the next one tries it
            log.info("%s: attempt %d failed, to be retried in isolation", ref.page_id, attempts)
            self._alone.append(replace(ref, attempts=attempts))
        if self._journal is not None:
            await self._journal.postponed(page)
        return None

    async def _after_death(self, ref: PageRef, *, alone: bool) -> ParsedPage | None:
        """Queue a page for an isolated retry whose worker died; return it as failed when its attempts are used up.

        A death with other pages in flight is not an attempt: machines are taken away and processes killed whatever the
        page.
        """
        if alone:
            ref = replace(ref, attempts=ref.attempts + 1, death=_DEATH)
            page = dead_page(ref)
            if ref.attempts >= self._max_deaths:
                return page
            if self._journal is not None:
                await self._journal.postponed(page)
        self._alone.append(ref)
        return None

    async def _watch(self) -> None:
        """Give up units that will have no result: Ray waits forever to restart a worker whose resources are taken."""
        while True:
            await asyncio.sleep(_CHECK_S)
            try:
                started = await self._exchange.started.remote()
                # In this order: a worker that started a unit after this look would otherwise count as dead.
                living = await self._living()
                for number, worker in started.items():
                    if worker not in living and number in self._offered:
                        await self._ended.put(UnitResult(number=number, node="", died=True))
                await self._give_up_waiting()
                in_flight = sum(len(unit.refs) for unit in self._offered.values())
                self._show({**self._counts, "in_flight": in_flight})
                with suppress(PagemillError):  # the next page reports the error of the directory
                    await asyncio.to_thread(write_node_rates, self._task.out, self._rates.rates())
            except Exception as error:
                await self._ended.put(error)
                return

    async def _give_up_waiting(self) -> None:
        """Offer units again that no worker has started for long, although other units have results.

        Their worker may have died before it started them. Where all are busy, this costs only a message.
        """
        now = time.monotonic()
        late = [number for number, unit in self._offered.items() if now - unit.since > _UNBEGUN_S]
        if late and self._results_seen:
            for number in await self._exchange.withdraw.remote(late):
                if (unit := self._offered.pop(number, None)) is not None:
                    self._again.append(unit)
                    self._changed.set()

    async def _living(self) -> Collection[str]:
        """Count the workers that the cluster has room for; return the ids of those that are alive.

        Raises:
            NetworkError: The head of the cluster does not answer.
        """
        answer: Future[tuple[int, Collection[str]]] = Future()

        def look() -> None:
            answer.set_running_or_notify_cancel()
            try:
                answer.set_result(self._look())
            except Exception as error:
                answer.set_exception(error)

        # Not on a thread of the event loop, which joins its threads at the end: without an answer this one never ends.
        threading.Thread(target=look, name="pagemill.look", daemon=True).start()
        try:
            async with asyncio.timeout(_SILENCE_S):
                room, living = await asyncio.wrap_future(answer)
        except TimeoutError:
            raise NetworkError(
                f"the head of the Ray cluster has not answered for {_SILENCE_S:g} s",
                remedy="What was parsed is kept; repeat the command to resume when the cluster runs.",
            ) from None
        self._workers = max(1, room)
        return living


def _lost(ref: PageRef, result: UnitResult) -> PageRef:
    """The reference of a page that its source did not yield on the worker, with the error."""
    error = result.problems.get(ref.document.uri) or PageError(
        component="source",
        category="unreadable",
        message=f"{ref.document.uri} has no such page: it is damaged, or was changed meanwhile",
        remedy="Check that all machines read the same files, and repeat the command with --retry-failed.",
    )
    # An unseen source opens on no machine, so the machine is not part of the error: the record is that of a local run.
    if not ref.unseen:
        error = msgspec.structs.replace(error, message=f"{error.message} (on {result.node})")
    return replace(ref, payload=None, error=error)


def _of_ray(error: Exception) -> PagemillError:
    """The error for an exception of Ray: its cause in one line, without the traceback of the other process."""
    if isinstance(error, PagemillError):
        return error
    cause = getattr(error, "cause", None) or error  # of a task that failed
    reason, *_ = str(cause).strip().splitlines() or [type(cause).__name__]
    return WorkerCrashError(
        f"Ray ended the run ({type(cause).__name__}): {reason}",
        remedy="What was parsed is kept; repeat the command to resume. `ray logs` has more.",
    )
