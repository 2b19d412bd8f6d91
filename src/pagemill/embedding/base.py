"""What an embedding engine is: a plain class that turns texts and images into vectors, one batch a call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.config.model_cards import ImageBudget
from pagemill.config.options import Settings, option, servers_option
from pagemill.imaging.types import Pixels

Vectors: TypeAlias = NDArray[np.float32]
"""Shape (rows, dimension), each row of length 1."""

DEFAULT_ENGINE = "ngram"
"""The engine that is always there."""


class Role(StrEnum):
    """What something is embedded as; models have another instruction for each."""

    QUERY = "query"
    PASSAGE = "passage"
    IMAGE = "image"


class Modality(StrEnum):
    """What an engine takes in one input."""

    TEXT = "text"
    IMAGE = "image"
    IMAGE_WITH_TEXT = "image+text"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingInput:
    """One thing to embed: a text, an image, or an image with a text."""

    role: Role
    text: str = ""
    image: Pixels | None = None
    """Shape (height, width, 3), uint8 RGB."""

    @property
    def modality(self) -> Modality:
        """What it is made of."""
        if self.image is None:
            return Modality.TEXT
        return Modality.IMAGE_WITH_TEXT if self.text else Modality.IMAGE


class EngineIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What makes vectors comparable: those of two engines of the same identity may be searched with each other."""

    engine: str
    """Its entry point's name."""
    model: str
    """What :attr:`EngineSettings.model` has to be for the engine to load it again: queries are embedded by it."""
    revision: str = ""
    """Commit or digest of the model's files, where the engine can tell."""
    dimension: int
    instructions: dict[str, str] = {}
    """Text that goes with an input, by role."""
    details: dict[str, Any] = {}
    """What else decides about vectors, as plain JSON values."""

    def differences(self, other: EngineIdentity) -> list[str]:
        """What differs, in words, such as ``dimension 2048, not 512``; empty where the vectors may be compared."""
        mine, others = msgspec.to_builtins(self), msgspec.to_builtins(other)
        if self.revision and self.revision == other.revision:
            del mine["model"]  # the same files under another name or path
        return [f"{name} {mine[name]!r}, not {others[name]!r}" for name in mine if mine[name] != others[name]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings(Settings):
    """What the user chose, and where the engine may keep what it learns of a corpus."""

    folder: Path = Path()
    """``embeddings/`` of the run directory; need not exist."""
    engine: str = option(default=DEFAULT_ENGINE, results=True, help="Installed embedding engine.")
    model: str | None = option(results=True, help="Model of the engine: a name, a path or a model card.")
    servers: tuple[str, ...] = servers_option(
        help="Server of the engine vllm",
    )
    dimension: int | None = option(
        minimum=1, results=True, help="Truncate vectors to N components.", shown_default="all"
    )
    """Used by engines that make vectors of any dimension; the vectors of others are cut."""
    batch_size: int | None = option(minimum=1, results=False, help="Maximum batch size.", shown_default="by the engine")
    device: str | None = option(results=False, help="Device of the engine, such as cuda or cpu.")
    timeout_s: float = 300.0
    """Time limit of one call to a server."""
    wait_s: float = 600.0
    """How long to wait for a server that does not answer."""


class EmbeddingEngine(Protocol):
    """Makes vectors. Its entry point is ``create(settings: EngineSettings) -> EmbeddingEngine``.

    ``create`` finds out what would otherwise fail on every input (a missing package or model, a server that is not
    there) and raises a PagemillError that says so.
    """

    name: str
    modalities: frozenset[Modality]
    max_batch: int
    """Most inputs of a call."""
    concurrency: int
    """Calls that may run at once, each on a thread of its own: 1 for a model here, more for servers."""
    image_budget: ImageBudget | None
    """How large an image it makes use of: larger ones are shrunk before they wait for their turn; None for no limit."""

    cut_texts: int
    """Texts so far that were longer than the model takes, and were cut at their end."""

    @property
    def identity(self) -> EngineIdentity:
        """Of all vectors that it makes."""

    def embed(self, inputs: Sequence[EmbeddingInput]) -> NDArray[np.floating[Any]]:
        """Make one vector an input, in order.

        Args:
            inputs: One to ``max_batch`` of them, each of a modality that the engine takes.

        Returns:
            Shape (inputs, ``identity.dimension``), finite and not zero; of any length, as callers normalise.

        Raises:
            PagemillError: What is wrong with the whole batch. One of several inputs: the caller finds out which one it
                is by halving the batch.
        """

    def close(self) -> None:
        """Free what it holds; not called while ``embed`` runs."""


@runtime_checkable
class CorpusEngine(Protocol):
    """An embedding engine that weighs by statistics of the corpus, which it keeps in ``EngineSettings.folder``."""

    @property
    def statistics(self) -> str:
        """Digest of the statistics; empty while there are none. Vectors of queries may change with it."""

    def changed(self, texts: Iterable[str]) -> float:
        """How many texts came or went since the statistics were made, as a share of those of then."""

    def fit(self, texts: Iterable[str]) -> None:
        """Make the statistics and keep them: the engine has another identity from now on."""


def normalised(vectors: NDArray[np.floating[Any]], dimension: int | None = None) -> Vectors:
    """Vectors of length 1, cut to their first components where a dimension is named.

    Cutting and normalising again is what models that were trained as Matryoshka (arXiv:2205.13147) are made for.

    Args:
        vectors: Shape (rows, components), finite.
        dimension: Components to keep; None for all.

    Raises:
        ValueError: A vector is not finite, is zero, or has too few components.
    """
    wide = np.asarray(vectors, dtype=np.float64)
    if wide.ndim != 2:
        raise ValueError(f"vectors of shape {wide.shape}")
    if dimension is not None:
        if dimension > wide.shape[1]:
            raise ValueError(f"a vector has {wide.shape[1]} components, fewer than {dimension}")
        wide = wide[:, :dimension]
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise ValueError("a vector is not finite")
    if not (lengths > 0).all():
        raise ValueError("a vector is zero")
    return np.asarray(wide / lengths, dtype=np.float32)
