"""Model servers on the machines of a cluster: one for each accelerator, started and watched where that is."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pagemill.blocking import cancelled
from pagemill.cluster.connection import accelerators, connect, disconnect
from pagemill.config.serving import ONE_PER_GPU, ServingOptions
from pagemill.document.shown import count as count_of
from pagemill.errors import ServerError, UsageError
from pagemill.serving.addresses import free_port
from pagemill.serving.replicas import prepare
from pagemill.serving.servers import ModelServers
from pagemill.serving.spec import Event, Report, What

_REPORT_EVERY_S = 10.0
_STOP_S = 30.0
"""Within this time servers end; they end with their actors in any case."""


class ServerActor:
    """Keeps one server alive on the accelerator that Ray gives it. An asyncio actor.

    Args:
        options: Options of one server.
    """

    def __init__(self, options: ServingOptions) -> None:
        self._options = options
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    async def start(self) -> str:
        """Start the server, wait until it is healthy, and return its address."""
        import ray

        host = ray.util.get_node_ip_address()
        # A port of its own, where nobody listens: that of another server of this machine would be taken for this one.
        options = replace(self._options, host=host, port=free_port(host), replicas=1)
        serving = await asyncio.to_thread(prepare, options)
        self._servers = ModelServers(serving.specs, report=self._events.put_nowait)
        await self._servers.__aenter__()
        return self._servers.urls[0]

    async def wait(self) -> None:
        """Wait until the server is given up; raises why."""
        await self._servers.wait()

    async def event(self) -> Event:
        """The next thing that happens."""
        return await self._events.get()

    async def stop(self) -> None:
        """End the server."""
        await self._servers.__aexit__()


class ClusterServers(ModelServers):
    """Servers of one model on a cluster.

    Args:
        options: Options of each server. ``replicas`` may be ``ONE_PER_GPU``, of the whole cluster.
        address: Address of the cluster.
        report: Called with each event, on the event loop.
    """

    def __init__(self, options: ServingOptions, address: str, *, report: Report) -> None:
        super().__init__((), report=report)
        self._options = options
        self._address = address
        self._actors: list[Any] = []
        self._reporting: list[asyncio.Task[None]] = []

    def kill(self) -> None:
        """Kill all servers."""
        import ray

        for actor in self._actors:
            ray.kill(actor)

    async def _start(self) -> None:
        await asyncio.to_thread(connect, self._address)
        import ray
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        there = await asyncio.to_thread(accelerators)
        count = there if self._options.replicas == ONE_PER_GPU else self._options.replicas
        if not 0 < count <= there:
            raise UsageError(
                f"{count or 1} model servers need as many accelerators; the cluster has {there}",
                remedy="Lower --replicas, add machines, or name servers that run elsewhere with --server.",
            )
        # Reserved together: otherwise two runs could each hold half of the accelerators and wait for the other half.
        group = placement_group([{"GPU": 1}] * count)
        await self._reserved(asyncio.wrap_future(group.ready().future()), count)
        actor = ray.remote(ServerActor)
        self._actors = [
            actor.options(
                # No CPU of Ray: the workers reserve all of a machine by default, and would wait forever.
                num_cpus=0,
                num_gpus=1,
                max_concurrency=10,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number),
            ).remote(self._options)
            for number in range(count)
        ]
        # Before the start is awaited: loading a model takes minutes, of which the user should see the log.
        self._reporting = [asyncio.create_task(self._pass_on(actor)) for actor in self._actors]
        self.urls = tuple(await asyncio.gather(*(self._done(actor.start.remote()) for actor in self._actors)))
        self._watches = [asyncio.create_task(self._done(actor.wait.remote())) for actor in self._actors]

    async def _reserved(self, ready: asyncio.Future[Any], count: int) -> None:
        """Wait until the accelerators are free, and report the wait."""
        while not (await asyncio.wait([ready], timeout=_REPORT_EVERY_S))[0]:
            text = f"waiting for {count_of(count, 'accelerator')} to become free; `ray status` shows who uses them"
            self._report(Event(What.PROGRESS, self._address, text))
        ready.result()

    async def _done(self, result: Any) -> Any:
        """Await the result of an actor; raise its errors as ours."""
        import ray

        try:
            return await result
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, Exception) else ServerError(str(error)) from error
        except ray.exceptions.RayActorError as error:
            message = "a machine with a model server is gone, or its actor was killed"
            raise ServerError(message, remedy="Repeat the command to resume.") from error

    async def _pass_on(self, actor: Any) -> None:
        with suppress(Exception):  # the actor has ended, which its watch reports
            while True:
                self._report(await actor.event.remote())

    async def _stop(self) -> None:
        try:
            await cancelled(*self._watches, *self._reporting)
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_S):
                    await asyncio.gather(*(actor.stop.remote() for actor in self._actors), return_exceptions=True)
        finally:
            await asyncio.to_thread(disconnect)
