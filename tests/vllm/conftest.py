"""A real vLLM, on the CPU, with tiny checkpoints. ``make test-vllm`` installs it and says where it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from vllm_process import ServingProcess, VllmEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "PAGEMILL_TEST_VLLM"
"""The folder of an environment with vLLM's CPU build. Another variable than the product's own ``PAGEMILL_VLLM``, which
may name a vLLM for a GPU."""
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> VllmEnvironment:
    """The environment with vLLM."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no environment with vLLM: make test-vllm")
    return VllmEnvironment(Path(folder).absolute(), caches=tmp_path_factory.mktemp("caches"))


@pytest.fixture(scope="session")
def checkpoints(vllm: VllmEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny checkpoints, by the names of their cards."""
    folder = tmp_path_factory.mktemp("checkpoints")
    subprocess.run([vllm.python, HERE / "tiny_checkpoints.py", folder], env=vllm.variables, check=True)
    return folder


@pytest.fixture(scope="module")
def serving(
    request: pytest.FixtureRequest, vllm: VllmEnvironment, checkpoints: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServingProcess]:
    """``pagemill serve-model`` with the model that a module names as ``MODEL``, ready, for all tests of the module.

    Further arguments of ``vllm serve`` are what the module names as ``ARGUMENTS``.
    """
    folder, arguments = tmp_path_factory.mktemp("serving"), getattr(request.module, "ARGUMENTS", ())
    process = ServingProcess(vllm, request.module.MODEL, checkpoints, folder, arguments)
    try:
        process.wait_until_ready()
        yield process
    finally:
        process.clear()
