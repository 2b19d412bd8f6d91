"""Documents whose pages say by their pixels which number they have and what they do to the engines they meet.

``fault_engines`` reads what is drawn here. PDF pages have a sound text layer, so that nothing is recognized on them;
images carry their number as cells of black and white.
"""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fault_engines import BAND, CELL_COUNT, CELLS, FAULT_BITS, GREY_STEP, PICTURE, Fault
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 150, 200
"""Of a PDF page, in points."""
PIXELS_PER_POINT = 3
PROSE = (
    "the mill turns slowly in spring when water is high and paper dries on long racks beside the river every sheet "
    "carries a mark that tells who made it where it was made and for which office it was meant"
)
WORDS = PROSE.split()


@dataclass(frozen=True, slots=True)
class CodedPage:
    """What one page shows."""

    number: int
    """From 0; below 32,768 on pages without a text layer."""
    fault: Fault = Fault.NONE


@dataclass(frozen=True, slots=True)
class Corpus:
    """Inputs of a run, in the order in which they are given."""

    paths: tuple[Path, ...]
    pages: tuple[CodedPage, ...]
    """In input order."""


@dataclass(slots=True)
class CorpusMaker:
    """Writes inputs into a folder and keeps account of their pages.

    Args:
        folder: Where the files go.
        faults: Fault of each page by its number; none for those that are not in it.
    """

    folder: Path
    faults: dict[int, Fault] = field(default_factory=dict)
    _paths: list[Path] = field(default_factory=list)
    _pages: list[CodedPage] = field(default_factory=list)

    def pdf(self, pages: int) -> None:
        """Add a PDF with a sound text layer."""
        path = self._next_path("report", "pdf")
        path.write_bytes(pdf_bytes(self._take(pages)))

    def images(self, count: int) -> None:
        """Add image files of one page each."""
        for page in self._take(count):
            path = self._next_path("scan", "png")
            page_image(page).save(path)

    def tiff(self, frames: int) -> None:
        """Add a TIFF of several pages."""
        first, *others = (page_image(page) for page in self._take(frames))
        first.save(self._next_path("fax", "tiff"), save_all=True, append_images=others, compression="tiff_deflate")

    def parquet(self, rows: int) -> None:
        """Add a dataset of page images."""
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        pages = self._take(rows)
        images = [{"bytes": _encoded(page_image(page)), "path": None} for page in pages]
        table = pa.table({"id": [f"row-{page.number}" for page in pages], "image": pa.array(images, kind)})
        pq.write_table(table, self._next_path("shard", "parquet"), row_group_size=16)

    def corpus(self) -> Corpus:
        """All that was added."""
        return Corpus(tuple(self._paths), tuple(self._pages))

    def _take(self, count: int) -> list[CodedPage]:
        start = len(self._pages)
        pages = [CodedPage(number, self.faults.get(number, Fault.NONE)) for number in range(start, start + count)]
        self._pages.extend(pages)
        return pages

    def _next_path(self, stem: str, suffix: str) -> Path:
        path = self.folder / f"{stem}-{len(self._paths):02d}.{suffix}"
        self._paths.append(path)
        return path


def mixed_corpus(folder: Path, pages: int) -> Corpus:
    """Pages in equal parts as image files, in a PDF, and as rows of a dataset."""
    maker = CorpusMaker(folder)
    third = pages // 3
    maker.images(third)
    maker.pdf(third)
    maker.parquet(pages - 2 * third)
    return maker.corpus()


def page_image(page: CodedPage) -> Image.Image:
    """Draw a page without a text layer."""
    width, height = WIDTH * PIXELS_PER_POINT, HEIGHT * PIXELS_PER_POINT
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)

    def fill(place: tuple[float, float, float, float], colour: tuple[int, int, int]) -> None:
        x1, y1, x2, y2 = place
        draw.rectangle((x1 * width, y1 * height, x2 * width - 1, y2 * height - 1), fill=colour)

    fill(BAND, (_grey(page.fault),) * 3)
    fill(PICTURE, _colour(page.number))
    x1, y1, x2, y2 = CELLS
    step = (x2 - x1) / CELL_COUNT
    for index, bit in enumerate(f"{page.number << FAULT_BITS | page.fault:0{CELL_COUNT}b}"):
        if bit == "1":
            fill((x1 + index * step, y1, x1 + (index + 1) * step, y2), (0, 0, 0))
    # A gap above the middle: like a letter, and unlike a rule, each black cell is crossed twice from top to bottom.
    fill((x1, y1 + 0.25 * (y2 - y1), x2, y1 + 0.38 * (y2 - y1)), (255, 255, 255))
    return image


def pdf_bytes(pages: Sequence[CodedPage]) -> bytes:
    """A PDF of coded pages, each with some lines of text and a coloured picture."""
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for index, page in enumerate(pages):
        content = _pdf_content(page)
        resources = "/Resources<</Font<</F1 3 0 R>>>>"
        box = f"/MediaBox[0 0 {WIDTH} {HEIGHT}]"
        objects.append(f"<</Type/Page/Parent 2 0 R{box}{resources}/Contents {5 + 2 * index} 0 R>>".encode())
        objects.append(f"<</Length {len(content)}>>stream\n".encode() + content + b"\nendstream")
    file = io.BytesIO()
    file.write(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(file.tell())
        file.write(f"{number} 0 obj".encode() + body + b"endobj\n")
    start = file.tell()
    file.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    file.writelines(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    file.write(f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n".encode())
    return file.getvalue()


def _pdf_content(page: CodedPage) -> bytes:
    """Operators that draw a page; the origin is its lower left corner."""

    def fill(place: tuple[float, float, float, float], colour: tuple[int, int, int]) -> str:
        x1, y1, x2, y2 = place
        rgb = " ".join(f"{value / 255:.4f}" for value in colour)
        box = f"{x1 * WIDTH:.2f} {(1 - y2) * HEIGHT:.2f} {(x2 - x1) * WIDTH:.2f} {(y2 - y1) * HEIGHT:.2f}"
        return f"{rgb} rg {box} re f"

    dice = random.Random(page.number)
    lines = [" ".join(dice.choices(WORDS, k=6)) for _ in range(6)]
    text = [f"BT /F1 10 Tf 14 182 Td (Coded page {page.number}) Tj ET"]
    text += [f"BT /F1 6 Tf 14 {160 - 12 * row} Td ({line}.) Tj ET" for row, line in enumerate(lines)]
    drawn = [fill(BAND, (_grey(page.fault),) * 3), fill(PICTURE, _colour(page.number)), "0 g", *text]
    return "\n".join(drawn).encode("ascii")


def _grey(fault: Fault) -> int:
    """The band's grey; white for faults that the recognition engine reads from the cells."""
    return 255 - GREY_STEP * fault if fault < Fault.EMPTY_TEXT else 255


def _colour(number: int) -> tuple[int, int, int]:
    """Another colour for every page, so that no page's crop passes for another's."""
    return (40 + number % 8 * 25, 40 + number // 8 % 8 * 25, 40 + number // 64 % 8 * 25)


def _encoded(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()
