"""Where pages come from: PDFs, images, folders, globs, dataset shards, Hub datasets, URLs, bytes."""

from __future__ import annotations

from pagemill.sources.options import PageRanges, SourceOptions

__all__ = ["PageRanges", "SourceOptions"]
