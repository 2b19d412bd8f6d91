"""The options of an export."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar

from pagemill.app.options import ImageSources
from pagemill.config.chunking import ChunkSettings
from pagemill.config.modes import FurnitureMode
from pagemill.config.options import Settings, option, options_of
from pagemill.document.page import PageResult, Status
from pagemill.errors import UsageError
from pagemill.export.formats import ExportFormat, export_format

_OWN_OPTIONS = {
    "single": ("markdown",),
    "parquet": ("chunks",),
    "chunks": ("chunks",),
    "page_images": ("doclingdocument",),
    "sources": ("doclingdocument", "pdf"),
    "bom": ("csv-tables",),
}
"""Options that apply to some formats only."""


def _status(name: str) -> Status | None:
    return None if name == "all" else Status(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Settings):
    """What to export, and how. Patterns are those of file names: ``*``, ``?``, ``[...]``.

    Raises:
        UsageError: An option does not go with the format.
    """

    RESULTS: ClassVar = False

    format: str = option(
        "-f", "--format", help="What to write.", shown_default="bring the files in OUT itself up to date"
    )
    """None: no export is written."""
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
    """Current location of the parsed files, for formats that read them again."""

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        # Defaults of the class, which the command line compares with.
        if self.format is None:
            return
        self.traits  # noqa: B018 - raises where there is no such format
        for name, formats in _OWN_OPTIONS.items():
            if self.format not in formats and self._is_given(name):
                flags = [each.flags[-1] for each in options_of(ExportOptions) if each.key == name]
                if not flags:  # those of settings in these settings
                    kind = type(getattr(self, name))
                    flags = [each.flags[-1] for each in options_of(kind) if each.key not in ImageSources.NOT_NEEDED]
                raise UsageError(f"{', '.join(flags)} requires --format {' or '.join(formats)}, not {self.format}")
        if self.crops is not None and (self.single or self.traits.crops is None):
            one_file = " in one file" if self.single else ""
            raise UsageError(f"crops cannot be chosen in --format {self.format}{one_file}")

    def _is_given(self, name: str) -> bool:
        """Whether an option is given. A password may come from the environment, for all commands."""
        value = getattr(self, name)
        if isinstance(value, ImageSources):
            return bool(value.inputs or value.options.image_column)
        return bool(value != getattr(_NONE, name))

    @property
    def traits(self) -> ExportFormat:
        """The format."""
        return export_format(self.format)

    @property
    def ending(self) -> str:
        """Ending of the default target: that of the format, with these options."""
        return ".chunks.parquet" if self.parquet else ".md" if self.single else self.traits.ending

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
        return self.ending.startswith(".")

    @property
    def is_text(self) -> bool:
        """Whether the export can also be written to a stream."""
        return self.is_file and not self.ending.endswith(".parquet")

    @property
    def with_crops(self) -> bool:
        """Whether crops are included."""
        return bool(not self.single and (self.traits.crops if self.crops is None else self.crops))

    def default_target(self, out: Path) -> Path:
        """The default target: beside the run directory, with its name."""
        out = out.resolve()
        return out.with_name(f"{out.name}{self.ending}")


_NONE = ExportOptions()
