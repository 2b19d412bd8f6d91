"""Whether a text contains a word spelt similarly to one of a query.

Vectors of character n-grams are slightly similar by chance: every letter sequence of a nonsense word occurs somewhere
in a text of some length, and two n-grams may share a component. No threshold on the cosine separates that noise from a
misspelt word (measured in docs/search.md); the edit distance of whole words does.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, pairwise

from rapidfuzz import process
from rapidfuzz.distance import OSA

from pagemill.retrieval.tokens import words

LEAST_SIMILARITY = 0.7
"""Minimum similarity of two words, 1 - edits / letters of the longer: one edit in four letters, two in seven, three in
ten."""
_LEAST_INSIDE = 5
"""Minimum letters of a word that counts inside a longer one or across spaces; shorter ones occur everywhere."""
_MOST_WORDS = 64
"""Words of a query that are compared."""
_COMPARED = 200
"""Nearest pages without a word of the query whose text is searched for a similar spelling."""


class SpeltWords:
    """The words of a query, for comparison with texts.

    Letters are compared without case, accents and width, Korean by its letters (jamo): an edit inserts, deletes or
    replaces a letter, or swaps two neighbours (optimal string alignment). A number is not similar to another one, but
    may be part of one.

    Args:
        query: Words in any language.
    """

    def __init__(self, query: str) -> None:
        self._words = _letters(dict.fromkeys(words(query)))[:_MOST_WORDS]

    def are_like_some_of(self, text: str) -> bool:
        """Whether one of the words is spelt similarly to a word of a text, or occurs in it with other spaces.

        Takes about 0.05 ms per word and page: every word is compared with every different word of the text.
        """
        if not self._words:
            return False
        found = list(words(text))
        pairs = (first + second for first, second in pairwise(found) if not first.isdigit())  # with an extra space
        known, joined = _letters(dict.fromkeys(chain(found, pairs))), _letters(["".join(found)])[0]
        return any(_is_like(word, known, joined) for word in self._words)


def without_noise(
    query: str,
    fused: Iterable[tuple[int, float]],
    believed: Collection[int],
    text: Callable[[int], str],
    top: int,
) -> list[tuple[int, float]]:
    """The best pages, without those that only resemble a query by chance.

    Args:
        query: Words in any language.
        fused: Numbers of pages and their scores, best first.
        believed: Pages that something else than vectors of spellings has found.
        text: The text of a page, by number.
        top: The most pages to return.
    """
    words = SpeltWords(query)
    to_compare = max(_COMPARED, top)
    kept: list[tuple[int, float]] = []
    for page, score in fused:
        if page not in believed:
            to_compare -= 1
            # Bounded: comparing reads the text of a page, and by then similarity has sunk to chance.
            if to_compare < 0 or not words.are_like_some_of(text(page)):
                continue
        kept.append((page, score))
        if len(kept) == top:
            break
    return kept


def _is_like(word: str, known: Sequence[str], joined: str) -> bool:
    is_long = len(word) >= _LEAST_INSIDE
    # Numbers that differ in one digit are other numbers, not misspelt ones.
    if word.isdigit():
        return any(word in each for each in known) if is_long else word in known
    if is_long and word in joined:
        return True
    if _is_one_of(word, known):
        return True
    if not (is_long and _is_korean(word)):
        return False
    return _is_one_of(word, {each[: len(word)] for each in known if len(each) > len(word) and _is_korean(each)})


def _is_one_of(word: str, known: Collection[str]) -> bool:
    return process.extractOne(word, known, scorer=OSA.normalized_similarity, score_cutoff=LEAST_SIMILARITY) is not None


def _is_korean(word: str) -> bool:
    return "\u1100" <= word[0] <= "\u11ff"  # jamo


def _letters(found: Iterable[str]) -> list[str]:
    return [word if word.isascii() else unicodedata.normalize("NFD", word) for word in found]
