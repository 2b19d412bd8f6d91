"""Input options: pages, password, columns, limits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pagemill.config.headings import INPUT
from pagemill.config.options import Settings, option
from pagemill.errors import UsageError
from pagemill.imaging.formats import FileFormat
from pagemill.late import re

_RANGE = re.compile(r"(?=.*[0-9])(?P<first>[0-9]{1,9})?(?:(?P<dash>-)(?P<last>[0-9]{1,9})?)?")


@dataclass(frozen=True, slots=True)
class PageRanges:
    """Page numbers from 1, as in ``1,3-5,8-``; both ends belong to a range."""

    ranges: tuple[tuple[int, int], ...]
    """First and last page, ``sys.maxsize`` for an open end."""

    @classmethod
    def parse(cls, text: str) -> PageRanges:
        """Read ``1,3-5,8-`` or ``-3``.

        Raises:
            UsageError: The text is something else, counts from 0, or goes backwards.
        """
        ranges: list[tuple[int, int]] = []
        for part in text.split(","):
            match = _RANGE.fullmatch(part.strip())
            first = last = 0
            if match:
                first = int(match["first"] or 1)
                last = int(match["last"] or sys.maxsize) if match["dash"] else first
            if not 1 <= first <= last:
                raise UsageError(
                    f"{part.strip()!r} is not a page range",
                    remedy="Write ranges as in 1,3-5,8-; pages count from 1, and a range goes upwards.",
                )
            ranges.append((first, last))
        return cls(tuple(ranges))

    def __str__(self) -> str:
        return ",".join(
            str(first) if first == last else f"{first}-{'' if last == sys.maxsize else last}"
            for first, last in self.ranges
        )

    def select(self, count: int) -> list[int]:
        """The page numbers of a document of ``count`` pages, ascending, each once."""
        return sorted({page for first, last in self.ranges for page in range(first, min(count, last) + 1)})


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(Settings):
    """Which parts of the inputs to read."""

    HEADING: ClassVar = INPUT
    RESULTS: ClassVar = False

    pages: PageRanges | None = option(
        metavar="RANGES",
        parse=PageRanges.parse,
        jobs=True,
        help="Pages of each PDF, TIFF or other document, such as 1,3-5,8-.",
    )
    password: str | None = option(
        metavar="TEXT",
        environment="PAGEMILL_PASSWORD",
        secret=True,
        jobs=True,
        help="Password of encrypted PDFs and Office files (or set PAGEMILL_PASSWORD).",
    )
    recursive: bool = option("-r", "--recursive", default=False, help="Recurse into folders.")
    limit: int | None = option(minimum=1, help="Stop after N pages, earlier runs included.")
    image_column: str | None = option(
        jobs=True, help="Image column of a dataset.", shown_default="detected by its type"
    )
    id_column: str | None = option(jobs=True, help="Page id column of a dataset.", shown_default="id or page_id")
    download: Path | None = option(
        metavar="DIR", help="Fetch datasets on the Hub to DIR/OWNER/NAME once, verify them, and read them there."
    )
    skip_duplicates: bool = option(
        default=False, jobs=True, help="Skip files whose content is identical to an earlier file."
    )

    def wanted(self, pages: int, file_format: FileFormat | None) -> Sequence[int]:
        """The selected pages of a file with ``pages`` pages, ascending from 1; ignores ``limit``."""
        # A single image has no page numbers; rows of a dataset are chosen by --limit and their ids.
        ranged = file_format in (FileFormat.PDF, FileFormat.DOCUMENT) or (file_format is FileFormat.TIFF and pages > 1)
        return self.pages.select(pages) if self.pages is not None and ranged else range(1, pages + 1)
