"""Search an index: each part ranks the pages, the ranks are fused, the best pages are shown with their hits."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.embedding.base import DEFAULT_ENGINE
from pagemill.embedding.vectors import FOLDER, Part, VectorPaths, VectorsInfo
from pagemill.errors import DifferentRunError
from pagemill.retrieval import database
from pagemill.retrieval.building import vectors_stamp
from pagemill.retrieval.filtering import Allowed, allowed
from pagemill.retrieval.hits import EVERYTHING, Filters, IndexPart, Ranked, Rankings, SearchHit
from pagemill.retrieval.presenting import hits_of
from pagemill.retrieval.ranking import DEPTH, best_first, reciprocal_rank_fusion, similarities
from pagemill.retrieval.spelling import without_noise
from pagemill.retrieval.tokens import match_expression
from pagemill.store.database import Database
from pagemill.store.reading import RunReader

_NO_WORDS = hashlib.sha256(b"").digest()


class MappedVectors(NamedTuple):
    """The vectors of a part, with page and region of each row."""

    vectors: NDArray[Any]
    """Shape (rows, dimension), memory-mapped."""
    pages: NDArray[np.int64]
    """Number of the page of each row."""
    regions: NDArray[np.int64]
    """Number of the region of each row; 0 for a whole page."""


class PageIndex(ABC):
    """The pages of an index that may be found, at one moment. For one thread at a time.

    Args:
        view: The index.
    """

    parts: list[IndexPart]
    """The parts to rank by, in the order of ``IndexPart``."""
    spelling: Collection[IndexPart]
    """The parts whose vectors come from the embedded engine."""

    def __init__(self, view: Database) -> None:
        self._view = view

    def allowed(self, filters: Filters) -> Allowed:
        """What filters admit."""
        return allowed(self._view, filters)

    @abstractmethod
    def vectors_of(self, part: IndexPart) -> Iterable[MappedVectors]:
        """The vectors of a part, in batches that fit into memory."""

    def search(
        self,
        query: str | None,
        *,
        vectors: dict[IndexPart, NDArray[np.float32]] | None = None,
        parts: Collection[IndexPart] | None = None,
        filters: Filters = EVERYTHING,
        top: int = 10,
    ) -> list[SearchHit]:
        """Find pages.

        Args:
            query: Words to look for; None to search by vectors alone.
            vectors: The query as a vector, for each part of vectors to search.
            parts: Parts to search; None for all that the query fits.
            filters: Filters for pages and regions.
            top: The most pages to return, up to ``DEPTH``.

        Raises:
            DifferentRunError: The vectors are not those of the index.
        """
        rankings = self.rankings(query, vectors=vectors, parts=parts, filters=filters)
        fused = self.fused(query, rankings, filters=filters, top=top)
        return hits_of(self._view, query, fused, rankings, filters)

    def rankings(
        self,
        query: str | None,
        *,
        vectors: dict[IndexPart, NDArray[np.float32]] | None = None,
        parts: Collection[IndexPart] | None = None,
        filters: Filters = EVERYTHING,
    ) -> Rankings:
        """The ranking of each part, before they are fused."""
        fitting = self.allowed(filters)
        found: Rankings = {}
        for part in (part for part in self.parts if parts is None or part in parts):
            if part is IndexPart.FULL_TEXT:
                if expression := match_expression(query or ""):
                    found[part] = self._by_words(expression, fitting, filters)
            # Vectors of whole pages say nothing about a region with a label.
            elif vectors and part in vectors and (part is IndexPart.REGIONS or fitting.regions is None):
                found[part] = self._by_vectors(part, vectors[part], fitting)
        return found

    def fused(
        self, query: str | None, rankings: Rankings, *, filters: Filters = EVERYTHING, top: int = DEPTH
    ) -> list[tuple[int, float]]:
        """Numbers of the pages and their scores, best first.

        Vectors of the embedded engine compare spellings and are slightly similar by chance: a page that only they find
        is dropped unless one of its words is spelt like one of the query's. Other pages keep their ranks.

        Args:
            query: Words; None for vectors alone, which are trusted then.
            rankings: The result of :meth:`rankings` for this query and these filters.
            filters: If labels are given, only words of such regions count.
            top: The most pages to return.
        """
        fused = reciprocal_rank_fusion([[ranked.page for ranked in ranking] for ranking in rankings.values()])
        spelling = rankings.keys() & self.spelling
        if query is None or not spelling:
            return fused[:top]
        believed = {ranked.page for part in rankings.keys() - spelling for ranked in rankings[part]}
        if IndexPart.FULL_TEXT not in rankings:  # words were not requested, but still separate hits from noise
            by_words = self.rankings(query, parts=[IndexPart.FULL_TEXT], filters=filters)
            believed |= {ranked.page for ranking in by_words.values() for ranked in ranking}
        return without_noise(query, fused, believed, lambda page: text_of(self._view, page, filters), top)

    def _by_words(self, expression: str, fitting: Allowed, filters: Filters) -> list[Ranked]:
        table = "page_words" if fitting.regions is None else "region_words"
        if filters.labels:
            wanted = " OR ".join(f'"{database.label_token(label)}"' for label in filters.classes)
            expression = f"{{label}} : ({wanted}) AND {{words description}} : ({expression})"
        statement = f"SELECT rowid, rank FROM {table} WHERE {table} MATCH ? ORDER BY rank"
        if fitting.pages is None and fitting.regions is None:
            # Only without filters, which may refuse any number of the best.
            statement += f" LIMIT {DEPTH}"
        found: dict[int, Ranked] = {}
        for number, rank in self._view.each(statement, (expression,)):
            page = number if fitting.regions is None else int(fitting.regions[number])
            if page and (fitting.pages is None or fitting.pages[page]):
                found.setdefault(page, Ranked(page, -rank, 0 if fitting.regions is None else number))
            if len(found) == DEPTH:
                break
        return list(found.values())

    def _by_vectors(self, part: IndexPart, query: NDArray[np.float32], fitting: Allowed) -> list[Ranked]:
        best: list[Ranked] = []
        for dense in self.vectors_of(part):
            scores = similarities(dense.vectors, query)
            found: dict[int, Ranked] = {}
            for row in best_first(scores, fitting.rows(dense.pages, dense.regions)).tolist():
                page = int(dense.pages[row])
                found.setdefault(page, Ranked(page, float(scores[row]), int(dense.regions[row])))
                if len(found) == DEPTH:
                    break
            best = sorted([*best, *found.values()], key=lambda ranked: -ranked.score)[:DEPTH]
        return best


class SearchIndex(PageIndex, ExitStack):
    """The index of a run directory as it is when it is opened. A context manager; for one thread at a time.

    Args:
        out: The run directory.

    Raises:
        MissingInputError: There is no index.
        DifferentRunError: The run was started over since.
        DamagedRunError: It is damaged.
        OutputError: It cannot be read.
    """

    def __init__(self, out: str | Path) -> None:
        ExitStack.__init__(self)
        self.path = Path(out)
        self._mapped: dict[IndexPart, MappedVectors] = {}
        with ExitStack() as stack:
            view = stack.enter_context(database.open_for_reading(self.path / database.FILE))
            PageIndex.__init__(self, view)
            stack.enter_context(view.moment())  # whatever is added to the index meanwhile
            started, stamp = next(iter(view.query("SELECT started, stamp FROM runs")), ("", ""))
            self._stamp: str = stamp
            with RunReader.open(self.path) as reader:
                self._is_current = str(reader.stamp()) == self._stamp
                if reader.summary.started.isoformat() != started:
                    raise DifferentRunError(
                        f"the index of {self.path} belongs to an earlier run, or was never finished",
                        remedy=f"Rebuild it: pagemill index {self.path}",
                    )
            self.vectors = {
                IndexPart(Part(part).choice): msgspec.json.decode(info, type=VectorsInfo)
                for part, info in self._view.query("SELECT part, info FROM vectors ORDER BY rowid")
            }
            """The engine of the vectors, by part."""
            self.parts = [part for part in IndexPart if part is IndexPart.FULL_TEXT or part in self.vectors]
            self.spelling = {part for part, info in self.vectors.items() if info.identity.engine == DEFAULT_ENGINE}
            self.push(stack.pop_all())

    @property
    def behind(self) -> str | None:
        """The reason that the index was out of date when it was opened; None if it was current."""
        if not self._stamp:
            return "the index is incomplete: indexing was interrupted, or is still running"
        return None if self._is_current else "pages were parsed after the index was made"

    def page_ids(self) -> list[str]:
        """All pages."""
        return [page_id for (page_id,) in self._view.query("SELECT page_id FROM pages ORDER BY page")]

    def names(self, pages: Sequence[int]) -> list[str]:
        """Page ids of pages by their numbers."""
        return [self._view.one("SELECT page_id FROM pages WHERE page = ?", (page,)) for page in pages]

    def near_duplicates(self, page_id: str, *, similarity: float) -> list[str]:
        """Near-duplicates: pages with the same words, or with an image or text vector close to this page's.

        Args:
            page_id: A page of the index.
            similarity: Least cosine of two vectors.
        """
        rows = self._view.query("SELECT page, words FROM pages WHERE page_id = ?", (page_id,))
        if not rows:
            return []
        page, words = rows[0]
        same: set[int] = set()
        # Pages without words have one digest, and nothing in common.
        if words != _NO_WORDS:
            same.update(other for (other,) in self._view.query("SELECT page FROM pages WHERE words = ?", (words,)))
        for part in (IndexPart.IMAGES, IndexPart.TEXT):
            if part in self.vectors:
                (dense,) = self.vectors_of(part)
                for row in np.flatnonzero(dense.pages == page):
                    near = similarities(dense.vectors, dense.vectors[row].astype(np.float32)) >= similarity
                    same.update(map(int, dense.pages[near]))
        return self.names(sorted(same - {page}))

    def vectors_of(self, part: IndexPart) -> Iterable[MappedVectors]:
        """The vectors of a part, memory-mapped; the rows were verified when the index was built.

        Raises:
            DifferentRunError: They are not those of the index.
        """
        if part not in self._mapped:
            info = self.vectors[part]
            files = VectorPaths(self.path / FOLDER, info.part)
            statement = "SELECT stamp, pages, regions FROM vectors WHERE part = ?"
            stamp, *numbers = self._view.query(statement, (info.part,))[0]
            # `pagemill embed` may have replaced the file since: its rows would be taken for those of other pages.
            if vectors_stamp(files) != stamp:
                raise DifferentRunError(
                    f"the vectors of {info.part.plural} have changed since the index was built",
                    remedy=f"Bring it up to date: pagemill index {self.path}",
                )
            pages, regions = (np.frombuffer(array, dtype="<i8") for array in numbers)
            array = np.load(files.vectors, mmap_mode="r" if len(pages) else None, allow_pickle=False)
            self._mapped[part] = MappedVectors(np.asarray(array), pages, regions)
        return (self._mapped[part],)


def text_of(view: Database, page: int, filters: Filters = EVERYTHING) -> str:
    """The text of a page and of its descriptions, as far as the filters admit its regions."""
    statement = f"SELECT text || description FROM regions WHERE page = ?{filters.condition} ORDER BY region"
    return "\n".join(text for (text,) in view.query(statement, (page, *filters.classes)))
