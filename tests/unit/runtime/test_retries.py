"""The retry policy: bad attempts are repeated alone, as often as allowed, and every page ends exactly once."""

import asyncio
import selectors
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagemill.config.modes import ScheduleMode
from pagemill.config.settings import ParseSettings
from pagemill.document.identity import PageKey
from pagemill.document.page import Status
from pagemill.errors import CorruptInputError, WorkerCrashError
from pagemill.imaging.page import DecodedPage
from pagemill.parsing.page import SkippedPage, parse_page
from pagemill.recognition.reader import ReadPage
from pagemill.runtime.flight import FlightControl
from pagemill.runtime.schedules import make_schedule
from pagemill.runtime.stream import PageStream
from pagemill.sources.base import DocumentRef, EncodedImage, PageRef


@dataclass(frozen=True)
class Plan:
    """What becomes of a page."""

    behaviour: str = "ok"
    """``ok``, ``once`` (fails once), ``always``, ``fatal`` (fails for good), ``hang``, or ``skip``."""
    attempts: int = 0
    death: str | None = None
    size: int = 100

    def expected(self, max_attempts: int) -> tuple[str, int]:
        """How it ends, and after how many attempts."""
        if self.behaviour == "skip":
            return "skipped", 0
        if self.death and self.attempts >= max_attempts:
            return "failed", self.attempts
        first = self.attempts + 1
        if self.behaviour == "ok" or (self.behaviour == "once" and first < max_attempts):
            return "done", first + (self.behaviour == "once")
        return "failed", first if self.behaviour == "fatal" else max(first, max_attempts)


@dataclass
class World:
    """Source, services and journal of pages that do as planned."""

    plans: list[Plan]
    given: int = 0
    starts: Counter[int] = field(default_factory=Counter)
    in_flight: set[int] = field(default_factory=set)
    alone: int | None = None
    calls: list[tuple[str, int]] = field(default_factory=list)
    """What the journal was told: ``together``, ``alone`` or ``postponed``, and the page's position."""
    total: int | None = None
    skipped_earlier: int = 0
    skipped_files: dict[str, int] = field(default_factory=dict)
    skipped_links: list[str] = field(default_factory=list)
    skipped_tables: list[str] = field(default_factory=list)
    complete: bool = True

    async def pages(self):
        for position, plan in enumerate(self.plans):
            await asyncio.sleep(0)
            self.given += 1
            skipped = plan.behaviour == "skip"
            # The blank image says by its frame whose it is.
            payload = None if skipped else EncodedImage(source=b"." * plan.size, frame=position)
            yield PageRef(
                document=DocumentRef(doc_id="d", uri="d.pdf"),
                key=PageKey("0" * 64, position + 1),
                position=position,
                page_number=position + 1,
                page_id=f"d_{position + 1}",
                payload=payload,
                estimated_bytes=10,
                attempts=plan.attempts,
                death=plan.death,
                skip="duplicate" if skipped else None,
            )

    async def started(self, ref: PageRef, *, alone: bool) -> None:
        assert self.alone is None, "a page started beside one that was to be alone"
        assert not (alone and self.in_flight), "a page that was to be alone was not"
        self.in_flight.add(ref.position)
        self.alone = ref.position if alone else None
        self.calls.append(("alone" if alone else "together", ref.position))
        await asyncio.sleep(0)

    async def postponed(self, page) -> None:
        assert page.record.status is Status.FAILED
        self.calls.append(("postponed", page.record.page_idx))
        await asyncio.sleep(0)
        self.landed(page.record.page_idx)

    def landed(self, position: int) -> None:
        self.in_flight.discard(position)
        if self.alone == position:
            self.alone = None

    async def decode(self, payload):
        position = payload.frame
        self.starts[position] += 1
        await asyncio.sleep(0)
        behaviour = self.plans[position].behaviour
        if behaviour == "always" or (behaviour == "once" and self.starts[position] == 1):
            raise WorkerCrashError("died")
        if behaviour == "fatal":
            raise CorruptInputError("broken")
        return DecodedPage(pixels=np.full((8, 8, 3), 255 if behaviour != "hang" else 0, dtype=np.uint8))

    async def read(self, pixels, languages, *, bends=False):
        if not pixels.any():
            await asyncio.Event().wait()
        return ReadPage(lines=[])

    async def detect_regions(self, pixels):
        return []

    async def compute(self, function, *args, **kwargs):
        return function(*args, **kwargs)

    def stream(
        self,
        *,
        max_attempts: int = 2,
        pages: int = 3,
        max_postponed_bytes: int = 2**20,
        mode: ScheduleMode = ScheduleMode.STREAMING,
        **more: Any,
    ):
        settings = ParseSettings(page_timeout_s=5.0)
        schedule = make_schedule(mode, pages)

        async def parse(ref, ticket):
            async with schedule.services(self) as services:
                return await parse_page(ref, services, settings, ticket)

        flight = FlightControl(max_pages=pages, max_bytes=100)
        schedule.bound(flight)
        return PageStream(
            self,
            parse,
            flight,
            max_attempts=max_attempts,
            max_postponed_bytes=max_postponed_bytes,
            journal=self,
            schedule=schedule,
            **more,
        )

    async def run(self, **more: Any) -> list[tuple[int, str, int]]:
        """Position, end and attempts of each page, as they come out."""
        ends: list[tuple[int, str, int]] = []
        await self.consume(self.stream(**more), ends)
        return ends

    async def consume(self, stream: PageStream, ends: list[tuple[int, str, int]]) -> None:
        """Add position, end and attempts of each page as they come out."""
        async with aclosing(stream.pages()) as pages:
            async for page in pages:
                if isinstance(page, SkippedPage):
                    ends.append((page.ref.position, "skipped", 0))
                    continue
                ends.append((page.record.page_idx, page.record.status.value, page.record.attempts))
                await asyncio.sleep(0)
                self.landed(page.record.page_idx)


