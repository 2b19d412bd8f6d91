"""A disk that is full, or may not be written: the run says so, ends with its exit code, and goes on when it can."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from coded_pages import Corpus, CorpusMaker
from pagemill_process import OPTIONS, run
from run_contents import contents, differences, leftovers

from pagemill.errors import ExitCode

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="mounts a file system of its own"),
]

# Runs in a mount namespace of its own, where it may mount whatever user it is. Arguments: the mount point, the sizes of
# the file system for one attempt after the other, where to copy OUT in the end, and the command.
IN_NAMESPACE = """
import json, shutil, subprocess, sys
mount_point, sizes, target, *command = sys.argv[1:]
attempts = []
for number, size in enumerate(sizes.split(",")):
    how = ["-t", "tmpfs", "none"] if number == 0 else []
    options = f"remount,size={size}" if number else f"size={size}"
    subprocess.run(["mount", *how, "-o", options, mount_point], check=True)
    ended = subprocess.run(command, capture_output=True, text=True)
    attempts.append({"code": ended.returncode, "says": ended.stdout + ended.stderr})
shutil.copytree(mount_point + "/out", target)
print(json.dumps(attempts))
"""
NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
KIB = 1024


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    maker = CorpusMaker(tmp_path_factory.mktemp("inputs"))
    maker.pdf(20)
    maker.images(2)
    maker.parquet(10)
    return maker.corpus()


@pytest.fixture
def mount_point(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    trial = subprocess.run([*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=False)
    if trial.returncode:
        pytest.skip("file systems cannot be mounted here, not even in a namespace of our own")
    return folder


def parse_on_disks(
    mount_point: Path, sizes: list[int], command: list[str | Path], surroundings: dict[str, str], target: Path
) -> list[dict[str, Any]]:
    """Run a command on a small file system that grows (in KiB) from one attempt to the next."""
    script = [sys.executable, "-c", IN_NAMESPACE, mount_point, ",".join(f"{size}k" for size in sizes), target]
    whole = [*NAMESPACE, *script, sys.executable, "-m", "pagemill", *command]
    ended = subprocess.run(
        [*map(str, whole)], env=surroundings, capture_output=True, text=True, timeout=300, check=True
    )
    attempts: list[dict[str, Any]] = json.loads(ended.stdout)
    return attempts


def total_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_full_disk_stops_the_run_with_a_message_and_space_lets_it_continue(
    mount_point: Path, corpus: Corpus, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    command: list[str | Path] = ["parse", *corpus.paths, "-o", mount_point / "out", *OPTIONS]
    # From a disk on which not even the database fits, over several that fill up on the way, to a large enough one.
    needed = total_size(undisturbed) // KIB
    sizes = [16, *(needed * share // 100 for share in (15, 45, 75)), 8 * needed]
    *full, last = parse_on_disks(mount_point, sizes, command, surroundings, tmp_path / "copy")
    for size, attempt in zip(sizes, full, strict=False):
        assert attempt["code"] == ExitCode.NO_SPACE, (size, attempt)
        assert re.search("No space left on device|disk is full", attempt["says"]), attempt["says"]
        assert "Free some space" in attempt["says"]
        assert "Traceback" not in attempt["says"]
    assert last["code"] == ExitCode.OK, last["says"]
    assert differences(contents(tmp_path / "copy"), contents(undisturbed)) == []
    assert leftovers(tmp_path / "copy") == []
    assert run(["verify", tmp_path / "copy"], surroundings, tmp_path / "verify.log") == ExitCode.OK


@pytest.mark.parametrize("share", [0.01, 0.5])  # pages that cannot be handed over would fail first
def test_a_limit_on_the_size_of_files_stops_the_run_as_a_full_disk_does(
    share: float, corpus: Corpus, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    limit = int(share * (undisturbed / "ocr_results.jsonl").stat().st_size)  # a file that the run is sure to need whole
    arguments: list[str | Path] = ["parse", *corpus.paths, "-o", tmp_path / "out", *OPTIONS]
    limited = ["prlimit", f"--fsize={limit}", sys.executable, "-m", "pagemill", *map(str, arguments)]
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit is not installed")
    ended = subprocess.run(limited, env=surroundings, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (ExitCode.OUTPUT, ExitCode.NO_SPACE), ended.stderr
    assert re.search("cannot (write|use)", ended.stderr), ended.stderr
    assert "Traceback" not in ended.stderr
    assert run(arguments, surroundings, tmp_path / "log") == ExitCode.OK, (tmp_path / "log").read_text()
    assert differences(contents(tmp_path / "out"), contents(undisturbed)) == []
    assert leftovers(tmp_path / "out") == []


def test_a_directory_that_cannot_be_written_is_reported_at_once(
    mount_point: Path, corpus: Corpus, surroundings: dict[str, str], tmp_path: Path
):
    script = f'mount -t tmpfs -o ro none {mount_point} && exec "$@"'
    command = [
        sys.executable,
        "-m",
        "pagemill",
        "parse",
        *map(str, corpus.paths),
        "-o",
        str(mount_point / "out"),
        *OPTIONS,
    ]
    ended = subprocess.run(
        [*NAMESPACE, "sh", "-c", script, "sh", *command], env=surroundings, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert ended.returncode == ExitCode.OUTPUT, ended.stderr
    assert str(mount_point / "out") in ended.stderr
    assert "Read-only file system" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_run_directory_that_has_become_read_only_is_reported_and_stays_as_it_was(
    mount_point: Path, corpus: Corpus, surroundings: dict[str, str], undisturbed: Path, tmp_path: Path
):
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    script = f'mount --bind {out} {mount_point} && mount -o remount,ro,bind {mount_point} && exec "$@"'
    command = [sys.executable, "-m", "pagemill", "parse", *map(str, corpus.paths), "-o", str(mount_point), *OPTIONS]
    for fresh in ([], ["--fresh"]):
        ended = subprocess.run(
            [*NAMESPACE, "sh", "-c", script, "sh", *command, *fresh], env=surroundings, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert ended.returncode == ExitCode.OUTPUT, ended.stderr
        assert "Traceback" not in ended.stderr
    assert differences(contents(out), contents(undisturbed)) == []
