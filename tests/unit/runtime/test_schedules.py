"""Schedules order the stages of pages as their names say; none loses a page or stands still."""

import asyncio
from contextlib import aclosing

import pytest

from pagemill import tracing
from pagemill.config.modes import ScheduleMode
from pagemill.runtime.flight import FlightControl
from pagemill.runtime.schedules import make_schedule

STAGES = ("decode", "recognition", "layout")


class Services:
    """Notes who enters which stage, and how many are in one at once."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.inside = 0
        self.most = 0

    async def stage(self, page: int) -> None:
        self.events.append((tracing.STAGE.get(), page))
        self.inside += 1
        self.most = max(self.most, self.inside)
        for _ in range(3):
            await asyncio.sleep(0)
        self.inside -= 1

    decode = stage
    detect_regions = stage

    async def read(self, page: int, languages: None) -> None:
        await self.stage(page)


async def run(mode: ScheduleMode, pages: int, *, in_flight: int, broken: int | None = None) -> Services:
    """Pages through three stages; ``broken`` ends after the first."""
    services, schedule = Services(), make_schedule(mode, in_flight)
    flight = FlightControl(max_pages=in_flight, max_bytes=10)
    schedule.bound(flight)

    async def source():
        for page in range(pages):
            yield page

    async def fly(page: int, ticket) -> None:
        async with schedule.services(services) as seen:
            steps = (seen.decode, lambda page: seen.read(page, None), seen.detect_regions)
            for name, step in zip(STAGES, steps, strict=True):
                with tracing.stage(name):
                    await step(page)
                if page == broken:
                    break
        ticket.leave()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks, aclosing(schedule.admitted(source())) as refs:
        async for page in refs:
            tasks.create_task(fly(page, await flight.enter(5)))
    return services


@pytest.mark.parametrize("mode", list(ScheduleMode))
@pytest.mark.parametrize("broken", [None, 0, 4, 6])
async def test_every_page_passes_every_stage_once(mode, broken):
    services = await run(mode, 7, in_flight=3, broken=broken)
    expected = [(stage, page) for page in range(7) for stage in STAGES[: 1 if page == broken else 3]]
    assert sorted(services.events) == sorted(expected)


async def test_sequential_does_one_thing_at_a_time():
    services = await run(ScheduleMode.SEQUENTIAL, 4, in_flight=3)
    assert services.most == 1
    assert services.events == [(stage, page) for page in range(4) for stage in STAGES]


async def test_concurrent_render_decodes_ahead_and_does_all_else_for_one_page_at_a_time():
    services = await run(ScheduleMode.CONCURRENT_RENDER, 6, in_flight=2)
    after = [page for stage, page in services.events if stage != "decode"]
    assert after == [page for page in range(6) for _ in range(2)]
    first_after = next(at for at, (stage, _) in enumerate(services.events) if stage != "decode")
    assert [stage for stage, _ in services.events[:first_after]].count("decode") >= 2


async def test_staged_has_a_barrier_before_every_stage_and_takes_batches_whole_whatever_they_weigh():
    services = await run(ScheduleMode.STAGED, 7, in_flight=3)  # of 15 bytes, where 10 are allowed
    order = [stage for stage, _ in services.events]
    batches = [order[:9], order[9:18], order[18:]]
    for batch, size in zip(batches, (3, 3, 1), strict=True):
        assert batch == [stage for stage in STAGES for _ in range(size)]


async def test_streaming_waits_for_nobody():
    services = await run(ScheduleMode.STREAMING, 6, in_flight=2)
    assert services.most == 2
    assert services.events[:2] == [("decode", 0), ("decode", 1)]


async def test_a_staged_batch_is_not_waited_for_when_the_source_ends_early():
    schedule = make_schedule(ScheduleMode.STAGED, 3)

    async def source():
        yield 1
        raise ValueError

    passed = []

    async def fly() -> None:
        async with schedule.services(Services()) as seen:
            await seen.decode(1)
            passed.append(1)

    with pytest.raises(ValueError):
        async with asyncio.timeout(60):
            async for _ in schedule.admitted(source()):
                task = asyncio.create_task(fly())
    async with asyncio.timeout(60):
        await task
    assert passed == [1]
