"""Parse documents into a run directory: the stream of pages on one side, records and documents on the other."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pagemill.errors import ExitCode, InputError, OutputError
from pagemill.export.docjson import document_json
from pagemill.export.embedding_text import embedding_text
from pagemill.export.markdown import document_markdown
from pagemill.export.report import write_report
from pagemill.store.run_directory import Exporters, RunDirectory

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
    from pathlib import Path

    from pagemill.parsing.page import ParsedPage
    from pagemill.runtime.pipeline import Pipeline
    from pagemill.sources import SourceOptions
    from pagemill.store.summary import RunSummary


class Progress(Protocol):
    """Told about a run as it goes."""

    def page(self, page: ParsedPage, total: int | None) -> None:
        """A page is written; ``total`` is the number of pages in the run where it is known."""
        ...

    def stopping(self) -> None:
        """A signal came: the run ends early, with what it has."""
        ...


@dataclass(slots=True)
class RunOutcome:
    """How a run ended."""

    summary: RunSummary
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Page id, message and remedy of the first errors (at most ``MAX_FAILURES``), warnings on good pages included."""
    errors: int = 0
    """All of them."""
    codes: set[ExitCode] = field(default_factory=set)
    """Exit codes of the failed pages."""

    MAX_FAILURES = 20

    def add(self, page: ParsedPage) -> None:
        """Take note of a page's errors."""
        if page.exit_code is not ExitCode.OK:
            self.codes.add(page.exit_code)
        for error in page.record.errors:
            self.errors += 1
            if len(self.failures) < self.MAX_FAILURES:
                self.failures.append((page.record.page_id, error.message, error.remedy))

    @property
    def exit_code(self) -> ExitCode:
        """0 when all is well; the cause's own code when nothing succeeded for one cause; else "some pages failed"."""
        if self.summary.interrupted:
            return ExitCode.INTERRUPTED
        if self.summary.failed and self.summary.failed == self.summary.pages and len(self.codes) == 1:
            return next(iter(self.codes))
        return ExitCode.PAGES_FAILED if self.summary.failed or self.summary.warnings_by_kind else ExitCode.OK


async def parse_into(
    out: Path,
    inputs: Sequence[str | Path],
    *,
    pipeline: Pipeline,
    options: SourceOptions,
    report: bool = True,
    fresh: bool = False,
    progress: Progress | None = None,
) -> RunOutcome:
    """Parse all inputs into ``out``.

    A first SIGINT or SIGTERM stops the run: pages in flight are dropped, what was parsed is finished as it stands.
    A second one ends the process at once.

    Raises:
        OutputError: ``out`` holds a run already or cannot be written; NoSpaceError when the disk is full.
            What was written until then is valid.
        PagemillError: No page could be parsed with these settings (a language, the layout model), which is found
            before ``out`` is touched; or the inputs hold no page.
    """
    exporters = Exporters(
        embedding_text=embedding_text,
        document_markdown=document_markdown,
        document_json=document_json,
        report=write_report if report else None,
    )
    async with pipeline:
        await pipeline.prepare()
        with (
            ThreadPoolExecutor(1, thread_name_prefix="pagemill.store") as writer,
            RunDirectory.create(out, exporters=exporters, fresh=fresh, settings=pipeline.describe()) as directory,
            _stop_on_signals(progress.stopping if progress else None) as stop,
        ):
            run = _Run(directory, writer, pipeline, progress)
            try:
                async with aclosing(pipeline.stream(inputs, options)) as pages:
                    while page := await _next(pages, stop):
                        await run.take(page)
            except Exception:
                with suppress(OutputError):  # the disk may be full; what still fits is better than nothing
                    await run.finish(interrupted=True)
                raise
            await run.finish(interrupted=stop.is_set())
    if not run.outcome.summary.pages and not stop.is_set():
        raise InputError("the inputs hold no page", remedy="Check that the files and datasets are not empty.")
    return run.outcome


class _Run:
    """Writes pages on the one writing thread, and documents when their last page is there."""

    def __init__(
        self, directory: RunDirectory, writer: ThreadPoolExecutor, pipeline: Pipeline, progress: Progress | None
    ) -> None:
        self.outcome = RunOutcome(directory.summary)
        self._directory = directory
        self._writer = writer
        self._pipeline = pipeline
        self._progress = progress
        self._left: dict[str, int] = {}

    async def take(self, page: ParsedPage) -> None:
        """Write a page, count it, and tell about it."""
        await self._on_writer(lambda: self._write(page))
        self.outcome.add(page)
        if self._progress:
            self._progress.page(page, self._pipeline.total)

    async def finish(self, *, interrupted: bool) -> None:
        """Write the open documents, the report and the summary."""
        await self._on_writer(lambda: self._directory.finish(interrupted=interrupted))

    async def _on_writer(self, work: Callable[[], None]) -> None:
        writing = asyncio.get_running_loop().run_in_executor(self._writer, work)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:  # the directory is closed next: not while somebody writes into it
            await asyncio.wait({writing})
            raise

    def _write(self, page: ParsedPage) -> None:
        self._directory.write_page(page.record, page.crops, page.preview)
        document = page.document
        if document.page_count is not None:
            self._left[document.doc_id] = self._left.get(document.doc_id, document.page_count) - 1
            if self._left[document.doc_id] == 0:
                del self._left[document.doc_id]
                self._directory.finish_document(document.doc_id)


async def _next(pages: AsyncGenerator[ParsedPage], stop: asyncio.Event) -> ParsedPage | None:
    """The next page; None at the end of the stream or when the run is to stop."""
    step = asyncio.ensure_future(anext(pages, None))
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({step, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return step.result() if step.done() else None
    finally:
        for task in (step, stopped):
            task.cancel()
        await asyncio.gather(step, stopped, return_exceptions=True)


@contextmanager
def _stop_on_signals(announce: Callable[[], None] | None) -> Iterator[asyncio.Event]:
    """An event that the first SIGINT or SIGTERM sets; a second one ends the process at once, as by default.

    Signals that are ignored (``nohup``, background jobs) stay so. Where handlers cannot be installed, Python's own
    behaviour stays.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    installed: list[signal.Signals] = []

    def on_signal() -> None:
        stop.set()
        for number in installed:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        if announce:
            announce()

    for number in before:
        if before[number] is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, on_signal)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            continue
        installed.append(number)
    try:
        yield stop
    finally:
        for number in installed:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
