"""Filters of a search by document, page, language and label."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pagemill.errors import UsageError
from pagemill.recognition.languages import ALPHABETS
from pagemill.retrieval.hits import Filters
from pagemill.retrieval.languages import is_known, may_be
from pagemill.store.database import Database

_EXAMPLES = 30
_GLOB = "replace(value, '[!', '[^')"
"""A pattern of a shell as one of SQLite."""


class Allowed(NamedTuple):
    """Pages and regions that pass the filters; None without a restriction."""

    pages: NDArray[np.int64] | None
    """By page number: the same number, 0 if it may not be found."""
    regions: NDArray[np.int64] | None
    """By region number: its page, 0 if it may not be found."""

    def rows(self, pages: NDArray[np.int64], regions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which vectors of these pages and regions may be found."""
        wanted = np.ones(len(pages), dtype=bool)
        if self.pages is not None:
            wanted &= self.pages[pages] > 0
        if self.regions is not None:
            wanted &= self.regions[regions] > 0
        return wanted


def allowed(view: Database, filters: Filters) -> Allowed:
    """Apply filters to an index, opened as ``view``.

    Raises:
        UsageError: One of them matches nothing in the index; the remedy lists what exists.
    """
    fitting_tags = fitting_languages(view, filters.languages)
    pages = regions = None
    for test, asked, values in (
        (f"doc_id GLOB {_GLOB}", filters.documents, filters.documents),
        (f"page_id GLOB {_GLOB}", filters.pages, filters.pages),
        ("language = value", filters.languages, fitting_tags),
    ):
        if asked:
            fitting = _fitting(view, "pages", test, asked, values)
            # A page has its number in both, or 0 in one of them.
            pages = fitting if pages is None else np.minimum(pages, fitting)
    if filters.labels:
        regions = _fitting(view, "regions", "label = value", filters.labels, filters.classes)
    return Allowed(pages, regions)


def fitting_languages(view: Database, languages: Sequence[str]) -> list[str]:
    """The languages of pages of an index that are one of these.

    Raises:
        UsageError: One of them is not a language.
    """
    tags = [tag for (tag,) in view.query("SELECT DISTINCT language FROM pages")] if languages else []
    there = {tag.lower() for tag in tags}  # an engine of another package may read more languages
    # "english" would otherwise be a language without pages.
    if unknown := {language.lower() for language in languages if not is_known(language)} - there:
        raise UsageError(
            f"not a language code: {', '.join(sorted(unknown))}",
            remedy=f"The codes are: {', '.join(ALPHABETS)}; und-Latn for any in Latin letters.",
        )
    return [tag for tag in tags if any(may_be(tag, language) for language in languages)]


def _fitting(view: Database, table: str, test: str, asked: Sequence[str], values: Sequence[str]) -> NDArray[np.int64]:
    """By number of a row: its page, 0 if it passes the test with none of the values.

    Raises:
        UsageError: No row passes.
    """
    condition = f"EXISTS (SELECT 1 FROM json_each(?) WHERE {test})"
    pages = np.zeros(view.one(f"SELECT ifnull(max(rowid), 0) FROM {table}") + 1, dtype=np.int64)
    for number, page in view.each(f"SELECT rowid, page FROM {table} WHERE {condition}", (json.dumps(values),)):
        pages[number] = page
    # A misspelt filter and a search without hits would look the same.
    if not pages.any():
        column = test.partition(" ")[0]
        counts = view.query(f"SELECT {column}, count(*) FROM {table} GROUP BY 1 ORDER BY 2 DESC LIMIT {_EXAMPLES}")
        raise UsageError(
            f"nothing in the index has the {column} {', '.join(asked)}",
            remedy=f"Available: {', '.join(f'{value} ({count})' for value, count in counts) or 'none'}.",
        )
    return pages
