"""Plain text, and tables of separated values."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pagemill.document.shown import count
from pagemill.errors import CorruptInputError, TooLargeError
from pagemill.late import re
from pagemill.readers.base import Block, Document, Inline, cell, in_parts, tables
from pagemill.tables.table import Cell

MOST_BYTES = 64 * 2**20
"""Size of a text file: a thousand books."""
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASIAN = ("cp949", "cp932", "euc_jp", "gb18030", "big5")
_WESTERN = ("cp1252", "latin-1")
"""Encodings of text that is not UTF-8: the likeliest of East Asia, or else Western, in which every byte is valid."""
_LIKELY = 0.5
"""Share of letters that are common in the language of an encoding, from which text is in it. Not measured."""
_GUESSED = 64 * 1024
"""Characters by which the encoding is guessed."""
_LABELS = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "latin1", "us-ascii", "ascii"), "cp1252"),
    **dict.fromkeys(("gb2312", "gbk"), "gb18030"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
}
"""Encodings that browsers read as their larger sets: https://encoding.spec.whatwg.org/#names-and-labels"""
_SEVEN_BIT = ("iso-2022-", "hz-gb-2312")
"""Starts of encodings whose bytes are all ASCII, and so would be UTF-8."""
_ASCII = re.compile("[\0-\x7f]+")
_RUN = re.compile("[^\0-\x7f]{2,}")
"""In East Asian text letters are beside each other; Western ones that are taken for them are among ASCII."""
_SAMPLE = 8 * 1024
"""Characters from which the separator is guessed; the time that it takes grows with their square."""
_SEPARATORS = ",;\t|"
_LONGEST_FIELD = 2**20
_MOST_COLUMNS = 2_000


_CHARSET = re.compile(
    rb"<(?:meta[^>]{0,200}charset|\?xml[^>]{0,100}encoding)\s*=\s*[\"']?([A-Za-z0-9_-]{2,40})", re.IGNORECASE
)
DECLARED = 4096
"""Bytes in which a page declares its encoding; the standard requires the first 1,024."""


class Decoded(NamedTuple):
    """The text of a file, and how it was decoded if the file does not declare it."""

    text: str
    note: str = ""
    warning: str = ""

    def annotated(self, document: Document) -> Document:
        """The document made from it, with the note and the warning on its first part."""
        document.parts[0].notes += [self.note] if self.note else []
        document.parts[0].warnings += [self.warning] if self.warning else []
        return document


def read_text(path: Path, password: str | None = None) -> Document:
    """Paragraphs between blank lines; line breaks stay."""
    found = decoded(path)
    return found.annotated(Document(parts=list(in_parts(paragraphs(found.text)))))


def paragraphs(text: str) -> Iterator[Block]:
    """The paragraphs of a plain text."""
    return (block for each in _PARAGRAPH.split(text) for block in Inline(each).blocks())


def read_separated(path: Path, password: str | None = None) -> Document:
    """One table; the separator is what the first lines use alike."""
    found = decoded(path)
    # Of the process, not of the reader. Python's own limit is 128 KiB, which a cell of text exceeds.
    csv.field_size_limit(_LONGEST_FIELD)
    try:
        return found.annotated(Document(parts=list(in_parts(_table(found.text, path.suffix.lower())))))
    except csv.Error as error:
        raise CorruptInputError(f"the table cannot be read: {error}", remedy="Check its quotation marks.") from error


def _table(text: str, suffix: str) -> Iterator[Block]:
    delimiter = "\t"
    if suffix != ".tsv":
        try:
            delimiter = csv.Sniffer().sniff(text[:_SAMPLE], _SEPARATORS).delimiter
        except csv.Error:  # one column, or lines of many lengths
            delimiter = ","
    rows = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter)
    cells: list[Cell] = []
    for number, row in enumerate(rows):
        if len(row) > _MOST_COLUMNS:
            raise TooLargeError(f"row {number + 1:,} has {len(row):,} columns", remedy="Split the table.")
        cells += (cell(Inline(each.strip()), number, column, header=number == 0) for column, each in enumerate(row))
    yield from tables(cells)


