"""An embedding engine as a service: contents of pages in, vectors as they are kept out, in batches on its threads."""

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

_MEND = "Mend the run: pagemill verify --repair, then pagemill parse once more."


class EmbeddingService:
    """Makes vectors of contents; many may wait at once, each for its own. Made within an event loop, and closed there.

    Args:
        out: The run directory, for the pictures of regions.
        engine: Not closed here.
        dimension: Components that are kept; None for all.
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
        """That the engine works on when it is busy."""
        return self._engine.max_batch * self._engine.concurrency

    def info(self, part: Part, dtype: StoredType) -> VectorsInfo:
        """What all vectors of a part have in common.

        Raises:
            UsageError: The engine's vectors have fewer components than are to be kept.
        """
        identity = self._engine.identity
        if self._dimension is not None:
            if self._dimension > identity.dimension:
                raise UsageError(
                    f"the engine {self._engine.name!r} makes vectors of {identity.dimension:,} components,"
                    f" not of {self._dimension:,}",
                    remedy="Ask for fewer with --dimension.",
                )
            identity = msgspec.structs.replace(identity, dimension=self._dimension)
        images = part is Part.REGIONS and Modality.IMAGE in self._engine.modalities
        return VectorsInfo(part=part, identity=identity, dtype=dtype, images=images)

    async def of_content(self, part: Part, content: Content) -> NDArray[Any]:
        """The vector of a text, a query or a region.

        Raises:
            PagemillError: It has none; the class says why.
        """
        return await self._batcher.submit(await self._input(part, content))

    async def of_page_image(self, images: PageImages, found: FoundPage) -> NDArray[Any]:
        """The vector of a page's image, whose pixels are let go when it is shrunk to what the engine makes use of.

        Raises:
            PagemillError: It has none; the class says why.
        """
        try:
            whole = await images.pixels(found)
            pixels = await asyncio.to_thread(within_budget, whole, self._engine.image_budget)
            del whole
        finally:
            found.ticket.leave()
        return await self._batcher.submit(EmbeddingInput(role=Role.IMAGE, image=pixels))

    async def close(self) -> None:
        """End the threads, when the batches under way are done."""
        await self._batcher.close()
        await self._threads.close()

    async def _input(self, part: Part, content: Content) -> EmbeddingInput:
        if part is Part.QUERIES:
            return EmbeddingInput(role=Role.QUERY, text=content.text)
        if content.crop is None:
            return EmbeddingInput(role=Role.PASSAGE, text=content.text)
        pixels = await asyncio.to_thread(self._picture, content.crop)
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

    def _call(self, inputs: Sequence[EmbeddingInput]) -> list[NDArray[Any]]:
        """The rows of a batch; what is wrong with them is found out one by one (:meth:`_check`)."""
        return list(np.asarray(self._engine.embed(inputs)))

    def _check(self, _: EmbeddingInput, vector: NDArray[Any]) -> NDArray[Any]:
        """A vector as it is kept: finite, cut, of length 1."""
        wanted = (self._engine.identity.dimension,)
        if vector.shape != wanted:
            raise EngineError(f"{self._name} gave a vector of shape {vector.shape}, not {wanted}")
        try:
            row: NDArray[Any] = normalised(vector[None], self._dimension)[0]
        except ValueError as error:
            raise EngineError(f"{self._name} gave what is no vector: {error}") from error
        return row


def _size(each: EmbeddingInput) -> float:
    """Inputs of like size travel together."""
    return len(each.text) + (each.image.size if each.image is not None else 0)
