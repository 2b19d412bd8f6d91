"""Opening PDFs and rendering their pages with PDFium. Runs in a decoding process only: PDFium is not thread-safe."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from pagemill.document.geometry import Box, area
from pagemill.document.page import PageError
from pagemill.errors import (
    CorruptInputError,
    EmptyPageError,
    EncryptedError,
    InputError,
    PagemillError,
    TooLargeError,
    UnsupportedInputError,
    unreadable,
)
from pagemill.imaging.annotations import FlattenedPage, flattened
from pagemill.imaging.completeness import looking_scale, may_be_text_only, shows_only_text
from pagemill.imaging.formats import HEAD_BYTES, FileFormat, sniff
from pagemill.imaging.glyphs import valid_unicode
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.navigation import labels_of, links_of, outline_of, utf_16
from pagemill.imaging.page import DecodedPage, PdfInfo, TextLayer
from pagemill.imaging.pdf_damage import PdfDamage
from pagemill.imaging.pdf_document import PdfDocument
from pagemill.imaging.tags import tags_of
from pagemill.imaging.text_layer import PageFacts, extract_text_layer
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.late import re

SIZES = 64
"""Page sizes that :func:`describe` reads; more would take long on documents of many thousand pages."""
_METADATA_CHARACTERS = 1_000
_DATE = re.compile(
    r"(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d))?)?)?)?)?(?:([-+Z])(?:(\d\d)'?(?:(\d\d)'?)?)?)?"
)
_LANGUAGE_CHARACTERS = 64
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_LEAST_SIDE = 3.0
"""Units: the smallest page of the format."""
_LEGIBLE_DPI, _LEAST_DPI = 50.0, 1.0
"""Pixels of 72 units under which small type cannot be recognized (that of 12 units has letters of 4 pixels), and under
which text layers are not read: from 0.2 on letters are lost, as they fall together."""
_REMEDY = "Compare the page with another copy of the document."
_LEAST_IMAGE, _MAX_IMAGES, _MAX_SAMPLES = 0.01, 64, 100_000_000
"""Share of a page from which it matters whether an image is drawn, images of a page that are decoded to tell, and most
pixels of such an image: a scan of 1,600 megapixels in black and white takes 0.3 GB to draw and 1.7 GB to decode."""
_PLAIN, _STEP = 0.98, 4
"""Share of an image's box that has one colour where nothing but a stamp or a page number may be on it, and the distance
of the pixels that are compared. Decoding an image once more takes 10 ms, but 0.8 s for a large one in JPEG 2000."""
_BOXES = "Set the boxes of the page (/MediaBox, /CropBox) to what is drawn on it, and parse it again."
_REPAIR = "Get the file again, or repair it (for example with `qpdf in.pdf out.pdf`)."


def open_pdf(path: Path, password: str | None) -> PdfDocument:
    """Open a document, ready for drawing form fields.

    Raises:
        MissingInputError: The file does not exist; UnreadableInputError when it cannot be read.
        UnsupportedInputError: The file is not a PDF.
        CorruptInputError: The file is damaged beyond what PDFium repairs, or empty.
        EncryptedError: A password is needed, or the one given is wrong.
        EmptyPageError: The document has no pages.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise unreadable(path.name, error) from error
    if not head:
        raise CorruptInputError(f"{path.name} is empty (0 bytes)", remedy="Get the file again.")
    try:
        document = _opened(path, password)
    except pdfium.PdfiumError as error:
        raise _why_not_opened(path, password, head, error) from error
    if len(document) < 1:
        document.close()
        raise EmptyPageError(f"{path.name} has no pages", remedy=_REPAIR)
    # Before any page is loaded: PDFium does not attach fields to pages that are open already.
    document.init_forms()
    document.walk()
    return document


def _opened(path: Path, password: str | None) -> PdfDocument:
    """The document, opened with the password or, where that is not its own but it needs none to be read, without."""
    try:
        document = PdfDocument(path, password=password)
    except pdfium.PdfiumError as error:
        if password is None or error.err_code != pdfium_c.FPDF_ERR_PASSWORD:
            raise
        password = None
        document = PdfDocument(path)
    document.damage = PdfDamage(path, password)
    return document


