"""Embedding engines: classes that turn texts and images into vectors, one batch per call."""

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
"""The embedded engine."""


class Role(StrEnum):
    """Role of an input; models have an instruction for each."""

    QUERY = "query"
    PASSAGE = "passage"
    IMAGE = "image"


class Modality(StrEnum):
    """Modality of an input."""

    TEXT = "text"
    IMAGE = "image"
    IMAGE_WITH_TEXT = "image+text"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingInput:
    """An input to embed: a text, an image, or an image with a text."""

    role: Role
    text: str = ""
    image: Pixels | None = None
    """Shape (height, width, 3), uint8 RGB."""

    @property
    def modality(self) -> Modality:
        """Its modality."""
        if self.image is None:
            return Modality.TEXT
        return Modality.IMAGE_WITH_TEXT if self.text else Modality.IMAGE


class EngineIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Identity of an engine: vectors of engines with the same identity are comparable."""

    engine: str
    """Its entry point's name."""
    model: str
    """Value of :attr:`EngineSettings.model` with which the engine loads it again, to embed queries."""
    revision: str = ""
    """Commit or digest of the model's files, if the engine knows it."""
    dimension: int
    instructions: dict[str, str] = {}
    """Instruction for an input, by role."""
    details: dict[str, Any] = {}
    """Other properties that change vectors, as plain JSON values."""

    def differences(self, other: EngineIdentity) -> list[str]:
        """Differences in words, such as ``dimension 2048, not 512``; empty if the vectors are comparable."""
        mine, others = msgspec.to_builtins(self), msgspec.to_builtins(other)
        if self.revision and self.revision == other.revision:
            # The same files under another name or path give the same vectors.
            del mine["model"]
        return [f"{name} {mine[name]!r}, not {others[name]!r}" for name in mine if mine[name] != others[name]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings(Settings):
    """Choices of the user, and the folder for statistics of a corpus."""

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
    """Used by engines with vectors of any dimension; the vectors of others are truncated."""
    batch_size: int | None = option(minimum=1, results=False, help="Maximum batch size.", shown_default="by the engine")
    device: str | None = option(results=False, help="Device of the engine, such as cuda or cpu.")
    timeout_s: float = 300.0
    """Time limit of one call to a server."""
    wait_s: float = 600.0
    """Seconds to wait for a server that does not answer."""


class EmbeddingEngine(Protocol):
    """Computes vectors. Its entry point is ``create(settings: EngineSettings) -> EmbeddingEngine``.

    ``create`` raises a PagemillError for anything that would fail on every input: a missing package or model, or an
    unreachable server.
    """

    name: str
    modalities: frozenset[Modality]
    max_batch: int
    """Maximum number of inputs of a call."""
    concurrency: int
    """Calls that may run at once, each on a thread of its own: 1 for a model here, more for servers."""
    image_budget: ImageBudget | None
    """Largest useful image size: larger images are shrunk before they are queued; None for no limit."""

    cut_texts: int
    """Texts so far that exceeded the model's length and were truncated."""

    @property
    def identity(self) -> EngineIdentity:
        """Identity of all its vectors."""

    def embed(self, inputs: Sequence[EmbeddingInput]) -> NDArray[np.floating[Any]]:
        """Compute one vector per input, in order.

        Args:
            inputs: One to ``max_batch`` inputs of supported modalities.

        Returns:
            Shape (inputs, ``identity.dimension``), finite and not zero; of any length, as callers normalise.

        Raises:
            PagemillError: An error of the batch. If it is that of one input, the caller finds it by bisection.
        """

    def close(self) -> None:
        """Free its resources; not called while ``embed`` runs."""


@runtime_checkable
class CorpusEngine(Protocol):
    """An embedding engine that uses statistics of the corpus, stored in ``EngineSettings.folder``."""

    @property
    def statistics(self) -> str:
        """Digest of the statistics; empty if there are none. Vectors of queries may depend on it."""

    def changed(self, texts: Iterable[str]) -> float:
        """Number of texts added or removed since the statistics were computed, relative to the texts then."""

    def fit(self, texts: Iterable[str]) -> None:
        """Compute and store the statistics."""


def normalised(vectors: NDArray[np.floating[Any]], dimension: int | None = None) -> Vectors:
    """Vectors of length 1, truncated to their first components if a dimension is given.

    Models trained as Matryoshka (arXiv:2205.13147) are made to be truncated and normalised again.

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
