"""Exports DoclingDocuments, with the images of their pages if these are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pagemill.app.export_content import ExportContent
from pagemill.document.names import file_stem
from pagemill.document.page import PageResult
from pagemill.export.docling_document import PageImage, docling_document
from pagemill.export.formats import About, ExportFormat

_PNG = b"\x89PNG"
_SUFFIX = ".json"


def _text(pages: Iterator[PageResult], about: About, **images: Any) -> Iterator[str]:
    return docling_document(pages, about.info, about.is_provisional, **images)


def _write(content: ExportContent, folder: Path) -> None:
    if not content.options.page_images:
        content.write_each(folder, _SUFFIX, _text)
        return
    from pagemill.app.publish import PublishedImages

    taken = PublishedImages(content.reader, lambda: None, content.options.sources, content.options.wants)
    with taken.opened() as images:
        # Refused, not left out: a document with the images of some of its pages only looks complete.
        for page_id, error in images.problems:
            raise type(error)(f"the image of {page_id} cannot be read: {error.message}", remedy=error.remedy)
        (folder / "pages").mkdir()

        def saved(page: PageResult) -> PageImage | None:
            if (data := images(page)) is None:  # of a page that failed
                return None
            # The published image may be the source's own file, byte for byte.
            name = f"pages/{file_stem(page.page_id)}{'.png' if data.startswith(_PNG) else '.jpg'}"
            (folder / name).write_bytes(data)
            return PageImage(name, page.width, page.height)

        content.write_each(folder, _SUFFIX, partial(_text, page_image=saved))


FORMAT = ExportFormat(
    ending="-docling",
    text=_text,
    suffix=_SUFFIX,
    to_folder=_write,
    crops=True,
    served_as="docling.json",
    media_type="application/json",
    title="DoclingDocument",
)