def _why_not_opened(path: Path, password: str | None, head: bytes, error: pdfium.PdfiumError) -> PagemillError:
    if error.err_code == pdfium_c.FPDF_ERR_PASSWORD:
        if password is None:
            return EncryptedError(f"{path.name} is encrypted", remedy="Pass its password with --password.")
        return EncryptedError(f"the password for {path.name} is wrong", remedy="Pass the correct one with --password.")
    if error.err_code == pdfium_c.FPDF_ERR_SECURITY:
        return EncryptedError(
            f"{path.name} is encrypted in a way that PDFium does not know", remedy="Save it without encryption."
        )
    if sniff(head) is not FileFormat.PDF:
        return UnsupportedInputError(
            f"{path.name} is not a PDF", remedy="Check the file; its content decides, not its name."
        )
    return CorruptInputError(f"{path.name} is damaged and cannot be opened", remedy=_REPAIR)


def describe(document: PdfDocument) -> PdfInfo:
    """Page count, first sizes and metadata of an open document.

    The document's own page count is any number that somebody wrote into it: it is believed as far as pages are there.

    Raises:
        CorruptInputError: None of the pages can be loaded.
    """
    # PDFium gives no page beyond the number that the document announces, even where there are more.
    announced = max(len(document), document.damage.pages + document.damage.lost_pages)
    if not document.sizes:
        what = "its only page" if announced == 1 else f"none of the {announced:,} pages that it announces"
        raise CorruptInputError(f"the document is damaged: {what} can be loaded", remedy=_REPAIR)
    metadata = {
        key.lower(): valid_unicode(value[:_METADATA_CHARACTERS])
        for key, value in document.get_metadata_dict(skip_empty=True).items()
    }
    for key, date in (("created", metadata.pop("creationdate", "")), ("modified", metadata.pop("moddate", ""))):
        metadata |= {key: iso} if (iso := iso_date(date)) else {}
    sizes = [size or (0.0, 0.0) for size in document.sizes[:SIZES]]
    units = map(document.damage.user_unit, range(SIZES))
    return PdfInfo(
        page_count=len(document.sizes),
        announced=announced,
        broken=document.sizes.count(None),  # a broken page is reported when it is rendered
        sizes=tuple((unit * width, unit * height) for (width, height), unit in zip(sizes, units, strict=False)),
        metadata=metadata,
        language=_language(document),
        outline=outline_of(document),
        page_labels=labels_of(document),
    )


def _language(document: PdfDocument) -> str:
    read = partial(pdfium_c.FPDFCatalog_GetLanguage, document.raw)
    language = utf_16(read, 2 * _LANGUAGE_CHARACTERS).strip()
    return language if _LANGUAGE.fullmatch(language) else ""


