"""Parse into an open run directory, which one thread writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pagemill import tracing
from pagemill.app.exporters import default_exporters
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.app.reporting import ParseDisplay, RunOutcome
from pagemill.blocking import cancelled, to_the_end
from pagemill.document.identity import PageKey
from pagemill.document.page import Status
from pagemill.errors import InputError, OutputError
from pagemill.parsing.page import ParsedPage, SkippedPage
from pagemill.runtime.supervisor import Life
from pagemill.sources.base import PageRef
from pagemill.store.opening import OpenMode
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from pagemill.runtime.pipeline import Pipeline

T = TypeVar("T")


@asynccontextmanager
async def opened_run(
    out: Path,
    directory: DirectoryOptions,
    *,
    pipeline: Pipeline,
    life: Life,
    again: bool = False,
    progress: ParseDisplay | None = None,
) -> AsyncIterator[RunWriter]:
    """Open a run directory, to parse into it; it is closed at the end of the block.

    Args:
        out: The run directory.
        directory: How to treat the content of ``out``.
        pipeline: Entered and prepared.
        life: State of this process.
        again: A process before this one, which ended as ``life`` records, had the run open: it is resumed.
        progress: Shows the progress.

    Raises:
        OutputError: See :func:`pagemill.app.parse.parse_into`.
    """
    # Before the directory is opened, as it asks servers, which may not answer.
    identity = await pipeline.services.identity()
    with ThreadPoolExecutor(1, thread_name_prefix="pagemill.store") as writer:

        def open_directory() -> RunDirectory:
            return RunDirectory.open(
                out,
                exporters=default_exporters(directory.report),
                identity=identity,
                settings=pipeline.services.describe(),
                mode=OpenMode.RESUME if again else directory.mode(out),
                retry_failed=directory.retry_failed and not again,
                death=life.death if again and not pipeline.is_remote else None,
            )

        opened = await _on(writer, open_directory)
        try:
            life.vitals.opened = True
            run = RunWriter(opened, writer, pipeline, life, progress or ParseDisplay())
            run.outcome.strict = directory.strict
            try:
                yield run
            finally:
                run.leave()
        finally:
            await _on(writer, opened.close)


class RunWriter:
    """Parses into an open run: writes pages on the one writing thread, documents when their last page is there.

    Implements :class:`pagemill.runtime.stream.Journal`.
    """

    def __init__(
        self,
        directory: RunDirectory,
        writer: ThreadPoolExecutor,
        pipeline: Pipeline,
        life: Life,
        progress: ParseDisplay,
    ) -> None:
        self.outcome = RunOutcome(directory.summary)
        self._directory = directory
        self._writer = writer
        self._pipeline = pipeline
        self._life = life
        self._progress = progress
        self._in_flight: set[str] = set()
        self._stopped = False
        self._left: dict[str, int] = {}
        self._total: int | None = None
        self._skipped = 0

    async def parse(self, inputs: Sequence[str | Path], options: ParseOptions) -> RunOutcome:
        """Parse, write, and finish the directory."""
        self._progress.opened(self._directory.resumed)
        stream = self._pipeline.stream(
            inputs,
            options.source,
            catalogue=self._directory.catalogue,
            journal=self,
            answers=self._directory.descriptions,
            max_attempts=options.max_attempts,
        )
        async with self._watched():
            try:
                async with aclosing(stream) as pages:
                    async for page in pages:
                        await self._store(page)
            except Exception:
                with suppress(OutputError):  # the disk may be full; what still fits is better than nothing
                    await self._finish(interrupted=True, complete=False)
                raise
            # A run that the user stopped is not continued in a new process.
            self.outcome.recycle = self.outcome.recycle and not self._stopped
            if self.outcome.recycle:
                await _on(self._writer, self._directory.sync)
            else:
                await self._conclude()
        return self.outcome

    def leave(self) -> None:
        """Forget unfinished pages in flight after an error has ended the stream."""
        self._life.vitals.in_flight -= len(self._in_flight)
        self._in_flight.clear()

    async def started(self, ref: PageRef, *, alone: bool) -> None:
        """Record the start of an attempt at a page."""
        await _on(self._writer, lambda: self._directory.start_page(ref.key, _place(ref), alone=alone))
        if (key := str(ref.key)) not in self._in_flight:  # else its worker has died, and it is tried again
            self._in_flight.add(key)
            self._life.vitals.in_flight += 1

    async def postponed(self, page: ParsedPage) -> None:
        """Record a failed attempt that will be followed by another."""
        record = page.record
        key = PageKey.parse(record.page_key)
        await _on(
            self._writer,
            lambda: self._directory.postpone_page(key, attempts=record.attempts, error=record.errors[0]),
        )
        self._life.vitals.postponed += 1
        self._landed(page)
        if not page.unserved:  # else the error that ends the run covers all of them
            self._progress.postponed(page)

    async def unopened(self, page: ParsedPage) -> ParsedPage:
        """Forget a page whose source cannot be opened; returns the one that stands for the source."""
        record = page.record
        key = PageKey.parse(record.page_key)
        page_id = await _on(self._writer, lambda: self._directory.forget_started_page(key, record.doc_id))
        self._landed(page)
        # Its other pages cannot be read either: one record stands for all, and a resumed run tries the file again.
        of_source = str(key._replace(page=0))
        return msgspec.structs.replace(
            page, record=msgspec.structs.replace(record, page_key=of_source, page_id=page_id, page_number=None)
        )

    async def _store(self, page: ParsedPage | SkippedPage) -> None:
        await _on(self._writer, lambda: self._write(page))
        if isinstance(page, SkippedPage):
            self._skipped += 1
            return
        if page.record.status is Status.FAILED:
            self._life.vitals.failed += 1
        else:
            self._life.vitals.done += 1
        self._landed(page)
        tracing.ended(page.record.page_id, failed=page.record.status is Status.FAILED)
        self.outcome.add(page)
        source = self._pipeline.source
        self._progress.page(page, total=source.total, skipped=source.skipped_earlier + self._skipped)

    def _landed(self, page: ParsedPage) -> None:
        if page.record.page_key in self._in_flight:
            self._in_flight.remove(page.record.page_key)
            self._life.vitals.in_flight -= 1

    def _write(self, page: ParsedPage | SkippedPage) -> None:
        if isinstance(page, SkippedPage):
            self._directory.skip_page(page.ref.key, _place(page.ref), reason=page.reason)
        else:
            self._directory.write_page(page.record, page.crops, page.preview)
            document = page.document
            if document.page_count is not None:
                # `finished` are those of earlier invocations: only what is left has to come.
                left = self._left.pop(document.doc_id, document.page_count - document.finished) - 1
                if left:
                    self._left[document.doc_id] = left
                else:
                    self._directory.finish_document(document.doc_id)
        total = self._pipeline.source.total
        # Most pages change nothing about it, and each write is one more of the database.
        if total is not None and total != self._total:
            self._directory.set_total(total)
            self._total = total

    def stop(self) -> None:
        """Have :meth:`parse` end when the pages in flight are finished and written; the run can be resumed."""
        self._stopped = True
        self._pipeline.stop_admitting()
        self._progress.stopping(len(self._in_flight))

    async def _conclude(self) -> None:
        """Finish the directory after all pages, or after those in flight where the run was stopped."""
        source, summary, stopped = self._pipeline.source, self.outcome.summary, self._stopped
        self.outcome.skipped_files = source.skipped_files
        self.outcome.skipped_links = source.skipped_links
        self.outcome.skipped_tables = source.skipped_tables
        self.outcome.described = self._pipeline.services.described
        await self._finish(interrupted=stopped, complete=source.complete and not stopped)
        # An empty run is mostly a mistyped input; one that was stopped may just have had no time.
        if not (summary.pages or summary.skipped or self._stopped):
            raise InputError("the inputs have no page", remedy="Check that the files and datasets are not empty.")

    async def _finish(self, *, interrupted: bool, complete: bool) -> None:
        await _on(self._writer, lambda: self._directory.finish(interrupted=interrupted, complete=complete))

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Report computations that hang within the block.

        A supervised run drains then.
        """

        async def leave_when_stuck() -> None:
            await self._pipeline.services.stuck.wait()
            supervised = self._life.supervised
            if not self._life.vitals.hung:
                self._progress.hangs(fresh_process=supervised)
            self._life.vitals.hung = True
            if supervised:
                self.outcome.recycle = True
                self._pipeline.stop_admitting()

        beating, leaving = asyncio.create_task(self._life.beat()), asyncio.create_task(leave_when_stuck())
        try:
            yield
        finally:
            await cancelled(beating, leaving)


def _place(ref: PageRef) -> Place:
    """What the run directory stores about a page of the input."""
    return Place(ref.page_id, ref.document.doc_id, ref.document.uri, ref.page_number, ref.position)


async def _on(writer: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """Run a call on the writing thread; a cancelled caller still waits for it."""
    timed = tracing.timed(work, "pagemill.store", operation="write", stage=tracing.WRITE)
    # The directory is closed next: not while somebody writes into it.
    return await to_the_end(asyncio.get_running_loop().run_in_executor(writer, timed))
