"""Parse documents into a run directory: the stream of pages on one side, records and documents on the other."""

from __future__ import annotations

import asyncio
import fnmatch
import glob
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pagemill import tracing
from pagemill.app.exporters import default_exporters
from pagemill.app.options import DirectoryOptions, ParseOptions
from pagemill.document.identity import PageKey
from pagemill.document.page import DOUBTS, Status
from pagemill.errors import ExitCode, InputError, OutputError, PagemillError, UsageError, error_class
from pagemill.parsing.page import ParsedPage, SkippedPage
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.identity import settings_identity
from pagemill.runtime.supervisor import Life
from pagemill.sources import SourceOptions
from pagemill.sources.base import PageRef
from pagemill.sources.download import is_missing
from pagemill.sources.items import is_url, located
from pagemill.sources.locate import missing_inputs, missing_on_hub
from pagemill.sources.stream import InputStream
from pagemill.store.catalogue import RunCatalogue
from pagemill.store.derived import is_complete
from pagemill.store.opening import OpenMode, inspected
from pagemill.store.paths import DATABASE
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState, Place
from pagemill.store.run_database import RunDatabase
from pagemill.store.run_directory import RunDirectory
from pagemill.store.summary import RunSummary

if TYPE_CHECKING:
    from pagemill.describing.describer import DescribeCounts
    from pagemill.runtime.pipeline import Pipeline

T = TypeVar("T")

BEAT_S = 0.5
"""Interval of the heartbeats of a supervised run."""
_NAMED = 20
"""Missing inputs that are named."""


class ParseDisplay:
    """Shows the progress of a run; this one shows nothing."""

    def opened(self, finished_before: int) -> None:
        """The run directory is open; ``finished_before`` pages in it are finished."""

    def page(self, page: ParsedPage, *, total: int | None, skipped: int) -> None:
        """A page is finished and written.

        Args:
            page: The page.
            total: Pages in the input, if known.
            skipped: How many of these need no parsing: they finished in an earlier invocation, or are duplicates.
        """

    def postponed(self, page: ParsedPage) -> None:
        """A page failed and will be retried in isolation."""

    def hangs(self, *, fresh_process: bool) -> None:
        """A computation hangs for good: the first one of the run.

        Args:
            fresh_process: The run continues in a new process when the pages in flight are finished; else in this one.
        """

    def stopping(self, in_flight: int) -> None:
        """A signal was received: the run stops when the pages in flight are finished."""


@dataclass(slots=True)
class RunOutcome:
    """The outcome of a run."""

    summary: RunSummary
    """Of the whole directory, over all invocations."""
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """What is wrong with which page or input, and the remedy: this process's first errors (at most ``MAX_FAILURES``),
    warnings on good pages included."""
    errors: int = 0
    """Number of all errors."""
    unopened: int = 0
    """Inputs that could not be opened; unlike other failures, they are retried whenever the run is resumed."""
    skipped_files: dict[str, int] = field(default_factory=dict)
    """Files of input folders that are of no kind that pagemill reads, by suffix."""
    skipped_links: list[str] = field(default_factory=list)
    """Linked folders in input folders."""
    skipped_tables: list[str] = field(default_factory=list)
    """Tables without images, beside the pages of a dataset."""
    described: DescribeCounts | None = None
    """What the second pass did in this process; None without one."""
    recycle: bool = False
    """The run is not finished: it continues in a new process."""
    strict: bool = False
    """Doubts about what was read count, too."""

    MAX_FAILURES = 20

    def add(self, page: ParsedPage) -> None:
        """Note the errors of a page."""
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
        if summary.failed and summary.failed == summary.pages and len(causes) == 1:
            return causes.pop()
        warnings = summary.warnings_by_kind.keys() - (() if self.strict else DOUBTS)
        return ExitCode.PAGES_FAILED if summary.failed or warnings else ExitCode.OK


