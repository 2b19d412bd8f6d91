"""Chunks of a document in memory: what :func:`pagemill.chunks` gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from os import PathLike

from pagemill.config.chunking import ChunkSettings
from pagemill.config.options import build
from pagemill.document.page import PageResult
from pagemill.export.chunks import Chunk, cut
from pagemill.export.document import Document
from pagemill.export.token_count import token_counter


def chunks(
    document: Document | Iterable[PageResult],
    *,
    max_tokens: int | None = None,
    tokenizer: str | PathLike[str] | None = None,
    overlap: int | None = None,
) -> Iterator[Chunk]:
    """Cut a document into chunks for retrieval, in bounded memory.

    A chunk ends with its section. It is cut between paragraphs, items, rows of tables or sentences; inside a sentence
    only where that alone is too long. Running heads and feet, page numbers and marginal notes are left out.

    Args:
        document: What :func:`pagemill.parse` returns; or pages in page order, all of one document.
        max_tokens: Of a chunk with the headings above it; 512 by default.
        tokenizer: The ``tokenizer.json`` of the model that will read the chunks; tokens are estimated without it.
        overlap: At most so many tokens of sentences and items are repeated from the chunk before, in one section.

    Raises:
        UsageError: A number is not valid.
        MissingDependencyError: The package tokenizers is missing.
        InputError: The tokenizer cannot be read.
    """
    settings = build(ChunkSettings, {"max_tokens": max_tokens, "tokenizer": tokenizer, "overlap": overlap})
    pages = document.pages if isinstance(document, Document) else document
    return cut(pages, token_counter(settings.tokenizer), settings.max_tokens, settings.overlap)
