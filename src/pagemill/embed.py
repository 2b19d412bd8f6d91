"""Vectors of a run: its records, the sources of its pages and a file of queries, through an engine, into files."""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import numpy as np

from pagemill.config.settings import RuntimeSettings
from pagemill.embedding.base import DEFAULT_ENGINE, CorpusEngine, EmbeddingInput, Modality, Role, normalised
from pagemill.embedding.contents import contents, query
from pagemill.embedding.images import within_budget
from pagemill.embedding.outcome import EmbedOutcome, PartOutcome, name_of
from pagemill.embedding.vectors import FOLDER, Part, Row, VectorPaths, VectorsInfo
from pagemill.embedding.writing import VectorWriter
from pagemill.errors import (
    EngineError,
    InputError,
    MissingDependencyError,
    NetworkError,
    OutputError,
    PagemillError,
    UsageError,
)
from pagemill.imaging.decode import decode_image
from pagemill.page_images import FoundPage, PageImages, WantedPage
from pagemill.runtime import engines
from pagemill.runtime.decoding import DecodingService
from pagemill.runtime.flight import FlightControl
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.threads import ComputeThreads
from pagemill.sources.stream import on_thread
from pagemill.store import paths
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pagemill.document.page import ImageCrop, PageResult
    from pagemill.embedding.base import EmbeddingEngine, EngineSettings
    from pagemill.embedding.contents import Content
    from pagemill.embedding.vectors import StoredType
    from pagemill.errors import DamagedRunError
    from pagemill.imaging.types import Pixels
    from pagemill.sources import SourceOptions

    Load = Callable[[], Awaitable[EmbeddingInput]]
    One = Callable[[Row, Load], Awaitable[None]]

T = TypeVar("T")

