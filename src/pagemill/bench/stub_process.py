"""The stub server as a process of its own, so that its computing time is not that of what is measured."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import msgspec

if TYPE_CHECKING:
    from types import TracebackType


class StubProcess:
    """A context manager that starts ``python -m pagemill.bench.stub_server`` and ends it.

    Args:
        options: Of the command line; without ``--port`` it takes a free one.
    """

    def __init__(self, *options: str) -> None:
        self._options = options if "--port" in options else ("--port", "0", *options)
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "pagemill.bench.stub_server", *self._options]
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
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process is not None
        return self._process.pid

    def counts(self) -> dict[str, int]:
        """What happened so far, as in :attr:`pagemill.bench.stub_server.StubServer.counts`; empty when it is dead."""
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/counts", timeout=10) as reply:
            return msgspec.json.decode(reply.read(), type=dict[str, int])
        return {}
