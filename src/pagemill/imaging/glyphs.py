"""Glyphs as PDFium gives them, one by one: drawn twice, apart from their accents, turned round."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pagemill.imaging.types import Flags, Floats, Indices
from pagemill.late import re

_DUPLICATE = 0.12
"""Shift of a second drawing of the same glyph (fake bold, shadow), in units of the font size."""
_SLICE_TOLERANCE = 0.01
"""Most that equal slices of a box differ by rounding, in pixels."""
_ACCENTS = {ord(char): unicodedata.normalize("NFKD", char)[1] for char in "¨¯´¸˘˙˚˛˜˝"}
_ACCENTS |= {ord("ˆ"): "\u0302", ord("ˇ"): "\u030c"}  # which Unicode does not decompose
"""Spacing accents and the combining marks they stand for."""
_ALEFS = (0x622, 0x623, 0x625, 0x627)
_LAM = 0x644
_AFTER_LAM = (*_ALEFS, 0x649, 0x64A, 0x645, 0x62C, 0x62D, 0x62E)
"""Letters of ligatures that begin with a lam."""
_HALVES = re.compile("[\ud800-\udfff]{2}")
_DOTTED = {"\u0131": "i", "\u0237": "j"}


STYLE = np.dtype(
    [
        *(
            ("size", "f8"),
            ("angle", "i8"),
            ("bold", "?"),
            ("invisible", "?"),
            ("annotation", "?"),
            ("replacement", "?"),
        ),
        *(("face", "i4"), ("artifact", "?"), ("tag", "i4")),
    ]
)
"""What the glyphs of one text object share: the font size in pixels, 0 when unknown; the writing direction in degrees
clockwise from left-to-right, 0-359; whether an annotation draws them rather than the page itself; whether they are a
replacement text rather than the drawn letters; the number of their style on the page, of their tag; whether they are
an artifact."""


class Glyphs(msgspec.Struct, frozen=True):
    """n glyphs in content-stream order, as arrays."""

    codes: NDArray[np.uint32]
    """Unicode code points, shape (n,)."""
    boxes: Floats
    """Boxes in page pixels, shape (n, 4); empty for white space that PDFium made up."""
    origins: Floats
    """Pen positions on the baseline in page pixels, shape (n, 2)."""
    style: NDArray[np.int32]
    """Index into ``styles``, shape (n,)."""
    styles: NDArray[np.void]
    """Styles, of dtype ``STYLE``."""
    pieces: Indices | None = None
    """Numbers of the pieces of lines that were put in logical order, -1 elsewhere, shape (n,)."""

    def of(self, name: str) -> NDArray[Any]:
        """A field of the style of each glyph, shape (n,)."""
        field: NDArray[Any] = self.styles[name][self.style]
        return field

    @property
    def is_space(self) -> Flags:
        """Which glyphs are white space (or nothing at all)."""
        thin = (self.codes >= 0x2000) & (self.codes <= 0x200B)
        flags: Flags = (self.codes <= 0x20) | (self.codes == 0xA0) | (self.codes == 0x3000) | thin
        return flags

    @property
    def sizes(self) -> Floats:
        """Font sizes in pixels, shape (n,); the box height stands in where the font's own size makes no sense."""
        stated = self.of("size")
        width, height = (self.boxes[:, 2:] - self.boxes[:, :2]).T
        extent = np.where(is_level(self.of("angle")), height, width)
        # Type 3 fonts have coordinate systems of their own: trust the drawn height over the number. Low boxes are also
        # those of marks upon right-to-left letters, with the letters in the replacement text.
        low = (extent < 0.25 * stated) & ~is_right_to_left(self.codes)
        wrong = (extent > 0) & ((stated <= 0) | (extent > 4 * stated) | low)
        sizes: Floats = np.where(wrong, 0.8 * extent, stated)
        return np.maximum(sizes, 0.1)

    def select(self, keep: Flags | NDArray[np.int64]) -> Glyphs:
        """The glyphs where ``keep`` (shape (n,)) is true, or those with these indices."""
        pieces = None if self.pieces is None else self.pieces[keep]
        return Glyphs(self.codes[keep], self.boxes[keep], self.origins[keep], self.style[keep], self.styles, pieces)

    def repeated(self) -> Flags:
        """Which glyphs are a second drawing of the same character in the same place, shape (n,)."""
        flags = np.zeros(len(self.codes), dtype=bool)
        if len(self.codes) < 2:
            return flags
        size = self.sizes
        row = np.round(self.origins[:, 1] / np.maximum(size, 1.0) * 2)
        order = np.lexsort((self.origins[:, 0], row, self.codes))
        step = np.abs(np.diff(self.origins[order], axis=0)).max(axis=1)
        same = (np.diff(self.codes[order].astype(np.int64)) == 0) & (step < _DUPLICATE * size[order][1:])
        same &= ~self._drawn_at_once(order[:-1], order[1:])
        flags[order[1:]] = same & ~self.is_space[order[1:]]
        return flags

    def _drawn_at_once(self, first: Indices, second: Indices) -> Flags:
        """Whether pairs are of one replacement text or one ligature: ``ff`` is one glyph, and two characters."""
        ligature = (
            (np.abs(second - first) == 1)
            & (self.origins[first] == self.origins[second]).all(axis=1)
            & (self.boxes[first] == self.boxes[second]).all(axis=1)
        )
        flags: Flags = (self.style[first] == self.style[second]) & (ligature | self.of("replacement")[first])
        return flags


