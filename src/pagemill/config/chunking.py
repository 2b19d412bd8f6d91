"""Settings for chunking documents for retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pagemill.config.options import Settings, option
from pagemill.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSettings(Settings):
    """The size of chunks, and the tokenizer that measures it."""

    RESULTS: ClassVar = True

    max_tokens: int = option(default=512, minimum=32, help="chunks: maximum number of tokens, with the headings above.")
    tokenizer: Path | None = option(
        metavar="FILE",
        help="chunks: tokenizer.json of the model that will read them; needs tokenizers.",
        shown_default="an estimate",
    )
    overlap: int = option(default=0, minimum=0, help="chunks: maximum overlap with the previous chunk, in tokens.")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if 2 * self.overlap > self.max_tokens:
            raise UsageError(f"overlap is {self.overlap}", remedy="It must be at most half of the maximum.")
