"""How often a value is found back on its page, and how often one that is not there: ``ExtractionThresholds.same_text``.

    python benchmarks/extraction_places.py FOLDER_OF_MARKDOWN

Values are phrases of 1 to 8 words of a document: as they are, with letters misread as OCR misreads them, with one word
replaced, and of another document.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Region, TextLine
from pagemill.extraction import grounding
from pagemill.extraction.thresholds import ExtractionThresholds

MISREAD = {"o": "0", "l": "1", "i": "l", "e": "c", "a": "o", "m": "rn", "s": "5", "u": "v", "n": "h", "t": "f"}
SHARES = (0.03, 0.06, 0.1)
"""Of letters that are misread or lost."""
THRESHOLDS = (0.75, 0.8, 0.86, 0.9, 0.93)
PER_DOCUMENT = 8


def page_of(lines: list[str]) -> PageResult:
    """A page with these lines."""
    made = tuple(TextLine(text=text, box=(0, 10 * row, 10, 10 * row + 9)) for row, text in enumerate(lines))
    region = Region(index=0, label=Label.TEXT, bbox_2d=(0, 0, 9, 9), bbox=(0, 0, 9, 9), lines=made)
    return PageResult(page_id="p", page_idx=0, doc_id="d", source="d", page_number=1, regions=[region])


def phrase(lines: list[str], draw: random.Random) -> str:
    """Some words of a line, at least 6 characters."""
    while True:
        words, count = draw.choice(lines).split(), draw.randint(1, 8)
        start = draw.randint(0, max(0, len(words) - count))
        text = " ".join(words[start : start + count]).strip(".,;:")
        if len(text) >= ExtractionThresholds().fuzzy_characters:
            return text


def misread(text: str, share: float, draw: random.Random) -> str:
    """Text with some letters misread or lost."""

    def read(character: str) -> str:
        if not character.isalpha() or draw.random() >= share:
            return character
        return MISREAD.get(character.lower(), "") if draw.random() < 0.7 else ""

    return "".join(map(read, text))


def values_of(documents: list[list[str]]) -> list[tuple[int, str, str]]:
    """Document, value and kind of value."""
    draw = random.Random(7)
    values = []
    for number, lines in enumerate(documents):
        for _ in range(PER_DOCUMENT):
            true, other = (
                phrase(lines, draw),
                phrase(documents[(number + draw.randrange(1, 50)) % len(documents)], draw),
            )
            values.append((number, true, "as it is"))
            values += [(number, misread(true, share, draw), f"{share:.0%} misread") for share in SHARES]
            values.append((number, other, "of another document"))
            if len(words := true.split()) > 2:
                words[draw.randrange(len(words))] = other.split()[0]
                values.append((number, " ".join(words), "one word replaced"))
    return values


def main() -> None:
    """Print the share of values that are found, by kind and threshold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    documents = []
    for path in sorted(parser.parse_args().folder.glob("*.md")):
        text = re.sub(r"[#*|<>]|<[^>]*>", " ", path.read_text(encoding="utf-8"))
        lines = [line.strip() for line in text.split("\n") if len(line.strip()) > 10][:60]
        documents += [lines] if len(lines) > 5 else []
    pages = [grounding.PageText(number, page_of(lines)) for number, lines in enumerate(documents)]
    joined = [" ".join(" ".join(lines).casefold().split()) for lines in documents]
    values = [
        (number, value, kind)
        for number, value, kind in values_of(documents)
        if kind not in ("of another document", "one word replaced") or value.casefold() not in joined[number]
    ]
    for threshold in THRESHOLDS:
        setattr(grounding, "THRESHOLDS", replace(ExtractionThresholds(), same_text=threshold))  # noqa: B010
        count, found = Counter[str](), Counter[str]()
        for number, value, kind in values:
            count[kind] += 1
            found[kind] += bool(pages[number].places(value))
        print(f"{threshold:.2f}", *(f"{kind}: {found[kind] / count[kind]:.3f}" for kind in count), sep="  ")


if __name__ == "__main__":
    main()
