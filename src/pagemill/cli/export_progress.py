"""How an export goes, and what it came to, on standard error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pagemill.cli.bar import TerminalBar
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import number, short
from pagemill.errors import ExitCode
from pagemill.store.rows import PageState

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.app.export import ExportOutcome
    from pagemill.document.page import PageResult
    from pagemill.store.reading import RunReader


class ExportProgress:
    """A bar while pages are read, on a terminal; afterwards a summary.

    Args:
        reader: The run that is exported.
        quiet: Show nothing but damages.
        console: Where to draw; standard error by default.
    """

    def __init__(self, reader: RunReader, *, quiet: bool = False, console: LenientConsole | None = None) -> None:
        self._console = console or LenientConsole(stderr=True, highlight=False)
        self._quiet = quiet
        counts = reader.counts()
        self._unfinished = counts[PageState.RUNNING] + counts[PageState.WAITING]
        self._bar = TerminalBar(self._console, counts[PageState.DONE] + counts[PageState.FAILED], quiet=quiet)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__()

    def page(self, page: PageResult) -> None:
        """A page is taken along."""
        self._bar.advance()

    def summary(self, outcome: ExportOutcome, target: Path | None) -> ExitCode:
        """Say what was written and what was damaged, and give the exit code of that.

        Args:
            outcome: What the export came to.
            target: Where it is; None for standard output.
        """
        if not self._quiet:
            documents = f" of {number(outcome.documents, 'document')}" if outcome.documents else ""
            self._console.say(f"{number(outcome.pages, 'page')}{documents} to {target or 'standard output'}")
            if self._unfinished:
                self._console.say(f"The run is not finished: {number(self._unfinished, 'page')} under way or waiting.")
        for message in outcome.damages:
            self._console.say(("damaged", "red"), f" {short(message)}")
        if not outcome.damaged:
            return ExitCode.OK
        if outcome.damaged > len(outcome.damages):
            self._console.say(f"... and {outcome.damaged - len(outcome.damages):,} more")
        self._console.say(
            f"{number(outcome.damaged, 'piece')} of the run left out of the export. Mend it: pagemill verify --repair"
        )
        return ExitCode.DAMAGED
