"""Run directories made of given pages, through the store itself."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from pagemill.app.exporters import default_exporters
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.names import crop_path
from pagemill.document.page import ContentFormat, Furniture, ImageCrop, PageError, PageResult, Region, Status
from pagemill.store.opening import OpenMode
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory

JPEG = b"\xff\xd8 a picture"
TABLE = (
    '<table><thead><tr><th rowspan="2">Vat</th><th colspan="2">Weight</th></tr><tr><th>in</th><th>out</th></tr></thead>'
    "<tbody><tr><td>1</td><td>-4.5</td><td>=1+1</td></tr></tbody></table>"
)


def region(index: int, label: Label, content: str | None = None, **fields: Any) -> Region:
    """A region of a drawn-up page; its boxes are beside those of other indices unless they are given."""
    box = (100 * index, 0, 100 * index + 90, 90)
    boxes = {"bbox_2d": box, "bbox": tuple(map(float, box))}
    return Region(index=index, label=label, content=content, **boxes | fields)


def page(doc_id: str, number: int, regions: Iterable[Region] = (), **fields: Any) -> PageResult:
    """A page of a document, 1000 x 1400 pixels unless a size is given."""
    about = {"page_idx": 0, "source": f"{doc_id}.pdf", "width": 1000, "height": 1400} | fields
    return PageResult(page_id=f"{doc_id}_{number}", doc_id=doc_id, page_number=number, regions=list(regions), **about)


def failed_page(doc_id: str, number: int, category: str = "timeout", message: str = "took too long") -> PageResult:
    error = PageError(component="decode", category=category, message=message)
    return page(doc_id, number, status=Status.FAILED, errors=[error], attempts=2)


def sample_pages() -> list[PageResult]:
    """Two documents: a report with a table and a picture, of which one page failed; and a letter."""
    first = page(
        "report",
        1,
        [
            region(0, Label.DOC_TITLE, "Mills & <Machines>", level=1),
            region(1, Label.TEXT, "Water turns the wheel and the wheel turns the bea-", continues=True),
            region(2, Label.IMAGE),
            region(3, Label.FIGURE_TITLE, "Figure 1: The mill", caption_of=2),
            region(4, Label.FOOTER, "never shown", furniture=Furniture.PROVEN),
        ],
    )
    second = page(
        "report",
        2,
        [
            region(0, Label.TEXT, "ter, day and night."),
            region(1, Label.FIGURE_TITLE, "Table 1: Weights", caption_of=2),
            region(2, Label.TABLE, TABLE, content_format=ContentFormat.HTML),
        ],
    )
    letter = page("letter", 1, [region(0, Label.TEXT, "Dear miller,")], languages=("en",))
    return [first, second, failed_page("report", 3), letter]


def open_run(out: Path, mode: OpenMode = OpenMode.FRESH) -> RunDirectory:
    return RunDirectory.open(
        out, exporters=default_exporters(report=False), identity={"text": 1}, settings={"text": 1}, mode=mode
    )


def key_of(page: PageResult) -> PageKey:
    return PageKey(hashlib.sha256(page.doc_id.encode()).hexdigest(), page.page_number or 0)


def start(run: RunDirectory, page: PageResult) -> None:
    run.start_page(key_of(page), Place.of(page))


def write(run: RunDirectory, page: PageResult, page_idx: int) -> PageResult:
    """Write a page with a picture for each of its image regions."""
    places = [region for region in page.regions if region.label is Label.IMAGE]
    crops = [
        ImageCrop(
            path=crop_path(page.page_id, place.index),
            bbox=place.bbox_2d,
            label=place.label,
            region=place.index,
            size=len(JPEG),
            sha256=hashlib.sha256(JPEG).hexdigest(),
        )
        for place in places
    ]
    page = msgspec.structs.replace(page, page_idx=page_idx, page_key=str(key_of(page)), image_crops=crops)
    start(run, page)
    run.write_page(page, [(crop.path, JPEG) for crop in crops])
    return page


def write_run(out: Path, pages: Iterable[PageResult], *, finish: bool = True) -> list[PageResult]:
    """Write a run of these pages, in this order; give them as they are in the records."""
    with open_run(out) as run:
        written = [write(run, each, index) for index, each in enumerate(pages)]
        run.set_total(len(written))
        if finish:
            run.finish(interrupted=False, complete=True)
    return written
