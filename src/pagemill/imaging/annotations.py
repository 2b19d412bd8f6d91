"""What form fields and annotations show on a PDF page: PDFium's text layer holds the page's own content only.

The appearances are flattened into the content of a copy of the page, so that their text is read like any other. What
has no text to read there (check boxes, values that no appearance shows) is returned as marks: a place and a text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from pagemill.imaging.navigation import utf_16
from pagemill.imaging.page import CHECKED, UNCHECKED

_MAX_ANNOTATIONS = 5_000
"""A tax form has some hundred fields on a page; a page with more annotations than this is read without the rest."""
_MAX_VALUE = 20_000
"""Characters of a field's value."""
_UNSEEN = pdfium_c.FPDF_ANNOT_FLAG_HIDDEN | pdfium_c.FPDF_ANNOT_FLAG_NOVIEW
_UNREAD = frozenset(
    {
        pdfium_c.FPDF_ANNOT_LINK,
        pdfium_c.FPDF_ANNOT_POPUP,
        # Icons for what opens on a click; PDFium draws a note's icon with the word "Note".
        pdfium_c.FPDF_ANNOT_TEXT,
        pdfium_c.FPDF_ANNOT_FILEATTACHMENT,
        pdfium_c.FPDF_ANNOT_SOUND,
    }
)
_BUTTONS = frozenset({pdfium_c.FPDF_FORMFIELD_CHECKBOX, pdfium_c.FPDF_FORMFIELD_RADIOBUTTON})
_WRITTEN = frozenset({pdfium_c.FPDF_FORMFIELD_TEXTFIELD, pdfium_c.FPDF_FORMFIELD_COMBOBOX})
# Bits of a text field's /Ff (ISO 32000-1, table 228) that PDFium has no constants for.
_PASSWORD, _COMB = 1 << 13, 1 << 24


class Mark(msgspec.Struct, frozen=True):
    """Something an annotation says that is not, or need not be, among the page's glyphs."""

    text: str
    rectangle: tuple[float, float, float, float]
    """Left, top, right, bottom in page space (points, y upwards)."""
    fallback: bool
    """Wanted only where no glyph lies in the rectangle."""


class FlattenedPage(msgspec.Struct, frozen=True):
    """A page whose annotations are part of its content."""

    page: Any
    """A ``pypdfium2.PdfPage``: the page itself where no annotation is to be read, else a copy."""
    own_objects: int | None = None
    """Number of top-level objects of the page itself, which come before those of annotations; None for all."""
    marks: tuple[Mark, ...] = ()
    left_out: str = ""
    """What of the annotations is not read, for a warning."""


@contextmanager
def flattened(document: Any, page: Any, page_index: int) -> Iterator[FlattenedPage]:
    """A copy of a page with its annotations flattened into the content, closed at the end.

    The page must have been rendered with its annotations before, which makes PDFium generate missing appearances.

    Args:
        document: The open ``pypdfium2.PdfDocument``, with its form environment where it has a form.
        page: The open page; it is not changed.
        page_index: From 0.

    Raises:
        pypdfium2.PdfiumError: The page cannot be copied, or its annotations not be flattened.
    """
    count = pdfium_c.FPDFPage_GetAnnotCount(page.raw)
    found = [_read(page, document.formenv, index) for index in range(min(count, _MAX_ANNOTATIONS))]
    if not any(flatten or mark is not None for flatten, mark in found):
        yield FlattenedPage(page)
        return
    # Flattening takes the annotations off the page. The document stays open for further pages, and for this one again.
    with pdfium.PdfDocument.new() as copy:
        copy.import_pages(document, [page_index])
        twin = copy[0]
        own_objects = pdfium_c.FPDFPage_CountObjects(twin.raw)
        if pdfium_c.FPDFPage_GetAnnotCount(twin.raw) != count:
            raise pdfium.PdfiumError("the copy of the page lacks annotations")
        for index in range(count):
            if index >= len(found) or not found[index][0]:
                _hide(twin, index)
        status = pdfium_c.FPDFPage_Flatten(twin.raw, pdfium_c.FLAT_NORMALDISPLAY)
        twin.close()
        if status == pdfium_c.FLATTEN_FAIL:
            raise pdfium.PdfiumError("the annotations of the page cannot be flattened")
        twin = copy[0]
        try:
            marks = tuple(mark for _, mark in found if mark is not None)
            left_out = f"only {len(found)} of {count} annotations of the page are read" if len(found) < count else ""
            yield FlattenedPage(twin, own_objects, marks, left_out)
        finally:
            twin.close()


def _read(page: Any, form: Any, index: int) -> tuple[bool, Mark | None]:
    """Whether the appearance of an annotation holds text to be read, and its mark."""
    annotation = pdfium_c.FPDFPage_GetAnnot(page.raw, index)
    if not annotation:
        return False, None
    try:
        subtype = pdfium_c.FPDFAnnot_GetSubtype(annotation)
        box = pdfium_c.FS_RECTF()
        is_hidden = pdfium_c.FPDFAnnot_GetFlags(annotation) & _UNSEEN
        if subtype in _UNREAD or is_hidden or not pdfium_c.FPDFAnnot_GetRect(annotation, box):
            return False, None
        rectangle = (box.left, box.top, box.right, box.bottom)
        if subtype == pdfium_c.FPDF_ANNOT_FREETEXT:
            contents = _value(lambda *to: pdfium_c.FPDFAnnot_GetStringValue(annotation, b"Contents", *to))
            return True, _written(contents, rectangle)
        if subtype == pdfium_c.FPDF_ANNOT_WIDGET and form:
            return _read_field(annotation, form, rectangle)
        return True, None
    finally:
        pdfium_c.FPDFPage_CloseAnnot(annotation)


def _read_field(annotation: Any, form: Any, rectangle: tuple[float, float, float, float]) -> tuple[bool, Mark | None]:
    kind = pdfium_c.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in _BUTTONS:
        text = CHECKED if pdfium_c.FPDFAnnot_IsChecked(form, annotation) else UNCHECKED
        return False, Mark(text, rectangle, fallback=False)
    flags = pdfium_c.FPDFAnnot_GetFormFieldFlags(form, annotation) if kind == pdfium_c.FPDF_FORMFIELD_TEXTFIELD else 0
    if kind not in _WRITTEN or flags & _PASSWORD:  # a password is shown as asterisks
        return True, None
    value = _value(lambda *to: pdfium_c.FPDFAnnot_GetFormFieldValue(form, annotation, *to))
    if value.strip() and flags & _COMB:
        # Letters in a row of cells are words of one letter to whom goes by their gaps.
        return False, Mark(value, rectangle, fallback=False)
    return True, _written(value, rectangle)


def _value(read: Callable[[Any, int], int]) -> str:
    return utf_16(read, sys.maxsize)[:_MAX_VALUE]


def _written(value: str, rectangle: tuple[float, float, float, float]) -> Mark | None:
    return Mark(value, rectangle, fallback=True) if value.strip() else None


def _hide(page: Any, index: int) -> None:
    annotation = pdfium_c.FPDFPage_GetAnnot(page.raw, index)
    if annotation:
        flags = pdfium_c.FPDFAnnot_GetFlags(annotation)
        pdfium_c.FPDFAnnot_SetFlags(annotation, flags | pdfium_c.FPDF_ANNOT_FLAG_HIDDEN)
        pdfium_c.FPDFPage_CloseAnnot(annotation)
