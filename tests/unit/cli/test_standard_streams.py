"""Standard output and error that nobody reads, or that lie on a full disk."""

import subprocess
import sys
from pathlib import Path

import pytest

from pagemill.errors import ExitCode

# A command that says something before it does its work, and lists more than a pipe holds.
_COMMAND = """
import sys
from pathlib import Path

import click

from pagemill import cli

@click.command("work")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--lines", type=int, default=0)
def command(out: Path, lines: int) -> int:
    sys.stdin.readline()  # until the other end of the pipes is closed
    for _ in range(3):
        click.echo("Working", err=True)
    for number in range(lines):
        click.echo(f"line {number}")
    out.write_text("done")
    return 3

module = type(sys)("work_command")
module.command = command
sys.modules["work_command"] = module
cli._COMMANDS["work"] = ("work_command", "")
cli.main()
"""


def _work(out: Path, *arguments: str, closed: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "work", str(out), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        stream = process.stdout if closed == "stdout" else process.stderr
        assert stream is not None
        stream.close()
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
    return process.returncode


def test_messages_that_nobody_reads_do_not_end_the_work(tmp_path: Path) -> None:
    assert _work(tmp_path / "out", closed="stderr") == ExitCode.PAGES_FAILED
    assert (tmp_path / "out").read_text() == "done"


def test_a_list_that_nobody_reads_to_its_end_is_no_defect(tmp_path: Path) -> None:
    assert _work(tmp_path / "out", "--lines", "100000", closed="stdout") == ExitCode.OK


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_messages_on_a_full_disk_do_not_end_the_work(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        work = subprocess.run(
            [sys.executable, "-c", _COMMAND, "work", str(tmp_path / "out")], input=b"\n", stderr=full, check=False
        )
    assert (work.returncode, (tmp_path / "out").read_text()) == (ExitCode.PAGES_FAILED, "done")
