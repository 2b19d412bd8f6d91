from __future__ import annotations

from pagemill.serving.server import without_secrets


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
