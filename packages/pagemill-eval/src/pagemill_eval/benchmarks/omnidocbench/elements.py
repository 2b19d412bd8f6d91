"""Elements of a predicted page: tables, formulas and text taken out of its Markdown, as OmniDocBench v1.5 does it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise


class Category(StrEnum):
    """What a prediction's element is."""

    TEXT = "text"
    EQUATION = "equation"
    HTML_TABLE = "html_table"
    LATEX_TABLE = "latex_table"
    FOUND_FORMULA = "found_formula"
    """After v1.5: made of a table's cell or of text with an arrow; matched with the text and the formulas."""
    POSSIBLE_FORMULA = "possible_formula"
    """After v1.5: made of text that looks like a formula; matched with formulas alone."""


@dataclass(frozen=True, slots=True)
class Element:
    """A piece of a prediction, or of the truth."""

    category: str
    """A :class:`Category`, or the truth's category."""
    content: str
    start: float = 0
    """First character of a prediction, as far as the rules know it; place in reading order of the truth."""
    inline: bool = False
    """A formula within text, which is an element and stays in the text, too."""
    end: float = 0
    """End of a prediction, behind its last character; used after v1.5 only."""


_FORMULAS = (("$$", "$$"), ("\\[", "\\]"), ("$", "$"), ("\\(", "\\)"))
_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"))
_FENCES = [re.compile(rf"^```{name}\n?", re.MULTILINE) for name in ("markdown", "html", "latex")]
_FENCE_END = re.compile(r"```\n?$", re.MULTILINE)
_DOCUMENT_TAGS = ("<html>", "</html>", "<body>", "</body>")
_LATEX_TABLE = re.compile(r"\\begin{table}(.*?)\\end{table}", re.DOTALL)
_MAX_UNCLOSED = 100
"""Maximum number of unclosed tables: each costs a scan of the page."""
_HTML_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
_MARKDOWN_TABLE = re.compile(r"\|.*?\|\n", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_PLAIN_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_FRAME = re.compile(r"</?t(?:able|head|body)>")
_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_UNWRAPPED = [
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"\\title\{(.*?)\}", re.NOFLAG),
        (r"\\title\s*\{\s*(.*?)\s*\}", re.DOTALL),
        (r"\\text\s*\{\s*(.*?)\s*\}", re.DOTALL),
        (r"\\section\*?\{(.*?)\}", re.NOFLAG),
        (r"\\section\*?\{\s*(.*?)\s*\}", re.DOTALL),
    )
]
_LOST_CELLS = re.compile(r"-*?:|---")
"""Second line of a Markdown table, by the rules."""


class MarkdownReader:
    """Parses one prediction. Later versions override the methods without a leading underscore."""

    def __init__(self) -> None:
        self._rest = ""
        """What is left; spaces stand for what was taken out."""
        self._found: list[Element] = []

    def elements(self, markdown: str) -> list[Element]:
        """The elements, in the order in which they start."""
        self._rest = self.cleaned(markdown)
        self._extract(Category.LATEX_TABLE, _latex_tables(self._rest))
        self._extract(Category.HTML_TABLE, _outermost(self._rest, _HTML))
        self._extract_formulas()
        if len(_markdown_tables(self._rest + "\n")) > 1:
            self._rest = _with_html_tables(self._rest)
            tables = _HTML_TABLE.finditer(self._rest, 0, up_to_last("</table>", self._rest))
            self._extract(Category.HTML_TABLE, [match.span() for match in tables])
        for match in _CODE.finditer(self._rest):
            self._found.append(Element(Category.TEXT, match[2].strip(), match.start(), end=match.end()))
        self._rest = _CODE.sub(lambda match: " " * len(match[0]), self._rest)
        for pattern in _UNWRAPPED:
            self._rest = substituted(pattern, "}", r"\1", self._rest)
        self._extract_text()
        return sorted(self._found, key=lambda element: element.start)

    def cleaned(self, markdown: str) -> str:
        """A prediction without images, fences, tags of a document and long runs of a character."""
        return without_fences(replaced(markdown, [(start, end) for start, end, _ in images(markdown)], ""))

    def table(self, table: Element) -> Iterable[Element]:
        """What a table amounts to."""
        return [table]

    def formula(self, formula: Element) -> Iterable[Element]:
        """What a formula amounts to."""
        return [formula]

    def text(self, text: Element) -> Iterable[Element]:
        """The elements of a remaining piece: its non-empty lines, stripped."""
        content = text.content
        if content.startswith("<table") and content.endswith("</table>"):
            return [replace(text, category=Category.HTML_TABLE)]
        if content.startswith("$") and content.endswith("$"):
            return [replace(text, category=Category.EQUATION)] if content.replace("$", "").strip() else []
        return [text]

    def _extract(self, category: Category, spans: Sequence[tuple[int, int]]) -> None:
        for start, end in spans:
            content = self._rest[start:end]
            self._found += self.table(Element(category, content, start, end=start + len(content)))
            self._rest = replaced(self._rest, [(start, end)], " ")

    def _extract_formulas(self) -> None:
        displayed: list[tuple[int, int]] = []
        for start, end, _ in delimited(self._rest, _FORMULAS):
            line = " ".join(self._rest[start:end].strip().split("\n"))
            inner = next(delimited(line, _DELIMITERS), None)
            inline = inner is not None and not (inner[2] == "$$" and inner[1] - inner[0] > len("$$$$"))
            content = _redelimited(line, is_display=not inline)
            self._found += self.formula(Element(Category.EQUATION, content, start, inline, end))
            if not inline:
                displayed.append((start, end))
        self._rest = replaced(self._rest, displayed, " ")

    def _extract_text(self) -> None:
        start = 0
        separator = "\n\n" if "\n\n" in self._rest else "\n"
        for piece in self._rest.split(separator):
            end = start + len(piece)
            if text := "\n".join(line.strip() for line in piece.strip().split("\n") if line.strip()):
                self._found += self.text(Element(Category.TEXT, text, start, end=end))
            start = end  # the separators are not counted, so that starts fall behind


