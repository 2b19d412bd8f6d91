"""The HTML report: one self-contained file that shows page images, regions and text, and searches them.

The program in it and its style are in ``report_template/``. Page data and images are inert blocks, each parsed when
it is first needed, so that a report of a thousand pages opens quickly. A content security policy lets nothing but
that one script and that one style take effect and nothing be fetched, whatever the documents contain.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import Status
from pagemill.export.markdown import plain_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pagemill.document.page import PageResult, Region

MAX_PAGES = 2000
"""Pages that a report shows."""
MAX_BYTES = 300 * 2**20
"""Most characters of page data and images; past it, images are left out, then pages."""
_MAX_IMAGE_SHARE = 0.8  # of MAX_BYTES: texts of all pages are worth more than the last images
_TITLE_CHARACTERS = 70
_TEMPLATE = files("pagemill.export") / "report_template"


class _IndexEntry(msgspec.Struct, kw_only=True):
    """What the list of pages and the filters know of a page."""

    number: int | None
    document: int
    title: str
    failed: bool
    errors: int
    labels: list[int]


class _Index(msgspec.Struct, kw_only=True):
    documents: list[str]
    labels: list[Label]
    pages: list[_IndexEntry]
    missing_pages: int
    missing_images: int


def write_report(
    out: Path,
    pages: Iterable[PageResult],
    previews: Callable[[str], bytes | None],
    summary: Mapping[str, Any],
) -> None:
    """Write ``report.html``, page by page; memory does not grow with images or texts.

    Args:
        out: Directory of the report.
        pages: All pages in the order in which to list them.
        previews: Encoded image (WebP, JPEG or PNG) of a page id, or None.
        summary: The content of ``run.json`` (:class:`pagemill.store.summary.RunSummary`) as plain values.

    Raises:
        OSError: The file cannot be written; no half report is left then.
    """
    temporary = out / "report.html.pagemill-tmp"
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(_report(pages, previews, summary))
        temporary.replace(out / "report.html")
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _report(
    pages: Iterable[PageResult], previews: Callable[[str], bytes | None], summary: Mapping[str, Any]
) -> Iterator[str]:
    style = _template("style.css")
    script = "".join(_template(name) for name in _script_names())
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_source_hash(style)}'; script-src '{_source_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>pagemill report</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n"
    )
    yield _template("page.html")
    yield _block("summary", dict(summary))
    yield from _page_blocks(pages, previews, int(summary.get("pages", 0)))
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _page_blocks(pages: Iterable[PageResult], previews: Callable[[str], bytes | None], total: int) -> Iterator[str]:
    """The blocks of pages and images within the bounds, then the index of what they hold."""
    documents: dict[str, int] = {}
    labels: dict[Label, int] = {}
    entries: list[_IndexEntry] = []
    size = missing_images = 0
    for page in pages:
        block = _block(f"page-{len(entries)}", _page_data(page))
        if len(entries) == MAX_PAGES or size + len(block) > MAX_BYTES:
            break
        yield block
        size += len(block)
        image = previews(page.page_id)
        if image is not None and size + len(image) * 4 // 3 < MAX_BYTES * _MAX_IMAGE_SHARE:
            block = _image_block(f"image-{len(entries)}", image)
            yield block
            size += len(block)
        elif page.status is Status.DONE:
            missing_images += 1
        present = {region.label for region in page.regions}
        entries.append(
            _IndexEntry(
                number=page.page_number,
                document=documents.setdefault(page.doc_id, len(documents)),
                title=_title(page),
                failed=page.status is Status.FAILED,
                errors=len(page.errors),
                labels=[labels.setdefault(label, len(labels)) for label in Label if label in present],
            )
        )
    yield _block(
        "index",
        _Index(
            documents=list(documents),
            labels=list(labels),
            pages=entries,
            missing_pages=max(0, total - len(entries)),
            missing_images=missing_images,
        ),
    )


def _page_data(page: PageResult) -> dict[str, Any]:
    width, height = max(page.width, 1), max(page.height, 1)
    return {
        "id": page.page_id,
        "doc": page.doc_id,
        "number": page.page_number,
        "width": page.width,
        "height": page.height,
        "rotation": page.rotation,
        "text_source": page.text_source,
        "languages": page.languages,
        "timings": page.timings,
        "errors": [
            {
                "component": error.component,
                "category": error.category,
                "message": error.message,
                "remedy": error.remedy,
                "region": error.region,
            }
            for error in page.errors
        ],
        "regions": [_region_data(region, width, height) for region in page.regions],
    }


def _region_data(region: Region, width: int, height: int) -> dict[str, Any]:
    return {
        "index": region.index,
        "label": region.label,
        "box": region.bbox_2d,
        "content": region.content,
        "format": region.content_format,
        "score": region.score,
        "confidence": region.confidence,
        "engine": region.engine,
        "attempts": region.attempts,
        "source": region.source,
        "level": region.level,
        "list": region.list_item,
        "caption_of": region.caption_of,
        "continues": region.continues,
        "lines": [
            [
                round(line.box[0] / width * 1000, 1),
                round(line.box[1] / height * 1000, 1),
                round(line.box[2] / width * 1000, 1),
                round(line.box[3] / height * 1000, 1),
                line.text,
            ]
            for line in region.lines
        ],
    }


def _title(page: PageResult) -> str:
    """What names a page in the list: its first title, or else its first text."""
    read = [region for region in page.regions if region.content]
    titles = [region for region in read if region.label in (Label.DOC_TITLE, Label.PARAGRAPH_TITLE)]
    texts = [region for region in read if region.label in (Label.TEXT, Label.ABSTRACT, Label.CONTENT)]
    for region in [*titles, *texts]:
        return " ".join(plain_content(region)[: 4 * _TITLE_CHARACTERS].split())[:_TITLE_CHARACTERS]
    if page.errors and not read:
        return page.errors[0].category.replace("_", " ")
    return ", ".join(sorted({region.label.replace("_", " ") for region in page.regions}))


def _block(identifier: str, data: Any) -> str:
    # In a script element only "<" matters: it could end the element or start a comment.
    content = msgspec.json.encode(data).decode("utf-8").replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{content}</script>\n'


def _image_block(identifier: str, image: bytes) -> str:
    data = f"data:{_media_type(image)};base64,{base64.b64encode(image).decode('ascii')}"
    return f'<script type="text/plain" id="{identifier}">{data}</script>\n'


def _media_type(image: bytes) -> str:
    if image[:4] == b"RIFF" and image[8:12] == b"WEBP":
        return "image/webp"
    return "image/png" if image[:4] == b"\x89PNG" else "image/jpeg"


def _template(name: str) -> str:
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def _script_names() -> list[str]:
    """The parts of the program, in the order of their leading digits."""
    return sorted(entry.name for entry in _TEMPLATE.iterdir() if entry.name.endswith(".js"))


def _source_hash(text: str) -> str:
    """Hash of an inline element's text as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"
