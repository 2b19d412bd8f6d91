"""The Python API: one document, many, or a stream of pages. All sit on the runtime of the command line."""

from __future__ import annotations

import asyncio
import glob
import inspect
import io
import logging
import os
import tempfile
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence, Set
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar, Unpack, cast

import msgspec

from pagemill import tracing
from pagemill.app.options import DirectoryOptions, ImageSources, ParseOptions
from pagemill.blocking import LoopThread
from pagemill.config.options import build, options_of
from pagemill.config.python_words import in_python
from pagemill.document.page import PageResult, Status
from pagemill.errors import InputError, PagemillError, TooLargeError, UsageError
from pagemill.export.document import Document
from pagemill.extraction.result import Extraction
from pagemill.imaging.limits import DecodeLimits
from pagemill.keywords import ParseKeywords, StreamKeywords
from pagemill.parsing.page import ParsedPage
from pagemill.profiling.telemetry import exported
from pagemill.runtime.pipeline import Pipeline
from pagemill.runtime.services import Services
from pagemill.sources.download import fetch_missing
from pagemill.sources.items import is_url
from pagemill.sources.locate import expand

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

Source: TypeAlias = "str | PathLike[str] | bytes | BinaryIO | Image.Image | NDArray[np.uint8]"
"""A path, a URL, the bytes of a file, an open binary file, a PIL image, or a NumPy array of a gray or RGB image."""

log = logging.getLogger(__name__)


def _documented(keywords: type) -> Callable[[F], F]:
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

    def document(function: F) -> F:
        source = next(iter(inspect.signature(function).parameters.values()))
        types = {key: each.__forward_arg__ for key, each in keywords.__annotations__.items() if key in declared}
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
def parse(source: Source, **options: Unpack[ParseKeywords]) -> Document:
    """Parse one document and wait for all of it.

    Args:
        source: A path or URL of a PDF, an image or another document, its bytes, an open binary file; a PIL image, or a
            NumPy array of uint8 with a gray or an RGB image.
        **options: See below.

    Returns:
        The document. Pages that failed are in it, with their errors (``document.errors``).

    Raises:
        PagemillError: The document could not be opened at all; its class gives the cause.
        UsageError: An option is not valid, or the source contains more than one document: use :func:`parse_many`.
    """
    return _run(_one_document("parse", source, options))


@_documented(ParseKeywords)
async def aparse(source: Source, **options: Unpack[ParseKeywords]) -> Document:
    """:func:`parse` for a running event loop, which it does not block.

    Args:
        source: As of :func:`parse`.
        **options: See below.

    Returns:
        The document.

    Raises:
        PagemillError: As of :func:`parse`.
    """
    return await _one_document("aparse", source, options)


@_documented(ParseKeywords)
async def aparse_many(sources: Source | Sequence[Source], **options: Unpack[ParseKeywords]) -> AsyncGenerator[Document]:
    """:func:`parse_many` for a running event loop.

    Args:
        sources: As of :func:`parse_many`.
        **options: See below.

    Yields:
        Each document when its last page is finished.
    """
    async with aclosing(_documents("aparse_many", sources, options)) as documents:
        async for document in documents:
            yield document


@_documented(ParseKeywords)
def parse_many(sources: Source | Sequence[Source], **options: Unpack[ParseKeywords]) -> Generator[Document]:
    """Parse many documents at once, and yield each when its last page is finished, in no particular order.

    Memory holds the documents that are in progress. Nothing is kept on disk: for a run that can be resumed, use
    ``pagemill parse``.

    Args:
        sources: One input or several: files, folders, globs, datasets, URLs, bytes, images.
        **options: See below.

    Yields:
        One document for each file. One that cannot be opened is a document of one failed page, with the reason
        in ``errors``; so no document stops the others.
    """
    # The caller may have an event loop already, as in a notebook.
    with LoopThread("pagemill.parse_many") as thread:
        yield from thread.each(_documents("parse_many", sources, options))


