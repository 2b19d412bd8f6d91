"""Which pages are found for words that no page holds, and for words that are misspelt, with and without the rule.

    python benchmarks/nonsense.py OUT [--queries N]

OUT is a run with vectors of the embedded engine and an index. Nonsense queries are two made-up words (or one number)
that no page holds; misspelt ones are words of a page with one or two errors each (a letter left out, added, another
one, or two exchanged); Korean ones are words of a page with one single letter (jamo) changed, or without the spaces.
The rule is that of ``SearchIndex.fused``: a page that the vectors of the embedded engine alone find is left out unless
it has a word that is spelt much like one of the query's. Printed are, with the rule and without: of nonsense queries,
how many find a page, and pages a query; of the others, how often the page is among the first ten, and first; and the
time of the rule.
"""

from __future__ import annotations

import argparse
import random
import re
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pagemill.app.search import Searcher
from pagemill.retrieval.ranking import reciprocal_rank_fusion
from pagemill.retrieval.tokens import tokens
from pagemill.store.reading import RunReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LETTERS = "abcdefghijklmnopqrstuvwxyz"
CONSONANTS, VOWELS = "bcdfghklmnprstvw", "aeiou"
JAMO = ["".join(map(chr, range(0x1100, 0x1113))), "".join(map(chr, range(0x1161, 0x1176)))]
KEYS = ("asdfghjkl", "qwertyuiop", "zxcvbnm", "ㅁㄴㅇㄹㅎㅗㅓㅏ")


class Query(NamedTuple):
    """A query; of nonsense, without a page."""

    kind: str
    text: str
    page_id: str | None = None


def nonsense(dice: random.Random) -> dict[str, Callable[[], str]]:
    """Kinds of words that mean nothing."""

    def of(letters: str, low: int, high: int) -> str:
        return "".join(dice.choices(letters, k=dice.randint(low, high)))

    def spoken() -> str:
        return "".join(
            dice.choice(CONSONANTS) + dice.choice(VOWELS) + dice.choice(["", "", dice.choice(CONSONANTS)])
            for _ in range(dice.randint(2, 4))
        )

    def keys() -> str:
        row = dice.choice(KEYS)
        start = dice.randrange(len(row) - 4)
        return row[start : start + dice.randint(4, 7)]

    return {
        "consonants": lambda: of("bcdfghjklmnpqrstvwxz", 5, 8),
        "letters": lambda: of(LETTERS, 4, 9),
        "keys in a row": keys,
        "made-up syllables": spoken,
        "numbers": lambda: of("0123456789", 6, 9),
        "Korean syllables": lambda: "".join(chr(dice.randint(0xAC00, 0xD7A3)) for _ in range(dice.randint(2, 4))),
    }


def misspelt(word: str, dice: random.Random) -> str:
    """A word with one error."""
    place = dice.randrange(len(word) - 1)
    kind = dice.randrange(4)
    if kind == 0:
        return word[:place] + word[place + 1 :]
    if kind == 1:
        return word[:place] + dice.choice(LETTERS) + word[place:]
    if kind == 2:
        return word[:place] + dice.choice(LETTERS) + word[place + 1 :]
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def other_letter(word: str, dice: random.Random) -> str:
    """A Korean word with another consonant or vowel somewhere."""
    letters = list(unicodedata.normalize("NFD", word))
    places = [(place, group) for place, letter in enumerate(letters) for group in JAMO if letter in group]
    place, group = dice.choice(places)
    letters[place] = dice.choice(group)
    return unicodedata.normalize("NFC", "".join(letters))


def queries_of(texts: dict[str, str], count: int, dice: random.Random) -> Iterator[Query]:
    """Queries of all kinds."""
    known = {token.text for text in texts.values() for token in tokens(text)}

    def is_known(text: str) -> bool:
        return any(token.text in known for token in tokens(text))

    for kind, word in nonsense(dice).items():
        made = 0
        while made < count:
            query = word() if kind == "numbers" else f"{word()} {word()}"
            if not is_known(query):
                made += 1
                yield Query(kind, query)
    kinds = {
        "1 word, 1 error": (1, 1, r"[A-Za-z]{5,}"),
        "1 word, 2 errors": (1, 2, r"[A-Za-z]{8,}"),
        "3 words, 1 error each": (3, 1, r"[A-Za-z]{5,}"),
    }
    for kind, (words, errors, pattern) in kinds.items():
        fitting = [(page_id, found) for page_id, text in texts.items() if len(found := re.findall(pattern, text)) > 5]
        for _ in range(count if fitting else 0):
            page_id, found = dice.choice(fitting)
            chosen = [word.lower() for word in dice.sample(found, words)]
            for _ in range(errors):
                chosen = [misspelt(word, dice) for word in chosen]
            yield Query(kind, " ".join(chosen), page_id)
    korean = [(page_id, found) for page_id, text in texts.items() if len(found := re.findall("[가-힣]{2,}", text)) > 5]
    for kind in ("Korean, another letter", "Korean, no spaces"):
        for _ in range(count if korean else 0):
            page_id, found = dice.choice(korean)
            start = dice.randrange(len(found) - 2)
            if kind == "Korean, another letter":
                yield Query(kind, other_letter(found[start], dice), page_id)
            else:
                yield Query(kind, "".join(found[start : start + 3]), page_id)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--queries", type=int, default=100, help="of each kind")
    options = parser.parse_args()
    dice = random.Random(6)
    with RunReader.open(options.out) as reader:
        texts = {page.page_id: "\n".join(region.content or "" for region in page.regions) for page in reader.pages()}
    texts = {page_id: re.sub("<[^>]*>", " ", text) for page_id, text in texts.items()}
    rows: dict[str, list[tuple[list[str], list[str]]]] = {}
    asked: dict[str, list[Query]] = {}
    seconds = []
    with Searcher(options.out) as searcher:
        index = searcher.index
        for query in queries_of(texts, options.queries, dice):
            rankings = searcher.rankings(query.text)
            plain = reciprocal_rank_fusion([[each.page for each in ranking] for ranking in rankings.values()])[:10]
            start = time.perf_counter()
            ruled = index.fused(query.text, rankings, top=10)
            seconds.append(time.perf_counter() - start)
            names = [index.names([page for page, _ in found]) for found in (ruled, plain)]
            rows.setdefault(query.kind, []).append((names[0], names[1]))
            asked.setdefault(query.kind, []).append(query)
    mean, most = 1e3 * sum(seconds) / len(seconds), 1e3 * max(seconds)
    print(f"{len(texts)} pages; the rule took {mean:.1f} ms a query, {most:.1f} at most")
    print(f"{'':24}{'with the rule':>24}{'without':>24}")
    for kind, found in rows.items():
        cells = []
        for which in (0, 1):
            answers = [each[which] for each in found]
            if asked[kind][0].page_id is None:
                cells.append(
                    f"{sum(map(bool, answers)) / len(found):7.0%} find {sum(map(len, answers)) / len(found):5.1f}"
                )
            else:
                pairs = list(zip(asked[kind], answers, strict=True))
                ten = sum(query.page_id in each for query, each in pairs) / len(pairs)
                one = sum(each[:1] == [query.page_id] for query, each in pairs) / len(pairs)
                cells.append(f"{ten:7.0%} of 10 {one:4.0%} 1st")
        print(f"{kind:24}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
