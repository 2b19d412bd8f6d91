"""The decoded size of a PDF page's content, without decoding more than allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from pikepdf import Array, Dictionary, Name, Stream

MAX_FORMS = 500
"""Forms of a page; beyond them the text of forms stays."""
_MAX_DECODED = 64 * 2**20
"""Bytes of a page and its forms. A detailed map has 20 MiB."""
_MAX_WITH_TEXT = 8 * 2**20
"""Bytes that are taken apart, which takes 140 times as much memory. A dense page of text has 0.2 MiB."""
_GROWTH = {"/FlateDecode": 1032, "/LZWDecode": 1400, "/RunLengthDecode": 64}
"""Bytes that one byte becomes at most."""


def is_small(page: Any) -> bool:
    """Whether the content of a page and of its forms may be decoded, and taken apart where it sets text invisible.

    Args:
        page: The object of the page.
    """
    decoded, parsed = _MAX_DECODED, _MAX_WITH_TEXT
    for content in _contents(page):
        size = _decoded_size(content, decoded)
        if size > decoded:
            return False
        decoded -= size
        if sets_modes(data := content.read_bytes()):
            if len(data) > parsed:
                return False
            parsed -= len(data)
    return True


def sets_modes(content: bytes) -> bool:
    """Whether content may change how text is drawn."""
    return b"Tr" in content


def _contents(page: Any) -> Iterator[Any]:
    contents = page.get("/Contents")
    yield from (
        content for content in (contents if isinstance(contents, Array) else [contents]) if isinstance(content, Stream)
    )
    seen: set[tuple[int, int]] = set()
    holders = [page]
    while holders:
        resources = holders.pop().get("/Resources")
        objects = resources.get("/XObject") if isinstance(resources, Dictionary) else None
        for each in list(objects.values()) if isinstance(objects, Dictionary) else []:
            is_form = isinstance(each, Stream) and each.get("/Subtype") == Name.Form
            if is_form and each.objgen not in seen and len(seen) < MAX_FORMS:
                seen.add(each.objgen)
                holders.append(each)
                yield each


def _decoded_size(stream: Any, most: int) -> int:
    """Bytes of a stream when it is decoded, or a number above ``most``."""
    raw = stream.read_raw_bytes()
    filters = stream.get("/Filter")
    names = [str(each) for each in filters] if isinstance(filters, Array) else [str(filters)]
    bound = len(raw)
    for name in names:
        # An upper bound without decoding: content may be a bomb.
        bound *= _GROWTH.get(name, 1)
    if bound <= most or names != ["/FlateDecode"]:
        return bound
    try:
        return len(zlib.decompressobj().decompress(raw, most + 1))
    except zlib.error:
        return bound
