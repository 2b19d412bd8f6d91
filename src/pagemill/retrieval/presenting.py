"""Found pages as hits: page, best region, and snippet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pagemill.retrieval.hits import Filters, IndexPart, PartRank, Ranked, Rankings, SearchHit
from pagemill.retrieval.marking import Marked, Snippet, matches, snippet
from pagemill.retrieval.tokens import match_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.retrieval.reading import IndexReader

_Box = tuple[int, int, int, int]


class _ShownRegion(NamedTuple):
    number: int | None
    label: str | None
    bbox: _Box | None
    crop: str | None
    snippet: Snippet


def hits_of(
    index: IndexReader, query: str | None, fused: Sequence[tuple[int, float]], rankings: Rankings, filters: Filters
) -> list[SearchHit]:
    """Describe the pages that were found.

    Args:
        index: The index.
        query: Words to mark.
        fused: Numbers of pages and their scores, best first.
        rankings: The ranking of each part.
        filters: Regions of other labels are not shown.
    """
    places = {
        part: {ranked.page: (rank, ranked) for rank, ranked in enumerate(ranking, start=1)}
        for part, ranking in rankings.items()
    }
    marked = _marked(index, match_expression(query or ""), [page for page, _ in fused], filters)
    hits = []
    for rank, (page, score) in enumerate(fused, start=1):
        stands = {part: places[part][page] for part in places if page in places[part]}
        region = _region(index, page, stands, marked)
        page_id, doc_id, source, number, language = index.query(
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


def _marked(index: IndexReader, expression: str | None, pages: list[int], filters: Filters) -> dict[int, Marked]:
    """The best region with words of the query, for each page."""
    if expression is None or not pages:
        return {}
    marks = ", ".join("?" * len(pages))
    labels = f" AND label IN ({', '.join('?' * len(filters.labels))})" if filters.labels else ""
    texts = index.query(
        f"SELECT id, text, page FROM regions WHERE page IN ({marks}){labels}",
        (*pages, *filters.classes),
    )
    page_of = {number: page for number, _, page in texts}
    best: dict[int, Marked] = {}
    for found in matches(((number, text) for number, text, _ in texts), _telling(index, expression)):
        best.setdefault(page_of[found.key], found)
    return best


def _telling(index: IndexReader, expression: str) -> str:
    """The words of a query that BM25 counts: not on more than half of all pages."""
    most = index.query("SELECT count(*) FROM pages")[0][0] / 2
    words = expression.split(" OR ")
    telling = [
        word
        for word in words
        if index.query("SELECT count(*) FROM page_words WHERE page_words MATCH ?", (word,))[0][0] <= most
    ]
    return " OR ".join(telling or words)


def _region(
    index: IndexReader, page: int, stands: dict[IndexPart, tuple[int, Ranked]], marked: dict[int, Marked]
) -> _ShownRegion:
    """The region to show: the one whose part ranks the page higher, words before vectors."""
    by_words = marked.get(page)
    dense = stands.get(IndexPart.REGIONS)
    words = stands.get(IndexPart.FULL_TEXT)
    number = by_words.key if by_words else 0
    if dense and (not by_words or not words or dense[0] < words[0]):
        number = dense[1].region
    if not number:
        first = index.query("SELECT text FROM regions WHERE page = ? ORDER BY region LIMIT 1", (page,))
        return _ShownRegion(None, None, None, None, snippet(first[0][0] if first else "", ()))
    place, label, bbox, crop, text = index.query(
        "SELECT region, label, bbox, crop, text FROM regions WHERE id = ?", (number,)
    )[0]
    hits = by_words.hits if by_words and by_words.key == number else ()
    return _ShownRegion(place, label, msgspec.json.decode(bbox, type=_Box), crop, snippet(text, hits))
