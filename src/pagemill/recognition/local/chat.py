"""The transport of a model in this process: what :class:`pagemill.inference.chat.ChatClient` is for servers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pagemill.config.model_cards import ModelCard
from pagemill.config.recognition import LocalModelSettings
from pagemill.inference.models import Served
from pagemill.recognition.local.requests import LocalRequest, read_request

if TYPE_CHECKING:
    from pagemill.inference.chat import Answer
    from pagemill.recognition.base import Batcher, Batching
    from pagemill.recognition.local.generation import Generator

FILL_S = 0.2
"""How long a request waits for others while the model is free: a batch takes seconds, and what comes a moment later
would wait for all of it. Not measured."""
_BEFORE_LOADING = 8
"""Requests in flight as long as the size of batches is not known."""


class LocalChat:
    """Answers chat completions with a model in this process, which is loaded by :meth:`find_model`.

    Args:
        card: Of the model.
        settings: How it runs.
    """

    def __init__(self, card: ModelCard, settings: LocalModelSettings) -> None:
        self._card = card
        self._settings = settings
        self._batching: Batching | None = None
        self._batcher: Batcher[LocalRequest, Answer] | None = None
        self._loading = asyncio.Lock()

    @property
    def in_flight(self) -> int:
        """Two batches: one is computed while the next one fills."""
        return 2 * (self._batcher.limit if self._batcher else self._settings.batch or _BEFORE_LOADING)

    def attach(self, batching: Batching) -> None:
        """Take what runs batches; needed before the first request."""
        self._batching = batching

    async def find_model(self, wanted: str | None, known: Sequence[str]) -> Served:
        """Load the model; its name is that of its card.

        Raises:
            PagemillError: It cannot be loaded.
        """
        await self._loaded()
        return Served(known[0])

    async def ask(self, body: bytes) -> Answer:
        """Answer a chat completion, in a batch with others.

        Raises:
            RequestRefusedError: It needs more memory than there is.
            EngineError: The model failed on it.
        """
        batcher = await self._loaded()
        return await batcher.submit(await asyncio.to_thread(read_request, body))

    def stop_waiting(self) -> None:
        """Nothing: no answer is waited for that does not come."""

    async def aclose(self) -> None:
        """End the batch in flight. The process keeps the model: see :func:`pagemill.release_models`."""
        if self._batcher is not None:
            await self._batcher.close()

    async def _loaded(self) -> Batcher[LocalRequest, Answer]:
        assert self._batching is not None, "an engine is attached before it is asked"
        async with self._loading:
            if self._batcher is None:
                generator = await self._batching.run(self._load)
                self._batcher = self._batching.batcher(
                    generator.answer,
                    max_batch=generator.max_batch,
                    size=lambda request: request.size,
                    fill_s=FILL_S,
                )
            return self._batcher

    def _load(self) -> Generator:
        from pagemill.recognition.local.generation import Generator
        from pagemill.recognition.local.model import load_shared

        assert self._batching is not None
        model = load_shared(self._card, self._settings)
        return Generator(model, self._card, self._settings.batch, unwanted=self._batching.unwanted)
