"""The positioned text of a page, line by line and word by word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from pagemill.document.geometry import Box
from pagemill.document.labels import FORMULAS
from pagemill.document.page import PageResult, Region, TextLine, Word
from pagemill.export.embedding_text import region_text
from pagemill.late import re

_NO_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]+")
"""Control characters and what is not a character: XML and PDF hold none of them."""
LANGUAGE = re.compile(r"(?!und)[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
"""A tag of a language that a page can be marked with, no mere script."""
_WORD = re.compile(r"\S+")
_TALL = 2.0
"""Height over width from which a line of more than two characters runs down the page."""


def lines_of(region: Region) -> Sequence[TextLine]:
    """The lines of a region, in reading order.

    A formula is one line. So are the lines of what a model read as a whole, and the rows of a table that it read: their
    places are not known, and they get strips of the region, of one height and as long as their texts.
    """
    if region.lines and region.label not in FORMULAS:
        return region.lines
    text = region_text(region)
    texts = [" ".join(text.split())] if region.label in FORMULAS else text.split("\n")
    texts = [text for text in texts if text.strip()]
    x1, y1, x2, y2 = region.bbox
    height = (y2 - y1) / max(len(texts), 1)
    # All lines with letters of one width, that of the longest: nothing better is known.
    step = (x2 - x1) / max(map(len, texts), default=1)
    return [
        TextLine(
            text=text,
            box=(x1, y1 + index * height, x1 + step * len(text), y1 + (index + 1) * height),
            confidence=region.confidence,
            engine=region.engine or "",
        )
        for index, text in enumerate(texts)
    ]


def words_of(line: TextLine) -> Iterator[tuple[Word, bool]]:
    """The words of a line, and whether a space follows each: as they were read, else by the spaces of the line.

    Their text has no white space and no control characters. A word without a place of its own gets its share of the
    line by its characters.
    """
    text = clean(line.text)
    words = [msgspec.structs.replace(word, text="".join(clean(word.text).split())) for word in line.words]
    # The line was corrected after its words were read: the words are cut from the line, by their share of it.
    if "".join(word.text for word in words) != "".join(text.split()):
        words = [Word(match[0], _part(line, text, match)) for match in _WORD.finditer(text)]
    end = 0
    for word in filter(lambda word: word.text, words):
        # White space of the line may stand within what was read as a word.
        for character in word.text:
            end = text.index(character, end) + 1
        yield word, text[end : end + 1].isspace()


def is_vertical(line: TextLine) -> bool:
    """Whether a line of upright characters runs down the page."""
    x1, y1, x2, y2 = line.box
    return line.polygon is None and len(line.text.strip()) > 2 and y2 - y1 > _TALL * (x2 - x1)


def language_of(page: PageResult) -> str:
    """The language of a page; empty where it is not known, or which of several each word is in."""
    known = [language for language in page.languages if LANGUAGE.fullmatch(language)]
    return known[0] if len(known) == len(page.languages) == 1 else ""


def clean(text: str) -> str:
    """The text with a space for control characters, lone surrogates and the like."""
    return _NO_TEXT.sub(" ", text)


def _part(line: TextLine, text: str, word: re.Match[str]) -> Box:
    x1, y1, x2, y2 = line.box
    start, end = word.start() / len(text), word.end() / len(text)
    if is_vertical(line):
        return (x1, y1 + start * (y2 - y1), x2, y1 + end * (y2 - y1))
    return (x1 + start * (x2 - x1), y1, x1 + end * (x2 - x1), y2)
