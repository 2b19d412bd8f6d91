"""``pagemill serve-model`` with a real vLLM, as a process that can be watched and killed. Linux."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATIENCE_S = 600.0
"""After this long whatever is waited for is taken for lost; a server of a tiny model starts in half a minute."""
POLL_S = 0.05
ARGUMENTS = ("--dtype", "float32", "--enforce-eager", "--skip-mm-profiling")
"""Float32, so that transformers says the same; no compiling, which takes longer here than all answers."""


@dataclass(frozen=True, slots=True)
class VllmEnvironment:
    """An installed vLLM."""

    folder: Path
    caches: Path
    """Takes logs and what is compiled."""

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of its processes."""
        return {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "TORCHDYNAMO_DISABLE": "1",  # else the first request with log probabilities compiles for half a minute
            "XDG_STATE_HOME": str(self.caches / "state"),
            "VLLM_CACHE_ROOT": str(self.caches / "vllm"),
            "PYTHONPATH": str(Path(__file__).parent),  # for dictated_answer.py
        }

    def reference(self, checkpoint: Path, bodies: Sequence[dict[str, Any]]) -> list[Any]:
        """What transformers says to the bodies of requests (``reference.py``)."""
        answers = subprocess.run(
            [self.python, Path(__file__).with_name("reference.py"), checkpoint],
            input=json.dumps(bodies),
            stdout=subprocess.PIPE,
            env=self.variables,
            text=True,
            check=True,
        )
        found: list[Any] = json.loads(answers.stdout)
        return found


class ServingProcess:
    """``pagemill serve-model``, started.

    Args:
        vllm: The installation.
        model: Name of the card and of the checkpoint.
        checkpoints: Their folder.
        folder: Takes what it prints.
        arguments: Further ones of ``vllm serve``.
    """

    def __init__(
        self, vllm: VllmEnvironment, model: str, checkpoints: Path, folder: Path, arguments: Sequence[str] = ()
    ) -> None:
        self.model = model
        self.checkpoint = checkpoints / model
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log, self._addresses = folder / "log", folder / "addresses"
        command = [sys.executable, "-m", "pagemill", "serve-model", "--model", model, "--profile", "cpu"]
        command += ["--weights", str(self.checkpoint), "--vllm", str(vllm.folder), "--port", str(self.port)]
        with self._log.open("wb") as log, self._addresses.open("wb") as addresses:
            self._process = subprocess.Popen(
                [*command, "--", *ARGUMENTS, *arguments],
                env=vllm.variables,
                stdin=subprocess.DEVNULL,
                stdout=addresses,
                stderr=log,
                start_new_session=True,
            )
        self._seen: set[int] = set()

    @property
    def pid(self) -> int:
        """Of pagemill."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Of pagemill; None while it runs."""
        return self._process.poll()

    @property
    def said(self) -> str:
        """What it has printed for people."""
        return self._log.read_text(errors="replace")

    def wait_until_ready(self) -> None:
        """Wait until it has printed its address."""
        wait_for(lambda: self.exit_code is not None or self._addresses.read_bytes(), "the server to be ready")
        assert self._addresses.read_text().split() == [self.url], self.said

    def family(self) -> set[int]:
        """All processes that descend from it, itself included, as far as they have not ended.

        Processes that this has seen once are still told of when they have lost their parents. vLLM's have other names
        than those they were started by, and their environment cannot be read.
        """
        parents = {pid: parent for pid in _pids() if (parent := _parent(pid)) is not None}
        self._seen |= {self.pid}
        while grown := {pid for pid, parent in parents.items() if parent in self._seen} - self._seen:
            self._seen |= grown
        return {pid for pid in self._seen & parents.keys() if not _is_dead(pid)}

    def named(self, name: str) -> list[int]:
        """Those of its processes that go by a name, such as ``VLLM::EngineCore``."""
        return [pid for pid in self.family() if _name(pid) == name[:15]]

    def send(self, number: signal.Signals) -> None:
        """Send pagemill a signal."""
        self._process.send_signal(number)

    def wait_until_gone(self) -> int:
        """Wait for the end of pagemill and of all that stems from it; gives pagemill's status."""
        status = self._process.wait(PATIENCE_S)
        wait_for(lambda: not self.family(), "the processes of vLLM to end")
        return status

    def clear(self) -> None:
        """Kill what is left, at the end of a test."""
        while family := self.family():
            for pid in family:
                kill(pid)
            self._process.poll()
            time.sleep(POLL_S)
        self._process.wait(PATIENCE_S)


def wait_for(event: Callable[[], object], what: str) -> None:
    """Wait until something is so.

    Raises:
        TimeoutError: It did not come.
    """
    end = time.monotonic() + PATIENCE_S
    while not event():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE_S:g} s for {what}")
        time.sleep(POLL_S)


def kill(pid: int) -> None:
    """Kill a process, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: connections that end are no matter
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _fields(pid: int) -> list[str]:
    """Of ``/proc/PID/stat``, from the third on (state, parent, ...); empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _parent(pid: int) -> int | None:
    fields = _fields(pid)
    return int(fields[1]) if fields else None


def _is_dead(pid: int) -> bool:
    return _fields(pid)[:1] in ([], ["Z"])


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""
