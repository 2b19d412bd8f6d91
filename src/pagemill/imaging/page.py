"""A decoded page: pixels, and what the PDF says about its text."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

# At run time too: a page crosses a process border, and its decoder resolves these annotations.
from pagemill.document.geometry import Box
from pagemill.document.page import OutlineEntry, PageError, Style, TextLine
from pagemill.document.symbols import Symbol
from pagemill.imaging.types import Pixels

CHECKED, UNCHECKED = "☒", "☐"
"""The text of check boxes and radio buttons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLayer:
    """Text that a PDF page carries, in page pixels, with what is needed to judge its soundness."""

    lines: tuple[TextLine, ...]
    """Visible lines split at column gaps, each with its words; in content-stream order."""
    characters: int
    """Visible characters, spaces excluded."""
    unmapped: int
    """Visible characters without a usable Unicode mapping (U+FFFD, private use, control characters)."""
    hidden_lines: tuple[TextLine, ...] = ()
    """Lines of characters drawn in the invisible rendering mode or hidden below a page-filling image (an OCR layer)."""
    marks: tuple[TextLine, ...] = ()
    """Check boxes and values of form fields that no glyph of the page shows."""
    symbols: tuple[Symbol, ...] = ()
    """Visible glyphs in content-stream order: those about the signs that formulas are made of."""
    rules: tuple[Box, ...] = ()
    """Thin level lines: fraction bars, the bars of roots. Only where there are symbols."""
    is_beside: bool = False
    """There are text or images, and all of them are outside of the sheet from which a crop box may cut the page."""
    styles: tuple[Style, ...] = ()
    """Those that ``TextLine.style`` refers to, the ones with the most characters first."""
    strokes: tuple[Box, ...] = ()
    """Thin level and upright lines: rules, borders of cells, underlines; edges of drawn rectangles among them."""
    fills: tuple[tuple[Box, int], ...] = ()
    """Filled rectangles that are no lines, with their colours (0xRRGGBB), white ones left out."""
    drawings: tuple[Box, ...] = ()
    """Boxes of all other drawn paths and shadings: curves, slanted lines, outlines of letters."""
    unseen: tuple[TextLine, ...] = ()
    """Lines of characters that are drawn and that nobody sees: of the colour of what is beneath, covered, or too small.
    They are in none of the others; ``hidden_lines`` are what OCR laid over a scan."""
    watermarks: tuple[TextLine, ...] = ()
    """Slanted lines that are pale, or across other text. They are not in ``lines``."""
    left_out: int = 0
    """Characters that were not read, as there are too many."""
    has_more: bool = False
    """Objects of the page were not looked at: there are too many, or they are too deep in others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedPage:
    """One page, decoded."""

    pixels: Pixels
    """Shape (height, width, 3). Of a page that shows only text, as large as was asked for: maybe none."""
    text_only_size: tuple[int, int] | None = None
    """Width and height of a page that shows only the text of its layer: boxes are in pixels of this size."""
    dpi: float | None = None
    """Rendering resolution of a PDF page; None for an image of unknown resolution."""
    scale: float = 1.0
    """Pixels of ``pixels`` per pixel of the stored image; below 1 when a huge image was decoded smaller."""
    text_layer: TextLayer | None = None
    image_boxes: tuple[Box, ...] = ()
    """Raster images that a PDF page places, in page pixels."""
    notes: tuple[str, ...] = ()
    """What a user should know ("decoded at 1/4 size"), shown in the record's metadata."""
    warnings: tuple[PageError, ...] = ()
    """What of the page could not be read, for the record's errors."""

    @property
    def is_text_only(self) -> bool:
        """Whether it shows only the text of its layer; the pixels are for people then, if there are any."""
        return self.text_only_size is not None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels, of which all boxes are."""
        return self.text_only_size or (self.pixels.shape[1], self.pixels.shape[0])


class PdfInfo(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """What opening a PDF tells, without rendering anything."""

    page_count: int
    """Pages, up to the last one that can be loaded."""
    announced: int = 0
    """Pages that the document announces; more than ``page_count`` where the last ones are not there."""
    broken: int = 0
    """Pages among ``page_count`` that cannot be loaded."""
    sizes: tuple[tuple[float, float], ...] = ()
    """Width and height in points of the first pages (at most ``imaging.pdf.SIZES``)."""
    metadata: dict[str, str] = {}
    """The document information dictionary: ``title``, ``author``, ...; empty values left out. ``created`` and
    ``modified`` are dates as ISO 8601 has them."""
    language: str = ""
    """Language in the catalogue, as of BCP 47: ``de``, ``en-GB``; empty without."""
    outline: tuple[OutlineEntry, ...] = ()
    """In reading order."""
    page_labels: tuple[str, ...] = ()
    """Labels of the pages from the first; empty where they are the pages' numbers."""


class PdfRepair(msgspec.Struct, tag=True, frozen=True, kw_only=True):
    """How a copy of a PDF was repaired."""

    program: str
    """Name and version of what made it."""
    loops: bool
    """The page tree led back into itself, and was cut there."""
    announced: int
    """Pages that the original announces, at least those of the copy."""
