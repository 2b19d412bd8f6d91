"""Microbatching: coroutines submit single items, the model computes batches."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from pagemill.computing.cpu_time import Work, counted
from pagemill.errors import EngineError, is_out_of_memory
from pagemill.runtime.contract import checked, engine_error
from pagemill.runtime.flight import place
from pagemill.runtime.threads import Call, ComputeThreads, StuckError

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_Batch = list[tuple[asyncio.Future[Answer], Item]]


class MicroBatcher(Generic[Item, Answer]):
    """Collects items from all pages in flight and calls a model with batches of like size.

    A batch starts as soon as one of ``concurrency`` lanes is free and takes what is waiting, at most ``limit`` items:
    nothing waits for a batch to fill, and while the model is busy the next batch grows by itself. Only a model whose
    calls take seconds is worth waiting for company: with ``fill_s`` a batch starts when it is full or when its oldest
    item has waited for so long. An item of the oldest page is always in the next batch; the others are its neighbours
    in ``size``, so that a model that pads to the widest item pads little.

    - A call that raises, gives a wrong number of answers or one that ``check`` refuses, is bisected until the item that
      breaks it is alone; only that one gets the exception.
    - A batch that runs out of memory halves ``limit`` permanently, and its items are computed again.
    - A call that hangs is left behind once all its items were given up; its lane continues.

    Args:
        call: Computes the answers of a batch, one an item, in order. Runs on ``threads``.
        name: Name for messages: ``the layout engine 'onnx'``.
        threads: Threads on which ``call`` runs.
        max_batch: Most items in a call.
        concurrency: Calls that may run at once.
        size: Size of an item; by default only the order of pages counts.
        fill_s: Longest time that an item waits for a batch to fill while a lane is free.
        check: Gives an answer back as it is to be used, or raises what is wrong with it.
        free: Frees the model when this is closed, unless a call hangs in it.
    """

    def __init__(
        self,
        call: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        name: str,
        threads: ComputeThreads,
        max_batch: int,
        concurrency: int,
        size: Callable[[Item], float] = lambda _: 0.0,
        fill_s: float = 0.0,
        check: Callable[[Item, Answer], Answer] = lambda _, answer: answer,
        free: Callable[[], None] = lambda: None,
    ) -> None:
        self.limit = max_batch
        """Maximum number of items in a call, as far as memory allows."""
        self.hangs = False
        """Whether a call hangs, so that the model must not be freed."""
        self._call = call
        self._name = name
        self._threads = threads
        self._concurrency = concurrency
        self._size = size
        self._fill_s = fill_s
        self._check = check
        self._free = free
        self._pending: dict[asyncio.Future[Answer], Item] = {}  # oldest first
        self._places: WeakKeyDictionary[asyncio.Future[Answer], int] = WeakKeyDictionary()  # the lowest is next
        self._works: WeakKeyDictionary[asyncio.Future[Answer], Work] = WeakKeyDictionary()
        self._changed = asyncio.Event()  # something was submitted, or all is dropped
        self._ready_at: deque[tuple[float, asyncio.Future[Answer]]] = deque()  # when an item has waited long enough
        self._lanes: set[asyncio.Task[None] | None] = set()
        self._calls: set[Call[list[Answer]]] = set()

    async def submit(self, item: Item) -> Answer:
        """Compute one item in some batch.

        Raises:
            EngineError: The model failed on this very item, or gave an answer that is invalid.
            PagemillError: What the model raised for this very item.
        """
        return (await self.submit_all([item]))[0]

    async def submit_all(self, items: Sequence[Item]) -> list[Answer]:
        """Compute several items of one page; they may travel in different batches.

        Raises:
            PagemillError: See :meth:`submit`; for the first of these items that failed.
        """
        loop = asyncio.get_running_loop()
        answers: list[asyncio.Future[Answer]] = [loop.create_future() for _ in items]
        self._pending.update(zip(answers, items, strict=True))
        self._places.update(dict.fromkeys(answers, place()))
        self._works.update({answer: counted() for answer in answers})
        if self._fill_s:
            self._ready_at.extend((loop.time() + self._fill_s, answer) for answer in answers)
            self._changed.set()
        while self._pending and len(self._lanes) < self._concurrency:
            self._lanes.add(asyncio.create_task(self._run_lane()))
        try:
            return list(await asyncio.gather(*answers))
        finally:
            while answers:  # emptied, as an exception's traceback holds this frame, and with it the items
                answers.pop().cancel()  # a no-op for those that are done; the others are dropped from their batch

    async def close(self) -> None:
        """Drop waiting items, wait for running calls except those that hang, and free the model."""
        for answer in self._pending:
            answer.cancel()
        self._changed.set()
        for call in self._calls:
            self._threads.give_up(call)
        await asyncio.gather(*filter(None, self._lanes), return_exceptions=True)
        if not self.hangs:
            self._free()

    async def _run_lane(self) -> None:
        try:
            while batch := await self._next_batch():
                await self._compute(batch)
        finally:
            self._lanes.discard(asyncio.current_task())

    async def _next_batch(self) -> _Batch[Answer, Item]:
        """The items of the next batch, once it is full or its oldest item has waited long enough; none if none wait."""
        while self._ready_at:
            deadline, oldest = self._ready_at[0]
            if oldest.done() or oldest not in self._pending:  # given up, or in a batch
                self._ready_at.popleft()
                continue
            waiting = sum(not answer.done() for answer in self._pending)
            if waiting >= self.limit:
                break
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                break
        return self._take_batch()

    def _take_batch(self) -> _Batch[Answer, Item]:
        """An item of the page that is next, and those that are nearest to it in size."""
        self._pending = {answer: item for answer, item in self._pending.items() if not answer.done()}  # or given up
        if not self._pending:
            return []
        sizes = {answer: self._size(item) for answer, item in self._pending.items()}
        first = sizes[min(self._pending, key=self._places.__getitem__)]
        nearest = sorted(sizes, key=lambda answer: (abs(sizes[answer] - first), self._places[answer]))
        return [(answer, self._pending.pop(answer)) for answer in nearest[: self.limit]]

    async def _compute(self, batch: _Batch[Answer, Item]) -> None:
        """Compute all items of a batch, in as many calls as needed."""
        left = [(answer, item) for answer, item in batch if not answer.done()]
        if left:
            first, rest = left[: self.limit], left[self.limit :]
            for part in (*await self._compute_once(first), rest):
                await self._compute(part)

    async def _compute_once(self, batch: _Batch[Answer, Item]) -> list[_Batch[Answer, Item]]:
        """Call the model; gives the batches that are to be computed again."""
        answers = functools.partial(self._answers, [item for _, item in batch])
        lowest = min(self._places[answer] for answer, _ in batch)
        call = self._threads.start(answers, operation=self._name, items=len(batch), place=lowest)
        self._calls.add(call)
        for waiting, _ in batch:
            self._works[waiting].part_of = call.work
        unwanted = asyncio.gather(*(answer for answer, _ in batch), return_exceptions=True)
        first: list[asyncio.Future[Any]] = [call.answer, unwanted]
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not call.answer.done():
            self._threads.give_up(call)
            await asyncio.wait({call.answer})
        self._calls.discard(call)
        if call.answer.cancelled():  # all items were given up before it started
            return []
        if (error := call.answer.exception()) is not None:
            if not call.given_up or isinstance(error, StuckError):
                return self._failed(batch, error)
            for waiting, _ in batch:  # of a batcher that closes: nothing is computed again
                waiting.cancel()
            return []
        for (future, _), answer in zip(batch, call.answer.result(), strict=True):
            if not future.done():  # or given up
                future.set_result(answer)
        return []

    def _answers(self, items: Sequence[Item]) -> list[Answer]:
        """The answers of the model; runs on a thread."""
        answers = self._call(items)
        if len(answers) != len(items):
            raise EngineError(f"{self._name} returned {len(answers)} answers to {len(items)} items")
        return [checked(self._name, self._check, item, answer) for item, answer in zip(items, answers, strict=True)]

    def _failed(self, batch: _Batch[Answer, Item], error: BaseException) -> list[_Batch[Answer, Item]]:
        if isinstance(error, StuckError):
            self.hangs = True
            for answer, _ in batch:
                answer.cancel()
            return []
        if len(batch) == 1:
            if not batch[0][0].done():
                batch[0][0].set_exception(engine_error(self._name, error))
            return []
        if not is_out_of_memory(error):
            middle = len(batch) // 2
            return [batch[:middle], batch[middle:]]
        if (half := len(batch) // 2) < self.limit:  # else another lane has halved it already
            self.limit = half
            log.warning(
                "%s ran out of memory with %d items at once; from now on it gets %d", self._name, len(batch), half
            )
        return [batch]
