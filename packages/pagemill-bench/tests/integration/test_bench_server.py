"""``pagemill bench server`` and ``pagemill bench sweep`` as processes, with servers whose service laws are known."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from forked_command import run_forked
from pagemill_process import PATIENCE_S, wait_for
from serving_world import World
from stub_process import StubProcess

from pagemill.config.hardware import load_profile
from pagemill.errors import ExitCode

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "world", answering=True)
    yield world
    world.clear()


def bench(*arguments: object, env: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    return run_forked("bench", *arguments, env=env, timeout=PATIENCE_S * 4)


def surroundings(world: World, *words: str) -> dict[str, str]:
    return {**world.environment(*words), "XDG_STATE_HOME": str(world.state / "home"), "COLUMNS": "100"}


def sweep_command(world: World, *arguments: object) -> list[str]:
    fixed = ["sweep", "--vllm", world.program, "--profile", "l4", "--requests", "8", "--in-flight", "4"]
    return [str(word) for word in (*fixed, *arguments)]


def test_the_knee_of_a_server_in_a_table_a_file_and_a_plot(tmp_path: Path):
    law = ("--model", "glm-ocr", "--latency-ms", "100", "--first-token-ms", "30", "--slots", "4")
    output, plot = tmp_path / "found.json", tmp_path / "plot.html"
    with StubProcess(*law) as stub:
        options = ("--in-flight", "1,2,4,8,16", "--requests", "8", "-o", output, "--plot", plot)
        ended = bench("server", "--server", stub.url, *options)
    assert ended.returncode == ExitCode.OK, ended.stderr
    found: dict[str, Any] = json.loads(output.read_text())
    assert found["knee"]["in_flight"] in (2, 4, 8), "4, or one step beside it"
    assert [level["in_flight"] for level in found["levels"]] == [1, 2, 4, 8, 16]
    assert all(level["first_token_s"]["p50"] < level["latency_s"]["p50"] for level in found["levels"])
    assert found["levels"][-1]["server"]["waiting"] > 0
    assert "Knee: " in ended.stdout
    assert "requests/s" in ended.stdout
    assert "<svg" in plot.read_text()


def test_a_server_that_is_not_there_is_an_error(tmp_path: Path):
    ended = bench("server", "--server", "http://127.0.0.1:9", "-o", tmp_path / "found.json")
    assert ended.returncode == ExitCode.NETWORK
    assert not (tmp_path / "found.json").exists()


def test_a_sweep_finds_the_best_setting_and_continues_after_a_start_that_fails(world: World, tmp_path: Path):
    profile, output, plot = tmp_path / "mine.toml", tmp_path / "found.json", tmp_path / "plot.svg"
    tried = ("--max-num-batched-tokens", "4096,16384", "--max-num-seqs", "1,4")
    files = ("--write-profile", profile, "-o", output, "--plot", plot)
    env = surroundings(world, "latency=100", "seats", "needs=8192")
    ended = bench(*sweep_command(world, *tried, *files), env=env)
    assert ended.returncode == ExitCode.OK, ended.stderr
    found: dict[str, Any] = json.loads(output.read_text())
    rows = [(row["setting"], bool(row["levels"]), row["failure"]) for row in found["rows"]]
    reason = "the server did not start (exit status 1): no memory is left for the key-value cache: "
    reason += "ValueError: No available memory for the cache blocks."
    assert rows == [
        ({"max_num_batched_tokens": 4096, "max_num_seqs": 1}, False, reason),
        ({"max_num_batched_tokens": 4096, "max_num_seqs": 4}, False, reason),
        ({"max_num_batched_tokens": 16384, "max_num_seqs": 1}, True, None),
        ({"max_num_batched_tokens": 16384, "max_num_seqs": 4}, True, None),
    ]
    assert found["best"] == 3, "one request at a time is four times as slow"
    assert "max_num_batched_tokens = 16384" in ended.stdout
    assert reason in ended.stdout
    assert plot.read_text().startswith("<svg")
    assert not world.processes()
    mine = load_profile(str(profile))
    assert (mine.max_num_seqs, mine.max_num_batched_tokens, mine.workers) == (4, 16384, 4)
    started = [life["argv"] for life in world.lives()][-1]
    flags = json.loads(run_forked("plan", "--profile", profile, "--json").stdout)["arguments"]
    assert " ".join(flags) in " ".join(started), "the same flags as it was measured with"


def test_a_sweep_of_which_nothing_starts_fails_and_writes_no_profile(world: World, tmp_path: Path):
    arguments = sweep_command(world, "--max-num-batched-tokens", "4096", "--write-profile", tmp_path / "mine.toml")
    ended = bench(*arguments, env=surroundings(world, "needs=8192"))
    assert ended.returncode == ExitCode.SERVER
    assert "no setting could be measured" in ended.stderr
    assert not (tmp_path / "mine.toml").exists()


@pytest.mark.parametrize(
    "words",
    [("hang",), ("latency=3000", "needs=1"), ("latency=3000", "needs=8192")],
    ids=["while it starts", "while it is measured", "after a start that failed"],
)
def test_ctrl_c_leaves_no_server_behind(world: World, words: tuple[str, ...], tmp_path: Path):
    log = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "pagemill", "bench", *sweep_command(world, "--max-num-batched-tokens", "4096,16384")],
        env=surroundings(world, *words),
        stdout=subprocess.DEVNULL,
        stderr=log.open("wb"),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        awaited = "Starting" if "hang" in words else "Ready"
        wait_for(lambda: world.lives() and awaited in log.read_text(), "the server")
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_S) == ExitCode.INTERRUPTED
        world.wait_until_gone()
    finally:
        process.kill()
        process.wait()
