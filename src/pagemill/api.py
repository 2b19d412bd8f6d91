"""The Python API: one document at once, or a stream of pages. Both sit on the runtime of the command line."""

from __future__ import annotations

import asyncio
import inspect
import logging
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, cast

from pagemill import tracing
from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions
from pagemill.config.describing import DescribeSettings
from pagemill.config.options import build, options_of
from pagemill.config.recognition import RecognitionSettings
from pagemill.document.page import PageResult, Status
from pagemill.errors import InputError, UsageError, error_class
from pagemill.export.document import Document
from pagemill.extraction.result import Extraction
from pagemill.parsing.page import ParsedPage
from pagemill.profiling.telemetry import exported
from pagemill.runtime.pipeline import Pipeline
from pagemill.sources.download import fetch_missing

T = TypeVar("T")

log = logging.getLogger(__name__)


class StreamKeywords(TypedDict, total=False):
    """Types of the keyword arguments of :func:`stream`. Their meaning is declared in :class:`ParseOptions`."""

    languages: Sequence[str] | None
    text_layer: str | None
    structure: str | None
    photographs: str | None
    tables: str | None
    furniture: str
    inline_marks: bool
    table_engine: str
    table_model: str | None
    pages: str | None
    password: str | None
    recursive: bool
    limit: int | None
    image_column: str | None
    id_column: str | None
    download: str | Path | None
    skip_duplicates: bool
    layout_engine: str
    layout_model: str | Path | None
    recognition: RecognitionSettings | None
    describing: DescribeSettings | None
    page_timeout_s: float
    max_attempts: int
    threads: int
    decoders: int
    decoder_memory_gib: float
    pages_in_flight: int
    layout_batch: int
    schedule: str


class ParseKeywords(StreamKeywords, total=False):
    """Types of the keyword arguments of :func:`parse`."""

    crops: bool