def iso_date(text: str) -> str:
    """A date as PDFs write it (``D:20251125093000+01'00'``) in ISO 8601; empty where it is none."""
    if (match := _DATE.match(text)) is None:
        return ""
    year, month, day, hour, minute, second, zone, hours, minutes = match.groups()
    try:
        datetime(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError:
        return ""
    date = "-".join(part for part in (year, month, day) if part)
    if not hour:
        return date
    offset = "Z" if zone == "Z" else f"{zone}{hours}:{minutes or '00'}" if zone and hours else ""
    return f"{date}T{hour}:{minute or '00'}:{second or '00'}{offset}"


def render_page(
    document: PdfDocument, page_index: int, limits: DecodeLimits, text_only_side: int | None = None
) -> DecodedPage:
    """Render a page with annotations and form fields on white, and read its text layer.

    /Rotate, crop box and inverted boxes are PDFium's to apply; UserUnit it does not apply.

    Args:
        document: From :func:`open_pdf`.
        page_index: From 0.
        limits: Resolution and working size.
        text_only_side: Least pixels of the longer side of a page that shows only text, where that will do; 0 for none.

    Raises:
        CorruptInputError: The page cannot be loaded.
        EmptyPageError: The page has no area.
        TooLargeError: The page is too large for anything to be seen on it.
        InputError: The document has no such page.
    """
    if not 0 <= page_index < len(document):
        raise InputError(f"there is no page {page_index + 1}; the document has {len(document)}")
    if page_index >= len(document.sizes) or document.sizes[page_index] is None:
        raise CorruptInputError(f"page {page_index + 1} is damaged: it cannot be loaded", remedy=_REPAIR)
    try:
        # A page that could be measured may still fail to load.
        page = document[page_index]
    except pdfium.PdfiumError as error:
        raise CorruptInputError(f"page {page_index + 1} is damaged: {error}", remedy=_REPAIR) from error
    try:
        width_points, height_points = page.get_size()
        if not (math.isfinite(width_points * height_points) and width_points > 0 and height_points > 0):
            raise EmptyPageError(f"page {page_index + 1} has no area ({width_points:g} x {height_points:g} points)")
        unit = document.damage.user_unit(page_index)
        width, height, dpi = limits.render_size(unit * width_points, unit * height_points)
        notes = [] if dpi == limits.dpi else [f"rendered at {dpi:.0f} dpi because of the page's size"]
        warnings = _document_warnings(document)
        warnings += _size_warnings(page_index, width_points, height_points, unit * dpi)
        damage: str | None = None
        try:
            is_empty = pdfium_c.FPDFPage_CountObjects(page) == 0
            if (damage := document.damage.of_page(page_index, is_empty=is_empty)) is not None:
                warnings.append(PageError(component="decode", category="corrupt", message=damage, remedy=_REMEDY))
        except Exception as error:  # as below
            notes.append(f"the page cannot be checked for damage ({type(error).__name__}: {error})")
        text_layer: TextLayer | None = None
        image_boxes: tuple[Box, ...] = ()
        try:
            text_layer, image_boxes = _read_text_layer(document, page, page_index, width, height, unit, warnings)
            if text_layer.is_beside:
                message = "all text and images are outside the visible area of the page"
                warnings.append(PageError(component="decode", category="outside", message=message, remedy=_BOXES))
            if text_layer.left_out:
                message = f"{text_layer.left_out:,} characters of the text layer are left out: it has too many"
                warnings.append(PageError(component="text_layer", category="too_large", message=message))
        except Exception as error:  # whatever is wrong with the text, the pixels are there to be read
            notes.append(f"the text layer cannot be read ({type(error).__name__}: {error})")
        is_text_only = False
        if (
            text_only_side is not None
            and text_layer is not None
            and not document.damage.may_have_layers  # PDFium gives text that is switched off
            and may_be_text_only(text_layer, image_boxes)
        ):
            side = max(width, height)
            scale = max(looking_scale(text_layer, side), min(1.0, text_only_side / side))
            pixels = _draw(document, page, math.ceil(scale * width), math.ceil(scale * height))
            is_text_only = shows_only_text(text_layer, pixels, scale)
        # The small image is looked at first: a page that shows only text needs no large one.
        if not is_text_only:
            pixels = _draw(document, page, width, height)
        elif not text_only_side:
            pixels = pixels[:0, :0]
        if damage is None and not is_text_only and _lacks_image(page, image_boxes, pixels):
            message = "an image on the page cannot be decoded, and is missing"
            warnings.append(PageError(component="decode", category="corrupt", message=message, remedy=_REMEDY))
    finally:
        page.close()
    return DecodedPage(
        pixels=pixels,
        text_only_size=(width, height) if is_text_only else None,
        dpi=dpi,
        text_layer=text_layer,
        image_boxes=image_boxes,
        notes=tuple(notes),
        warnings=tuple(warnings),
    )


def _read_text_layer(
    document: PdfDocument, page: Any, page_index: int, width: int, height: int, unit: float, warnings: list[PageError]
) -> tuple[TextLayer, tuple[Box, ...]]:
    """The text of a page with that of its annotations; of the page alone where they break, which a warning says."""
    facts = PageFacts(unit, links_of(document, page.raw), tags_of(page.raw))
    try:
        with flattened(document, page, page_index) as flat:
            if flat.left_out:
                warnings.append(PageError(component="text_layer", category="too_large", message=flat.left_out))
            return extract_text_layer(flat, width, height, facts)
    except pdfium.PdfiumError as error:
        message = f"form fields and annotations are not read: {error}"
        warnings.append(PageError(component="text_layer", category="annotations", message=message))
    return extract_text_layer(FlattenedPage(page), width, height, facts)


def _size_warnings(page_index: int, width: float, height: float, resolution: float) -> list[PageError]:
    """What to say about a page of such a size that ordinary type on it cannot be seen.

    Args:
        page_index: From 0.
        width: In units of the page.
        height: Likewise.
        resolution: Resolution of its rendering, in pixels per 72 units.

    Raises:
        TooLargeError: Not even the letters of its text layer can be told from each other.
    """
    size = f"page {page_index + 1} has {width:,.8g} x {height:,.8g} units"
    if min(width, height) < _LEAST_SIDE:
        message = f"{size}: the page is too small to be read"
        return [PageError(component="text_layer", category="too_small", message=message, remedy=_BOXES)]
    message = f"{size}, and is rendered with {resolution:.2g} pixels per 72 units"
    if resolution < _LEAST_DPI:
        raise TooLargeError(f"{message}: no text can be read", remedy=_BOXES)
    if resolution >= _LEGIBLE_DPI:
        return []
    message += ": small type in pictures may be missing"
    return [PageError(component="text_layer", category="too_large", message=message, remedy=_BOXES)]


def _lacks_image(page: Any, boxes: Sequence[Box], pixels: Pixels) -> bool:
    """Whether PDFium cannot decode an image of a page; they are decoded once more only where one shows little."""
    least = _LEAST_IMAGE * pixels.shape[0] * pixels.shape[1]
    if not any(_is_plain(crop(pixels, box)) for box in boxes if area(box) >= least):
        return False
    width, height = ctypes.c_uint(), ctypes.c_uint()
    for image in islice(page.get_objects(filter=[pdfium_c.FPDF_PAGEOBJ_IMAGE]), _MAX_IMAGES):
        known = pdfium_c.FPDFImageObj_GetImagePixelSize(image.raw, width, height)
        if known and width.value * height.value > _MAX_SAMPLES:
            continue
        bitmap = pdfium_c.FPDFImageObj_GetBitmap(image.raw)
        if not bitmap:
            return True
        pdfium_c.FPDFBitmap_Destroy(bitmap)
    return False


def _is_plain(pixels: Pixels) -> bool:
    """Whether nearly all of an image has one colour: the ground of the page, where it is not drawn."""
    few = pixels[::_STEP, ::_STEP]
    return bool(np.mean((few == np.median(few, axis=(0, 1))).all(axis=2)) >= _PLAIN)


def _document_warnings(document: PdfDocument) -> list[PageError]:
    """What to say about documents whose pages are not their content.

    Those are forms in XFA, of which PDFium (built without it) shows the substitute pages only, portfolios, and several
    PDFs in one file.
    """
    form = document.get_formtype()
    if document.damage.is_joined:
        message = "the file is several concatenated PDFs, of which only one is read"
        remedy = "Save each PDF as a separate file. To join PDFs, use qpdf or pdfunite."
        return [PageError(component="decode", category="unsupported", message=message, remedy=remedy)]
    remedy = "Print the form to a new PDF with a viewer that shows XFA, and parse that."
    if document.damage.is_portfolio:
        count = document.count_attachments()
        files = "1 attached file is" if count == 1 else f"{count:,} attached files are"
        message = f"the document is a portfolio: its {files} not read"
        remedy = "Extract the files (for example with `pdfdetach -saveall`), and parse them."
    elif form == pdfium_c.FORMTYPE_XFA_FULL:
        message = "the document is a dynamic XFA form, which is not supported: only its substitute page is read"
    elif form == pdfium_c.FORMTYPE_XFA_FOREGROUND:
        message = "the document is an XFA form, which is not supported: its AcroForm fields are read instead"
    else:
        return []
    return [PageError(component="text_layer", category="unsupported", message=message, remedy=remedy)]


def _draw(document: Any, page: Any, width: int, height: int) -> Pixels:
    if not width * height:
        return np.empty((0, 0, 3), dtype=np.uint8)
    # In RGB from the start: to swap the channels later would copy the page once more.
    bitmap = pdfium.PdfBitmap.new_native(width, height, pdfium_c.FPDFBitmap_BGR, rev_byteorder=True)
    try:
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
        placement = (0, 0, width, height, 0, pdfium_c.FPDF_ANNOT | pdfium_c.FPDF_REVERSE_BYTE_ORDER)
        pdfium_c.FPDF_RenderPageBitmap(bitmap, page, *placement)
        if document.formenv:
            pdfium_c.FPDF_FFLDraw(document.formenv, bitmap, page, *placement)
        return np.array(bitmap.to_numpy(), dtype=np.uint8)
    finally:
        bitmap.close()
