import os
from pathlib import Path

import pytest

from pagemill.errors import ServerError
from pagemill.serving import process
from pagemill.serving.process import ServerProcess
from pagemill.serving.server import without_secrets


async def test_a_watchdog_that_does_not_start_is_a_server_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "_WATCHDOG_START_S", 0)
    with pytest.raises(ServerError, match="watchdog did not start"):
        await ServerProcess.start(["true"], environment=os.environ, log=tmp_path / "log", grace_s=0.1)


def test_keys_are_not_shown():
    command = [
        "vllm",
        "serve",
        "m",
        "--api-key",
        "hunter2",
        "hunter3",
        "--hf_token=hunter4",
        "--port",
        "1",
        "--api-key=x",
    ]
    assert without_secrets(command) == "vllm serve m --api-key ... --hf_token=... --port 1 --api-key=..."
