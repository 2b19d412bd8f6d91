"""The options of ``pagemill parse`` that need no run, and what its parent process imports."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pagemill.cli import cli, exit_status
from pagemill.errors import DifferentRunError, ExitCode

HEAVY = {"numpy", "cv2", "pyarrow", "onnxruntime", "rich", "sqlite3", "asyncio", "msgspec", "pypdfium2", "PIL"}


@pytest.mark.parametrize("other", ["--resume", "--retry-failed"])
def test_fresh_excludes_resuming(other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["parse", "a.pdf", "-o", str(tmp_path / "out"), "--fresh", other]
    assert exit_status(lambda: cli.main(arguments, standalone_mode=False)) == ExitCode.USAGE
    assert other in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [["--max-attempts", "0"], ["--pages", "5-3"], ["--lang", ","], ["--lang", "auto,en"], ["-o", ""], [""]],
)
def test_bad_values_are_found_before_a_process_is_started(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pagemill.runtime.supervisor.supervise", lambda *_, **__: pytest.fail("a process was started"))
    arguments = ["parse", "a.pdf", "-o", str(tmp_path / "out"), *arguments]
    assert exit_status(lambda: cli.main(arguments, standalone_mode=False)) == ExitCode.USAGE


def test_errors_become_a_message_a_remedy_and_their_exit_code(capsys: pytest.CaptureFixture[str]):
    def refuse() -> None:
        raise DifferentRunError("out contains a run with other settings", remedy="Use --fresh.")

    assert exit_status(refuse) == ExitCode.OUTPUT
    assert capsys.readouterr().err == "Error: out contains a run with other settings\n  Use --fresh.\n"


def test_a_full_disk_behind_a_redirection_is_no_defect(capsys: pytest.CaptureFixture[str]):
    def write() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert exit_status(write) == ExitCode.NO_SPACE
    told = capsys.readouterr().err
    assert told.startswith("Error: cannot write the output: ")
    assert "Traceback" not in told


def pagemill(arguments: str, shell: str) -> tuple[int, str]:
    """The command in a shell that does something to its streams: exit status, and what came through on any of them."""
    script = f"exec {sys.executable} -c 'from pagemill.cli import main; main()' {arguments} {shell}"
    ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("arguments", "shell", "code"),
    [
        ("--help", ">/dev/full 2>&1", ExitCode.NO_SPACE),
        ("--help", ">&- 2>&- <&-", ExitCode.OK),
        ("status .", "2>/dev/full", ExitCode.OUTPUT),
        ("status .", ">&- 2>&- <&-", ExitCode.OUTPUT),
    ],
)
def test_the_status_is_the_same_whatever_the_streams_are(arguments: str, shell: str, code: ExitCode):
    status, told = pagemill(arguments, shell)
    assert status == code, told
    assert "Traceback" not in told
    assert "ignored" not in told


def test_the_parent_of_a_run_imports_nothing_heavy(tmp_path: Path):
    script = f"""
import sys, threading
from pagemill.runtime import supervisor as supervise
from pagemill.cli import cli

def look(work, **options):
    print(threading.active_count(), *sorted({HEAVY!r} & {{*sys.modules}}))
    return 0

supervise.supervise = look
cli.main(["parse", "a.pdf", "-o", {str(tmp_path / "out")!r}, "--pages", "1-3", "--lang", "en"], standalone_mode=False)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout == "1\n"


def test_every_command_that_is_listed_is_there():
    for name in cli.list_commands(None):  # type: ignore[arg-type]
        ended = CliRunner().invoke(cli, [name, "--help"])
        assert ended.exit_code == 0, ended.output
        assert "Usage:" in ended.output, name


def test_a_mistyped_command_suggests_the_nearest_one() -> None:
    ended = CliRunner().invoke(cli, ["pares", "a.pdf"])
    assert (ended.exit_code, "Did you mean 'parse'?" in ended.output) == (ExitCode.USAGE, True)
