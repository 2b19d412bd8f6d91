"""Embeds a run: its records, its page images and a file of queries, through an engine, into vector files."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.app.options import ImageSources
from pagemill.app.page_images import FoundPage, PageImages, WantedPage
from pagemill.blocking import to_the_end
from pagemill.config.chunking import ChunkSettings
from pagemill.config.options import Settings, option
from pagemill.document.page import ImageCrop, PageResult
from pagemill.embedding.base import (
    CorpusEngine,
    EmbeddingEngine,
    EmbeddingInput,
    Modality,
    Role,
    normalised,
)
from pagemill.embedding.contents import Content, chunk_content, contents, document_digest, query, text_digests
from pagemill.embedding.images import within_budget
from pagemill.embedding.outcome import EmbedOutcome, PartOutcome
from pagemill.embedding.vectors import FOLDER, Part, StoredType, VectorFile, VectorPaths, VectorRow, VectorsInfo
from pagemill.embedding.writing import VectorWriter, delete_vectors
from pagemill.errors import (
    FATAL,
    DamagedRunError,
    DifferentRunError,
    EngineError,
    InputError,
    MissingInputError,
    OutputError,
    PagemillError,
    UsageError,
    first_of,
)
from pagemill.export.chunks import cut
from pagemill.export.token_count import token_counter
from pagemill.imaging.decode import decode_image
from pagemill.imaging.types import Pixels
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.threads import ComputeThreads
from pagemill.sources.stream import on_thread
from pagemill.store import paths
from pagemill.store.lock import RunLock
from pagemill.store.reading import RunReader
from pagemill.store.rows import PageState

Make = Callable[[], Awaitable[EmbeddingInput]]
Inputs = AsyncGenerator[tuple[VectorRow, Make]]
"""Content without a vector, and the function that makes its engine input."""

_WHAT = ("text", "images", "regions", "chunks")
_CORPUS = (Part.TEXT, Part.REGIONS, Part.IMAGES)
_STALE = 0.1
"""Share of changed texts above which the corpus statistics are recomputed."""
_REPAIR = "Repair the run: pagemill verify --repair, then repeat pagemill parse."
_WAITING_BATCHES = 3
"""Batches per lane that are held in memory."""


def _named_parts(names: Sequence[str]) -> tuple[Part, ...]:
    if not names or not all(isinstance(name, Part) or name in _WHAT for name in names):
        raise UsageError(f"--what is {','.join(names)}", remedy=f"Choose from {', '.join(_WHAT)}.")
    return tuple(part for part in Part if part in names or part.choice in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedOptions(Settings):
    """What to embed, and how to store it."""

    parts: tuple[Part, ...] | None = option(
        "--what",
        metavar="LIST",
        comma_separated=True,
        parse=_named_parts,
        results=False,
        help=f"Any of {','.join(_WHAT)}.",
        shown_default="all that the engine can embed, without chunks",
    )
    """None: everything that the engine supports, except queries and chunks."""
    chunks: ChunkSettings = ChunkSettings()
    queries: tuple[tuple[str, str], ...] = ()
    """Ids and texts (:func:`pagemill.retrieval.query_sets.read_query_texts`), for :attr:`Part.QUERIES`."""
    dtype: StoredType = option(default=StoredType.FLOAT32, results=True, help="Data type of the files.")
    dimension: int | None = None
    """Number of components to keep; None for all."""
    fresh: bool = option(default=False, results=False, help="Delete the existing vectors and embed everything again.")
    sources: ImageSources = ImageSources()
    """Where the parsed files are now."""


async def embed(
    out: Path, engine: EmbeddingEngine, options: EmbedOptions, report: Callable[[int, int, str], object]
) -> EmbedOutcome:
    """Bring the vectors of a run directory up to date.

    If it stops early (a failure of the server, a signal, a crash), the earlier files are unchanged, and the vectors
    made so far are kept for the next time.

    Args:
        out: The run directory; the run may still be in progress.
        engine: Not closed here.
        options: What to embed and how.
        report: Called with the number of pages or queries that are done, that of all, and what they are.

    Raises:
        UsageError: The engine cannot make a requested part.
        LockedError: Another process does the same.
        DifferentRunError: There are vectors of another engine or of other options.
        OutputError: ``out`` contains no run, or cannot be written; NoSpaceError when the disk is full.
        NetworkError: All servers of the engine have stopped answering.
    """
    parts = _parts(engine, options)
    # A lock of its own: vectors can be made while `pagemill describe` or a parse holds the run's.
    with RunReader.open(out) as reader, RunLock(out / paths.EMBEDDINGS_LOCK):
        async with AsyncExitStack() as services:
            run = _Embedding(out, reader, engine, options, report, services)
            for part in parts:
                await run.make(part)
        run.outcome.cut_texts = engine.cut_texts
        return run.outcome


def _parts(engine: EmbeddingEngine, options: EmbedOptions) -> list[Part]:
    order = (Part.TEXT, Part.REGIONS, Part.CHUNKS, Part.IMAGES, Part.QUERIES)
    needed = dict.fromkeys(order, Modality.TEXT) | {Part.IMAGES: Modality.IMAGE}
    possible = [part for part in order if needed[part] in engine.modalities]
    wanted = options.parts
    if wanted is None:
        # Chunks repeat the texts of the pages, so nobody should pay for them unasked.
        left_out = {Part.CHUNKS, *(() if options.queries else (Part.QUERIES,))}
        wanted = tuple(part for part in possible if part not in left_out)
    if impossible := [part.choice for part in wanted if part not in possible]:
        raise UsageError(
            f"the engine {engine.name!r} cannot embed {' and '.join(impossible)}",
            remedy="Remove it from --what, or choose another --engine.",
        )
    # Options that change nothing are mistakes: the user expects chunks of that size.
    if options.chunks != ChunkSettings() and Part.CHUNKS not in wanted:
        raise UsageError("--max-tokens, --tokenizer and --overlap are for chunks", remedy="Add chunks to --what.")
    if options.sources.inputs and Part.IMAGES not in wanted:
        raise UsageError(
            f"--input is for page images, and the engine {engine.name!r} embeds none of them here",
            remedy="Remove --input, or choose an engine and --what with images.",
        )
    return [part for part in order if part in wanted]


class _Embedding:
    """One invocation on a run."""

    def __init__(
        self,
        out: Path,
        reader: RunReader,
        engine: EmbeddingEngine,
        options: EmbedOptions,
        report: Callable[[int, int, str], object],
        services: AsyncExitStack,
    ) -> None:
        self.outcome = EmbedOutcome()
        self._out = out
        self._reader = reader
        self._engine = engine
        self._name = f"the embedding engine {engine.name!r}"
        self._options = options
        self._report = report
        self._services = services
        threads = ComputeThreads(engine.concurrency, name="pagemill.app.embed")
        services.push_async_callback(threads.close)
        self._batcher: MicroBatcher[EmbeddingInput, NDArray[Any]] = MicroBatcher(
            lambda inputs: list(np.asarray(engine.embed(inputs))),
            name=self._name,
            threads=threads,
            max_batch=engine.max_batch,
            concurrency=engine.concurrency,
            size=_size,
            check=self._checked,
        )
        services.push_async_callback(self._batcher.close)
        # Counted in inputs, not pages: a page may have a hundred regions.
        self._room = asyncio.Semaphore(_WAITING_BATCHES * engine.max_batch * engine.concurrency)
        self._fitted = False

    async def make(self, part: Part) -> None:
        """Bring one part up to date."""
        outcome = self.outcome.parts.setdefault(part, PartOutcome())
        vectors = VectorPaths(self._out / FOLDER, part)
        with VectorWriter(vectors, self._info(part), fresh=self._options.fresh) as writer:
            if part in (Part.TEXT, Part.QUERIES):  # now that the vectors there are known to come from this engine
                await self._fit(part)
            rows = await self._embed_missing(part, writer)
            outcome.gone = writer.publish(rows)
            outcome.rows = len(rows)

    def _info(self, part: Part) -> VectorsInfo:
        """The properties of all vectors of a part."""
        identity, dimension = self._engine.identity, self._options.dimension
        if dimension is not None:
            if dimension > identity.dimension:
                raise UsageError(
                    f"the engine {self._engine.name!r} makes vectors of {identity.dimension:,} components,"
                    f" not of {dimension:,}",
                    remedy="Request fewer with --dimension.",
                )
            # Vectors truncated by different numbers cannot be compared, so the number is part of their identity.
            identity = msgspec.structs.replace(identity, dimension=dimension)
        # Regions embedded by their text alone lie apart from those with an image: the file says which it holds.
        images = part is Part.REGIONS and Modality.IMAGE in self._engine.modalities
        return VectorsInfo(part=part, identity=identity, dtype=self._options.dtype, images=images)

    async def _embed_missing(self, part: Part, writer: VectorWriter) -> list[VectorRow]:
        """Embed content without a vector; return all rows with vectors, in input order."""
        rows: list[VectorRow] = []
        failed: set[VectorRow] = set()
        made: dict[VectorRow, NDArray[Any]] = {}
        """Vectors that are not written yet."""
        writing = asyncio.Lock()

        async def keep(row: VectorRow, make: Make) -> None:
            try:
                made[row] = await self._batcher.submit(await make())
                await asyncio.sleep(0)  # for the others of its batch: they are written in one transaction
                async with writing:
                    # Else another of its batch has written it.
                    if row in made:
                        await _written(writer, made)
            except FATAL:
                raise
            except PagemillError as error:
                failed.add(row)
                self.outcome.add(part, str(row.key), error)
            else:
                self.outcome.parts[part].embedded += 1
            finally:
                self._room.release()

        missing = self._missing_images if part is Part.IMAGES else self._missing_contents
        try:
            async with asyncio.TaskGroup() as tasks, aclosing(missing(part, writer, rows)) as inputs:
                async for row, make in inputs:
                    await self._room.acquire()
                    tasks.create_task(keep(row, make))
        except BaseExceptionGroup as group:  # of tasks
            raise first_of(group) from group
        return [row for row in rows if row not in failed]

    async def _missing_contents(self, part: Part, writer: VectorWriter, rows: list[VectorRow]) -> Inputs:
        async for content in self._contents(part):
            rows.append(content.row)
            if not writer.has(content.row):
                yield content.row, partial(self._input, part, content)

    async def _contents(self, part: Part) -> AsyncIterator[Content]:
        if part is Part.QUERIES:
            statistics = self._engine.statistics if isinstance(self._engine, CorpusEngine) else ""
            for done, (query_id, text) in enumerate(self._options.queries, 1):
                yield query(query_id, text, statistics)
                self._report(done, len(self._options.queries), part.plural)
            return
        if part is Part.CHUNKS:
            async for content in self._chunks():
                yield content
            return
        async for page in self._pages(part):
            for content in contents(page, part, images=Modality.IMAGE in self._engine.modalities):
                yield content

    async def _chunks(self) -> AsyncIterator[Content]:
        """The chunks of all documents."""
        counts = await asyncio.to_thread(self._reader.counts)
        settings = self._options.chunks
        count = token_counter(settings.tokenizer)
        read = 0

        # Counts pages where they are read, as a document's chunks come only after its last page.
        def counted(pages: Iterator[PageResult]) -> Iterator[PageResult]:
            nonlocal read
            for page in pages:
                read += 1
                yield page

        def made() -> Iterator[Content]:
            # Twice: the rows of the first chunks depend on the last pages, too. Damage is reported the second time.
            first = self._reader.documents(on_damage=lambda _: None)
            second = self._reader.documents(on_damage=lambda error: self.outcome.add(Part.CHUNKS, "a page", error))
            for (_, pages), (_, again) in zip(first, second, strict=True):
                document = document_digest(text_digests(pages))
                for chunk in cut(counted(again), count, settings.max_tokens, settings.overlap):
                    yield chunk_content(chunk, document)

        async with aclosing(on_thread(made())) as contents_made:
            async for content in contents_made:
                yield content
                self._report(read, counts[PageState.DONE] + counts[PageState.FAILED], Part.CHUNKS.plural)

    async def _pages(self, part: Part) -> AsyncIterator[PageResult]:
        counts = await asyncio.to_thread(self._reader.counts)
        done = itertools.count(1)

        def damaged(error: DamagedRunError) -> None:
            self.outcome.add(part, "a page", error)

        async with aclosing(on_thread(self._reader.pages(on_damage=damaged))) as pages:
            async for page in pages:
                yield page
                self._report(next(done), counts[PageState.DONE] + counts[PageState.FAILED], part.plural)

    async def _missing_images(self, part: Part, writer: VectorWriter, rows: list[VectorRow]) -> Inputs:
        missing: dict[str, VectorRow] = {}
        wanted: list[WantedPage] = []
        async for page in self._pages(part):
            for content in contents(page, part, images=True):
                rows.append(content.row)
                if not writer.has(content.row):
                    missing[page.page_id] = content.row
                    wanted.append(WantedPage.of(page))
        if not wanted:
            return
        images = await self._services.enter_async_context(PageImages.opened(self._reader, self._options.sources))
        async with aclosing(images.find(wanted)) as pages:
            done = itertools.count(1)
            async for found in pages:
                yield missing[found.wanted.page_id], partial(self._page_image, images, found)
                self._report(next(done), len(wanted), part.plural)

    async def _input(self, part: Part, content: Content) -> EmbeddingInput:
        """The input of a text, a query or a region."""
        if part is Part.QUERIES or content.crop is None:
            return EmbeddingInput(role=Role.QUERY if part is Part.QUERIES else Role.PASSAGE, text=content.text)
        pixels = await asyncio.to_thread(self._crop, content.crop)
        # An engine that takes one of both gets the image: its text has a vector of its own.
        both = Modality.IMAGE_WITH_TEXT in self._engine.modalities
        return EmbeddingInput(role=Role.IMAGE, image=pixels, text=content.text if both else "")

    async def _page_image(self, images: PageImages, found: FoundPage) -> EmbeddingInput:
        """The input of a page's image. Its pixels are released once it is shrunk to the size that the engine uses."""
        with found:
            whole = await images.pixels(found)
            image = await asyncio.to_thread(within_budget, whole, self._engine.image_budget)
            return EmbeddingInput(role=Role.IMAGE, image=image)

    def _crop(self, crop: ImageCrop) -> Pixels:
        try:
            data = self._reader.crop(crop)
        except DamagedRunError as error:  # of this region alone
            raise InputError(error.message, remedy=_REPAIR) from error
        return within_budget(decode_image(data, name=crop.path).pixels, self._engine.image_budget)

    def _checked(self, _: EmbeddingInput, vector: NDArray[Any]) -> NDArray[Any]:
        """A vector as it is stored: finite, truncated, of length 1."""
        wanted = (self._engine.identity.dimension,)
        if vector.shape != wanted:
            raise EngineError(f"{self._name} returned a vector of shape {vector.shape}, not {wanted}")
        try:
            row: NDArray[Any] = normalised(vector[None], self._options.dimension)[0]
        except ValueError as error:
            raise EngineError(f"{self._name} returned an invalid vector: {error}") from error
        return row

    async def _fit(self, part: Part) -> None:
        """Recompute the corpus statistics of an engine that uses them, if the corpus has changed too much.

        Vectors of queries were made with the statistics that go then. When they are the part that is made, none of them
        is taken for a new one, as their digests include the statistics.
        """
        engine = self._engine
        if not isinstance(engine, CorpusEngine) or self._fitted:
            return
        self._fitted = True
        # New statistics change every vector: a few added pages, which change no ranking, are not worth that.
        if self._options.fresh or await asyncio.to_thread(lambda: engine.changed(self._texts())) > _STALE:
            if part is not Part.QUERIES:
                queries = VectorPaths(self._out / FOLDER, Part.QUERIES)
                self.outcome.lost_queries = queries.vectors.is_file() and not self._options.queries
                # They were made with the statistics that are replaced now, and no longer compare with those of the
                # pages.
                delete_vectors(queries)
            await asyncio.to_thread(engine.fit, self._texts())

    def _texts(self) -> Iterator[str]:
        """The texts of all pages; damaged records were reported when their pages were embedded."""
        for page in self._reader.pages(on_damage=lambda _: None):
            for content in contents(page, Part.TEXT, images=False):
                yield content.text


