"""Standard output and error that nobody reads, that lie on a full disk, or that are to have no colour."""

import os
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
sys.modules["pagemill.cli.work"] = module
cli._COMMANDS.append("work")
cli.main()
"""


_COLOURED = """
import sys
import types

import click

from pagemill import cli

@click.command()
def command() -> None:
    click.secho("word", bold=True)

sys.modules["pagemill.cli.coloured"] = types.SimpleNamespace(command=command)
cli._COMMANDS.append("coloured")
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


@pytest.mark.skipif(os.name == "nt", reason="no limit of file sizes")
def test_output_over_the_limit_of_file_sizes_is_no_defect(tmp_path: Path) -> None:
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n{_COMMAND}"
    with (tmp_path / "output").open("wb") as output:
        work = subprocess.run(
            [sys.executable, "-c", limited, "work", str(tmp_path / "out"), "--lines", "100000"],
            input=b"\n",
            stdout=output,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            check=False,
        )
    assert work.returncode == ExitCode.NO_SPACE
    assert b"ulimit" in work.stderr
    assert b"Traceback" not in work.stderr


@pytest.mark.skipif(os.name == "nt", reason="no pseudo terminals")
@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_heeded_on_a_terminal(environment: dict[str, str], coloured: bool) -> None:
    import pty

    terminal, end = pty.openpty()
    without = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    work = subprocess.run(
        [sys.executable, "-c", _COLOURED, "coloured"], stdout=end, env=without | environment, check=False
    )
    os.close(end)
    said = os.read(terminal, 1000)
    os.close(terminal)
    assert work.returncode == ExitCode.OK
    assert (b"word" in said, b"\x1b[1m" in said) == (True, coloured)


def test_a_command_runs_with_a_collector_that_leaves_imports_alone() -> None:
    counting = _COLOURED.replace(
        'click.secho("word", bold=True)', "click.echo(f'{gc.isenabled()} {gc.get_freeze_count() > 0}')"
    )
    work = subprocess.run([sys.executable, "-c", f"import gc{counting}", "coloured"], capture_output=True, text=True)
    assert work.stdout == "True True\n", work.stderr
