"""Page references for planning, without reading images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pagemill.imaging.formats import FileFormat
from pagemill.sources.base import PageRef
from pagemill.sources.digest import Source
from pagemill.sources.items import RemoteFile
from pagemill.sources.pages import PageReferences

if TYPE_CHECKING:
    from pagemill.sources.tables import DatasetRow


class PlannedReferences(PageReferences):
    """Page references in which dataset rows and remote images have no payload, and no error of their image.

    The pipeline that opens the source again to parse it finds these errors.
    """

    reads_images: ClassVar = False

    def of_image(self, source: Source, file_format: FileFormat) -> Iterator[PageRef]:
        """The page of an image, or the frames of a TIFF, which are counted."""
        if file_format is FileFormat.TIFF or not isinstance(source.item.content, RemoteFile):
            yield from super().of_image(source, file_format)
            return
        yield from self._of_numbers(source, file_format, 1, lambda _: {"unseen": True})

    def _content_of_row(self, row: DatasetRow, where: str) -> dict[str, Any]:
        return super()._content_of_row(row, where) if row.lost else {}
