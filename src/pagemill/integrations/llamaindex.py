"""A reader for LlamaIndex. Needs the extra ``llamaindex``."""

from __future__ import annotations

from os import PathLike
from typing import Any

from pagemill.errors import lacks_extra
from pagemill.integrations.citations import chunks_of, citation

try:
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.schema import Document
except ImportError as error:
    raise lacks_extra("llama-index-core is not installed", "llamaindex") from error


class PagemillReader(BaseReader):
    """Reads a file as chunks, also as ``SimpleDirectoryReader(..., file_extractor={".pdf": PagemillReader()})``.

    Args:
        parsing: Keyword arguments of :func:`pagemill.parse`, such as ``{"languages": ["ko"]}``.
        **chunking: Keyword arguments of :func:`pagemill.chunks`: ``max_tokens``, ``tokenizer``, ``overlap``.
    """

    def __init__(self, *, parsing: dict[str, Any] | None = None, **chunking: Any) -> None:
        self.parsing = parsing or {}
        self.chunking = chunking

    def load_data(
        self, file: str | PathLike[str] | bytes, extra_info: dict[str, Any] | None = None, **_: Any
    ) -> list[Document]:
        """The chunks of a file; of their metadata, only the headings are embedded."""
        documents = []
        for chunk in chunks_of(file, self.chunking, self.parsing):
            # Its embeddings include metadata: the headings are given there, not repeated in the text.
            metadata = citation(chunk) | {"headings": " > ".join(chunk.headings)} | (extra_info or {})
            # Coordinates and ids would only dilute the vector and fill the prompt.
            excluded = [key for key in metadata if key != "headings"]
            documents.append(
                Document(
                    text=chunk.text,
                    id_=chunk.id,
                    metadata=metadata,
                    excluded_embed_metadata_keys=excluded,
                    excluded_llm_metadata_keys=excluded,
                )
            )
        return documents
