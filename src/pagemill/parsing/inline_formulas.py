"""Formulas inside lines of words, of a text layer that tells glyph by glyph what is set in a font for formulas.

In the texts that paragraphs are made of, each stands as one private character, so that nothing takes a formula apart;
:meth:`InlineFormulas.told` writes them out at the end. A variable on its own stays a letter of the text: it reads the
same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from pagemill.document.geometry import union_box
from pagemill.document.page import TextLine, Word
from pagemill.document.spans import reworded
from pagemill.document.symbols import Symbol
from pagemill.formulas.compose import latex_of_symbols
from pagemill.formulas.signs import FUNCTIONS, RELATIONS
from pagemill.imaging.page import TextLayer
from pagemill.late import re
from pagemill.parsing.formula_zones import symbols_of_lines

_FIRST = 0xF0000
_MOST = 0xFFFD
_MARK = re.compile("[\U000f0000-\U000ffffd]")
_BRIDGE = re.compile(r"^[\d.,()\[\]{}+\-−–=<>/|:;'′]+$")
"""Words that belong to a formula when they stand inside it."""
_ENDS = ".,;:"
_ORNAMENTS = frozenset("•∗*†‡§¶◦·–−—-■□▪△▲○●")
"""Signs that fonts for formulas lend to lists and notes."""
_NO_MARKDOWN = re.compile(r"[$`]")


class InlineFormulas(msgspec.Struct):
    """The formulas of a page's lines."""

    latex: list[str] = []
    originals: dict[int, TextLine] = {}
    """The line of the page by the id of the line with marks that stands for it."""
    marked: dict[int, TextLine] = {}
    """The other way round."""

    def lines(self, lines: Sequence[TextLine]) -> list[TextLine]:
        """The lines with a mark for each formula."""
        return [self.marked.get(id(line), line) for line in lines]

    def original(self, lines: Sequence[TextLine]) -> tuple[TextLine, ...]:
        """The lines of the page."""
        return tuple(self.originals.get(id(line), line) for line in lines)

    def told(self, text: str) -> tuple[str, bool]:
        """A text with its formulas written out, and whether it is Markdown for them."""
        if not self.latex or not _MARK.search(text):
            return text, False
        return _MARK.sub(lambda mark: f"${self.latex[ord(mark[0]) - _FIRST]}$", text), True


def find_inline(layer: TextLayer, lines: Sequence[TextLine], displayed: Collection[int]) -> InlineFormulas:
    """The formulas inside lines.

    Args:
        layer: With its symbols.
        lines: Of this layer.
        displayed: Ids of lines that are part of display formulas.
    """
    found = InlineFormulas()
    owned, _ = symbols_of_lines(layer.symbols, lines)
    for line, symbols in zip(lines, owned, strict=True):
        wanted = id(line) not in displayed and line.polygon is None and not _NO_MARKDOWN.search(line.text)
        if wanted and any(symbol.math for symbol in symbols) and len(found.latex) < _MOST - len(line.words):
            marked = _marked(line, symbols, found.latex)
            if marked.text != line.text:
                found.marked[id(line)], found.originals[id(marked)] = marked, line
    return found


def _marked(line: TextLine, symbols: Sequence[Symbol], latex: list[str]) -> TextLine:
    """The line with each formula as one word, which no line breaks."""
    of_word: list[list[Symbol]] = [[] for _ in line.words]
    for symbol in symbols:
        x = (symbol.box[0] + symbol.box[2]) / 2
        nearest = min(range(len(of_word)), key=lambda i: _distance(line.words[i], x), default=-1)
        if nearest >= 0:
            of_word[nearest].append(symbol)
    body = max((symbol.size for symbol in symbols), default=0.0)
    words: list[Word] = []
    place = 0
    while place < len(line.words):
        end = _end_of_formula(line.words, of_word, place)
        own = line.words[place : max(end, place + 1)]
        text = _written(of_word[place:end], latex, body) if end > place else None
        words += own if text is None else [Word(text, union_box(word.box for word in own))]
        place += len(own)
    trailing = " " if line.text.endswith(" ") else ""
    return reworded(line, " ".join(word.text for word in words) + trailing, words=tuple(words))


def _distance(word: Word, x: float) -> float:
    return max(word.box[0] - x, x - word.box[2])


def _end_of_formula(words: Sequence[Word], of_word: Sequence[Sequence[Symbol]], start: int) -> int:
    """The end of the longest run of words from ``start`` that is a formula; ``start`` where there is none."""
    if not _is_math(of_word[start]) and not (words[start].text in FUNCTIONS and start + 1 < len(words)):
        return start
    end = start
    reached = start
    while reached < len(words):
        if _is_math(of_word[reached]):
            end = reached = reached + 1
            if words[end - 1].text[-1:] in _ENDS:
                break  # a comma between two formulas is the text's
        elif _BRIDGE.match(words[reached].text) or words[reached].text in FUNCTIONS:
            reached += 1
            if _ends_relation(words, reached):
                end = reached
            if words[reached - 1].text[-1:] in _ENDS:
                break
        else:
            break
    return end


def _ends_relation(words: Sequence[Word], reached: int) -> bool:
    """Whether the last word is the number after a relation: ``x = 3``."""
    return (
        reached > 1 and words[reached - 1].text[:1].isdigit() and words[reached - 2].text in RELATIONS | set("+-−/×·")
    )


def _is_math(symbols: Sequence[Symbol]) -> bool:
    letters = [symbol for symbol in symbols if symbol.text.isalpha()]
    by_font = any(symbol.math and symbol.text not in _ORNAMENTS for symbol in symbols)
    words = sum(not symbol.math for symbol in letters)
    return by_font and words <= max(2, sum(symbol.math for symbol in symbols) + 1)


def _written(of_word: Sequence[Sequence[Symbol]], latex: list[str], body: float) -> str | None:
    """The formula's mark, with what of the text clings to it; None where it is none worth it."""
    inside = sorted((symbol for symbols in of_word for symbol in symbols), key=lambda symbol: symbol.box[0])
    before, after = "", ""
    while inside and inside[-1].text in (*_ENDS, "”", '"', "’") and not _is_small(inside[-1], body):
        after = inside.pop().text + after
    while inside and inside[-1].text in ")]" and _unmatched(inside) > 0:
        after = inside.pop().text + after
    while inside and inside[0].text in "([" and _unmatched(inside) < 0:
        before += inside.pop(0).text
    written = latex_of_symbols(inside) if len(inside) > 1 else None
    needed = written is not None and re.search(r"[\\_^=<>]", written)
    if written is None or not needed or "$" in written:
        return None
    latex.append(written)
    return f"{before}{chr(_FIRST + len(latex) - 1)}{after}"


def _is_small(symbol: Symbol, body: float) -> bool:
    return symbol.size < 0.85 * body


def _unmatched(symbols: Sequence[Symbol]) -> int:
    """Closing less opening brackets."""
    return sum((symbol.text in ")]") - (symbol.text in "([") for symbol in symbols)
