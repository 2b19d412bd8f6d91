"""The LaTeX of a formula as tokens, and as LaTeX that draws every token in a colour of its own.

Formulas are written by models and strangers. So nothing of theirs reaches TeX but letters, signs and the commands that
are known here, with the arguments that they take: no definition, file, loop or change of a character's meaning.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from pagemill.formulas.check import DELIMITERS, KNOWN, SIZES
from pagemill.formulas.signs import FUNCTIONS, latex_of, letter_of
from pagemill_eval.cdm.commands import (
    ALPHABETS,
    DISPLAYED,
    ENVIRONMENTS,
    FONTS,
    INFIX,
    REPEATED,
    SWITCHES,
    SYNONYMS,
    TEMPLATES,
    TEXTS,
    WITH_COLUMNS,
)

MAX_CHARACTERS = 20_000
MAX_TOKENS = 2_000
"""Tokens of a formula. A page of text has as many; matching takes time with the cube of their number."""
_DEEPEST = 60
_REPEATED = 12
"""Depth of what TeX sets up to four times to choose a size: five of them inside each other are 1,024 times the work."""

_WORD = re.compile(r"\\(?:[A-Za-z]+|.)|%[^\n]*\n?|\s+|.", re.DOTALL)
_NEGATED = re.compile(r"\\(neq?|notin)(?![A-Za-z])")
_SLASHED = {"ne": "=", "neq": "=", "notin": "\\in "}
_DELIMITED = re.compile(r"\s*(?:\$\$(.*)\$\$|\$(.*)\$|\\\[(.*)\\\]|\\\((.*)\\\))\s*", re.DOTALL)
_LENGTH = re.compile(r"\s*(?:-\s*)?\d{0,2}\.?\d{1,3}\s*(?:em|ex|pt|mm|cm|in)\s*")
_DIMENSIONS = frozenset(("\\hspace", "\\vspace", "\\kern", "\\mkern", "\\hskip", "\\mskip", "\\mspace"))
_MARK = re.compile(r"\\ON\{(\d+)\}")
_ON_BLACK, _OFF = "\\ON{0 0 0}", "\\OFF "
_SLOT = re.compile(r"(\[#\]|#|!)")
_ROW_ENDS = ("\\\\", "\\cr", "\\newline")
_ENDS = ("}", "&", "\\right", "\\end", "$", *_ROW_ENDS)
_SCRIPTS = ("^", "_", "'", "\\limits", "\\nolimits")
_SPECIAL = "#$&\\{}^_~%"
_IN_TEXT = {**{each: f"\\{each}" for each in "#&%_${}"}, "^": "\\^{}", **{each: f"${each}$" for each in "<>|*"}}


class FormulaError(Exception):
    """A formula that is not LaTeX, or not allowed in it, with the reason."""


class Token(NamedTuple):
    """A unit of drawing: a letter, a symbol, the bar of a fraction, a bracket."""

    name: str
    base: str
    """Equal among synonyms."""


class Formula(NamedTuple):
    """A formula that can be drawn."""

    tokens: tuple[Token, ...]
    """In the order of the source, subscripts before superscripts."""
    source: str
    """LaTeX for the middle of ``$\\displaystyle $``; ``\\ON{red green blue}`` and ``\\OFF`` put a colour on and off."""


def parse(latex: str) -> Formula:
    """Take a formula apart.

    Raises:
        FormulaError: It is not LaTeX, has unknown commands, or is too large.
    """
    if len(latex) > MAX_CHARACTERS:
        raise FormulaError(f"over {MAX_CHARACTERS:,} characters")
    if match := _DELIMITED.fullmatch(latex):
        latex = next(group for group in match.groups() if group is not None)
    reader = _Reader(latex)
    drawn = reader.rows(0, "")
    if reader.peek():
        raise FormulaError(f"{reader.peek()[:20]} without its beginning")
    order: list[Token] = []

    def coloured(match: re.Match[str]) -> str:
        order.append(reader.tokens[int(match[1])])
        red, green, blue = (part / 255 for part in len(order).to_bytes(3, "big"))
        return f"\\ON{{{red:.4f} {green:.4f} {blue:.4f}}}"

    source = _MARK.sub(coloured, drawn)
    return Formula(tuple(order), source)


class _Reader:
    """Reads words, and gives LaTeX with a mark for each token."""

    def __init__(self, latex: str) -> None:
        plain = "".join(map(_known_sign, unicodedata.normalize("NFC", latex)))
        self._words = _WORD.findall(_NEGATED.sub(lambda match: f"\\not {_SLASHED[match[1]]}", plain))
        self._place = 0
        self.tokens: list[Token] = []

    def peek(self) -> str:
        """The next word that is not white space or a comment; empty at the end."""
        while self._place < len(self._words) and (
            self._words[self._place][0] == "%" or self._words[self._place].isspace()
        ):
            self._place += 1
        return self._words[self._place] if self._place < len(self._words) else ""

    def _consume(self) -> str:
        word = self.peek()
        self._place += 1
        return word

    def _takes(self, word: str) -> bool:
        found = self.peek() == word
        self._place += found
        return found

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise FormulaError(f"{word} is missing")

    def _raw(self, closer: str = "}") -> str:
        """The source up to and including a closing bracket."""
        start, depth = self._place, 0
        while self._place < len(self._words):
            word = self._words[self._place]
            self._place += 1
            if word == closer and not depth:
                return "".join(self._words[start : self._place - 1])
            depth += (word == "{") - (word == "}")
        raise FormulaError(f"{closer} is missing")

    def _mark(self, symbol: str, font: str = "") -> str:
        if symbol == ".":
            return _ON_BLACK
        if len(self.tokens) == MAX_TOKENS:
            raise FormulaError(f"over {MAX_TOKENS:,} symbols")
        base = SYNONYMS.get(symbol, unicodedata.normalize("NFKC", symbol))
        self.tokens.append(Token(font + symbol, (font if font in ALPHABETS else "") + base))
        return f"\\ON{{{len(self.tokens) - 1}}}"

    def rows(self, depth: int, font: str, columns: str = "", style: str = "") -> str:
        """Rows and cells up to an end that is not taken; one row of one cell is itself."""
        rows: list[list[str]] = [[]]
        while True:
            rows[-1].append(self._sequence(depth, font))
            if (word := self.peek()) in _ROW_ENDS:
                self._consume()
                self._takes("*")
                if self._words[self._place : self._place + 1] == ["["]:  # a distance to the next row
                    self._raw("]")
                rows.append([])
            elif word == "&" and columns:
                self._consume()
            else:
                break
        if len(rows) > 1 and not "".join(rows[-1]).strip():
            rows.pop()
        if len(rows) == len(rows[0]) == 1:
            return style + rows[0][0]
        width = max(map(len, rows))
        columns = (columns + (columns[-2:] or "l") * width)[:width]
        content = "\\\\".join("{}" + "&".join(style + cell for cell in row) for row in rows)
        return f"\\begin{{array}}{{{columns}}}{content}\\end{{array}}"

    def _sequence(self, depth: int, font: str, closer: str = "") -> str:
        if depth > _DEEPEST:
            raise FormulaError("too deeply nested")
        parts: list[str] = []
        while (word := self.peek()) and word != closer and word not in _ENDS:
            if word in SWITCHES:
                self._consume()
                font = SWITCHES[word]
                parts.append(word + " ")
            elif word in INFIX:
                self._consume()
                above, below = "".join(parts), self._sequence(depth + 1, font, closer)
                mark = self._mark("." if word == "\\atop" else INFIX[word])
                return f"{mark}{INFIX[word]}{{{above}}}{{{below}}}{_OFF}"
            else:
                parts.append(self._atom(depth, font))
        return "".join(parts)

    def _atom(self, depth: int, font: str) -> str:
        """A nucleus with its scripts."""
        before, nucleus, after = ("", "{}", "") if self.peek() in _SCRIPTS[:3] else self._nucleus(depth, font)
        low = high = limits = ""
        while (word := self.peek()) in _SCRIPTS:
            self._consume()
            if word[0] == "\\":
                limits = word
            elif word == "'":
                high += f"{self._mark(word)}\\prime {_OFF}"
            elif (word == "_" and low) or (word == "^" and high.endswith("}")):
                raise FormulaError("double script")
            elif word == "_":
                low = f"_{{{self._argument(depth, font)}}}"
            else:
                high += f"{{{self._argument(depth, font)}}}"
        return f"{before}{nucleus}{limits}{low}" + (f"^{{{high}}}" if high else "") + after

    def _argument(self, depth: int, font: str) -> str:
        if self._takes("{"):
            return self._group(depth, font)
        if self.peek() in ("", "^", "_", *_ENDS):
            raise FormulaError("an argument is missing")
        return "".join(self._nucleus(depth + 1, font))

    def _group(self, depth: int, font: str) -> str:
        """The content of braces, after the opening one."""
        content = self.rows(depth + 1, font)
        self._expect("}")
        return content

    def _nucleus(self, depth: int, font: str) -> tuple[str, str, str]:
        """LaTeX before it, itself, and LaTeX after its scripts."""
        if depth > _DEEPEST:
            raise FormulaError("too deeply nested")
        word = self._consume()
        if word in ("\\operatorname", "\\mathrm") and (name := self._function()):
            word = f"\\{name}"
        if word in TEMPLATES:
            return self._filled(word, depth, font)
        if word == "{":
            return "", f"{{{self._group(depth, font)}}}", ""
        if word == "\\operatorname":
            star = "*" if self._takes("*") else ""
            return "", f"{word}{star}{{{self._argument(depth + _REPEATED, font)}}}", ""
        if word in TEXTS:
            return "", f"\\text{{{TEXTS[word]}{self._text(depth + _REPEATED)}}}", ""
        if word in _DIMENSIONS:
            return "", self._space(), ""
        if word == "\\left":
            left = self._delimiter()
            return self._fenced(left, self.rows(depth + 1, font), "")
        if word == "\\begin":
            return self._environment(depth, font)
        if word == "\\middle" or word[1:] in SIZES:
            fence = self._delimiter()
            return self._mark(fence), f"{word}{_spaced(fence)}", _OFF
        return self._mark(word, font), _leaf(word), _OFF

    def _filled(self, word: str, depth: int, font: str) -> tuple[str, str, str]:
        """A command with its arguments."""
        template = TEMPLATES[word]
        mark = self._mark(word) if template[:1] == "@" else ""
        depth += _REPEATED if word in REPEATED else 0
        head = template.partition("{")[0]
        font = head if head in FONTS else font
        source = ""
        for piece in _SLOT.split(template.removeprefix("@")):
            if piece == "#":
                source += self._argument(depth, font)
            elif piece == "!":
                self._takes("*")
                if self._takes("{"):
                    self._raw()
            elif piece == "[#]":
                if self._takes("["):
                    depth += 0 if word in REPEATED else _REPEATED  # a root with a degree is set in four sizes
                    source += f"[{{{self._sequence(depth + 1, font, ']')}}}]"
                    self._expect("]")
            else:
                source += piece
        return mark, source + " ", _OFF if mark else ""

    def _function(self) -> str:
        """The name of a function in braces, however it is spaced; nothing is taken where there is none."""
        start = self._place
        self._takes("*")
        name = self._raw().replace(" ", "").replace("~", "") if self._takes("{") else ""
        if name in FUNCTIONS:
            return name
        self._place = start
        return ""

    def _fenced(self, left: str, inner: str, right: str) -> tuple[str, str, str]:
        """Delimiters around what is inside; the colour of the right one comes on before it and goes off behind it."""
        if not right:
            self._expect("\\right")
            right = self._delimiter()
        source = f"\\left{_spaced(left)}{inner}{self._mark(right)}\\right{_spaced(right)}"
        return self._mark(left), source, _OFF + _OFF

    def _environment(self, depth: int, font: str) -> tuple[str, str, str]:
        self._expect("{")
        name = self._raw()
        kind = name.strip().removesuffix("*")
        if kind not in ENVIRONMENTS:
            raise FormulaError(f"the environment {kind[:20]} is not known")
        if self._takes("["):
            self._raw("]")
        left, right, columns = ENVIRONMENTS[kind]
        if kind in WITH_COLUMNS:
            self._expect("{")
            given = re.sub(r"[@!<>]\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "", self._raw())
            given = re.sub(r"\*\{(\d)\}\{([^{}]*)\}", lambda match: match[2] * int(match[1]), given)
            columns = "".join(letter for letter in given if letter in "lcr") or columns
        inner = self.rows(depth + 1, font, columns, "\\displaystyle " if kind in DISPLAYED else "")
        self._expect("\\end")
        self._expect("{")
        if self._raw() != name:
            raise FormulaError(f"{kind} does not end")
        return self._fenced(left, inner, right)

    def _delimiter(self) -> str:
        word = {"<": "\\langle", ">": "\\rangle"}.get(word := self._consume(), word)
        if not word or not (word in "()[]|/." or word in ("\\{", "\\}", "\\|") or word[1:] in DELIMITERS):
            raise FormulaError("a delimiter is missing")
        return word

    def _space(self) -> str:
        """A space in braces; one without them is left out, as is one whose length is not understood."""
        self._takes("*")
        if self._takes("{"):
            length = self._raw()
            return f"\\hspace{{{length}}}" if _LENGTH.fullmatch(length) else ""
        while self.peek() and self.peek() in "-.0123456789":
            self._consume()
        for _ in range(2):
            self._place += self.peek().isalpha()
        return ""

    def _text(self, depth: int) -> str:
        """Text in braces, a token a letter; formulas in dollar signs."""
        if depth > _DEEPEST:
            raise FormulaError("too deeply nested")
        if not self._takes("{"):
            return self._letter(self._consume(), depth)
        parts = []
        while self._place < len(self._words):
            word = self._words[self._place]
            if word == "{":
                parts.append(f"{{{self._text(depth + 1)}}}")
                continue
            self._place += 1
            if word == "}":
                return "".join(parts)
            parts.append(self._letter(word, depth))
        raise FormulaError("} is missing")

    def _letter(self, word: str, depth: int) -> str:
        if word[:1] in ("", "%"):
            return ""
        if word.isspace() or word in ("~", "\\ ", *_ROW_ENDS):
            return " "
        if word in ("$", "\\("):
            inner = self._sequence(depth + 1, "", closer := "$" if word == "$" else "\\)")
            self._expect(closer)
            return f"${inner}$"
        if word in TEXTS:
            return f"{{{TEXTS[word]}{self._text(depth + 1)}}}"
        if len(word) == 1 or word[1] in _IN_TEXT:
            letter = word[-1]
            drawn = _IN_TEXT.get(letter) or (_leaf(letter) if letter.isascii() else f"${_leaf(letter)}$")
            return f"{self._mark(letter)}{drawn}{_OFF}"
        self._place -= 1
        return f"${self._atom(depth, '')}$"


def _known_sign(character: str) -> str:
    """A character that mathematics knows as LaTeX."""
    if character.isascii():
        return character
    known = latex_of(*letter_of(character, ""))
    return f"{known} " if known.isascii() and known[:1] != "^" else character


def _leaf(word: str) -> str:
    """What draws a token that has no arguments."""
    if len(word) > 1:
        if word[1:] in KNOWN or word[1:] in "{}|#$%&_":
            return word + " "
        raise FormulaError(f"{word[:20]} is not known")
    if not word or not word.isprintable() or word in _SPECIAL:
        raise FormulaError(f"{word or 'the end'!r} has no place in a formula")
    if word.isascii():
        return word
    # TeX's fonts do not have it: a box of about its size has the same place on both sides.
    width = 1 if unicodedata.east_asian_width(word) in "WF" else 0.5
    return f"\\text{{\\rule{{{width}em}}{{.8em}}}}"


def _spaced(word: str) -> str:
    return word + " " if word[0] == "\\" else word
