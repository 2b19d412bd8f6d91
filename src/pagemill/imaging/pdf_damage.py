"""What PDFium does not say: pages and files that it leaves out, content that it draws only in part, units, portfolios.

Runs in a decoding process only, as the rest of what touches a PDF.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pikepdf

from pagemill.imaging.pdf_repair import clean_tree, walk_pages
from pagemill.imaging.stream_check import (
    FLATE,
    Budget,
    Coded,
    DamagedStreamError,
    UncheckedError,
    check_inline_images,
    decoded,
    short_inflated,
)
from pagemill.late import re

_CHUNK = 2**20
_FOLLOWED = frozenset(
    {
        *("/SMask", "/Mask", "/JBIG2Globals", "/DecodeParms", "/ColorSpace", "/Function", "/Functions", "/Shading"),
        *("/G", "/TR", "/ExtGState", "/FontDescriptor", "/FontFile", "/FontFile2", "/FontFile3", "/ToUnicode"),
        *("/Encoding", "/UseCMap", "/DescendantFonts", "/CIDToGIDMap", "/N"),
    }
)
"""Entries of what is drawn that can lead to more of it; others lead to the next page, to metadata, or to numbers."""
_CATEGORIES = frozenset({"/XObject", "/Font", "/Pattern", "/Shading", "/ExtGState", "/ColorSpace"})
"""Categories of resources."""
_MAX_DEPTH = 40
"""Objects within objects that are followed; PDFium draws no more forms within forms."""
_MAX_ITEMS = 64
"""Items of an array that are followed: colour spaces and functions have a few."""
_MAX_CHECKED = 2**18
"""Objects whose soundness is remembered; as many take 50 MB."""
_MAX_ANNOTATIONS = 10_000
_NAME = re.compile(rb"/([^\s/<>\[\](){}%]+)")
_ESCAPED = re.compile(rb"#([0-9a-fA-F]{2})")
_HIDDEN = 2 | 32
"""Flags of annotations that are not shown."""
_DAMAGE = re.compile(r"file is damaged|\(object \d+ \d+, offset \d+\)")
"""In warnings of qpdf about the file and its objects; others are about entries of a page that may be left out."""
_HEADER = b"%PDF-"
_NEXT_FILE = re.compile(rb"%%EOF(?:(?!obj)[\s\S]){0,1024}?%PDF-\d")
"""The end of a PDF and the start of another one behind it. An update in place and an embedded PDF are in objects."""
_NEXT_FILE_BYTES = 2048
"""Longer than what that expression matches."""

_OBJECT_STREAM = re.compile(rb"/(?:ObjStm|XRef)(?![a-zA-Z])")
_OBJECT = re.compile(rb"(?<!\d)(\d{1,10})\s+(\d{1,5})\s+obj(?![a-z])")
_OBJECT_BYTES = 1024
"""From the number of an object stream to its type, which is among the first entries. Not measured."""
_START, _END = b"startxref", b"%%EOF"
_MAX_UNIT = 75_000.0
"""The largest unit that Acrobat knows; larger ones are taken for damage."""


class PdfDamage:
    """Looks for damage in a PDF with qpdf. Not thread-safe.

    What qpdf sees otherwise than PDFium is not looked at: there is nothing to compare. A file that it does not open is
    damaged.
    """

    def __init__(self, path: Path, password: str | None) -> None:
        self.pages = 0
        """Pages that qpdf finds; 0 where it cannot tell."""
        self.lost_pages = 0
        """Pages that the page tree names besides, and that are not there."""
        self._path = path
        self._pdf: Any = None
        self._sound: dict[tuple[int, int], bool] = {}
        self._frames: dict[int, tuple[float, float, float, float, int]] = {}
        self._is_refused = False
        """qpdf cannot open the file, although no password is missing."""
        self._is_damaged = False
        """qpdf has found fault with the file, as far as it has read it."""
        try:
            self._pdf = pikepdf.open(
                path,
                password=password or "",
                inherit_page_attributes=False,
                access_mode=pikepdf.AccessMode.stream,
                suppress_warnings=True,
            )
            _, lost = clean_tree(self._pdf)
            self.pages, taken_out = walk_pages(self._pdf)
            self.lost_pages = lost + taken_out
        except pikepdf.PdfError:  # of 1,702 PDFs that PDFium opens, qpdf refuses none that is sound
            self._is_refused = True
        except Exception:  # pikepdf passes on whatever C++ throws; PDFium reads the file all the same
            return

    def of_page(self, index: int, *, is_empty: bool) -> str | None:
        """What of a page cannot be read to its end; None where nothing is wrong.

        Args:
            index: Index of the page, from 0.
            is_empty: PDFium finds nothing that the page draws. Where an object is not at its place in the file, qpdf
                looks for it elsewhere, and PDFium takes it for one that does not exist.

        Raises:
            UncheckedError: The page is too large to be checked whole; what was checked is sound.
        """
        if self._is_refused:
            return "the structure of the file is damaged: text may be wrong or missing"
        if index >= self.pages:
            return None
        if self._file.breaks_off:
            return "the file breaks off behind its last whole state, which is read: what was changed last is missing"
        if self._lacks_objects:
            return "objects of the file are damaged: text may be wrong or missing"
        page = self._pdf.pages[index].obj
        budget = Budget()
        resources = _inherited(page, "/Resources")
        contents = page.as_dict().get("/Contents", ())  # None for one that is named and does not exist
        names: set[str] = set()
        for stream in contents if isinstance(contents, pikepdf.Array) else [contents] if contents != () else ():
            if not self._is_whole_stream(stream, budget, names):
                return "the page's content is damaged or missing: text may be missing"
        if not self._are_whole(resources, names, budget, 0):
            return "an image, a font or a form on the page is damaged: a part of it may be missing"
        if not self._are_annotations_whole(page, budget):
            return "an annotation on the page is damaged: a part of it may be missing"
        self._is_damaged = self._is_damaged or any(map(_DAMAGE.search, self._pdf.get_warnings()))
        if is_empty and self._is_damaged:
            return "the page is empty, and objects of the file are damaged or misplaced: its content may be missing"
        return None

    def user_unit(self, index: int) -> float:
        """Points of a unit of a page (``/UserUnit``), of which PDFium knows nothing; 1 where it cannot be told."""
        unit = self._pdf.pages[index].obj.get("/UserUnit") if index < self.pages else None
        # A unit may not be smaller than a point, says the format.
        return float(unit) if isinstance(unit, int | float | Decimal) and 1 < unit < _MAX_UNIT else 1.0

    def thousandths_from_top(self, index: int, x: float | None, y: float | None) -> int | None:
        """How far down a page, as displayed, a place of its page space is, in thousandths of its height.

        Args:
            index: Index of the page, from 0.
            x: x of the place, where known.
            y: y of the place, where known.
        """
        if index >= self.pages:
            return None
        if index not in self._frames:
            self._frames[index] = _frame(self._pdf.pages[index])
        left, bottom, right, top, turn = self._frames[index]
        off, extent = {
            0: (y and top - y, top - bottom),
            90: (x and x - left, right - left),
            180: (y and y - bottom, top - bottom),
            270: (x and right - x, right - left),
        }[turn]
        if off is None or not extent > 0:
            return None
        return round(1000 * min(max(off / extent, 0.0), 1.0))

    @property
    def has_labels(self) -> bool:
        """Whether pages have labels of their own."""
        return self.pages > 0 and "/PageLabels" in self._pdf.Root

    @property
    def is_portfolio(self) -> bool:
        """Whether the document is a cover of the files attached to it."""
        return self.pages > 0 and "/Collection" in self._pdf.Root

    @property
    def may_have_layers(self) -> bool:
        """Whether parts of the pages may be switched off, as optional content is."""
        return self.pages == 0 or "/OCProperties" in self._pdf.Root

    @property
    def is_joined(self) -> bool:
        """Whether the file is several PDFs, one behind the other, of which readers see one."""
        return self._file.is_joined

    @cached_property
    def _file(self) -> _FileScan:
        return _scanned(self._path)

    @cached_property
    def _lacks_objects(self) -> bool:
        """Whether a stream that holds objects, or says where they are, is damaged."""
        budget = Budget()
        for number in self._file.object_streams:
            stream = self._pdf.get_object(number)
            entries: Any = stream.stream_dict.as_dict() if isinstance(stream, pikepdf.Stream) else {}
            if entries.get("/Type") in ("/ObjStm", "/XRef"):
                try:
                    decoded(Coded.of(entries, stream.read_raw_bytes(), is_image=False), budget)
                except (DamagedStreamError, pikepdf.PdfError):
                    return True
                except UncheckedError:
                    return False
        return False

    def close(self) -> None:
        """Close the file."""
        if self._pdf is not None:
            self._pdf.close()

    def _are_whole(self, resources: Any, names: set[str], budget: Budget, depth: int) -> bool:
        """Whether the resources of these names, and all that they draw, can be decoded."""
        if not isinstance(resources, pikepdf.Dictionary):
            return True
        for category, named in resources.as_dict().items():
            if category in _CATEGORIES and isinstance(named, pikepdf.Dictionary):
                entries = named.as_dict()
                used = names.intersection(entries.keys())
                if not all(self._is_whole(entries[name], resources, budget, depth + 1) for name in used):
                    return False
        return True

    def _is_whole(self, value: Any, resources: Any, budget: Budget, depth: int) -> bool:
        """Whether an object, and all that it draws, can be decoded; None is one that does not exist.

        Args:
            value: The object.
            resources: Resources of what draws it; a form need not have its own.
            budget: Budget of the page.
            depth: Objects that it is within.
        """
        if value is None:
            return False
        if depth > _MAX_DEPTH or not isinstance(value, pikepdf.Object):
            return True
        if isinstance(value, pikepdf.Array):
            items = (item for item in islice(value, _MAX_ITEMS) if item is not None)
            return all(self._is_whole(item, resources, budget, depth + 1) for item in items)
        if not isinstance(value, pikepdf.Dictionary | pikepdf.Stream):
            return True
        key = value.objgen
        if key != (0, 0):
            if key in self._sound:
                return self._sound[key]
            if len(self._sound) >= _MAX_CHECKED:
                self._sound.clear()
            self._sound[key] = True  # while it is looked at, for what leads back to it
        try:
            is_whole = self._draws_whole(value, resources, budget, depth)
        except BaseException:
            self._sound.pop(key, None)
            raise
        if key != (0, 0):
            self._sound[key] = is_whole
        return is_whole

    def _draws_whole(self, value: Any, resources: Any, budget: Budget, depth: int) -> bool:
        names: set[str] = set()
        is_stream = isinstance(value, pikepdf.Stream)
        entries = value.stream_dict.as_dict() if is_stream else value.as_dict()
        draws = "/PatternType" in entries or entries.get("/Subtype") == "/Form"
        if is_stream and not self._can_be_decoded(value, entries, budget, names if draws else None):
            return False
        own = entries.get("/Resources", resources)
        glyphs = entries.get("/CharProcs")
        if isinstance(glyphs, pikepdf.Dictionary):
            drawn = (glyph for glyph in glyphs.as_dict().values() if isinstance(glyph, pikepdf.Stream))
            if not all(self._can_be_decoded(each, None, budget, names) for each in drawn):
                return False
        if names and not self._are_whole(own, names, budget, depth):
            return False
        followed = (entries[name] for name in entries if name in _FOLLOWED)
        return all(self._is_whole(each, resources, budget, depth + 1) for each in followed if each is not None)

    def _are_annotations_whole(self, page: Any, budget: Budget) -> bool:
        """Whether the appearances of the annotations of a page can be decoded."""
        annotations = page.get("/Annots")
        if not isinstance(annotations, pikepdf.Array):
            return True
        for annotation in islice(annotations, _MAX_ANNOTATIONS):
            if not isinstance(annotation, pikepdf.Dictionary) or int(annotation.get("/F", 0)) & _HIDDEN:
                continue
            appearance = annotation.get("/AP")
            drawn = appearance.get("/N") if isinstance(appearance, pikepdf.Dictionary) else None
            # A check box has an appearance for each of its states, of which one is shown.
            if isinstance(drawn, pikepdf.Dictionary):  # by the state of the field
                drawn = drawn.get(str(annotation.get("/AS", "/Off")))
            if drawn is not None and not self._is_whole(drawn, None, budget, 0):
                return False
        return True

    def _is_whole_stream(self, stream: Any, budget: Budget, names: set[str] | None = None) -> bool:
        """Whether a stream is there and can be decoded to its end; ``names`` gets the names in one that draws."""
        if not isinstance(stream, pikepdf.Stream):
            return False
        return self._can_be_decoded(stream, stream.stream_dict.as_dict(), budget, names)

    @staticmethod
    def _can_be_decoded(stream: Any, entries: Any, budget: Budget, names: set[str] | None) -> bool:
        """The same of one that is there, with the entries of its dictionary; None for those of a glyph.

        A page can have hundreds of glyphs, and copying the entries of one takes longer than all else. The checksum of
        the usual one covers the pictures in it.
        """
        try:
            data = stream.read_raw_bytes()
            is_glyph = entries is None and stream.get("/Filter") == FLATE
            content = short_inflated(data, budget) if is_glyph else None
            has_checksum = content is not None
            if content is None:
                entries = stream.stream_dict.as_dict() if entries is None else entries
                content = decoded(Coded.of(entries, data, is_image=entries.get("/Subtype") == "/Image"), budget)
            if names is not None:
                if not has_checksum:
                    check_inline_images(content, budget)
                names.update(_names_in(content))
        except (DamagedStreamError, pikepdf.PdfError):
            return False
        return True


def _frame(page: Any) -> tuple[float, float, float, float, int]:
    """What is shown of a page (left, bottom, right, top), and the degrees by which it is turned clockwise."""
    try:
        x1, y1, x2, y2 = (float(value) for value in page.cropbox)
        turn = int(_inherited(page.obj, "/Rotate") or 0)
    except Exception:  # whatever is wrong with the boxes of a page that somebody links to: the place is not known
        return 0.0, 0.0, 0.0, 0.0, 0
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2), turn % 360 // 90 * 90


class _FileScan(NamedTuple):
    """What the bytes of a file show."""

    is_joined: bool
    breaks_off: bool
    """Objects follow the end of the last whole state of the file, and the end of these is missing."""
    object_streams: frozenset[tuple[int, int]]
    """Numbers of the streams with objects or places of objects."""


def _scanned(path: Path) -> _FileScan:
    is_joined, found = False, set()
    ended = started = -1
    before, offset = b"", 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            offset -= len(before)
            before += chunk
            is_joined = is_joined or (_HEADER in before and _NEXT_FILE.search(before) is not None)
            has_object_stream = b"/ObjStm" in before or b"/XRef" in before  # ten times as fast as the expression
            for match in _OBJECT_STREAM.finditer(before) if has_object_stream else ():
                # The type stands behind the number of its object, after whatever other entries the writer put first.
                numbers = list(_OBJECT.finditer(before, max(0, match.start() - _OBJECT_BYTES), match.start()))
                if numbers:
                    found.add((int(numbers[-1][1]), int(numbers[-1][2])))
            if (end := before.rfind(_END)) >= 0:
                ended = offset + end
            if (start := before.rfind(_START)) >= 0:
                started = offset + start
            offset += len(before)
            # What lies across the border of two chunks is found in the next one.
            before = before[-_NEXT_FILE_BYTES:]
        breaks_off = False
        if ended > started:
            file.seek(ended)
            breaks_off = _OBJECT.search(file.read(_CHUNK)) is not None
    return _FileScan(is_joined, breaks_off, frozenset(found))


def _names_in(content: bytes) -> Iterator[str]:
    """Names in a content stream: of the resources that it uses, and others."""
    for name in set(_NAME.findall(content)) if b"/" in content else ():
        plain = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), name) if b"#" in name else name
        yield "/" + plain.decode("utf-8", "surrogateescape")


def _inherited(page: Any, key: str) -> Any:
    """An entry of a page, or of the part of the page tree that it is in."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(page, pikepdf.Dictionary) or (value := page.get(key)) is not None:
            return value if isinstance(page, pikepdf.Dictionary) else None
        page = page.get("/Parent")
    return None
