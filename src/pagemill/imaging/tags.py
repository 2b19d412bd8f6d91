"""Marked content of a PDF page: artifacts, and the structure elements that its text is part of."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

_MAX_ELEMENTS, _MAX_DEPTH = 50_000, 64
"""Bounds of the structure tree of a page: a page of a table with 1,000 cells has 3,000 elements, 10 deep."""
_MAX_MARKS = 16
"""Marks around one object."""
_HEADINGS = frozenset({"Title", "H", *(f"H{level}" for level in range(1, 7))})
_SPECIFIC = frozenset(
    {"LI", "Lbl", "LBody", "TH", "TD", "Caption", "Code", "TOCI", "Note", "FENote", "BlockQuote", "Formula", "Figure"}
)
_NAME_BYTES = 64


class Content(NamedTuple):
    """What the marks around an object say."""

    artifact: bool = False
    mcid: int = -1
    """Id of marked content; -1 for none."""


NO_CONTENT = Content()


class Marks:
    """Reads the marks of page objects; objects of one sequence share theirs, which are read once."""

    def __init__(self) -> None:
        self._known: dict[int, Content] = {}
        self._name = ctypes.create_string_buffer(_NAME_BYTES)

    def of(self, handle: Any, around: Content) -> Content:
        """The marks of an object.

        Args:
            handle: The object.
            around: Those of the form that it is part of.
        """
        count = pdfium.FPDFPageObj_CountMarks(handle)
        content = around
        for index in range(min(count, _MAX_MARKS)):
            mark = pdfium.FPDFPageObj_GetMark(handle, index)
            address = ctypes.cast(mark, ctypes.c_void_p).value or 0
            own = self._known.get(address)
            if own is None:
                own = self._known[address] = self._read(mark)
            # The id around a form is of the page, whose structure tree is asked; ids within the form count from 0
            # again.
            mcid = own.mcid if own.mcid >= 0 and around.mcid < 0 else content.mcid
            content = Content(content.artifact or own.artifact, mcid)
        return content

    def _read(self, mark: Any) -> Content:
        size, value = ctypes.c_ulong(), ctypes.c_int()
        buffer = ctypes.cast(self._name, ctypes.POINTER(pdfium.FPDF_WCHAR))
        pdfium.FPDFPageObjMark_GetName(mark, buffer, _NAME_BYTES, size)
        name = self._name.raw[: min(size.value, _NAME_BYTES)].decode("utf-16-le", "replace").rstrip("\0")
        has_id = pdfium.FPDFPageObjMark_GetParamIntValue(mark, b"MCID", value)
        return Content(name == "Artifact", value.value if has_id else -1)


def tags_of(page: Any) -> dict[int, str]:
    """The standard structure type of marked content by its id; empty for an untagged page.

    What is inside of a list item, a cell, a caption or the like has that type, unless it is a heading.

    Args:
        page: Handle of the original page: a copy has no structure tree.
    """
    tree = pdfium.FPDF_StructTree_GetForPage(page)
    if not tree:
        return {}
    tags: dict[int, str] = {}
    try:
        count = min(pdfium.FPDF_StructTree_CountChildren(tree), _MAX_ELEMENTS)
        pending = [(pdfium.FPDF_StructTree_GetChildAtIndex(tree, i), "", 0) for i in range(count)]
        read = 0
        while pending and read < _MAX_ELEMENTS:
            element, above, depth = pending.pop()
            read += 1
            if not element:
                continue
            tag = _nearest(_type(element), above)
            for index in range(min(pdfium.FPDF_StructElement_CountChildren(element), _MAX_ELEMENTS)):
                child = pdfium.FPDF_StructElement_GetChildAtIndex(element, index)
                if child and depth < _MAX_DEPTH:
                    pending.append((child, tag, depth + 1))
                elif not child and (mcid := pdfium.FPDF_StructElement_GetChildMarkedContentID(element, index)) >= 0:
                    # A damaged tree names content twice: the first element keeps it.
                    tags.setdefault(mcid, tag)
    finally:
        pdfium.FPDF_StructTree_Close(tree)
    return {mcid: tag for mcid, tag in tags.items() if tag}


def _nearest(own: str, above: str) -> str:
    if own in _HEADINGS or own in _SPECIFIC:
        return own
    return above if above in _SPECIFIC or above in _HEADINGS or own != "P" else "P"


def _type(element: Any) -> str:
    """The type of an element, roles mapped."""
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    size = pdfium.FPDF_StructElement_GetType(element, buffer, _NAME_BYTES)
    return buffer.raw[: min(size, _NAME_BYTES)].decode("utf-16-le", "replace").rstrip("\0")
