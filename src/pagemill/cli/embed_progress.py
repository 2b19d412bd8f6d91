"""How ``pagemill embed`` goes, and what came of it, on standard error."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Self

from pagemill.cli.bar import TerminalBar
from pagemill.cli.progress import LenientConsole
from pagemill.cli.wording import number, short

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.embedding.outcome import EmbedOutcome
    from pagemill.embedding.vectors import Part
    from pagemill.errors import ExitCode


class EmbedProgress:
    """A bar for each part, on a terminal; afterwards a summary.

    Args:
        engine: Name of the engine.
        quiet: Show nothing but failures.
        console: Where to draw; standard error by default.
    """

    def __init__(self, engine: str, *, quiet: bool = False, console: LenientConsole | None = None) -> None:
        self._console = console or LenientConsole(stderr=True, highlight=False)
        self._engine = engine
        self._quiet = quiet
        self._bar = TerminalBar(self._console, quiet=quiet)

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__()

    def part(self, part: Part, total: int) -> None:
        """A part begins."""
        self._bar.begin(part.plural, total)

    def advance(self) -> None:
        """One page or query is done."""
        self._bar.advance()

    def summary(self, outcome: EmbedOutcome, folder: Path) -> ExitCode:
        """Say what was made and what failed, and give the exit code of that."""
        if not self._quiet:
            for part, each in outcome.parts.items():
                counts = [f"{each.embedded:,} new"]
                counts += [f"{each.gone:,} gone"] if each.gone else []
                counts += [f"{each.failed:,} failed"] if each.failed else []
                self._console.say(f"{part}.npy  {number(each.rows, 'vector')} of {part.plural} ({', '.join(counts)})")
            if outcome.cut_texts:
                self._console.say(f"{number(outcome.cut_texts, 'text')} cut to the length that the model takes")
            self._console.say(f"by the engine {self._engine}, in {folder}")
        for remedy, failures in groupby(outcome.failures, lambda failure: failure[2]):
            for name, message, _ in failures:
                self._console.say(("failed", "red"), f" {name}: {short(message)}")
            if remedy:
                self._console.say(f"  {short(remedy)}")
        if outcome.failed > len(outcome.failures):
            self._console.say(f"... and {outcome.failed - len(outcome.failures):,} more")
        return outcome.exit_code
