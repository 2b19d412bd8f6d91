"""Searching an index: each part ranks the pages, the ranks are fused, the best are shown with the place of the hit."""

from __future__ import annotations

import hashlib
import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import numpy as np

from pagemill.embedding.vectors import FOLDER, VectorPaths, VectorsInfo
from pagemill.errors import DamagedRunError, DifferentRunError, UsageError
from pagemill.retrieval import database
from pagemill.retrieval.building import records_stamp, vectors_stamp
from pagemill.retrieval.fusion import reciprocal_rank_fusion
from pagemill.retrieval.hits import Filters, IndexPart, PartRank, Ranked, Rankings, SearchHit
from pagemill.retrieval.languages import may_be
from pagemill.retrieval.marking import Marked, Snippet, matches, snippet
from pagemill.retrieval.similarity import best_first, similarities
from pagemill.retrieval.tokens import match_expression
from pagemill.store.reading import RunReader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

DEPTH = 1000
"""Pages of each part that take part in the fusion."""
_REGIONS_A_PAGE = 8
"""Rows of regions that are looked at for each page wanted, at first: on average a page has that many."""
_EXAMPLES = 5
_NO_WORDS = hashlib.sha256(b"").digest()


class _Dense(NamedTuple):
    info: VectorsInfo
    vectors: NDArray[Any]
    pages: NDArray[np.int64]
    regions: NDArray[np.int64]


class _Allowed(NamedTuple):
    """What the filters leave; None where they say nothing."""

    pages: NDArray[np.bool_] | None
    """By the number of a page: whether it may be found."""
    regions: NDArray[np.int64] | None
    """By the number of a region: its page, 0 where it may not be found."""

    def rows(self, dense: _Dense) -> NDArray[np.bool_] | None:
        wanted = None
        if self.pages is not None:
            wanted = self.pages[dense.pages]
        if self.regions is not None:
            labels = self.regions[dense.regions] > 0
            wanted = labels if wanted is None else wanted & labels
        return wanted


