"""The region engine ``vlm``: regions, or pages, read by a vision-language model behind OpenAI-compatible servers."""

from __future__ import annotations

from pagemill.config.recognition import RecognitionSettings
from pagemill.recognition.vlm.reading import VlmReader, reading_card
from pagemill.recognition.vlm.requests import chat_client


def create(settings: RecognitionSettings) -> VlmReader:
    """A reader for a model card and its servers. Reaches out to nothing yet.

    Raises:
        UsageError: There is no such model card, it has another kind, it cannot read what it is to, or no server is
            named.
    """
    card, reads = reading_card(settings)
    return VlmReader(card, chat_client(settings.servers, settings), settings.served_model, reads, settings.max_tokens)
