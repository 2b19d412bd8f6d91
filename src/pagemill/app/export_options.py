"""The formats of an export, and the options that go with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar

from pagemill.app.options import ImageSources
from pagemill.config.chunking import ChunkSettings
from pagemill.config.modes import FurnitureMode
from pagemill.config.options import Settings, option, options_of
from pagemill.document.page import PageResult, Status
from pagemill.errors import UsageError


class Format(StrEnum):
    """Export format."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    DOCJSON = "docjson"
    DOCLINGDOCUMENT = "doclingdocument"
    CHUNKS = "chunks"
    HTML = "html"
    CSV_TABLES = "csv-tables"
    PDF = "pdf"
    HOCR = "hocr"
    ALTO = "alto"
    LANCE = "lance"
    TXT = "txt"
    DOCTAGS = "doctags"
    COCO = "coco"


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatTraits:
    """What sets a format apart. What writes it is in :mod:`pagemill.app.export_writers`."""

    ending: str
    """Of the default target: ``.jsonl`` of a file, ``-html`` of a folder."""
    crops: bool | None = None
    """Whether the crops are included by default; None where that cannot be chosen."""
    own: frozenset[str] = frozenset()
    """Names of the options that go with this format and not with every other."""


TRAITS: dict[Format, FormatTraits] = {
    Format.JSONL: FormatTraits(ending=".jsonl"),
    Format.PARQUET: FormatTraits(ending=".parquet", crops=False),
    Format.MARKDOWN: FormatTraits(ending="-markdown", crops=True, own=frozenset({"single"})),
    Format.DOCJSON: FormatTraits(ending="-docjson", crops=True),
    Format.DOCLINGDOCUMENT: FormatTraits(ending="-docling", crops=True, own=frozenset({"page_images", "sources"})),
    Format.CHUNKS: FormatTraits(ending=".chunks.jsonl", own=frozenset({"parquet", "chunks"})),
    Format.HTML: FormatTraits(ending="-html", crops=True),
    Format.CSV_TABLES: FormatTraits(ending="-tables", own=frozenset({"bom"})),
    Format.PDF: FormatTraits(ending="-pdf", own=frozenset({"sources"})),
    Format.HOCR: FormatTraits(ending="-hocr"),
    Format.ALTO: FormatTraits(ending="-alto"),
    Format.LANCE: FormatTraits(ending="-lance"),
    Format.TXT: FormatTraits(ending="-txt"),
    Format.DOCTAGS: FormatTraits(ending="-doctags"),
    Format.COCO: FormatTraits(ending=".coco.json"),
}
_SINGLE = FormatTraits(ending=".md")
"""Of Markdown in one file."""
_PARQUET_CHUNKS = FormatTraits(ending=".chunks.parquet")
_TEXT = (".jsonl", ".md", ".coco.json")
"""Endings of files that can also be written to a stream."""


def _status(name: str) -> Status | None:
    return None if name == "all" else Status(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Settings):
    """What to export, and how. Patterns are those of file names: ``*``, ``?``, ``[...]``.

    Raises:
        UsageError: An option does not go with the format.
    """

    RESULTS: ClassVar = False

    format: Format = option(
        "-f", "--format", help="What to write.", shown_default="bring the files in OUT itself up to date"
    )
    """None: the command line writes no export then."""
    documents: tuple[str, ...] = option(
        default=(), metavar="GLOB", help="Only documents whose id matches; may be repeated."
    )
    pages: tuple[str, ...] = option(
        "--pages",
        key="page_ids",  # the option of the same flag of sources is another one
        default=(),
        metavar="GLOB",
        help="Only pages whose page id matches; may be repeated.",
    )
    status: Status | None = option(parse=_status, help="Only pages with this status.", shown_default="all")
    single: bool = option(default=False, help="markdown: write all documents to one file.")
    crops: bool | None = option(
        "--with-crops/--no-crops", help="Include the crops.", shown_default="in folders, not in Parquet"
    )
    parquet: bool = option(
        default=False, help="chunks: write Parquet, not JSON Lines.", shown_default="by the ending of -o"
    )
    chunks: ChunkSettings = ChunkSettings()
    page_images: bool = option(
        "--with-page-images", default=False, help="doclingdocument: include the images of the pages."
    )
    inline_marks: bool = option(
        default=True, help="Keep bold, italic, struck-out and fixed-width words, scripts and links."
    )
    bom: bool = option(default=False, help="csv-tables: mark the files as UTF-8 for Excel.")
    furniture: FurnitureMode | None = option(
        help="Running heads, running feet and page numbers that texts leave out: proven, or likely ones as well.",
        shown_default="as the run was parsed",
    )
    join_tables: bool = option(
        "--join-tables/--no-join-tables",
        default=True,
        help="Make one table of its parts on several pages.",
    )
    overwrite: bool = option(
        default=False,
        help="Replace the file, the folder of an earlier export, or in a Lance table another run of the same name.",
    )
    sources: ImageSources = ImageSources()
    """Where the parsed files are now; of formats that read them again."""

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.format is None:
            return
        for name in frozenset().union(*(traits.own for traits in TRAITS.values())) - TRAITS[self.format].own:
            if self._says(name):
                takers = " or ".join(kind for kind, traits in TRAITS.items() if name in traits.own)
                flags = [each.flags[-1] for each in options_of(ExportOptions) if each.key == name]
                if not flags:  # those of settings in these settings
                    kind = type(getattr(self, name))
                    flags = [each.flags[-1] for each in options_of(kind) if each.key not in ImageSources.NOT_NEEDED]
                raise UsageError(f"{', '.join(flags)} goes with --format {takers}, not with {self.format}")
        if self.crops is not None and self.traits.crops is None:
            one_file = " in one file" if self.single else ""
            raise UsageError(f"crops cannot be chosen in --format {self.format}{one_file}")

    def _says(self, name: str) -> bool:
        """Whether an option is given. A password may be that of all commands, from the environment."""
        value = getattr(self, name)
        if isinstance(value, ImageSources):
            return bool(value.inputs or value.options.image_column)
        return bool(value != getattr(_NONE, name))

    @property
    def traits(self) -> FormatTraits:
        """What the format is like, with these options."""
        if self.parquet:
            return _PARQUET_CHUNKS
        return _SINGLE if self.single else TRAITS[self.format]

    def wants_document(self, doc_id: str) -> bool:
        """Whether pages of a document are wanted at all."""
        return not self.documents or any(fnmatchcase(doc_id, pattern) for pattern in self.documents)

    def wants(self, page: PageResult) -> bool:
        """Whether a page is wanted."""
        if self.status is not None and page.status is not self.status:
            return False
        if self.pages and not any(fnmatchcase(page.page_id, pattern) for pattern in self.pages):
            return False
        return self.wants_document(page.doc_id)

    @property
    def selects_all(self) -> bool:
        """Whether no page of the run is left out."""
        return not self.documents and not self.pages and self.status is None

    @property
    def is_file(self) -> bool:
        """Whether the export is one file rather than a folder."""
        return self.traits.ending.startswith(".")

    @property
    def is_text(self) -> bool:
        """Whether the export can also be written to a stream."""
        return self.traits.ending.endswith(_TEXT)

    @property
    def with_crops(self) -> bool:
        """Whether crops are included."""
        return bool(self.traits.crops if self.crops is None else self.crops)

    def default_target(self, out: Path) -> Path:
        """The default target: beside the run directory, with its name."""
        out = out.resolve()
        return out.with_name(f"{out.name}{self.traits.ending}")


_NONE = ExportOptions()
