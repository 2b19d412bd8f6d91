"""What faults of a model server cost: throughput with random faults, and how soon all is as before after an outage.

One stub server that computes in batches (100 ms, and 1 ms more for each request that runs), asked by 400 at once
through the client of ``pagemill parse``: first undisturbed, then with ``--faults`` of its requests failing at random;
then it fails for ``--outage`` seconds, once as a process that is killed and started again, once with HTTP 500 to
everybody, once with lost connections, once with HTTP 503. Prints the ratio of answers, and the seconds after the outage
from which a second of answers is at least 80 % of one before it.

    python benchmarks/faulty_server.py
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pagemill.errors import PagemillError
from pagemill.inference.chat import ChatClient
from pagemill_bench.testing.stub_answers import Fault
from pagemill_bench.testing.stub_server import StubServer, StubSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BODY = b'{"model":"stub","messages":[{"role":"user","content":"OCR:"}]}'
SETTINGS = StubSettings(latency_ms=100, latency_ms_a_running=1)
WARM_S, AFTER_S = 4.0, 12.0
OUTAGES = {
    "killed": None,
    "HTTP 500": Fault.SERVER_ERROR,
    "connections lost": Fault.RESET,
    "HTTP 503": Fault.UNAVAILABLE,
}


class Load:
    """Requests without end, and when they were answered."""

    def __init__(self, client: ChatClient) -> None:
        self.client = client
        self.answered: list[float] = []
        self.failed = 0

    async def ask(self) -> None:
        """One after the other."""
        while True:
            try:
                await self.client.ask(BODY)
                self.answered.append(asyncio.get_running_loop().time())
            except PagemillError:
                self.failed += 1

    def between(self, start: float, end: float) -> int:
        """Answers in this time."""
        return sum(start <= time < end for time in self.answered)


@asynccontextmanager
async def loaded(server: StubServer, askers: int) -> AsyncIterator[Load]:
    """Ask a server all the time."""
    client = ChatClient([server.url])
    load = Load(client)
    tasks = [asyncio.create_task(load.ask()) for _ in range(askers)]
    try:
        yield load
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.aclose()


async def throughput(faults: float, seconds: float, askers: int) -> tuple[float, int, int]:
    """Answers a second once the limit has settled, the limit, and requests that failed for good."""
    settings = replace(SETTINGS, faults={Fault.SERVER_ERROR: faults})
    async with StubServer(settings) as server, loaded(server, askers) as load:
        await asyncio.sleep(WARM_S)
        start = asyncio.get_running_loop().time()
        await asyncio.sleep(seconds)
        return load.between(start, start + seconds) / seconds, load.client.servers[0].limit.value, load.failed


async def recovery(fault: Fault | None, outage_s: float, askers: int) -> float | None:
    """Seconds after an outage from which the throughput is as before; None: later than was looked."""
    async with StubServer(SETTINGS) as server, loaded(server, askers) as load:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(WARM_S)
        before = load.between(loop.time() - 2, loop.time()) / 2
        if fault is None:
            await server.kill()
            await asyncio.sleep(outage_s)
            await server.start()
        else:
            server.settings = replace(SETTINGS, faults={fault: 1.0})
            await asyncio.sleep(outage_s)
            server.settings = SETTINGS
        back = loop.time()
        await asyncio.sleep(AFTER_S)
        starts = (tenth / 10 for tenth in range(int(10 * (AFTER_S - 1))))
        return next((start for start in starts if load.between(back + start, back + start + 1) >= 0.8 * before), None)


async def measure(options: argparse.Namespace) -> None:
    """Run all and print."""
    sound, limit, _ = await throughput(0.0, options.seconds, options.askers)
    print(f"undisturbed: {sound:.0f} answers a second, limit {limit}")
    faulty, limit, failed = await throughput(options.faults, options.seconds, options.askers)
    print(
        f"{options.faults:.0%} of requests fail: {faulty:.0f} answers a second, {faulty / sound:.2f} of undisturbed,"
        f" limit {limit}, {failed} requests failed for good"
    )
    for name, fault in OUTAGES.items():
        seconds = await recovery(fault, options.outage, options.askers)
        told = f"over {AFTER_S - 1:g} s" if seconds is None else f"{seconds:.1f} s"
        print(f"{options.outage:g} s of outage ({name}): as before after {told}")


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=float, default=0.2, help="share of requests that fail")
    parser.add_argument("--outage", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--askers", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=5.0, help="to measure the throughput for")
    logging.disable(logging.CRITICAL)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
