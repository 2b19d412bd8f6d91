"""How well embedding engines find a page by some of its words: the embedded one, its variants, and models beside it.

    python benchmarks/embedding_quality.py FOLDER... [--model PATH]...

FOLDER holds UTF-8 texts (``.md``, ``.txt``), cut into pages of some 1,200 characters. From a sentence of each page four
words become a query: as they are, with other endings, with typing errors. Printed is the mean reciprocal rank of the
page by cosine, for Korean and other pages; and how the embedded weighting (rarity counts in queries only) compares with
rarity on both sides. These queries ask for words, so a model of meanings cannot show here what it is made for.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pagemill.embedding.base import EmbeddingInput, EngineSettings, Role, normalised
from pagemill.embedding.ngram_engine import NgramEngine
from pagemill.runtime import engines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pagemill.embedding.base import EmbeddingEngine, Vectors

PAGE = 1200
HANGUL = re.compile("[가-힣]")


class Query(NamedTuple):
    """A query and the page it was made of."""

    kind: str
    text: str
    page: int


def pages_of(folders: Sequence[Path]) -> list[str]:
    """All texts, cut at line ends."""
    pages: list[str] = []
    for path in sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".md", ".txt")):
        page = ""
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            page += line
            if len(page) >= PAGE:
                pages.append(page)
                page = ""
        if len(page) > PAGE // 4:
            pages.append(page)
    return pages


def queries_of(pages: Sequence[str], chance: random.Random) -> Iterator[Query]:
    """Three queries a page that has a sentence of some length."""
    for number, page in enumerate(pages):
        korean = is_korean(page)
        sentences = [
            words
            for sentence in re.split(r"[.\n。]", page)
            if len(words := [w for w in re.findall(r"\w+", sentence) if len(w) >= (2 if korean else 4)]) >= 4
        ]
        for kind in ("words", "endings", "typing errors") if sentences else ():
            words = chance.sample(chance.choice(sentences), 4)
            if kind == "endings":
                words = [other_ending(word, korean, chance) for word in words]
            elif kind == "typing errors":
                words = [misspelt(word, korean, chance) for word in words[:2]] + words[2:]
            yield Query(f"{'Korean' if korean else 'other'}, {kind}", " ".join(words), number)


def is_korean(text: str) -> bool:
    """Whether a fifth of it is Hangul."""
    return len(HANGUL.findall(text)) > len(text) / 5


def other_ending(word: str, korean: bool, chance: random.Random) -> str:
    """The word with another particle, or in the other number."""
    if korean:
        return (word[:-1] if len(word) > 2 else word) + chance.choice("은는이가을를의에")
    return word[:-1] if word.endswith("s") else f"{word}s"


def misspelt(word: str, korean: bool, chance: random.Random) -> str:
    """The word with another final consonant in one syllable, or with two letters swapped."""
    place = chance.randrange(len(word) - 1)
    if korean and HANGUL.match(word[place]):
        code = ord(word[place]) - 0xAC00
        return word[:place] + chr(0xAC00 + code + (1 if code % 28 < 27 else -1)) + word[place + 1 :]
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def embed(engine: EmbeddingEngine, texts: Sequence[str], role: Role) -> Vectors:
    """All vectors."""
    batches = (texts[start : start + engine.max_batch] for start in range(0, len(texts), engine.max_batch))
    return normalised(
        np.concatenate([engine.embed([EmbeddingInput(role=role, text=text) for text in batch]) for batch in batches])
    )


def score(pages: Vectors, asked: Vectors, queries: Sequence[Query]) -> dict[str, float]:
    """Mean reciprocal rank by kind of query, and over all."""
    likeness = asked @ pages.T
    ranks: dict[str, list[float]] = defaultdict(list)
    for row, query in zip(likeness, queries, strict=True):
        reciprocal = 1 / (1 + int((row > row[query.page]).sum()))
        ranks[query.kind].append(reciprocal)
        ranks["all"].append(reciprocal)
    return {kind: float(np.mean(values)) for kind, values in sorted(ranks.items())}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--model", action="append", default=[], help="of sentence-transformers; may be repeated")
    options = parser.parse_args()
    pages = pages_of(options.folders)
    queries = list(queries_of(pages, random.Random(0)))
    if not queries:
        parser.error("the folders hold no text")
    print(f"{len(pages)} pages, {len(queries)} queries")
    kinds = sorted({query.kind for query in queries})
    print(" | ".join(["engine".ljust(34), "all", *kinds, "CPU ms a page"]))

    def report(name: str, found: dict[str, float], cpu_s: float) -> None:
        figures = [f"{found[kind]:.3f}" for kind in ("all", *kinds)]
        print(" | ".join([name.ljust(34), *figures, f"{1000 * cpu_s / len(pages):.2f}"]), flush=True)

    def measure(name: str, engine: EmbeddingEngine, role: Role = Role.PASSAGE) -> float:
        start = time.process_time()
        vectors = embed(engine, pages, role)
        cpu_s = time.process_time() - start
        found = score(vectors, embed(engine, [query.text for query in queries], Role.QUERY), queries)
        report(name, found, cpu_s)
        return found["all"]

    with tempfile.TemporaryDirectory() as folder:
        for dimension in (1024, 2048, 4096, 8192):
            ngram = NgramEngine(EngineSettings(folder=Path(folder), dimension=dimension))
            ngram.fit(pages)
            once = measure(f"ngram {dimension}, rarity in queries", ngram)
            both = measure(f"ngram {dimension}, rarity on both sides", ngram, Role.QUERY)
            print(f"  ratio {once / both:.3f}")
        for model in options.model:
            settings = EngineSettings(folder=Path(folder), model=model, device="cpu")
            engine = engines.load(engines.EMBEDDING_ENGINES, "sentence-transformers")(settings)
            ratio = measure(Path(model).name, engine) / once
            print(f"  ratio to ngram 8192 {ratio:.3f}")


if __name__ == "__main__":
    main()