class SearchIndex:
    """The index of a run directory as it is when it is opened. A context manager; for one thread at a time."""

    def __init__(self, out: Path, stack: ExitStack) -> None:
        """Use :meth:`open`."""
        self.path = out
        self._stack = stack
        self._file = out / database.FILE
        self._connection = database.open_for_reading(self._file)
        stack.callback(self._connection.close)
        self._opened: dict[IndexPart, _Dense] = {}
        with database.index_errors(self._file):
            self._connection.execute("BEGIN")  # all is of one moment, whatever is put into the index meanwhile
            state = self._connection.execute("SELECT * FROM state").fetchone()
            stored = self._connection.execute("SELECT part, info, size, content FROM vectors").fetchall()
        if state is None:
            raise DamagedRunError(f"{self._file} was never finished", remedy=f"Go on with it: pagemill index {out}")
        self._started, *stamp, complete = state
        self._stamp, self._complete = tuple(stamp), bool(complete)
        parts = {part.vectors: part for part in IndexPart if part.vectors}
        self._stored = {
            parts[part]: (msgspec.json.decode(info, type=VectorsInfo), (size, content))
            for part, info, size, content in stored
        }

    @classmethod
    def open(cls, out: str | Path) -> SearchIndex:
        """Open the index of a run directory.

        Raises:
            MissingInputError: There is none.
            DifferentRunError: The run was started over since.
            DamagedRunError: It is not whole.
            OutputError: It cannot be read.
        """
        with ExitStack() as stack:
            index = cls(Path(out), stack)
            index._require_same_run()
            index._stack = stack.pop_all()
        return index

    @property
    def parts(self) -> list[IndexPart]:
        """What there is to rank by."""
        return [part for part in IndexPart if part is IndexPart.FULL_TEXT or part in self._stored]

    @property
    def vectors(self) -> dict[IndexPart, VectorsInfo]:
        """Who made the vectors, by part."""
        return {part: info for part, (info, _) in self._stored.items()}

    @property
    def behind(self) -> str | None:
        """Why the index is not up to date; None when it is."""
        if not self._complete:
            return "the index is not complete: making it was cut off, or goes on"
        if records_stamp(self.path) != self._stamp:
            return "pages were parsed after the index was made"
        return None

    def page_ids(self) -> list[str]:
        """All pages."""
        return [page_id for (page_id,) in self._query("SELECT page_id FROM pages ORDER BY page")]

    def search(
        self,
        query: str | None,
        *,
        vectors: dict[IndexPart, NDArray[np.float32]] | None = None,
        parts: Collection[IndexPart] | None = None,
        filters: Filters | None = None,
        top: int = 10,
    ) -> list[SearchHit]:
        """Find pages.

        Args:
            query: Words to look for; None to search by vectors alone.
            vectors: The query as a vector, for each part of vectors that is to be searched.
            parts: Which ones; None for all that the query can be put to.
            filters: Which pages and regions may be found.
            top: Most pages to give.

        Raises:
            DifferentRunError: The vectors are not those that the index was made with.
        """
        rankings = self.rankings(query, vectors=vectors, parts=parts, filters=filters, depth=max(DEPTH, top))
        fused = reciprocal_rank_fusion([[ranked.page for ranked in ranking] for ranking in rankings.values()])
        return self._shown(query, fused[:top], rankings, filters or Filters())

    def rankings(
        self,
        query: str | None,
        *,
        vectors: dict[IndexPart, NDArray[np.float32]] | None = None,
        parts: Collection[IndexPart] | None = None,
        filters: Filters | None = None,
        depth: int = DEPTH,
    ) -> Rankings:
        """The ranking of each part, before they are fused."""
        vectors = vectors or {}
        chosen = [part for part in self.parts if parts is None or part in parts]
        allowed = self._allowed(filters or Filters())
        found: Rankings = {}
        for part in chosen:
            if part is IndexPart.FULL_TEXT:
                expression = match_expression(query or "")
                if expression:
                    found[part] = self._by_words(expression, allowed, filters.classes if filters else [], depth)
            elif part in vectors and (part is IndexPart.REGIONS or allowed.regions is None):
                found[part] = self._by_vectors(part, vectors[part], allowed, depth)
        return found

    def fused(self, rankings: Rankings) -> list[int]:
        """Numbers of the pages, the best first."""
        return [page for page, _ in reciprocal_rank_fusion([[r.page for r in each] for each in rankings.values()])]

    def names(self, pages: Sequence[int]) -> list[str]:
        """Page ids of pages by their numbers."""
        known = dict(self._query("SELECT page, page_id FROM pages")) if len(pages) > 500 else {}
        return [
            known.get(page) or self._query("SELECT page_id FROM pages WHERE page = ?", (page,))[0][0] for page in pages
        ]

    def near_duplicates(self, page_id: str, *, similarity: float) -> list[str]:
        """Pages that say the same words, or whose image or text has a vector very much like this page's.

        Args:
            page_id: A page of the index.
            similarity: Least cosine of two vectors.
        """
        rows = self._query("SELECT page, words FROM pages WHERE page_id = ?", (page_id,))
        if not rows:
            return []
        page, words = rows[0]
        same = {other for (other,) in self._query("SELECT page FROM pages WHERE words = ?", (words,))}
        if words == _NO_WORDS:
            same.clear()
        for part in (IndexPart.IMAGES, IndexPart.TEXT):
            if part in self._stored:
                dense = self._dense(part)
                for row in np.flatnonzero(dense.pages == page):
                    near = similarities(dense.vectors, dense.vectors[row].astype(np.float32)) >= similarity
                    same.update(map(int, dense.pages[near]))
        return self.names(sorted(same - {page}))

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        self._opened.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _require_same_run(self) -> None:
        with RunReader.open(self.path) as reader:
            if reader.summary.started.isoformat() != self._started:
                raise DifferentRunError(
                    f"the index of {self.path} is of an earlier run", remedy=f"Make it anew: pagemill index {self.path}"
                )

    def _query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with database.index_errors(self._file):
            return self._connection.execute(statement, parameters).fetchall()

    def _each(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        with database.index_errors(self._file):
            yield from self._connection.execute(statement, parameters)

    def _dense(self, part: IndexPart) -> _Dense:
        """The vectors of a part, which were checked row by row when the index was made, mapped into memory."""
        if part not in self._opened:
            info, stamp = self._stored[part]
            files = VectorPaths(self.path / FOLDER, info.part)
            path = files.vectors
            if not path.exists() or not files.ids.exists() or vectors_stamp(files) != stamp:
                raise DifferentRunError(
                    f"the vectors of {info.part.plural} are not those that the index was made with",
                    remedy=f"Bring it up to date: pagemill index {self.path}",
                )
            rows = self._query("SELECT pages, regions FROM vectors WHERE part = ?", (info.part,))[0]
            pages, regions = (np.frombuffer(row, dtype="<i8") for row in rows)
            if len(pages):
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            else:
                array = np.empty((0, info.dimension), dtype=info.dtype)
            if array.shape != (len(pages), info.dimension):
                raise DamagedRunError(f"{path} does not fit the index", remedy=f"Run: pagemill index {self.path}")
            self._opened[part] = _Dense(info, np.asarray(array), pages, regions)
        return self._opened[part]

    def _allowed(self, filters: Filters) -> _Allowed:
        pages = regions = None
        if filters.documents or filters.pages or filters.languages:
            patterns = [(column, re.compile(pattern)) for column, pattern in filters.patterns()]
            languages = {language.lower() for language in filters.languages}
            pages = np.zeros(self._highest("pages", "page") + 1, dtype=bool)
            for page, doc_id, page_id, language in self._each("SELECT page, doc_id, page_id, language FROM pages"):
                values = {"doc_id": doc_id, "page_id": page_id}
                fits = all(pattern.match(values[column]) for column, pattern in patterns)
                pages[page] = fits and (not languages or any(may_be(language, each) for each in languages))
            if languages and not pages.any():
                self._refuse_unknown("language", "pages", languages)
            if not pages.any():
                self._refuse_unfitting(patterns, filters)
        if filters.labels:
            regions = np.zeros(self._highest("regions", "id") + 1, dtype=np.int64)
            marks = ", ".join("?" * len(filters.labels))
            found = np.array(
                self._query(f"SELECT id, page FROM regions WHERE label IN ({marks})", filters.classes), dtype=np.int64
            ).reshape(-1, 2)
            regions[found[:, 0]] = found[:, 1]
            if not len(found):
                self._refuse_unknown("label", "regions", filters.classes)
        return _Allowed(pages, regions)

    def _refuse_unfitting(self, patterns: list[tuple[str, re.Pattern[str]]], filters: Filters) -> None:
        """Raise an error where the patterns of one filter fit nothing at all."""
        for (column, pattern), asked in zip(patterns, filter(None, (filters.documents, filters.pages)), strict=True):
            if not any(pattern.match(name) for name in self._names(column)):
                some = ", ".join(list(dict.fromkeys(self._names(column)))[:_EXAMPLES])
                raise UsageError(
                    f"no {column} in the index fits {', '.join(asked)}", remedy=f"There are: {some or 'none'}, ..."
                )

    def _names(self, column: str) -> Iterator[str]:
        return (name for (name,) in self._each(f"SELECT {column} FROM pages ORDER BY page"))

    def _refuse_unknown(self, column: str, table: str, asked: Collection[str]) -> None:
        """Raise an error that names what there is, where a filter names nothing that is there."""
        counts = self._query(f"SELECT {column}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC")
        known = {value.lower() for value, _ in counts}
        if not known & {value.lower() for value in asked}:
            there = ", ".join(f"{value} ({count})" for value, count in counts)
            raise UsageError(
                f"nothing in the index has the {column} {', '.join(sorted(asked))}",
                remedy=f"There are: {there or 'none'}.",
            )

    def _highest(self, table: str, column: str) -> int:
        return self._query(f"SELECT max({column}) FROM {table}")[0][0] or 0

    def _by_words(self, expression: str, allowed: _Allowed, labels: Sequence[str], depth: int) -> list[Ranked]:
        table = "page_words" if allowed.regions is None else "region_words"
        if labels:
            wanted = " OR ".join(f'"{database.label_token(label)}"' for label in labels)
            expression = f"{{label}} : ({wanted}) AND {{words}} : ({expression})"
        statement = f"SELECT rowid, rank FROM {table} WHERE {table} MATCH ? ORDER BY rank"
        if allowed.pages is None and allowed.regions is None:
            statement += f" LIMIT {int(depth)}"
        found: dict[int, Ranked] = {}
        for number, rank in self._each(statement, (expression,)):
            page = number if allowed.regions is None else int(allowed.regions[number])
            if page and (allowed.pages is None or allowed.pages[page]):
                found.setdefault(page, Ranked(page, -rank, 0 if allowed.regions is None else number))
            if len(found) == depth:
                break
        return list(found.values())

    def _by_vectors(self, part: IndexPart, query: NDArray[np.float32], allowed: _Allowed, depth: int) -> list[Ranked]:
        dense = self._dense(part)
        if query.shape != (dense.info.dimension,):
            raise ValueError(f"a query of shape {query.shape} for vectors of dimension {dense.info.dimension}")
        scores = similarities(dense.vectors, query)
        wanted = allowed.rows(dense)
        count = depth * (_REGIONS_A_PAGE if part is IndexPart.REGIONS else 1)
        while True:
            rows = best_first(scores, wanted, count)
            found: dict[int, Ranked] = {}
            for row in rows.tolist():
                page = int(dense.pages[row])
                found.setdefault(page, Ranked(page, float(scores[row]), int(dense.regions[row])))
                if len(found) == depth:
                    break
            if len(found) == depth or len(rows) < count:
                break
            count *= _REGIONS_A_PAGE  # pages of very many regions
        return list(found.values())

    def _shown(
        self, query: str | None, fused: list[tuple[int, float]], rankings: Rankings, filters: Filters
    ) -> list[SearchHit]:
        places = {
            part: {ranked.page: (rank, ranked) for rank, ranked in enumerate(ranking, start=1)}
            for part, ranking in rankings.items()
        }
        marked = self._marked(match_expression(query or ""), [page for page, _ in fused], filters)
        hits = []
        for rank, (page, score) in enumerate(fused, start=1):
            stands = {part: places[part][page] for part in places if page in places[part]}
            region = self._region(page, stands, marked)
            page_id, doc_id, source, number, language = self._query(
                "SELECT page_id, doc_id, source, page_number, language FROM pages WHERE page = ?", (page,)
            )[0]
            hits.append(
                SearchHit(
                    rank=rank,
                    score=score,
                    page_id=page_id,
                    doc_id=doc_id,
                    source=source,
                    page_number=number,
                    language=language,
                    region=region.number,
                    label=region.label,
                    bbox_2d=region.bbox,
                    crop=region.crop,
                    snippet=region.snippet.text,
                    marks=region.snippet.marks,
                    parts={part: PartRank(place, ranked.score) for part, (place, ranked) in stands.items()},
                )
            )
        return hits

    def _marked(self, expression: str | None, pages: list[int], filters: Filters) -> dict[int, Marked]:
        """The regions of some pages that hold words of the query, the best of each page."""
        if expression is None or not pages:
            return {}
        marks = ", ".join("?" * len(pages))
        labels = f" AND label IN ({', '.join('?' * len(filters.labels))})" if filters.labels else ""
        texts = self._query(
            f"SELECT id, text, page FROM regions WHERE page IN ({marks}){labels}",
            (*pages, *filters.classes),
        )
        page_of = {number: page for number, _, page in texts}
        best: dict[int, Marked] = {}
        for found in matches(((number, text) for number, text, _ in texts), self._telling(expression)):
            best.setdefault(page_of[found.key], found)
        return best

    def _telling(self, expression: str) -> str:
        """The words of a query that tell pages apart, as those that BM25 counts: not on more than half of all pages."""
        most = self._query("SELECT count(*) FROM pages")[0][0] / 2
        words = expression.split(" OR ")
        telling = [
            word
            for word in words
            if self._query("SELECT count(*) FROM page_words WHERE page_words MATCH ?", (word,))[0][0] <= most
        ]
        return " OR ".join(telling or words)

    def _region(
        self, page: int, stands: dict[IndexPart, tuple[int, Ranked]], marked: dict[int, Marked]
    ) -> _ShownRegion:
        """The region to show: the one whose part ranks the page higher, words before vectors."""
        by_words = marked.get(page)
        dense = stands.get(IndexPart.REGIONS)
        words = stands.get(IndexPart.FULL_TEXT)
        number = by_words.key if by_words else 0
        if dense and (not by_words or not words or dense[0] < words[0]):
            number = dense[1].region
        if not number:
            first = self._query("SELECT text FROM regions WHERE page = ? ORDER BY region LIMIT 1", (page,))
            return _ShownRegion(None, None, None, None, snippet(first[0][0] if first else "", ()))
        index, label, bbox, crop, text = self._query(
            "SELECT region, label, bbox, crop, text FROM regions WHERE id = ?", (number,)
        )[0]
        hits = by_words.hits if by_words and by_words.key == number else ()
        return _ShownRegion(index, label, msgspec.json.decode(bbox, type=_Box), crop, snippet(text, hits))


_Box = tuple[int, int, int, int]


class _ShownRegion(NamedTuple):
    number: int | None
    label: str | None
    bbox: _Box | None
    crop: str | None
    snippet: Snippet
