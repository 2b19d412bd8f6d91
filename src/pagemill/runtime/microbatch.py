"""Microbatching: many coroutines hand in single items, a model sees batches."""

from __future__ import annotations

import asyncio
import bisect
import itertools
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@dataclass(slots=True, order=True)
class _Pending(Generic[Item, Answer]):
    size: float
    ticket: int
    item: Item = field(compare=False)
    answer: asyncio.Future[Answer] = field(compare=False)
    taken: bool = field(default=False, compare=False)


class MicroBatcher(Generic[Item, Answer]):
    """Collects items from all pages in flight and calls a model with batches of like size.

    A batch starts as soon as one of ``concurrency`` lanes is free and takes what is waiting, at most ``max_batch``
    items: nothing ever waits for a batch to fill, and while the model is busy the next batch grows by itself.
    The oldest item is always in the next batch; the others are its neighbours in ``size``, so that a model that pads
    to the widest item pads little.

    A call that raises is bisected until the item that breaks it is alone; only that one gets the exception.

    Args:
        call: Computes the answers of a batch, one an item, in order. Runs in ``executor``.
        executor: Where ``call`` runs.
        max_batch: Most items in a call.
        concurrency: Calls that may run at once.
        size: Sort key of an item; None keeps arrival order.
    """

    def __init__(
        self,
        call: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        executor: Executor,
        max_batch: int,
        concurrency: int,
        size: Callable[[Item], float] | None = None,
    ) -> None:
        if max_batch < 1 or concurrency < 1:
            raise ValueError("max_batch and concurrency are at least 1")
        self._call = call
        self._executor = executor
        self._max_batch = max_batch
        self._free_lanes = concurrency
        self._size = size
        self._tickets = itertools.count()
        self._arrivals: deque[_Pending[Item, Answer]] = deque()  # oldest first; those taken are dropped when met
        self._pending: list[_Pending[Item, Answer]] = []  # by size
        self._lanes: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Answer:
        """Compute one item in some batch.

        Raises:
            Exception: Whatever the model raised for this very item.
        """
        return (await self.submit_all([item]))[0]

    async def submit_all(self, items: Sequence[Item]) -> list[Answer]:
        """Compute several items of one page; they may travel in different batches.

        Raises:
            Exception: Whatever the model raised for the first of these items that failed.
        """
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Answer]] = []
        for item in items:
            future: asyncio.Future[Answer] = loop.create_future()
            ticket = next(self._tickets)
            size = self._size(item) if self._size else float(ticket)
            pending = _Pending(size, ticket, item, future)
            bisect.insort(self._pending, pending)
            self._arrivals.append(pending)
            futures.append(future)
        self._start_lanes()
        try:
            return list(await asyncio.gather(*futures))
        finally:
            for future in futures:
                future.cancel()  # a no-op for those that are done; the others are dropped from their batch

    def _start_lanes(self) -> None:
        while self._free_lanes and self._pending:
            self._free_lanes -= 1
            lane = asyncio.create_task(self._run_lane())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)

    async def _run_lane(self) -> None:
        try:
            while batch := self._take_batch():
                await self._compute(batch)
        finally:
            self._free_lanes += 1

    def _take_batch(self) -> list[_Pending[Item, Answer]]:
        while self._arrivals:
            oldest = self._arrivals.popleft()
            if oldest.taken:
                continue
            position = bisect.bisect_left(self._pending, oldest)
            if oldest.answer.done():  # given up
                del self._pending[position]
                continue
            start = max(0, min(position - self._max_batch // 2, len(self._pending) - self._max_batch))
            batch = self._pending[start : start + self._max_batch]
            del self._pending[start : start + self._max_batch]
            for pending in batch:
                pending.taken = True
            return batch
        return []

    async def _compute(self, batch: list[_Pending[Item, Answer]]) -> None:
        batch = [pending for pending in batch if not pending.answer.done()]
        if not batch:
            return
        items = [pending.item for pending in batch]
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._executor, self._call, items)
            if len(answers) != len(items):
                raise RuntimeError(f"the model gave {len(answers)} answers to {len(items)} items")
        except Exception as error:
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._compute(batch[:middle])
                await self._compute(batch[middle:])
            elif not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        except BaseException:
            for pending in batch:
                pending.answer.cancel()
            raise
        for pending, answer in zip(batch, answers, strict=True):
            if not pending.answer.done():
                pending.answer.set_result(answer)

    async def close(self) -> None:
        """Cancel what is still waiting and wait for the calls that run: the model can be freed then."""
        for pending in self._pending:
            pending.answer.cancel()
        self._pending.clear()
        self._arrivals.clear()
        await asyncio.gather(*self._lanes, return_exceptions=True)
