"""Saturation of model servers: throughput, latency and their own figures at rising numbers of requests in flight.

Each level keeps so many requests in flight: as soon as one is answered, the next is sent. Throughput counts until the
last request is sent, when the load is still full; latencies are those of all requests, also of those that are answered
while the load drains. Every request has an image of its own: a server that caches prompts must not answer out of
its cache what a real run would have it compute.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pagemill.config.model_cards import ModelCard
from pagemill.config.modes import ReadingMode
from pagemill.document.labels import Task
from pagemill.errors import NetworkError, PagemillError
from pagemill.imaging.types import Pixels
from pagemill.inference.client import ServerClient
from pagemill.inference.exchange import AttemptFailedError, Exchange
from pagemill.recognition.vlm.requests import RequestBuilder
from pagemill_bench.server_metrics import read_metrics
from pagemill_bench.streaming import STREAMED, TimedAnswer, ask_timed
from pagemill_bench.testing.drawn_pages import draw_page, draw_region

if TYPE_CHECKING:
    from pagemill.profiling.gpu_use import Gpus, GpuUse

KNEE_SHARE = 0.9
KNEE_RULE = f"the fewest requests in flight with {KNEE_SHARE:.0%} of the highest throughput"
ROUNDS = 4
"""Minimum number of requests that a level sends for each in flight, unless its time is over."""
REGIONS = 64
"""Different regions that are drawn."""
_PAGE = (1654, 2339)
"""A4 at 200 dpi, for models that read whole pages."""
_TABLES = 8
"""One region in this many is a table."""
_WARM_UP = 4
_GOLDEN = (5**0.5 - 1) / 2
"""The fractional parts of its multiples are spread evenly, however many there are."""
_TIMEOUT_S = 600.0
_SAMPLE_S = 0.5
_HOPELESS = 8
_MESSAGES = 10

Region = tuple["Pixels", Task]
"""Pixels, and what the model is to do with them."""


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of times in seconds."""

    p50: float
    p95: float
    p99: float


class ServerLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What the servers report (``/metrics`` of vLLM), all together; None for what they do not report."""

    running: float | None = None
    """Mean number of requests that are computed."""
    waiting: float | None = None
    """Mean number of requests in the queue."""
    queue_s: float | None = None
    """Mean time of a request in the queue."""
    kv_cache: float | None = None
    """Highest use of the key-value cache, 0-1."""
    preemptions: int | None = None
    prefix_cache_hits: float | None = None
    """Share of the prompts' tokens that came out of the prefix cache, 0-1."""
    image_cache_hits: float | None = None
    """The same of the multimodal processor's cache."""


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one number of requests in flight."""

    in_flight: int
    answered: int
    failed: int
    seconds: float
    """Time under full load."""
    requests_per_s: float
    prompt_tokens_per_s: float | None
    output_tokens_per_s: float
    latency_s: Percentiles | None
    first_token_s: Percentiles | None
    """Times to the first token, of answers with text."""
    server: ServerLoad | None = None
    gpus: tuple[GpuUse, ...] = ()
    failures: dict[str, int] = {}
    """Messages of failed requests, and how often each came."""


class Knee(msgspec.Struct, frozen=True, kw_only=True):
    """The level above which more requests in flight hardly increase throughput."""

    in_flight: int
    requests_per_s: float
    highest: float
    """Throughput of the best level."""
    reached: bool
    """False if it is the last level: more in flight may bring more."""
    rule: str = KNEE_RULE


def knee_of(levels: Iterable[Level]) -> Knee | None:
    """The knee (:data:`KNEE_RULE`); None where nothing was answered."""
    ordered = sorted(levels, key=lambda level: level.in_flight)
    highest = max((level.requests_per_s for level in ordered), default=0.0)
    if highest <= 0:
        return None
    found = next(level for level in ordered if level.requests_per_s >= KNEE_SHARE * highest)
    return Knee(
        in_flight=found.in_flight,
        requests_per_s=found.requests_per_s,
        highest=highest,
        reached=found is not ordered[-1] or len(ordered) == 1,
    )


def drawn_regions(card: ModelCard, seed: int, count: int = REGIONS) -> list[Region]:
    """Regions, or pages for a model that reads whole pages, drawn from a seed."""
    numbers = range(seed * count, (seed + 1) * count)
    if card.reads is ReadingMode.PAGES:
        return [(draw_page(number, _PAGE), Task.PAGE) for number in numbers]
    kinds = [(number, number % _TABLES == _TABLES - 1) for number in numbers]
    return [(draw_region(number, table=table), Task.TABLE if table else Task.TEXT) for number, table in kinds]


def spread(regions: Sequence[Region]) -> list[Region]:
    """Regions in an order in which small and large ones take turns, so that every level sends about the same."""
    by_size = sorted(regions, key=lambda region: region[0].size)
    places = sorted(range(len(regions)), key=lambda number: number * _GOLDEN % 1)
    return [by_size[place] for place in places]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The load and its servers."""

    servers: Sequence[str]
    """Base URLs."""
    card: ModelCard
    regions: Sequence[Region]
    in_flight: Sequence[int]
    """Levels, one after the other."""
    requests: int = 32
    """Minimum number of requests of a level."""
    seconds: float = 60.0
    """Time after which a level sends no more requests."""
    max_tokens: int = 512
    """Longest answer."""
    served_model: str | None = None
    api_key: str | None = None