LOCK = paths.EMBEDDINGS_LOCK
_NEEDS = {
    Part.TEXT: {Modality.TEXT},
    Part.IMAGES: {Modality.IMAGE},
    Part.REGIONS: {Modality.TEXT},
    Part.QUERIES: {Modality.TEXT},
}
"""An engine makes a part when it takes one of these."""
_FATAL = (NetworkError, OutputError, UsageError, MissingDependencyError)
"""Errors that the next item would have, too."""
_STALE = 0.1
"""Share of the texts that may come or go before the statistics of a corpus are made anew."""
_WAITING_BATCHES = 3
"""Batches of inputs a lane that are held in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedOptions:
    """What is embedded, and how it is kept."""

    parts: frozenset[Part] | None = None
    """None for all that the engine can make, without queries."""
    queries: tuple[tuple[str, str], ...] = ()
    """Ids and texts (:func:`pagemill.embedding.queries.read_queries`), for :attr:`Part.QUERIES`."""
    dtype: StoredType = "float32"
    dimension: int | None = None
    """Keep only so many components; None for all."""
    fresh: bool = False
    """Forget the vectors that are there."""
    sources: SourceOptions | None = None
    """What decoding the page images needs: password, image column."""
    inputs: tuple[str, ...] = ()
    """Where the sources of the pages lie now; empty for where they lay."""


class Progress(Protocol):
    """Told how it goes."""

    def part(self, part: Part, total: int) -> None:
        """A part begins; ``total`` pages, or queries, are looked at."""
        ...

    def advance(self) -> None:
        """One of them is done."""
        ...


def open_engine(name: str | None, settings: EngineSettings) -> EmbeddingEngine:
    """Load an engine by name; the embedded one by default.

    Raises:
        UsageError: There is no such engine, or it does not go with the settings.
        PagemillError: It cannot be loaded; the class says why.
    """
    create = engines.load(engines.EMBEDDING_ENGINES, name or DEFAULT_ENGINE)
    engine: EmbeddingEngine = create(settings)
    return engine


async def embed(
    out: Path, engine: EmbeddingEngine, options: EmbedOptions, progress: Progress | None = None
) -> EmbedOutcome:
    """Bring the vectors of a run directory up to date.

    What ends it early, a failure of the server, a signal or a death, leaves the earlier files as they were, and the
    vectors made until then are kept for the next time.

    Args:
        out: The run directory; a run may still go on there.
        engine: Not closed here.
        options: What to embed.
        progress: Told as it goes.

    Raises:
        UsageError: The engine cannot make a part that is asked for.
        LockedError: Another process does the same.
        DifferentRunError: There are vectors of another engine or of other options.
        OutputError: ``out`` holds no run, or cannot be written; NoSpaceError when the disk is full.
        NetworkError: No server of the engine answers any more.
    """
    parts = _parts(engine, options)
    with ExitStack() as stack:
        reader = stack.enter_context(RunReader.open(out))
        stack.callback(RunLock(out / LOCK).release)
        async with AsyncExitStack() as services:
            run = _Embedding(out, reader, engine, options, progress, services)
            for part in parts:
                await run.make(part)
        run.outcome.cut_texts = engine.cut_texts
        return run.outcome


def _parts(engine: EmbeddingEngine, options: EmbedOptions) -> list[Part]:
    possible = [part for part in Part if _NEEDS[part] & engine.modalities]
    wanted = options.parts
    if wanted is None:
        wanted = frozenset(possible) - {Part.QUERIES} | ({Part.QUERIES} if options.queries else set())
    if impossible := [part.choice for part in Part if part in wanted and part not in possible]:
        raise UsageError(
            f"the engine {engine.name!r} cannot embed {' and '.join(impossible)}",
            remedy="Leave that out of --what, or choose another --engine.",
        )
    return [part for part in (Part.TEXT, Part.REGIONS, Part.IMAGES, Part.QUERIES) if part in wanted]


class _Embedding:
    """One go over a run."""

    def __init__(
        self,
        out: Path,
        reader: RunReader,
        engine: EmbeddingEngine,
        options: EmbedOptions,
        progress: Progress | None,
        services: AsyncExitStack,
    ) -> None:
        self.outcome = EmbedOutcome()
        self._out = out
        self._reader = reader
        self._engine = engine
        self._options = options
        self._progress = progress
        self._services = services
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="pagemill.vectors")
        services.callback(self._disk.shutdown)
        self._threads = ComputeThreads(engine.concurrency, name="pagemill.embed")
        services.push_async_callback(self._threads.close)
        self._batcher: MicroBatcher[EmbeddingInput, NDArray[Any]] = MicroBatcher(
            self._call,
            name=f"the embedding engine {engine.name!r}",
            threads=self._threads,
            max_batch=engine.max_batch,
            concurrency=engine.concurrency,
            size=_size,
            check=self._check,
        )
        services.push_async_callback(self._batcher.close)
        self._fitted = False
        self._room = asyncio.Semaphore(_WAITING_BATCHES * engine.max_batch * engine.concurrency)

    async def make(self, part: Part) -> None:
        """Bring one part up to date."""
        outcome = self.outcome.parts.setdefault(part, PartOutcome())
        if part is Part.QUERIES:
            await self._fit()
        vectors, info = VectorPaths(self._out / FOLDER, part), self._info(part)
        writer = await self._on_disk(lambda: VectorWriter(vectors, info, fresh=self._options.fresh))
        try:
            rows = await self._embed_missing(part, writer)
            outcome.gone = await self._on_disk(lambda: writer.publish(rows))
            outcome.rows = len(rows)
        finally:
            await self._on_disk(writer.close)
        if part is Part.TEXT:
            await self._fit()

    async def _embed_missing(self, part: Part, writer: VectorWriter) -> list[Row]:
        """Embed what has no vector yet. Gives all that has one in the end, in the order of the input."""
        rows: list[Row] = []
        failed: set[Row] = set()

        async def one(row: Row, load: Load) -> None:
            try:
                vector = await self._batcher.submit(await load())
                await self._on_disk(lambda: writer.append([row], vector[None]))
            except _FATAL:
                raise
            except PagemillError as error:
                failed.add(row)
                self.outcome.add(part, name_of(row), error)
            else:
                self.outcome.parts[part].embedded += 1

        try:
            async with asyncio.TaskGroup() as tasks:
                if part is Part.IMAGES:
                    await self._images(writer, rows, one, tasks)
                else:
                    async for content in self._contents(part):
                        rows.append(content.row)
                        if writer.has(content.row):
                            continue
                        await self._room.acquire()
                        task = tasks.create_task(one(content.row, partial(self._load, part, content)))
                        task.add_done_callback(lambda _: self._room.release())
        except BaseExceptionGroup as group:  # of tasks: the first says why
            raise _first_of(group) from group
        return [row for row in rows if row not in failed]

    async def _contents(self, part: Part) -> AsyncIterator[Content]:
        if part is Part.QUERIES:
            self._begin(part, len(self._options.queries))
            statistics = self._engine.statistics if isinstance(self._engine, CorpusEngine) else ""
            for query_id, text in self._options.queries:
                yield query(query_id, text, statistics)
                self._advance()
            return
        async for page in self._pages(part):
            for content in contents(page, part, images=Modality.IMAGE in self._engine.modalities):
                yield content

    async def _pages(self, part: Part) -> AsyncIterator[PageResult]:
        counts = await asyncio.to_thread(self._reader.counts)
        self._begin(part, counts[PageState.DONE] + counts[PageState.FAILED])

        def damaged(error: DamagedRunError) -> None:
            self.outcome.add(part, "a page", error)

        async with aclosing(on_thread(self._reader.pages(on_damage=damaged))) as pages:
            async for page in pages:
                yield page
                self._advance()

    async def _images(self, writer: VectorWriter, rows: list[Row], one: One, tasks: asyncio.TaskGroup) -> None:
        missing: dict[str, tuple[Row, WantedPage]] = {}
        async for page in self._pages(Part.IMAGES):
            for content in contents(page, Part.IMAGES, images=True):
                rows.append(content.row)
                if not writer.has(content.row):
                    missing[page.page_id] = content.row, WantedPage.of(page)
        if not missing:
            return
        runtime = RuntimeSettings().resolved()
        decoding = await self._services.enter_async_context(DecodingService(workers=runtime.decoders))
        flight = FlightControl(max_pages=runtime.pages_in_flight, max_bytes=runtime.bytes_in_flight)
        images = PageImages(
            self._reader, decoding, flight, options=self._options.sources, inputs=self._options.inputs or None
        )
        self._begin(Part.IMAGES, len(missing))
        engine = self._engine
        room = asyncio.Semaphore(engine.max_batch * engine.concurrency + runtime.pages_in_flight)

        async def page_image(row: Row, found: FoundPage) -> None:
            async def load() -> EmbeddingInput:
                try:
                    whole = await images.pixels(found)
                    pixels = await asyncio.to_thread(within_budget, whole, engine.image_budget)
                finally:
                    found.ticket.leave()
                return EmbeddingInput(role=Role.IMAGE, image=pixels)

            try:
                await one(row, load)
            finally:
                room.release()
                self._advance()

        async with aclosing(images.find([wanted for _, wanted in missing.values()])) as pages:
            async for found in pages:
                if isinstance(found, FoundPage):
                    row, _ = missing[found.wanted.page_id]
                    await room.acquire()
                    tasks.create_task(page_image(row, found))
                else:
                    wanted, error = found
                    row, _ = missing[wanted.page_id]
                    await one(row, _raising(error))
                    self._advance()

    async def _load(self, part: Part, content: Content) -> EmbeddingInput:
        if part is Part.QUERIES:
            return EmbeddingInput(role=Role.QUERY, text=content.text)
        if content.crop is None:
            return EmbeddingInput(role=Role.PASSAGE, text=content.text)
        crop = content.crop
        pixels = await asyncio.to_thread(self._picture, crop)
        both = Modality.IMAGE_WITH_TEXT in self._engine.modalities
        return EmbeddingInput(role=Role.IMAGE, image=pixels, text=content.text if both else "")

    def _picture(self, crop: ImageCrop) -> Pixels:
        name = crop.path
        try:
            data = paths.crop_file(self._out, name).read_bytes()
        except (OSError, ValueError) as error:
            raise InputError(f"{name} cannot be read: {error}", remedy=_MEND) from error
        if crop.sha256 and hashlib.sha256(data).hexdigest() != crop.sha256:
            raise InputError(f"{name} is not the picture that its record names", remedy=_MEND)
        return within_budget(decode_image(data, name=name).pixels, self._engine.image_budget)

    async def _fit(self) -> None:
        """Make the statistics of an engine that has some, where they are far from the corpus of now."""
        engine = self._engine
        if not isinstance(engine, CorpusEngine) or self._fitted:
            return
        self._fitted = True
        if self._options.fresh or await asyncio.to_thread(lambda: engine.changed(self._texts())) > _STALE:
            await asyncio.to_thread(engine.fit, self._texts())

    def _texts(self) -> Iterator[str]:
        """Of all pages; a record that is damaged was told of when its page was to be embedded."""
        for page in self._reader.pages(on_damage=lambda _: None):
            for content in contents(page, Part.TEXT, images=False):
                yield content.text

    def _info(self, part: Part) -> VectorsInfo:
        identity = self._engine.identity
        dimension = self._options.dimension
        if dimension is not None and dimension > identity.dimension:
            raise UsageError(
                f"the engine {self._engine.name!r} makes vectors of {identity.dimension:,} components,"
                f" not of {dimension:,}",
                remedy="Ask for fewer with --dimension.",
            )
        if dimension is not None:
            identity = msgspec.structs.replace(identity, dimension=dimension)
        images = part is Part.REGIONS and Modality.IMAGE in self._engine.modalities
        return VectorsInfo(part=part, identity=identity, dtype=self._options.dtype, images=images)

    def _call(self, inputs: Sequence[EmbeddingInput]) -> list[NDArray[Any]]:
        """The rows of a batch; what is wrong with them is found out one by one (:meth:`_check`)."""
        return list(np.asarray(self._engine.embed(inputs)))

    def _check(self, _: EmbeddingInput, vector: NDArray[Any]) -> NDArray[Any]:
        """A vector as it is kept: finite, cut, of length 1."""
        name = f"the embedding engine {self._engine.name!r}"
        wanted = (self._engine.identity.dimension,)
        if vector.shape != wanted:
            raise EngineError(f"{name} gave a vector of shape {vector.shape}, not {wanted}")
        try:
            row: NDArray[Any] = normalised(vector[None], self._options.dimension)[0]
        except ValueError as error:
            raise EngineError(f"{name} gave what is no vector: {error}") from error
        return row

    async def _on_disk(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, work)

    def _begin(self, part: Part, total: int) -> None:
        if self._progress:
            self._progress.part(part, total)

    def _advance(self) -> None:
        if self._progress:
            self._progress.advance()


_MEND = "Mend the run: pagemill verify --repair, then pagemill parse once more."


def _first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first


def _raising(error: PagemillError) -> Load:
    async def load() -> EmbeddingInput:
        raise error

    return load


def _size(each: EmbeddingInput) -> float:
    """Inputs of like size travel together."""
    return len(each.text) + (each.image.size if each.image is not None else 0)
