"""The Dockerfile, as far as it can be run without Docker."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from serving_world import own_ports

from pagemill.errors import ExitCode

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.integration
KEY = "a-key-of-the-test"


def instructions() -> list[tuple[str, str]]:
    """Name and arguments of each instruction; comments and line ends removed."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.M)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, arguments) for name, _, arguments in (line.partition(" ") for line in lines if line.strip())]


def last(name: str) -> str:
    return [arguments for each, arguments in instructions() if each == name][-1]


def command() -> list[str]:
    """What a container runs, with this Python instead of the image's."""
    entry, arguments = json.loads(last("ENTRYPOINT")), json.loads(last("CMD"))
    assert entry == ["pagemill"]
    return [sys.executable, "-m", "pagemill", *arguments]


def test_the_image_is_slim_and_nobody_is_root() -> None:
    bases = [arguments.split()[0] for name, arguments in instructions() if name == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+-slim", base) for base in bases)
    user = [name for name, _ in instructions()].index("USER")
    assert int(last("USER").partition(":")[0]) > 0
    assert "RUN" not in [name for name, _ in instructions()[user:]]  # what is installed is root's


def test_extras_and_shell_commands_are_sound() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (extras,) = re.findall(r"/source\[([\w,]+)\]", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert all(re.search(rf"^{extra} = \[", pyproject, re.M) for extra in extras.split(","))
    assert "serve" in extras.split(",")
    for name, arguments in instructions():
        if name == "RUN":
            subprocess.run(["sh", "-n", "-c", arguments], check=True)


def test_a_container_without_keys_ends_and_says_so(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PAGEMILL_SERVE_KEYS"}
    ended = subprocess.run(
        [*command(), "--data", str(tmp_path)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == ExitCode.USAGE
    assert "PAGEMILL_SERVE_KEYS" in ended.stderr


@pytest.mark.slow
def test_the_command_serves_and_the_health_check_says_so(tmp_path: Path) -> None:
    port = str(own_ports())
    check = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    check = [sys.executable, *(part.replace("8080", port) for part in check[1:])]
    assert subprocess.run(check, capture_output=True).returncode != 0
    environment = os.environ | {"PAGEMILL_SERVE_KEYS": KEY}
    server = subprocess.Popen([*command(), "--port", port, "--data", str(tmp_path)], env=environment)
    try:
        deadline = time.monotonic() + 120
        while subprocess.run(check, capture_output=True).returncode != 0:
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
    finally:
        server.terminate()
        assert server.wait(60) == 0


@pytest.mark.slow
def test_the_package_is_built_from_what_docker_sends(tmp_path: Path) -> None:
    """The context has all that the build needs. The models are those of this tree, so that nothing is downloaded."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    context = tmp_path / "source"
    context.mkdir()
    for name in sent:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, context)
    built = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(context)],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert "pagemill/rest/app.py" in names
    assert any(name.endswith(".onnx") for name in names)
    assert any(name.startswith("pagemill/rest/web/") for name in names)
