"""Fonts that formulas are set in: which they are, and what their codes mean where a PDF does not say."""

from __future__ import annotations

from functools import lru_cache

from pagemill.late import re

_FONTS = 1024
"""Names whose meaning is kept: each text object asks, and a page has thousands of them and tens of fonts."""
_MATH = re.compile(
    r"^(?:CM(?:MI|SY|EX|MIB|BSY)|LM(?:Math|MI|SY|EX)|MS[AB]M|EU(?:FM|FB|RM|RB|SM|EX)|RSFS|MTMI|MTSY|MTEX|MTGU|MTSYN"
    r"|[pt]x(?:mi|sy|ex|b?mia|sya|syb)|rtx(?:mi|bmi)|Z?pzcmi|stix-math|MathJax_|KaTeX_|Cmex|Cmmi|Cmsy|esint|wasy|bbold"
    r"|dsrom|MnSymbol|NewTX(?:MI|sy)|ntx|XCharter-Math|fourier-m|zpl|zptm|AMS)"
    r"|math|Symbol(?:MT|Set)?$|^STIX.*(?:Int|Siz|Sym|Non|Var)|^STIXNonUnicode",
    re.IGNORECASE,
)
_EXTENSION = re.compile(r"^(?:CMEX|LMEX|LMMathExtension|Cmex|EUEX|[pt]xex)", re.IGNORECASE)
"""Fonts in TeX's OMX encoding: large operators and delimiters, and the pieces of larger ones."""
_SYMBOL = re.compile(r"^(?:CM(?:B?SY)|LMMathSymbols|Cmsy)", re.IGNORECASE)

PIECES = dict(zip(range(0xF8EB, 0xF8FF), map(ord, "⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪⎮⎞⎟⎠⎤⎥⎦⎫⎬⎭"), strict=True))
"""Pieces of large delimiters in Adobe's private area, which every producer uses alike."""
_OMX = dict(
    enumerate(
        "()[]⌊⌋⌈⌉{}⟨⟩|∥/\\()()[]⌊⌋⌈⌉{}⟨⟩/\\()[]⌊⌋⌈⌉{}⟨⟩/\\/\\⎛⎞⎡⎤⎣⎦⎢⎥⎧⎫⎩⎭⎨⎬⎪|"
        "⎝⎠⎜⎟⟨⟩⨆⨆∮∮⨀⨀⨁⨁⨂⨂∑∏∫⋃⋂⨄⋀⋁∑∏∫⋃⋂⨄⋀⋁∐∐\u0302\u0302\u0302\u0303\u0303\u0303[]⌊⌋⌈⌉{}√√√√⎷⎷⎷∥↑↓⏜⏜⏟⏟⇑⇓"
    )
)
_OMS = {0x36: "\u0338", 0x37: "↦"}
_DOUBLE_STRUCK = re.compile(r"^(?:MSBM|bbold|dsrom)|AMS-Regular$", re.IGNORECASE)
_CALLIGRAPHIC = re.compile(r"^(?:CMB?SY|LMMathSymbols|RSFS|EUS|txsy|pxsy|MTSY)|Calig|Script", re.IGNORECASE)
_FRAKTUR = re.compile(r"^EUF|Frak", re.IGNORECASE)
_BOLD = re.compile(r"^(?:CMBX|CMMIB|CMBSY|SFBX|LMRoman.*Bold|EURB)|bold|black|heavy", re.IGNORECASE)
_SANS = re.compile(r"^(?:CMSS|LMSans|SFSS)|Sans(?!.*Math)|Helvetica|Arial", re.IGNORECASE)
_ITALIC = re.compile(r"^(?:CMMI|CMTI|LMMathItalic|MTMI|[pt]xmi|rtxmi|NewTXMI)|ital|obli|slant|_Math", re.IGNORECASE)


def plain_name(name: str) -> str:
    """A font's name without the six letters of its subset."""
    return name[7:] if re.match(r"[A-Z]{6}\+", name) else name


@lru_cache(_FONTS)
def is_math(name: str) -> bool:
    """Whether formulas alone are set in a font of this name."""
    return _MATH.search(name) is not None


@lru_cache(_FONTS)
def is_extension(name: str) -> bool:
    """Whether a font holds large signs that hang below their baseline, as TeX's do."""
    return _EXTENSION.match(name) is not None


def meaning(name: str, code: int) -> str | None:
    """The character that a glyph of a TeX font shows, where its code is not the character's own."""
    if _EXTENSION.match(name):
        return _OMX.get(code)
    return _OMS.get(code) if _SYMBOL.match(name) else None


@lru_cache(_FONTS)
def style_of(name: str) -> str:
    """How the letters of a font look, as :attr:`pagemill.document.symbols.Symbol.style`."""
    for style, pattern in (
        ("d", _DOUBLE_STRUCK),
        ("c", _CALLIGRAPHIC),
        ("f", _FRAKTUR),
        ("b", _BOLD),
        ("i", _ITALIC),
        ("s", _SANS),
    ):
        if pattern.search(name):
            return style
    return "r"
