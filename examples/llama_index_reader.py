"""A LlamaIndex reader: the chunks of a file as nodes with what to cite. Needs ``pip install llama-index-core``.

python examples/llama_index_reader.py [FILE]
"""

import sys
from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

import pagemill

SAMPLES = Path(__file__).parents[1] / "samples"


class PagemillReader(BaseReader):
    """Reads a file as chunks, also as ``SimpleDirectoryReader(..., file_extractor={".pdf": PagemillReader()})``.

    Args:
        **options: Those of :func:`pagemill.chunks`: ``max_tokens``, ``tokenizer``, ``overlap``.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options

    def load_data(self, file: Path | str, extra_info: dict[str, Any] | None = None, **_: Any) -> list[Document]:
        """The chunks of a file; of their metadata, only the headings are embedded."""
        documents = []
        for chunk in pagemill.chunks(pagemill.parse(file, crops=False), **self.options):
            citation = {
                "headings": " > ".join(chunk.headings),
                "source": chunk.source,
                "pages": list(chunk.pages),
                "boxes": [(place.page, *place.bbox_2d) for place in chunk.places],  # in thousandths of the page
            }
            citation |= extra_info or {}
            not_said = [key for key in citation if key != "headings"]
            documents.append(
                Document(
                    text=chunk.text,
                    id_=chunk.id,
                    metadata=citation,
                    excluded_embed_metadata_keys=not_said,
                    excluded_llm_metadata_keys=not_said,
                )
            )
        return documents


def main(source: Path | str = SAMPLES / "report.pdf") -> None:
    """Print the chunks with their citations."""
    for document in PagemillReader(max_tokens=256).load_data(source):
        print(f"{document.id_} {document.metadata['pages']} {document.text[:60]!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
