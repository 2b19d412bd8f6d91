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
"""What qpdf says of each page that it takes out as its object is not there. Where it has rebuilt the cross-reference
table, it corrects the page count on the way, so that this tells how many there were."""


def repair_pdf(path: Path, target: Path, password: str | None) -> PdfRepair:
    """Write a copy of a PDF that qpdf has put right: cross-reference table, page tree, encryption taken off.

    Args:
        path: The PDF.
        target: Where the copy goes, which need not be whole after an error.
        password: Of the PDF; where it is not the right one, or None, the empty one is tried.

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
            loops = _cut_loops(pdf)
            pages = len(pdf.pages)  # walks the page tree, and repairs it
            if not pages:
                raise CorruptInputError("qpdf finds no page in it")
            lost = sum(_LOST_PAGE in warning for warning in pdf.get_warnings())
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


def _cut_loops(pdf: Any) -> bool:
    """Take out of the page tree what leads back into it; qpdf refuses such a tree whole."""
    root = pdf.Root.Pages
    met = {root.objgen}
    nodes = [root]
    is_cut = False
    while nodes:
        kids = nodes.pop().get("/Kids")
        if not isinstance(kids, pikepdf.Array):
            continue
        for index in reversed(range(len(kids))):
            kid = kids[index]
            if not isinstance(kid, pikepdf.Dictionary) or "/Kids" not in kid:
                continue
            if kid.is_indirect and kid.objgen in met:
                del kids[index]
                is_cut = True
            else:
                met.add(kid.objgen)
                nodes.append(kid)
    return is_cut


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
