"""``pagemill models`` as a process, with a Hub on this machine."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from forked_command import run_forked
from local_hub import LocalHub
from pagemill_process import wait_for

from pagemill.config.model_cards import load_card
from pagemill.errors import ExitCode

pytest.importorskip("huggingface_hub")


pytestmark = [pytest.mark.slow, pytest.mark.integration]

NAME = "pp-doclayout-v3"  # the smallest: the free space that it wants is there
REPOSITORY = load_card(NAME).repository
WEIGHTS = os.urandom(2**20) * 24
"""The client writes pieces of 10 MB."""
FILES = {
    "config.json": b'{"model_type": "pp_doclayout_v3"}',
    "preprocessor_config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "modeling.py": b"raise SystemExit('this was run')",
    "README.md": b"# A model",
    "model.pdparams": b"x" * 100,
}
WANTED = {"config.json", "preprocessor_config.json", "model.safetensors"}


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with LocalHub() as hub:
        hub.models[REPOSITORY] = FILES
        yield hub


class Machine:
    """A machine with a cache of its own."""

    def __init__(self, folder: Path, hub: LocalHub) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PAGEMILL_"))}
        self.environment = kept | {
            "HF_HOME": str(folder / "hf"),
            "HF_ENDPOINT": hub.url,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pagemill", "models", *arguments]

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        ended = run_forked("models", *arguments, env=self.environment | more)
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended

    def where(self, **more: str) -> str | None:
        ended = self.run("where", NAME, **more)
        assert ended.returncode in (ExitCode.OK, ExitCode.INPUT), ended.stderr
        return ended.stdout.strip() or None


@pytest.fixture
def machine(tmp_path: Path, hub: LocalHub) -> Machine:
    return Machine(tmp_path, hub)


def bytes_of_parts(folder: Path) -> int:
    """Of downloads that are not whole; the client makes and removes folders beside them meanwhile."""
    with suppress(FileNotFoundError):
        return sum(path.stat().st_size for path in folder.rglob("*.incomplete"))
    return 0


def files_of(folder: str) -> dict[str, bytes]:
    return {name: (Path(folder) / name).read_bytes() for name in FILES if (Path(folder) / name).exists()}


def test_a_download_holds_what_loading_needs_and_no_code(machine: Machine, hub: LocalHub):
    assert machine.where() is None
    assert machine.run("download", NAME).returncode == ExitCode.OK
    folder = machine.where()
    assert folder
    assert files_of(folder) == {name: FILES[name] for name in WANTED}
    assert not [request for request in hub.requests if ".py" in request]
    assert folder in machine.run("list").stdout


def test_offline_afterwards(machine: Machine, hub: LocalHub):
    assert machine.run("download", NAME, HF_HUB_OFFLINE="1").returncode == ExitCode.NETWORK
    assert machine.run("download", NAME).returncode == ExitCode.OK
    hub.requests.clear()
    assert machine.where(HF_HUB_OFFLINE="1")
    assert machine.where(), "also where nobody said so"
    assert machine.run("list").returncode == ExitCode.OK
    assert not hub.requests


def test_a_folder_that_goes_to_another_machine(machine: Machine, hub: LocalHub, tmp_path: Path):
    ended = machine.run("download", NAME, "--to", str(tmp_path / "models"))
    assert ended.returncode == ExitCode.OK
    assert f"PAGEMILL_MODELS={tmp_path / 'models'}" in ended.stdout
    assert machine.where() is None
    hub.models.clear()
    moved = tmp_path / "other disk"
    (tmp_path / "models").rename(moved)
    assert machine.where(PAGEMILL_MODELS=str(moved)) == str(moved / NAME)
    assert files_of(str(moved / NAME)).keys() == WANTED


def test_the_folder_of_the_environment_takes_downloads(machine: Machine, tmp_path: Path):
    mine = {"PAGEMILL_MODELS": str(tmp_path / "mine")}
    assert machine.run("download", NAME, **mine).returncode == ExitCode.OK
    assert machine.where(**mine) == str(tmp_path / "mine" / NAME)


def test_a_mirror_is_asked_in_place_of_the_hub(machine: Machine, hub: LocalHub):
    with LocalHub() as mirror:
        mirror.models[REPOSITORY] = FILES
        hub.models.clear()
        assert machine.run("download", NAME, "--mirror", mirror.url).returncode == ExitCode.OK
        assert any("resolve" in request for request in mirror.requests)
    assert not hub.requests
    assert machine.where()


@pytest.mark.parametrize("to", [False, True], ids=["the cache", "a folder"])
def test_a_download_that_breaks_is_not_there_and_continues(machine: Machine, hub: LocalHub, tmp_path: Path, to: bool):
    more = ("--to", str(tmp_path / "models")) if to else ()
    place = {"PAGEMILL_MODELS": str(tmp_path / "models")} if to else {}
    hub.breaks_after = 12 * 2**20
    command = subprocess.Popen(machine.command("download", NAME, *more), env=machine.environment)
    with command:
        wait_for(lambda: bytes_of_parts(tmp_path) > 2**20, "a part of the weights")
        command.send_signal(signal.SIGKILL)
    assert machine.where(**place) is None
    hub.breaks_after = None
    hub.requests.clear()
    assert machine.run("download", NAME, *more).returncode == ExitCode.OK
    folder = machine.where(**place)
    assert folder
    assert files_of(folder)["model.safetensors"] == WEIGHTS
    assert not [request for request in hub.requests if request.startswith("GET") and request.endswith("config.json")]


def test_ctrl_c_ends_a_download(machine: Machine, hub: LocalHub, tmp_path: Path):
    hub.breaks_after = 2**20
    command = subprocess.Popen(
        machine.command("download", NAME), env=machine.environment, stderr=subprocess.PIPE, text=True
    )
    with command:
        wait_for(lambda: any("GET" in each and "safetensors" in each for each in hub.requests), "the download")
        command.send_signal(signal.SIGINT)
        _, said = command.communicate(timeout=120)
    assert command.returncode in (ExitCode.INTERRUPTED, ExitCode.NETWORK, -signal.SIGINT), said
    assert machine.where() is None


def test_a_repository_that_is_not_there(machine: Machine, hub: LocalHub):
    hub.models.clear()
    ended = machine.run("download", NAME)
    assert ended.returncode == ExitCode.INPUT
    assert REPOSITORY in ended.stderr
    assert "hf auth login" in ended.stderr


def test_a_hub_that_does_not_answer(machine: Machine):
    ended = machine.run("download", NAME, HF_ENDPOINT="http://127.0.0.1:1")
    assert ended.returncode == ExitCode.NETWORK
    assert "network" in ended.stderr.lower()


def test_a_model_without_weights(machine: Machine, hub: LocalHub):
    hub.models[REPOSITORY] = {"config.json": b"{}"}
    ended = machine.run("download", NAME)
    assert ended.returncode == ExitCode.NETWORK
    assert "without its weights" in ended.stderr


def test_a_folder_that_cannot_be_written(machine: Machine, tmp_path: Path):
    (tmp_path / "file").write_text("")
    ended = machine.run("download", NAME, "--to", str(tmp_path / "file" / "models"))
    assert ended.returncode == ExitCode.OUTPUT, ended.stderr
