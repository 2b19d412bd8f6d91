"""Where pages come from: PDFs, images, folders, globs, dataset shards, Hub datasets, URLs, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pagemill.sources.options import PageRanges, SourceOptions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pagemill.sources.base import Catalogue, PageSource, PdfProbe

__all__ = ["PageRanges", "SourceOptions", "resolve"]


def resolve(
    inputs: Sequence[str | Path | bytes],
    *,
    options: SourceOptions,
    decoder: PdfProbe,
    catalogue: Catalogue | None = None,
) -> PageSource:
    """Make the lazy stream of all pages of the inputs, in input order.

    Nothing is opened yet, and nothing that is wrong with an input raises: it becomes a page reference with an error.

    Args:
        inputs: Paths of files and folders, globs, URLs (``hf://``, ``s3://``, ``https://``), or bytes.
        options: What to take of them.
        decoder: Opens PDFs; the decoding service.
        catalogue: What is known from earlier runs; None for a run on its own.
    """
    from pagemill.sources.catalogue import NewCatalogue
    from pagemill.sources.stream import InputStream

    return InputStream(inputs, options, decoder, catalogue or NewCatalogue())
