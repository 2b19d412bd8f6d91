"""The pipeline of a run on a cluster: plans pages here, has them parsed elsewhere, hands over their records."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from pagemill.cluster.connection import connect, cpus_of_machines, disconnect, living_actors, places
from pagemill.cluster.exchange import Exchange
from pagemill.cluster.run import ClusterRun
from pagemill.cluster.units import WorkerTask
from pagemill.config.machine import RaySettings
from pagemill.errors import UsageError
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.runtime.stream import Journal
from pagemill.sources import SourceOptions
from pagemill.sources.remote import TemporaryCopy
from pagemill.store.files import output_errors
from pagemill.store.paths import FOLDER


class ClusterPipeline(Pipeline):
    """A pipeline whose pages are parsed by workers of a Ray cluster; it is used like any other.

    Its services plan here: they find files, count pages, give names. Everything that is known of pages is in the
    catalogue and the journal of the caller, so that the run can continue when this process is killed. Inputs are named
    as the workers find them. Descriptions of a page that is interrupted are asked for again.

    Args:
        services: With the settings of each worker, whose ``threads`` are also the CPUs that it takes of Ray.
        cluster: The cluster and its resources for the run.
        out: The output directory, open while pages are streamed. Workers that see it write crops there.
    """

    is_remote: ClassVar = True

    def __init__(self, services: Services, cluster: RaySettings, out: Path) -> None:
        super().__init__(services)
        self._out = out.absolute()
        self._cluster = cluster

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._stack.push_async_callback(asyncio.to_thread, disconnect)
        return self

    async def prepare(self) -> None:
        """Prepare as a pipeline does, and connect to the cluster.

        Raises:
            MissingDependencyError: Ray is not installed.
            NetworkError: The cluster does not answer.
            UsageError: No machine of the cluster has room for a worker.
            PagemillError: See the base class.
        """
        await asyncio.to_thread(connect, self._cluster.address or "local")
        cpus = self.services.asked_runtime.threads or min(await asyncio.to_thread(cpus_of_machines), default=0)
        if not cpus or not await asyncio.to_thread(places, cpus, self._cluster):
            raise UsageError(
                f"no machine of the cluster has room for a worker (CPUs: {cpus or 1}, GPUs: {self._cluster.gpus:g})",
                remedy="Give workers fewer --threads, or add machines.",
            )
        self.services.asked_runtime = replace(self.services.asked_runtime, threads=cpus)
        await super().prepare()

    async def _make_stream(self, options: SourceOptions, journal: Journal | None, max_attempts: int) -> ClusterRun:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from pagemill.cluster.dataset import results
        from pagemill.cluster.metrics import RunMetrics

        await self.services.awaited()
        with output_errors(self._out):
            self._token = TemporaryCopy(self._out / FOLDER)  # goes away with this object
        task = WorkerTask(
            settings=self.services.settings,
            runtime=self.services.asked_runtime,
            layout=self.services.layout,
            source=replace(options, limit=None, recursive=False, download=None, skip_duplicates=False),
            folder=str(Path.cwd()),
            out=self._out,
            log_level=logging.getLogger("pagemill").getEffectiveLevel(),
            token=self._token.path.name,
        )
        # On the machine of the driver: the exchange must not be lost with any other machine.
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        exchange = ray.remote(num_cpus=0, max_concurrency=10_000, scheduling_strategy=here)(Exchange).remote()
        return ClusterRun(
            self.source,
            self.services,
            task,
            exchange,
            results=partial(results, exchange, task, self._cluster),
            look=lambda: (places(self.services.asked_runtime.threads, self._cluster), living_actors()),
            show=RunMetrics().show,
            pages_in_flight=self.services.runtime.pages_in_flight,
            journal=journal,
            max_attempts=max_attempts,
        )
