"""A real vLLM is measured: its saturation, with its own figures, and a sweep of its settings."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from vllm_process import ARGUMENTS, PATIENCE_S, ServingProcess, VllmEnvironment

from pagemill.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

MODEL = "glm-ocr"
LOAD = ("--requests", "8", "--seconds", "30", "--max-tokens", "16")


def bench(vllm: VllmEnvironment, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pagemill", "bench", *map(str, arguments)]
    return subprocess.run(command, env=vllm.variables, capture_output=True, text=True, timeout=3 * PATIENCE_S)


def test_saturation_has_the_servers_own_figures(serving: ServingProcess, vllm: VllmEnvironment, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    ended = bench(vllm, "server", "--server", serving.url, "--in-flight", "1,8", *LOAD, "--plot", plot, "--json")
    assert ended.returncode == ExitCode.OK, ended.stderr
    levels: list[dict[str, Any]] = json.loads(ended.stdout)["levels"]
    assert [(level["in_flight"], level["failed"]) for level in levels] == [(1, 0), (8, 0)]
    for level in levels:
        assert level["requests_per_s"] > 0
        assert level["prompt_tokens_per_s"] > level["output_tokens_per_s"] > 0
        assert level["first_token_s"]["p50"] < level["latency_s"]["p50"]
        assert level["server"]["preemptions"] == 0
        assert level["server"]["prefix_cache_hits"] < 0.1, "every image is another one"
    assert levels[1]["server"]["running"] > 1
    assert levels[1]["server"]["queue_s"] is not None
    assert plot.read_text().startswith("<svg")


def test_a_sweep_starts_a_server_for_each_setting(
    serving: ServingProcess, vllm: VllmEnvironment, tmp_path: Path
) -> None:
    assert serving.exit_code is None, "its port and its settings are left alone"
    profile = tmp_path / "mine.toml"
    servers = ("--model", MODEL, "--weights", serving.checkpoint, "--vllm", vllm.folder, "--profile", "cpu")
    tried = ("--max-num-batched-tokens", "4096,2", "--max-num-seqs", "4", "--max-model-len", "4096")
    files = ("--write-profile", profile, "--json")
    ended = bench(vllm, "sweep", *servers, *tried, "--in-flight", "4", *LOAD, *files, "--", *ARGUMENTS)
    assert ended.returncode == ExitCode.OK, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    good, bad = found["rows"]
    assert good["failure"] is None
    assert good["levels"][0]["answered"] >= 8
    assert "max_num_batched_tokens (2) must be greater than or equal to max_num_seqs (4)" in bad["failure"]
    assert found["best"] == 0
    plan = subprocess.run(
        [sys.executable, "-m", "pagemill", "plan", *servers[:4], "--profile", profile, "--json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert "--max-num-batched-tokens 4096" in " ".join(json.loads(plan.stdout)["arguments"])
