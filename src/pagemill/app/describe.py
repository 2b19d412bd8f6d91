"""Describe the elements of an existing run with a model behind servers; no page is parsed again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from pagemill.app.exporters import default_exporters
from pagemill.app.options import ImageSources
from pagemill.app.page_images import PageImages, WantedPage
from pagemill.blocking import to_the_end
from pagemill.config.describing import DescribeSettings
from pagemill.config.modes import Described
from pagemill.config.recognition import RecognitionSettings
from pagemill.describing.describer import DescribeCounts, Describer
from pagemill.describing.elements import pictures, requests_for, take, wanted
from pagemill.document.page import Description, PageResult
from pagemill.errors import DamagedRunError, ExitCode, PagemillError, first_of
from pagemill.export.markdown import with_markdown
from pagemill.recognition.base import Problem
from pagemill.runtime.describing import describe
from pagemill.store.lock import DESCRIBING
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.repair import refresh
from pagemill.store.run_directory import RunDirectory

KINDS = (Described.FIGURES, Described.CHARTS, Described.TABLES)
"""Kinds that are described by default."""
_PAGES_IN_FLIGHT = 64
MAX_FAILURES = 20


@dataclass(slots=True)
class DescribeOutcome:
    """The result of describing a run."""

    counts: DescribeCounts
    pages: int = 0
    """Pages with elements to describe."""
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Page, message and remedy of the first ``MAX_FAILURES``."""

    @property
    def exit_code(self) -> ExitCode:
        """0 if everything asked for was described, else 3."""
        return ExitCode.PAGES_FAILED if self.counts.failed else ExitCode.OK


async def describe_run(
    out: Path,
    settings: DescribeSettings,
    sources: ImageSources,
    report: Callable[[int, int, str], object] = lambda *_: None,
) -> DescribeOutcome:
    """Describe the elements of a run that have no description, and write them into its records.

    Args:
        out: The run directory.
        settings: Kinds to describe, and the model.
        sources: Current location of the parsed files, for pictures that are not in the run: of tables, or all of them.
        report: Called with the number of pages that are done, that of all, and what they are.

    Raises:
        NetworkError: No server answers.
        UsageError: The servers do not serve the model, or there is none.
        OutputError: ``out`` contains no run, is in use, or cannot be written.
    """
    # A model of its own: the recognition settings of this run belong to another command.
    describer = Describer(settings, RecognitionSettings())
    try:
        # Before the run is locked: a server that does not answer must not keep others out of the directory.
        await describer.check()
        with RunReader.open(out) as reader:
            identity = reader.summary.identity
        exporters = default_exporters()
        try:
            with (
                RunDirectory.open(
                    out, exporters=exporters, identity=identity, settings=None, mode=OpenMode.RESUME, task=DESCRIBING
                ) as run,
                RunReader.open(out) as reader,
            ):
                # Answers are kept by the run, so that an interrupted command asks for none of them twice.
                describer.answers = run.descriptions
                return await _Describing(run, reader, describer, settings.kinds or KINDS, sources).all(report)
        finally:
            # Also after an error: the descriptions that were written belong in the documents' files.
            await asyncio.to_thread(refresh, out, exporters)
    except BaseExceptionGroup as group:
        raise first_of(group) from None
    finally:
        await describer.aclose()


@dataclass(slots=True)
class _Describing:
    """One invocation. Pictures come from ``crops/``, or else from the sources; pages are processed concurrently."""

    run: RunDirectory
    reader: RunReader
    describer: Describer
    kinds: Sequence[Described]
    sources: ImageSources
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_PAGES_IN_FLIGHT))
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    outcome: DescribeOutcome = field(init=False)
    done: int = 0

    def __post_init__(self) -> None:
        self.outcome = DescribeOutcome(self.describer.counts)

    async def all(self, report: Callable[[int, int, str], object]) -> DescribeOutcome:
        page_ids = await asyncio.to_thread(
            lambda: [page.page_id for page in self.reader.pages(stored=True) if any(wanted(page, self.kinds))]
        )
        self.outcome.pages = len(page_ids)

        def step() -> None:
            self.done += 1
            report(self.done, len(page_ids), "pages")

        async with asyncio.TaskGroup() as group:
            # Pages whose crops the run holds go first: they need no source, and keep the servers busy while sources
            # open.
            without: list[WantedPage] = []
            for page_id in page_ids:
                page = await asyncio.to_thread(self.reader.page, page_id, stored=True)
                saved = await asyncio.to_thread(self._saved, page)
                if saved is None:
                    without.append(WantedPage.of(page))
                else:
                    await self.places.acquire()
                    group.create_task(self._page(page, saved, step))
            async with PageImages.opened(self.reader, self.sources) as images, aclosing(images.find(without)) as each:
                async for found in each:
                    # Read again: thousands of records that wait for their images would fill the memory.
                    page = await asyncio.to_thread(self.reader.page, found.wanted.page_id, stored=True)
                    try:
                        with found:
                            pixels = await images.pixels(found)
                            cut = await asyncio.to_thread(pictures, page, pixels, self.kinds)
                            # A decoded page is tens of megabytes, and the answers for its cuts may take minutes.
                            del pixels
                    except PagemillError as error:
                        problem = Problem(error.category, error.message, error.remedy)
                        # One error for each element of the page, since each of them is what the user asked for.
                        missing = dict.fromkeys((region.index for region in wanted(page, self.kinds)), problem)
                        self.describer.counts.failed += len(missing)
                        await self._write(page, missing, step)
                        continue
                    await self.places.acquire()
                    group.create_task(self._page(page, cut, step))
        return self.outcome

    def _saved(self, page: PageResult) -> dict[int, bytes] | None:
        """The stored pictures of a page's elements; None if one is missing."""
        crops = {crop.region: crop for crop in page.image_crops}
        regions = [region.index for region in wanted(page, self.kinds)]
        try:
            return {index: self.reader.crop(crops[index]) for index in regions}
        except (KeyError, DamagedRunError):
            return None

    async def _page(self, page: PageResult, cut: Mapping[int, bytes], step: Callable[[], None]) -> None:
        try:
            requests = requests_for(page, cut)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(describe(self.describer, request)) for request in requests]
            answers = {request.index: task.result() for request, task in zip(requests, tasks, strict=True)}
            await self._write(page, answers, step)
        finally:
            self.places.release()

    async def _write(
        self, page: PageResult, answers: Mapping[int, Description | Problem | None], step: Callable[[], None]
    ) -> None:
        # None is an element beyond --describe-limit: the record stays as it is.
        if any(answer is not None for answer in answers.values()):
            await asyncio.to_thread(take, page, answers)
            await asyncio.to_thread(with_markdown, page)
            async with self.writing:  # of one thread at a time, and not while the directory is closed
                await to_the_end(asyncio.to_thread(self.run.replace_page, page))
        problems = [answer for answer in answers.values() if isinstance(answer, Problem)]
        room = max(0, MAX_FAILURES - len(self.outcome.failures))
        self.outcome.failures += [(page.page_id, problem.message, problem.remedy) for problem in problems[:room]]
        step()
