"""One index of many runs: those of a server's jobs, or of the files that an assistant has had parsed.

A library is derived data: whatever is lost is read again from the runs. Each page is stored with the run and the
collection that it belongs to, and a search sees the pages of one owner only. Vectors are those of the embedded engine,
shortened and in half precision, in the same file as the words: a run comes and goes in one transaction.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.document.page import PageResult
from pagemill.embedding.base import EmbeddingInput, EngineSettings, Role, normalised
from pagemill.embedding.contents import contents
from pagemill.embedding.ngram_engine import STATISTICS, NgramEngine
from pagemill.embedding.vectors import Part
from pagemill.errors import DamagedRunError, UsageError
from pagemill.retrieval import database
from pagemill.retrieval.filtering import fitting_languages
from pagemill.retrieval.hits import EVERYTHING, IndexPart, Ranked, Rankings, SearchHit
from pagemill.retrieval.page_rows import IndexedPages, PageVersion, done_pages, languages_of_run
from pagemill.retrieval.presenting import hits_of
from pagemill.retrieval.ranking import DEPTH, reciprocal_rank_fusion, similarities
from pagemill.retrieval.spelling import without_noise
from pagemill.retrieval.tokens import match_expression
from pagemill.store.database import Database, database_errors, is_damage
from pagemill.store.files import output_errors, write_whole

if TYPE_CHECKING:
    from pagemill.store.reading import RunReader

DIMENSION = 1024
"""Components of a vector: 2 KiB a page. Not measured against the engine's 4,096."""
_ROWS = 4096
"""Vectors that are compared at a time."""
_PAGES_A_TRANSACTION = 200
_STALE = 2.0
"""Growth or shrinkage of the library after which the rarity of n-grams, which weighs queries, is computed again."""
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, owner TEXT NOT NULL, collection TEXT NOT NULL, stamp TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS runs_owner ON runs (owner, collection);
CREATE TABLE IF NOT EXISTS run_pages (
    page INTEGER PRIMARY KEY, run TEXT NOT NULL, page_id TEXT NOT NULL, vector BLOB) STRICT;
