"""What writes each export format: functions that get the content, and a stream or folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec

from pagemill.app.export_content import ExportContent
from pagemill.app.export_options import Format
from pagemill.document.names import file_stem
from pagemill.document.page import DocumentInfo, PageResult
from pagemill.export.alto import document_alto
from pagemill.export.docjson import document_json
from pagemill.export.doctags import document_doctags
from pagemill.export.hocr import document_hocr
from pagemill.export.markdown import collected_markdown, document_markdown
from pagemill.export.plain_text import document_text
from pagemill.store.files import encoded

_PNG = b"\x89PNG"


def _jsonl(content: ExportContent, stream: BinaryIO, crops_root: str) -> None:
    stream.writelines(msgspec.json.encode(page) + b"\n" for page in content.pages())


def _parquet(content: ExportContent, stream: BinaryIO, crops_root: str) -> None:
    from pagemill.export.parquet import write_parquet

    write_parquet(stream, content.pages(), picture=content.picture if content.options.with_crops else None)


def _single_markdown(content: ExportContent, stream: BinaryIO, crops_root: str) -> None:
    stream.writelines(encoded(collected_markdown(content.documents(), crops_root=crops_root)))


def _chunks(content: ExportContent, stream: BinaryIO, crops_root: str) -> None:
    from pagemill.document.json_text import json_text
    from pagemill.export.chunks import Chunk, cut
    from pagemill.export.token_count import token_counter

    settings = content.options.chunks
    count = token_counter(settings.tokenizer)
    made = (
        chunk for _, pages in content.documents() for chunk in cut(pages, count, settings.max_tokens, settings.overlap)
    )
    if content.options.parquet:
        from pagemill.export.parquet import write_structs

        write_structs(stream, Chunk, made)
    else:
        stream.writelines(encoded(f"{json_text(chunk)}\n" for chunk in made))


def _coco(content: ExportContent, stream: BinaryIO, crops_root: str) -> None:
    from pagemill.export.coco import write_coco

    write_coco(stream, content.pages())


def _csv_tables(content: ExportContent, folder: Path) -> None:
    from pagemill.export.csv_tables import write_tables

    write_tables(folder, content.pages(), byte_order_mark=content.options.bom)


def _html(content: ExportContent, folder: Path) -> None:
    from pagemill.export.html import write_html

    documents = ((doc_id, content.with_crops(folder, pages)) for doc_id, pages in content.documents())
    write_html(folder, content.reader.path.resolve().name, documents, content.reader.info)


def _docling_document(content: ExportContent, folder: Path) -> None:
    from pagemill.export.docling_document import PageImage, docling_document

    if not content.options.page_images:
        write_each(content, folder, ".json", docling_document)
        return
    from pagemill.app.publish import PublishedImages

    taken = PublishedImages(content.reader, lambda: None, content.options.sources, content.options.wants)
    with taken.opened() as images:
        for page_id, error in images.problems:
            raise type(error)(f"the image of {page_id} cannot be read: {error.message}", remedy=error.remedy)
        (folder / "pages").mkdir()

        def saved(page: PageResult) -> PageImage | None:
            if (data := images(page)) is None:  # of a page that failed
                return None
            name = f"pages/{file_stem(page.page_id)}{'.png' if data.startswith(_PNG) else '.jpg'}"
            (folder / name).write_bytes(data)
            return PageImage(name, page.width, page.height)

        write_each(content, folder, ".json", partial(docling_document, page_image=saved))


def _pdf(content: ExportContent, folder: Path) -> None:
    from pagemill.app.export_pdf import write_pdfs

    write_pdfs(content, folder)


def write_each(
    content: ExportContent,
    folder: Path,
    suffix: str,
    text: Callable[[Iterator[PageResult], DocumentInfo, bool], Iterable[str]],
) -> None:
    """Write one text file per document, of its pages, what it says of itself, and whether pages may be missing."""
    for doc_id, pages in content.documents():
        told = content.reader.info(doc_id), content.reader.is_provisional(doc_id)
        with (folder / f"{file_stem(doc_id)}{suffix}").open("wb") as stream:
            stream.writelines(encoded(text(content.with_crops(folder, pages), *told)))


STREAM_WRITERS: dict[Format, Callable[[ExportContent, BinaryIO, str], None]] = {
    Format.JSONL: _jsonl,
    Format.PARQUET: _parquet,
    Format.MARKDOWN: _single_markdown,
    Format.CHUNKS: _chunks,
    Format.COCO: _coco,
}
"""Of formats that are one file: content, the file, and what leads from it to the crops in the run directory."""

FOLDER_WRITERS: dict[Format, Callable[[ExportContent, Path], None]] = {
    Format.CSV_TABLES: _csv_tables,
    Format.HTML: _html,
    Format.MARKDOWN: partial(write_each, suffix=".md", text=lambda pages, *_: document_markdown(pages, crops_root="")),
    Format.DOCJSON: partial(write_each, suffix=".json", text=document_json),
    Format.DOCLINGDOCUMENT: _docling_document,
    Format.PDF: _pdf,
    Format.HOCR: partial(write_each, suffix=".hocr", text=lambda pages, *_: document_hocr(pages)),
    Format.ALTO: partial(write_each, suffix=".xml", text=lambda pages, *_: document_alto(pages)),
    Format.TXT: partial(write_each, suffix=".txt", text=lambda pages, *_: document_text(pages)),
    Format.DOCTAGS: partial(write_each, suffix=".doctags", text=lambda pages, *_: document_doctags(pages)),
}
"""Of formats that are a folder, which is empty but for ``crops/``."""
