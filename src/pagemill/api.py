"""The Python API: one document at once, or a stream of pages. Both sit on the runtime of the command line."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeVar

from pagemill.config.modes import TextLayerMode
from pagemill.config.settings import ParseSettings, RecognitionSettings, RuntimeSettings
from pagemill.errors import InputError, UsageError, error_class
from pagemill.export.document import Document
from pagemill.parsing.page import ParsedPage
from pagemill.runtime.pipeline import EMBEDDED_LAYOUT, Pipeline
from pagemill.sources import PageRanges, SourceOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
    from pathlib import Path

    from pagemill.document.page import PageResult
T = TypeVar("T")


def parse(
    source: str | Path | bytes,
    *,
    languages: Sequence[str] | None = None,
    text_layer: str | None = None,
    pages: str | None = None,
    password: str | None = None,
    layout_engine: str = EMBEDDED_LAYOUT,
    layout_model: str | Path | None = None,
    recognition: RecognitionSettings | None = None,
    crops: bool = True,
    page_timeout_s: float = 300.0,
    max_attempts: int = 2,
    threads: int = 0,
) -> Document:
    """Parse one document and wait for all of it.

    Args:
        source: A path or URL of a PDF or image, or the bytes of one.
        languages: Languages to read, as in ``("ko", "en")``; None detects the script of each page.
        text_layer: ``auto``, ``always`` or ``never`` take the text that a PDF carries; None is ``auto``, and ``never``
            where a region engine reads.
        pages: Page ranges such as ``"1,3-5,8-"``; None for all.
        password: Of an encrypted PDF.
        layout_engine: Name of an installed layout engine.
        layout_model: A model of the engine on disk: an ONNX file, or a folder of weights or a settings file
            (``pp-doclayout-v3``); None for the one that the engine finds itself.
        recognition: Who reads; None reads lines on this machine. ``RecognitionSettings(engine="vlm", model="glm-ocr",
            servers=("http://127.0.0.1:8000",))`` has a vision-language model read whole regions.
        crops: Cut out pictures and charts (``document.crops``), so that the document can show and save them.
        page_timeout_s: Time limit of a page, in seconds; what a server reads of it aside.
        max_attempts: Most attempts of a page that fails for a cause that may be gone next time (a crash, the time
            limit, an engine's error); all but the first are made alone, when the other pages have ended.
        threads: Threads that compute; 0 for one a core.

    Returns:
        The document. Pages that failed are in it, with their errors (``document.errors``).

    Raises:
        PagemillError: The document could not be opened at all; the class says why.
        UsageError: The source holds more than one document: use :func:`stream`.
    """
    settings = _settings(languages, text_layer, recognition, crops=crops, page_timeout_s=page_timeout_s)
    options = _options(pages, password)

    async def collect() -> list[ParsedPage]:
        results: list[ParsedPage] = []
        pages = _parsed([source], settings, options, layout_engine, layout_model, max_attempts, threads)
        async with aclosing(pages):
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
    return Document.from_pages((page.record for page in parsed), dict(crop for page in parsed for crop in page.crops))


async def stream(
    source: str | Path | bytes | Sequence[str | Path | bytes],
    *,
    languages: Sequence[str] | None = None,
    text_layer: str | None = None,
    pages: str | None = None,
    password: str | None = None,
    recursive: bool = False,
    layout_engine: str = EMBEDDED_LAYOUT,
    layout_model: str | Path | None = None,
    recognition: RecognitionSettings | None = None,
    page_timeout_s: float = 300.0,
    max_attempts: int = 2,
    threads: int = 0,
) -> AsyncGenerator[PageResult]:
    """Parse any number of documents and yield each page as it finishes, in no particular order.

    Args:
        source: One input or several: files, folders, globs, datasets, URLs, bytes.
        languages: As in :func:`parse`.
        text_layer: As in :func:`parse`.
        pages: As in :func:`parse`, applied to each PDF and TIFF.
        password: As in :func:`parse`.
        recursive: Go down into folders.
        layout_engine: As in :func:`parse`.
        layout_model: As in :func:`parse`.
        recognition: As in :func:`parse`.
        page_timeout_s: As in :func:`parse`.
        max_attempts: As in :func:`parse`.
        threads: As in :func:`parse`.

    Yields:
        One record a page; a page or document that failed has ``status`` failed and says why in ``errors``.
    """
    inputs = [source] if isinstance(source, (str, bytes)) or not hasattr(source, "__iter__") else list(source)
    settings = _settings(languages, text_layer, recognition, crops=False, page_timeout_s=page_timeout_s)
    options = _options(pages, password, recursive=recursive)
    results = _parsed(inputs, settings, options, layout_engine, layout_model, max_attempts, threads)
    async with aclosing(results):
        async for page in results:
            yield page.record


async def _parsed(
    inputs: Sequence[str | Path | bytes],
    settings: ParseSettings,
    options: SourceOptions,
    layout_engine: str,
    layout_model: str | Path | None,
    max_attempts: int,
    threads: int,
) -> AsyncGenerator[ParsedPage]:
    """The stream of pages on a pipeline of its own."""
    if max_attempts < 1:
        raise UsageError(f"max_attempts is {max_attempts}", remedy="A page needs at least one attempt.")
    runtime = RuntimeSettings(threads=threads)
    async with Pipeline(settings, runtime, layout_engine=layout_engine, layout_model=layout_model) as pipeline:
        await pipeline.prepare()
        async with aclosing(pipeline.stream(inputs, options, max_attempts=max_attempts)) as pages:
            async for page in pages:
                if isinstance(page, ParsedPage):  # nothing is skipped without a catalogue that says so
                    yield page


def _settings(
    languages: Sequence[str] | None,
    text_layer: str | None,
    recognition: RecognitionSettings | None,
    *,
    crops: bool,
    page_timeout_s: float,
) -> ParseSettings:
    if isinstance(languages, str):
        raise UsageError(f"languages is {languages!r}", remedy="Give a list, as in ['ko', 'en'].")
    recognition = recognition or RecognitionSettings()
    if languages and recognition.reads_regions:
        raise UsageError(
            f"languages are for reading lines: {recognition.engine} reads the languages of its model",
            remedy="Leave them out.",
        )
    return ParseSettings(
        languages=tuple(languages) if languages else None,
        text_layer=recognition.text_layer if text_layer is None else _text_layer_mode(text_layer),
        crops=crops,
        recognition=recognition,
        page_timeout_s=page_timeout_s,
    )


def _options(pages: str | None, password: str | None, *, recursive: bool = False) -> SourceOptions:
    return SourceOptions(pages=PageRanges.parse(pages) if pages else None, password=password, recursive=recursive)


def _text_layer_mode(value: str) -> TextLayerMode:
    try:
        return TextLayerMode(value)
    except ValueError:
        modes = ", ".join(TextLayerMode)
        raise UsageError(f"text_layer is {value!r}", remedy=f"Choose one of {modes}.") from None


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
