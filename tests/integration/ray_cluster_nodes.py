"""A Ray cluster of several nodes on this machine, whose processes can be found and killed. Linux."""

import os
import random
import secrets
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import pytest
from pagemill_process import wait_for

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
"""Of modules whose tests start Ray; nothing is imported for it while tests are collected."""
_MARK = "PAGEMILL_TEST_CLUSTER"
_WORKER = b"ray::MapWorker"
"""Beginning of the title that Ray gives to the processes of the actors that parse."""
_STORE_BYTES = 150 * 2**20
_KILL_S = 60.0


class SmallCluster:
    """A head without CPUs and some nodes with one each. A context manager; all of it is gone at the end.

    Args:
        nodes: Beside the head.
        environment: Of the workers.
        cpus: Logical CPUs of each node.
        gpus: What each node claims to have.
    """

    def __init__(self, nodes: int, environment: Mapping[str, str], *, cpus: int = 1, gpus: int = 0) -> None:
        self._count = nodes
        self._cpus = cpus
        self._gpus = gpus
        self._mark = f"{_MARK}={secrets.token_hex(8)}"
        name, value = self._mark.split("=")
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
        self._environment = {**environment, **quiet, name: value}
        self.nodes: list[Any] = []

    def __enter__(self) -> Self:
        from ray.cluster_utils import Cluster

        before = dict(os.environ)
        try:
            os.environ.update(self._environment)  # which nodes take over
            head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
            for _ in range(self._count):
                self.add_node()
        except BaseException:
            self.__exit__()
            raise
        finally:
            os.environ.clear()
            os.environ.update(before)
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(AttributeError):
            self._cluster.shutdown()
        for pid in self._members():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self._members(), "the end of the cluster")

    @property
    def address(self) -> str:
        """For ``--ray``."""
        return str(self._cluster.address)

    def add_node(self, environment: Mapping[str, str] | None = None) -> None:
        """Add a node, whose workers have these variables as well."""
        before = dict(os.environ)
        try:
            os.environ.update({**self._environment, **(environment or {})})
            node = self._cluster.add_node(
                wait=False, num_cpus=self._cpus, num_gpus=self._gpus, object_store_memory=_STORE_BYTES
            )
        finally:
            os.environ.clear()
            os.environ.update(before)
        self.nodes.append(node)

    def kill_node(self, dice: random.Random) -> None:
        """Kill the raylet of a node and all that it has started, as a machine that is gone."""
        node = self.nodes.pop(dice.randrange(len(self.nodes)))
        self._cluster.remove_node(node, allow_graceful=False)

    def drain_node(self, node: Any) -> None:
        """Tell Ray that a node will be taken away in an hour."""
        command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", "--address", self.address]
        command += ["--node-id", node.node_id, "--reason", "DRAIN_NODE_REASON_PREEMPTION"]
        command += ["--reason-message", "test", "--deadline-remaining-seconds", "3600"]
        subprocess.run(command, check=True, capture_output=True)

    def kill_worker(self, dice: random.Random, number: signal.Signals = signal.SIGKILL) -> bool:
        """Kill one of the actors that parse, or send it another signal; False if there is none."""
        return self.kill_actor(_WORKER, dice, number)

    def kill_actor(
        self, title: bytes, dice: random.Random | None = None, number: signal.Signals = signal.SIGKILL
    ) -> bool:
        """Kill a process whose title or program begins like this, or send it another signal; False if there is none.

        One that is killed has ended when this returns, so that the next call does not find it again.
        """
        commands = {pid: _read(pid, "cmdline").split(b"\0")[0] for pid in self._members()}
        actors = [pid for pid, command in commands.items() if command.rpartition(b"/")[2].startswith(title)]
        with suppress(ProcessLookupError, IndexError):
            pid = (dice or random.Random(0)).choice(actors)
            with os.fdopen(os.pidfd_open(pid), "rb", 0) as ended:
                os.kill(pid, number)
                if number == signal.SIGKILL and not select.select([ended], [], [], _KILL_S)[0]:
                    raise TimeoutError(f"process {pid} did not end")
            return True
        return False

    def _members(self) -> list[int]:
        pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        return [pid for pid in pids if self._mark.encode() in _read(pid, "environ").split(b"\0") and pid != os.getpid()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:  # it has ended
        return b""
