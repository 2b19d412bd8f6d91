"""Rich text (RTF): a stream of groups, control words and characters, each with the state of its group.

The libraries for RTF give its text alone, without cells, notes, fonts or what is cut off, so the tokens are our own.
Specification: Rich Text Format 1.9.1, https://www.microsoft.com/en-us/download/details.aspx?id=10725
"""

from __future__ import annotations

import copy
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import msgspec

from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo, Furniture, Mark
from pagemill.document.shown import count
from pagemill.errors import CorruptInputError, TooLargeError
from pagemill.readers.base import (
    Block,
    Document,
    Inline,
    Marks,
    Nesting,
    Picture,
    cell,
    displayed,
    heading,
    in_parts,
    list_item,
    tables,
    unread,
)
from pagemill.readers.fields import field_link, field_text
from pagemill.readers.omml import latex_of_omml
from pagemill.readers.text import MOST_BYTES
from pagemill.tables.table import Cell

_TOKEN = re.compile(
    rb"\\([A-Za-z]+)(-?\d{1,10})? ?|\\'([0-9A-Fa-f]{2})|\\(.)|([{}])|([^\\{}\r\n]+)|[\r\n]+|\\", re.DOTALL
)
_WORD, _NUMBER, _HEX, _SIGN, _BRACE, _TEXT = range(1, 7)
"""Groups of a token."""
_FROM_HTML = re.compile(rb"\\fromhtml1(?![0-9])")
_HEAD = 1_024
"""Bytes in which a rich text says that it holds HTML: within its first ten words."""
_NEVER_WRITTEN = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f]")
"""Bytes that no program writes outside of binary data; some end the file with zeros."""
_NO_HEX = re.compile("[^0-9A-Fa-f]+")
_CONTROLS = dict.fromkeys(each for each in range(32) if chr(each) not in "\t\n")
_SYMBOL = re.compile(r'\s*SYMBOL\s+(?:0x([0-9A-Fa-f]{1,5})|(\d{1,6}))(?:.*\\f\s*"?([^"\\]*))?')
_HEADING = re.compile(r"(?:.* )?heading ([1-9])", re.IGNORECASE)
_CODE_PAGES = {0: 1252, 77: 10000, 128: 932, 129: 949, 130: 1361, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258}
_CODE_PAGES |= {177: 1255, 178: 1256, 186: 1257, 204: 1251, 222: 874, 238: 1250, 254: 437, 255: 437}
"""By the number of a font's character set."""
_SYMBOLS = 2
"""The character set of fonts of symbols."""
_SYMBOL_FONTS = ("symbol", "wingdings", "webdings")
"""Starts of names of such fonts."""
_MAC = 10000
_KNOWN = {437, 720, 737, 775, 850, 852, *range(855, 859), *range(860, 867), 869, 874, *range(1250, 1259), 65001}
_KNOWN |= set(_CODE_PAGES.values())
_PAGES = {"mac": _MAC, "pc": 437, "pca": 850}
_CHARACTERS = {"tab": "\t", "emdash": "—", "endash": "–", "bullet": "•", "lquote": "‘", "rquote": "’", "line": "\n"}
_CHARACTERS |= {"ldblquote": "“", "rdblquote": "”", "emspace": "\u2003", "enspace": "\u2002", "qmspace": "\u2005"}
_CHARACTERS |= {"zwj": "\u200d", "zwnj": "\u200c", "softline": "\n"}
_CHARACTERS |= {f"p{base}tabq{side}": "\t" for base in ("mar", "ind") for side in "lcr"}
_SIGNS = {"~": "\u00a0", "_": "\u2011", "\\": "\\", "{": "{", "}": "}", "\t": "\t"}
_BULLETS = {0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢", 0xF0FC: "✓", 0xF0FB: "✗", 0xF0FD: "☒", 0xF0FE: "☑"}
_BULLETS |= dict.fromkeys((0xF06F, 0xF071, 0xF072, 0xF0A8), "☐")
"""What fonts of symbols have beyond ASCII, by their private characters."""
_GREEK = {
    0xF000 + code: sign
    for code, sign in zip(b"\xa3\xb0\xb1\xb3\xb4\xb8\xb9\xbb\xa5\xae\xd6", "≤°±≥×÷≠≈∞→√", strict=True)
}
_GREEK |= {
    base + ord(letter): sign
    for letter, sign in zip("abgdezhqiklmnxoprstufcywGDQLXPSUFYW", "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ", strict=True)
    for base in (0, 0xF000)
}
"""What the font Symbol has in their places."""
_MARKS = {"b": Mark.BOLD, "i": Mark.ITALIC, "strike": Mark.STRIKE, "striked": Mark.STRIKE}
_MARKS |= {"super": Mark.SUPERSCRIPT, "sub": Mark.SUBSCRIPT}
_STORIES = {
    **dict.fromkeys(("header", "headerl", "headerr", "headerf"), Label.HEADER),
    **dict.fromkeys(("footer", "footerl", "footerr", "footerf"), Label.FOOTER),
    **dict.fromkeys(("shptxt", "dptxbxtext"), Label.TEXT),
    "footnote": Label.FOOTNOTE,
    "annotation": Label.ASIDE_TEXT,
}
"""Texts beside the main text."""
_KINDS = {
    word: kind
    for kind, words in (
        ("format", "plain nosupersub pard v deleted mvf intbl itap li uc s outlinelevel f deff fcharset cpg ansicpg"),
        ("format", "mac pc pca"),
        ("begin", "field fldrslt upr ud moMath nestrow chftn object"),
        # Text that says something of the document:
        ("catch", "info title author creatim revtim fonttbl stylesheet fldinst listtext pntext pict atnauthor"),
        ("catch", "sp sn sv picprop formfield ffl nesttableprops"),
        # Groups that are read though programs may ignore them:
        ("through", "shppict shpinst do moMathPara"),
        # What is shown nowhere, or is there once more:
        ("skip", "colortbl filetbl listpicture nonesttables nonshppict shprslt xe rxe tc tcn mmathPict moMathParaPr"),
        ("skip", "objdata objclass objname objtime datafield bkmkstart bkmkend atnid atndate atnref ffname ffdeftext"),
        ("skip", "ffformat ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn"),
    )
    for word in words.split()
}
_TIME = {"yr": "{:04}", "mo": "-{:02}", "dy": "-{:02}", "hr": "T{:02}", "min": ":{:02}"}
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_LOOKS = {
    "scr": ("roman", "script", "fraktur", "double-struck", "sans-serif", "monospace"),
    "sty": ("p", "b", "i", "bi"),
}
_TEXT_LEVEL = 9
"""The outline level of what is not a heading."""
_BY_DEFAULT = 25
"""The result of a form field that nobody has changed."""
_MOST_DEPTH = 10_000
"""Groups inside of each other; each takes some 200 bytes."""
_MOST_COLUMNS = 1_000
_LONGEST_NAME = 200
_LONGEST_FIELD = 4_000
_LONGEST_FORMULA = 10_000
"""Elements and characters."""
_SAME_EDGE = 40
"""Twentieths of a point by which edges of cells may differ that are one: 0.7 mm. Not measured."""


def read(path: Path, password: str | None = None) -> Document:
    """Read a rich text."""
    # One byte over the limit, so that of_bytes refuses a file that is too large.
    with path.open("rb") as file:
        return of_bytes(file.read(MOST_BYTES + 1))


def of_bytes(data: bytes) -> Document:
    """The document of a rich text.

    Raises:
        PagemillError: It is too large, or no rich text.
    """
    if len(data) > MOST_BYTES:
        raise TooLargeError(f"rich text of over {MOST_BYTES // 2**20} MB", remedy="Save it as .docx.")
    if not data.lstrip().startswith(b"{\\rtf"):
        raise CorruptInputError("the file is not RTF", remedy="Save it as RTF, or give it another suffix.")
    return _Reader(data).read()


def markup_of(data: bytes) -> str:
    """The HTML from which Outlook made a rich text that holds it; empty for another one.

    Specification: https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxrtfex
    """
    if _FROM_HTML.search(data[:_HEAD]) is None:
        return ""
    reader = _Markup(data)
    reader.scan()
    return "".join(reader.pieces)


class _Edge(msgspec.Struct, frozen=True):
    """The right edge of a cell, and whether the cell is one with that before or above it."""

    at: int
    is_wide: bool
    is_high: bool


class _Row(msgspec.Struct):
    """The properties of a row. They hold for the next rows, until a new definition resets them."""

    left: int = 0
    edges: list[_Edge] = []
    is_head: bool = False


@dataclass(slots=True)
class _Cell:
    text: Inline
    row: int
    column: int
    rows: int
    columns: int
    is_head: bool


@dataclass(slots=True)
class _Story:
    """A text: that of the document, of a header, of a note."""

    label: Label | None = None
    blocks: list[Block] = field(default_factory=list)
    inline: Inline = field(default_factory=Inline)
    deleted: Inline = field(default_factory=Inline)
    marker: str = ""
    formulas: list[str] = field(default_factory=list)
    beside: list[Block] = field(default_factory=list)
    """Pictures, notes and boxes of the paragraph or table."""
    lines: list[Inline] = field(default_factory=list)
    """Paragraphs of the cell."""
    nested: list[str] = field(default_factory=list)
    """Cells of the row of a table in the cell."""
    inner: list[str] = field(default_factory=list)
    """Paragraphs of the cell of that row."""
    cells: list[Inline] = field(default_factory=list)
    rows: list[tuple[_Row, list[Inline]]] = field(default_factory=list)


class _State(msgspec.Struct):
    """State until the end of a group."""

    story: _Story
    to: str = ""
    """Target of text: the story, or a capture."""
    caught: list[str] = []
    field: list[str] = []
    """Instruction of the field around it."""
    node: Element | None = None
    """The element of a formula that is open."""
    is_fresh: bool = True
    """No control word came yet."""
    font: int = 0
    fallback: int = 1
    """Characters after one in Unicode that replace it in old programs."""
    marks: Marks = ()
    is_hidden: bool = False
    is_deleted: bool = False
    tables: int = 0
    """Tables around the paragraph."""
    style: int | None = None
    level: int = _TEXT_LEVEL
    indent: int = 0
    is_tag: bool = False
    """In a tag of the HTML that the text was made from."""
    is_twin: bool = False
    """Text for programs that do not read the HTML."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._state = _State(_Story())
        self._stack: list[_State] = []
        self._bytes = bytearray()
        self._to_skip = self._high = self._default_font = self._font = self._style = 0
        self._page = "cp1252"
        self._pages: dict[int, str] = {}
        """Code pages of fonts."""
        self._names: dict[tuple[str, int], str] = {}
        """Names of fonts and styles."""
        self._outlines: dict[int, int] = {}
        """Levels of styles, from 0."""
        self._headings: list[Block] = []
        self._has_title = False
        self._row = _Row()
        self._merged: set[str] = set()
        """How the next cell is merged."""
        self._form: dict[str, int] = {}
        self._entries: list[str] = []
        self._nesting = Nesting()
        """Depth of the items of the list."""
        self._time: dict[str, int] = {}
        self._info: dict[str, str] = {}
        self._binary = b""
        self._values: dict[str, str] = {}
        """Author of a comment, name of a property of a shape, properties of shapes."""
        self._running: list[Block] = []
        self._heard: set[str | None] = set()
        """Texts of headers and footers."""
        self._lost: Counter[str] = Counter()
        """What is not read, by its noun."""
        self._note = self._undecoded = self._formula = 0
        self._was_hidden = self._is_star = self._goes_on = self._in_picture = False

    def scan(self) -> None:
        """Read all tokens."""
        start: int | None = 0
        while start is not None:
            start = self._scan(start)
        self._decode()

    def _scan(self, start: int) -> int | None:
        """Read tokens up to binary data; returns its end, or None. Most words only set the style, and are quick."""
        data = self._data
        for token in _TOKEN.finditer(data, start):
            kind, state = token.lastindex, self._state
            if kind in (_WORD, _NUMBER):
                # Most words are unknown, and matter only after \*, where they begin a group to skip, and in formulas,
                # where they are elements.
                if (word := _WORDS.get(token[_WORD])) is None and not self._is_star and state.node is None:
                    state.is_fresh = False
                    continue
                if self._bytes:
                    self._decode()
                word = word or token[_WORD].decode()
                number = int(token[_NUMBER]) if kind == _NUMBER else None
                if word == "bin":
                    # Binary data may hold braces and backslashes: the scan continues behind it.
                    end = token.end() + max(number or 0, 0)
                    self._binary = data[token.end() : end]
                    return end
                # \ud is inside of a group that is skipped (\upr), and holds the text that is wanted.
                if state.to != "skip" or word == "ud":
                    self._word(word, number)
            elif kind in (_TEXT, _HEX):
                text = token[_TEXT] if kind == _TEXT else bytes.fromhex(token[_HEX].decode())
                if self._to_skip:
                    skipped = min(self._to_skip, len(text))
                    self._to_skip -= skipped
                    text = text[skipped:]
                if state.to != "skip":
                    # Not decoded yet: a character of a double-byte code page may be two tokens, as in \'b0\'a1.
                    self._bytes += text
            elif kind is not None:
                if self._bytes:
                    self._decode()
                if kind == _BRACE:
                    self._to_skip = 0
                    self._open() if token[_BRACE] == b"{" else self._close()
                else:
                    self._sign(token[_SIGN].decode("latin-1"))
        return None

    def read(self) -> Document:
        """The document."""
        self.scan()
        is_open = bool(self._stack)
        while self._stack:
            self._close()
        self._finish(self._state)
        for each in self._headings:
            # Only now it is known whether a title takes level 1.
            each.level = min((each.level or 2) - (not self._has_title), 6)
            each.label = Label.DOC_TITLE if each.level == 1 else each.label
        parts = list(in_parts([*self._running, *self._state.story.blocks]))
        parts[0].notes += unread(self._lost)
        parts[0].warnings += [f"{count(self._undecoded, 'character')} cannot be decoded"] if self._undecoded else []
        # Binary data holds any byte, so damage is not detected where there is some.
        if b"\\bin" not in self._data and (odd := len(_NEVER_WRITTEN.findall(self._data.rstrip(b"\0\r\n\x1a ")))):
            parts[0].warnings.append(f"the file is damaged: {count(odd, 'control character')}")
        parts[0].warnings += ["the file is cut off"] if is_open else []
        parts[0].warnings += ["text follows the end of the document; it is read, too"] if self._goes_on else []
        return Document(parts=parts, info=msgspec.convert(self._info, DocumentInfo))

    def _open(self) -> None:
        # Without a limit, a file of braces alone would take 200 times its size of memory.
        if len(self._stack) >= _MOST_DEPTH:
            raise TooLargeError("its groups are nested too deep", remedy="Save it again.")
        self._goes_on |= not self._stack and bool(self._state.story.blocks)
        self._stack.append(self._state)
        # A group inherits everything and gives nothing back. The copy is shallow: its text goes into the same story.
        self._state = copy.copy(self._state)
        self._state.is_fresh, self._is_star = True, False

    def _close(self) -> None:
        self._append("")
        old = self._state
        if not self._stack:
            self._goes_on = True
            return
        self._state = state = self._stack.pop()
        # By identity: what was caught in this group has its own list; groups inside share it.
        if old.caught is not state.caught:
            self._catch(old, "".join(old.caught).strip())
        if old.field is not state.field:
            self._append(self._field_text("".join(old.field)))
        if old.story is not state.story:
            self._end_story(old, state.story)
        elif not self._stack:
            self._finish(old)

    def _sign(self, sign: str) -> None:
        if sign == "*":
            self._is_star = True
        # A backslash before the end of a line is \par, by the specification.
        elif sign in "\r\n":
            self._word("par", None)
        elif self._to_skip and sign in _SIGNS:
            self._to_skip -= 1
        elif sign in _SIGNS and self._state.to != "skip":
            self._append(_SIGNS[sign])

    def _word(self, word: str, number: int | None) -> None:
        state, is_star, is_fresh = self._state, self._is_star, self._state.is_fresh
        state.is_fresh = self._is_star = False
        if state.node is not None and word[0] == "m" and len(word) > 1:
            self._math(state, word[1:], number, is_fresh)
        elif word == "u":
            self._unicode(state, number or 0)
        elif word in _CHARACTERS:
            if self._to_skip and word not in ("tab", "line"):
                self._to_skip -= 1
            else:
                self._append(_CHARACTERS[word])
        elif word in _ENDS:
            self._append("")
            if not state.to:
                _ENDS[word](self, state)
        elif word in _MARKS:
            state.marks = _marked(state.marks, _MARKS[word], number != 0)
        elif (kind := _KINDS.get(word)) == "format":
            self._format(state, word, 1 if number is None else number)
        elif kind == "begin":
            self._begin(state, word)
        elif word in _STORIES:
            # A footnote is written inside of the paragraph that refers to it, but does not inherit its looks.
            state.story, state.to, state.marks = _Story(_STORIES[word]), "", ()
            state.is_hidden = state.is_deleted = False
            self._format(state, "pard", 0)
        elif kind == "catch":
            state.to, state.caught = word, []
            self._time, self._binary = {}, b""
            if word == "formfield":
                self._form, self._entries = {}, []
            elif word == "pict":
                self._values.pop("wzDescription", None)
                self._in_picture = True
        elif kind == "skip" or (is_star and kind != "through"):
            state.to = "skip"
        elif word in _TIME:
            self._time[word] = number or 0
        elif word in ("fftype", "ffres", "ffdefres"):
            self._form[word] = number or 0
        elif not state.to:
            self._shape_row(word, number or 0)

    def _format(self, state: _State, word: str, number: int) -> None:
        """Style of a text or paragraph, or of an entry in the tables of fonts and styles."""
        match word:
            case "plain":
                state.font, state.is_hidden, state.is_deleted = self._default_font, False, False
                # A link belongs to the field around the text, not to its font: \plain does not end it.
                state.marks = tuple(mark for mark in state.marks if mark[0] is Mark.LINK)
            case "nosupersub":
                state.marks = _marked(_marked(state.marks, Mark.SUPERSCRIPT, False), Mark.SUBSCRIPT, False)
            case "pard":
                state.style, state.level, state.tables, state.indent = None, _TEXT_LEVEL, 0, 0
            case "v":
                state.is_hidden = number != 0
            case "deleted" | "mvf":
                state.is_deleted = number != 0
            case "intbl" | "itap":
                state.tables = number
            case "li":
                state.indent = number
            case "uc":
                state.fallback = max(number, 0)
            case "s" if state.to == "stylesheet":
                self._style = number
            case "s":
                state.style = number
            case "outlinelevel" if state.to == "stylesheet":
                self._outlines[self._style] = number
            case "outlinelevel":
                state.level = number
            case "f" if state.to == "fonttbl":
                self._font = number
            case "f":
                state.font = number
            case "deff":
                self._default_font = state.font = number
            case "fcharset":
                self._pages[self._font] = "symbols" if number == _SYMBOLS else _page(_CODE_PAGES.get(number))
            case "cpg":
                self._pages[self._font] = _page(number)
            case _:
                self._page = _page(_PAGES.get(word, number)) or self._page

    def _begin(self, state: _State, word: str) -> None:
        """Destinations: they start with a control word, and end with its group."""
        match word:
            case "field":
                state.field = []
            case "fldrslt":
                instruction = "".join(state.field)
                own = tuple(mark for mark in state.marks if mark[0] is not Mark.LINK)
                state.marks = (*own, *field_link(instruction))
                # A field whose instruction holds its text shows that when it ends: the result would be a copy.
                state.to = "skip" if self._field_text(instruction) else state.to
            case "upr":  # the same text in Unicode follows
                state.to = "skip"
            case "ud":
                state.to = self._stack[-2].to if len(self._stack) > 1 else ""
            case "moMath":
                state.to, state.caught = "skip" if state.to else "math", []
                state.node = None if state.to == "skip" else Element(f"{_MATH}oMath")
                self._formula = 0
            case "object":
                self._lost["embedded object"] += 1
            case "nestrow":
                self._end_nested_row(state)
            case "chftn" if not state.to:
                self._note += state.story.label is not Label.FOOTNOTE
                marks, state.marks = state.marks, _marked(state.marks, Mark.SUPERSCRIPT, True)
                self._append(str(self._note))
                state.marks = marks

    def _shape_row(self, word: str, number: int) -> None:
        match word:
            case "trowd":
                self._row, self._merged = _Row(), set()
            case "trleft":
                self._row.left = number
            case "trhdr":
                self._row.is_head = True
            case "clmrg" | "clvmrg":
                self._merged.add(word)
            case "cellx" if len(self._row.edges) < _MOST_COLUMNS:
                self._row.edges.append(_Edge(number, "clmrg" in self._merged, "clvmrg" in self._merged))
                self._merged = set()

    def _math(self, state: _State, name: str, number: int | None, is_fresh: bool) -> None:
        """A control word of a formula: an element of OMML for its group, or the look of its characters."""
        node = state.node
        assert node is not None
        self._formula += 1
        if self._formula > _LONGEST_FORMULA:
            return
        if is_fresh:
            state.node = SubElement(node, _MATH + name)
        elif node.tag == f"{_MATH}r":
            looks, properties = _LOOKS.get(name, ()), node.find(f"{_MATH}rPr")
            each = SubElement(SubElement(node, f"{_MATH}rPr") if properties is None else properties, _MATH + name)
            each.set(f"{_MATH}val", looks[number] if number is not None and 0 <= number < len(looks) else "")

    def _unicode(self, state: _State, code: int) -> None:
        # After \u come as many characters (\uc) for programs that do not know Unicode; they would repeat the text.
        self._to_skip = state.fallback
        # The number is a signed 16-bit one: characters from U+8000 on are written as negative numbers.
        code = code & 0xFFFF if code < 0x10000 else min(code, 0x10FFFF)
        # Characters beyond 16 bits are two words, a surrogate each; the first one waits in `_high` for the second.
        if 0xDC00 <= code < 0xE000:
            code = 0x10000 + (self._high - 0xD800 << 10) + code - 0xDC00 if self._high else 0xFFFD
            self._high = 0
        if 0xD800 <= code < 0xDC00:
            self._append("")
            self._high = code
        else:
            self._append(_of_symbols(chr(code), self._font_name()) if 0xF020 <= code <= 0xF0FF else chr(code))

    def _decode(self) -> None:
        if not self._bytes:
            return
        raw, self._bytes = bytes(self._bytes), bytearray()
        # Bytes are in the code page of their font: one paragraph may mix several. The document's own is the fallback.
        page = self._pages.get(self._state.font) or self._page
        if page == "symbols":
            self._append(_of_symbols((chr(code if code < 0x80 else 0xF000 + code) for code in raw), self._font_name()))
        else:
            self._append(raw.decode(page, "replace"))

    def _font_name(self) -> str:
        return self._names.get(("fonttbl", self._state.font), "").rstrip(";").strip()

    def _field_text(self, instruction: str) -> str:
        """Text of a field from its instruction, if it has no result."""
        if (symbol := _SYMBOL.match(instruction)) is None:
            return field_text(instruction)
        code = int(symbol[1] or symbol[2], 16 if symbol[1] else 10)
        font = (symbol[3] or "").strip() or self._font_name()
        if font.lower().startswith(_SYMBOL_FONTS) and code < 0x100:
            return _of_symbols(chr(0xF000 + code), font)
        if code < 0x100:
            return bytes([code]).decode("cp1252", "replace")
        return "\ufffd" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)

    def _append(self, text: str) -> None:
        state = self._state
        if self._high:
            self._high, text = 0, f"\ufffd{text}"
        if self._stack and state.to in ("", "math"):
            self._undecoded += text.count("\ufffd") + text.count("\0")
        text = text.translate(_CONTROLS)
        if not text:
            return
        self._goes_on |= not self._stack and bool(text.strip())
        if state.to in ("fonttbl", "stylesheet"):
            key = state.to, self._font if state.to == "fonttbl" else self._style
            self._names[key] = (self._names.get(key, "") + text)[:_LONGEST_NAME]
        elif state.node is not None:
            self._formula += len(text)
            if self._formula > _LONGEST_FORMULA:
                return
            if state.node.tag == f"{_MATH}r":
                SubElement(state.node, f"{_MATH}t").text = text
            else:
                state.node.set(f"{_MATH}val", (state.node.get(f"{_MATH}val") or "") + text.strip())
        elif state.to:
            state.caught.append(text)
        else:
            self._write(state, text)

    def _write(self, state: _State, text: str) -> None:
        self._lost["hidden run"] += state.is_hidden and not self._was_hidden
        self._was_hidden = state.is_hidden
        if state.is_deleted and not state.is_hidden:
            state.story.deleted.add(text, [(Mark.STRIKE, None)])
        elif not state.is_hidden:
            state.story.inline.add(text, state.marks)

    def _catch(self, old: _State, text: str) -> None:
        """The captured text of a group that ends."""
        state, kind = self._state, old.to
        self._in_picture &= kind != "pict"
        if kind in ("title", "author"):
            self._info[kind] = text
        elif kind in ("creatim", "revtim") and self._time.get("yr"):
            shown = "".join(form.format(self._time[each]) for each, form in _TIME.items() if each in self._time)
            self._info["created" if kind == "creatim" else "modified"] = shown
        elif kind == "fldinst":
            state.field += [] if state.field else [text[:_LONGEST_FIELD]]
        elif kind in ("listtext", "pntext"):
            state.story.marker = text
        elif kind in ("atnauthor", "sn"):
            self._values[kind] = text
        elif kind == "sv":
            name = self._values.get("sn", "")
            self._values[name] = text
            last = state.story.beside[-1] if state.story.beside else None
            if name == "wzDescription" and last and last.picture and not self._in_picture:
                last.picture = msgspec.structs.replace(last.picture, alternative=text)
            state.story.beside += Inline(text if name == "gtextUNICODE" else "").blocks()
        elif kind == "pict" and state.to not in ("listtext", "pntext"):
            # Hexadecimal digits are broken into lines. An odd last one means that the file was cut off.
            digits = _NO_HEX.sub("", text)
            data = self._binary or bytes.fromhex(digits[: len(digits) // 2 * 2])
            picture = Picture(data, self._values.get("wzDescription", ""))
            state.story.beside.append(Block(label=Label.IMAGE, picture=picture))
        elif kind == "ffl":
            self._entries.append(text)
        elif kind == "formfield":
            self._show_field(state)
        elif kind == "math" and old.node is not None:
            latex = latex_of_omml(old.node).strip() if self._formula <= _LONGEST_FORMULA else ""
            self._lost["formula"] += not latex
            if latex:
                state.story.inline.formula(latex)
                state.story.formulas.append(latex)

    def _show_field(self, state: _State) -> None:
        """A check box, or the entry of a list that is chosen; other fields have a result."""
        chosen = self._form.get("ffres", _BY_DEFAULT)
        chosen = self._form.get("ffdefres", 0) if chosen == _BY_DEFAULT else chosen
        kind = self._form.get("fftype")
        entry = self._entries[chosen] if 0 <= chosen < len(self._entries) else ""
        state.story.inline.add({1: "☒" if chosen else "☐", 2: entry}.get(kind or 0, ""), state.marks)

    def _level(self, state: _State) -> int | None:
        """The level of a heading: 1 for the title, others are below it; :meth:`read` lifts them where there is none."""
        key = "stylesheet", -1 if state.style is None else state.style
        name = self._names.get(key, "").partition(";")[0].strip().lower()
        if name == "title":
            self._has_title = True
            return 1
        named = _HEADING.fullmatch(name)
        level = int(named[1]) - 1 if named else min(state.level, self._outlines.get(key[1], _TEXT_LEVEL))
        return level + 2 if 0 <= level < _TEXT_LEVEL else None

    def _end_paragraph(self, state: _State) -> None:
        story = state.story
        story.beside += story.deleted.blocks(label=Label.ASIDE_TEXT)
        story.deleted = Inline()
        if state.tables:
            if state.tables == 1:
                self._end_line(state)
            else:
                story.inner.append(_taken(story).text.strip())
            return
        inline, marker, formulas = story.inline, story.marker, story.formulas
        story.inline, story.marker, story.formulas = Inline(), "", []
        self._end_table(state)
        text = inline.text.strip()
        level = self._level(state) if text else None
        if alone := displayed(text, formulas):
            blocks = alone
        elif level is not None:
            blocks = heading(inline.behind(f"{marker} " if marker.strip("•▪") else ""), level)
            for block in blocks:
                block.level = level  # until it is known whether there is a title
            self._headings += blocks
        elif marker and text:
            blocks = list_item(inline, self._nesting.depth(state.indent), marker)
        else:
            blocks = inline.blocks()
            if text:
                self._nesting.end()
        story.blocks += [*blocks, *story.beside]
        story.beside = []

    def _end_line(self, state: _State) -> None:
        """End a paragraph of a cell."""
        line = _taken(state.story)
        state.story.lines += [line] if line.text.strip() else []

    def _end_cell(self, state: _State) -> None:
        self._end_nested_row(state)
        self._end_line(state)
        text, lines = Inline(), state.story.lines
        for line in lines:
            text.add_line(line)
        state.story.lines = []
        state.story.cells.append(text)

    def _end_nested_cell(self, state: _State) -> None:
        story = state.story
        story.nested.append("\n".join(filter(None, (*story.inner, _taken(story).text.strip()))))
        story.inner = []

    def _end_nested_row(self, state: _State) -> None:
        story = state.story
        if story.inner:  # of a cell that has no end
            self._end_nested_cell(state)
        story.lines += [Inline("\t".join(story.nested))] if story.nested else []
        story.nested = []

    def _end_row(self, state: _State) -> None:
        story = state.story
        # A row may end without the \cell of its last cell.
        if story.inline.text.strip() or story.lines or story.nested or story.inner:
            self._end_cell(state)
        story.inline = Inline()
        story.rows += [(self._row, story.cells)] if story.cells else []
        story.cells = []

    def _end_table(self, state: _State) -> None:
        story = state.story
        self._end_row(state)
        if story.rows:
            story.blocks += [*tables([*_grid(story.rows)]), *story.beside]
            story.rows, story.beside = [], []

    def _finish(self, state: _State) -> None:
        """End what is open in a story."""
        self._end_paragraph(state)
        self._end_table(state)
        state.story.blocks += state.story.beside
        state.story.beside = []

    def _end_story(self, old: _State, parent: _Story) -> None:
        self._finish(old)
        # `beside` is the list itself, which grows at the end: what goes there follows the paragraph around the story.
        label, beside = old.story.label or Label.TEXT, parent.beside
        author = self._values.pop("atnauthor", "") if label is Label.ASIDE_TEXT else ""
        text, others = Inline(f"{author}: " if author else ""), list[Block]()
        for each in old.story.blocks:
            # A header, footer or note becomes one block, of a paragraph a line; a text box keeps its blocks.
            if label is not Label.TEXT and each.label in (Label.TEXT, Label.DOC_TITLE, Label.PARAGRAPH_TITLE):
                text.add("\n" if text.last not in ("", " ") else "")
                text.extend(Inline.of(each))
            else:
                others.append(each)
        is_running = label in (Label.HEADER, Label.FOOTER)
        blocks = text.blocks(label=label, furniture=Furniture.PROVEN if is_running else None)
        if is_running:
            # Headers come once per section and kind of page, mostly with the same text: one of each is kept.
            beside = self._running
            blocks = [block for block in blocks if block.content not in self._heard]
            self._heard.add(text.text.strip())
        beside += [*blocks, *others]


class _Markup(_Reader):
    """Takes out the HTML: its tags are in groups of their own, its text is that of the document."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.pieces: list[str] = []

    def _word(self, word: str, number: int | None) -> None:
        if word == "htmltag":
            self._state.is_tag, self._is_star = True, False
        elif word == "htmlrtf":
            self._state.is_twin = number != 0
        elif word == "par":
            self._append("\n")
        else:
            super()._word(word, number)

    def _write(self, state: _State, text: str) -> None:
        if state.is_tag or not state.is_twin:
            self.pieces.append(text if state.is_tag else escape(text, quote=False))


def _taken(story: _Story) -> Inline:
    """The paragraph of a cell that ends, with its marker."""
    line = story.inline.behind(f"{story.marker} " if story.marker else "")
    story.inline, story.marker = Inline(), ""
    return line


def _of_symbols(characters: Iterable[str], font: str) -> str:
    """Characters of a font of symbols as Unicode has them; others stay."""
    signs = _BULLETS | (_GREEK if font.lower() == "symbol" else {})
    return "".join(
        signs.get(ord(character), "•" if "\uf020" <= character <= "\uf0ff" else character) for character in characters
    )


def _marked(marks: Marks, mark: Mark, is_on: bool) -> Marks:
    return (*(each for each in marks if each[0] is not mark), *(((mark, None),) if is_on else ()))


def _page(number: int | None) -> str:
    """The name of a code page; empty where there is none."""
    return "mac_roman" if number == _MAC else f"cp{number}" if number in _KNOWN else ""


def _grid(rows: list[tuple[_Row, list[Inline]]]) -> Iterator[Cell]:
    """The cells of a table, in the columns that the edges of all rows make together."""
    columns: list[int] = []
    distinct = {id(row): row for row, _ in rows}.values()
    # Each row has its own edges, in twentieths of a point, and programs round them differently: edges within 0.7 mm are
    # one. Rows share a definition until the next \trowd, so each definition is looked at once.
    for at in sorted({at for row in distinct for at in (row.left, *(edge.at for edge in row.edges))}):
        columns += [at] if not columns or at - columns[-1] > _SAME_EDGE else []
    columns = columns if len(columns) <= _MOST_COLUMNS else []
    cells: list[_Cell] = []
    above: dict[int, _Cell] = {}
    for number, (row, texts) in enumerate(rows):
        left, column, last = row.left, 0, None
        for at, text in enumerate(texts):
            if at >= len(row.edges) > 0 and not text.last:  # LibreOffice ends more cells than there are
                continue
            edge = row.edges[at] if at < len(row.edges) else _Edge(left, False, False)
            # Every cell gets a column of its own, also where edges run backwards in a damaged file.
            start = max(column, bisect_right(columns, left) - 1)
            column, left = max(bisect_right(columns, edge.at) - 1, start + 1), edge.at
            up = above.get(start)
            if edge.is_wide and last is not None:
                last.columns += column - start
            elif edge.is_high and up is not None and up.row + up.rows == number:
                up.rows += 1
                last = None
            else:
                above[start] = last = _Cell(Inline(), number, start, 1, column - start, row.is_head)
                cells.append(last)
            if text.last:
                (last or up or cells[-1]).text.add_line(text)
    return (cell(each.text, each.row, each.column, each.rows, each.columns, header=each.is_head) for each in cells)


def _break_page(reader: _Reader, state: _State) -> None:
    state.story.inline.add("\n" if state.story.inline.last else "")


_ENDS: dict[str, Callable[[_Reader, _State], None]] = {
    **dict.fromkeys(("par", "sect"), _Reader._end_paragraph),
    "cell": _Reader._end_cell,
    "nestcell": _Reader._end_nested_cell,
    "row": _Reader._end_row,
    **dict.fromkeys(("page", "column"), _break_page),
}
"""What ends with a word."""
_WORDS = {
    word.encode(): word
    for word in (*_CHARACTERS, *_ENDS, *_MARKS, *_KINDS, *_STORIES, *_TIME, "fftype", "ffres", "ffdefres", "u", "bin")
}
_WORDS |= {
    word.encode(): word for word in ("trowd", "trleft", "trhdr", "clmrg", "clvmrg", "cellx", "htmltag", "htmlrtf")
}
"""Words with a meaning outside of formulas and of groups that begin with \\*. Others are skipped."""
