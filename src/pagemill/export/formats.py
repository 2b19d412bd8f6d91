"""The formats of documents, which ``pagemill export``, the server, its clients and the web app offer.

A format is one :class:`ExportFormat` in a file of its own and a line that names it: in ``_OWN`` here, or among the
entry points ``pagemill.export_formats`` of another package.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from pagemill.document.page import DocumentInfo, ImageCrop, PageResult
from pagemill.errors import PagemillError, UsageError
from pagemill.plugins import Plugin, installed

log = logging.getLogger(__name__)

GROUP = "pagemill.export_formats"
_OWN = {
    "jsonl": "pagemill.export.jsonl:FORMAT",
    "parquet": "pagemill.export.parquet:FORMAT",
    "markdown": "pagemill.export.markdown:FORMAT",
    "docjson": "pagemill.export.docjson:FORMAT",
    "doclingdocument": "pagemill.app.export_docling:FORMAT",
    "chunks": "pagemill.export.chunks:FORMAT",
    "html": "pagemill.export.html:FORMAT",
    "csv-tables": "pagemill.export.csv_tables:FORMAT",
    "pdf": "pagemill.app.export_pdf:FORMAT",
    "hocr": "pagemill.export.hocr:FORMAT",
    "alto": "pagemill.export.alto:FORMAT",
    "lance": "pagemill.app.export_lance:FORMAT",
    "txt": "pagemill.export.plain_text:FORMAT",
    "doctags": "pagemill.export.doctags:FORMAT",
    "coco": "pagemill.export.coco:FORMAT",
}


class About(NamedTuple):
    """Data about a document for a format, in addition to its pages."""

    info: DocumentInfo = DocumentInfo()
    """Metadata of the document."""
    is_provisional: bool = False
    """Pages of it are missing, and may follow."""
    crops_root: str = ""
    """Put before the paths of crops, such as ``../``."""


class Content(Protocol):
    """The exported content: the selected pages of a run, which can be read once."""

    options: Any
    """:class:`pagemill.app.export_options.ExportOptions`"""

    @property
    def name(self) -> str:
        """Name of the run."""

    def pages(self) -> Iterator[PageResult]:
        """All pages, in input order."""

    def documents(self) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """The documents, by id, and their pages in page order."""

    def about(self, doc_id: str) -> About:
        """A document as a whole."""

    def with_crops(self, folder: Path, pages: Iterable[PageResult]) -> Iterator[PageResult]:
        """The pages; their crops are copied to the folder, or removed from the records."""

    def picture(self, crop: ImageCrop) -> bytes | None:
        """The file of a crop."""


class ExportFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format: ``text``, or one of ``to_file``, ``to_folder`` and ``to_table``, which get a :class:`Content`."""

    ending: str
    """Ending of the default target: ``.jsonl`` of a file, ``-html`` of a folder."""
    text: Callable[[Iterator[PageResult], About], Iterable[str]] | None = None
    """A document of at least one page, piece by piece. Each document is a file of the folder."""
    suffix: str = ""
    """Suffix of these files."""
    to_file: Callable[[Any, BinaryIO, str], None] | None = None
    """Writes everything into one file; the text is the path from there to the run directory with the crops."""
    to_folder: Callable[[Any, Path], None] | None = None
    """Writes everything into a folder, which is empty except for ``crops/``."""
    to_table: Callable[[Any, str], dict[str, int]] | None = None
    """Writes everything into the table at an address; see :func:`pagemill.app.export_lance.export_to_lance`."""
    crops: bool | None = None
    """Whether the crops are included by default; None where that cannot be chosen."""
    served_as: str = ""
    """Suffix of a document's address on the server, which offers its ``text``; empty if it does not."""
    media_type: str = "text/plain; charset=utf-8"
    """Media type of such a document."""
    title: str = ""
    """The name of such a document's button in the web app."""


def format_names() -> list[str]:
    """The names of all formats, without importing them; formats of other packages cannot replace ours."""
    return list(dict.fromkeys([*_OWN, *installed(GROUP)]))


def export_format(name: str) -> ExportFormat:
    """The format of a name.

    Raises:
        UsageError: There is none.
        MissingDependencyError: Its package cannot be imported.
    """
    # By the same way as those of others, so that a format is imported only where it is used.
    plugin = Plugin(_OWN[name], "pagemill") if name in _OWN else installed(GROUP).get(name)
    if plugin is None:
        raise UsageError(f"unknown format {name!r}", remedy=f"Choose one of {', '.join(format_names())}.")
    found: ExportFormat = plugin.load(f"the export format {name!r}", ExportFormat)
    return found


def served_formats() -> dict[str, ExportFormat]:
    """The formats in which the server offers documents, by ``served_as``."""
    found: dict[str, ExportFormat] = {}
    for name in format_names():
        try:
            each = export_format(name)
        except PagemillError as error:  # another package must not stop the server
            log.warning("%s", error.message)
            continue
        if each.served_as and each.text is not None:
            # Ours come first, so that no other package takes over an address of the server.
            found.setdefault(each.served_as, each)
    return found
