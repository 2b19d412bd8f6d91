"""A document as plain text in reading order, an empty line between blocks, cells divided by tabs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pagemill.document.page import PageResult
from pagemill.export.blocks import Block, Kind, blocks
from pagemill.export.formats import ExportFormat
from pagemill.export.markdown import plain_content


def document_text(pages: Iterable[PageResult]) -> Iterator[str]:
    """The text in pieces that are to be written one after the other; the lettering of pictures is left out.

    Args:
        pages: In page order, all of one document.
    """
    before = ""
    for block in blocks(pages):
        if text := _text(block):
            yield f"{before}{text}\n"
            before = "\n"


def _text(block: Block) -> str:
    if block.table is not None:
        lines = ["\t".join(" ".join(cell.split()) for cell in row) for row in block.table.grid()]
    else:
        lines = [] if block.kind is Kind.PICTURE else [block.text]
    return "\n".join(filter(None, [*lines, *map(plain_content, block.captions)]))


FORMAT = ExportFormat(ending="-txt", suffix=".txt", text=lambda pages, _: document_text(pages))