@_documented(StreamKeywords)
async def stream(source: Source | Sequence[Source], **options: Unpack[StreamKeywords]) -> AsyncGenerator[PageResult]:
    """Parse any number of documents and yield each page as it finishes, in no particular order.

    Args:
        source: One input or several: files, folders, globs, datasets, URLs, bytes, images.
        **options: See below.

    Yields:
        One record per page; a page or document that failed has ``status`` failed and the reason in ``errors``.
    """
    chosen = _options("stream", options, StreamKeywords)
    chosen = replace(chosen, settings=replace(chosen.settings, crops=False))  # a record alone has no use for crops
    async with aclosing(_parsed(_inputs(source), chosen)) as results:
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
        source: A source as for :func:`stream`; or a run directory, which is not parsed again.
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
            # A child process reads it, and it is read again for images of pages.
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
    """The settings from keyword arguments.

    Raises:
        TypeError: There is no such keyword.
        UsageError: A value is not valid.
    """
    for key in given:
        if key not in keywords.__annotations__:
            raise TypeError(f"{function}() got an unexpected keyword argument {key!r}")
    with _python_words():
        return build(ParseOptions, given)


async def aextract(
    source: str | Path | bytes | Sequence[str | Path],
    schema: Any,
    *,
    images: bool = True,
    **options: Unpack[StreamKeywords],
) -> list[Extraction]:
    """:func:`extract` for a running event loop, which it does not block."""
    return await asyncio.to_thread(extract, source, schema, images=images, **options)


async def _one_document(function: str, source: Source, options: Mapping[str, Any]) -> Document:
    """The document of a source.

    Raises:
        PagemillError: It does not open.
        UsageError: There are several, or an option is not valid.
    """
    chosen = _options(function, options, ParseKeywords)
    (given,) = _inputs([source])
    _require_one(given)
    parsed: list[ParsedPage] = []
    async with aclosing(_parsed([given], chosen)) as pages:
        async for page in pages:
            if parsed and page.document.doc_id != parsed[0].document.doc_id:
                raise _several("the source contains more than one document")
            parsed.append(page)
    if not parsed:
        raise InputError("the source has no page", remedy="Check that it is not empty.")
    # The source did not open: what is data among many pages is an error for the one document.
    if parsed[0].record.page_number is None:
        raise parsed[0].record.errors[0].exception()
    return _document(parsed)


def _require_one(given: str | Path | bytes) -> None:
    """Refuse a folder, and a pattern with several matches, before any page is read.

    Raises:
        UsageError: It is one.
    """
    if isinstance(given, bytes) or is_url(str(given)):
        return
    path = Path(given).expanduser()
    with suppress(OSError, ValueError):  # of a name that cannot be looked up, which opening it reports
        if path.is_dir():
            raise _several(f"{str(given)!r} is a folder")
        if (
            glob.has_magic(str(given))
            and not path.exists()
            and len(list(islice(expand([given], recursive=False), 2))) > 1
        ):
            raise _several(f"{str(given)!r} matches more than one file")


def _several(message: str) -> UsageError:
    return UsageError(message, remedy="Use pagemill.parse_many or pagemill.stream for many documents.")


async def _documents(
    function: str, sources: Source | Sequence[Source], options: Mapping[str, Any]
) -> AsyncGenerator[Document]:
    """Each document when it is complete; at the end those whose number of pages is not known."""
    chosen = _options(function, options, ParseKeywords)
    started: defaultdict[str, list[ParsedPage]] = defaultdict(list)
    async with aclosing(_parsed(_inputs(sources), chosen)) as pages:
        async for page in pages:
            found = started[page.document.doc_id]
            found.append(page)
            # A document that does not open has one record and no number of pages.
            if page.record.page_number is None or len(found) == page.document.page_count:
                yield _document(started.pop(page.document.doc_id))
    for found in started.values():
        yield _document(found)


def _document(parsed: Sequence[ParsedPage]) -> Document:
    records = sorted((page.record for page in parsed), key=lambda record: record.page_idx)
    return Document.from_pages(records, dict(crop for page in parsed for crop in page.crops), parsed[0].document.info)


def _inputs(source: Source | Sequence[Source]) -> list[str | Path | bytes]:
    """The inputs of the runtime for one or several sources.

    Raises:
        UsageError: A source has another type.
        TooLargeError: A file has too many bytes.
    """
    alone = (str, bytes, bytearray, memoryview)
    if isinstance(source, (Sequence, Set, Iterator)) and not isinstance(source, alone) and not hasattr(source, "read"):
        return [_input(each) for each in source]
    return [_input(source)]


