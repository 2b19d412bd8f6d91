"""Lines as engines and documents give them, made safe to work with."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import msgspec

from pagemill.document.page import PageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pagemill.document.page import TextLine

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters, and the marks that turn the direction of what follows: text that hides text."""


def clean_lines(lines: Sequence[TextLine]) -> tuple[list[TextLine], list[PageError]]:
    """Take unprintable characters and corners that are no numbers out.

    Lines whose box is no box are left out, which the errors say; so are lines that hold nothing to print.
    """
    kept: list[TextLine] = []
    broken = 0
    for line in lines:
        if not all(math.isfinite(value) for value in line.box):
            broken += 1
            continue
        if line.polygon and not all(math.isfinite(value) for corner in line.polygon for value in corner):
            line = msgspec.structs.replace(line, polygon=None)
        if _UNPRINTABLE.search(line.text):
            words = tuple(msgspec.structs.replace(word, text=_printable(word.text)) for word in line.words)
            line = msgspec.structs.replace(line, text=_printable(line.text), words=words)
        if line.text.strip():
            kept.append(line)
    errors = []
    if broken:
        message = f"{broken} lines of text are left out: their boxes are no numbers"
        errors.append(PageError(component="recognition", category="invalid_geometry", message=message))
    return kept, errors


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("", text)