def declared_charset(data: bytes) -> str | None:
    """The encoding that a web page names at its beginning."""
    declared = _CHARSET.search(data[:DECLARED])
    return declared[1].decode("ascii") if declared else None


def decoded(path: Path, declared: str | None = None) -> Decoded:
    """The text of a file, by its byte order mark, as UTF-8, or else in a common 8-bit encoding.

    Args:
        path: The file.
        declared: The encoding that it names.

    Raises:
        TooLargeError: It is over :data:`MOST_BYTES`.
        CorruptInputError: It is not text.
    """
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise TooLargeError(f"the text is over {MOST_BYTES // 2**20} MB", remedy="Split the file.")
    return text_of(data, declared)


def text_of(data: bytes, declared: str | None = None) -> Decoded:
    """:func:`decoded` of bytes."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    if encoding is None and b"\0" in data:
        raise CorruptInputError("the file contains binary data, not text", remedy="Check its type.")
    named = [_LABELS.get(declared.lower(), declared)] if declared else []
    order = (*named, "utf-8") if declared and declared.lower().startswith(_SEVEN_BIT) else ("utf-8", *named)
    for name in (encoding,) if encoding else order:
        with suppress(UnicodeError, LookupError):
            text = _with_line_feeds(data.decode(name))
            if name == "cp1252" and _likely(data):  # in which any bytes are something
                break
            is_wrong = declared and name == "utf-8" and not data.isascii() and not declared.lower().startswith("utf")
            return Decoded(text, f"the text is UTF-8, not {declared[:40]} as declared" if declared and is_wrong else "")
    if encoding in (None, "utf-8-sig"):
        text = data.decode("utf-8-sig", "replace")
        wide = Counter(_ASCII.sub("", text))
        bad = wide.pop("\ufffd", 0)
        if encoding or wide.total() >= bad:  # text in another encoding is hardly ever valid in UTF-8
            return Decoded(
                _with_line_feeds(text), warning=f"the text is damaged: invalid UTF-8 in {count(bad, 'place')}"
            )
    for name in () if encoding else (*_likely(data), *_WESTERN):
        with suppress(UnicodeError):
            text = data.decode(name)
            return Decoded(_with_line_feeds(text), note=f"the text is not UTF-8; guessed encoding: {name}")
    raise CorruptInputError(f"the text is damaged: it is not valid {encoding}", remedy="Save it as UTF-8.")


def _with_line_feeds(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _likely(data: bytes) -> list[str]:
    """The encoding of East Asia in which most of the letters are common ones, if there is one; Korean before others.

    The bytes of one language are rare characters in the encodings of the others, and so are Western ones.
    """
    shares: dict[str, float] = {}
    for name in _ASIAN:
        with suppress(UnicodeError):
            text = data.decode(name)[:_GUESSED]
            letters = sum(not char.isascii() and char.isalpha() for char in text)
            common = sum(_is_common(char, name) for run in _RUN.findall(text) for char in run)
            shares[name] = min(common / max(letters, 1), 1.0)
    best = max(shares, key=lambda name: shares[name], default="")
    return [best] if best and shares[best] > _LIKELY else []


def _is_common(char: str, encoding: str) -> float:
    """Whether a letter is common in the language of an encoding. Of Japanese text a quarter at least is kana."""
    if encoding in ("cp932", "euc_jp"):
        return 4.0 * ("\u3041" <= char <= "\u30fe")
    if encoding == "cp949":
        return "가" <= char <= "힣" and len(char.encode("euc_kr", "ignore")) == 2  # not the rare 8,822
    level = char.encode("gb2312" if encoding == "gb18030" else "big5", "ignore")[:1]
    return b"\xb0" <= level <= b"\xd7" if encoding == "gb18030" else b"\xa4" <= level <= b"\xc6"
