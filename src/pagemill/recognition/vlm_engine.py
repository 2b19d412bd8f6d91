"""The region engine ``vlm``: regions, or pages, read by a vision-language model behind OpenAI-compatible servers."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec

from pagemill.config.model_cards import ModelKind, load_card
from pagemill.config.modes import ReadingMode
from pagemill.errors import UsageError
from pagemill.inference.chat import ChatClient
from pagemill.inference.client import API_KEY
from pagemill.recognition.base import RegionReader
from pagemill.recognition.vlm.reading import Reading
from pagemill.recognition.vlm.requests import RequestBuilder

if TYPE_CHECKING:
    from pagemill.config.model_cards import ModelCard
    from pagemill.config.settings import RecognitionSettings
    from pagemill.document.labels import Task
    from pagemill.imaging.types import Pixels
    from pagemill.recognition.base import PageReading, RegionReading
    from pagemill.recognition.vlm.requests import PreparedRegion


class VlmReader(RegionReader):
    """Reads with one model card: a :class:`pagemill.recognition.base.RegionReader`."""

    def __init__(self, card: ModelCard, client: ChatClient, served_model: str | None, reads: ReadingMode) -> None:
        """Wrap a client; use ``create`` to make one.

        Args:
            card: Of the model.
            client: Of its servers.
            served_model: The name that the user gave for it; None: whatever the servers call it.
            reads: Regions, or pages.
        """
        self.name = f"vlm:{card.name}"
        self.reads = reads
        self.in_flight = client.in_flight
        self._card = card
        self._client = client
        self._given_name = served_model
        self._served_model = served_model
        self._preparing = RequestBuilder(card, card.name)
        """Encodes images, for which the name of the served model does not matter."""
        self._reading: Reading | None = None
        self._checking = asyncio.Lock()

    @property
    def served_model(self) -> str | None:
        """As :attr:`pagemill.recognition.base.RegionReader.served_model`; empty for a name of the model card."""
        return self._served_model

    async def check(self) -> None:
        """Reach the servers and find the model on them.

        Raises:
            NetworkError: No server answers.
            UsageError: None is an OpenAI-compatible server that takes the API key and serves the model.
        """
        own_names = [self._card.name, self._card.repository]
        served = await self._client.find_model(self._given_name, own_names)
        self._served_model = "" if served.name in own_names else served.name
        card = self._within(served.max_model_len)
        self._reading = Reading(card, RequestBuilder(card, served.name), self._client, engine=self.name)

    def _within(self, max_tokens: int | None) -> ModelCard:
        """The card, asking for no longer answers than the servers allow: vLLM refuses requests that ask for more."""
        sampling = self._card.sampling
        if max_tokens is None or sampling.max_tokens <= max_tokens:
            return self._card
        return msgspec.structs.replace(self._card, sampling=msgspec.structs.replace(sampling, max_tokens=max_tokens))

    def prepare(self, crop: Pixels, task: Task) -> PreparedRegion:
        """As :meth:`pagemill.recognition.base.RegionReader.prepare`."""
        return self._preparing.prepare(crop, task)

    async def read(self, prepared: PreparedRegion) -> RegionReading:
        """As :meth:`pagemill.recognition.base.RegionReader.read`; looks for the model first if nobody has yet."""
        return await (await self._checked()).read(prepared)

    async def read_page(self, prepared: PreparedRegion) -> PageReading:
        """As :meth:`pagemill.recognition.base.RegionReader.read_page`; looks for the model first likewise."""
        return await (await self._checked()).read_page(prepared)

    def stop_waiting(self) -> None:
        """As :meth:`pagemill.recognition.base.RegionReader.stop_waiting`."""
        self._client.stop_waiting()

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _checked(self) -> Reading:
        if self._reading is None:
            async with self._checking:
                if self._reading is None:
                    await self.check()
        assert self._reading is not None
        return self._reading


def create(settings: RecognitionSettings) -> VlmReader:
    """A reader for a model card and its servers. Reaches out to nothing yet.

    Raises:
        UsageError: There is no such model card, it is of another kind, it cannot read what it is to, or no server is
            named.
    """
    card = load_card(settings.model)
    if card.kind is not ModelKind.RECOGNITION:
        raise UsageError(f"{card.name} does not read pages: it is a model for {card.kind}", remedy="Check --model.")
    reads = settings.reading or card.reads
    if reads is ReadingMode.PAGES and not card.prompts.get("page"):
        raise UsageError(
            f"{card.name} does not read whole pages: its card has no prompt for one",
            remedy="Say --reading regions, or choose another --model.",
        )
    client = ChatClient(
        settings.servers,
        workers=settings.workers,
        request_timeout_s=settings.request_timeout_s,
        server_wait_s=settings.server_wait_s,
        api_key=os.environ.get(API_KEY) or None,
    )
    return VlmReader(card, client, settings.served_model, reads)
