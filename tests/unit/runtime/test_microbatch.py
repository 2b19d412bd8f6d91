"""The microbatcher: batches fill by themselves, one bad item costs nobody else."""

from __future__ import annotations

import asyncio
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagemill.errors import EngineError
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.threads import ComputeThreads


@pytest.fixture
async def threads():
    pool = ComputeThreads(4, name="test", grace_s=0.05)
    yield pool
    await pool.close()


async def test_batches_grow_while_the_model_is_busy(threads):
    release = threading.Event()
    batches: list[list[int]] = []
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def call(items):
        batches.append(list(items))
        loop.call_soon_threadsafe(started.set)
        release.wait(10)
        return [item * 2 for item in items]

    batcher = MicroBatcher(call, name="the model", threads=threads, max_batch=4, concurrency=1)
    first = asyncio.create_task(batcher.submit(0))
    await started.wait()
    rest = asyncio.gather(*(batcher.submit(i) for i in range(1, 9)))
    await asyncio.sleep(0)
    release.set()
    assert await first == 0
    assert await rest == [i * 2 for i in range(1, 9)]
    assert [len(batch) for batch in batches] == [1, 4, 4]
    await batcher.close()


async def test_the_item_that_breaks_a_batch_fails_alone(threads):
    def call(items):
        if 5 in items:
            raise ValueError("five")
        return items

    batcher = MicroBatcher(call, name="the model", threads=threads, max_batch=8, concurrency=1)
    answers = await asyncio.gather(*(batcher.submit(i) for i in range(8)), return_exceptions=True)
    assert isinstance(answers[5], EngineError)
    assert answers[5].message == "the model failed: ValueError: five"
    assert [a for i, a in enumerate(answers) if i != 5] == [0, 1, 2, 3, 4, 6, 7]
    await batcher.close()


async def test_a_model_that_answers_too_few_fails_loudly(threads):
    batcher = MicroBatcher(lambda items: [], name="the model", threads=threads, max_batch=2, concurrency=1)
    with pytest.raises(EngineError, match="the model gave 0 answers to 1 items"):
        await batcher.submit(1)
    await batcher.close()


async def test_neighbours_in_size_share_a_batch_and_the_oldest_is_never_left(threads):
    gate = threading.Event()
    batches: list[list[int]] = []

    def call(items):
        gate.wait(10)
        batches.append(sorted(items))
        return items

    batcher = MicroBatcher(call, name="the model", threads=threads, max_batch=2, concurrency=1, size=float)
    blocker = asyncio.create_task(batcher.submit(0))
    await asyncio.sleep(0)
    rest = asyncio.gather(*(batcher.submit(i) for i in (100, 3, 101, 2)))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(blocker, rest)
    assert batches[1:] == [[100, 101], [2, 3]] or batches[1:] == [[3, 100], [2, 101]]
    assert 100 in batches[1]
    await batcher.close()


async def test_a_cancelled_page_leaves_the_queue(threads):
    gate = threading.Event()
    seen: list[int] = []

    def call(items):
        gate.wait(10)
        seen.extend(items)
        return items

    batcher = MicroBatcher(call, name="the model", threads=threads, max_batch=1, concurrency=1)
    first = asyncio.create_task(batcher.submit(1))
    await asyncio.sleep(0.01)
    second = asyncio.create_task(batcher.submit(2))
    third = asyncio.create_task(batcher.submit(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    gate.set()
    assert await first == 1
    assert await third == 3
    assert seen == [1, 3]
    await batcher.close()


@settings(max_examples=30, deadline=None)
@given(
    items=st.lists(st.integers(0, 50), max_size=30),
    bad=st.sets(st.integers(0, 50), max_size=4),
    max_batch=st.integers(1, 9),
    concurrency=st.integers(1, 3),
)
def test_every_item_gets_its_own_answer(items, bad, max_batch, concurrency):
    def call(batch):
        if bad.intersection(batch):
            raise ValueError
        assert len(batch) <= max_batch
        return [item + 1 for item in batch]

    async def go():
        pool = ComputeThreads(3, name="test")
        batcher = MicroBatcher(
            call, name="the model", threads=pool, max_batch=max_batch, concurrency=concurrency, size=float
        )
        answers = await asyncio.gather(*(batcher.submit(i) for i in items), return_exceptions=True)
        await batcher.close()
        await pool.close()
        return answers

    for item, answer in zip(items, asyncio.run(go()), strict=True):
        if item in bad:
            assert isinstance(answer, EngineError)
        else:
            assert answer == item + 1


async def test_closing_waits_for_the_call_that_runs(threads):
    started, go, ended = threading.Event(), threading.Event(), []

    def call(items):
        started.set()
        go.wait(10)
        ended.extend(items)
        return items

    batcher = MicroBatcher(call, name="the model", threads=threads, max_batch=1, concurrency=1)
    running, waiting = asyncio.create_task(batcher.submit(1)), asyncio.create_task(batcher.submit(2))
    await asyncio.to_thread(started.wait)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    assert not closing.done()
    go.set()
    await closing
    assert ended == [1]
    assert await running == 1
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_pages_gave_up_is_not_kept(threads):
    gate = threading.Event()

    def call(items):
        gate.wait(10)
        return items

    batcher = MicroBatcher(call, name="the model", threads=threads, max_batch=1, concurrency=1)
    running = asyncio.create_task(batcher.submit(0))
    await asyncio.sleep(0)
    given_up = [asyncio.create_task(batcher.submit(item)) for item in range(1, 50)]
    await asyncio.sleep(0)
    for page in given_up:
        page.cancel()
    gate.set()
    assert await running == 0
    assert await batcher.submit(50) == 50
    assert not batcher._pending
    await batcher.close()
