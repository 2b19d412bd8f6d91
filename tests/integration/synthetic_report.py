"""Reports of made-up pages: text drawn into an image at the place the record says, so that overlays can be judged."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageDraw

from pagemill.document.labels import Label
from pagemill.document.page import ContentFormat, PageError, PageResult, Region, Status, TextLine
from pagemill.export.report import report_html
from pagemill.store.summary import RunSummary

WIDTH, HEIGHT = 800, 1130

TABLE = (
    "<table><thead><tr><th>Mill</th><th colspan='2'>Sheets</th></tr></thead>"
    "<tbody><tr><td rowspan='2'>North</td><td>1,200</td><td>7 %</td></tr>"
    "<tr><td>1,310</td><td>9 %</td></tr></tbody></table>"
)
STORY = "Water turned the wheel\nday and night, and the\nwheel turned the stamps\nof page {n}."
STEPS = "Rags are cut and beaten.\nPulp is lifted in a mould.\nSheets are pressed, dried."
BLOCKS: list[tuple[Label, tuple[int, int, int, int], str | None, dict[str, Any]]] = [
    (Label.HEADER, (80, 50, 720, 70), "Annual review of paper mills", {}),
    (Label.DOC_TITLE, (80, 100, 720, 140), "The mill by the river, part {n}", {"level": 1}),
    (Label.TEXT, (80, 170, 390, 330), STORY, {}),
    (Label.PARAGRAPH_TITLE, (80, 350, 390, 375), "How sheets are made", {"level": 2}),
    (Label.TEXT, (80, 390, 390, 520), STEPS, {"list_item": True}),
    (Label.IMAGE, (420, 170, 720, 380), None, {}),
    (Label.FIGURE_TITLE, (420, 390, 720, 410), "Figure 1: the wheel in spring", {"caption_of": 5}),
    (Label.TABLE, (80, 560, 720, 720), TABLE, {"content_format": ContentFormat.HTML}),
    (Label.DISPLAY_FORMULA, (250, 760, 550, 800), "m = ρ · A · d", {"content_format": ContentFormat.FORMULA_TEXT}),
    (Label.TEXT, (80, 830, 720, 900), "종이는 물과 섬유로 만든다.\nPaper is made of water and fibre.", {}),
    (Label.NUMBER, (390, 1060, 410, 1080), "{n}", {}),
]  # fmt: skip


def synthetic_page(index: int, *, doc: str = "mill-report", **changes: Any) -> PageResult:
    """A page with a region of most kinds."""
    regions = []
    for position, (label, box, content, fields) in enumerate(BLOCKS):
        content = content.replace("{n}", str(index + 1)) if content else content
        lines = [] if content is None or label is Label.TABLE else content.split("\n")
        height = (box[3] - box[1]) / max(1, len(lines))
        regions.append(
            Region(
                index=position,
                label=label,
                bbox=box,
                bbox_2d=tuple(round(v / size * 1000) for v, size in zip(box, (WIDTH, HEIGHT) * 2, strict=True)),
                content=content,
                score=0.9,
                confidence=0.97 if content else None,
                engine="rapidocr" if content else None,
                source="onnx",
                lines=tuple(
                    TextLine(text=text, box=(box[0], box[1] + height * row, box[2], box[1] + height * (row + 1)))
                    for row, text in enumerate(lines)
                ),
                **fields,
            )
        )
    page = PageResult(
        page_id=f"{doc}_{index + 1}",
        page_idx=index,
        doc_id=doc,
        source=f"{doc}.pdf",
        page_number=index + 1,
        regions=regions,
        width=WIDTH,
        height=HEIGHT,
        text_source="ocr",
        languages=("en", "ko"),
        timings={"decode": 0.06, "layout": 0.31, "recognition": 1.42, "assemble": 0.02},
    )
    for name, value in changes.items():
        setattr(page, name, value)
    return page


def failed_page(index: int, *, doc: str = "broken") -> PageResult:
    """A page of a document that did not open."""
    error = PageError(
        component="source",
        category="encrypted",
        message="broken.pdf needs a password",
        remedy="Give it with --password.",
    )
    return PageResult(
        page_id=f"{doc}_{index}",
        page_idx=index,
        doc_id=doc,
        source=f"{doc}.pdf",
        page_number=None,
        status=Status.FAILED,
        errors=[error],
    )


def preview_of(page: PageResult) -> bytes:
    """The page drawn, as WebP."""
    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    for region in page.regions:
        if region.content is None:
            draw.rectangle(region.bbox, fill=(120, 150, 170))
            draw.ellipse((500, 220, 640, 360), outline="white", width=9)
        elif region.label is Label.TABLE:
            draw.rectangle(region.bbox, outline="black")
            for row in (613, 666):
                draw.line((80, row, 720, row), fill="black")
        for line in region.lines:
            size = min(34, (line.box[3] - line.box[1]) * 0.75, 1.8 * (line.box[2] - line.box[0]) / len(line.text))
            draw.text((line.box[0], line.box[1]), line.text, fill="black", font_size=size)
    stream = io.BytesIO()
    image.save(stream, "WEBP", quality=60, method=0)
    return stream.getvalue()


def summary_of(pages: list[PageResult]) -> dict[str, Any]:
    """The content of ``run.json`` for these pages."""
    started = datetime(2025, 3, 1, 9, 0, tzinfo=UTC)
    summary = RunSummary(started=started, finished=started + timedelta(seconds=1.1 * len(pages)))
    for page in pages:
        summary.add(page)
    summary.documents = len({page.doc_id for page in pages})
    plain: dict[str, Any] = msgspec.to_builtins(summary)
    return plain


def synthetic_report(out: Path, pages: list[PageResult], *, image: bytes | None = None) -> Path:
    """Write a report; ``image`` stands for all pages, None draws each."""
    by_id = {page.page_id: page for page in pages}

    def preview(page_id: str) -> bytes | None:
        page = by_id[page_id]
        return (image or preview_of(page)) if page.status is Status.DONE else None

    path = out / "report.html"
    path.write_text("".join(report_html(iter(pages), preview, summary_of(pages))), encoding="utf-8", newline="\n")
    return path