async def saturate(load: Load, gpus: Gpus | None, report: Callable[[Level], object]) -> list[Level]:
    """Measure one level after the other; ends early at a level without any answer.

    Args:
        load: The load.
        gpus: Sampled meanwhile.
        report: Called with each level when it has been measured.

    Raises:
        NetworkError: A server cannot be reached, or fails at once.
        UsageError: A server does not take the key, or does not serve the model.
        RequestRefusedError: It refuses the requests.
    """
    client = ServerClient(load.servers, api_key=load.api_key)
    try:
        served = await client.find_model(load.served_model, [load.card.name, load.card.repository])
    finally:
        await client.aclose()
    roots = [server.root for server in client.servers]
    limits = (load.max_tokens, load.card.sampling.max_tokens, served.max_model_len)
    sampling = msgspec.structs.replace(
        load.card.sampling,
        max_tokens=min(tokens for tokens in limits if tokens is not None),
        extra={**load.card.sampling.extra, **STREAMED},
    )
    builder = RequestBuilder(load.card, served.name)
    regions = spread(load.regions)
    numbers, turn, shift = itertools.count(), itertools.cycle(roots), secrets.randbelow(2**16)

    def make() -> bytes:
        rounds, index = divmod(next(numbers), len(regions))
        pixels, task = regions[index]
        moved = np.roll(pixels, shift + rounds, axis=1)  # as many tokens, and another image
        return builder.body(builder.prepare(moved, task), sampling)

    exchange = Exchange(load.api_key, max(load.in_flight))
    try:
        observer = Observer(lambda: read_metrics(exchange, roots), gpus)
        sender = Sender(
            lambda body: ask_timed(exchange, next(turn), body, _TIMEOUT_S), lambda: asyncio.to_thread(make), observer
        )
        await _warm_up(sender)
        levels: list[Level] = []
        for in_flight in load.in_flight:
            levels.append(await sender.measure(in_flight, requests=load.requests, seconds=load.seconds))
            report(levels[-1])
            if not levels[-1].answered:
                break
        return levels
    finally:
        await exchange.close()