def _input(source: Any) -> str | Path | bytes:
    if isinstance(source, (str, Path, bytes)):
        return source
    if isinstance(source, PathLike):
        return Path(source)
    if isinstance(source, (bytearray, memoryview)):
        return bytes(source)
    # By what they can do, not by class: NumPy and Pillow are imported only where one of their objects comes.
    if hasattr(source, "__array_interface__") or (hasattr(source, "getbbox") and hasattr(source, "save")):
        return _png(source)
    if (path := _path_of(source)) is not None:
        return path
    if hasattr(source, "read"):
        most = DecodeLimits().max_stored_bytes
        data = source.read(most + 1)
        if isinstance(data, str):
            raise UsageError("the file is open as text", remedy='Open it with open(path, "rb").')
        if len(data) > most:
            raise TooLargeError(f"the file has more than {most:,} bytes", remedy="Give its path.")
        return bytes(data)
    raise UsageError(
        f"a source of type {type(source).__name__} cannot be read",
        remedy="Give a path, a URL, bytes, a binary file, a PIL image or a NumPy array.",
    )


def _path_of(file: Any) -> Path | None:
    """The path of a file that is open at its start: the suffix gives the format of text."""
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO) or not isinstance(raw.name, str):
        return None
    try:
        is_it = file.tell() == 0 and os.path.samestat(os.fstat(raw.fileno()), Path(raw.name).stat())
    except OSError:  # a pipe, or a file that has gone from there
        return None
    return Path(raw.name) if is_it else None


def _png(image: Any) -> bytes:
    """An image in memory as a file, without loss."""
    from PIL import Image

    if not isinstance(image, Image.Image):
        try:
            image = Image.fromarray(image)
        except (TypeError, ValueError) as error:
            remedy = "Give an array of uint8 of shape (height, width) or (height, width, 3)."
            raise UsageError(f"an array cannot be read as an image: {error}", remedy=remedy) from error
    if image.mode in ("F", "I"):  # their white is at 1, 255 or anywhere
        remedy = "Give an array of uint8 of shape (height, width) or (height, width, 3)."
        raise UsageError(f"the value range of an image of mode {image.mode} is unknown", remedy=remedy)
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        image = image.convert("RGB")
    stream = io.BytesIO()
    dpi = image.info.get("dpi")
    image.save(stream, "PNG", compress_level=1, **({"dpi": dpi} if dpi else {}))
    return stream.getvalue()


@contextmanager
def _python_words() -> Iterator[None]:
    """Errors that name options of the command line name keyword arguments instead."""
    try:
        yield
    except PagemillError as error:
        error.message = in_python(error.message, ParseOptions)
        error.remedy = error.remedy and in_python(error.remedy, ParseOptions)
        error.args = (error.message,)
        raise


def _in_python_words(page: ParsedPage) -> ParsedPage:
    """A page whose errors are worded by :func:`_python_words`."""
    page.record.errors = [
        msgspec.structs.replace(
            error,
            message=in_python(error.message, ParseOptions),
            remedy=error.remedy and in_python(error.remedy, ParseOptions),
        )
        for error in page.record.errors
    ]
    return page


async def _parsed(inputs: Sequence[str | Path | bytes], options: ParseOptions) -> AsyncGenerator[ParsedPage]:
    """The stream of pages on a pipeline of its own."""
    with _python_words(), exported(configure=False):
        await asyncio.to_thread(fetch_missing, inputs, options.source, log.info)
        async with Pipeline(Services(options.settings, options.runtime, options.layout)) as pipeline:
            await pipeline.prepare()
            async with aclosing(pipeline.stream(inputs, options.source, max_attempts=options.max_attempts)) as pages:
                async for page in pages:
                    if isinstance(page, ParsedPage):  # not those skipped as duplicates
                        yield _in_python_words(page)
                        tracing.ended(page.record.page_id, failed=page.record.status is Status.FAILED)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end, also from inside a running event loop (a notebook)."""
    with LoopThread("pagemill.parse") as thread:
        return thread.call(coroutine)
