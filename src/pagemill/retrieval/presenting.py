"""Found pages as hits: page, best region, and snippet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.retrieval.hits import Filters, IndexPart, PartRank, Ranked, Rankings, SearchHit
from pagemill.retrieval.marking import Marked, matches, snippet
from pagemill.retrieval.tokens import match_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.store.database import Database


def hits_of(
    view: Database, query: str | None, fused: Sequence[tuple[int, float]], rankings: Rankings, filters: Filters
) -> list[SearchHit]:
    """Describe the pages that were found.

    Args:
        view: The index.
        query: Words to mark.
        fused: Numbers of pages and their scores, best first.
        rankings: The ranking of each part.
        filters: Regions of other labels are not shown.
    """
    places = {
        part: {ranked.page: (rank, ranked) for rank, ranked in enumerate(ranking, start=1)}
        for part, ranking in rankings.items()
    }
    marked = _marked(view, match_expression(query or ""), [page for page, _ in fused], filters)
    hits = []
    for rank, (page, score) in enumerate(fused, start=1):
        stands = {part: places[part][page] for part in places if page in places[part]}
        page_id, doc_id, source, number, language = view.query(
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
                parts={part: PartRank(place, ranked.score) for part, (place, ranked) in stands.items()},
                **_region(view, page, stands, marked),
            )
        )
    return hits


def _marked(view: Database, expression: str | None, pages: list[int], filters: Filters) -> dict[int, Marked]:
    """The best region with words of the query, for each page."""
    if expression is None or not pages:
        return {}
    marks = ", ".join("?" * len(pages))
    labels = f" AND label IN ({', '.join('?' * len(filters.labels))})" if filters.labels else ""
    texts = view.query(
        f"SELECT id, text, page FROM regions WHERE page IN ({marks}){labels}",
        (*pages, *filters.classes),
    )
    page_of = {number: page for number, _, page in texts}
    best: dict[int, Marked] = {}
    for found in matches(((number, text) for number, text, _ in texts), _telling(view, expression)):
        best.setdefault(page_of[found.key], found)
    return best


def _telling(view: Database, expression: str) -> str:
    """The words of a query that BM25 counts: not on more than half of all pages."""
    most = view.query("SELECT count(*) FROM pages")[0][0] / 2
    words = expression.split(" OR ")
    telling = [
        word
        for word in words
        if view.query("SELECT count(*) FROM page_words WHERE page_words MATCH ?", (word,))[0][0] <= most
    ]
    return " OR ".join(telling or words)


def _region(
    view: Database, page: int, stands: dict[IndexPart, tuple[int, Ranked]], marked: dict[int, Marked]
) -> dict[str, Any]:
    """What a hit says of the region to show: the one whose part ranks the page higher, words before vectors."""
    by_words = marked.get(page)
    dense = stands.get(IndexPart.REGIONS)
    words = stands.get(IndexPart.FULL_TEXT)
    number = by_words.key if by_words else 0
    if dense and (not by_words or not words or dense[0] < words[0]):
        number = dense[1].region
    region = label = bbox = crop = None
    if number:
        statement = "SELECT region, label, bbox, crop, text FROM regions WHERE id = ?"
        region, label, bbox, crop, text = view.query(statement, (number,))[0]
        bbox = tuple(msgspec.json.decode(bbox))
    else:
        first = view.query("SELECT text FROM regions WHERE page = ? ORDER BY region LIMIT 1", (page,))
        text = first[0][0] if first else ""
    shown = snippet(text, by_words.hits if by_words and by_words.key == number else ())
    return {
        "region": region,
        "label": label,
        "bbox_2d": bbox,
        "crop": crop,
        "snippet": shown.text,
        "marks": shown.marks,
    }