async def _warm_up(sender: Sender) -> None:
    """Send a few requests that do not count; raises what they failed of if all of them did."""
    bodies = [await sender.make() for _ in range(_WARM_UP)]
    results = await asyncio.gather(*(sender.ask(body) for body in bodies), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if len(errors) == len(results):
        if isinstance(errors[0], AttemptFailedError):
            raise NetworkError(errors[0].message, remedy="Check the server's log.") from errors[0]
        raise errors[0]


@dataclass(slots=True)
class Observer:
    """Samples the servers and the GPUs while a level is measured.

    Args:
        metrics: Reads the servers' metrics.
        gpus: The GPUs; None for none.
    """

    metrics: Callable[[], Awaitable[dict[str, float] | None]]
    gpus: Gpus | None = None
    _gauges: list[dict[str, float]] = field(default_factory=list)
    _before: dict[str, float] | None = None

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Take samples in the block, in which the load is full."""
        self._gauges = []
        if self.gpus:
            self.gpus.begin()
        self._before = await self.metrics()
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def load(self) -> ServerLoad | None:
        """Metrics of the servers since the block started; available when the load has drained."""
        before, after = self._before, await self.metrics()
        if before is None or after is None:
            return None

        def grown(name: str) -> float | None:
            return after[name] - before.get(name, 0.0) if name in after else None

        def share(part: str, whole: str) -> float | None:
            some, every = grown(part), grown(whole)
            return None if some is None or not every else some / every

        def seen(name: str) -> list[float]:
            return [gauges[name] for gauges in self._gauges if name in gauges]

        def mean(name: str) -> float | None:
            values = seen(name)
            return sum(values) / len(values) if values else None

        preemptions = grown("num_preemptions_total")
        return ServerLoad(
            running=mean("num_requests_running"),
            waiting=mean("num_requests_waiting"),
            queue_s=share("request_queue_time_seconds_sum", "request_queue_time_seconds_count"),
            kv_cache=max(seen("kv_cache_usage_perc"), default=None),
            preemptions=None if preemptions is None else round(preemptions),
            prefix_cache_hits=share("prefix_cache_hits_total", "prefix_cache_queries_total"),
            image_cache_hits=share("mm_cache_hits_total", "mm_cache_queries_total"),
        )

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_SAMPLE_S)
            if self._before is not None and (gauges := await self.metrics()) is not None:
                self._gauges.append(gauges)
            if self.gpus:
                await asyncio.to_thread(self.gpus.sample)


@dataclass(frozen=True, slots=True)
class Sender:
    """Keeps a number of requests in flight.

    Args:
        ask: Sends a body and times the answer.
        make: Makes the next body.
        observer: Looks on.
    """

    ask: Callable[[bytes], Awaitable[TimedAnswer]]
    make: Callable[[], Coroutine[Any, Any, bytes]]
    observer: Observer

    async def measure(self, in_flight: int, *, requests: int, seconds: float) -> Level:
        """Measure one level.

        Args:
            in_flight: Requests in flight.
            requests: Least number of requests; at least :data:`ROUNDS` for each in flight.
            seconds: No more are sent after so long, unless fewer than ``in_flight`` have been answered.
        """
        loop = asyncio.get_running_loop()
        wanted = max(requests, ROUNDS * in_flight)
        answers: list[TimedAnswer] = []
        failures: Counter[str] = Counter()
        sent = counted = 0
        last_sent = 0.0
        drained = asyncio.Event()

        def may_send() -> bool:
            nonlocal sent, counted, last_sent
            late = loop.time() - start > seconds and len(answers) >= in_flight
            hopeless = not answers and failures.total() >= in_flight + _HOPELESS
            if sent >= wanted or late or hopeless or drained.is_set():
                drained.set()
                return False
            sent, counted, last_sent = sent + 1, len(answers), loop.time()
            return True

        async def send(body: bytes) -> None:
            while may_send():
                following = asyncio.create_task(self.make())  # ready when this one is answered
                try:
                    answers.append(await self.ask(body))
                except (AttemptFailedError, PagemillError) as error:
                    failures[error.message] += 1
                finally:
                    body = await following

        bodies = [await self.make() for _ in range(in_flight)]
        async with asyncio.TaskGroup() as clients, self.observer.watching():
            start = loop.time()
            for body in bodies:
                clients.create_task(send(body))
            await drained.wait()
        # The load was full until the last request was sent.
        full = answers[:counted]
        time = last_sent - start
        prompts = [answer.prompt_tokens for answer in full if answer.prompt_tokens is not None]
        return Level(
            in_flight=in_flight,
            answered=len(answers),
            failed=failures.total(),
            seconds=time,
            requests_per_s=len(full) / time if time else 0.0,
            prompt_tokens_per_s=sum(prompts) / time if prompts and time else None,
            output_tokens_per_s=sum(answer.output_tokens for answer in full) / time if time else 0.0,
            latency_s=_percentiles([answer.seconds for answer in answers]),
            first_token_s=_percentiles(
                [answer.first_token_s for answer in answers if answer.first_token_s is not None]
            ),
            server=await self.observer.load(),
            gpus=self.observer.gpus.use() if self.observer.gpus else (),
            failures=dict(failures.most_common(_MESSAGES)),
        )


def _percentiles(times: Sequence[float]) -> Percentiles | None:
    if not times:
        return None
    p50, p95, p99 = (float(value) for value in np.percentile(times, [50, 95, 99]))
    return Percentiles(p50=p50, p95=p95, p99=p99)
