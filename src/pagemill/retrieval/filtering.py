"""Filters of a search by document, page, language and label."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pagemill.errors import UsageError
from pagemill.retrieval.languages import LANGUAGES, is_known, may_be

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from pagemill.retrieval.hits import Filters
    from pagemill.store.database import Database

_EXAMPLES = 5


class Allowed(NamedTuple):
    """What the filters admit; None without a restriction."""

    pages: NDArray[np.bool_] | None
    """By page number: whether it may be found."""
    regions: NDArray[np.int64] | None
    """By region number: its page, 0 if it may not be found."""

    def rows(self, pages: NDArray[np.int64], regions: NDArray[np.int64]) -> NDArray[np.bool_] | None:
        """Which vectors of these pages and regions may be found; None for all."""
        wanted = None if self.pages is None else self.pages[pages]
        if self.regions is not None:
            labels = self.regions[regions] > 0
            wanted = labels if wanted is None else wanted & labels
        return wanted


def allowed(view: Database, filters: Filters) -> Allowed:
    """Apply filters to an index, opened as ``view``.

    Raises:
        UsageError: One of them matches nothing in the index; the remedy lists what exists.
    """
    pages = regions = None
    if filters.documents or filters.pages or filters.languages:
        patterns = filters.patterns()
        languages = {language.lower() for language in filters.languages}
        _refuse_unknown_codes(view, languages)
        pages = np.zeros(_highest(view, "pages", "page") + 1, dtype=bool)
        for page, doc_id, page_id, language in view.each("SELECT page, doc_id, page_id, language FROM pages"):
            values = {"doc_id": doc_id, "page_id": page_id}
            fits = all(pattern.match(values[column]) for column, _, pattern in patterns)
            pages[page] = fits and (not languages or any(may_be(language, each) for each in languages))
        if languages and not pages.any():
            _refuse_unknown(view, "language", "pages", languages)
        if not pages.any():
            _refuse_unfitting(view, filters)
    if filters.labels:
        regions = np.zeros(_highest(view, "regions", "id") + 1, dtype=np.int64)
        marks = ", ".join("?" * len(filters.labels))
        found = np.array(
            view.query(f"SELECT id, page FROM regions WHERE label IN ({marks})", filters.classes), dtype=np.int64
        ).reshape(-1, 2)
        regions[found[:, 0]] = found[:, 1]
        if not len(found):
            _refuse_unknown(view, "label", "regions", filters.classes)
    return Allowed(pages, regions)


def _highest(view: Database, table: str, column: str) -> int:
    return int(view.one(f"SELECT ifnull(max({column}), 0) FROM {table}"))


def _refuse_unfitting(view: Database, filters: Filters) -> None:
    """Raise an error if the patterns of a filter match nothing."""
    for column, asked, pattern in filters.patterns():
        names = [name for (name,) in view.query(f"SELECT {column} FROM pages GROUP BY 1 ORDER BY min(page)")]
        if not any(map(pattern.match, names)):
            some = ", ".join(names[:_EXAMPLES])
            raise UsageError(
                f"no {column} in the index matches {', '.join(asked)}", remedy=f"There are: {some or 'none'}, ..."
            )


def _refuse_unknown_codes(view: Database, languages: Collection[str]) -> None:
    """Raise an error for an invalid language: ``english`` would otherwise be a language without pages."""
    unknown = {language for language in languages if not is_known(language)}
    if unknown:  # an engine of another package may read more languages
        unknown -= {tag.lower() for (tag,) in view.query("SELECT DISTINCT language FROM pages")}
    if unknown:
        raise UsageError(
            f"not a language code: {', '.join(sorted(unknown))}",
            remedy=f"The codes are: {', '.join(LANGUAGES)}; und-Latn for any in Latin letters.",
        )


def _refuse_unknown(view: Database, column: str, table: str, asked: Collection[str]) -> None:
    """Raise an error that lists what exists if a filter matches nothing."""
    counts = view.query(f"SELECT {column}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC")
    known = {value.lower() for value, _ in counts}
    if not known & {value.lower() for value in asked}:
        there = ", ".join(f"{value} ({count})" for value, count in counts)
        raise UsageError(
            f"nothing in the index has the {column} {', '.join(sorted(asked))}",
            remedy=f"There are: {there or 'none'}.",
        )
