"""``pagemill serve-model`` as a process, with a vLLM of our own. Linux."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pagemill_process import PATIENCE_S, wait_for
from serving_world import World, own_ports

from pagemill.errors import ExitCode
from pagemill.serving.addresses import is_free

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.clear()


class Command:
    """A ``pagemill serve-model`` that runs."""

    def __init__(self, world: World, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
        self._world = world
        self._out = world.state / "out"
        self._err = world.state / "err"
        self.port = own_ports(2)
        environment = {
            **world.environment(*words),
            "XDG_STATE_HOME": str(world.state / "home"),
            "CUDA_VISIBLE_DEVICES": "4,7",
        }
        for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "PAGEMILL_MODELS"):
            environment.pop(name, None)
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pagemill", "serve-model", "--vllm", str(world.program)),
                    *("--profile", "l4", "--port", str(self.port), *arguments),
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def out(self) -> str:
        return self._out.read_text()

    @property
    def err(self) -> str:
        return self._err.read_text()

    def wait_until_ready(self, servers: int = 1) -> None:
        wait_for(lambda: self.out.count("\n") == servers or self.process.poll() is not None, "the servers' addresses")
        assert self.process.poll() is None, self.err

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE_S)


@contextmanager
def serve_model(world: World, *arguments: str, words: tuple[str, ...] = ()) -> Iterator[Command]:
    command = Command(world, arguments, words)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.kill()
        command.process.wait(PATIENCE_S)


def test_it_prints_the_address_and_ends_everything_when_asked_to(world: World):
    with serve_model(world, words=("children",)) as command:
        command.wait_until_ready()
        assert command.out == f"http://127.0.0.1:{command.port}\n"
        command.signal(signal.SIGINT)
        assert command.wait() == ExitCode.OK
        assert not world.processes()
        assert is_free("127.0.0.1", command.port)


def test_each_replica_has_an_accelerator_a_port_and_a_log_of_its_own(world: World):
    with serve_model(world, "--replicas", "2") as command:
        command.wait_until_ready(2)
        assert command.out.splitlines() == [f"http://127.0.0.1:{command.port + number}" for number in (0, 1)]
        assert sorted(life["cuda"] for life in world.lives()) == ["4", "7"]
        assert len([*(world.state / "home" / "pagemill" / "servers").glob("glm-ocr-*.log")]) == 2
        command.signal(signal.SIGTERM)
        assert command.wait() == ExitCode.OK
        assert not world.processes()


@pytest.mark.parametrize("everybody", [pytest.param(False, id="it"), pytest.param(True, id="its group")])
def test_sigkill_leaves_no_process_behind(world: World, everybody: bool):
    with serve_model(world, words=("children",)) as command:
        command.wait_until_ready()
        if everybody:
            os.killpg(command.process.pid, signal.SIGKILL)
        else:
            command.process.kill()
        command.wait()
        world.wait_until_gone()
        assert is_free("127.0.0.1", command.port)


def test_the_flags_of_the_plan_the_card_and_the_user_reach_the_server(world: World):
    with serve_model(
        world, "--gpu-mem-util", "0.7", "--with", "speculative", "--", "--max-num-seqs", "7", "--enforce-eager"
    ) as command:
        command.wait_until_ready()
        argv = world.lives()[0]["argv"]
    assert argv[1:3] == ["serve", "zai-org/GLM-OCR"]
    for flag, value in (
        ("--gpu-memory-utilization", "0.7"),
        ("--max-num-seqs", "7"),
        ("--quantization", "fp8"),
        ("--served-model-name", "glm-ocr"),
        ("--host", "127.0.0.1"),
    ):
        assert argv[len(argv) - argv[::-1].index(flag)] == value  # the last one counts
    assert "--enforce-eager" in argv
    assert "--speculative-config" in argv
