"""A fake vLLM, the servers made of it, and a look at which of their processes are left. Linux."""

import asyncio
import json
import os
import random
import secrets
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_vllm
from pagemill_process import PATIENCE_S, POLL_S, _all_pids, _environment_of, kill, wait_for

from pagemill.inference.exchange import Exchange
from pagemill.serving.addresses import free_port, is_free
from pagemill.serving.server import complaint
from pagemill.serving.spec import Event, Patience, ServerSpec, What

_MARK = "FAKE_VLLM_WORLD"
QUICK = Patience(
    start_s=30,
    check_s=0.02,
    answer_s=20,
    failed_checks=2,
    grace_s=1,
    first_pause_s=0.01,
    longest_pause_s=0.02,
    quick_life_s=600,
    quick_deaths=3,
)
"""Of tests: looks often, waits little between two lives, takes every death for a quick one."""


async def is_healthy(url: str) -> bool:
    """Whether a server is, by its ``/health``, within 20 seconds."""
    exchange = Exchange()
    try:
        return await complaint(exchange, url, 20) is None
    finally:
        await exchange.close()


def own_ports(count: int = 1) -> int:
    """The first of so many free ports in a row.

    They are below those that systems hand out for connections, and chosen at random: tests run side by side, and each
    server has to find its own port free.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 30_000)
        if all(is_free("127.0.0.1", port + number) for number in range(count)):
            return port


class World:
    """A folder with a ``vllm`` of our own, and all processes that were started with its environment.

    Args:
        folder: Where it is.
        answering: Its ``vllm`` is that of :mod:`answering_vllm`.
    """

    def __init__(self, folder: Path, *, answering: bool = False) -> None:
        self.state = folder / "state"
        self.state.mkdir(parents=True)
        self.log = folder / "server.log"
        self.events: list[Event] = []
        self.program = folder / "bin" / "vllm"
        self.program.parent.mkdir()
        if answering:
            path = str(Path(__file__).parent)
            text = f"import sys\nsys.path.insert(0, {path!r})\nimport answering_vllm\nanswering_vllm.main()\n"
            self.program.write_text(f"#!{sys.executable}\n{text}")
        else:
            self.program.write_text(f"#!{sys.executable} -IS\n" + Path(fake_vllm.__file__).read_text())
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self._mark = secrets.token_hex(8)

    def environment(self, *words: str) -> dict[str, str]:
        return {**os.environ, "FAKE_VLLM": " ".join(words), "FAKE_VLLM_STATE": str(self.state), _MARK: self._mark}

    def spec(self, *words: str, **changes: Any) -> ServerSpec:
        wanted: dict[str, Any] = {
            "command": lambda port: [
                *(str(self.program), "serve", "some/model", "--served-model-name", "some"),
                *("--port", str(port), "--max-model-len", "4096"),
            ],
            "environment": self.environment(*words),
            "served_name": "some",
            "model": "some/model",
            "log": self.log,
            "preferred_port": free_port("127.0.0.1"),
        }
        return ServerSpec(**(wanted | changes))

    def report(self, event: Event) -> None:
        self.events.append(event)

    def told(self, what: What) -> list[str]:
        return [event.text for event in self.events if event.what is what]

    def lives(self) -> list[dict[str, Any]]:
        """What the fakes noted when they started, oldest first."""
        found = []
        while (path := self.state / f"life-{len(found)}.json").exists() and path.read_text().endswith("}"):
            found.append(json.loads(path.read_text()))
        return found

    def processes(self) -> list[int]:
        """All that were started with this world's environment and have not ended."""
        mark = f"{_MARK}={self._mark}".encode()
        return [pid for pid in _all_pids() if pid != os.getpid() and mark in _environment_of(pid).split(b"\0")]

    def wait_until_gone(self) -> None:
        wait_for(lambda: not self.processes(), "the processes of a server to end")

    def clear(self) -> None:
        while pids := self.processes():
            kill(pids)


async def until(event: Callable[[], object], what: str) -> None:
    """Wait until something is so, while the event loop goes on.

    Raises:
        TimeoutError: It did not come.
    """
    end = time.monotonic() + PATIENCE_S
    while not event():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_S:g} s for {what}")
        await asyncio.sleep(POLL_S)