def with_spans_spread(glyphs: Glyphs, left: NDArray[np.float32]) -> Glyphs:
    """Place the characters of replacement texts (``/ActualText``) one after the other along the writing direction.

    PDFium cuts the box of the drawn text into equal slices from left to right, whichever way the text runs, gives all
    of them the pen position of the first, and puts right-to-left ones out of order. Glyphs at one pen position with
    boxes of equal size have the same box otherwise.

    Args:
        glyphs: Glyphs in the order of PDFium.
        left: Where each begins in page space, shape (n,).
    """
    boxes, origins, style = glyphs.boxes, glyphs.origins, glyphs.style
    extent = boxes[:, 2:] - boxes[:, :2]
    linked = (style[1:] == style[:-1]) & (origins[1:] == origins[:-1]).all(axis=1)
    linked &= (np.abs(np.diff(extent, axis=0)) < _SLICE_TOLERANCE).all(axis=1) & (left[1:] != left[:-1])
    if not linked.any():
        return glyphs
    begins = np.concatenate([[True], ~linked])
    start, span = np.flatnonzero(begins), np.cumsum(begins) - 1
    count = np.bincount(span)[span]
    order = np.lexsort((np.where(count > 1, left, 0.0), span))  # the slices are in reading order
    codes = glyphs.codes[order]
    # A ligature that PDFium has taken apart itself is in the order of the page; none reads the other way.
    turned = (count[:-1] == 2) & begins[:-1] & np.isin(codes[:-1], _AFTER_LAM) & (codes[1:] == _LAM)
    for i in np.flatnonzero(turned).tolist():
        codes[i], codes[i + 1] = codes[i + 1], codes[i]
    place = _places(codes, start, span)

    radians = np.radians(glyphs.of("angle").astype(np.float64))
    along = np.stack([np.cos(radians), np.sin(radians)], axis=1)
    low = np.minimum.reduceat(boxes[:, :2], start)[span]
    high = np.maximum.reduceat(boxes[:, 2:], start)[span]
    length = ((high - low) / np.maximum(np.abs(along), 1e-9)).min(axis=1)
    step = along * (length / count)[:, None]
    extent = high - low - np.abs(step) * (count - 1)[:, None]
    place = place[:, None]
    first = np.where(along >= 0, low, high - extent) + step * place
    # A letter and the marks upon it have one place.
    letters = np.array([unicodedata.category(chr(code)) != "Mn" for code in codes.tolist()])
    several = ((count > 1) & (np.add.reduceat(letters, start, dtype=np.int64) > 1)[span])[:, None]
    whole = np.concatenate([low, high], axis=1)
    boxes = np.where((count > 1)[:, None], whole, boxes)
    boxes = np.where(several, np.concatenate([first, first + extent], axis=1), boxes)
    origins = np.where(several, origins + step * place, origins)
    styles = glyphs.styles.copy()
    styles["replacement"][style[count > 1]] = True
    return Glyphs(codes, boxes, origins, style, styles)


