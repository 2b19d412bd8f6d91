"""The HTML report: one self-contained file that shows page images, regions and text, and searches them.

The viewer in it is ``viewer/``, which the web app shares; what only the report has is in ``report_template/``. Page
data and images are inert blocks, each parsed when it is first needed, so that a report of a thousand pages opens
quickly. A content security policy lets nothing but that one script and that one style take effect and nothing be
fetched, whatever the documents contain.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

import msgspec
from msgspec.structs import replace

from pagemill.document.labels import TITLES, Label
from pagemill.document.page import ContentFormat, PageResult, Status, TextLine
from pagemill.export.html import html_head, source_hash
from pagemill.export.markdown import plain_content
from pagemill.late import re

MAX_PAGES = 2000
"""Pages that a report shows."""
MAX_BYTES = 300 * 2**20
"""Maximum characters of page data and images; past it, images are left out, then pages."""
_MAX_IMAGE_SHARE = 0.8  # of MAX_BYTES: texts of all pages are worth more than the last images
_TITLE_CHARACTERS = 70
_HERE = files("pagemill.export")
_STYLES = ("viewer/viewer.css", "report_template/report.css")
_MODULES = (
    "viewer/dom.js",
    "viewer/tables.js",
    "viewer/formula.js",
    "viewer/content.js",
    "viewer/page_view.js",
    "report_template/data.js",
    "report_template/summary.js",
    "report_template/report.js",
)
"""JavaScript modules, each after those that it imports."""
_FORMULAS = "viewer/temml.min.js"
"""A library that renders LaTeX: only in reports with LaTeX, because it is large."""
_IMPORT_OR_EXPORT = re.compile(r"^import [^;]*;\n|^export (?=async function|function|class|const)", re.MULTILINE)


def report_html(
    pages: Iterable[PageResult], previews: Callable[[str], bytes | None], summary: Mapping[str, Any]
) -> Iterator[str]:
    """The report, in pieces that are to be written one after the other; memory does not grow with images or texts.

    Args:
        pages: All pages in the order in which to list them.
        previews: Encoded image (WebP or JPEG) of a page id, or None.
        summary: The content of ``run.json`` (:class:`pagemill.store.summary.RunSummary`) as plain values.
    """
    style = "".join(map(_file, _STYLES))
    script = _script()
    hashes = " ".join(f"'{source_hash(each)}'" for each in (script, _file(_FORMULAS)))
    yield html_head("pagemill report", "en", style, f"img-src data:; script-src {hashes}")
    yield _file("report_template/page.html")
    yield _block("summary", summary)
    has_latex = yield from _page_blocks(pages, previews, int(summary.get("pages", 0)))
    if has_latex:
        yield f"<script>{_file(_FORMULAS)}</script>\n"
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _page_blocks(
    pages: Iterable[PageResult], previews: Callable[[str], bytes | None], total: int
) -> Generator[str, None, bool]:
    """The blocks of pages and images within the bounds, then the index of what they hold; whether there is LaTeX."""
    documents: dict[str, int] = {}
    labels: dict[Label, int] = {}
    entries: list[dict[str, Any]] = []
    size = missing_images = 0
    has_latex = False
    for page in pages:
        block = _block(f"page-{len(entries)}", _shown(page))
        # Browsers fail to open larger files.
        if len(entries) == MAX_PAGES or size + len(block) > MAX_BYTES:
            break
        yield block
        size += len(block)
        image = previews(page.page_id)
        if image is not None and size + len(image) * 4 // 3 < MAX_BYTES * _MAX_IMAGE_SHARE:
            block = _image_block(f"image-{len(entries)}", image)
            yield block
            size += len(block)
        elif page.status is Status.DONE and page.has_image:
            missing_images += 1
        has_latex |= any(region.content_format is ContentFormat.LATEX for region in page.regions)
        present = {region.label for region in page.regions}
        entries.append(
            {
                "number": page.page_number,
                "document": documents.setdefault(page.doc_id, len(documents)),
                "title": page_title(page),
                "failed": page.status is Status.FAILED,
                "errors": len(page.errors),
                "review": page.review,
                "labels": [labels.setdefault(label, len(labels)) for label in Label if label in present],
            }
        )
    yield _block(
        "index",
        {
            "documents": list(documents),
            "labels": list(labels),
            "pages": entries,
            "missing_pages": max(0, total - len(entries)),
            "missing_images": missing_images,
        },
    )
    return has_latex


def _shown(page: PageResult) -> PageResult:
    """The record without what the report does not show."""
    regions = [
        replace(region, polygon=None, lines=tuple(TextLine(text=line.text, box=line.box) for line in region.lines))
        for region in page.regions
    ]
    return replace(page, regions=regions, source="", page_key="", markdown="", image_crops=[], metadata={})


def page_title(page: PageResult) -> str:
    """What names a page in the list: its first title, or else its first text."""
    read = [region for region in page.regions if region.content]
    titles = [region for region in read if region.label in TITLES]
    texts = [region for region in read if region.label in (Label.TEXT, Label.ABSTRACT, Label.CONTENT)]
    for region in [*titles, *texts]:
        text = " ".join(plain_content(region)[: 4 * _TITLE_CHARACTERS].split())[:_TITLE_CHARACTERS]
        if any(map(str.isalpha, text)):  # the number of a chapter names nothing
            return text
    if page.errors and not read:
        return page.errors[0].category.replace("_", " ")
    return ", ".join(sorted({region.label.replace("_", " ") for region in page.regions}))


def _block(identifier: str, data: Any) -> str:
    # In a script element only "<" matters: it could end the element or start a comment.
    content = msgspec.json.encode(data).decode("utf-8").replace("<", "\\u003c")
    return f'<script type="application/json" id="{identifier}">{content}</script>\n'


def _image_block(identifier: str, image: bytes) -> str:
    kind = "webp" if image.startswith(b"RIFF") else "jpeg"
    data = f"data:image/{kind};base64,{base64.b64encode(image).decode('ascii')}"
    return f'<script type="text/plain" id="{identifier}">{data}</script>\n'


def _script() -> str:
    """The modules as one, because the policy of a file lets it load none: without their imports and exports."""
    return '"use strict";\n' + "".join(_IMPORT_OR_EXPORT.sub("", _file(name)) for name in _MODULES)


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
