"""Distances of texts: character and word error rates, normalised edit distances, ANLS.

All work on Unicode code points. Only the two error rates normalise their texts, since a benchmark's own rules say what
counts elsewhere.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

ANLS_THRESHOLD = 0.5
"""Minimum similarity that counts, of Biten et al., "Scene Text Visual Question Answering" (ICCV 2019)."""

_ORDERS = range(1, 5)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_MTEVAL_13A = (
    (re.compile(r"([ -&(-+/:-@\[-`{-~])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
"""Where NIST's mteval-v13a puts spaces: around punctuation, but for stops, commas and dashes within numbers."""


def normalise(text: str) -> str:
    """Compose to NFC, fold every run of white space to one space, strip both ends. Case and punctuation stay."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def character_error_rate(predicted: str, truth: str) -> float:
    """Levenshtein distance in code points over the length of the truth, both normalised first.

    Insertions, deletions and substitutions cost 1; spaces count as characters, since Korean word spacing is part of
    what is read.

    Returns:
        0 for equal texts; above 1 where far too much was read. With an empty truth: 0 if the prediction is empty
        too, else infinity.
    """
    predicted, truth = normalise(predicted), normalise(truth)
    # Infinite, not 1: text on an empty page is worse than a page of wrong letters.
    if not truth:
        return float("inf") if predicted else 0.0
    return Levenshtein.distance(predicted, truth) / len(truth)


def word_error_rate(predicted: str, truth: str) -> float:
    """Levenshtein distance in words between white space over the number of true words, both normalised first.

    Returns:
        As :func:`character_error_rate`.
    """
    predicted_words, true_words = normalise(predicted).split(), normalise(truth).split()
    if not true_words:
        return float("inf") if predicted_words else 0.0
    return Levenshtein.distance(predicted_words, true_words) / len(true_words)


def edit_distance(predicted: str, truth: str) -> float:
    """NED: Levenshtein distance over the length of the longer text, 0 to 1; two empty texts are equal."""
    return float(Levenshtein.normalized_distance(predicted, truth))


def indel_similarity(predicted: str, truth: str) -> float:
    """NID: 1 less the distance by insertions and deletions over the sum of both lengths, 0 to 1."""
    return float(fuzz.ratio(predicted, truth)) / 100.0


def anls(predicted: str, answers: Iterable[str], threshold: float = ANLS_THRESHOLD) -> float:
    """Average normalised Levenshtein similarity of one question: that to the nearest answer, 0 below the threshold.

    Case and white space at both ends are ignored, as in the metric's definition.

    Args:
        predicted: The answer given.
        answers: Those that are right.
        threshold: 0 keeps every similarity.
    """
    given = predicted.strip().lower()
    best = max((1.0 - edit_distance(given, answer.strip().lower()) for answer in answers), default=0.0)
    return best if best >= threshold else 0.0


def bleu_counts(predicted: str, truth: str) -> list[int]:
    """Counts of BLEU for one text: common n-grams and predicted ones for n of 1 to 4, both numbers of words."""
    one, two = _words(predicted), _words(truth)
    common = [(_ngrams(one, n) & _ngrams(two, n)).total() for n in _ORDERS]
    return [*common, *(max(0, len(one) - n + 1) for n in _ORDERS), len(one), len(two)]


def bleu(counts: Iterable[Sequence[int]]) -> float:
    """BLEU-4 of a corpus, 0 to 1, without smoothing: the default of Hugging Face.

    Args:
        counts: Counts of its texts, by :func:`bleu_counts`.
    """
    *ngrams, predicted, true = (sum(column) for column in zip(*counts, strict=True))
    # Without smoothing one missing order makes the product 0, also where texts are short.
    if not all(ngrams):
        return 0.0
    precision = math.fsum(math.log(ngrams[n] / ngrams[n + 4]) for n in range(4)) / 4
    return math.exp(precision + min(0.0, 1.0 - true / predicted))


def _words(text: str) -> list[str]:
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = f" {text} "
    for pattern, replacement in _MTEVAL_13A:
        text = pattern.sub(replacement, text)
    return text.split()


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + n]) for start in range(len(words) - n + 1))
