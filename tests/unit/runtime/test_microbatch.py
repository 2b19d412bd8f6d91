"""The microbatcher: batches fill by themselves, one bad item costs nobody else."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.errors import EngineError
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.threads import ComputeThreads


@pytest.fixture
async def threads():
    pool = ComputeThreads(4, name="test", grace_s=0.05)
    yield pool
    await pool.close()


@pytest.fixture
async def batchers(threads):
    """Makes microbatchers, and closes them."""
    made = []

    def make(call, *, max_batch=1, concurrency=1, **more):
        more |= {"threads": threads, "max_batch": max_batch, "concurrency": concurrency}
        made.append(MicroBatcher(call, name="the model", **more))
        return made[-1]

    yield make
    for each in made:
        await each.close()


class Model:
    """Gives the items back, once it is released."""

    def __init__(self, *, held: bool = True, hangs_on: int | None = None) -> None:
        self.batches: list[list[int]] = []
        self.started, self.released = threading.Event(), threading.Event()
        self.hangs_on = hangs_on
        if not held:
            self.released.set()

    def __call__(self, items):
        self.batches.append(list(items))
        if self.hangs_on is None or self.hangs_on in items:
            self.started.set()
            self.released.wait(60)
        return items


async def test_batches_grow_while_the_model_is_busy(batchers):
    model = Model()
    batcher = batchers(model, max_batch=4)
    first = asyncio.create_task(batcher.submit(0))
    await asyncio.to_thread(model.started.wait)
    rest = asyncio.gather(*(batcher.submit(i) for i in range(1, 9)))
    await asyncio.sleep(0)
    model.released.set()
    assert await first == 0
    assert await rest == list(range(1, 9))
    assert [len(batch) for batch in model.batches] == [1, 4, 4]


@pytest.mark.parametrize(
    ("error", "said", "limit"),
    [
        (ValueError("five"), "the model failed: ValueError: five", 8),
        (MemoryError(), "the model ran out of memory on a single item", 1),
    ],
)
async def test_the_item_that_breaks_a_batch_fails_alone(batchers, error, said, limit):
    def call(items):
        if 5 in items:
            raise error
        return items

    batcher = batchers(call, max_batch=8)
    answers = await asyncio.gather(*(batcher.submit(i) for i in range(8)), return_exceptions=True)
    assert isinstance(answers[5], EngineError)
    assert said in answers[5].message
    assert [a for i, a in enumerate(answers) if i != 5] == [0, 1, 2, 3, 4, 6, 7]
    assert batcher.limit == limit


async def test_a_model_that_answers_too_few_fails_loudly(batchers):
    batcher = batchers(lambda items: [], max_batch=2)
    with pytest.raises(EngineError, match="the model returned 0 answers to 1 items"):
        await batcher.submit(1)


async def test_neighbours_in_size_share_a_batch_and_the_oldest_is_never_left(batchers):
    model = Model()
    batcher = batchers(model, max_batch=2, size=float)
    blocker = asyncio.create_task(batcher.submit(0))
    await asyncio.sleep(0)
    rest = asyncio.gather(*(batcher.submit(i) for i in (100, 3, 101, 2)))
    await asyncio.sleep(0)
    model.released.set()
    await asyncio.gather(blocker, rest)
    assert [sorted(batch) for batch in model.batches[1:]] == [[100, 101], [2, 3]]


async def test_a_cancelled_page_leaves_the_queue(batchers):
    model = Model()
    batcher = batchers(model)
    first = asyncio.create_task(batcher.submit(1))
    await asyncio.sleep(0)
    second = asyncio.create_task(batcher.submit(2))
    third = asyncio.create_task(batcher.submit(3))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    model.released.set()
    assert await first == 1
    assert await third == 3
    assert model.batches == [[1], [3]]


@given(
    items=st.lists(st.integers(0, 50), max_size=30),
    bad=st.sets(st.integers(0, 50), max_size=4),
    max_batch=st.integers(1, 9),
    concurrency=st.integers(1, 3),
    memory=st.integers(1, 9),
)
def test_every_item_gets_its_own_answer(items, bad, max_batch, concurrency, memory):
    def call(batch):
        assert len(batch) <= max_batch
        if len(batch) > memory:
            raise MemoryError
        if bad.intersection(batch):
            raise ValueError
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


async def test_closing_waits_for_the_call_that_runs(batchers):
    model = Model()
    batcher = batchers(model)
    running, waiting = asyncio.create_task(batcher.submit(1)), asyncio.create_task(batcher.submit(2))
    await asyncio.to_thread(model.started.wait)
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    assert not closing.done()
    model.released.set()
    await closing
    assert await running == 1
    assert model.batches == [[1]]
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_pages_gave_up_is_not_kept(batchers):
    model = Model()
    batcher = batchers(model)
    running = asyncio.create_task(batcher.submit(0))
    await asyncio.sleep(0)
    given_up = [asyncio.create_task(batcher.submit(item)) for item in range(1, 50)]
    await asyncio.sleep(0)
    for page in given_up:
        page.cancel()
    model.released.set()
    assert await running == 0
    assert await batcher.submit(50) == 50
    assert not batcher._pending


class OutOfMemoryError(RuntimeError):
    """As PyTorch's, known by its name."""


