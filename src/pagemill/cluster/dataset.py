"""The run as a Ray dataset: units in, results out. The only module that uses Ray Data."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import ray
from ray.data import ActorPoolStrategy, Datasource, ReadTask
from ray.data.block import BlockMetadata

from pagemill.cluster.units import WorkerTask
from pagemill.cluster.worker import PageWorker
from pagemill.config.machine import RaySettings

if TYPE_CHECKING:
    import pyarrow as pa
else:
    from pagemill.config.arrow import pa


class UnitDatasource(Datasource):  # type: ignore[misc]
    """Units as the driver offers them, from one task that waits for the next one.

    Args:
        exchange: Handle of the :class:`~pagemill.cluster.exchange.Exchange`.
    """

    def __init__(self, exchange: Any) -> None:
        super().__init__()
        self._exchange = exchange

    def get_name(self) -> str:
        """Name in Ray's dashboard."""
        return "Units"

    def estimate_inmemory_data_size(self) -> int | None:
        """Unknown."""
        return None

    def get_read_tasks(self, parallelism: int, **_: Any) -> list[ReadTask]:
        """One task, whatever parallelism is asked for: units are few, and come in order."""
        exchange = self._exchange

        # By numbers from 0: Ray may execute the task again, which must then read the same units.
        def read() -> Iterator[pa.Table]:
            number = 0
            while (unit := ray.get(exchange.take.remote(number))) is not None:
                yield pa.table({"unit": [unit]})
                number += 1

        return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None))]


def results(exchange: Any, task: WorkerTask, cluster: RaySettings, workers: int, units: int) -> Iterator[bytes]:
    """Have units parsed and yield their encoded results, in no particular order. Blocks.

    Args:
        exchange: Source of the units.
        task: For the workers.
        cluster: Maximum number of workers, and GPUs of each.
        workers: Actors to begin with; Ray adds some while there is room for them and work is waiting.
        units: Units that one actor parses at once.
    """
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # A block per unit, so that workers get units, and the driver results, without waiting for a block to fill.
    context.target_max_block_size = 1
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # the error that ends the run repeats it
    read = ray.data.read_datasource(UnitDatasource(exchange), override_num_blocks=1, num_cpus=0)
    # Actors are restarted, and their tasks executed again, without end: that is Ray Data's default.
    parsed = read.map(
        PageWorker,
        fn_constructor_args=(task, exchange),
        compute=ActorPoolStrategy(
            min_size=workers,
            max_size=cluster.workers or None,
            max_concurrent_calls_per_actor=units,
            max_tasks_in_flight_per_actor=units,
            enable_true_multi_threading=True,
        ),
        num_cpus=task.runtime.threads,
        num_gpus=cluster.gpus or None,
    )
    for batch in parsed.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from batch.column("result").to_pylist()
