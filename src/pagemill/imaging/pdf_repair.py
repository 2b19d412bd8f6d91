"""Repairing PDFs that PDFium refuses, with qpdf. Runs in a decoding process only, which bounds its time and memory."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pikepdf

from pagemill.errors import CorruptInputError, EncryptedError, TooLargeError
from pagemill.imaging.page import PdfRepair

_FREE_BYTES = 64 * 2**20
_GROWTH = 2
"""A copy has at most so many times the bytes of its original, beyond ``_FREE_BYTES``. qpdf copies streams as they are,
so that a sound copy is about as large as its original."""


_MAX_PAGES = 2**20
"""More pages than any document has; PDFium takes larger numbers for nonsense, too."""
_LOST_PAGE = "Pages tree includes non-dictionary object"
"""What qpdf says of each entry of the page tree that is no page."""


def repair_pdf(path: Path, target: Path, password: str | None) -> PdfRepair:
    """Write a copy of a PDF that qpdf has put right: cross-reference table, page tree, encryption taken off.

    Args:
        path: The PDF.
        target: Where the copy goes, which need not be whole after an error.
        password: Password of the PDF; where it is not the right one, or None, the empty one is tried.

    Raises:
        CorruptInputError: qpdf cannot repair it, or finds no page.
        EncryptedError: A password is needed, or the one given is wrong.
        TooLargeError: The copy would be much larger than the original.
    """
    try:
        # Attributes that pages inherit stay where they are: to push them down would walk the page tree, loops included.
        try:
            pdf = pikepdf.open(path, password=password or "", inherit_page_attributes=False)
        except pikepdf.PasswordError:
            if not password:
                raise
            pdf = pikepdf.open(path, inherit_page_attributes=False)
        with pdf:
            count = pdf.Root.Pages.get("/Count")
            loops, lost = clean_tree(pdf)
            pages, taken_out = walk_pages(pdf)
            lost += taken_out
            if not pages:
                raise CorruptInputError("qpdf finds no page in it")
            with _limited_file_size(_FREE_BYTES + _GROWTH * path.stat().st_size), target.open("wb") as file:
                pdf.save(file)
    except pikepdf.PasswordError as error:
        raise EncryptedError("its password is not known") from error
    except OSError as error:
        raise TooLargeError(f"the repaired copy cannot be written: {error.strerror or error}") from error
    except (pikepdf.PdfError, ValueError, TypeError, AttributeError, KeyError) as error:
        # pikepdf raises Python's own errors for objects of other types than the format wants
        raise CorruptInputError(f"qpdf cannot repair it: {_without_place(error, path)}") from error
    return PdfRepair(
        program=f"qpdf {pikepdf.__libqpdf_version__}",
        loops=loops,
        announced=max(pages + lost, count if isinstance(count, int) and count <= _MAX_PAGES else 0),
    )


def walk_pages(pdf: Any) -> tuple[int, int]:
    """Walk the page tree of a document, which repairs it: pages that are there, and entries known to be none.

    Where qpdf has rebuilt the cross-reference table, it has taken these out on the way, and corrected the page count.
    """
    try:
        pages = len(pdf.pages)
    except pikepdf.exceptions.QpdfRuntimeError:  # it announces another number; the tree is repaired all the same
        pages = len(pdf.pages)
    return pages, sum(_LOST_PAGE in warning for warning in pdf.get_warnings())


def clean_tree(pdf: Any) -> tuple[bool, int]:
    """Take out of the page tree what leads back into it, as qpdf refuses such a tree whole, and what is no page.

    Returns:
        Whether something led back, and how many entries were no pages.
    """
    root = pdf.Root.Pages
    met = {root.objgen}
    nodes = [root]
    is_cut, lost = False, 0
    while nodes:
        kids = nodes.pop().get("/Kids")
        if not isinstance(kids, pikepdf.Array):
            continue
        for index in reversed(range(len(kids))):
            kid = kids[index]
            if not isinstance(kid, pikepdf.Dictionary):
                del kids[index]
                lost += 1
            elif "/Kids" not in kid:
                continue
            elif kid.is_indirect and kid.objgen in met:
                del kids[index]
                is_cut = True
            else:
                met.add(kid.objgen)
                nodes.append(kid)
    return is_cut, lost


@contextlib.contextmanager
def _limited_file_size(size: int) -> Iterator[None]:
    """Let this process write no larger file: an endless one fails with an OSError then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    allowed = size if hard == resource.RLIM_INFINITY else min(size, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _without_place(error: Exception, path: Path) -> str:
    return " ".join(str(error).replace(f"{path}: ", "").replace(str(path), "the file").split())[:200]
