"""The connection to a Ray cluster, and the machines in it."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pagemill.config.machine import RaySettings, available_cores
from pagemill.errors import NetworkError, lacks_extra

_CONNECT_S = 10.0  # not measured; a cluster that runs answers within milliseconds

_VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anyone
    # Otherwise Ray prints warnings, notices of other machines and unhandled errors between the lines of the progress;
    # the run itself reports workers that died.
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",
    # Threads of Ray Data that outlive a run would connect to any cluster they find.
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


def connect(address: str) -> None:
    """Connect this process to a cluster, or start one within this machine."""
    # Before the import: Ray reads them when its modules are loaded.
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise lacks_extra(f"--ray needs another package ({error})", "ray") from error
    _probe(address)
    here: dict[str, Any] = {"num_cpus": available_cores(), "include_dashboard": False} if address == "local" else {}
    try:
        with _silenced():
            ray.init(address=address, namespace="pagemill", log_to_driver=False, logging_level=logging.CRITICAL, **here)
    except Exception as error:  # Ray raises Exception itself where a process of its own does not start in time
        reason = " ".join(str(error).split())
        if address == "local":
            raise NetworkError(
                f"Ray does not start on this machine: {reason}",
                remedy="Check that memory and the disk of /tmp/ray have room, or leave out --ray.",
            ) from error
        raise _unreachable(address, reason) from error


def _probe(address: str) -> None:
    """Fail if nothing listens at HOST:PORT. Ray would try for more than ten minutes, and ignore Ctrl-C."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():  # auto, local, and what Ray itself refuses
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, str(error)) from error


def _unreachable(address: str, reason: str) -> NetworkError:
    return NetworkError(
        f"the Ray cluster {address!r} does not answer: {reason}",
        remedy="Check the address with `ray status --address HOST:PORT`, or use --ray local.",
    )


@contextmanager
def _silenced() -> Iterator[None]:
    """Discard standard error of this process: Ray logs its start before it applies the log level."""
    # The descriptor, not sys.stderr: Ray's own processes and its C++ code write to it as well.
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def disconnect() -> None:
    """Disconnect, which ends the workers of this run; a cluster that was started here ends, too."""
    if "ray" in sys.modules:
        import ray

        ray.shutdown()


def _machines() -> list[dict[str, Any]]:
    import ray

    return [node for node in ray.nodes() if node["Alive"]]


def cpus_of_machines() -> list[int]:
    """CPUs of each machine that has any."""
    return [int(cpus) for node in _machines() if (cpus := node["Resources"].get("CPU", 0)) >= 1]


def places(cpus: int, cluster: RaySettings) -> int:
    """Number of workers that fit on the machines, at most as many as asked for."""
    found = 0
    for node in _machines():
        here = node["Resources"]
        room = int(here.get("CPU", 0) // cpus)
        found += min(room, int(here.get("GPU", 0) // cluster.gpus)) if cluster.gpus else room
    return min(found, cluster.workers or found)


def living_actors() -> set[str]:
    """Ids of the actors of this run whose process is alive."""
    import ray

    job = ray.JobID.from_hex(ray.get_runtime_context().get_job_id())
    # Private, as the public State API needs the dashboard, which a local cluster is started without.
    return set(ray._private.state.actors(job_id=job, actor_state_name="ALIVE"))


def accelerators() -> int:
    """GPUs of the whole cluster."""
    return sum(int(node["Resources"].get("GPU", 0)) for node in _machines())
