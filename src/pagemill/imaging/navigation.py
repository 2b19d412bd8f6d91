"""Links, outline and page labels of a PDF."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pypdfium2.raw as pdfium

from pagemill.document.page import OutlineEntry
from pagemill.imaging.glyphs import valid_unicode
from pagemill.late import re

if TYPE_CHECKING:
    from pagemill.imaging.pdf_document import PdfDocument

Rectangle = tuple[float, float, float, float]
"""Left, bottom, right, top in page space."""

_MAX_LINKS, _MAX_QUADS = 2_000, 64
"""Links of a page, and rectangles of one: an index has some hundred links, a link over lines one rectangle a line."""
_MAX_TARGET = 2_048
"""Characters of a target; a longer one is no address that anybody follows."""
_SCHEME = re.compile(r"(?:https?|mailto|tel):[^\s\x00-\x1f]+$", re.IGNORECASE)
_MAX_ENTRIES, _MAX_DEPTH, _MAX_TITLE = 10_000, 16, 500
"""Entries of an outline, how deep they go, and characters of a title."""
_MAX_LABELS, _MAX_LABEL = 20_000, 64
_FIT_TOP = {pdfium.PDFDEST_VIEW_FITH: 0, pdfium.PDFDEST_VIEW_FITBH: 0, pdfium.PDFDEST_VIEW_FITR: 3}
"""Views that name a height, and which of their parameters it is."""


def links_of(document: PdfDocument, page: Any) -> list[tuple[list[Rectangle], str]]:
    """The rectangles and targets of a page's links to the web, to mail and telephone, and into the document.

    Args:
        document: The open document.
        page: Handle of the original page.
    """
    links = []
    place, link = ctypes.c_int(0), pdfium.FPDF_LINK()
    for _ in range(_MAX_LINKS):
        if not pdfium.FPDFLink_Enumerate(page, place, link):
            break
        target = _target(document, link)
        boxes = list(_rectangles(link)) if target else []
        links += [(boxes, target)] if target and boxes else []
    return links


def _target(document: PdfDocument, link: Any) -> str | None:
    action = pdfium.FPDFLink_GetAction(link)
    if action and pdfium.FPDFAction_GetType(action) == pdfium.PDFACTION_URI:
        size = pdfium.FPDFAction_GetURIPath(document.raw, action, None, 0)
        # Bytes of UTF-8, of which a character has four at most.
        if not 0 < size <= 4 * _MAX_TARGET:
            return None
        buffer = ctypes.create_string_buffer(size)
        pdfium.FPDFAction_GetURIPath(document.raw, action, buffer, size)
        target = buffer.value.decode("utf-8", "replace").strip()
        return target if len(target) <= _MAX_TARGET and _SCHEME.match(target) else None
    page, top = _place(document, _destination(document, link, action, pdfium.FPDFLink_GetDest))
    if page is None:
        return None
    return f"#page={page}" if top is None else f"#page={page}&top={top}"


def _destination(document: PdfDocument, of: Any, action: Any, read: Any) -> Any:
    if (found := read(document.raw, of)) or not action:
        return found
    # Actions may also lead into other files or start programs: these are no places of this document.
    is_inside = pdfium.FPDFAction_GetType(action) == pdfium.PDFACTION_GOTO
    return pdfium.FPDFAction_GetDest(document.raw, action) if is_inside else None


def _rectangles(link: Any) -> Iterator[Rectangle]:
    quad = pdfium.FS_QUADPOINTSF()
    found = False
    for index in range(min(pdfium.FPDFLink_CountQuadPoints(link), _MAX_QUADS)):
        if pdfium.FPDFLink_GetQuadPoints(link, index, quad):
            # A link that wraps has a quad a line; its rectangle would cover what stands beside it on both.
            xs, ys = (quad.x1, quad.x2, quad.x3, quad.x4), (quad.y1, quad.y2, quad.y3, quad.y4)
            found = True
            yield min(xs), min(ys), max(xs), max(ys)
    box = pdfium.FS_RECTF()
    if not found and pdfium.FPDFLink_GetAnnotRect(link, box):
        yield min(box.left, box.right), min(box.bottom, box.top), max(box.left, box.right), max(box.bottom, box.top)


def _place(document: PdfDocument, destination: Any) -> tuple[int | None, int | None]:
    """Page (from 1) and height in thousandths from its top, as far as a destination tells."""
    page = pdfium.FPDFDest_GetDestPageIndex(document.raw, destination) if destination else -1
    if page < 0:
        return None, None
    has_x, has_y, has_zoom = (ctypes.c_int() for _ in range(3))
    x, y, zoom = (ctypes.c_float() for _ in range(3))
    if pdfium.FPDFDest_GetLocationInPage(destination, has_x, has_y, has_zoom, x, y, zoom):
        left, height = (x.value if has_x else None), (y.value if has_y else None)
    else:
        count = ctypes.c_ulong()
        parameters = (ctypes.c_float * 4)()
        index = _FIT_TOP.get(pdfium.FPDFDest_GetView(destination, count, parameters), 4)
        left, height = None, (parameters[index] if index < count.value else None)
    return page + 1, document.damage.thousandths_from_top(page, left, height)


def outline_of(document: PdfDocument) -> tuple[OutlineEntry, ...]:
    """The entries of the document's outline in reading order."""
    entries: list[OutlineEntry] = []
    seen: set[int] = set()
    pending = [(pdfium.FPDFBookmark_GetFirstChild(document.raw, None), 1)]
    while pending and len(entries) < _MAX_ENTRIES:
        bookmark, level = pending.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        # Bookmarks of damaged files lead back to earlier ones.
        if not address or address in seen:
            continue
        seen.add(address)
        destination = _destination(
            document, bookmark, pdfium.FPDFBookmark_GetAction(bookmark), pdfium.FPDFBookmark_GetDest
        )
        page, top = _place(document, destination)
        if title := _title(bookmark):
            entries.append(OutlineEntry(title=title, level=level, page=page, top=top))
        # Pushed before the children, so that these come first.
        pending.append((pdfium.FPDFBookmark_GetNextSibling(document.raw, bookmark), level))
        if level < _MAX_DEPTH:
            pending.append((pdfium.FPDFBookmark_GetFirstChild(document.raw, bookmark), level + 1))
    return tuple(entries)


def _title(bookmark: Any) -> str:
    text = valid_unicode(utf_16(partial(pdfium.FPDFBookmark_GetTitle, bookmark), 2**20))
    return " ".join(text.split())[:_MAX_TITLE]


def utf_16(read: Callable[[Any, int], int], most: int) -> str:
    """A string that PDFium writes as UTF-16 into a buffer whose size in bytes it is asked for first.

    Args:
        read: A function of PDFium, but for the buffer and its size.
        most: Bytes of the longest string; a longer one counts as none.
    """
    size = read(None, 0)
    if not 2 < size <= most:
        return ""
    buffer = ctypes.create_string_buffer(size)
    read(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return buffer.raw.decode("utf-16-le", "replace").split("\0", 1)[0]


def labels_of(document: PdfDocument) -> tuple[str, ...]:
    """The labels of the pages, empty where all of them are the page's number."""
    if not document.damage.has_labels:
        return ()
    labels = [document.get_page_label(index)[:_MAX_LABEL] for index in range(min(len(document.sizes), _MAX_LABELS))]
    is_plain = all(label in ("", str(number)) for number, label in enumerate(labels, start=1))
    return () if is_plain else tuple(map(valid_unicode, labels))
