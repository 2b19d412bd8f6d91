"""Searchable PDFs: the pages of a document as they are in its source, with what was read as invisible text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pikepdf
from pikepdf import Array, Dictionary, Stream

from pagemill._version import __version__
from pagemill.document.geometry import Box
from pagemill.document.page import PageResult
from pagemill.errors import CorruptInputError, EncryptedError
from pagemill.export.invisible_text import Affine, InvisibleFont, text_content
from pagemill.export.pdf_own_text import OwnText
from pagemill.export.placed_text import lines_of

if TYPE_CHECKING:
    from pagemill.export.pdf_images import PdfImage

TEXT_LAYER = "text-layer"
"""``text_source`` of a page, and ``engine`` of a line, whose text is the PDF's own."""
_FONT = "PagemillText"
_POINTS = 72.0
_DPI = 200.0
"""Resolution of an image without one."""
_SIDES = (3.0, 14_400.0)
"""Points: the limits of the format."""
_LETTER = (0.0, 0.0, 612.0, 792.0)
"""Box of a page without one, as in viewers."""


class _Pages:
    """The pages of a document that are written with one font."""

    def __init__(self, pdf: pikepdf.Pdf) -> None:
        self.pdf = pdf
        self._font = InvisibleFont()
        self._font_object = pdf.make_indirect(Dictionary())

    def write_text(self, page: Any, record: PageResult, box: Box, turn: int, *, own: bool) -> None:
        """Write what was read of a page, below its content.

        Args:
            page: The page of the document.
            record: The record of the page.
            box: Visible area of the page, in points.
            turn: Degrees clockwise by which it is turned in the record.
            own: Lines of its own text layer are there already.
        """
        # A page that failed has no size, and nothing was read of it.
        if record.width <= 0 or record.height <= 0:
            return
        there = _to_points(box, turn, record.width, record.height)
        read = (line for region in record.regions for line in lines_of(region))
        lines = [line for line in read if not own or line.engine != TEXT_LAYER]
        if not lines:
            return  # a font that nothing is written with would be as large as that of a whole document
        content = text_content(lines, there, self._font, _FONT, turned=record.rotation != 0)
        resources = page.obj.Resources
        resources.Font = Dictionary(
            {**dict(resources.get("/Font", Dictionary()).items()), f"/{_FONT}": self._font_object}
        )
        # Before the page's own content, which may leave any transformation behind it.
        page.contents_add(Stream(self.pdf, content), prepend=True)

    def finish(self) -> None:
        """Write the font."""
        self._font.write(self.pdf, self._font_object)


