"""Parse documents into a run directory: the stream of pages on one side, records and documents on the other."""

from __future__ import annotations

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pagemill.errors import ExitCode
from pagemill.export.docjson import document_json
from pagemill.export.embedding_text import embedding_text
from pagemill.export.markdown import document_markdown
from pagemill.export.report import write_report
from pagemill.store.run_directory import Exporters, RunDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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


@dataclass(slots=True)
class RunOutcome:
    """How a run ended."""

    summary: RunSummary
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Page id, message and remedy of the first failures (at most ``MAX_FAILURES``)."""
    _codes: set[ExitCode] = field(default_factory=set)

    MAX_FAILURES = 20

    def add(self, page: ParsedPage) -> None:
        """Take note of a page's errors."""
        if page.exit_code is not ExitCode.OK:
            self._codes.add(page.exit_code)
        for error in page.record.errors:
            if len(self.failures) < self.MAX_FAILURES:
                self.failures.append((page.record.page_id, error.message, error.remedy))

    @property
    def exit_code(self) -> ExitCode:
        """0 when all is well; the cause's own code when nothing succeeded for one cause; else "some pages failed"."""
        if self.summary.interrupted:
            return ExitCode.INTERRUPTED
        if self.summary.failed and self.summary.failed == self.summary.pages and len(self._codes) == 1:
            return next(iter(self._codes))
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

    Raises:
        OutputError: ``out`` holds a run already or cannot be written; NoSpaceError when the disk is full.
            What was written until then is valid.
    """
    exporters = Exporters(
        embedding_text=embedding_text,
        document_markdown=document_markdown,
        document_json=document_json,
        report=write_report if report else None,
    )
    settings = pipeline.describe()
    loop = asyncio.get_running_loop()
    with (
        ThreadPoolExecutor(1, thread_name_prefix="pagemill.store") as writer,
        RunDirectory.create(out, exporters=exporters, fresh=fresh, settings=settings) as directory,
    ):
        outcome = RunOutcome(directory.summary)
        left: dict[str, int] = {}
        interrupted = False

        def write(page: ParsedPage) -> None:
            directory.write_page(page.record, page.crops, page.preview)
            document = page.document
            if document.page_count is not None:
                left[document.doc_id] = left.get(document.doc_id, document.page_count) - 1
                if left[document.doc_id] == 0:
                    del left[document.doc_id]
                    directory.finish_document(document.doc_id)

        with _stop_on_signals() as stop:
            async with pipeline, aclosing(pipeline.stream(inputs, options)) as pages:
                while not stop.is_set():
                    step = asyncio.ensure_future(anext(pages, None))
                    stopped = asyncio.ensure_future(stop.wait())
                    await asyncio.wait({step, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    stopped.cancel()
                    if not step.done():
                        step.cancel()
                        await asyncio.gather(step, return_exceptions=True)
                        break
                    page = step.result()
                    if page is None:
                        break
                    await loop.run_in_executor(writer, write, page)
                    outcome.add(page)
                    if progress:
                        progress.page(page, pipeline.total)
                interrupted = stop.is_set()
        await loop.run_in_executor(writer, lambda: directory.finish(interrupted=interrupted))
        return outcome


@contextmanager
def _stop_on_signals() -> Iterator[asyncio.Event]:
    """An event that the first SIGINT or SIGTERM sets; a second one has its usual, abrupt effect.

    Where handlers cannot be installed, Python's own behaviour stays.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    installed: list[signal.Signals] = []

    def on_signal() -> None:
        stop.set()
        for number in installed:
            loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
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
