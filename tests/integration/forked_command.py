"""``pagemill`` as a process that is forked from one that has imported it: most of what a start costs is saved.

A command has its own environment, working directory, streams, session and exit status, and is killed like any process.
Where a fresh interpreter matters (its streams, what it imports, kills while it starts), tests use :mod:`subprocess`.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self
from unittest import mock

PATIENCE_S = 300.0
_CONTEXT = multiprocessing.get_context("forkserver")
# What reads the environment as it is imported is left out: huggingface_hub and what needs it.
_CONTEXT.set_forkserver_preload(
    [
        *(f"pagemill.cli.{name}" for name in ("embed", "export", "index", "models", "parse")),
        *(f"pagemill.cli.{name}" for name in ("publish", "rebuild", "run", "search", "serve", "status", "verify")),
        *(f"pagemill.app.{name}" for name in ("embed", "export", "parse", "profile", "publish", "search", "status")),
        "pagemill_bench.cli.profile",
        "pagemill_eval.cli.eval",
        "pagemill.inference.exchange",
        "pagemill.layout.onnx_engine",
        "pagemill.recognition.rapidocr_engine",
        "pagemill.rest.app",
        "pagemill.runtime.decoding",
        "pagemill.serving.server",
        "pandas",  # pyarrow imports it where it is installed
        "pyarrow.parquet",
        *("filelock", "fsspec", "httpx", "tqdm.auto", "yaml"),  # half of what huggingface_hub costs
        "pytest",  # the main module, which multiprocessing imports
    ]
)


def start(
    arguments: list[str], env: Mapping[str, str], cwd: str | Path, stdout: str | Path, stderr: str | Path
) -> ForkServerProcess:
    """Start ``pagemill`` as the leader of a session, without input; what it prints is appended to two files."""
    # A fork takes only the thread that calls it: no library may start others as it is imported.
    with mock.patch.dict(os.environ, dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")):
        forkserver.ensure_running()
    process = _CONTEXT.Process(target=_run, args=(arguments, dict(env), str(cwd), str(stdout), str(stderr)))
    process.start()
    return process


class ForkedCommand:
    """A command that goes on, used as :class:`subprocess.Popen` is; a context manager that kills it at last."""

    def __init__(self, *arguments: object, env: Mapping[str, str] = os.environ, cwd: str | Path = ".") -> None:
        self.args = [str(each) for each in arguments]
        self._folder = tempfile.TemporaryDirectory()
        self._files = Path(self._folder.name, "stdout"), Path(self._folder.name, "stderr")
        self._process = start(self.args, env, Path(cwd).absolute(), *self._files)
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.join()
        self._folder.cleanup()

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative for a signal."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def printed(self) -> tuple[str, str]:
        """What is on its standard output and its standard error until now."""
        out, err = (path.read_text() if path.exists() else "" for path in self._files)
        return out, err

    def communicate(self, timeout: float = PATIENCE_S) -> tuple[str, str]:
        """Wait for its end; what it printed."""
        self._process.join(timeout)
        if self.returncode is None:
            self.kill()
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.printed()


def run_forked(
    *arguments: object, env: Mapping[str, str] = os.environ, cwd: str | Path = ".", timeout: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as :func:`subprocess.run` does."""
    with ForkedCommand(*arguments, env=env, cwd=cwd) as command:
        printed = command.communicate(timeout)
        assert command.returncode is not None
        return subprocess.CompletedProcess(command.args, command.returncode, *printed)


def _run(arguments: list[str], env: dict[str, str], cwd: str, stdout: str, stderr: str) -> None:
    """What the forked process does."""
    os.setsid()
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, stdout, os.O_WRONLY), (2, stderr, os.O_WRONLY)):
        opened = os.open(path, flags | (os.O_CREAT | os.O_APPEND if number else 0), 0o644)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[:0] = [path for path in env.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = ["pagemill", *arguments]

    from pagemill.cli import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing does not
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