class _Instant(selectors.DefaultSelector):
    """Passes time instead of waiting for it; waiting for nothing is a deadlock."""

    now = 0.0

    def select(self, timeout=None):
        if timeout is None:
            raise AssertionError("everybody waits for ever")
        self.now += timeout
        return super().select(0)


def run_instantly(coroutine):
    selector = _Instant()

    def loop():
        made = asyncio.SelectorEventLoop(selector)
        made.time = lambda: selector.now
        return made

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(coroutine)


@pytest.mark.parametrize("mode", list(ScheduleMode))
@pytest.mark.parametrize("bad", [0, 1, 2, 4])
def test_a_full_store_of_postponed_pages_is_run_in_every_schedule(mode, bad):
    """Those of an earlier process are postponed while a batch of the staged schedule still waits for pages."""
    plans = [Plan(attempts=1 if position >= bad else 0, size=5000) for position in range(bad + 1)] + [Plan()] * 5
    ends = run_instantly(World(plans).run(pages=3, max_attempts=3, max_postponed_bytes=6000, mode=mode))
    assert sorted(ends) == [(position, "done", plan.attempts + 1) for position, plan in enumerate(plans)]


PLANS = st.builds(
    Plan,
    behaviour=st.sampled_from(["ok", "ok", "once", "always", "fatal", "hang", "skip"]),
    attempts=st.sampled_from([0, 0, 0, 1, 2, 3]),
    death=st.sampled_from([None, None, "SIGSEGV"]),
    size=st.sampled_from([0, 100, 5000]),
)


@given(
    plans=st.lists(PLANS, max_size=12),
    max_attempts=st.integers(1, 4),
    pages=st.integers(1, 5),
    max_postponed_bytes=st.sampled_from([0, 6000, 2**30]),
)
def test_every_page_ends_once_as_it_should(plans, max_attempts, pages, max_postponed_bytes):
    world = World(plans)
    ends = run_instantly(world.run(max_attempts=max_attempts, pages=pages, max_postponed_bytes=max_postponed_bytes))
    assert sorted(ends) == [(position, *plan.expected(max_attempts)) for position, plan in enumerate(plans)]
    told = Counter(world.calls)
    for position, plan in enumerate(plans):
        runs = plan.behaviour != "skip" and not (plan.death and plan.attempts >= max_attempts)
        attempts = plan.expected(max_attempts)[1] - plan.attempts if runs else 0
        together = int(runs and plan.attempts == 0)  # a later attempt is always made alone
        assert told["together", position] == together
        assert told["alone", position] == attempts - together
        assert told["postponed", position] == max(0, attempts - 1)
        assert world.starts[position] == attempts


