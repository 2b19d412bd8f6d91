"""The invisible text of a PDF page: not displayed, but it can be searched, selected and copied.

Characters are drawn in the invisible mode with a font of empty glyphs, which is made here: no font file is needed.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator

import numpy as np
import pikepdf
from numpy.typing import NDArray
from pikepdf import Array, Dictionary, Name, Stream

from pagemill.document.direction import is_right_to_left
from pagemill.document.geometry import Box
from pagemill.document.page import TextLine, Word
from pagemill.export.placed_text import is_vertical, words_of

Affine = NDArray[np.float64]
"""An affine map, shape (2, 3)."""
Vector = NDArray[np.float64]
Frame = tuple[Vector, Vector, Vector]
"""Where the baseline of a word starts, and the vectors along it and up its height."""

_EM = 1000
_DESCENT = 0.2
"""Share of a line's height below its baseline, as in the font: what a viewer marks is the line."""
_CODES = 0xFFFF
"""Characters that a font can distinguish."""
_UNKNOWN = "\ufffd"
_STEEP = 0.8
"""Sine over cosine beyond which the box around a slanted word does not give its size."""
_STEEPEST_LEFTWARDS = 0.02
"""Slope at which PDFium takes the words of a line that runs from right to left for lines: they step by a quarter of an
em at that distance."""
_THIN = 0.1
"""Minimum width of a word over the height of its line."""
_TINY = 1e-6
_APART = 3
"""Heights of a line."""
_LEFT_TO_RIGHT = re.compile(r"([0-9A-Za-z\u0660-\u0669\u06f0-\u06f9](?:[^\W_]|[.,:/%-](?=[0-9A-Za-z]))*)")
"""Numbers and Latin letters, also within words that run from right to left."""
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_RANGE = 100
"""Maximum entries of one section of a character map, by its format."""


