"""Limits of computation count CPU time; what makes no progress has the same limit by the clock."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from pagemill.computing import cpu_time
from pagemill.computing.cpu_time import METER, Limit, Meter, Work, counted, process_clock, thread_clock
from pagemill.computing.timeout import Timeout


class Clocks:
    """CPU time and time that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cpu = self.now = 0.0
        monkeypatch.setattr(cpu_time.time, "monotonic", lambda: self.now)

    def pass_(self, seconds: float, cpu: float) -> None:
        self.now += seconds
        self.cpu += cpu


def test_a_starved_computation_gets_its_time_and_one_that_had_it_gets_no_more(monkeypatch):
    clocks = Clocks(monkeypatch)
    limit = Limit(60, lambda: clocks.cpu)
    clocks.pass_(60, cpu=5)  # load 25 on two cores
    assert limit.left() == 55
    clocks.pass_(55, cpu=4.5)
    assert limit.left() == 50.5
    clocks.pass_(600, cpu=51)
    assert limit.left() == 0


def test_one_that_makes_no_progress_has_its_limit_by_the_clock(monkeypatch):
    clocks = Clocks(monkeypatch)
    limit = Limit(60, lambda: clocks.cpu)
    clocks.pass_(60, cpu=0.01)  # it looks at a lock now and then
    assert limit.left() == 0


def test_waiting_for_a_turn_does_not_count(monkeypatch):
    clocks = Clocks(monkeypatch)
    work = Work()
    meter = Meter()
    meter.add(work)
    limit = Limit(60, meter.clock, meter.waits)
    clocks.pass_(60, cpu=0)
    assert limit.left() == 60
    work.begin()
    work.end()
    clocks.pass_(60, cpu=0)
    assert limit.left() == 0


def test_the_cpu_time_of_a_batch_is_that_of_each_of_its_pages():
    pages, batch = [Work(), Work()], Work(lambda: 7.0)
    for page in pages:
        assert page.waits
        page.part_of = batch
    meter = Meter()
    meter.add(pages[0])
    assert (meter.clock(), meter.waits()) == (7.0, False)


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not tell")
def test_the_clocks_of_threads_and_processes():
    def spin() -> None:
        works[0].begin()
        while not ended.is_set():
            pass
        works[0].end()

    works, ended = [Work()], threading.Event()
    thread = threading.Thread(target=spin)
    thread.start()
    while works[0].cpu_s < 0.02:
        time.sleep(0.001)
    ended.set()
    thread.join()
    assert works[0].cpu_s >= 0.02
    assert thread_clock(threading.get_ident())() == pytest.approx(time.thread_time(), abs=1)
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    clock = process_clock(child.pid)
    while clock() < 0.02:
        time.sleep(0.001)
    child.kill()
    child.wait()
    clock()
    assert clock() - clock() == 0.0


LOCK_HELD_FOR_EVER = """
import ctypes, threading
def ask():
    while True: pass
for _ in range(12): threading.Thread(target=ask, daemon=True).start()
print("ready", flush=True)
ctypes.PyDLL(None).sleep(1000)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="macOS does not tell")
def test_threads_that_ask_for_the_lock_of_one_that_sleeps_are_no_progress():
    with subprocess.Popen([sys.executable, "-c", LOCK_HELD_FOR_EVER], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        child.stdout.readline()
        limit = Limit(1, process_clock(child.pid))
        time.sleep(1)
        while limit.left():  # the first looks may find what was computed before the lock was taken
            time.sleep(1)
        child.kill()


async def test_a_block_ends_when_its_time_is_up_and_not_before(monkeypatch):
    looks = iter([0.001, 0.001, 0.0])
    monkeypatch.setattr(Limit, "left", lambda self: next(looks))
    with pytest.raises(TimeoutError):
        async with Timeout() as limit:
            limit.start(0.001)
            assert METER.get() is limit.meter
            await asyncio.Event().wait()
    assert limit.expired()
    assert next(looks, None) is None
    assert METER.get() is None


async def test_a_block_that_waits_for_others_has_no_limit(monkeypatch):
    looked = asyncio.Event()
    monkeypatch.setattr(Limit, "left", lambda self: looked.set() or 0.001)
    async with Timeout() as limit:
        limit.start(0.001)
        await looked.wait()
        limit.stop()
        monkeypatch.setattr(Limit, "left", lambda self: 0.0)
        await asyncio.sleep(0)
    assert not limit.expired()


async def test_calls_are_counted_for_their_page_alone():
    async with Timeout() as limit:
        work = counted()
        assert limit.meter.waits()
        work.begin()
        assert not limit.meter.waits()
        work.end()
    assert counted().waits
    assert not limit.meter.waits()
