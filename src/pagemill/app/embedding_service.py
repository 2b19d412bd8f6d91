"""An embedding engine as a service: batches the contents of pages and returns their vectors as they are stored."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pagemill.embedding.base import EmbeddingInput, Modality, Role, normalised
from pagemill.embedding.images import within_budget
from pagemill.embedding.vectors import Part, VectorsInfo
from pagemill.errors import EngineError, InputError, UsageError
from pagemill.imaging.decode import decode_image
from pagemill.runtime.microbatch import MicroBatcher
from pagemill.runtime.threads import ComputeThreads
from pagemill.store import paths

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from pagemill.app.page_images import FoundPage, PageImages
    from pagemill.document.page import ImageCrop
    from pagemill.embedding.base import EmbeddingEngine
    from pagemill.embedding.contents import Content
    from pagemill.embedding.vectors import StoredType
    from pagemill.imaging.types import Pixels

_REPAIR = "Repair the run: pagemill verify --repair, then repeat pagemill parse."


class EmbeddingService:
    """Makes vectors of contents, many at a time. Create and close it in one event loop.

    Args:
        out: The run directory, for the crops of regions.
        engine: Not closed here.
        dimension: Number of components to keep; None for all.
    """

    def __init__(self, out: Path, engine: EmbeddingEngine, dimension: int | None = None) -> None:
        self._out = out
        self._engine = engine
        self._dimension = dimension
        self._name = f"the embedding engine {engine.name!r}"
        self._threads = ComputeThreads(engine.concurrency, name="pagemill.app.embed")
        self._batcher: MicroBatcher[EmbeddingInput, NDArray[Any]] = MicroBatcher(
            self._call,
            name=self._name,
            threads=self._threads,
            max_batch=engine.max_batch,
            concurrency=engine.concurrency,
            size=_size,
            check=self._check,
        )

    @property
    def inputs_at_once(self) -> int:
        """Number of inputs that keep the engine busy."""
        return self._engine.max_batch * self._engine.concurrency

    def info(self, part: Part, dtype: StoredType) -> VectorsInfo:
        """The properties of all vectors of a part.

        Raises:
            UsageError: The engine's vectors have fewer components than requested.
        """
        identity = self._engine.identity
        if self._dimension is not None:
            if self._dimension > identity.dimension:
                raise UsageError(
                    f"the engine {self._engine.name!r} makes vectors of {identity.dimension:,} components,"
                    f" not of {self._dimension:,}",
                    remedy="Request fewer with --dimension.",
                )
            identity = msgspec.structs.replace(identity, dimension=self._dimension)
        images = part is Part.REGIONS and Modality.IMAGE in self._engine.modalities
        return VectorsInfo(part=part, identity=identity, dtype=dtype, images=images)

    async def of_content(self, part: Part, content: Content) -> NDArray[Any]:
        """The vector of a text, a query or a region.

        Raises:
            PagemillError: It cannot be made; the class says why.
        """
        return await self._batcher.submit(await self._input(part, content))

    async def of_page_image(self, images: PageImages, found: FoundPage) -> NDArray[Any]:
        """The vector of a page's image. Its pixels are released once it is shrunk to the size that the engine uses.

        Raises:
            PagemillError: It cannot be made; the class says why.
        """
        try:
            whole = await images.pixels(found)
            pixels = await asyncio.to_thread(within_budget, whole, self._engine.image_budget)
            del whole
        finally:
            found.leave()
        return await self._batcher.submit(EmbeddingInput(role=Role.IMAGE, image=pixels))

    async def close(self) -> None:
        """Stop the threads when the batches in flight are done."""
        await self._batcher.close()
        await self._threads.close()

    async def _input(self, part: Part, content: Content) -> EmbeddingInput:
        if part is Part.QUERIES:
            return EmbeddingInput(role=Role.QUERY, text=content.text)
        if content.crop is None:
            return EmbeddingInput(role=Role.PASSAGE, text=content.text)
        pixels = await asyncio.to_thread(self._crop, content.crop)
        both = Modality.IMAGE_WITH_TEXT in self._engine.modalities
        return EmbeddingInput(role=Role.IMAGE, image=pixels, text=content.text if both else "")

    def _crop(self, crop: ImageCrop) -> Pixels:
        name = crop.path
        try:
            data = paths.crop_file(self._out, name).read_bytes()
        except (OSError, ValueError) as error:
            raise InputError(f"{name} cannot be read: {error}", remedy=_REPAIR) from error
        if crop.sha256 and hashlib.sha256(data).hexdigest() != crop.sha256:
            raise InputError(f"{name} is not the image that its record names", remedy=_REPAIR)
        return within_budget(decode_image(data, name=name).pixels, self._engine.image_budget)

    def _call(self, inputs: Sequence[EmbeddingInput]) -> list[NDArray[Any]]:
        """The vectors of a batch, not checked yet (:meth:`_check`)."""
        return list(np.asarray(self._engine.embed(inputs)))

    def _check(self, _: EmbeddingInput, vector: NDArray[Any]) -> NDArray[Any]:
        """A vector as it is stored: finite, truncated, of length 1."""
        wanted = (self._engine.identity.dimension,)
        if vector.shape != wanted:
            raise EngineError(f"{self._name} returned a vector of shape {vector.shape}, not {wanted}")
        try:
            row: NDArray[Any] = normalised(vector[None], self._dimension)[0]
        except ValueError as error:
            raise EngineError(f"{self._name} returned an invalid vector: {error}") from error
        return row


def _size(each: EmbeddingInput) -> float:
    """Inputs of similar size are batched together."""
    return len(each.text) + (each.image.size if each.image is not None else 0)