class CopiedPdf:
    """A copy of a PDF, with some of its pages.

    Args:
        source: The PDF.
        password: To open it.

    Raises:
        EncryptedError: The password is not right.
        CorruptInputError: The PDF cannot be opened.
    """

    pending = 0

    def __init__(self, source: Path, password: str | None) -> None:
        self._file = source.open("rb")
        try:
            self._pdf = _opened(self._file, password)
        except BaseException:
            self._file.close()
            raise
        self._pages = _Pages(self._pdf)
        self._own_text = OwnText(self._pdf)
        self._originals = list(self._pdf.pages)
        self._kept: set[int] = set()
        self.with_own_text: list[int] = []
        """Places of the pages whose own text could not be taken out."""

    def add(self, index: int, record: PageResult) -> None:
        """Keep a page, by its place in the source, with what was read of it where its own text is not good.

        Raises:
            CorruptInputError: The page is damaged.
        """
        with _pdf_errors(f"page {index + 1} cannot be copied"):
            page = self._originals[index]
            self._kept.add(index)
            if record.text_source not in ("", TEXT_LAYER):
                own = TEXT_LAYER in record.text_source
                # Text that was not good, or stays beside ours, would be found and copied twice.
                if not self._own_text.take_out(page, visible=not own):
                    self.with_own_text.append(index)
                turn = (int(page.obj.get("/Rotate", 0)) // 90 * 90 + record.rotation) % 360  # as PDFium takes it
                self._pages.write_text(page, record, _shown_box(page), turn, own=own)

    def save(self, path: Path) -> None:
        """Write the file, encrypted as its source is, and close it.

        Raises:
            CorruptInputError: The source is damaged.
        """
        with self._file, self._pdf as pdf, _pdf_errors("it cannot be copied"):
            for index in reversed(range(len(self._originals))):
                if index not in self._kept:
                    del pdf.pages[index]
            self._pages.finish()
            _save(pdf, path, encryption=pdf.is_encrypted)

    def close(self) -> None:
        """Close the source without writing anything."""
        self._pdf.close()
        self._file.close()


class ImagePdf:
    """A PDF made of images. Those that are added wait in memory until :meth:`flush`.

    Args:
        part: Path for files of its parts, to which a number is appended.
        title: Title of the document.
    """

    def __init__(self, part: Path, title: str) -> None:
        self._part = part
        self._title = title
        self._parts: list[tuple[Path, list[int]]] = []
        self._begin()

    def _begin(self) -> None:
        self._pages = _Pages(pikepdf.new())
        self._places: list[int] = []
        self.pending = 0
        """Bytes that wait."""

    def add(self, place: int, image: PdfImage, record: PageResult) -> None:
        """Add a page of an image; ``place`` is its place among the others."""
        width, height = _page_size(image, record)
        page = self._pages.pdf.add_blank_page(page_size=(width, height))
        page.obj.Resources = Dictionary(XObject=Dictionary(Image=image.stream(self._pages.pdf)))
        page.obj.Contents = Stream(self._pages.pdf, f"q {image.placement(width, height)} cm /Image Do Q\n".encode())
        self._pages.write_text(page, record, (0.0, 0.0, width, height), record.rotation, own=False)
        self._places.append(place)
        self.pending += len(image.data)

    def flush(self) -> None:
        """Write what waits to a file."""
        if self._places:
            path = self._part.with_name(f"{self._part.name}.{len(self._parts)}")
            with self._pages.pdf as pdf:
                self._pages.finish()
                _save(pdf, path)
            self._parts.append((path, self._places))
            self._begin()

    def save(self, path: Path) -> None:
        """Write the file."""
        self.flush()
        with ExitStack() as files, pikepdf.new() as whole:
            pages: list[tuple[int, Any]] = []
            for part, places in self._parts:
                opened = files.enter_context(pikepdf.open(part))
                pages += zip(places, opened.pages, strict=True)
            whole.pages.extend(page for _, page in sorted(pages, key=lambda pair: pair[0]))
            whole.docinfo["/Title"] = self._title
            whole.docinfo["/Producer"] = f"pagemill {__version__}"
            _save(whole, path)
        self.close()

    def close(self) -> None:
        """Delete the parts."""
        for part, _ in self._parts:
            part.unlink(missing_ok=True)


@contextmanager
def _pdf_errors(what: str) -> Iterator[None]:
    try:
        yield
    except pikepdf.PasswordError as error:
        raise EncryptedError("it is encrypted", remedy="Pass its password with --password.") from error
    except (pikepdf.PdfError, ValueError, TypeError, AttributeError, LookupError) as error:
        # pikepdf raises Python's own errors for objects of other types than the format wants
        raise CorruptInputError(f"{what}: {error}") from error


def _opened(source: BinaryIO, password: str | None) -> pikepdf.Pdf:
    """Open a PDF from a file object: pikepdf does not take names that are no UTF-8."""
    with _pdf_errors("qpdf cannot open it"):
        try:
            return pikepdf.open(source)  # many need none
        except pikepdf.PasswordError:
            return pikepdf.open(source, password=password or "")


def _save(pdf: pikepdf.Pdf, path: Path, *, encryption: bool = False) -> None:
    mode = pikepdf.ObjectStreamMode.generate
    pdf.save(path, encryption=encryption, object_stream_mode=mode, fix_metadata_version=False)


def _shown_box(page: Any) -> Box:
    """What is shown of a page, in points: its crop box as far as it lies on its media box."""
    x1, y1, x2, y2 = _box(page.obj.get("/MediaBox")) or _LETTER
    crop = _box(page.obj.get("/CropBox"))
    if crop is None:
        return (x1, y1, x2, y2)
    cut = (max(x1, crop[0]), max(y1, crop[1]), min(x2, crop[2]), min(y2, crop[3]))
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else (x1, y1, x2, y2)


def _box(value: Any) -> Box | None:
    if not isinstance(value, Array) or len(value) != 4:
        return None
    xa, ya, xb, yb = map(float, value)
    box = (min(xa, xb), min(ya, yb), max(xa, xb), max(ya, yb))
    return box if box[0] < box[2] and box[1] < box[3] else None


def _page_size(image: PdfImage, record: PageResult) -> tuple[float, float]:
    """Width and height of an image's page in points, as it is stored."""
    width, height = image.upright_size
    # The size before pages were shrunk for recognition.
    stored = max(record.width, record.height) / record.scale or max(width, height)
    side = stored * _POINTS / (record.dpi / record.scale if record.dpi else _DPI)
    scale = min(side, _SIDES[1]) / max(width, height)
    wide, high = (min(max(length * scale, _SIDES[0]), _SIDES[1]) for length in (width, height))
    return wide, high


def _to_points(box: Box, turn: int, width: int, height: int) -> Affine:
    """From pixels of the page as shown, turned clockwise by ``turn`` degrees, to points of the page."""
    x1, y1, x2, y2 = box
    wide, high = x2 - x1, y2 - y1
    there = {
        0: [[wide, 0, x1], [0, -high, y2]],
        90: [[0, wide, x1], [high, 0, y1]],
        180: [[-wide, 0, x2], [0, high, y1]],
        270: [[0, -wide, x2], [-high, 0, y2]],
    }[turn]
    return np.array(there, dtype=np.float64) / [width, height, 1]
