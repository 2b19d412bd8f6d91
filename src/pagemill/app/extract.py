"""Extracts values of a JSON Schema from the documents of a run, with a model behind servers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import msgspec

from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions
from pagemill.app.page_images import PageImages, WantedPage
from pagemill.app.parse_process import parse_inputs
from pagemill.config.model_cards import ModelKind, load_card
from pagemill.config.options import Settings, option
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.names import file_stem
from pagemill.document.page import PageResult, Status
from pagemill.errors import FATAL, ExitCode, InputError, PagemillError, UsageError, first_of
from pagemill.export.target import replaced_folder
from pagemill.extraction.asking import PartResult, ValueReader
from pagemill.extraction.assembling import assembled, failed, failed_pages
from pagemill.extraction.grounding import PageText
from pagemill.extraction.prompting import Batcher, PagePart, page_text
from pagemill.extraction.result import Extraction, ExtractionProblem, ExtractionStatus
from pagemill.extraction.schema import ExtractionSchema
from pagemill.recognition.vlm.requests import chat_client
from pagemill.store import paths
from pagemill.store.files import output_errors, write_whole
from pagemill.store.holding import Holding, examine
from pagemill.store.reading import RunReader

_log = logging.getLogger(__name__)

_DOCUMENTS_IN_FLIGHT = 8
_REQUESTS_IN_FLIGHT = 32
"""Requests that hold page images at the same time: about 1 MB each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOptions(Settings):
    """What the model gets, and what counts as success."""

    HEADING: ClassVar = "Extraction"

    images: bool = option(default=True, results=True, help="Send the images of the pages with their text.")
    strict: bool = option(
        "--strict",
        key="strict_values",
        default=False,
        results=False,
        help="Exit with status 3 also for values that are on no page.",
    )


