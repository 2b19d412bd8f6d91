"""Microbatching: many coroutines hand in single items, a model sees batches."""

from __future__ import annotations

import asyncio
import bisect
import functools
import itertools
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from pagemill.errors import EngineError
from pagemill.runtime.contract import engine_error, is_out_of_memory
from pagemill.runtime.threads import StuckError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pagemill.runtime.threads import Call, ComputeThreads

log = logging.getLogger(__name__)

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

    A batch starts as soon as one of ``concurrency`` lanes is free and takes what is waiting, at most ``limit`` items:
    nothing ever waits for a batch to fill, and while the model is busy the next batch grows by itself. The oldest item
    is always in the next batch; the others are its neighbours in ``size``, so that a model that pads to the widest item
    pads little.

    - A call that raises, or gives a wrong number of answers, is bisected until the item that breaks it is alone; only
      that one gets the exception. So is what is left of a batch when ``check`` refuses some of its answers.
    - A batch that runs out of memory halves ``limit`` for good, and its items are computed again.
    - A call that hangs is left behind once all its items were given up; its lane goes on.

    Args:
        call: Computes the answers of a batch, one an item, in order. Runs on ``threads``.
        name: What is called, for messages: ``the layout engine 'onnx'``.
        threads: Where ``call`` runs.
        max_batch: Most items in a call.
        concurrency: Calls that may run at once.
        size: Sort key of an item; None keeps arrival order.
        check: Gives an answer back as it is to be used, or raises an EngineError that says what is wrong with it.
    """

    def __init__(
        self,
        call: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        name: str,
        threads: ComputeThreads,
        max_batch: int,
        concurrency: int,
        size: Callable[[Item], float] | None = None,
        check: Callable[[Item, Answer], Answer] | None = None,
    ) -> None:
        if max_batch < 1 or concurrency < 1:
            raise ValueError("max_batch and concurrency are at least 1")
        self.limit = max_batch
        """Most items in a call, as far as memory allows."""
        self.hangs = False
        """Whether a call hangs, so that the model must not be freed."""
        self._call = call
        self._name = name
        self._threads = threads
        self._free_lanes = concurrency
        self._size = size
        self._check = check
        self._tickets = itertools.count()
        self._arrivals: deque[_Pending[Item, Answer]] = deque()  # oldest first; those taken are dropped when met
        self._pending: list[_Pending[Item, Answer]] = []  # by size
        self._lanes: set[asyncio.Task[None]] = set()
        self._calls: set[Call[list[Answer | EngineError]]] = set()

    async def submit(self, item: Item) -> Answer:
        """Compute one item in some batch.

        Raises:
            EngineError: The model failed on this very item, or gave an answer that is no good.
            PagemillError: What the model raised for this very item.
        """
        return (await self.submit_all([item]))[0]

    async def submit_all(self, items: Sequence[Item]) -> list[Answer]:
        """Compute several items of one page; they may travel in different batches.

        Raises:
            PagemillError: As :meth:`submit`, for the first of these items that failed.
        """
        answers = [self._enqueue(item) for item in items]
        self._start_lanes()
        try:
            return list(await asyncio.gather(*answers))
        finally:
            while answers:  # emptied, as an exception's traceback holds this frame, and with it the items
                answers.pop().cancel()  # a no-op for those that are done; the others are dropped from their batch

    async def close(self) -> None:
        """Drop what is waiting and wait for the calls that run, but for those that hang."""
        for pending in self._pending:
            pending.answer.cancel()
        self._pending.clear()
        self._arrivals.clear()
        for call in list(self._calls):
            self._threads.give_up(call)
        await asyncio.gather(*self._lanes, return_exceptions=True)

    def _enqueue(self, item: Item) -> asyncio.Future[Answer]:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        ticket = next(self._tickets)
        pending = _Pending(self._size(item) if self._size else float(ticket), ticket, item, answer)
        bisect.insort(self._pending, pending)
        self._arrivals.append(pending)
        return answer

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
            start = max(0, min(position - self.limit // 2, len(self._pending) - self.limit))
            batch = self._pending[start : start + self.limit]
            del self._pending[start : start + self.limit]
            for pending in batch:
                pending.taken = True
            return batch
        return []

    async def _compute(self, batch: list[_Pending[Item, Answer]]) -> None:
        """Have all items of a batch answered, in as many calls as it takes."""
        parts = deque([batch])
        while parts:
            part = [pending for pending in parts.popleft() if not pending.answer.done()]
            if len(part) > self.limit:  # lowered meanwhile
                parts.appendleft(part[self.limit :])
            if part:
                parts.extendleft(reversed(await self._compute_once(part[: self.limit])))

    async def _compute_once(self, batch: list[_Pending[Item, Answer]]) -> list[list[_Pending[Item, Answer]]]:
        """Call the model; gives the batches that are to be computed again."""
        call = self._threads.start(functools.partial(self._answers, [pending.item for pending in batch]))
        self._calls.add(call)
        unwanted = itertools.count(1)

        def on_answer(_: asyncio.Future[Answer]) -> None:
            if next(unwanted) == len(batch):
                self._threads.give_up(call)  # changes nothing when the call has ended

        for pending in batch:
            pending.answer.add_done_callback(on_answer)
        await asyncio.wait({call.answer})
        self._calls.discard(call)
        for pending in batch:
            pending.answer.remove_done_callback(on_answer)
        if call.answer.cancelled():  # all items were given up before it began
            return []
        if (error := call.answer.exception()) is not None:
            return self._failed(batch, error)
        refused: list[_Pending[Item, Answer]] = []
        for pending, answer in zip(batch, call.answer.result(), strict=True):
            if not isinstance(answer, EngineError):
                _set_result(pending, answer)
            elif len(batch) == 1:
                _set_exception(pending, answer)
            else:
                refused.append(pending)
        return _halves(refused)

    def _answers(self, items: Sequence[Item]) -> list[Answer | EngineError]:
        """What the model says, with an error in place of what is no good; runs on a thread."""
        answers = self._call(items)
        if not isinstance(answers, Sequence):
            raise EngineError(f"{self._name} gave {type(answers).__name__} instead of a list of answers")
        if len(answers) != len(items):
            raise EngineError(f"{self._name} gave {len(answers)} answers to {len(items)} items")
        return [self._checked(item, answer) for item, answer in zip(items, answers, strict=True)]

    def _checked(self, item: Item, answer: Answer) -> Answer | EngineError:
        if self._check is None:
            return answer
        try:
            return self._check(item, answer)
        except EngineError as error:
            return error.with_traceback(None)

    def _failed(self, batch: list[_Pending[Item, Answer]], error: BaseException) -> list[list[_Pending[Item, Answer]]]:
        if isinstance(error, StuckError):
            self.hangs = True
            for pending in batch:
                pending.answer.cancel()
            return []
        if len(batch) == 1:
            _set_exception(batch[0], engine_error(self._name, error))
            return []
        if not is_out_of_memory(error):
            return _halves(batch)
        if (half := len(batch) // 2) < self.limit:  # else another lane has halved it already
            self.limit = half
            log.warning(
                "%s ran out of memory with %d items at once; from now on it gets %d", self._name, len(batch), half
            )
        return [batch]


def _halves(batch: list[_Pending[Item, Answer]]) -> list[list[_Pending[Item, Answer]]]:
    middle = len(batch) // 2
    return [half for half in (batch[:middle], batch[middle:]) if half]


def _set_result(pending: _Pending[Item, Answer], answer: Answer) -> None:
    if not pending.answer.done():
        pending.answer.set_result(answer)


def _set_exception(pending: _Pending[Item, Answer], error: Exception) -> None:
    if not pending.answer.done():
        pending.answer.set_exception(error)