async def test_running_out_of_memory_halves_the_batches_permanently(batchers, caplog):
    sizes: list[int] = []

    def call(items):
        sizes.append(len(items))
        if len(items) > 3:
            raise OutOfMemoryError("CUDA out of memory")
        return items

    batcher = batchers(call, max_batch=16)
    assert await batcher.submit_all(range(32)) == list(range(32))
    assert sizes == [16, 8, 4, 2, 2, 2, 2, 2, 2, 2, 2, *[2] * 8]
    assert batcher.limit == 2
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [
        f"the model ran out of memory with {size} items at once; from now on it gets {size // 2}" for size in (16, 8, 4)
    ]


async def test_calls_that_ran_out_of_memory_together_halve_once(batchers):
    together = threading.Barrier(2)

    def call(items):
        if len(items) == 8:
            together.wait(60)
            raise MemoryError
        return items

    batcher = batchers(call, max_batch=8, concurrency=2)
    assert await batcher.submit_all(range(16)) == list(range(16))
    assert batcher.limit == 4


async def test_a_batch_of_one_is_not_halved(batchers):
    def call(items):
        raise MemoryError

    batcher = batchers(call)
    assert batcher.limit == 1
    with pytest.raises(EngineError):
        await batcher.submit(5)
    assert batcher.limit == 1


async def test_a_refused_answer_costs_its_item_alone(batchers):
    batches: list[list[int]] = []

    def call(items):
        batches.append(list(items))
        # An item below 0 is no good; in company it spoils its right neighbour's answer too.
        return [-1 if item < 0 or (index and items[index - 1] < 0) else item for index, item in enumerate(items)]

    def check(item, answer):
        if answer < 0:
            raise EngineError(f"the model said {answer} to {item}")
        return answer * 10

    batcher = batchers(call, max_batch=4, check=check)
    answers = await asyncio.gather(*(batcher.submit(i) for i in (1, -7, 3, 4)), return_exceptions=True)
    assert [answers[0], answers[2], answers[3]] == [10, 30, 40]
    assert str(answers[1]) == "the model said -1 to -7"
    assert batches == [[1, -7, 3, 4], [1, -7], [1], [-7], [3, 4]]


@pytest.mark.parametrize("answer", [None, 7])
async def test_an_answer_that_is_no_list_names_the_engine(batchers, answer):
    batcher = batchers(lambda items: answer, max_batch=2)
    with pytest.raises(EngineError, match="the model failed: TypeError"):
        await batcher.submit(1)


async def test_a_call_that_hangs_gives_its_lane_back_when_all_its_items_are_given_up(batchers, threads):
    model = Model(hangs_on=1)
    batcher = batchers(model, max_batch=2)
    first, second = asyncio.create_task(batcher.submit(1)), asyncio.create_task(batcher.submit(2))
    behind = asyncio.create_task(batcher.submit(3))
    await asyncio.to_thread(model.started.wait)
    first.cancel()
    await asyncio.wait({first})
    await asyncio.wait_for(threads.drained(), 60)  # the second item is still wanted: nothing is given up yet
    assert not batcher.hangs
    second.cancel()
    assert await asyncio.wait_for(behind, 60) == 3
    assert batcher.hangs
    assert model.batches == [[1, 2], [3]]
    await asyncio.wait_for(batcher.close(), 60)
    model.released.set()


async def test_closing_does_not_wait_for_a_call_that_hangs(batchers):
    model = Model()
    batcher = batchers(model, max_batch=2)
    waiting = asyncio.create_task(batcher.submit(1))
    await asyncio.to_thread(model.started.wait)
    await asyncio.wait_for(batcher.close(), 60)
    assert batcher.hangs
    with pytest.raises(asyncio.CancelledError):
        await waiting
    model.released.set()


async def test_a_batch_that_is_given_up_before_it_begins_leaves_its_lane(batchers, threads):
    gate, running = threading.Event(), threading.Semaphore(0)

    def block():
        running.release()
        gate.wait(60)

    blockers = [asyncio.create_task(threads.run(block)) for _ in range(4)]
    for _ in range(4):
        await asyncio.to_thread(running.acquire)
    batcher = batchers(list, max_batch=1)
    given_up, kept = asyncio.create_task(batcher.submit(1)), asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait({given_up})
    gate.set()
    async with asyncio.timeout(30):
        assert await kept == 2
    assert not batcher.hangs
    await asyncio.gather(*blockers)


async def test_a_batch_may_wait_until_it_is_full(batchers):
    model = Model(held=False)
    batcher = batchers(model, max_batch=3, fill_s=3600)
    first = asyncio.gather(batcher.submit(1), batcher.submit(2))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not model.batches
    assert await asyncio.gather(batcher.submit_all([3, 4]), batcher.submit_all([5, 6])) == [[3, 4], [5, 6]]
    assert await first == [1, 2]
    assert [len(batch) for batch in model.batches] == [3, 3]


async def test_a_batch_that_does_not_fill_starts_at_its_deadline(batchers):
    model = Model(held=False)
    batcher = batchers(model, max_batch=3, fill_s=0.01)
    assert await batcher.submit_all([1, 2]) == [1, 2]
    assert await batcher.submit(3) == 3
    assert model.batches == [[1, 2], [3]]


async def test_closing_does_not_wait_for_a_batch_to_fill(batchers):
    batcher = batchers(list, max_batch=3, fill_s=3600)
    waiting = asyncio.gather(batcher.submit(1), return_exceptions=True)
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await batcher.close()
    assert isinstance((await waiting)[0], asyncio.CancelledError)
