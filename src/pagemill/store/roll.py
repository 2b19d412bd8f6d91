"""Which pages this process has met, and what becomes of those that only earlier ones have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.store.dropping import drop_pages
from pagemill.store.rows import PageState

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.document.identity import PageKey
    from pagemill.store.ledger import Ledger
    from pagemill.store.rows import PageRow
    from pagemill.store.summary import RunSummary


class Roll:
    """Calls the roll of a run. Memory grows by the pages under way or postponed, and by sources that do not open.

    Args:
        out: The run directory.
        ledger: Its ledger.
        summary: Counts of the run.
    """

    def __init__(self, out: Path, ledger: Ledger, summary: RunSummary) -> None:
        self._out = out
        self._ledger = ledger
        self._summary = summary
        self._present: set[PageKey] = set()  # begun in this process and not ended; of broken sources, ended ones too

    def admit(self, key: PageKey) -> None:
        """Make room for a page that begins or ends: what was known of it from earlier times may be out of date.

        Raises:
            ValueError: It has ended, and is not one that may end again.
        """
        again: list[PageRow] = []
        # The failure of a source (page 0) is none of its pages' to remove: see forget_broken.
        for row in self._ledger.rows(
            "s.digest = ? AND s.copy = ? AND p.page = ?", (bytes.fromhex(key.digest), key.copy, key.page)
        ):
            unopened = row.key.page == 0 and key not in self._present
            if unopened or row.state is PageState.SKIPPED:
                again.append(row)
            elif row.state.final:
                raise ValueError(f"page {key} has ended already")
        if again:
            drop_pages(self._out, self._ledger, self._summary, again, forget=key.page > 0, keep_documents=True)

    def begun(self, key: PageKey) -> None:
        """A page is under way."""
        self._present.add(key)

    def ended(self, key: PageKey) -> None:
        """A page has ended; of a source that does not open, it is kept in mind that it was tried."""
        if key.page:
            self._present.discard(key)
        else:
            self._present.add(key)

    def replace_source(self, source: int) -> None:
        """Give up the pages of a source (its number in the ledger) whose content has changed."""
        rows = self._ledger.rows("p.source = ?", (source,))
        drop_pages(self._out, self._ledger, self._summary, rows, forget=True)
        with self._ledger.database.transaction() as connection:
            connection.execute("DELETE FROM sources WHERE source = ?", (source,))

    def forget_broken(self) -> None:
        """Forget failures of sources that this process, which has read all of the input, has not met again."""
        broken = [row for row in self._ledger.rows("p.page = 0 AND p.state <> 3") if row.key not in self._present]
        if broken:
            drop_pages(self._out, self._ledger, self._summary, broken, forget=True)

    def absent(self) -> list[PageRow]:
        """Pages that have not ended and were not met in this process."""
        waiting = self._ledger.rows("p.state = 2 AND p.state <> 3")
        return [row for row in waiting if row.key not in self._present]
