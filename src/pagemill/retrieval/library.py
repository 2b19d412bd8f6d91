"""One index of many runs: those of a server's jobs, or of the files that an assistant has had parsed.

A library is derived data: whatever is lost is read again from the runs. Each page is stored with the run and the
collection that it belongs to, and a search sees the pages of one owner only. Vectors are those of the embedded engine,
shortened and in half precision, in the same file as the words: a run comes and goes in one transaction.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np

from pagemill.document.page import PageResult
from pagemill.embedding.base import EmbeddingInput, EngineSettings, Role, normalised
from pagemill.embedding.contents import contents
from pagemill.embedding.ngram_engine import STATISTICS, NgramEngine
from pagemill.embedding.vectors import Part
from pagemill.errors import DamagedRunError, UsageError
from pagemill.retrieval import database
from pagemill.retrieval.building import PageChanges
from pagemill.retrieval.filtering import Allowed, fitting_languages
from pagemill.retrieval.hits import Filters, IndexPart, SearchHit
from pagemill.retrieval.index import MappedVectors, PageIndex, text_of
from pagemill.retrieval.page_rows import IndexedPages
from pagemill.retrieval.ranking import DEPTH
from pagemill.store.database import Database, database_errors
from pagemill.store.files import output_errors, write_whole
from pagemill.store.reading import RunReader

DIMENSION = 1024
"""Components of a vector: 2 KiB a page. Not measured against the engine's 4,096."""
_ROWS = 4096
"""Vectors that are compared at a time."""
_STALE = 2.0
"""Growth or shrinkage of the library after which the rarity of n-grams, which weighs queries, is computed again."""
_SCOPE = (
    "run IN (SELECT run FROM runs WHERE owner = ?1 AND (?2 IS NULL OR collection = ?2) AND (?3 IS NULL OR run = ?3))"
)


class _Scope(PageIndex):
    """The pages of an owner, a collection, or a run, with the vectors that are in the index."""

    def __init__(
        self, view: Database, owner: str, collection: str | None, run: str | None, languages: Sequence[str]
    ) -> None:
        super().__init__(view)
        self.parts, self.spelling = [IndexPart.TEXT, IndexPart.FULL_TEXT], (IndexPart.TEXT,)
        self._names = (owner, collection, run)
        self._tags = fitting_languages(view, languages) if languages else None

    def allowed(self, filters: Filters) -> Allowed:
        """The pages of the scope, in one of the languages."""
        tags = None if self._tags is None else msgspec.json.encode(self._tags).decode()
        condition = f"{_SCOPE} AND (?4 IS NULL OR language IN (SELECT value FROM json_each(?4)))"
        found = self._view.query(f"SELECT page FROM pages WHERE {condition}", (*self._names, tags))
        pages = np.zeros(self._view.one("SELECT ifnull(max(page), 0) FROM pages") + 1, dtype=np.int64)
        numbers = np.array(found, dtype=np.int64).ravel()
        pages[numbers] = numbers
        return Allowed(pages, None)

    def vectors_of(self, part: IndexPart) -> Iterator[MappedVectors]:
        """The vectors of the scope, ``_ROWS`` at a time."""
        statement = f"SELECT page, vector FROM pages WHERE {_SCOPE} AND vector IS NOT NULL ORDER BY page"
        rows = self._view.each(statement, self._names)
        while batch := list(islice(rows, _ROWS)):
            vectors = np.frombuffer(b"".join(vector for _, vector in batch), dtype="<f2").reshape(len(batch), -1)
            pages = np.array([page for page, _ in batch], dtype=np.int64)
            yield MappedVectors(np.ascontiguousarray(vectors), pages, np.zeros_like(pages))


