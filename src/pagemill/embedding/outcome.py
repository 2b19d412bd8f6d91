"""The outcome of embedding a run: rows by part, and failures with their reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pagemill.errors import ExitCode, PagemillError, error_class

if TYPE_CHECKING:
    from pagemill.embedding.vectors import Part


@dataclass(slots=True)
class PartOutcome:
    """The outcome for one part."""

    rows: int = 0
    """Rows in the file."""
    embedded: int = 0
    """Rows computed by this invocation."""
    gone: int = 0
    """Rows of the earlier file whose page or region no longer exists."""
    failed: int = 0


@dataclass(slots=True)
class EmbedOutcome:
    """The outcome of embedding a run."""

    parts: dict[Part, PartOutcome] = field(default_factory=dict)
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Name, message and remedy of the first ``MAX_FAILURES`` items that failed."""
    causes: set[str] = field(default_factory=set)
    """Categories of all failures."""
    lost_queries: bool = False
    """Vectors of queries were deleted, as the statistics that they depend on have changed."""
    cut_texts: int = 0
    """Texts that exceeded the model's length and were truncated."""

    MAX_FAILURES = 20

    def add(self, part: Part, name: str, error: PagemillError) -> None:
        """Record an item that failed."""
        self.parts[part].failed += 1
        self.causes.add(error.category)
        if len(self.failures) < self.MAX_FAILURES:
            self.failures.append((name, error.message, error.remedy))

    @property
    def failed(self) -> int:
        """Items without a vector."""
        return sum(part.failed for part in self.parts.values())

    @property
    def exit_code(self) -> ExitCode:
        """0 without failures; the code of the cause if everything failed for one cause; else "some failed"."""
        codes = {error_class(cause).exit_code for cause in self.causes}
        if self.failed and not any(part.rows for part in self.parts.values()) and len(codes) == 1:
            return codes.pop()
        return ExitCode.PAGES_FAILED if self.failed else ExitCode.OK
