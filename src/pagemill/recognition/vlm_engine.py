"""The region engine ``vlm``: regions, or pages, read by a vision-language model behind OpenAI-compatible servers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pagemill.config.model_cards import ModelKind, load_card
from pagemill.config.modes import ReadingMode
from pagemill.errors import UsageError
from pagemill.inference.chat import ChatClient
from pagemill.inference.client import API_KEY
from pagemill.recognition.vlm.reading import VlmReader

if TYPE_CHECKING:
    from pagemill.config.settings import RecognitionSettings


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
    return VlmReader(card, client, settings.served_model, reads, settings.max_tokens)