def elements_of(markdown: str) -> list[Element]:
    """Parse a prediction by the rules of v1.5, in the order of its elements."""
    return MarkdownReader().elements(markdown)


def without_fences(markdown: str) -> str:
    """A prediction without surrounding fences, document tags and long runs of one character."""
    for pattern in _FENCES:
        markdown = pattern.sub("", markdown)
    markdown = _FENCE_END.sub("", markdown)
    markdown = re.sub(r"_{4,}", "____", markdown)
    markdown = re.sub(r" {4,}", "    ", markdown)
    for tag in _DOCUMENT_TAGS:
        markdown = markdown.replace(tag, "")
    return markdown


def up_to_last(closer: str, content: str) -> int:
    """End of the last closer. An opener behind it matches nothing, and would be looked for to the end of the page.

    Runaway predictions have thousands of openers, with which regular expressions take time with the page's square.
    """
    place = content.rfind(closer)
    return place + len(closer) if place >= 0 else 0


def substituted(pattern: re.Pattern[str], closer: str, replacement: str, content: str) -> str:
    """Like :meth:`re.Pattern.sub`, of a pattern whose matches end with a closer."""
    end = up_to_last(closer, content)
    return pattern.sub(replacement, content[:end]) + content[end:]


def replaced(content: str, spans: Iterable[tuple[int, int]], character: str) -> str:
    """Put a character for each one in spans, which do not overlap and are in order."""
    parts: list[str] = []
    place = 0
    for start, end in spans:
        parts += [content[place:start], character * (end - start)]
        place = end
    return "".join(parts) + content[place:]


def delimited(content: str, delimiters: Sequence[tuple[str, str]]) -> Iterator[tuple[int, int, str]]:
    """Start, end and opener of the shortest stretches between delimiters, as by a regular expression of alternatives.

    Args:
        content: Any text.
        delimiters: Openers and closers; of openers that begin alike the first one that is closed counts.
    """
    last = {closer: content.rfind(closer) for _, closer in delimiters}
    openers = re.compile("|".join(re.escape(opener) for opener, _ in delimiters))
    place = 0
    while match := openers.search(content, place):
        start = place = match.start()
        for opener, closer in delimiters:
            inside = start + len(opener)
            if content.startswith(opener, start) and last[closer] >= inside:
                place = content.index(closer, inside) + len(closer)
                yield start, place, opener
                break
        else:
            place += 1


