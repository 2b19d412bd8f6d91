"""Small PDFs, and the Markdown that typography alone makes of them."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from reportlab.pdfgen.canvas import Canvas

from pagemill.document.page import PageResult
from pagemill.document.structure import structured
from pagemill.export.markdown import document_markdown
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.pdf import open_pdf, render_page
from pagemill.parsing.analyse import analyse_typography
from pagemill.parsing.lines import clean_lines

PROSE = (
    "The mill pond was dug in the year of the great thaw, when the brook left its bed and the meadows stood under "
    "water until June. The miller, who had lost two wheels to the ice, paid for the dam out of his own purse. Since "
    "then the pond has been used by the mill, by the washers and by the children of the village, and each of them has "
    "a right to it at some hour of the day. The hours are painted on a board beside the sluice."
)


class Sheet(Canvas):
    """A page of 595 by 842 points that is drawn from the top."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        super().__init__(self.file, pagesize=(595, 842), invariant=1)

    def put(self, x: float, y: float, text: str, font: str = "Helvetica", size: float = 11) -> None:
        """Write a line whose baseline is so far below the upper edge."""
        self.setFont(font, size)
        self.drawString(x, 842 - y, text)

    def right(self, x: float, y: float, text: str, font: str = "Helvetica", size: float = 11) -> None:
        """Write a line that ends at x."""
        self.setFont(font, size)
        self.drawRightString(x, 842 - y, text)

    def centre(self, y: float, text: str, font: str, size: float) -> None:
        """Write a line in the middle of the page."""
        self.setFont(font, size)
        self.drawCentredString(297, 842 - y, text)

    def prose(
        self, x: float, y: float, width: float, text: str = PROSE, font: str = "Helvetica", size: float = 11
    ) -> float:
        """Write a paragraph; its end, from the top."""
        line = ""
        for word in text.split():
            longer = f"{line} {word}".strip()
            if self.stringWidth(longer, font, size) > width:
                self.put(x, y, line, font, size)
                y, line = y + 1.25 * size, word
            else:
                line = longer
        self.put(x, y, line, font, size)
        return y + 1.25 * size

    def table(
        self,
        xs: Sequence[float],
        y: float,
        rows: Sequence[Sequence[str]],
        *,
        ruled: bool,
        step: float = 20,
        head: bool = True,
    ) -> float:
        """Write rows of cells that start at the same places, the first in bold as a head; the place below."""
        for number, row in enumerate(rows):
            for x, cell in zip(xs, row, strict=False):
                self.put(x + 4, y + 14 + number * step, cell, "Helvetica-Bold" if number == 0 and head else "Helvetica")
        if ruled:
            self.grid([*xs, xs[-1] + 110], [842 - y - number * step for number in range(len(rows) + 1)])
        return y + step * len(rows)


def _untagged(text: str) -> str:
    return ""


def records(sheet: Sheet, folder: Path, tag_of: Callable[[str], str] = _untagged) -> list[PageResult]:
    """Records of a drawn document, with the structure of the document; its file is written to a folder.

    Its lines have tags by their text, as in a tagged PDF.
    """
    sheet.save()
    path = folder / "drawn.pdf"
    path.write_bytes(sheet.file.getvalue())
    with open_pdf(path, None) as document:
        pages = [_record(document, index, tag_of) for index in range(len(document))]
    return list(structured(pages))


def markdown(sheet: Sheet, folder: Path, tag_of: Callable[[str], str] = _untagged) -> str:
    """Markdown of a drawn document."""
    return "".join(document_markdown(records(sheet, folder, tag_of), crops_root=""))


def _record(document: Any, index: int, tag_of: Callable[[str], str]) -> PageResult:
    page = render_page(document, index, DecodeLimits(dpi=100))
    assert page.text_layer is not None
    lines, _ = clean_lines(page.text_layer.lines)
    lines = [msgspec.structs.replace(line, tag=tag_of(line.text)) for line in lines]
    ref: Any = SimpleNamespace(
        page_id=f"drawn_{index + 1}",
        position=index,
        key="",
        document=SimpleNamespace(doc_id="drawn", uri="drawn.pdf"),
        page_number=index + 1,
        attempts=0,
        missing=0,
        metadata={},
    )
    record = analyse_typography(ref, page, lines)
    assert record is not None
    return record
