"""Searches a run directory: its index, with the engines that made its vectors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.app.embedding_engine import open_engine
from pagemill.app.options import QueryEngineSettings
from pagemill.embedding.base import (
    DEFAULT_ENGINE,
    EmbeddingEngine,
    EmbeddingInput,
    EngineIdentity,
    EngineSettings,
    Role,
    normalised,
)
from pagemill.embedding.vectors import FOLDER, VectorsInfo
from pagemill.errors import DifferentRunError, UsageError
from pagemill.imaging.decode import decode_image
from pagemill.retrieval.hits import EVERYTHING, Filters, IndexPart, Rankings, SearchHit
from pagemill.retrieval.index import SearchIndex

MAX_TOP = 1000


class Searcher(ExitStack):
    """An index and the engines for its queries, which are loaded on first use. A context manager.

    Args:
        out: The run directory.
        engines: Location of the engines.

    Raises:
        MissingInputError: There is no index.
        DifferentRunError: It belongs to an earlier run.
        DamagedRunError: It is damaged.
    """

    def __init__(self, out: str | Path, engines: QueryEngineSettings | None = None) -> None:
        super().__init__()
        self._settings = engines or QueryEngineSettings()
        self._engines: list[tuple[EngineIdentity, EmbeddingEngine]] = []
        self.index = self.enter_context(SearchIndex(out))

    def search(
        self,
        query: str | None,
        *,
        image: str | Path | bytes | None = None,
        parts: Collection[str] | None = None,
        filters: Filters = EVERYTHING,
        top: int = 10,
    ) -> list[SearchHit]:
        """Find the pages for a query; see :func:`search`."""
        if image is None and not (query and query.strip()):
            raise UsageError("the query is empty", remedy="Pass words to search for, or an image.")
        if not 1 <= top <= MAX_TOP:
            raise UsageError(f"top is {top}; it must be 1 to {MAX_TOP:,}")
        chosen = self._chosen(parts)
        vectors = self._vectors(query, image, chosen, named=parts is not None)
        return self.index.search(query, vectors=vectors, parts=chosen, filters=filters, top=top)

    def rankings(self, query: str) -> Rankings:
        """The ranking of each part for a text query."""
        return self.index.rankings(query, vectors=self._vectors(query, None, self.index.parts, named=False))

    def _chosen(self, parts: Collection[str] | None) -> list[IndexPart]:
        there = self.index.parts
        if parts is None:
            return there
        chosen = []
        for name in parts:
            if name not in list(IndexPart):
                raise UsageError(f"there is no part {name!r}", remedy=f"Available: {', '.join(IndexPart)}.")
            part = IndexPart(name)
            if part not in there:
                raise UsageError(
                    f"the index has no vectors of {part}",
                    remedy=f"Make them, then update the index: pagemill embed {self.index.path}; pagemill index"
                    f" {self.index.path}",
                )
            chosen.append(part)
        return chosen

    def _vectors(
        self, query: str | None, image: str | Path | bytes | None, parts: Sequence[IndexPart], *, named: bool
    ) -> dict[IndexPart, NDArray[np.float32]]:
        """The query's vector for each part.

        Raises:
            UsageError: There is an image, and no engine of these parts accepts images.
        """
        words = (query or "").strip()
        if image is not None:
            # An image alone is embedded like the pages and regions: similar images have similar vectors.
            asked = EmbeddingInput(role=Role.QUERY if words else Role.IMAGE, text=words, image=_pixels(image))
        elif words:
            asked = EmbeddingInput(role=Role.QUERY, text=words)
        else:
            return {}
        found: dict[IndexPart, NDArray[np.float32]] = {}
        embedded: dict[int, NDArray[np.float32]] = {}
        refused: set[str] = set()
        for part in parts:
            info = self.index.vectors.get(part)
            if info is None:
                continue
            engine = self._engine(info)
            if asked.modality not in engine.modalities:
                refused.add(engine.name)
                continue
            # Parts of one engine share the query's vector, which may cost a request to a server.
            if id(engine) not in embedded:
                embedded[id(engine)] = normalised(engine.embed([asked]), info.dimension)[0]
            found[part] = embedded[id(engine)]
        # Parts that nobody named are left out silently: the full text answers anyway.
        if (named and refused) or (image is not None and not found):
            raise UsageError(
                f"{', '.join(sorted(refused)) or self.index.path} cannot embed {asked.modality}",
                remedy="Embed the run with an engine that can (pagemill embed --engine), then update the index.",
            )
        return found

    def _engine(self, info: VectorsInfo) -> EmbeddingEngine:
        for identity, loaded in self._engines:
            if identity == info.identity:
                return loaded
        made_by = info.identity
        settings = EngineSettings(folder=self.index.path / FOLDER, engine=made_by.engine, dimension=made_by.dimension)
        others = any(vector.identity.engine != DEFAULT_ENGINE for vector in self.index.vectors.values())
        if made_by.engine != DEFAULT_ENGINE or not others:  # it needs no server: those given are for the others
            settings = replace(
                settings,
                model=self._settings.model or made_by.model,
                servers=self._settings.servers,
                device=self._settings.device,
            )
        engine = open_engine(settings)
        self.callback(engine.close)
        identity = engine.identity
        if identity.dimension > made_by.dimension:  # truncated vectors
            identity = msgspec.structs.replace(identity, dimension=made_by.dimension)
        # Vectors of another model still have distances, which would mean nothing: better no answer than a wrong one.
        if differences := identity.differences(made_by):
            raise DifferentRunError(
                f"the vectors of {info.part.plural} come from another engine: {'; '.join(differences)}",
                remedy="Name the model or server that made them (--model, --server), search the full text only"
                " (--part full-text), or embed again.",
            )
        self._engines.append((made_by, engine))
        return engine


def search(
    out: str | Path,
    query: str | None = None,
    *,
    image: str | Path | bytes | None = None,
    top: int = 10,
    documents: Sequence[str] = (),
    pages: Sequence[str] = (),
    languages: Sequence[str] = (),
    labels: Sequence[str] = (),
    parts: Sequence[str] | None = None,
    servers: Sequence[str] = (),
    model: str | None = None,
    device: str | None = None,
) -> list[SearchHit]:
    """Find the pages of a run directory for a query, with the index built by ``pagemill index``.

    Args:
        out: The run directory.
        query: Words in any language; there is no query syntax.
        image: An image to search by, as a path or bytes, if the vectors' engine accepts images.
        top: Maximum number of pages, up to 1,000.
        documents: Patterns of document ids (``*``, ``?``, ``[...]``), any of which must match.
        pages: Patterns of page ids, likewise.
        languages: Such as ``("ko",)``.
        labels: Only regions with these labels, such as ``("table", "chart")``.
        parts: Parts of the index: ``images``, ``text``, ``regions``, ``full-text``; None for all.
        servers: Base URLs of the servers that embed queries, for vectors made by servers.
        model: Path of the vectors' model, if it has moved.
        device: Device of the model, such as ``cuda``.

    Returns:
        The hits, best first; none if nothing matches.

    Raises:
        MissingInputError: There is no index.
        UsageError: A filter names something unknown, or the query is empty.
        DifferentRunError: Index, vectors and engine do not fit together; the remedy names the next step.
    """
    filters = Filters(tuple(documents), tuple(pages), tuple(languages), tuple(labels))
    with Searcher(out, QueryEngineSettings(servers=tuple(servers), model=model, device=device)) as searcher:
        return searcher.search(query, image=image, parts=parts, filters=filters, top=top)


def _pixels(image: str | Path | bytes) -> NDArray[np.uint8]:
    source = Path(image) if isinstance(image, str) else image
    return decode_image(source, name=str(source) if isinstance(source, Path) else "the image").pixels
