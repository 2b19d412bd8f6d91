"""The embedding engine that settings name; apart from :mod:`pagemill.app.embed`, which a search need not import."""

from __future__ import annotations

from pagemill.embedding.base import EmbeddingEngine, EngineSettings
from pagemill.runtime import engines


def open_engine(settings: EngineSettings) -> EmbeddingEngine:
    """Load the engine that the settings name.

    Raises:
        UsageError: There is no such engine, or the settings do not fit it.
        PagemillError: It cannot be loaded; its class gives the cause.
    """
    engine: EmbeddingEngine = engines.load(engines.EMBEDDING_ENGINES, settings.engine)(settings)
    return engine