@given(
    plans=st.lists(PLANS, max_size=12),
    pages=st.integers(1, 5),
    max_postponed_bytes=st.sampled_from([0, 6000, 2**30]),
    moment=st.integers(0, 60),
    leave=st.booleans(),
)
def test_whenever_it_is_stopped_or_left_no_attempt_is_lost_and_nothing_continues(
    plans, pages, max_postponed_bytes, moment, leave
):
    world, ends = World(plans), []

    async def run():
        stream = world.stream(pages=pages, max_postponed_bytes=max_postponed_bytes)
        consumer = asyncio.create_task(world.consume(stream, ends))
        for _ in range(moment):
            await asyncio.sleep(0)
        if leave:
            consumer.cancel()
        else:
            stream.stop_admitting()
        await asyncio.wait({consumer})
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert consumer.cancelled() or consumer.exception() is None

    run_instantly(run())
    expected = [(position, *plan.expected(2)) for position, plan in enumerate(plans)]
    assert not Counter(ends) - Counter(expected)
    if leave:
        return
    told, outcomes = Counter(world.calls), {position: attempts for position, _, attempts in ends}
    for position, plan in enumerate(plans):  # what started has finished, and that was told
        starts = told["together", position] + told["alone", position]
        ended_here = outcomes.get(position, 0) > plan.attempts
        assert starts == told["postponed", position] + ended_here
    assert not world.in_flight


def test_bad_attempts_are_repeated_when_the_source_has_ended():
    world = World([Plan("once"), Plan(), Plan(attempts=1), Plan()])
    ends = run_instantly(world.run(pages=1))
    assert ends == [(1, "done", 1), (3, "done", 1), (0, "done", 2), (2, "done", 2)]
    assert [call for call in world.calls if call[0] != "together"] == [("postponed", 0), ("alone", 0), ("alone", 2)]


def test_they_are_repeated_sooner_when_their_bytes_exceed_the_budget():
    class Noting(World):
        async def started(self, ref, *, alone):
            if alone:
                read.append(self.given)
            await super().started(ref, alone=alone)

    plans = [Plan("once", size=4000), Plan(attempts=1, size=4000), Plan(), Plan(attempts=1, size=4000), *[Plan()] * 20]
    for budget, expected in ((10_000, [3, 3, 24]), (100_000, [24, 24, 24])):
        read: list[int] = []  # pages read from the source when each of the three ran alone
        run_instantly(Noting(plans).run(pages=1, max_postponed_bytes=budget))
        assert read == expected


def test_what_given_up_pages_have_left_running_ends_before_a_page_runs_alone():
    world = World([Plan("hang"), Plan(attempts=1)])
    settled = []

    async def settle():
        assert not world.in_flight
        settled.append(len(world.calls))

    run_instantly(world.run(drained=settle))
    assert len(settled) == 2


def test_a_page_that_killed_its_process_alone_is_failed_unseen():
    world = World([Plan(attempts=2, death="SIGSEGV"), Plan(attempts=1, death="SIGKILL"), Plan(attempts=2)])

    async def run():
        pages = {}
        async for page in world.stream().pages():
            pages[page.record.page_idx] = page
            world.landed(page.record.page_idx)
        return pages

    pages = run_instantly(run())
    assert world.starts == {1: 1, 2: 1}
    dead = pages[0]
    assert (dead.record.status, dead.record.attempts) == (Status.FAILED, 2)
    (error,) = dead.record.errors
    assert (error.category, "SIGSEGV" in error.message, bool(error.remedy)) == ("crash", True, True)
    assert dead.record.page_key == f"{'0' * 64}/1"
    assert {position: page.record.status.value for position, page in pages.items()} == {
        0: "failed",
        1: "done",
        2: "done",
    }


def test_a_journal_that_fails_ends_the_stream():
    class Full(World):
        async def started(self, ref, *, alone):
            if ref.position == 2:
                raise OSError("no space")
            await super().started(ref, alone=alone)

    with pytest.raises(OSError, match="no space"):
        run_instantly(Full([Plan()] * 5).run())
