"""Coroutines for synchronous callers: what is interrupted is cancelled, and what is open is closed before the end."""

import asyncio
import threading

import pytest

from pagemill.blocking import LoopThread, to_the_end
from pagemill.errors import UsageError


def test_what_is_open_ends_in_order(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def inner():
        try:
            while True:
                yield 1
        finally:
            await asyncio.sleep(0)
            ended.append("inner")

    async def outer():
        items = inner()
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()
            ended.append("outer")

    async def at_end() -> None:
        ended.append("end")

    thread = LoopThread("test", at_end)
    items = thread.each(outer())
    assert next(items) == 1
    thread.close()
    thread.close()
    items.close()
    assert ended == ["inner", "outer", "end"]
    with pytest.raises(UsageError, match="test is closed"):
        thread.call(asyncio.sleep(0))
    assert not caplog.records


def test_a_step_that_is_interrupted_is_cancelled_before_the_generator_is_closed(monkeypatch) -> None:
    ended: list[str] = []
    started = threading.Event()

    async def items():
        try:
            started.set()
            await asyncio.Event().wait()
            yield 1
        finally:
            await asyncio.sleep(0)
            ended.append("closed")

    class Interrupted:
        """A future whose caller gets Ctrl-C once the step has started."""

        def __init__(self, future) -> None:
            self._future = future
            self.cancel = future.cancel

        def result(self):
            started.wait(30)
            raise KeyboardInterrupt

    with LoopThread("test") as thread:
        usual, wrappers = asyncio.run_coroutine_threadsafe, [Interrupted]

        def interrupting(work, loop):
            future = usual(work, loop)
            return wrappers.pop()(future) if wrappers else future  # the first call: the second one closes

        monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupting)
        with pytest.raises(KeyboardInterrupt):
            next(thread.each(items()))
        assert ended == ["closed"]


async def test_a_caller_that_is_cancelled_twice_leaves_when_the_work_is_finished(caplog: pytest.LogCaptureFixture):
    started, may_end = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        await may_end.wait()
        raise OSError("disk full")

    caller = asyncio.create_task(to_the_end(work()))
    await started.wait()
    for _ in range(2):
        caller.cancel()
        await asyncio.wait({caller}, timeout=0)
        await asyncio.sleep(0)
    assert not caller.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert "disk full" in caplog.text
