"""Load exports in docling-core and compare its Markdown with ours: whether anything is lost on the way.

    python benchmarks/docling_load.py RUN [--worst 10]

RUN is a run directory. Every document is exported as a DoclingDocument, validated by docling-core, written as Markdown
by its serializer, and cut by its ``HybridChunker`` with a tokenizer made on the spot. Compared are the characters that
are neither white space nor markup: first the share of those in our Markdown that are in Docling's in the same order,
then the reverse. Docling repeats a cell in every slot that it spans, so tables with spans count as their cells, once.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docling_core.transforms.chunker.hybrid_chunker import HybridChunker
from docling_core.transforms.chunker.tokenizer.base import BaseTokenizer
from docling_core.transforms.serializer.markdown import MarkdownDocSerializer, MarkdownParams
from docling_core.types.doc.base import CaptionPlacement
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.items.table.table import TableItem
from rapidfuzz.distance import LCSseq
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import BertPreTokenizer

from pagemill.export.docling_document import docling_document
from pagemill.export.markdown import document_markdown
from pagemill.store.reading import RunReader
from pagemill.tables.html import parse_table

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_MARKUP = re.compile(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)|</?(?:su[bp]|u|br ?/?)>|[\s\\#*`$|\-~]", re.DOTALL)
_MAX_TOKENS = 128


class WordTokenizer(BaseTokenizer):
    """Counts words and signs with a tokenizer that needs no download."""

    def count_tokens(self, text: str) -> int:
        """Tokens of a text."""
        return len(self.get_tokenizer().encode(text).ids)

    def get_max_tokens(self) -> int:
        """Tokens of a chunk."""
        return _MAX_TOKENS

    def get_tokenizer(self) -> Any:
        """The tokenizer itself."""
        tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = BertPreTokenizer()
        return tokenizer


def main() -> int:
    """Print a line per document, the worst first, and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--worst", type=int, default=10)
    arguments = parser.parse_args()
    rows = []
    with RunReader.open(arguments.run) as reader:
        for doc_id, pages in reader.documents():
            if listed := list(pages):
                rows.append((*compared(listed), doc_id))
    rows.sort(key=lambda row: min(row[0] / max(row[1], 1), row[0] / max(row[2], 1)))
    for common, ours, theirs, chunks, doc_id in rows[: arguments.worst]:
        print(f"{common / max(ours, 1):8.2%} {common / max(theirs, 1):8.2%} {ours:8,} {chunks:5} {doc_id}")
    common, ours, theirs, chunks = (sum(column) for column in list(zip(*rows, strict=True))[:4])
    print(f"{common / ours:8.2%} {common / theirs:8.2%} {ours:8,} {chunks:5} all {len(rows)} documents")
    return 0


def compared(pages: list[Any]) -> tuple[int, int, int, int]:
    """Characters in both, in ours, in Docling's; chunks."""
    document = DoclingDocument.model_validate_json("".join(docling_document(pages)))
    ours = "".join(_characters(_without_spans("".join(document_markdown(pages)))))
    params = MarkdownParams(include_picture_classification=False, caption_placement=CaptionPlacement.LAYOUT)
    chunks = list(HybridChunker(tokenizer=WordTokenizer()).chunk(document))
    for table in document.tables:
        _end_spans(table)
    theirs = "".join(_characters(MarkdownDocSerializer(doc=document, params=params).serialize().text))
    return LCSseq.similarity(ours, theirs), len(ours), len(theirs), len(chunks)


def _end_spans(table: TableItem) -> None:
    """Let each cell fill its first slot alone, and one row be the head: rows of heads are put into one."""
    for cell in table.data.table_cells:
        row, column = cell.start_row_offset_idx, cell.start_col_offset_idx
        cell.row_span = cell.col_span = 1
        cell.end_row_offset_idx, cell.end_col_offset_idx = row + 1, column + 1
        cell.column_header = row == 0


def _without_spans(markdown: str) -> str:
    def cells(match: re.Match[str]) -> str:
        table = parse_table(match[0])
        return match[0] if table is None else " ".join([table.caption, *(cell.text for cell in table.cells)])

    return _TABLE.sub(cells, markdown)


def _characters(markdown: str) -> Iterator[str]:
    text = unicodedata.normalize("NFKC", html.unescape(html.unescape(markdown)))
    yield from _MARKUP.sub("", text)


if __name__ == "__main__":
    sys.exit(main())