class InvisibleFont:
    """A font whose characters show nothing, each with its Unicode value."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def encoded(self, text: str) -> str:
        """The codes of a text as hexadecimal digits."""
        return "".join(f"{self._code(character):04X}" for character in text)

    def width(self, text: str) -> float:
        """Width of a text over the font size; East Asian characters are as wide as high, all others half of it."""
        return sum(map(_width, text)) / _EM

    def _code(self, character: str) -> int:
        if character not in self._codes and len(self._codes) >= _CODES - 1:
            character = _UNKNOWN  # a document of untrusted origin; no script has as many
        return self._codes.setdefault(character, len(self._codes) + 1)

    def write(self, pdf: pikepdf.Pdf, font: pikepdf.Object) -> None:
        """Fill an object of a document with the font, once all text has been encoded."""
        program = _font_program()
        glyphs = [0, *(1 if _width(character) < _EM else 2 for character in self._codes)]
        descriptor = Dictionary(
            Type=Name.FontDescriptor,
            FontName=Name.GlyphlessFont,
            Flags=5,  # fixed pitch, symbolic
            FontBBox=Array([0, -_EM * _DESCENT, _EM, _EM * (1 - _DESCENT)]),
            ItalicAngle=0,
            Ascent=_EM * (1 - _DESCENT),
            Descent=-_EM * _DESCENT,
            CapHeight=_EM * (1 - _DESCENT),
            StemV=80,
            FontFile2=Stream(pdf, program, Length1=len(program)),
        )
        wide = [[code, Array([_EM])] for character, code in self._codes.items() if _width(character) == _EM]
        descendant = Dictionary(
            Type=Name.Font,
            Subtype=Name.CIDFontType2,
            BaseFont=Name.GlyphlessFont,
            CIDSystemInfo=Dictionary(Registry=b"Adobe", Ordering=b"Identity", Supplement=0),
            FontDescriptor=pdf.make_indirect(descriptor),
            DW=_EM // 2,
            W=Array(item for pair in wide for item in pair),
            CIDToGIDMap=Stream(pdf, struct.pack(f">{len(glyphs)}H", *glyphs)),
        )
        font.update(
            Dictionary(
                Type=Name.Font,
                Subtype=Name.Type0,
                BaseFont=Name.GlyphlessFont,
                Encoding=Name("/Identity-H"),
                DescendantFonts=Array([pdf.make_indirect(descendant)]),
                ToUnicode=Stream(pdf, character_map({code: text for text, code in self._codes.items()}, digits=4)),
            )
        )


def _width(character: str) -> int:
    import unicodedata

    return _EM if unicodedata.east_asian_width(character) in "WF" else _EM // 2


def character_map(unicode: dict[int, str], *, digits: int) -> bytes:
    """Maps to the Unicode values of the codes of a font (a ToUnicode CMap).

    Args:
        unicode: Value by code.
        digits: Hexadecimal digits of a code, 2 or 4.
    """
    entries = [
        f"<{code:0{digits}X}> <{text.encode('utf-16-be').hex().upper()}>" for code, text in sorted(unicode.items())
    ]
    sections = [entries[start : start + _RANGE] for start in range(0, len(entries), _RANGE)]
    lines = [
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def",
        "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
        f"1 begincodespacerange <{'0' * digits}> <{'F' * digits}> endcodespacerange",
        *("\n".join([f"{len(section)} beginbfchar", *section, "endbfchar"]) for section in sections),
        "endcmap CMapName currentdict /CMap defineresource pop end end",
    ]
    return "\n".join(lines).encode("ascii")


def _font_program() -> bytes:
    """A TrueType font without a shape: some viewers refuse a font that is not in the file.

    Glyph 1 is half as wide as high, glyph 2 as wide. Each is a line between two corners, which has no area but the
    extent by which programs mark it; PDFium leaves out text without extent.
    """
    bottom, top = int(-_EM * _DESCENT), int(_EM * (1 - _DESCENT))
    glyphs = [
        struct.pack(">hhhhhHHBBhhhh", 1, 0, bottom, width, top, 1, 0, 1, 1, 0, width, bottom, top - bottom)
        for width in (_EM // 2, _EM)
    ]
    size = len(glyphs[0]) // 2  # places are counted in pairs of bytes
    tables = {
        b"head": struct.pack(
            *(">IIIIHHQQhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, _EM, 0, 0),
            *(0, bottom, _EM, top, 0, 8, 2, 0, 0),
        ),
        b"hhea": struct.pack(">IhhhHhhhhhhhhhhhH", 0x10000, top, bottom, 0, _EM, 0, 0, _EM, 1, *[0] * 7, 3),
        b"hmtx": struct.pack(">HhHhHh", _EM // 2, 0, _EM // 2, 0, _EM, 0),
        b"loca": struct.pack(">4H", 0, 0, size, 2 * size),
        b"maxp": struct.pack(">I14H", 0x10000, 3, 2, 1, 0, 0, 1, *[0] * 8),
        b"glyf": b"".join(glyphs),
    }
    directory, body = struct.pack(">IHHHH", 0x10000, len(tables), 64, 2, 16 * len(tables) - 64), b""
    start = len(directory) + 16 * len(tables)
    for tag, data in sorted(tables.items()):
        # Tables begin at multiples of four bytes, and their checksums count whole words.
        padded = data + bytes(-len(data) % 4)
        total = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        directory += tag + struct.pack(">III", total, start + len(body), len(data))
        body += padded
    return directory + body


def text_content(lines: Iterable[TextLine], there: Affine, font: InvisibleFont, name: str, *, turned: bool) -> bytes:
    """The content of a page that writes lines invisibly, in their order.

    Args:
        lines: Boxes and polygons in pixels of the page image.
        there: From these to points of the page.
        font: Its codes are used.
        name: Name of the font on the page.
        turned: The page image was turned, so that lines that are level on it are not on the page.
    """
    parts = ["q BT 3 Tr"]
    for line in lines:
        words = list(words_of(line))
        along, down, corners = _axes(line)
        steepest = _STEEPEST_LEFTWARDS if is_right_to_left(line.text) else 1.0
        askew = turned or abs(along[1]) > steepest * abs(along[0])
        if askew:  # programs put the words of such a line in another order
            text = "".join(f"{word.text} " if spaced else word.text for word, spaced in words)
            frames = [(corners[3] - down * _DESCENT, along, -down)]
            words = [(Word(text, line.box), False)] if text else []
        else:
            frames = [_frame(word.box, line, along, down, corners) for word, _ in words]
        for (word, spaced), frame, follower in zip(words, frames, [*frames[1:], None], strict=False):
            step = (follower[0] - frame[0]) @ along if spaced and follower else 0.0
            parts.extend(_word(word.text, step, frame, there, font, name))
        if askew or line.polygon is not None:
            # PDFium sorts words by x as long as each is about as high as the last one, which the first word of the
            # next line may be where lines fall or stand: a space below the last one ends the line.
            for _, (start, _, up) in list(zip(words, frames, strict=False))[-1:]:
                x, y = there[:, :2] @ start + there[:, 2] - _APART * math.hypot(*(there[:, :2] @ up))
                parts.append(f"/{name} 1 Tf 100 Tz 1 0 0 1 {x:.2f} {y:.2f} Tm <{font.encoded(' ')}> Tj")
    return "\n".join([*parts, "ET Q\n"]).encode("ascii")


def _word(text: str, step: float, frame: Frame, there: Affine, font: InvisibleFont, name: str) -> Iterator[str]:
    """Write a word, and a space on the side of the next one: behind it, before it, or none, by ``step``."""
    start, along, up = frame
    start = there[:, :2] @ start + there[:, 2]
    along, up = there[:, :2] @ along, there[:, :2] @ up
    length, size = math.hypot(*along), math.hypot(*up)
    # A word without extent would divide by zero; it cannot be marked anyway.
    if not (length > 0 and size > 0):
        return
    (a, b), (c, d) = along / length, up / size
    stretch = length / (font.width(text) * size)
    shown = _as_shown(text) if is_right_to_left(text) else text
    shown = f"{shown} " if step > 0 else f" {shown}" if step < 0 else shown
    x, y = start - along / length * (stretch * size * font.width(" ") * (step < 0))
    yield f"/{name} {size:.2f} Tf {100 * stretch:.1f} Tz {a:.4f} {b:.4f} {c:.4f} {d:.4f} {x:.2f} {y:.2f} Tm"
    yield f"<{font.encoded(shown)}> Tj"


def _as_shown(text: str) -> str:
    """A right-to-left word in visual order, which text extraction reverses."""
    runs = _LEFT_TO_RIGHT.split(text)
    runs[::2] = [run[::-1].translate(_MIRRORED) for run in runs[::2]]
    return "".join(reversed(runs))


def _axes(line: TextLine) -> Frame:
    """The vectors along a line and down its height, and its corners, clockwise from where it starts."""
    x1, y1, x2, y2 = line.box
    corners = np.array(line.polygon or ((x1, y1), (x2, y1), (x2, y2), (x1, y2)), dtype=np.float64)
    if not (math.dist(*corners[:2]) > 0 and math.dist(corners[0], corners[3]) > 0):  # else its text would be lost
        x2, y2 = max(x2, x1 + 1), max(y2, y1 + 1)
        corners = np.array(((x1, y1), (x2, y1), (x2, y2), (x1, y2)), dtype=np.float64)
    if is_vertical(line):  # as text that was turned clockwise
        corners = np.roll(corners, -1, axis=0)
    return corners[1] - corners[0], corners[3] - corners[0], corners


def _frame(box: Box, line: TextLine, along: Vector, down: Vector, corners: Vector) -> Frame:
    """The position of a word: on the baseline of a level line, or at its own middle in a slanted one."""
    height = math.hypot(*down)
    along, down = along / max(math.hypot(*along), _TINY), down / max(height, _TINY)
    x1, y1, x2, y2 = box
    middle = np.array([(x1 + x2) / 2, (y1 + y2) / 2])
    width, own = x2 - x1, height
    cos, sin = abs(along)
    if line.polygon is None:  # its words may be lower or higher than it
        middle = middle + down * float((corners[0] + down * height / 2 - middle) @ down)
    elif sin <= _STEEP * cos:  # undo that the box is around a slanted word
        width, own = np.array([width * cos - (y2 - y1) * sin, (y2 - y1) * cos - width * sin]) / (cos**2 - sin**2)
    width, own = max(width, _THIN * height), min(max(own, height / 2), height)
    return middle - along * width / 2 + down * own * (0.5 - _DESCENT), along * width, -down * own
