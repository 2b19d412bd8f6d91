"""The content of an export: the selected records of a run, read one at a time, and their crops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pagemill.document.labels import Label
from pagemill.document.names import file_stem
from pagemill.document.page import Furniture, ImageCrop, PageResult, Status
from pagemill.errors import DamagedRunError, ExitCode, InputError
from pagemill.export.formats import About
from pagemill.export.markdown import strip_marks, with_markdown
from pagemill.store.files import encoded
from pagemill.store.paths import crop_file

if TYPE_CHECKING:
    from pagemill.app.export_options import ExportOptions
    from pagemill.store.reading import RunReader


@dataclass(slots=True)
class ExportOutcome:
    """The outcome of an export."""

    pages: int = 0
    failed: int = 0
    """Failed ones of these pages."""
    documents: int = 0
    damages: list[str] = field(default_factory=list)
    """Messages about damaged pieces of the run."""
    warnings: list[str] = field(default_factory=list)
    """Messages about complete documents with reduced quality."""
    left_out: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Documents that could not be written: name, message and remedy."""

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the command."""
        if self.damages:
            return ExitCode.DAMAGED
        return ExitCode.PAGES_FAILED if self.left_out else ExitCode.OK


@dataclass(slots=True)
class ExportContent:
    """The pages of a run that are exported, once."""

    reader: RunReader
    options: ExportOptions
    report: Callable[[PageResult], None] | None = None
    """Called with each exported page."""
    outcome: ExportOutcome = field(default_factory=ExportOutcome)

    def pages(self) -> Iterator[PageResult]:
        """The selected pages, in input order.

        Raises:
            InputError: There is none.
        """
        for page in self.reader.pages(on_damage=self.damaged):
            if self.options.wants(page):
                yield self.counted(page)
        self.refuse_nothing(self.outcome.pages)

    def documents(self) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """The documents with selected pages, and these, in page order.

        Raises:
            InputError: There is none.
        """
        for doc_id, pages in self.selected():
            self.outcome.documents += 1
            yield doc_id, map(self.counted, pages)
        self.refuse_nothing(self.outcome.pages)

    def selected(self) -> Iterator[tuple[str, Iterator[PageResult]]]:
        """Documents like :meth:`documents`, but not counted as exported; may be empty."""
        for doc_id, pages in self.reader.documents(on_damage=self.damaged):
            if not self.options.wants_document(doc_id):
                continue
            wanted = filter(self.options.wants, pages)
            # A document none of whose pages match must not become an empty file.
            first = next(wanted, None)
            if first is not None:
                yield doc_id, chain([first], wanted)

    def with_crops(self, folder: Path, pages: Iterable[PageResult]) -> Iterator[PageResult]:
        """Copy the crops of pages into a folder; crops that are not copied are removed from the records."""
        for page in pages:
            kept: list[ImageCrop] = []
            for crop in page.image_crops if self.options.with_crops else ():
                data = self.picture(crop)
                if data is not None:
                    crop_file(folder, crop.path).write_bytes(data)
                    kept.append(crop)
            yield msgspec.structs.replace(page, image_crops=kept)

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.reader.path.resolve().name

    def about(self, doc_id: str) -> About:
        """A document as a whole; ``crops/`` is beside its file."""
        return About(self.reader.info(doc_id), self.reader.is_provisional(doc_id))

    def write_each(
        self, folder: Path, suffix: str, text: Callable[[Iterator[PageResult], About], Iterable[str]]
    ) -> None:
        """Write each document into a file of the folder."""
        for doc_id, pages in self.documents():
            about = self.about(doc_id)
            with (folder / f"{file_stem(doc_id)}{suffix}").open("wb") as stream:
                stream.writelines(encoded(text(self.with_crops(folder, pages), about)))

    def picture(self, crop: ImageCrop) -> bytes | None:
        """The file of a crop; None, after noting the damage, if it does not match the record."""
        try:
            return self.reader.crop(crop)
        except DamagedRunError as error:
            self.damaged(error)
            return None

    def damaged(self, error: DamagedRunError) -> None:
        """Note a damaged piece of the run, which is left out."""
        self.outcome.damages.append(error.message)

    def counted(self, page: PageResult) -> PageResult:
        """The page, which is exported, as the options want it."""
        page = self._chosen(page)
        self.outcome.pages += 1
        self.outcome.failed += page.status is Status.FAILED
        if self.report is not None:
            self.report(page)
        # Texts are derived from the regions, so the marks go there first.
        if not self.options.inline_marks:
            strip_marks(page)
            with_markdown(page)
        return page

    def _chosen(self, page: PageResult) -> PageResult:
        joins = any(region.joined_to and region.label is Label.TABLE for region in page.regions)
        if joins and not self.options.join_tables:
            regions = [
                msgspec.structs.replace(region, joined_to=None) if region.label is Label.TABLE else region
                for region in page.regions
            ]
            page = msgspec.structs.replace(page, regions=regions)
        # Only where it differs: deriving the texts again is most of the time of an export.
        if self.options.furniture is not None and self.options.furniture.value != page.leaves_out.value:
            leaves_out = Furniture(self.options.furniture.value)
            page = with_markdown(msgspec.structs.replace(page, leaves_out=leaves_out))
        return page

    def refuse_nothing(self, pages: int) -> None:
        """Refuse an export of no pages."""
        if not pages:
            raise InputError(
                f"there is no page of {self.reader.path} to export",
                remedy=f"No page is finished yet (see: pagemill status {self.reader.path}), or none matches the"
                " filters.",
            )
