"""A document loader for LangChain. Needs the extra ``langchain``."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

from pagemill.errors import lacks_extra
from pagemill.integrations.citations import chunks_of, citation

try:
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document
except ImportError as error:
    raise lacks_extra("langchain-core is not installed", "langchain") from error


class PagemillLoader(BaseLoader):
    """Loads a file as chunks. ``id`` and ``metadata`` are enough to cite a chunk and to replace it later.

    Args:
        source: A source as for :func:`pagemill.parse`.
        parsing: Keyword arguments of :func:`pagemill.parse`, such as ``{"languages": ["ko"]}``.
        **chunking: Keyword arguments of :func:`pagemill.chunks`: ``max_tokens``, ``tokenizer``, ``overlap``.
    """

    def __init__(
        self, source: str | PathLike[str] | bytes, *, parsing: dict[str, Any] | None = None, **chunking: Any
    ) -> None:
        self.source = source
        self.parsing = parsing or {}
        self.chunking = chunking

    def lazy_load(self) -> Iterator[Document]:
        """Yield the chunks; their text begins with the headings above them."""
        for chunk in chunks_of(self.source, self.chunking, self.parsing):
            # With the headings: LangChain embeds only the text of a document.
            yield Document(page_content=chunk.contextualized, id=chunk.id, metadata=citation(chunk))