def images(markdown: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and description of each image; none goes over the end of a line."""
    first = 0
    for line in markdown.split("\n"):
        place = 0
        while (
            (start := line.find("![", place)) >= 0
            and (middle := line.find("](", start + 2)) >= 0
            and (end := line.find(")", middle + 2)) >= 0
        ):
            place = end + 1
            yield first + start, first + place, line[start + 2 : middle]
        first += len(line) + 1


def _latex_tables(content: str) -> list[tuple[int, int]]:
    whole = [match.span() for match in _LATEX_TABLE.finditer(content, 0, up_to_last("\\end{table}", content))]
    return sorted(whole + _outermost(replaced(content, whole, " "), _TABULAR))


@dataclass(frozen=True, slots=True)
class _Brackets:
    """Beginning and end of tables, and how far the official scorer moves on behind them.

    It takes the lengths of its regular expressions for those of the matches, so that it skips what follows closely.
    """

    begin: re.Pattern[str]
    end: re.Pattern[str]
    begin_step: int
    end_step: int


_TABULAR = _Brackets(re.compile(r"\\begin{tabular}"), re.compile(r"\\end{tabular}"), 16, 14)
_HTML = _Brackets(re.compile(r"<table(?:[^>]*)>"), re.compile(r"</table>"), 16, 8)


def _outermost(content: str, brackets: _Brackets) -> list[tuple[int, int]]:
    """Spans of tables that are in no other one."""
    limit = up_to_last(brackets.begin.pattern[-1], content)
    tags = [(match.start(), True) for match in brackets.begin.finditer(content, 0, limit)]
    tags = sorted(tags + [(match.start(), False) for match in brackets.end.finditer(content)])
    found: list[tuple[int, int]] = []
    position = 0
    for _ in range(_MAX_UNCLOSED):
        opened: list[int] = []
        for place, begins in tags[bisect_left(tags, (position, False)) :]:
            if place < position:
                continue
            position = place + brackets.end_step
            if begins:
                opened.append(place)
            elif opened:
                start = opened.pop()
                if not opened:
                    found.append((start, min(position, len(content))))
        if not opened:
            break
        position = opened[0] + brackets.begin_step  # the first one has no end: all over again behind it
    return found


def _redelimited(line: str, *, is_display: bool) -> str:
    """A formula in square brackets. Content of dollar pairs of the other kind than the first is lost."""
    parts: list[str] = []
    place = 0
    for start, end, opener in delimited(line, _DELIMITERS):
        kept = line[start + len(opener) : end - len(opener)] if (opener == "$$") == is_display else ""
        parts += [line[place:start], f"\\[{kept}\\]"]
        place = end
    return "".join(parts) + line[place:]


def _markdown_tables(content: str) -> list[str]:
    return _MARKDOWN_TABLE.findall(content, 0, up_to_last("|\n", content))


def _with_html_tables(content: str) -> str:
    """Markdown with its tables as HTML; the layout of the HTML counts, since tables are matched by their source."""
    content = content.replace("\r", "") + "\n"
    end = up_to_last("|\n", content)
    content = _MARKDOWN_TABLE.sub(lambda match: _small_table(match[0]), content[:end]) + content[end:]
    content = "\n".join(_blocks(content.split("\n")))
    return content.replace("<table>", '<table border="1" >').replace("<td>", '<td colspan="1" rowspan="1">')


def _small_table(source: str) -> str:
    """The lines between bars as a table: a header, a rule that is dropped, and rows."""
    header, *others = source.strip().split("\n")
    rows = [("th", header), *(("td", line) for line in others[1:])]
    lines = ["<table>", "  <thead>"]
    for tag, line in rows:
        cells = [f"      <{tag}>{cell.strip()}</{tag}>" for cell in line.strip().split("|")[1:-1]]
        lines += ["    <tr>", *cells, "    </tr>"]
        lines += ["  </thead>", "  <tbody>"] if tag == "th" else []
    return "\n".join([*lines, "  </tbody>", "</table>", ""])


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Join tables whose lines follow each other. The line directly above is lost, as are lines that look like rules."""
    block: str | None = None
    for last, line in pairwise(["", *lines]):
        if "<table>" in line:
            block = (block or "") + last
        elif block is None:
            yield last
        else:
            block += "" if _LOST_CELLS.search(last) else f"\n{last}"
            if "</table>" in last:
                yield _one_table(block)
                block = None
    last = lines[-1]
    if last and (block is not None or "</table>" in last):
        yield _one_table(f"{block or ''}\n{last}")
    elif last:
        yield last


def _one_table(block: str) -> str:
    """The rows of all tables in a block of lines, in one; a table of two lines has no cells and is dropped."""
    lines: list[str] = []
    for table in _PLAIN_TABLE.findall(substituted(_COMMENT, "-->", "", block)):
        rows = [line for line in table.split("\n") if not _FRAME.search(line)]
        lines += [line.replace("<th>", "<td>").replace("</th>", "</td>") for line in rows] if len(rows) > 2 else []
    return "\n\n<table>\n" + "\n".join(lines) + "\n</table>\n\n"
