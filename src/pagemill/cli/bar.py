"""A bar on a terminal, for commands that go over a run once."""

from __future__ import annotations

from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pagemill.cli.progress import LenientConsole


class TerminalBar:
    """How far it has come, while the block lasts; nothing where standard error is no terminal. A context manager.

    Args:
        console: Where to draw.
        total: Steps; None where that is not known yet.
        quiet: Show nothing.
    """

    def __init__(self, console: LenientConsole, total: int | None = None, *, quiet: bool = False) -> None:
        self._bar: Progress | None = None
        if not quiet and console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
                transient=True,
                expand=True,
            )
            self._task = self._bar.add_task("", total=total)

    def begin(self, what: str, total: int) -> None:
        """Start from the left once more, with a word before it."""
        if self._bar:
            self._bar.reset(self._task, total=total, description=what)

    def advance(self) -> None:
        """One step is done."""
        if self._bar:
            self._bar.advance(self._task)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