class Library:
    """An index of many runs. One thread may write while others search.

    Args:
        folder: Its folder; created if missing. Damaged files and those of other versions are deleted.

    Raises:
        OutputError: It cannot be written.
        MissingDependencyError: This SQLite has no full-text search.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / database.FILE
        self._loaded: tuple[int, NgramEngine] | None = None
        with output_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            database.rebuilt_if_damaged(self._path, self._create)

    def runs(self) -> dict[str, str]:
        """The runs of the library, each with the stamp with which it was added."""
        with self._reading() as view:
            return dict(view.query("SELECT run, stamp FROM runs"))

    def put(
        self,
        run: str,
        reader: RunReader,
        *,
        owner: str,
        collection: str,
        stamp: str,
        stopped: Callable[[], bool] = lambda: False,
    ) -> list[str]:
        """Add a run, or bring it up to date: only new and changed pages are read.

        Pages are added in several transactions. The stamp is stored with the last one: a run that was put in part has
        another one, and is completed by the next call.

        Args:
            run: Its name in the library, without ``/``.
            reader: The run, open for reading.
            owner: Owner, who may find its pages.
            collection: The collection that it is part of.
            stamp: Kept with the run, so that the caller knows whether it has to be put again.
            stopped: Asked between two transactions whether to leave the rest for the next call.

        Returns:
            What is wrong with records that cannot be read; their pages are left out.
        """
        with self._errors(), database.open_for_writing(self._path) as connection:
            changes = PageChanges(connection, reader, run, owner, collection)
            if changes.apply(vector=self._vector, stopped=stopped):
                with connection:
                    connection.execute("UPDATE runs SET stamp = ? WHERE run = ?", (stamp, run))
        # After the run is stored: its words can be found even if counting is interrupted.
        self._fit()
        return changes.damages

    def remove(self, run: str) -> None:
        """Remove a run. Idempotent."""
        with self._errors(), database.open_for_writing(self._path) as connection, connection:
            for (page,) in connection.execute("SELECT page FROM pages WHERE run = ?", (run,)).fetchall():
                IndexedPages(connection, run).remove(page)
            connection.execute("DELETE FROM runs WHERE run = ?", (run,))

    def search(
        self,
        query: str,
        *,
        owner: str,
        collection: str | None = None,
        run: str | None = None,
        languages: Sequence[str] = (),
        top: int = 10,
    ) -> list[SearchHit]:
        """Find pages by words and by spelling.

        Args:
            query: Words in any language.
            owner: Owner of the runs to search.
            collection: The collection to search; None for all of the owner's.
            run: The run to search; None for all.
            languages: Codes such as ``ko``: only pages in one of them.
            top: Maximum number of pages, up to ``DEPTH``.

        Raises:
            UsageError: The query is empty, ``top`` is out of range, or a language does not exist.
        """
        if not query.strip():
            raise UsageError("the query is empty", remedy="Pass words to search for.")
        if not 1 <= top <= DEPTH:
            raise UsageError(f"the limit is {top}; it must be 1 to {DEPTH:,}")
        asked = EmbeddingInput(role=Role.QUERY, text=query)
        vectors = {IndexPart.TEXT: normalised(self._engine().embed([asked]))[0]}
        with self._reading() as view, view.moment():
            return _Scope(view, owner, collection, run, languages).search(query, vectors=vectors, top=top)

    def _fit(self) -> None:
        """Recompute the rarity of n-grams, if the library has grown or shrunk much."""
        with self._reading() as view:
            pages = view.one("SELECT count(*) FROM pages")
            counted = self._counted()
            # Twice as many pages change the weight of an n-gram little, and counting reads all texts.
            if counted and counted / _STALE < pages < counted * _STALE:
                return
            numbers = [page for (page,) in view.query("SELECT page FROM pages")]
            self._engine().fit(text_of(view, page) for page in numbers)
        write_whole(self._fitted, [str(pages).encode()])

    def _counted(self) -> int:
        """Pages of which the rarity of n-grams was computed; 0 if it was not."""
        with contextlib.suppress(OSError, ValueError):
            if (self._folder / STATISTICS).exists():
                return int(self._fitted.read_text())
        return 0

    @property
    def _fitted(self) -> Path:
        return self._folder / "fitted"

    def _engine(self) -> NgramEngine:
        """The engine with the statistics as they are on the disk now."""
        path = self._folder / STATISTICS
        # Another process may have counted again.
        version = path.stat().st_mtime_ns if path.exists() else 0
        if self._loaded is None or self._loaded[0] != version:
            settings = EngineSettings(folder=self._folder, dimension=DIMENSION)
            try:
                self._loaded = version, NgramEngine(settings)
            except DamagedRunError:  # counted again by the next put
                with output_errors(path):
                    path.unlink()
                self._loaded = 0, NgramEngine(settings)
        return self._loaded[1]

    def _vector(self, page: PageResult) -> bytes | None:
        """The vector of a page's text; None without text."""
        for content in contents(page, Part.TEXT, images=False):
            made = normalised(self._engine().embed([EmbeddingInput(role=Role.PASSAGE, text=content.text)]))[0]
            return bytes(made.astype("<f2").tobytes())
        return None

    def _create(self) -> None:
        with database.open_for_writing(self._path):
            pass

    def _reading(self) -> Database:
        return database.open_for_reading(self._path)

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return database_errors(self._path, repair=f"Delete {self._folder}: it is made again.")
