"""Bounds and thresholds of extraction."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExtractionThresholds:
    """See ``docs/extract.md`` for the measurement behind :attr:`same_text`."""

    same_text: float = 0.9
    """Minimum similarity (Indel, 0-1) of a value and the text on the page that counts as found, when both have the same
    digits."""
    fuzzy_characters: int = 6
    """A shorter value must be on the page exactly: short texts resemble each other by chance."""
    max_schema_bytes: int = 2**20
    max_schema_depth: int = 64
    max_values: int = 20_000
    """Values in one answer. Not measured: about ten times what an answer of 8,192 tokens holds."""
    max_places: int = 200
    """Places of one value on a page that are compared; a small number is on a page that often."""
    max_alternatives: int = 10
    """Other values of one field that are kept."""
    max_pages_per_request: int = 16
    """Not measured. Images of more pages do not fit into the context of the models with a card."""
    characters_per_token: float = 3.0
    """Bytes of UTF-8 in a token, rounded down: about 4 for English, 3 for a Chinese or Korean character."""
    answer_share: float = 0.25
    """Share of the model's context that is left for the answer."""
    image_share: float = 0.5
    """Share of the rest that the image of one page may take."""
    attempts: int = 3
    """Requests for the same pages until an answer is valid. Not measured."""


THRESHOLDS = ExtractionThresholds()
