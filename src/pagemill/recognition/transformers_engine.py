"""The region engine ``transformers``: the models of ``vlm`` in this process, on CUDA, MPS or the CPU."""

from __future__ import annotations

from pagemill.checkpoints.loading import require_packages
from pagemill.config.model_cards import ModelCard
from pagemill.config.modes import TRANSFORMERS, ReadingMode
from pagemill.config.recognition import RecognitionSettings
from pagemill.recognition.base import Batching
from pagemill.recognition.local.chat import LocalChat
from pagemill.recognition.local.model import find_checkpoint
from pagemill.recognition.local.requests import check_card
from pagemill.recognition.vlm.reading import VlmReader, reading_card


class LocalReader(VlmReader):
    """Reads regions or pages with a model in this process.

    Args:
        card: Of the model.
        chat: Runs it.
        reads: Regions, or pages.
        max_tokens: As of :class:`pagemill.recognition.vlm.reading.VlmReader`.
    """

    def __init__(self, card: ModelCard, chat: LocalChat, reads: ReadingMode, max_tokens: int | None = None) -> None:
        super().__init__(card, chat, None, reads, max_tokens, engine=TRANSFORMERS)
        self._chat = chat

    def attach(self, batching: Batching) -> None:
        """See :meth:`pagemill.recognition.base.RegionReader.attach`."""
        self._chat.attach(batching)


def create(settings: RecognitionSettings) -> LocalReader:
    """A reader for a model card. Makes sure that the weights are there; loads nothing yet.

    Raises:
        UsageError: There is no such model card, it has another kind, or it cannot read what it is to.
        MissingDependencyError: PyTorch or transformers is not installed.
        MissingInputError: The weights are not on this machine.
    """
    card, reads = reading_card(settings)
    check_card(card)
    require_packages(f"the recognition engine {TRANSFORMERS}")
    find_checkpoint(card, settings.local.weights)
    return LocalReader(card, LocalChat(card, settings.local), reads, settings.max_tokens)
