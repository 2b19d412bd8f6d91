"""A converter for Haystack. Needs the extra ``haystack``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pagemill.errors import lacks_extra
from pagemill.integrations.citations import chunks_of, citation

try:
    from haystack import Document, component
    from haystack.dataclasses import ByteStream
except ImportError as error:
    raise lacks_extra("haystack-ai is not installed", "haystack") from error


@component
class PagemillConverter:
    """Converts files to chunks with what to cite, in a pipeline.

    Args:
        chunking: Keyword arguments of :func:`pagemill.chunks`: ``max_tokens``, ``tokenizer``, ``overlap``.
        parsing: Keyword arguments of :func:`pagemill.parse`, such as ``{"languages": ["ko"]}``.
    """

    def __init__(self, chunking: dict[str, Any] | None = None, parsing: dict[str, Any] | None = None) -> None:
        self.chunking = chunking or {}
        self.parsing = parsing or {}

    @component.output_types(documents=list[Document])
    def run(
        self, sources: list[str | Path | ByteStream], meta: dict[str, Any] | list[dict[str, Any]] | None = None
    ) -> dict[str, list[Document]]:
        """Convert files.

        Args:
            sources: Paths, or byte streams.
            meta: Added to the metadata of all documents, or of those of each source.
        """
        metas: Sequence[dict[str, Any]] = meta if isinstance(meta, list) else [meta or {}] * len(sources)
        documents = []
        for source, more in zip(sources, metas, strict=True):
            given = source.data if isinstance(source, ByteStream) else source
            if isinstance(source, ByteStream):
                more = {**source.meta, **more}
            for chunk in chunks_of(given, self.chunking, self.parsing):
                documents.append(Document(id=chunk.id, content=chunk.contextualized, meta=citation(chunk) | more))
        return {"documents": documents}
