"""Words of any language as the full-text index knows them.

Scripts without spaces, and Korean, whose words include their particles, are split into overlapping pairs of characters;
everything else into words. Pairs need no dictionary, tolerate wrong spacing, which is common in scans, and find parts
of compounds. SQLite stems English words (:data:`TOKENIZER`).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

VERSION = 1
"""Version of :func:`tokens`: an index with another one is rebuilt."""
TOKENIZER = "porter ascii"
"""FTS5 tokenizer: splits our tokens at spaces and stems English words (Porter's algorithm)."""
_MOST_CHARACTERS = 64
_MOST_QUERY_TOKENS = 128

_PAIRED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"  # Hangul
    "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_MARKS = "".join(chr(c) for c in range(0x300, 0xE00) if unicodedata.category(chr(c)).startswith("M"))
_RUN = re.compile(
    rf"(?P<number>\d{{1,3}}(?:,\d{{3}})+(?!\d))|(?P<paired>[{_PAIRED}]+)"
    rf"|(?P<word>[^\W_{_PAIRED}](?:[^\W_{_PAIRED}]|[{_MARKS}])*)"
)


class Token(NamedTuple):
    """A token and its position."""

    text: str
    """Letters, digits and marks only: SQLite keeps it as one token."""
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text in order.

    Case, width and accents are folded, thousands separators removed. Linear in the length of the text.
    """
    for match in _RUN.finditer(text):
        start, end = match.span()
        run = match[0]
        # Scripts without spaces, and Korean with its endings: pairs of characters need no dictionary.
        if match.lastgroup == "paired" and len(run) > 1:
            for offset in range(len(run) - 1):
                if token := _folded(run[offset : offset + 2]):
                    yield Token(token, start + offset, start + offset + 2)
        # Only the start of an overlong word is used.
        elif token := _folded(run[:_MOST_CHARACTERS].replace(",", "")):
            yield Token(token, start, end)


def words(text: str) -> Iterator[str]:
    """The words of a text, folded like tokens; in scripts without spaces everything between two punctuation marks.

    Overlong words are truncated.
    """
    for match in _RUN.finditer(text):
        if word := _folded(match[0][:_MOST_CHARACTERS].replace(",", "")):
            yield word


def indexed(text: str) -> str:
    """A text in the form that FTS5 indexes."""
    return " ".join(token.text for token in tokens(text))


def match_expression(query: str) -> str | None:
    """The FTS5 expression for a query: any of its tokens. None for a query without letters and digits.

    Tokens are quoted, so nothing in a query is syntax. A single character of a paired script matches all pairs that
    start with it. Only the first tokens of a very long query count.
    """
    asked: dict[str, None] = {}
    for token in tokens(unicodedata.normalize("NFC", query)):
        alone = len(token.text) == 1 and not token.text.isascii() and re.fullmatch(f"[{_PAIRED}]", token.text)
        asked[f'"{token.text}"' + (" *" if alone else "")] = None
        if len(asked) == _MOST_QUERY_TOKENS:
            break
    return " OR ".join(asked) or None


@functools.lru_cache(maxsize=2**16)
def _folded(run: str) -> str:
    if run.isascii():
        return run.lower()
    folded = unicodedata.normalize("NFKD", run).casefold()
    kept = "".join(c for c in folded if not _is_accent(c) and (c.isalnum() or (ord(c) > 127 and not c.isspace())))
    return unicodedata.normalize("NFC", kept)


def _is_accent(character: str) -> bool:
    """Whether a mark is optional for readers: accents, Hebrew points, Arabic vowels, but no vowel of an Indic script.

    Decided by the canonical combining class (Unicode Standard Annex 44, table 15).
    """
    kind = unicodedata.combining(character)
    return 10 <= kind <= 35 or kind >= 200
