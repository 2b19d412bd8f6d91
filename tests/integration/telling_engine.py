"""An embedding engine whose vectors tell what was embedded, and ``pagemill embed`` with it."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pagemill.app.embed import EmbedOptions, embed
from pagemill.app.options import ImageSources
from pagemill.embedding.base import EmbeddingInput, EngineIdentity, Modality, Role
from pagemill.embedding.outcome import EmbedOutcome

DIMENSION = 16


def vector_of(role: Role, text: str, image: np.ndarray | None = None) -> np.ndarray:
    """A vector that says what was embedded."""
    seed = hashlib.sha256(f"{role}\0{text}\0".encode() + (image.tobytes() if image is not None else b"")).digest()
    return np.random.default_rng(int.from_bytes(seed[:8], "big")).normal(size=DIMENSION)


class TellingEngine:
    """Its vectors tell their input."""

    name = "telling"
    concurrency = 2
    max_batch = 3
    image_budget = None
    cut_texts = 0

    def __init__(self, *modalities: Modality, model: str = "m") -> None:
        self.modalities = frozenset(modalities or [Modality.TEXT])
        self.identity = EngineIdentity(engine=self.name, model=model, dimension=DIMENSION)
        self.embedded: list[str] = []

    def embed(self, inputs: Sequence[EmbeddingInput]) -> np.ndarray:
        assert 1 <= len(inputs) <= self.max_batch
        assert {each.modality for each in inputs} <= self.modalities
        self.embedded += [each.text for each in inputs]
        return np.stack([vector_of(each.role, each.text, each.image) for each in inputs])

    def close(self) -> None: ...


def run_embed(out: Path, engine: Any, inputs: tuple[str, ...] = (), **options: Any) -> EmbedOutcome:
    wanted = EmbedOptions(sources=ImageSources(inputs=inputs), **options)
    return asyncio.run(embed(out, engine, wanted, lambda done, total, what: None))
