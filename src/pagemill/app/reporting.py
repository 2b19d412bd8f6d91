"""What a run reports: its progress while it parses, and its outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pagemill.document.page import DOUBTS
from pagemill.errors import ExitCode, error_class
from pagemill.parsing.page import ParsedPage
from pagemill.store.summary import RunSummary

if TYPE_CHECKING:
    from pagemill.describing.describer import DescribeCounts


class ParseDisplay:
    """Shows the progress of a run; this one shows nothing."""

    def opened(self, finished_before: int) -> None:
        """The run directory is open; ``finished_before`` pages in it are finished."""

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        """A page is finished and written.

        Args:
            page: The page.
            total: Pages in the input, if known.
            skipped: Number of these that need no parsing: finished earlier, or duplicates.
        """

    def postponed(self, page: ParsedPage) -> None:
        """A page failed and will be retried in isolation."""

    def hangs(self, *, fresh_process: bool) -> None:
        """A computation hangs: the first one of the run.

        Args:
            fresh_process: The run continues in a new process when the pages in flight are finished; else in this one.
        """

    def stopping(self, in_flight: int) -> None:
        """A signal was received: the run stops when the pages in flight are finished."""


class RunOutcome(msgspec.Struct):
    """The outcome of a run."""

    summary: RunSummary
    """Summary of the whole directory, over all invocations."""
    failures: list[tuple[str, str, str | None]] = []
    """What is wrong with which page or input, and the remedy: this process's first errors (at most ``MAX_FAILURES``),
    warnings on good pages included."""
    errors: int = 0
    """Number of all errors."""
    unopened: int = 0
    """Inputs that could not be opened; unlike other failures, they are retried whenever the run is resumed."""
    skipped_files: dict[str, int] = {}
    """Files of input folders that pagemill cannot read, by suffix."""
    skipped_links: list[str] = []
    """Linked folders in input folders."""
    skipped_tables: list[str] = []
    """Tables without images, beside the pages of a dataset."""
    described: DescribeCounts | None = None
    """What the second pass did in this process; None without one."""
    recycle: bool = False
    """The run is not finished: it continues in a new process."""
    strict: bool = False
    """Doubts about recognized text count as well."""

    MAX_FAILURES = 20

    def add(self, page: ParsedPage) -> None:
        """Record the errors of a page."""
        self.unopened += page.record.page_number is None
        failures = list(page.failures(doubts=self.strict))
        self.errors += len(failures)
        self.failures += failures[: max(0, self.MAX_FAILURES - len(self.failures))]

    @property
    def exit_code(self) -> ExitCode:
        """0 when all is well; the cause's own code when nothing succeeded for one cause; else "some pages failed"."""
        summary = self.summary
        if summary.interrupted:
            return ExitCode.INTERRUPTED
        causes = {error_class(kind).exit_code for kind in summary.failures_by_kind}
        # All pages failed for one reason, such as a missing password: scripts see it in the status.
        if summary.failed and summary.failed == summary.pages and len(causes) == 1:
            return causes.pop()
        warnings = summary.warnings_by_kind.keys() - (() if self.strict else DOUBTS)
        return ExitCode.PAGES_FAILED if summary.failed or warnings else ExitCode.OK
