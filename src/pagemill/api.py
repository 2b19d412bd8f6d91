"""The Python API: one document at once, or a stream of pages. Both sit on the runtime of the command line."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pagemill.config.settings import ParseSettings, RuntimeSettings, TextLayerMode
from pagemill.document.page import PageResult, Status
from pagemill.errors import InputError, PagemillError, UsageError
from pagemill.export.document import Document
from pagemill.runtime.pipeline import Pipeline
from pagemill.sources import PageRanges, SourceOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Sequence
    from pathlib import Path


def parse(
    source: str | Path | bytes,
    *,
    languages: Sequence[str] | None = None,
    text_layer: str = "auto",
    pages: str | None = None,
    password: str | None = None,
    layout_model: str | Path | None = None,
    page_timeout_s: float = 300.0,
    threads: int = 0,
) -> Document:
    """Parse one document and wait for all of it.

    Args:
        source: A path or URL of a PDF or image, or the bytes of one.
        languages: Languages to read, as in ``("ko", "en")``; None detects the script of each page.
        text_layer: ``auto``, ``always`` or ``never`` take the text that a PDF carries.
        pages: Page ranges such as ``"1,3-5,8-"``; None for all.
        password: Of an encrypted PDF.
        layout_model: An ONNX layout model on disk to use instead of the embedded one.
        page_timeout_s: Time limit of a page, in seconds.
        threads: Threads that compute; 0 for one a core.

    Returns:
        The document. Pages that failed are in it, with their errors (``document.errors``).

    Raises:
        PagemillError: The document could not be opened at all; the class says why.
        UsageError: The source holds more than one document: use :func:`stream`.
    """

    async def collect() -> list[PageResult]:
        records = []
        options: dict[str, Any] = {"languages": languages, "text_layer": text_layer, "pages": pages}
        options |= {"password": password, "layout_model": layout_model}
        options |= {"page_timeout_s": page_timeout_s, "threads": threads}
        async with aclosing(stream(source, **options)) as results:
            async for record in results:
                records.append(record)
        return sorted(records, key=lambda record: record.page_idx)

    records = _run(collect())
    if not records:
        raise InputError("the source holds no page", remedy="Check the page ranges.")
    if len({record.doc_id for record in records}) > 1:
        raise UsageError("the source holds more than one document", remedy="Use pagemill.stream for many documents.")
    if records[0].page_number is None and records[0].status is Status.FAILED:
        error = records[0].errors[0]
        raise _exception_of(error.category)(error.message, remedy=error.remedy)
    return Document.from_pages(records)


async def stream(
    source: str | Path | bytes | Sequence[str | Path | bytes],
    *,
    languages: Sequence[str] | None = None,
    text_layer: str = "auto",
    pages: str | None = None,
    password: str | None = None,
    recursive: bool = False,
    layout_model: str | Path | None = None,
    page_timeout_s: float = 300.0,
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
        layout_model: As in :func:`parse`.
        page_timeout_s: As in :func:`parse`.
        threads: As in :func:`parse`.

    Yields:
        One record a page; a page or document that failed has ``status`` failed and says why in ``errors``.
    """
    inputs = [source] if isinstance(source, (str, bytes)) or not hasattr(source, "__iter__") else list(source)
    settings = ParseSettings(
        languages=tuple(languages) if languages else None,
        text_layer=_text_layer_mode(text_layer),
        crops=False,
        page_timeout_s=page_timeout_s,
    )
    options = SourceOptions(pages=PageRanges.parse(pages) if pages else None, password=password, recursive=recursive)
    async with (
        Pipeline(settings, RuntimeSettings(threads=threads), layout_model=layout_model) as pipeline,
        aclosing(pipeline.stream(inputs, options)) as results,
    ):
        async for page in results:
            yield page.record


def _text_layer_mode(value: str) -> TextLayerMode:
    try:
        return TextLayerMode(value)
    except ValueError:
        modes = ", ".join(TextLayerMode)
        raise UsageError(f"text_layer is {value!r}", remedy=f"Choose one of {modes}.") from None


def _exception_of(category: str) -> type[PagemillError]:
    """The most general class of the hierarchy with this category."""
    queue: list[type[PagemillError]] = [PagemillError]
    for candidate in queue:
        if candidate.category == category:
            return candidate
        queue.extend(candidate.__subclasses__())
    return PagemillError


def _run(coroutine: Coroutine[Any, Any, list[PageResult]]) -> list[PageResult]:
    """Run to the end, also from inside a running event loop (a notebook), where a thread of its own is needed."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    outcome: list[list[PageResult]] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(coroutine))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="pagemill.parse")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
