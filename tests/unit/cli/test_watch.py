from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pagemill.app.parse_process import ParsingStoppedError
from pagemill.cli import cli, watch
from pagemill.errors import ExitCode


class World:
    """A folder that changes while it is watched: each look is followed by one of the steps."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.parsed: list[list[str]] = []
        self.interrupted = False
        self.going: list[str] = []
        """Files that go away between the look and the parsing."""
        self.steps: list[Callable[[], object]] = []
        monkeypatch.setattr("pagemill.app.parse_process.parse_inputs", self._parse)
        monkeypatch.setattr(watch.time, "sleep", self._sleep)

    def _parse(self, inputs: list[str], *rest: object, **named: object) -> int:
        if self.interrupted:
            raise KeyboardInterrupt
        if gone := [name for name in inputs if not Path(name).exists() or Path(name).name in self.going]:
            Path(gone[0]).unlink(missing_ok=True)
            raise ParsingStoppedError(ExitCode.INPUT)
        self.parsed.append(sorted(Path(name).name for name in inputs))
        return 0

    def _sleep(self, seconds: float) -> None:
        if not self.steps:
            raise KeyboardInterrupt
        self.steps.pop(0)()

    def watch(self, *options: str) -> Result:
        arguments = ["watch", str(self.folder), "-o", str(self.folder / "out"), *options]
        return CliRunner().invoke(cli, arguments, catch_exceptions=False, standalone_mode=False)

    def write(self, name: str, data: bytes = b"%PDF-") -> Callable[[], object]:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        return lambda: path.write_bytes(data)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def nothing() -> None:
    """A step in which nothing changes."""


def test_files_are_parsed_once_when_they_no_longer_change(world: World):
    world.write("a.pdf")()
    grows = [world.write("b.pdf", b"%PDF-" * size) for size in (1, 2, 3)]
    world.steps = [nothing, *grows, nothing, nothing]
    result = world.watch()
    assert world.parsed == [["a.pdf"], ["b.pdf"]]
    assert result.return_value == ExitCode.OK
    assert "Resume with: pagemill watch" in result.stderr


def test_a_changed_file_is_parsed_again_and_an_empty_one_waits(world: World):
    world.write("a.pdf")()
    world.write("b.pdf", b"")()
    world.steps = [nothing, world.write("a.pdf", b"%PDF-2"), nothing, nothing]
    world.watch("--quiet")
    assert world.parsed == [["a.pdf"], ["a.pdf"]]


def test_folders_are_searched_and_the_output_is_not(world: World):
    world.write("deep/a.pdf")()
    world.write("out/b.pdf")()
    world.write("notes.txt~")()
    world.steps = [nothing]
    world.watch("--recursive")
    assert world.parsed == [["a.pdf"]]


def test_stopped_while_it_parses(world: World):
    world.write("a.pdf")()
    world.interrupted = True
    world.steps = [nothing]
    assert world.watch().return_value == ExitCode.INTERRUPTED


def test_a_file_that_goes_away_does_not_end_the_watch(world: World):
    world.write("a.pdf")()
    world.write("b.pdf")()
    world.going = ["a.pdf"]
    world.steps = [nothing]
    world.watch("--quiet")
    assert world.parsed == [["b.pdf"]]
