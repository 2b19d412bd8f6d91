"""A document's DocJSON, written as its pages come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.document.docjson import elements_of, page_of
from pagemill.document.page import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pagemill.document.page import PageResult


def document_json(pages: Iterable[PageResult]) -> Iterator[str]:
    """A document as DocJSON (:class:`pagemill.document.docjson.DocJSON`), in pieces to be written one after the other.

    Elements go out page by page, one a line; only the short entries of the page list are kept until the end.

    Args:
        pages: In page order, all of one document; at least one.
    """
    listed: list[str] = []
    doc_id = source = ""
    first = True
    yield '{"elements":['
    for page in pages:
        doc_id, source = page.doc_id, page.source
        listed.append(_encode(page_of(page)))
        for element in elements_of(page):
            yield ("\n" if first else ",\n") + _encode(element)
            first = False
    tail = {
        "schema_version": SCHEMA_VERSION,
        "doc_id": doc_id,
        "source": source,
        "page_count": len(listed),
        "metadata": {},
    }
    yield '\n],"pages":[' + ",".join(listed) + "]," + _encode(tail)[1:] + "\n"


def _encode(data: Any) -> str:
    """JSON text; lone surrogates (of broken PDFs, of file names that are no UTF-8) become U+FFFD."""
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(data), ensure_ascii=False)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
