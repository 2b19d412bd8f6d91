"""``pagemill`` as a process that is forked from one that has imported it: most of what a start costs is saved.

A command has its own environment, working directory, streams, session and exit status, and is killed like any process.
Where a fresh interpreter matters (its streams, what it imports, kills while it starts), tests use :mod:`subprocess`.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
from multiprocessing import forkserver
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.context import ForkServerProcess

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


def run_forked(
    *arguments: object, env: Mapping[str, str] = os.environ, cwd: str | Path = ".", timeout: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as :func:`subprocess.run` does."""
    words = [str(each) for each in arguments]
    with tempfile.TemporaryDirectory() as folder:
        stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
        process = start(words, env, Path(cwd).absolute(), stdout, stderr)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(words, timeout)
        return subprocess.CompletedProcess(words, process.exitcode, stdout.read_text(), stderr.read_text())


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
