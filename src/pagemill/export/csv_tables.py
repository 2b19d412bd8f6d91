"""The tables of a run as CSV files (RFC 4180, UTF-8), and a list of them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from pagemill.document.labels import Label
from pagemill.document.names import file_stem
from pagemill.document.page import PageResult
from pagemill.export.formats import ExportFormat
from pagemill.export.markdown import plain_content, table_of
from pagemill.export.parts import captions_of
from pagemill.tables.frames import csv_text, inert

INDEX = "tables.csv"
INDEX_COLUMNS = (
    *("file", "page_id", "doc_id", "page_number", "region"),
    *("rows", "columns", "header_rows", "merged_cells", "caption"),
)


def write_tables(folder: Path, pages: Iterable[PageResult], *, byte_order_mark: bool = False) -> None:
    """Write ``tables/NAME_REGION.csv`` for every table, and ``tables.csv``, which lists them.

    A cell over several rows or columns is repeated in each of them, so that every row can be read alone;
    ``merged_cells`` counts such cells. What a spreadsheet would take for a formula gets an apostrophe
    (:func:`pagemill.tables.frames.inert`). A table that could not be read as rows and columns is listed without a file.

    Args:
        folder: An empty directory.
        pages: In the order of the list.
        byte_order_mark: Start each file with U+FEFF, by which Excel knows UTF-8.

    Raises:
        OSError: A file cannot be written.
    """
    encoding = "utf-8-sig" if byte_order_mark else "utf-8"
    (folder / "tables").mkdir()
    with (folder / INDEX).open("w", encoding=encoding, errors="replace", newline="") as stream:
        index = csv.writer(stream)
        index.writerow(INDEX_COLUMNS)
        for page in pages:
            captions = captions_of(page.regions)
            for region in page.regions:
                # A table that was not read is in the errors of its page; one without cells is in the list, without a
                # file.
                if region.label is not Label.TABLE or not region.content:
                    continue
                table = table_of(region)
                name = ""
                if table is not None:
                    name = f"tables/{file_stem(page.page_id)}_{region.index}.csv"
                    (folder / name).write_bytes(csv_text(table.grid()).encode(encoding, "replace"))
                texts = [*map(plain_content, captions.get(region.index, ())), table.caption if table else ""]
                merged = [cell for cell in table.cells if cell.row_span * cell.column_span > 1] if table else []
                sizes = [table.rows, table.columns, table.header_rows, len(merged)] if table else [0] * 4
                caption = inert(" ".join(filter(None, texts)))
                # Names come from files: one that begins with `=` would be a formula in a spreadsheet.
                where = [inert(page.page_id), inert(page.doc_id), page.page_number, region.index]
                index.writerow([name, *where, *sizes, caption])


FORMAT = ExportFormat(
    ending="-tables",
    to_folder=lambda content, folder: write_tables(folder, content.pages(), byte_order_mark=content.options.bom),
)
