"""pagemill: documents in, structured and searchable pages out.

>>> import pagemill
>>> document = pagemill.parse("report.pdf")
>>> print(document.markdown)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pagemill.api import aextract, aparse, aparse_many, extract, parse, parse_many, stream
    from pagemill.app.search import search
    from pagemill.client import AsyncClient, Client
    from pagemill.config.describing import DescribeSettings
    from pagemill.config.recognition import RecognitionSettings
    from pagemill.document.page import PageResult, Region
    from pagemill.errors import PagemillError
    from pagemill.export.chunks import Chunk, chunks
    from pagemill.export.document import Document
    from pagemill.extraction.result import Extraction
    from pagemill.model_cache import release_models
    from pagemill.retrieval.hits import SearchHit
    from pagemill.tables.table import Table

from pagemill._version import __version__

__all__ = [
    "AsyncClient",
    "Chunk",
    "Client",
    "DescribeSettings",
    "Document",
    "Extraction",
    "PageResult",
    "PagemillError",
    "RecognitionSettings",
    "Region",
    "SearchHit",
    "Table",
    "__version__",
    "aextract",
    "aparse",
    "aparse_many",
    "chunks",
    "extract",
    "parse",
    "parse_many",
    "release_models",
    "search",
    "stream",
]

_HOMES = {
    "AsyncClient": "pagemill.client",
    "Client": "pagemill.client",
    "extract": "pagemill.api",
    "parse": "pagemill.api",
    "stream": "pagemill.api",
    "aextract": "pagemill.api",
    "aparse": "pagemill.api",
    "aparse_many": "pagemill.api",
    "parse_many": "pagemill.api",
    "release_models": "pagemill.model_cache",
    "Chunk": "pagemill.export.chunks",
    "chunks": "pagemill.export.chunks",
    "Document": "pagemill.export.document",
    "Table": "pagemill.tables.table",
    "Extraction": "pagemill.extraction.result",
    "PageResult": "pagemill.document.page",
    "Region": "pagemill.document.page",
    "PagemillError": "pagemill.errors",
    "SearchHit": "pagemill.retrieval.hits",
    "search": "pagemill.app.search",
    "RecognitionSettings": "pagemill.config.recognition",
    "DescribeSettings": "pagemill.config.describing",
}


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that ``import pagemill`` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pagemill' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
