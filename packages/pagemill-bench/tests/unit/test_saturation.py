"""Saturation in virtual time: servers with known service laws, whose knees and figures are known exactly."""

import asyncio
import selectors
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pagemill.config.model_cards import load_card
from pagemill.document.labels import Task
from pagemill.errors import NetworkError, UsageError
from pagemill.inference.exchange import AttemptFailedError, Cause
from pagemill_bench.saturation import (
    Knee,
    Level,
    Load,
    Observer,
    Percentiles,
    Sender,
    drawn_regions,
    knee_of,
    saturate,
    spread,
)
from pagemill_bench.streaming import TimedAnswer
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

LEVELS = [2**power for power in range(10)]
GLM = load_card("glm-ocr")


class Instant(selectors.SelectSelector):
    """Does not wait: the loop's clock jumps to where it would have waited until."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0.0
        return super().select(0)


def in_virtual_time(work: Coroutine[Any, Any, Any]) -> Any:
    selector = Instant()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    loop._clock_resolution = 1e-9  # type: ignore[attr-defined]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)


class Law:
    """A server whose requests each take so long, in so many slots."""

    def __init__(self, slots: int, seconds: float = 1.0, *, fails_after: int = 10**9) -> None:
        self._slots = asyncio.Semaphore(slots)
        self._seconds = seconds
        self._fails_after = fails_after
        self.asked = self.in_flight = self.most = 0

    async def ask(self, _: bytes) -> TimedAnswer:
        loop = asyncio.get_running_loop()
        start = loop.time()
        self.asked += 1
        if self.asked > self._fails_after:
            raise AttemptFailedError(Cause.CONNECTION, "gone")
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        async with self._slots:
            await asyncio.sleep(self._seconds)
        self.in_flight -= 1
        seconds = loop.time() - start
        first = seconds - self._seconds / 2
        return TimedAnswer(
            seconds=seconds, first_token_s=first, prompt_tokens=100, output_tokens=20, finish_reason="stop"
        )

    async def metrics(self) -> dict[str, float] | None:
        return {"num_requests_running": float(self.in_flight), "num_preemptions_total": float(self.asked)}

    async def measure(self, in_flight: int, **limits: Any) -> Level:
        sender = Sender(self.ask, make, Observer(self.metrics))
        return await sender.measure(in_flight, **({"requests": 32, "seconds": 1e6} | limits))


async def make() -> bytes:
    return b""


@pytest.mark.parametrize("slots", [1, 8, 512])
def test_the_knee_of_a_server_with_slots_is_their_number(slots: int):
    async def levels() -> list[Level]:
        return [await Law(slots).measure(level) for level in LEVELS]

    measured = in_virtual_time(levels())
    rates = {level.in_flight: level.requests_per_s for level in measured}
    assert rates == pytest.approx({level: min(level, slots) for level in LEVELS})
    knee = knee_of(measured)
    assert knee is not None
    assert (knee.in_flight, knee.reached) == (slots, slots < 512)


@pytest.mark.parametrize("slots", [3, 100])
def test_a_knee_between_levels_is_found_within_one_step(slots: int):
    async def levels() -> list[Level]:
        return [await Law(slots).measure(level) for level in LEVELS]

    knee = knee_of(in_virtual_time(levels()))
    assert knee is not None
    assert slots / 2 < knee.in_flight < 2 * slots


def test_the_figures_of_a_level():
    law = Law(4, 2.0)
    level = in_virtual_time(law.measure(8))
    assert (level.answered, level.failed, law.most) == (32, 0, 8)
    assert level.requests_per_s == pytest.approx(2.0)
    assert level.prompt_tokens_per_s == pytest.approx(200)
    assert level.output_tokens_per_s == pytest.approx(40)
    assert level.latency_s.p50 == pytest.approx(4.0)  # two of them in the queue
    assert level.first_token_s.p50 == pytest.approx(3.0)
    assert level.server.running == pytest.approx(8.0, rel=0.1)
    assert level.server.preemptions == 32


def test_a_level_ends_when_its_time_is_over_but_not_before_each_place_was_answered_once():
    level = in_virtual_time(Law(4).measure(4, requests=10**6, seconds=9.5))
    assert 36 <= level.answered <= 44
    slow = in_virtual_time(Law(4, 100.0).measure(16, requests=10**6, seconds=1))
    assert slow.answered >= 16
    assert slow.requests_per_s == pytest.approx(0.04, rel=0.1)


def test_failures_are_counted_and_no_throughput():
    level = in_virtual_time(Law(4, fails_after=20).measure(4, requests=100))
    assert (level.answered, level.failed, level.failures) == (20, 80, {"gone": 80})
    assert level.requests_per_s == pytest.approx(4.0, rel=0.25)


def test_a_level_without_answers_is_given_up():
    law = Law(4, fails_after=0)
    level = in_virtual_time(law.measure(4, requests=10_000))
    assert level.answered == 0
    assert level.latency_s is None
    assert law.asked < 50
    assert knee_of([level]) is None


def level_of(in_flight: int, rate: float) -> Level:
    return Level(
        in_flight=in_flight,
        answered=1,
        failed=0,
        seconds=1,
        requests_per_s=rate,
        prompt_tokens_per_s=None,
        output_tokens_per_s=0,
        latency_s=Percentiles(p50=1, p95=1, p99=1),
        first_token_s=None,
    )


def test_the_knee_is_the_first_level_with_nine_tenths_of_the_best():
    levels = [level_of(4, 10.0), level_of(1, 5.0), level_of(2, 8.9), level_of(8, 9.0)]
    assert knee_of(levels) == Knee(in_flight=4, requests_per_s=10.0, highest=10.0, reached=True)
    assert knee_of([]) is None


def test_regions_are_drawn_from_the_seed():
    one, same, other = drawn_regions(GLM, 0, 16), drawn_regions(GLM, 0, 16), drawn_regions(GLM, 1, 16)
    assert [task for _, task in one].count(Task.TABLE) == 2
    assert all((a == b).all() for (a, _), (b, _) in zip(one, same, strict=True))
    assert [a.shape for a, _ in one] != [b.shape for b, _ in other]
    whole = drawn_regions(load_card("deepseek-ocr"), 0, 1)
    assert whole[0][1] is Task.PAGE


def test_any_few_regions_in_a_row_have_about_the_mean_size():
    regions = drawn_regions(GLM, 0)
    sizes = [pixels.size for pixels, _ in spread(regions)]
    assert sorted(sizes) == sorted(pixels.size for pixels, _ in regions)
    mean = sum(sizes) / len(sizes)
    for start in range(0, len(sizes) - 16, 8):
        assert sum(sizes[start : start + 16]) / 16 == pytest.approx(mean, rel=0.25)


async def saturated(server: StubServer, *in_flight: int, **changes: Any) -> list[Level]:
    load = Load(servers=[server.url], card=GLM, regions=drawn_regions(GLM, 0, 3), in_flight=in_flight, requests=8)
    return await saturate(replace(load, **changes), None, lambda level: None)


async def test_requests_are_streamed_each_with_an_image_of_its_own():
    async with StubServer(StubSettings(model="glm-ocr", keep_bodies=100)) as server:
        (level,) = await saturated(server, 2)
    bodies = [msgspec.json.decode(body) for body in server.bodies]
    assert all(body["stream"] and body["stream_options"] == {"include_usage": True} for body in bodies)
    assert {body["max_tokens"] for body in bodies} == {512}
    images = {body["messages"][0]["content"][0]["image_url"]["url"] for body in bodies}
    assert len(images) == len(bodies) == 12, "four more than measured, to warm up"
    assert (level.answered, level.failed) == (8, 0)
    assert level.server is not None
    assert level.server.prefix_cache_hits == 0


async def test_a_server_that_fails_midway_is_reported():
    settings = StubSettings(model="glm-ocr", faults={Fault.SERVER_ERROR: 0.3}, seed=2)
    async with StubServer(settings) as server:
        levels = await saturated(server, 2, requests=60)
    assert levels[0].failed
    assert "EngineCore" in next(iter(levels[0].failures))


async def test_a_server_that_is_not_there_or_has_another_model_is_an_error():
    async with StubServer(StubSettings(model="glm-ocr")) as server:
        with pytest.raises(UsageError, match="other"):
            await saturated(server, 1, served_model="other")
    with pytest.raises(NetworkError):
        await saturated(server, 1)
