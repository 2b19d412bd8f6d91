"""Found pages as hits: page, best region, and snippet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.retrieval.hits import Filters, IndexPart, PartRank, Ranked, Rankings, SearchHit
from pagemill.retrieval.marking import matches, snippet
from pagemill.retrieval.tokens import Token, match_expression

if TYPE_CHECKING:
    from pagemill.store.database import Database

_TEXT = "text || description"
_OF_PAGE = ("run", "page_id", "doc_id", "source", "page_number", "language")


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
        row = view.query(f"SELECT {', '.join(_OF_PAGE)} FROM pages WHERE page = ?", (page,))[0]
        hits.append(
            SearchHit(
                rank=rank,
                score=score,
                parts={part: PartRank(place, ranked.score) for part, (place, ranked) in stands.items()},
                **dict(zip(_OF_PAGE, row, strict=True)),
                **_region(view, page, stands, marked.get(page)),
            )
        )
    return hits


def _marked(
    view: Database, expression: str | None, pages: list[int], filters: Filters
) -> dict[int, tuple[int, list[Token]]]:
    """The best region with words of the query and these words in it, for each page."""
    if expression is None or not pages:
        return {}
    texts = view.query(
        f"SELECT id, {_TEXT}, page FROM regions WHERE page IN ({', '.join(map(str, pages))}){filters.condition}",
        filters.classes,
    )
    page_of = {number: page for number, _, page in texts}
    best: dict[int, tuple[int, list[Token]]] = {}
    for number, hits in matches(((number, text) for number, text, _ in texts), _distinctive(view, expression)).items():
        best.setdefault(page_of[number], (number, hits))
    return best


def _distinctive(view: Database, expression: str) -> str:
    """The words of a query that BM25 counts: not on more than half of all pages."""
    most = view.query("SELECT count(*) FROM pages")[0][0] / 2
    words = expression.split(" OR ")
    distinctive = [
        word
        for word in words
        if view.query("SELECT count(*) FROM page_words WHERE page_words MATCH ?", (word,))[0][0] <= most
    ]
    return " OR ".join(distinctive or words)


def _region(
    view: Database, page: int, stands: dict[IndexPart, tuple[int, Ranked]], marked: tuple[int, list[Token]] | None
) -> dict[str, Any]:
    """The region of a hit to show: the one whose part ranks the page higher, words before vectors."""
    number, hits = marked or (0, [])
    dense, words = stands.get(IndexPart.REGIONS) or stands.get(IndexPart.CHUNKS), stands.get(IndexPart.FULL_TEXT)
    # Words can be shown in the snippet; a vector's region only where it ranks the page higher.
    if dense and dense[1].region not in (0, number) and (not number or not words or dense[0] < words[0]):
        number, hits = dense[1].region, []
    about: dict[str, Any] = dict.fromkeys(("region", "label", "bbox_2d", "crop"))
    if number:
        *values, text = view.query(f"SELECT region, label, bbox, crop, {_TEXT} FROM regions WHERE id = ?", (number,))[0]
        about = dict(zip(about, values, strict=True))
        about["bbox_2d"] = tuple(msgspec.json.decode(about["bbox_2d"]))
    else:
        text = view.one(f"SELECT {_TEXT} FROM regions WHERE page = ? ORDER BY region LIMIT 1", (page,)) or ""
    shown = snippet(text, hits)
    return {**about, "snippet": shown.text, "marks": shown.marks}