async def parse_into(
    out: Path,
    inputs: Sequence[str | Path],
    options: ParseOptions,
    directory: DirectoryOptions,
    *,
    pipeline: Pipeline,
    life: Life | None = None,
    progress: ParseDisplay | None = None,
) -> RunOutcome:
    """Parse all pages of the inputs that are not finished in ``out``.

    A first SIGINT or SIGTERM drains the run: the pages in flight are finished and written, no other is started, and
    the documents, the report and the summary are written. A second one stops the process at once.

    Args:
        out: The run directory.
        inputs: As for :class:`pagemill.sources.stream.InputStream`.
        options: What to take of the inputs, and how often to attempt a page; the rest is known to the pipeline.
        directory: What to do with what ``out`` holds.
        pipeline: Not entered yet.
        life: What a supervised process knows about itself.
        progress: Shows the progress.

    Raises:
        OutputError: ``out`` holds another run, is in use, or cannot be written; NoSpaceError when the disk is full.
            What was written so far is valid and can be resumed.
        PagemillError: No page could be parsed with these settings (a language, the layout model), which is found
            before ``out`` is touched; or the inputs hold no page.
    """
    life = life or Life()
    async with pipeline:
        await pipeline.prepare()
        again = bool(life.vitals.opened)
        async with opened_run(out, directory, pipeline=pipeline, life=life, again=again, progress=progress) as run:
            with _stop_on_signals(run.stop):
                return await run.parse(inputs, options)


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
        directory: What to do with what ``out`` holds.
        pipeline: Entered and prepared.
        life: What this process knows about itself.
        again: A process before this one, which ended as ``life`` says, had the run open: it is resumed.
        progress: Shows the progress.

    Raises:
        OutputError: As :func:`parse_into`.
    """
    identity = await pipeline.identity()
    with ThreadPoolExecutor(1, thread_name_prefix="pagemill.store") as writer:

        def open_directory() -> RunDirectory:
            return RunDirectory.open(
                out,
                exporters=default_exporters(directory.report),
                identity=identity,
                settings=pipeline.describe(),
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


async def find_nothing_to_do(
    out: Path, inputs: Sequence[str | Path], options: ParseOptions, directory: DirectoryOptions
) -> RunOutcome | None:
    """How :func:`parse_into` would end where there is no page left to parse, nor a file to write; changes nothing.

    For those who would start a model server only for pages that need it.

    Args:
        out: The run directory; it need not exist.
        inputs: As for :class:`pagemill.sources.stream.InputStream`.
        options: What to parse, and how; the server of a model need not be there.
        directory: What to do with what ``out`` holds.

    Returns:
        None if there is work left, or if that is not certain.

    Raises:
        OutputError: The run cannot be opened; see :func:`pagemill.store.opening.inspected`.
        UsageError: As :func:`require_inputs`.
    """
    identity = await asyncio.to_thread(settings_identity, options.settings, options.layout)
    identity.pop("served_model", None)  # only the server knows it
    await asyncio.to_thread(require_inputs, out, inputs, directory, options.source.download)
    with inspected(out, identity=identity, mode=directory.mode(out)) as run:
        if run is None:
            return None
        if await asyncio.to_thread(is_missing, inputs, options.source):
            return None
        summary = run.summary
        retries = directory.retry_failed and summary.failed
        if summary.finished is None or summary.interrupted or retries:
            return None
        if not await asyncio.to_thread(is_complete, run, report=directory.report):
            return None
        return (
            None if await _is_page_left(run, inputs, options.source) else RunOutcome(summary, strict=directory.strict)
        )


def require_inputs(
    out: Path, inputs: Sequence[str | Path], directory: DirectoryOptions, download: Path | None = None
) -> None:
    """Refuse inputs that do not exist before anything is written.

    An input that the run in ``out`` has met is no misspelling: it was there before, and is a failed page now.

    Inputs on the Hub are looked up before the first run, and not where ``download`` names the folder of their copies.

    Raises:
        UsageError: Inputs do not exist, or match nothing.
    """
    missing: dict[str, PagemillError] = dict(missing_inputs(inputs))
    is_met = not directory.fresh and (out / DATABASE).exists()
    if not is_met and download is None:
        missing |= missing_on_hub(inputs)
    if missing and is_met:
        try:
            with RunReader.open(out) as run:
                met = [name for (name,) in run.each("SELECT uri FROM sources")]
        except OutputError:
            return  # opening the run says what is wrong with it, or rebuilds its database
        missing = {text: error for text, error in missing.items() if not fnmatch.filter(met, _address(text))}
    if missing:
        named = [located(error.message, text) for text, error in missing.items()]
        more = f"; and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        remedies = {error.remedy: None for text, error in missing.items() if is_url(text) and error.remedy}
        remedy = " ".join([*remedies, "Check the names, and quote patterns. Nothing was parsed."])
        raise UsageError("; ".join(named[:_NAMED]) + more, remedy=remedy)


def _address(text: str) -> str:
    """The address by which a run knows an input, as a pattern."""
    address = os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111 - keeps links, raises nothing
    return address if glob.has_magic(text) else glob.escape(address)


async def _is_page_left(run: RunDatabase, inputs: Sequence[str | Path], options: SourceOptions) -> bool:
    """Whether the inputs hold a page that is not finished, or the run a source that was removed from them.

    Sources that did not open are tried each time, and need no server as long as they do not.
    """
    changed: list[int] = []
    unopened = 0
    async with DecodingService(workers=1) as decoding:
        source = InputStream(inputs, options=options, decoder=decoding, catalogue=RunCatalogue(run, changed.append))
        async with aclosing(source.pages()) as refs:
            async for ref in refs:
                known = await asyncio.to_thread(run.row, ref.key)
                if ref.error is None or known is None or known.state is not PageState.FAILED:
                    return True
                unopened += ref.key.page == 0
    return bool(changed) or (source.complete and unopened != run.unopened())


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
        pipeline, summary = self._pipeline, self.outcome.summary
        self._progress.opened(self._directory.resumed)
        catalogue = self._directory.catalogue
        stream = pipeline.stream(
            inputs,
            options.source,
            catalogue=catalogue,
            journal=self,
            answers=self._directory.descriptions,
            max_attempts=options.max_attempts,
        )
        async with self._watched():
            try:
                async with aclosing(stream) as pages:
                    async for page in pages:
                        await self._take(page)
            except Exception:
                with suppress(OutputError):  # the disk may be full; what still fits is better than nothing
                    await self._finish(interrupted=True, complete=False)
                raise
            if self.outcome.recycle and not self._stopped:
                await _on(self._writer, self._directory.sync)
                return self.outcome
            self.outcome.recycle = False
            self.outcome.skipped_files = pipeline.source.skipped_files
            self.outcome.skipped_links = pipeline.source.skipped_links
            self.outcome.skipped_tables = pipeline.source.skipped_tables
            self.outcome.described = pipeline.described
            stopped = self._stopped
            await self._finish(interrupted=stopped, complete=pipeline.source.complete and not stopped)
        if not (summary.pages or summary.skipped or self._stopped):
            raise InputError("the inputs hold no page", remedy="Check that the files and datasets are not empty.")
        return self.outcome

    def leave(self) -> None:
        """Forget the pages that are in flight no more, although they did not land: an error ended the stream."""
        self._life.vitals.in_flight -= len(self._in_flight)
        self._in_flight.clear()

    async def started(self, ref: PageRef, *, alone: bool) -> None:
        """Note that an attempt at a page begins."""
        await _on(self._writer, lambda: self._directory.start_page(ref.key, _place(ref), alone=alone))
        if (key := str(ref.key)) not in self._in_flight:  # else its worker has died, and it is tried again
            self._in_flight.add(key)
            self._life.vitals.in_flight += 1

    async def postponed(self, page: ParsedPage) -> None:
        """Note that an attempt failed and that another one will follow."""
        record = page.record
        key = PageKey.parse(record.page_key)
        await _on(
            self._writer,
            lambda: self._directory.postpone_page(key, attempts=record.attempts, error=record.errors[0]),
        )
        self._life.vitals.postponed += 1
        self._landed(page)
        if not page.unserved:  # else the error that ends the run tells it once for all of them
            self._progress.postponed(page)

    async def unopened(self, page: ParsedPage) -> ParsedPage:
        """Forget a page whose source does not open; returns the one that stands for the source."""
        record = page.record
        key = PageKey.parse(record.page_key)
        page_id = await _on(self._writer, lambda: self._directory.forget_begun_page(key, record.doc_id))
        self._landed(page)
        of_source = str(key._replace(page=0))
        return replace(
            page, record=msgspec.structs.replace(record, page_key=of_source, page_id=page_id, page_number=None)
        )

    async def _take(self, page: ParsedPage | SkippedPage) -> None:
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
                left = self._left.pop(document.doc_id, document.page_count - document.finished) - 1
                if left:
                    self._left[document.doc_id] = left
                else:
                    self._directory.finish_document(document.doc_id)
        total = self._pipeline.source.total
        if total is not None and total != self._total:
            self._directory.set_total(total)
            self._total = total

    async def _finish(self, *, interrupted: bool, complete: bool) -> None:
        await _on(self._writer, lambda: self._directory.finish(interrupted=interrupted, complete=complete))

    def stop(self) -> None:
        """Have :meth:`parse` end when the pages in flight are finished and written; the run can be resumed."""
        self._stopped = True
        self._pipeline.stop_admitting()
        self._progress.stopping(len(self._in_flight))

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Within the block a computation that hangs for good is reported.

        A supervised run drains then. Until then it sends heartbeats; they do no harm in another one.
        """

        async def beat() -> None:
            while True:
                self._life.vitals.beats += 1
                await asyncio.sleep(BEAT_S)

        async def leave_when_stuck() -> None:
            await self._pipeline.stuck.wait()
            supervised = self._life.supervised
            if not self._life.vitals.hung:
                self._progress.hangs(fresh_process=supervised)
            self._life.vitals.hung = True
            if supervised:
                self.outcome.recycle = True
                self._pipeline.stop_admitting()

        tasks = [asyncio.create_task(watch()) for watch in (beat, leave_when_stuck)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _place(ref: PageRef) -> Place:
    """What the run directory notes of a page that is met in the input."""
    return Place(ref.page_id, ref.document.doc_id, ref.document.uri, ref.page_number, ref.position)


async def _on(writer: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """Do something on the writing thread; a caller that is cancelled leaves when it is done."""
    timed = tracing.timed(work, "pagemill.store", operation="write", stage=tracing.WRITE)
    writing = asyncio.get_running_loop().run_in_executor(writer, timed)
    try:
        return await asyncio.shield(writing)
    except asyncio.CancelledError:  # the directory is closed next: not while somebody writes into it
        await asyncio.wait({writing})
        writing.exception()  # marks it as seen: the first error is the one reported
        raise


@contextmanager
def _stop_on_signals(on_stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM calls ``on_stop``; a second one ends the process at once, as by default.

    Signals that are ignored (``nohup``, background jobs) stay so. Call it in the main thread.
    """
    stopped = False
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    heeded = [number for number in before if before[number] is not signal.SIG_IGN]

    def set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
        for number in heeded:
            loop.remove_signal_handler(number)
            signal.signal(number, handlers[number])

    def on_signal(number: signal.Signals) -> None:
        nonlocal stopped
        if stopped:  # two came before the event loop had a look
            signal.raise_signal(number)
        stopped = True
        set_handlers(dict.fromkeys(heeded, signal.SIG_DFL))
        on_stop()

    for number in heeded:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        set_handlers(before)
