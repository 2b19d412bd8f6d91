"""What the loaders share: chunks of a document, and what to cite of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pagemill

if TYPE_CHECKING:
    from pagemill.export.chunks import Chunk


def chunks_of(source: Any, chunking: Mapping[str, Any], parsing: Mapping[str, Any]) -> Iterator[Chunk]:
    """Parse a source and cut it into chunks."""
    return pagemill.chunks(pagemill.parse(source, **{"crops": False, **parsing}), **chunking)


def citation(chunk: Chunk) -> dict[str, Any]:
    """Plain values by which a chunk is cited: source, headings, pages, and boxes in thousandths of the page."""
    return {
        "source": chunk.source,
        "headings": list(chunk.headings),
        "pages": list(chunk.pages),
        "boxes": [[place.page, *place.bbox_2d] for place in chunk.places],
    }
