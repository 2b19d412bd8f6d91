"""An open PDF document."""

from __future__ import annotations

from typing import Any

import pypdfium2 as pdfium

from pagemill.imaging.pdf_damage import PdfDamage

_MAX_ABSENT = 2_000
"""Pages in a row that cannot be loaded before the rest of a document is given up to :mod:`pagemill.imaging.pdf_repair`.
2,000 take PDFium 0.02 to 0.4 s."""


class PdfDocument(pdfium.PdfDocument):  # type: ignore[misc] # it has no types
    """A document of which is known what pages are there.

    PDFium finds a page by walking on from the last one that it has found. A page that is not there makes it lose count,
    and give another page in the place of a missing one, unless each was asked for once, in order, and those that were
    not there are not asked for again.
    """

    sizes: tuple[tuple[float, float] | None, ...] = ()
    """Width and height in points of the pages up to the last one that can be loaded; None for one that cannot."""
    damage: PdfDamage
    """What else is wrong with it."""

    def close(self, *arguments: Any) -> None:
        """Close the document, and the file that is looked at for damage."""
        self.damage.close()
        super().close(*arguments)

    def walk(self) -> None:
        """Find out; takes 20 to 80 microseconds a page."""
        sizes: list[tuple[float, float] | None] = []
        pages = 0
        for index in range(len(self)):
            try:
                sizes.append(self.get_page_size(index))
                pages = index + 1
            except pdfium.PdfiumError:
                sizes.append(None)
                # The number of pages is a claim: a file of a few bytes may announce millions.
                if index - pages >= _MAX_ABSENT:
                    break
        self.sizes = tuple(sizes[:pages])
