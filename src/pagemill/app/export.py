"""Exports a run: reads the records of a run directory one at a time and writes them in another format."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from pagemill._version import __version__
from pagemill.config.options import Settings, option
from pagemill.document.names import file_stem
from pagemill.document.page import Status
from pagemill.errors import DamagedRunError, InputError, UsageError
from pagemill.export.target import whole_file, whole_folder
from pagemill.store.files import encoded
from pagemill.store.paths import crop_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pagemill.document.page import ImageCrop, PageResult
    from pagemill.store.reading import RunReader


class Format(StrEnum):
    """Export format."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    MARKDOWN = "markdown"
    DOCJSON = "docjson"
    HTML = "html"
    CSV_TABLES = "csv-tables"


_WITH_CROPS = frozenset({Format.PARQUET, Format.MARKDOWN, Format.DOCJSON, Format.HTML})


def _status(name: str) -> Status | None:
    return None if name == "all" else Status(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions(Settings):
    """What to export, and how. Patterns are those of file names: ``*``, ``?``, ``[...]``.

    Raises:
        UsageError: An option does not go with the format.
    """

    format: Format = option(
        "-f", "--format", help="What to write.", shown_default="bring the files in OUT itself up to date"
    )
    """None: the command line writes no export then."""
    documents: tuple[str, ...] = option(
        default=(), metavar="GLOB", help="Only documents whose id matches; may be repeated."
    )
    pages: tuple[str, ...] = option(
        default=(), metavar="GLOB", help="Only pages whose page id matches; may be repeated."
    )
    status: Status | None = option(parse=_status, help="Only pages with this status.", shown_default="all")
    single: bool = option(default=False, help="markdown: write all documents to one file.")
    crops: bool | None = option(
        "--with-crops/--no-crops", help="Include the crops.", shown_default="in folders, not in Parquet"
    )
    bom: bool = option(default=False, help="csv-tables: mark the files as UTF-8 for Excel.")
    overwrite: bool = option(default=False, help="Replace the file, or the folder of an earlier export.")

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.format is None:
            return
        if self.single and self.format is not Format.MARKDOWN:
            raise UsageError(f"--single goes with --format markdown, not with {self.format}")
        if self.crops is not None and (self.format not in _WITH_CROPS or self.single):
            one_file = " in one file" if self.single else ""
            raise UsageError(f"crops cannot be chosen in --format {self.format}{one_file}")
        if self.bom and self.format is not Format.CSV_TABLES:
            raise UsageError(f"--bom goes with --format csv-tables, not with {self.format}")

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
    def is_file(self) -> bool:
        """Whether the export is one file rather than a folder."""
        return self.single or self.format in (Format.JSONL, Format.PARQUET)

    @property
    def is_text(self) -> bool:
        """Whether the export can also be written to a stream."""
        return self.single or self.format is Format.JSONL

    @property
    def with_crops(self) -> bool:
        """Whether crops are included."""
        return self.format in _WITH_CROPS - {Format.PARQUET} if self.crops is None else self.crops

    def default_target(self, out: Path) -> Path:
        """The default target: beside the run directory, with its name."""
        out = out.resolve()
        if self.single:
            return out.with_name(f"{out.name}.md")
        return out.with_name(f"{out.name}{'.' if self.is_file else '-'}{self.format.removeprefix('csv-')}")


@dataclass(slots=True)
class ExportOutcome:
    """The outcome of an export."""

    pages: int = 0
    documents: int = 0
    damages: list[str] = field(default_factory=list)
    """Messages about damaged pieces of the run."""


class Exporter:
    """Exports the current content of a run directory, once.

    Args:
        reader: The run.
        options: Format and filters.
        tell: Called with each exported page.
    """

    def __init__(
        self, reader: RunReader, options: ExportOptions, tell: Callable[[PageResult], None] | None = None
    ) -> None:
        self.outcome = ExportOutcome()
        self._reader = reader
        self._out = reader.path
        self._options = options
        self._tell = tell

    def to_path(self, target: Path) -> None:
        """Write the export to a file or folder, which appears when it is complete.

        Raises:
            OutputError: The target exists, is inside the run directory or cannot be written; NoSpaceError when the disk
                is full.
            InputError: There is no page to export.
            DamagedRunError: The run cannot be read at all.
        """
        out, place = self._out.resolve(), target.resolve()
        if place.is_relative_to(out) or out.is_relative_to(place):
            raise UsageError(
                f"{target} and the run directory {self._out} overlap", remedy="Choose another target with -o."
            )
        if self._options.is_file:
            with whole_file(target, overwrite=self._options.overwrite) as stream:
                self._write_stream(stream, crops_root=f"{Path(os.path.relpath(out, place.parent)).as_posix()}/")
            return
        manifest: dict[str, Any] = {"generator": "pagemill", "version": __version__, "format": self._options.format}
        with whole_folder(target, overwrite=self._options.overwrite, manifest=manifest) as folder:
            self._write_folder(folder)
            manifest |= {"pages": self.outcome.pages, "documents": self.outcome.documents}

    def to_stream(self, stream: BinaryIO) -> None:
        """Write the export to a stream; crops are named relative to the run directory.

        Raises:
            UsageError: The format is not a single text file.
            InputError: There is no page to export.
            DamagedRunError: The run cannot be read at all.
        """
        if not self._options.is_text:
            raise UsageError(
                f"--format {self._options.format} cannot be written to a stream",
                remedy="Choose a target with -o; or add --single to --format markdown.",
            )
        self._write_stream(stream, crops_root="")

    def _write_stream(self, stream: BinaryIO, *, crops_root: str) -> None:
        if self._options.format is Format.JSONL:
            stream.writelines(msgspec.json.encode(page) + b"\n" for page in self._pages())
        elif self._options.format is Format.PARQUET:
            from pagemill.export.parquet import write_parquet

            write_parquet(stream, self._pages(), picture=self._picture if self._options.with_crops else None)
        else:
            from pagemill.export.markdown import collected_markdown

            stream.writelines(encoded(collected_markdown(self._documents(), crops_root=crops_root)))

    def _write_folder(self, folder: Path) -> None:
        if self._options.format is Format.CSV_TABLES:
            from pagemill.export.csv_tables import write_tables

            write_tables(folder, self._pages(), byte_order_mark=self._options.bom)
            return
        if self._options.with_crops:
            (folder / "crops").mkdir()
        if self._options.format is Format.HTML:
            from pagemill.export.html import write_html

            title = self._out.resolve().name
            write_html(
                folder, title, ((doc_id, self._with_crops(folder, pages)) for doc_id, pages in self._documents())
            )
            return
        from pagemill.document.docjson import document_json
        from pagemill.export.markdown import document_markdown

        for doc_id, pages in self._documents():
            pages = self._with_crops(folder, pages)
            if self._options.format is Format.MARKDOWN:
                suffix, text = ".md", document_markdown(pages, crops_root="")
            else:
                suffix, text = ".json", document_json(pages)
            with (folder / f"{file_stem(doc_id)}{suffix}").open("wb") as stream:
                stream.writelines(encoded(text))

    def _pages(self) -> Iterator[PageResult]:
        """The selected pages, in input order."""
        for page in self._reader.pages(on_damage=self._damaged):
            if self._options.wants(page):
                yield self._counted(page)
        self._refuse_nothing()

    def _documents(self) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """The documents with selected pages, and these, in page order."""
        for doc_id, pages in self._reader.documents(on_damage=self._damaged):
            if not self._options.wants_document(doc_id):
                continue
            wanted = (self._counted(page) for page in pages if self._options.wants(page))
            first = next(wanted, None)
            if first is not None:
                self.outcome.documents += 1
                yield doc_id, chain([first], wanted)
        self._refuse_nothing()

    def _damaged(self, error: DamagedRunError) -> None:
        self.outcome.damages.append(error.message)

    def _counted(self, page: PageResult) -> PageResult:
        self.outcome.pages += 1
        if self._tell is not None:
            self._tell(page)
        return page

    def _refuse_nothing(self) -> None:
        if not self.outcome.pages:
            raise InputError(
                f"there is no page of {self._out} to export",
                remedy=f"No page is finished yet (see: pagemill status {self._out}), or none matches the filters.",
            )

    def _with_crops(self, folder: Path, pages: Iterable[PageResult]) -> Iterator[PageResult]:
        """Copy the crops of pages into a folder; crops that are not copied are removed from the records."""
        for page in pages:
            kept: list[ImageCrop] = []
            for crop in page.image_crops if self._options.with_crops else ():
                data = self._picture(crop)
                if data is not None:
                    crop_file(folder, crop.path).write_bytes(data)
                    kept.append(crop)
            yield msgspec.structs.replace(page, image_crops=kept)

    def _picture(self, crop: ImageCrop) -> bytes | None:
        """The file of a crop; None, after noting the damage, if it is not as the record says."""
        try:
            return self._reader.crop(crop)
        except DamagedRunError as error:
            self._damaged(error)
            return None