CREATE INDEX IF NOT EXISTS run_pages_run ON run_pages (run);
"""
_SCOPE = (
    "r.run IN (SELECT run FROM runs WHERE owner = ?1 AND (?2 IS NULL OR collection = ?2) AND (?3 IS NULL OR run = ?3))"
)


class LibraryHit(NamedTuple):
    """A page that was found."""

    run: str
    """The name under which its run was added."""
    page_id: str
    """Id of the page in its run."""
    found: SearchHit
    """Its ``page_id`` and ``doc_id`` begin with the name of the run."""


class Library:
    """An index of many runs. One thread may write while others search.

    Args:
        folder: Where it is stored; made when it is missing. What is damaged there, or of another version, is deleted.

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
            try:
                self._create()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                database.delete(self._path)
                self._create()

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
            owner: Who may find its pages.
            collection: The collection that it is part of.
            stamp: Kept with the run, for the caller to tell whether it has to be put again.
            stopped: Asked between two transactions whether to leave the rest for the next call.

        Returns:
            What is wrong with records that cannot be read; their pages are left out.
        """
        languages = languages_of_run(reader.summary)
        wanted = {PageVersion.of(row, prefix=f"{run}/"): row.page_id for row in done_pages(reader)}
        damages: list[str] = []
        with self._writing() as connection:
            statement = "SELECT page, p.page_id, crc, length FROM pages p JOIN run_pages r USING (page) WHERE run = ?"
            there = {PageVersion(*version): page for page, *version in connection.execute(statement, (run,))}
            for version in there.keys() - wanted.keys():
                _remove(connection, there[version])
            connection.execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, '')", (run, owner, collection))
            missing = [version for version in wanted if version not in there]
            for number, version in enumerate(missing):
                if number % _PAGES_A_TRANSACTION == 0:
                    connection.commit()
                    if stopped():
                        return damages
                damages += self._add(connection, run, reader, version, wanted[version], languages)
            connection.execute("UPDATE runs SET stamp = ? WHERE run = ?", (stamp, run))
        self._fit()
        return damages

    def _add(
        self,
        connection: sqlite3.Connection,
        run: str,
        reader: RunReader,
        version: PageVersion,
        page_id: str,
        languages: Sequence[str],
    ) -> list[str]:
        """Add a page, or return what is wrong with it if it cannot be read."""
        try:
            page = reader.page(page_id)
        except DamagedRunError as error:
            return [error.message]
        known = msgspec.structs.replace(page, page_id=version.page_id, doc_id=f"{run}/{page.doc_id}")
        if number := IndexedPages(connection).put(known, version, languages):
            row = (number, run, page.page_id, _vector(self._engine(), page))
            connection.execute("INSERT INTO run_pages VALUES (?, ?, ?, ?)", row)
        return []

    def remove(self, run: str) -> None:
        """Remove a run. Idempotent."""
        with self._writing() as connection:
            for (page,) in connection.execute("SELECT page FROM run_pages WHERE run = ?", (run,)).fetchall():
                _remove(connection, page)
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
    ) -> list[LibraryHit]:
        """Find pages by words and by spelling.

        Args:
            query: Words in any language.
            owner: Whose runs are searched.
            collection: The collection to search; None for all of the owner's.
            run: The run to search; None for all.
            languages: Codes such as ``ko``: only pages in one of them.
            top: Maximum number of pages, up to ``DEPTH``.

        Raises:
            UsageError: The query is empty, ``top`` is out of range, or a language does not exist.
        """
        if not query.strip():
            raise UsageError("the query is empty", remedy="Give words to look for.")
        if not 1 <= top <= DEPTH:
            raise UsageError(f"the limit is {top}; it can be 1 to {DEPTH:,}")
        with self._reading() as view, view.moment():
            scope: list[Any] = [owner, collection, run]
            condition = _SCOPE
            if languages:
                tags = fitting_languages(view, languages)
                condition += (
                    " AND r.page IN (SELECT page FROM pages WHERE language IN (SELECT value FROM json_each(?4)))"
                )
                scope.append(msgspec.json.encode(tags).decode())
            rankings = self._rankings(view, query, condition, scope)
            fused = reciprocal_rank_fusion([[each.page for each in ranking] for ranking in rankings.values()])
            believed = {each.page for each in rankings.get(IndexPart.FULL_TEXT, ())}
            best = without_noise(query, fused, believed, lambda page: _text(view, page), top)
            names = [view.query("SELECT run, page_id FROM run_pages WHERE page = ?", (page,))[0] for page, _ in best]
            hits = hits_of(view, query, best, rankings, EVERYTHING)
        return [LibraryHit(run, page_id, hit) for (run, page_id), hit in zip(names, hits, strict=True)]

    def _rankings(self, view: Database, query: str, condition: str, scope: list[Any]) -> Rankings:
        found: Rankings = {}
        if expression := match_expression(query):
            statement = (
                "SELECT r.page, w.rank FROM page_words w JOIN run_pages r ON r.page = w.rowid"
                f" WHERE {condition} AND page_words MATCH ?{len(scope) + 1} ORDER BY w.rank LIMIT {DEPTH}"
            )
            rows = view.query(statement, [*scope, expression])
            found[IndexPart.FULL_TEXT] = [Ranked(page, -rank, 0) for page, rank in rows]
        vector = normalised(self._engine().embed([EmbeddingInput(role=Role.QUERY, text=query)]))[0]
        statement = f"SELECT r.page, r.vector FROM run_pages r WHERE r.vector IS NOT NULL AND {condition}"
        found[IndexPart.TEXT] = _nearest(view.each(statement, scope), vector)
        return found

    def _fit(self) -> None:
        """Count again how rare n-grams are, if the library has grown or shrunk a lot."""
        with self._reading() as view:
            pages = view.one("SELECT count(*) FROM run_pages")
            counted = self._counted()
            if counted and counted / _STALE < pages < counted * _STALE:
                return
            numbers = [page for (page,) in view.query("SELECT page FROM run_pages")]
            self._engine().fit(_text(view, page) for page in numbers)
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

    def _create(self) -> None:
        with database.open_for_writing(self._path) as connection:
            connection.executescript(_TABLES)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), database.open_for_writing(self._path) as connection, connection:
            yield connection

    def _reading(self) -> Database:
        return database.open_for_reading(self._path)

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return database_errors(self._path, repair=f"Delete {self._folder}: it is made again.")


def _remove(connection: sqlite3.Connection, page: int) -> None:
    IndexedPages(connection).remove(page)
    connection.execute("DELETE FROM run_pages WHERE page = ?", (page,))


def _vector(engine: NgramEngine, page: PageResult) -> bytes | None:
    """The vector of a page's text; None without text."""
    for content in contents(page, Part.TEXT, images=False):
        made = normalised(engine.embed([EmbeddingInput(role=Role.PASSAGE, text=content.text)]))[0]
        return bytes(made.astype("<f2").tobytes())
    return None


def _text(view: Database, page: int) -> str:
    texts = view.query("SELECT text || description FROM regions WHERE page = ? ORDER BY region", (page,))
    return "\n".join(text for (text,) in texts)


def _nearest(rows: Iterator[tuple[int, bytes]], query: NDArray[np.float32]) -> list[Ranked]:
    """The pages whose vectors are nearest, best first."""
    best: list[tuple[float, int]] = []
    while batch := list(islice(rows, _ROWS)):
        vectors = np.frombuffer(b"".join(vector for _, vector in batch), dtype="<f2").reshape(len(batch), -1)
        scores = similarities(np.ascontiguousarray(vectors), query)
        best += [(float(score), -page) for score, (page, _) in zip(scores, batch, strict=True) if score > 0]
        best = sorted(best, reverse=True)[:DEPTH]
    return [Ranked(-page, score, 0) for score, page in best]