def _documented(keywords: type) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Give a function the signature and the help of its keyword arguments, from the declarations of the options."""
    declared = {
        each.key: (each.help + (f" Default: {each.shown_default}." if each.shown_default else ""), each.default)
        for each in options_of(ParseOptions)
    }
    declared["recognition"] = (
        'Which engine recognizes the content, and how, such as ``RecognitionSettings(engine="vlm", '
        'servers=("http://127.0.0.1:8000",))``.',
        None,
    )
    declared["describing"] = (
        'Which elements a model describes, and which model, such as ``DescribeSettings(kinds=("figures",), '
        'servers=("http://127.0.0.1:8000",))``.',
        None,
    )

    def document(function: Callable[..., T]) -> Callable[..., T]:
        source = next(iter(inspect.signature(function).parameters.values()))
        types = {key: each.__forward_arg__ for key, each in keywords.__annotations__.items()}
        named = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=declared[key][1], annotation=each)
            for key, each in types.items()
        ]
        function.__signature__ = inspect.signature(function).replace(parameters=[source, *named])  # type: ignore[attr-defined]
        lines = "\n".join(f"    {key}: {declared[key][0]}" for key in types)
        function.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("    **options: See below.", lines)
        return function

    return document


@_documented(ParseKeywords)
def parse(source: str | Path | bytes, **options: Unpack[ParseKeywords]) -> Document:
    """Parse one document and wait for all of it.

    Args:
        source: A path or URL of a PDF, an image or another document, or the bytes of one.
        **options: See below.

    Returns:
        The document. Pages that failed are in it, with their errors (``document.errors``).

    Raises:
        PagemillError: The document could not be opened at all; the class says why.
        UsageError: An option is not valid, or the source holds more than one document: use :func:`stream`.
    """
    chosen = _options("parse", options, ParseKeywords)

    async def collect() -> list[ParsedPage]:
        results: list[ParsedPage] = []
        async with aclosing(_parsed([source], chosen)) as pages:
            async for page in pages:
                if results and page.document.doc_id != results[0].document.doc_id:
                    raise UsageError(
                        "the source holds more than one document", remedy="Use pagemill.stream for many documents."
                    )
                results.append(page)
        return sorted(results, key=lambda page: page.record.page_idx)

    parsed = _run(collect())
    if not parsed:
        raise InputError("the source holds no page", remedy="Check that it is not empty.")
    first = parsed[0]
    if first.record.page_number is None:
        error = first.record.errors[0]
        raise error_class(error.category)(error.message, remedy=error.remedy)
    crops = dict(crop for page in parsed for crop in page.crops)
    return Document.from_pages((page.record for page in parsed), crops, first.document.info)


@_documented(StreamKeywords)
async def stream(
    source: str | Path | bytes | Sequence[str | Path | bytes], **options: Unpack[StreamKeywords]
) -> AsyncGenerator[PageResult]:
    """Parse any number of documents and yield each page as it finishes, in no particular order.

    Args:
        source: One input or several: files, folders, globs, datasets, URLs, bytes.
        **options: See below.

    Yields:
        One record per page; a page or document that failed has ``status`` failed and says why in ``errors``.
    """
    inputs = [source] if isinstance(source, (str, bytes)) or not hasattr(source, "__iter__") else list(source)
    chosen = _options("stream", options, StreamKeywords)
    chosen = replace(chosen, settings=replace(chosen.settings, crops=False))  # a record alone has no use for crops
    async with aclosing(_parsed(inputs, chosen)) as results:
        async for page in results:
            yield page.record


def extract(
    source: str | Path | bytes | Sequence[str | Path],
    schema: Any,
    *,
    images: bool = True,
    **options: Unpack[StreamKeywords],
) -> list[Extraction]:
    """Extract the values that a schema describes, each with its page and box.

    Args:
        source: What :func:`stream` takes; or a run directory, which is not parsed again.
        schema: A pydantic model, a msgspec struct, a dataclass, a JSON Schema, or the path of one.
        images: Send the images of the pages with their text.
        **options: As of :func:`stream`. ``recognition`` names the model and its servers.

    Returns:
        One result for each document; ``result.to(Invoice)`` makes an object of its values.

    Raises:
        PagemillError: No server with the model answers, the schema is not valid, or parsing did not finish.
    """
    from pagemill.app import extract as app  # needs packages of the extra vlm, which the other functions do not
    from pagemill.app.parse_process import parse_inputs
    from pagemill.extraction.schema import ExtractionSchema

    wanted = ExtractionSchema.of(schema)
    chosen = _options("extract", options, StreamKeywords)
    model = chosen.settings.recognition
    with tempfile.TemporaryDirectory(prefix="pagemill-extract-") as temporary:
        inputs: list[str | Path] = [source] if isinstance(source, (str, Path)) else []
        if isinstance(source, bytes):
            inputs = [Path(temporary) / "document"]
            Path(inputs[0]).write_bytes(source)
        elif not inputs:
            inputs = list(cast("Sequence[str | Path]", source))
        out = Path(temporary) / "run"
        if len(inputs) == 1 and app.is_run(inputs[0]):
            out = Path(inputs[0])
        else:
            _run(app.check_model(wanted, model))
            parse_inputs(inputs, out, chosen, DirectoryOptions(report=False), quiet=True)
        sources = ImageSources(options=chosen.source)
        _run(app.extract(out, wanted, model, app.ExtractOptions(images=images), sources))
        return list(app.read_results(app.results_folder(out, wanted)))


def _options(function: str, given: Mapping[str, Any], keywords: type) -> ParseOptions:
    """The settings that keyword arguments stand for.

    Raises:
        TypeError: There is no such keyword.
        UsageError: A value is not valid.
    """
    for key in given:
        if key not in keywords.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {key!r}")
    return build(ParseOptions, given)


async def _parsed(inputs: Sequence[str | Path | bytes], options: ParseOptions) -> AsyncGenerator[ParsedPage]:
    """The stream of pages on a pipeline of its own."""
    await asyncio.to_thread(fetch_missing, inputs, options.source, log.info)
    with exported(configure=False):
        async with Pipeline(options.settings, options.runtime, options.layout) as pipeline:
            await pipeline.prepare()
            async with aclosing(pipeline.stream(inputs, options.source, max_attempts=options.max_attempts)) as pages:
                async for page in pages:
                    if isinstance(page, ParsedPage):  # not those skipped as duplicates
                        yield page
                        tracing.ended(page.record.page_id, failed=page.record.status is Status.FAILED)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also from inside a running event loop (a notebook), where a thread of its own is needed."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    cancel: list[Callable[[], object]] = []

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        cancel.append(lambda: loop.call_soon_threadsafe(task.cancel))
        return await coroutine

    with ThreadPoolExecutor(1, thread_name_prefix="pagemill.parse") as thread:
        running = thread.submit(asyncio.run, cancellable())
        try:
            return running.result()
        except KeyboardInterrupt:  # the caller's thread gets it, not the one that works
            for stop in cancel:
                stop()
            raise
