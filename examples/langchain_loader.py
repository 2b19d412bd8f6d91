"""A LangChain document loader: the chunks of a file, each with what to cite. Needs ``pip install langchain-core``.

python examples/langchain_loader.py [FILE]
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


class PagemillLoader(BaseLoader):
    """Loads a file as chunks. ``id`` and ``metadata`` are enough to cite a chunk and to replace it later.

    Args:
        source: What :func:`pagemill.parse` takes.
        **options: Those of :func:`pagemill.chunks`: ``max_tokens``, ``tokenizer``, ``overlap``.
    """

    def __init__(self, source: Path | str, **options: Any) -> None:
        self.source = source
        self.options = options

    def lazy_load(self) -> Iterator[Document]:
        """Yield the chunks; their text begins with the headings above them."""
        for chunk in pagemill.chunks(pagemill.parse(self.source, crops=False), **self.options):
            citation = {
                "source": chunk.source,
                "headings": list(chunk.headings),
                "pages": list(chunk.pages),
                "boxes": [(place.page, *place.bbox_2d) for place in chunk.places],  # in thousandths of the page
            }
            yield Document(page_content=chunk.contextualized, id=chunk.id, metadata=citation)


def main(source: Path | str = SAMPLES / "report.pdf") -> None:
    """Print the chunks with their citations."""
    for document in PagemillLoader(source, max_tokens=256).lazy_load():
        print(f"{document.id} {document.metadata['pages']} {document.page_content[:60]!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