@dataclass(slots=True)
class ExtractOutcome:
    """The result of an extraction."""

    results: dict[str, ExtractionStatus] = field(default_factory=dict)
    """By document id."""
    values: int = 0
    unfounded: int = 0
    requests: int = 0
    attempts: int = 0
    tokens: int = 0
    """Tokens of prompts and answers, as far as the servers report them."""
    failures: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Document, message and remedy of the first ``MAX_FAILURES`` problems."""
    problems: int = 0
    strict: bool = False

    MAX_FAILURES: ClassVar = 20

    def add(self, result: Extraction) -> None:
        """Take note of a document."""
        self.results[result.doc_id] = result.status
        self.values += len(result.fields)
        self.unfounded += len(result.unfounded)
        self.requests += len(result.requests)
        for request in result.requests:
            self.attempts += request.attempts
            self.tokens += (request.prompt_tokens or 0) + (request.completion_tokens or 0)
        found = [(_located(result, problem), problem.message, problem.remedy) for problem in result.problems]
        # A failed document lacks all of them, which its own error already says.
        if result.missing and result.status is not ExtractionStatus.FAILED:
            found.append((result.doc_id, f"required values were not found: {', '.join(result.missing)}", None))
        found += [
            (result.doc_id, f"left out, as the schema does not allow it: {text}", None) for text in result.invalid
        ]
        self.problems += len(found)
        self.failures += found[: max(0, self.MAX_FAILURES - len(self.failures))]

    def count(self, status: ExtractionStatus) -> int:
        """Documents that ended so."""
        return sum(result is status for result in self.results.values())

    @property
    def exit_code(self) -> ExitCode:
        """0 if all documents are done, else 3."""
        is_doubtful = self.strict and self.unfounded
        all_done = self.count(ExtractionStatus.DONE) == len(self.results)
        return ExitCode.OK if all_done and not is_doubtful else ExitCode.PAGES_FAILED


def _located(result: Extraction, problem: ExtractionProblem) -> str:
    numbers = [number for number in problem.pages if number is not None]
    if not numbers:
        return result.doc_id
    pages = f"page {numbers[0]}" if len(numbers) == 1 else f"pages {numbers[0]}-{numbers[-1]}"
    return f"{result.doc_id}, {pages}"


def is_run(path: str | Path) -> bool:
    """Whether an input is a run directory."""
    folder = Path(path)
    return folder.is_dir() and examine(folder) is Holding.RUN


def results_folder(out: Path, schema: ExtractionSchema) -> Path:
    """Where the results of a schema go."""
    return out / paths.EXTRACTED / schema.name


def read_results(folder: Path) -> Iterator[Extraction]:
    """The results that an extraction has written, by document id."""
    for path in sorted(folder.glob("*.json")):
        yield msgspec.json.decode(path.read_bytes(), type=Extraction)


def model_reader(schema: ExtractionSchema, model: RecognitionSettings) -> ValueReader:
    """The reader for a model card and its servers. Does not connect yet.

    Raises:
        UsageError: There is no such card, it has another kind, or no server is named.
    """
    card = load_card(model.model, ModelKind.RECOGNITION)
    if not model.servers:
        raise UsageError(
            "extraction needs a model behind a server",
            remedy="Pass it with --server URL and --model; `pagemill serve-model` starts one.",
        )
    return ValueReader(card, chat_client(model.servers, model), schema, model.served_model, model.max_tokens)


def parse_and_extract(
    inputs: Sequence[str | Path],
    out: Path,
    schema: ExtractionSchema,
    parsing: ParseOptions,
    directory: DirectoryOptions,
    options: ExtractOptions,
    *,
    quiet: bool = False,
    report: Callable[[int, int, str], object] = lambda *_: None,
) -> ExtractOutcome:
    """Parse inputs into a run directory, and extract values from its documents.

    Raises:
        PagemillError: The model is not there, or parsing did not finish. The first is found before anything is parsed.
    """
    model = parsing.settings.recognition
    # Hours of parsing come next: a server that does not answer, or a schema too long for its model, should fail now.
    asyncio.run(check_model(schema, model))
    parse_inputs(inputs, out, parsing, directory, quiet=quiet)
    sources = ImageSources(options=parsing.source)
    return asyncio.run(extract(out, schema, model, options, sources, report))


async def check_model(schema: ExtractionSchema, model: RecognitionSettings) -> None:
    """Connect to the servers before the work starts.

    Raises:
        PagemillError: No server answers, or none serves the model.
    """
    reader = model_reader(schema, model)
    try:
        await reader.check()
    finally:
        await reader.client.aclose()


async def extract(
    out: Path,
    schema: ExtractionSchema,
    model: RecognitionSettings,
    options: ExtractOptions,
    sources: ImageSources,
    report: Callable[[int, int, str], object] = lambda *_: None,
) -> ExtractOutcome:
    """Extract values from all documents of a run, a file for each; they replace earlier results at the end.

    Args:
        out: The run directory.
        schema: Schema of the values.
        model: The model and its servers.
        options: Input options of the model.
        sources: Current location of the parsed files, for the images of pages.
        report: Called with the number of documents that are done, that of all, and what they are.

    Raises:
        NetworkError: No server answers.
        UsageError: The servers do not serve the model, or there is none.
        OutputError: ``out`` contains no run, or cannot be written.
        InputError: The run contains no document.
    """
    with RunReader.open(out) as reader:
        documents = [doc_id for doc_id, _ in reader.recorded_documents()]
        if not documents:
            raise InputError(f"{out} contains no document", remedy="Parse one first.")
        values = model_reader(schema, model)
        try:
            await values.check()
            target = results_folder(out, schema)
            async with PageImages.opened(reader, sources) as images:
                # Earlier results stay until all documents have been asked about: the server may fail on the way.
                with output_errors(target), replaced_folder(target) as folder:
                    outcome = await _Extraction(folder, reader, images, values, options).all(documents, report)
            write_whole(target.parent / f"{file_stem(schema.name)}.schema.json", [msgspec.json.encode(schema.document)])
            return outcome
        except BaseExceptionGroup as group:
            raise first_of(group) from None
        finally:
            await values.client.aclose()


def _encoded(result: Extraction) -> bytes:
    return msgspec.json.format(msgspec.json.encode(result))


class _Extraction:
    """One invocation on a run. Documents are read one after the other; their requests are in flight together."""

    def __init__(
        self, folder: Path, reader: RunReader, images: PageImages, values: ValueReader, options: ExtractOptions
    ) -> None:
        self._folder = folder
        self._reader = reader
        self._images = images
        self._values = values
        self._options = options
        self._reading = asyncio.Lock()
        self._documents = asyncio.Semaphore(_DOCUMENTS_IN_FLIGHT)
        self._requests = asyncio.Semaphore(min(values.client.in_flight, _REQUESTS_IN_FLIGHT))
        self._outcome = ExtractOutcome(strict=options.strict)

    async def all(self, documents: Sequence[str], report: Callable[[int, int, str], object]) -> ExtractOutcome:
        async with asyncio.TaskGroup() as group:
            for doc_id in documents:
                await self._documents.acquire()
                group.create_task(self._one(doc_id, lambda done: report(done, len(documents), "documents")))
        return self._outcome

    async def _one(self, doc_id: str, report: Callable[[int], object]) -> None:
        """Write the result of a document. An error affects no other document."""
        try:
            try:
                result = await self._extract(doc_id)
                content = await asyncio.to_thread(_encoded, result)
            except BaseException as error:
                cause = first_of(error) if isinstance(error, BaseExceptionGroup) else error
                if not isinstance(cause, Exception) or isinstance(cause, FATAL):
                    raise cause from None
                if not isinstance(cause, PagemillError):
                    _log.exception("document %s", doc_id, exc_info=cause)
                    cause = PagemillError(
                        f"{type(cause).__name__}: {cause}", remedy="This is a defect of pagemill: report it."
                    )
                # With a file of its own, so that the folder holds one for each document.
                result = failed(doc_id, "", cause, self._values.schema, self._values.model)
                content = _encoded(result)
            path = self._folder / f"{file_stem(doc_id)}.json"
            await asyncio.to_thread(write_whole, path, [content, b"\n"])
            self._outcome.add(result)
            report(len(self._outcome.results))
        finally:
            self._documents.release()

    async def _extract(self, doc_id: str) -> Extraction:
        async with asyncio.TaskGroup() as group:
            # One document at a time, or else images of several would wait in memory for their requests.
            async with self._reading:
                pages = await asyncio.to_thread(lambda: list(self._reader.document(doc_id)))
                texts = await asyncio.to_thread(lambda: [PageText(index, page) for index, page in enumerate(pages)])
                tasks: list[asyncio.Task[list[PartResult]]] = []
                images_missing: list[ExtractionProblem] = []
                async with aclosing(self._batches(pages, images_missing)) as batches:
                    async for batch in batches:
                        # Before the next batch is read: a batch holds the images of its pages.
                        await self._requests.acquire()
                        tasks.append(group.create_task(self._ask(batch, len(pages))))
            source, problems, count = pages[0].source, failed_pages(pages), len(pages)
        results = [result for task in tasks for result in task.result()]
        return await asyncio.to_thread(
            lambda: assembled(
                doc_id,
                source,
                texts,
                results,
                problems + images_missing,
                self._values.schema,
                model=self._values.model,
                pages=count,
            )
        )

    async def _ask(self, batch: list[PagePart], pages: int) -> list[PartResult]:
        try:
            return await self._values.read(batch, pages)
        finally:
            self._requests.release()

    async def _batches(
        self, pages: Sequence[PageResult], problems: list[ExtractionProblem]
    ) -> AsyncGenerator[list[PagePart]]:
        """The parsed pages in batches; those whose image is missing come without it, and are reported."""
        parts = {
            page.page_id: PagePart(index=index, number=page.page_number, text=page_text(page), image=None)
            for index, page in enumerate(pages)
            if page.status is Status.DONE
        }
        batcher = Batcher(self._values.budget, self._values.most_pages)
        if not self._options.images:
            for part in parts.values():
                for batch in batcher.add(part):
                    yield batch
        else:
            wanted = [WantedPage.of(page) for page in pages if page.page_id in parts]
            async with aclosing(self._images.find(wanted)) as found:
                async for each in found:
                    part = parts[each.wanted.page_id]
                    try:
                        with each:
                            pixels = await self._images.pixels(each)
                            part = await asyncio.to_thread(self._values.with_image, part, pixels)
                            del pixels
                    # The text alone may hold the values; that the image is missing is reported beside them.
                    except InputError as error:
                        problems.append(
                            ExtractionProblem(
                                pages=(part.number,),
                                category="no_image",
                                message=f"only the text was sent: {error.message}",
                                remedy=error.remedy,
                            )
                        )
                    for batch in batcher.add(part):
                        yield batch
        if rest := batcher.rest():
            yield rest