def _places(codes: NDArray[np.uint32], start: Indices, span: Indices) -> Indices:
    """The place of each character in its span, from the left, of spans in reading order.

    In a span of right-to-left letters, figures and words of other letters go from left to right; and in others,
    right-to-left words from the right.
    """
    place = np.arange(len(span)) - start[span]
    rtl = is_right_to_left(codes)
    others = np.array([chr(code).isalpha() for code in codes.tolist()]) & ~rtl
    backwards = (np.add.reduceat(rtl.astype(np.int64) - others, start) > 0)[span]
    place = np.where(backwards, np.bincount(span)[span] - 1 - place, place)
    shown = np.array([not chr(code).isspace() for code in codes.tolist()])
    kind = np.where((backwards & ~rtl & shown) | (~backwards & rtl), span, -1)
    for run in np.split(np.arange(len(kind)), np.flatnonzero(np.diff(kind)) + 1):
        if kind[run[0]] >= 0:
            place[run] = place[run][::-1]
    return place


def with_accents(glyphs: Glyphs) -> Glyphs:
    """Put accents that were drawn as glyphs of their own (TeX) onto the letters they stand over.

    The letter is the one whose box holds the accent's middle; the pair becomes one composed character.
    """
    accents = np.flatnonzero(np.isin(glyphs.codes, list(_ACCENTS)))
    if not len(accents) or len(accents) > 0.2 * len(glyphs.codes):
        return glyphs
    codes, keep = glyphs.codes.copy(), np.ones(len(glyphs.codes), dtype=bool)
    middle = (glyphs.boxes[:, 0] + glyphs.boxes[:, 2]) / 2
    reach = 0.8 * glyphs.sizes
    for accent in accents.tolist():
        x, y = middle[accent], glyphs.origins[accent, 1]
        below = (glyphs.boxes[:, 0] < x) & (x < glyphs.boxes[:, 2]) & (np.abs(glyphs.origins[:, 1] - y) < reach)
        letters = [i for i in np.flatnonzero(below).tolist() if chr(codes[i]).isalpha()]
        for letter in sorted(letters, key=lambda i: abs(middle[i] - x) + abs(glyphs.origins[i, 1] - y)):
            base = _DOTTED.get(chr(codes[letter]), chr(codes[letter]))
            composed = unicodedata.normalize("NFC", base + _ACCENTS[int(codes[accent])])
            if len(composed) == 1:
                codes[letter], keep[accent] = ord(composed), False
                break
    return replace(glyphs, codes=codes).select(keep)


def spell_out(text: str) -> str:
    """Spell out ligatures and Arabic presentation forms, join doubled quotes, compose accents (NFC)."""
    if text.isascii():
        return text
    text = (
        valid_unicode(text).replace("\u2018\u2018", "\u201c").replace("\u2019\u2019", "\u201d")
    )  # how TeX sets double quotes
    spelled = "".join(
        unicodedata.normalize("NFKC", char) if "\ufb00" <= char <= "\ufdff" or "\ufe70" <= char <= "\ufefc" else char
        for char in text
    )
    return unicodedata.normalize("NFC", spelled)


def valid_unicode(text: str) -> str:
    """PDFium speaks UTF-16: join the halves of characters outside of the basic plane, replace halves on their own.

    It turns the halves round in right-to-left lines.
    """
    text = _HALVES.sub(lambda pair: "".join(sorted(pair[0])), text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def turned(points: Floats, angle: NDArray[np.int64]) -> Floats:
    """Turn points (n, 2) by minus their angle, so that writing runs along +x."""
    if not angle.any():
        return points
    radians = np.radians(-angle.astype(np.float64))
    cos, sin = np.cos(radians), np.sin(radians)
    return np.stack([points[:, 0] * cos - points[:, 1] * sin, points[:, 0] * sin + points[:, 1] * cos], axis=1)


def is_level(angle: NDArray[np.int64]) -> Flags:
    """Which writing directions run along the rows of the page rather than across them."""
    return (angle % 180 < 45) | (angle % 180 > 135)


def is_right_to_left(codes: NDArray[np.uint32]) -> Flags:
    """Which code points are Hebrew, Arabic or a sister script."""
    return (
        ((codes >= 0x590) & (codes < 0x900))
        | ((codes >= 0xFB1D) & (codes < 0xFDFF))
        | ((codes >= 0xFE70) & (codes < 0xFEFF))
    )
