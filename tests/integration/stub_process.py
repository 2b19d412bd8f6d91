"""The stub server as a process of its own, so that its computing time is not that of what is measured."""

import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

_PATIENCE_S = 60.0


class StubProcess:
    """A context manager that starts ``python -m pagemill_bench.testing.stub_server`` and ends it.

    Args:
        options: Of the command line; without ``--port`` it takes a free one.
    """

    def __init__(self, *options: str) -> None:
        self._options = options if "--port" in options else ("--port", "0", *options)
        self._process: subprocess.Popen[str] | None = None
        self._last: dict[str, int] = {}
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "pagemill_bench.testing.stub_server", *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self.__exit__(None, None, None)
            raise RuntimeError("the stub server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._read_last_counts()
        if process.stdout is not None:
            process.stdout.close()

    def _read_last_counts(self) -> None:
        """What the process, which has ended, said at last."""
        assert self._process is not None and self._process.stdout is not None
        if not self._process.stdout.closed and (line := self._process.stdout.readline()):
            self._last = msgspec.json.decode(line, type=dict[str, int])

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None
        return self._process.pid

    def counts(self) -> dict[str, int]:
        """The counts of ``StubServer.counts``, also after the server has ended."""
        assert self._process is not None
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/counts", timeout=_PATIENCE_S) as reply:
                return msgspec.json.decode(reply.read(), type=dict[str, int])
            if self._process.poll() is not None:
                self._read_last_counts()
                break
            time.sleep(0.02)  # it is about to end, or to return
        return self._last
