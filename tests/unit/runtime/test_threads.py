"""Computing threads: results and errors come back, what hangs is left behind, nothing waits for it."""

import asyncio
import gc
import logging
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from contextlib import nullcontext

import pytest

from pagemill.runtime.flight import TICKET, FlightControl
from pagemill.runtime.threads import ComputeThreads, StuckError, unwanted


@pytest.fixture
async def pool():
    threads = ComputeThreads(2, name="test", grace_s=0.02)
    yield threads
    await threads.close()


@pytest.fixture
def gate():
    """Opened at the latest when the test ends, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


async def given_up(pool: ComputeThreads, function) -> None:
    """Start a call and give it up once it runs."""
    running = threading.Event()

    def call():
        running.set()
        function()

    task = asyncio.create_task(pool.run(call))
    await asyncio.to_thread(running.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_results_and_exceptions_come_back(pool):
    assert await pool.run(divmod, 7, 2) == (3, 1)
    assert await asyncio.gather(*(pool.run(pow, base, exp=2) for base in range(20))) == [base**2 for base in range(20)]
    with pytest.raises(ZeroDivisionError):
        await pool.run(divmod, 1, 0)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, StopIteration])
async def test_what_would_end_the_event_loop_is_an_error_of_the_call(pool, error):
    def call():
        raise error("odd")

    with pytest.raises(RuntimeError, match=f"{error.__name__}: odd"):
        await pool.run(call)
    assert await pool.run(abs, -1) == 1


async def test_there_are_no_more_threads_than_asked_for_and_none_after_closing(gate):
    pool = ComputeThreads(2, name="counted")
    calls = [asyncio.create_task(pool.run(gate.wait)) for _ in range(5)]
    await asyncio.sleep(0)
    assert len(named("counted")) == 2
    gate.set()
    assert await asyncio.gather(*calls) == [True] * 5
    await pool.close()
    assert not named("counted")
    assert not pool.stuck.is_set()


async def test_a_call_that_is_given_up_before_it_begins_does_not_run(pool, gate):
    blockers = [asyncio.create_task(pool.run(gate.wait)) for _ in range(2)]
    ran = []
    waiting = asyncio.create_task(pool.run(ran.append, 1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    gate.set()
    await asyncio.gather(*blockers)
    await pool.run(abs, 1)
    assert not ran
    assert not pool.stuck.is_set()


async def test_a_call_that_ends_soon_after_it_was_given_up_is_no_trouble(gate):
    pool = ComputeThreads(1, name="test", grace_s=60.0)
    await given_up(pool, gate.wait)
    gate.set()
    await pool.drained()
    assert not pool.stuck.is_set()
    assert await pool.run(abs, -1) == 1
    await pool.close()


async def test_a_call_can_see_that_nobody_waits_for_it_any_more():
    pool = ComputeThreads(2, name="test", grace_s=60.0)
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()
    ended = threading.Event()

    def call():
        loop.call_soon_threadsafe(seen.set)
        while not unwanted():
            time.sleep(0.001)
        ended.set()

    waiting = asyncio.create_task(pool.run(call))
    await seen.wait()
    assert not await pool.run(unwanted)  # another call's thread
    waiting.cancel()
    await asyncio.wait({waiting})
    await pool.drained()
    assert ended.is_set()
    assert not pool.stuck.is_set()
    assert [await pool.run(unwanted) for _ in range(4)] == [False] * 4
    assert not unwanted()
    await pool.close()


async def test_a_call_that_hangs_is_left_behind_and_the_others_continue(gate, caplog):
    pool = ComputeThreads(1, name="hanging", grace_s=0.02)
    await given_up(pool, gate.wait)
    behind = asyncio.create_task(pool.run(abs, -1))  # waits for the only thread
    await pool.stuck.wait()
    await pool.drained()
    assert await behind == 1
    await asyncio.wait_for(pool.close(), 60)
    (left,) = named("hanging")
    gate.set()
    await asyncio.to_thread(left.join, 60)
    assert not left.is_alive()  # a thread that comes back ends: another has its place
    gc.collect()
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]  # the run tells of it, once


async def test_a_call_that_is_computed_slowly_on_a_busy_machine_is_not_stuck(gate, monkeypatch):
    looks = []

    def left(self):
        looks.append(self)
        gate.set()  # it ends after the first look
        return 0.001

    monkeypatch.setattr("pagemill.computing.cpu_time.Limit.left", left)
    pool = ComputeThreads(1, name="test", grace_s=0.001)
    await given_up(pool, gate.wait)
    await pool.drained()
    assert looks
    assert not pool.stuck.is_set()
    assert await pool.run(abs, -1) == 1
    await pool.close()


async def test_nobody_waits_for_a_call_that_was_never_given_up_to_settle(pool, gate):
    waiting = asyncio.create_task(pool.run(gate.wait))
    await asyncio.sleep(0)
    await asyncio.wait_for(pool.drained(), 60)
    gate.set()
    await waiting


async def test_closing_leaves_a_call_that_hangs(gate):
    pool = ComputeThreads(1, name="test", grace_s=0.02)
    running = threading.Event()
    call = pool.start(lambda: running.set() or gate.wait())
    await asyncio.to_thread(running.wait)
    await asyncio.wait_for(pool.close(), 60)
    assert isinstance(call.answer.exception(), StuckError)


@pytest.mark.parametrize("function", [id, int], ids=["done", "failed"])
async def test_what_a_call_holds_is_let_go(pool, function):
    class Pixels:
        pass

    pixels, gone = Pixels(), threading.Event()
    watch = weakref.ref(pixels, lambda _: gone.set())
    gc.disable()  # nothing may lie in a cycle
    try:
        with nullcontext() if function is id else pytest.raises(TypeError):
            await pool.run(function, pixels)
    finally:
        gc.enable()
    del pixels
    assert await asyncio.to_thread(gone.wait, 30)  # its thread lets go of it a moment after the answer
    assert watch() is None


def test_a_process_ends_though_a_thread_hangs():
    script = """
        import asyncio, threading, time
        from pagemill.runtime.threads import ComputeThreads

        def hang():
            started.set()
            time.sleep(3600)

        async def main():
            pool = ComputeThreads(1, name="test", grace_s=0.02)
            call = asyncio.create_task(pool.run(hang))
            await asyncio.to_thread(started.wait)
            call.cancel()
            await pool.close()
            print("stuck" if pool.stuck.is_set() else "fine")

        started = threading.Event()
        asyncio.run(main())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "stuck\n"


async def test_calls_of_the_oldest_page_go_first_whichever_came_first(gate):
    pool, flight, order = ComputeThreads(1, name="test"), FlightControl(max_pages=2, max_bytes=2), []
    tickets = {"old": await flight.enter(1), "young": await flight.enter(1)}

    async def call(name: str) -> None:
        TICKET.set(tickets[name])
        await pool.run(order.append, name)

    blocked = asyncio.create_task(pool.run(gate.wait, 60))
    await asyncio.sleep(0)
    calls = [asyncio.create_task(call(name)) for name in ("young", "old")]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(blocked, *calls)
    await pool.close()
    assert order == ["old", "young"]
