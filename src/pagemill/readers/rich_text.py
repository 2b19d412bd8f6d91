"""Rich text (RTF), through striprtf, which gives text alone: signs in it tell headings, list items and cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from pagemill.errors import CorruptInputError, TooLargeError
from pagemill.readers.base import Block, Document, Inline, cell, heading, in_parts, list_item, tables
from pagemill.readers.text import MOST_BYTES

_ROW, _CELL, _END, _ITEM = "\ue010", "\ue011", "\ue012", "\ue013"
_SIGNS = {"trowd": _ROW, "cell": _CELL, "nestcell": _CELL, "row": _END, "nestrow": _END, "listtext": _ITEM}
_LEVELS = {f"outlinelevel{letter}": chr(0xE000 + level) for level, letter in enumerate("abcdefghi")}
"""What stands for control words in the text: characters for private use."""
_STYLE = re.compile(r"\\s(\d{1,5})(?!\d)")
_STYLES = re.compile(r"\{\\s(\d{1,5})(?!\d)([^{};]*);\}")
_OWN_LEVEL = re.compile(r"\\outlinelevel([0-8])(?!\d)")
_NAMED = re.compile(r" (?:heading ([1-9])|(title))$", re.IGNORECASE)
"""How the styles of headings are called, in every language of Word."""
_LEVEL = re.compile("[\ue000-\ue008]")
_SIGN = re.compile("[\ue000-\ue008\ue010-\ue013]")
_TABLE = re.compile(f"{_ROW}[^{_END}]*{_END}")
_CODE_PAGE = re.compile(rb"\\ansicpg(\d{1,5})")
_LOST = {b"pict": "pictures", b"footnote": "notes", b"v": "runs of hidden text", b"deleted": "deleted texts"}
_SYMBOLS = str.maketrans({0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓"})
"""Bullets in fonts of symbols."""


def read(path: Path, password: str | None = None) -> Document:
    """Read a rich text."""
    striprtf: Any = import_module("striprtf.striprtf")
    striprtf.specialchars.update(_SIGNS | _LEVELS)
    striprtf.destinations |= {"v", "deleted"}
    data = path.read_bytes()
    if len(data) > MOST_BYTES:
        raise TooLargeError(f"rich text of over {MOST_BYTES // 2**20} MB", remedy="Save it as .docx.")
    if not data.lstrip().startswith(b"{\\rtf"):
        raise CorruptInputError("the file is no rich text", remedy="Save it again.")
    page = _CODE_PAGE.search(data)
    encoding = f"cp{page[1].decode()}" if page else "cp1252"
    try:
        markup = data.decode(encoding, "replace")
    except LookupError:
        markup = data.decode("cp1252", "replace")
    markup = markup.replace("\\v0", "")
    levels = _levels(markup)
    markup = _STYLE.sub(lambda match: levels.get(match[1], "") + match[0], markup)
    parts = list(in_parts(_blocks(striprtf.rtf_to_text(markup, errors="replace"))))
    counts = {what: len(re.findall(rb"\\%s\b" % word, data)) for word, what in _LOST.items()}
    parts[0].notes += [f"{count:,} {what} are not read" for what, count in counts.items() if count]
    if not data.rstrip(b"\0\r\n \t").endswith(b"}"):
        parts[0].warnings.append("the file is cut off")
    return Document(parts=parts)


def _levels(markup: str) -> dict[str, str]:
    """Control words for the levels of heading styles, by their numbers."""
    found: dict[str, int] = {}
    title = None
    for style, about in _STYLES.findall(markup):
        named, own = _NAMED.search(about), _OWN_LEVEL.search(about)
        if named and named[2]:
            title = style
        elif named or own:
            found[style] = int(named[1]) - 1 if named else int(own[1]) if own else 0
    has_title = title is not None and len(re.findall(rf"\\s{title}(?!\d)", markup)) > 1
    found = {style: min(level + has_title, 8) for style, level in found.items()} | ({title: 0} if title else {})
    return {style: f"\\outlinelevel{'abcdefghi'[level]} " for style, level in found.items()}


def _blocks(text: str) -> Iterator[Block]:
    start = 0
    rows: list[list[str]] = []
    for match in _TABLE.finditer(text):
        if between := text[start : match.start()].strip():
            yield from _table(rows)
            yield from _paragraphs(between)
            rows = []
        start = match.end()
        rows.append(match[0].split(_CELL)[:-1])
    yield from _table(rows)
    yield from _paragraphs(text[start:])


def _paragraphs(text: str) -> Iterator[Block]:
    for line in text.split("\n"):
        level = _LEVEL.search(line)
        is_item, (marker, _, text) = _ITEM in line, _SIGN.sub("", line).translate(_SYMBOLS).partition("\t")
        inline = Inline(text if is_item and text else f"{marker}\t{text}".strip())
        if level:
            block = heading(inline, ord(level[0]) - 0xE000 + 1)
        else:
            block = list_item(inline, 0, marker) if is_item and text else inline.block()
        yield from (block,) if block else ()


def _table(rows: list[list[str]]) -> Iterator[Block]:
    yield from tables(
        [
            cell(Inline(_SIGN.sub("", text).strip()), row, column)
            for row, line in enumerate(rows)
            for column, text in enumerate(line)
        ]
    )