async def _written(writer: VectorWriter, made: dict[VectorRow, NDArray[Any]]) -> None:
    """Write vectors on a thread, and release them."""
    rows, vectors = list(made), np.stack(list(made.values()))
    made.clear()
    await to_the_end(asyncio.to_thread(writer.append, rows, vectors))


def _size(each: EmbeddingInput) -> float:
    """Inputs of similar size are batched together."""
    return len(each.text) + (each.image.size if each.image is not None else 0)


async def embedded_already(out: Path, model: str, queries: Sequence[tuple[str, str]]) -> int | None:
    """Whether the vectors of a run are up to date: page texts, regions and images, and those of queries.

    Args:
        out: The run directory.
        model: The model card whose vectors they are to be, of the engine ``vllm``.
        queries: Ids and texts.

    Returns:
        How many vectors there are; None where there is something to do.

    Raises:
        DifferentRunError: There are vectors of another model.
        OutputError: There is no run, or it cannot be read.
    """
    wanted: dict[Part, list[VectorRow]] = {part: [] for part in _CORPUS}
    with RunReader.open(out) as reader:
        try:
            async with aclosing(on_thread(reader.pages())) as pages:
                async for page in pages:
                    for part, rows in wanted.items():
                        rows += (content.row for content in contents(page, part, images=True))
        except DamagedRunError:
            return None
    if queries:
        wanted[Part.QUERIES] = [query(*each).row for each in queries]
    for part, rows in wanted.items():
        try:
            made = await asyncio.to_thread(VectorFile.open, out, part)
        except (MissingInputError, OutputError):  # damaged, too
            return None
        identity = made.info.identity
        if (identity.engine, identity.model) != ("vllm", model):
            raise DifferentRunError(  # as the step would
                f"{out / FOLDER} contains vectors of {part.plural} made by {identity.model} of the engine"
                f" {identity.engine}, not by {model}",
                remedy="Pass the model that made them with --embedding-model, or delete that folder to start over.",
            )
        # A partial file was left by a command that was interrupted after its last row.
        if made.rows != rows or made.paths.partial.exists():
            return None
    return sum(map(len, wanted.values()))
