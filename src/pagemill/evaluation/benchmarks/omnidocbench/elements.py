"""Elements of a predicted page: tables, formulas and text taken out of its Markdown, as OmniDocBench v1.5 does it."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Category(StrEnum):
    """What a prediction's element is."""

    TEXT = "text"
    EQUATION = "equation"
    HTML_TABLE = "html_table"
    LATEX_TABLE = "latex_table"


@dataclass(frozen=True, slots=True)
class Element:
    """A piece of a prediction, or of the truth."""

    category: str
    """A :class:`Category`, or the truth's category."""
    content: str
    start: float = 0
    """Of a prediction: its first character, as far as the rules know it. Of the truth: its place in reading order."""
    inline: bool = False
    """A formula within text, which is an element and stays in the text, too."""

    def with_content(self, content: str, start: float) -> Element:
        """The same kind of element with another content."""
        return replace(self, content=content, start=start)


_FORMULAS = (("$$", "$$"), ("\\[", "\\]"), ("$", "$"), ("\\(", "\\)"))
_DELIMITERS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"))
_FENCES = [re.compile(rf"^```{name}\n?", re.MULTILINE) for name in ("markdown", "html", "latex")]
_FENCE_END = re.compile(r"```\n?$", re.MULTILINE)
_DOCUMENT_TAGS = ("<html>", "</html>", "<body>", "</body>")
_LATEX_TABLE = re.compile(r"\\begin{table}(.*?)\\end{table}", re.DOTALL)
_MAX_UNCLOSED = 100
"""Tables without an end, after which no more are looked for: each costs a scan of the page."""
_HTML_TABLE = re.compile(r"<table.*?</table>", re.DOTALL)
_MARKDOWN_TABLE = re.compile(r"\|.*?\|\n", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_UNWRAPPED = (
    *(
        re.compile(pattern, flags)
        for pattern, flags in (
            (r"\\title\{(.*?)\}", re.NOFLAG),
            (r"\\title\s*\{\s*(.*?)\s*\}", re.DOTALL),
            (r"\\text\s*\{\s*(.*?)\s*\}", re.DOTALL),
            (r"\\section\*?\{(.*?)\}", re.NOFLAG),
            (r"\\section\*?\{\s*(.*?)\s*\}", re.DOTALL),
        )
    ),
)
_LOST_CELLS = re.compile(r"-*?:|---")
"""What the rules take for a Markdown table's second line."""


def elements_of(markdown: str, only_text: bool = False) -> list[Element]:
    """Take a prediction apart, in the order in which its elements start.

    Args:
        markdown: The prediction.
        only_text: Take what is left of it for text, whatever it looks like; v1.5 does not.
    """
    content = _cleaned(markdown)
    found: list[Element] = []
    for category, spans in ((Category.LATEX_TABLE, _latex_tables), (Category.HTML_TABLE, _html_tables)):
        for start, end in spans(content):
            found.append(Element(category, content[start:end], start))
            content = _blanked(content, start, end)
    content = _take_formulas(content, found)
    content = _take_markdown_tables(content, found)
    code = list(_CODE.finditer(content))
    found += [Element(Category.TEXT, match[2].strip(), match.start()) for match in code]
    content = _blanked_all(content, [match.span() for match in code])
    for pattern in _UNWRAPPED:
        content = substituted(pattern, "}", r"\1", content)
    found += _pieces(content, only_text)
    return sorted(found, key=lambda element: element.start)


def _cleaned(markdown: str) -> str:
    content = "\n".join(map(_without_images, markdown.split("\n")))
    for pattern in _FENCES:
        content = pattern.sub("", content)
    content = _FENCE_END.sub("", content)
    content = re.sub(r"_{4,}", "____", content)
    content = re.sub(r" {4,}", "    ", content)
    for tag in _DOCUMENT_TAGS:
        content = content.replace(tag, "")
    return content


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


def _without_images(line: str) -> str:
    kept: list[str] = []
    place = 0
    while (
        (start := line.find("![", place)) >= 0
        and (middle := line.find("](", start + 2)) >= 0
        and (end := line.find(")", middle + 2)) >= 0
    ):
        kept.append(line[place:start])
        place = end + 1
    return "".join(kept) + line[place:]


def _blanked(content: str, start: int, end: int) -> str:
    return content[:start] + " " * (end - start) + content[end:]


def _blanked_all(content: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    place = 0
    for start, end in spans:
        parts += [content[place:start], " " * (end - start)]
        place = end
    return "".join(parts) + content[place:]


def _latex_tables(content: str) -> list[tuple[int, int]]:
    whole = [match.span() for match in _LATEX_TABLE.finditer(content, 0, up_to_last("\\end{table}", content))]
    for start, end in whole:
        content = _blanked(content, start, end)
    return sorted(whole + _outermost(content, _TABULAR))


def _html_tables(content: str) -> list[tuple[int, int]]:
    return _outermost(content, _HTML)


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
    closer = brackets.begin.pattern[-1]
    begins = [match.start() for match in brackets.begin.finditer(content, 0, up_to_last(closer, content))]
    ends = [match.start() for match in brackets.end.finditer(content)]
    found: list[tuple[int, int]] = []
    position = 0
    for _ in range(_MAX_UNCLOSED):
        opened: list[int] = []
        next_begin, next_end = bisect_left(begins, position), bisect_left(ends, position)
        while next_begin < len(begins) or next_end < len(ends):
            if next_begin < len(begins) and (next_end == len(ends) or begins[next_begin] < ends[next_end]):
                opened.append(begins[next_begin])
                position = begins[next_begin] + brackets.end_step
            else:
                position = ends[next_end] + brackets.end_step
                if opened:
                    start = opened.pop()
                    if not opened:
                        found.append((start, min(position, len(content))))
            next_begin, next_end = bisect_left(begins, position), bisect_left(ends, position)
        if not opened:
            break
        position = opened[0] + brackets.begin_step  # the first one has no end: all over again behind it
    return found


def _take_formulas(content: str, found: list[Element]) -> str:
    spans: list[tuple[int, int]] = []
    for start, end, _ in delimited(content, _FORMULAS):
        line = " ".join(content[start:end].strip().split("\n"))
        inner = next(delimited(line, _DELIMITERS), None)
        is_display = inner is None or (inner[2] == "$$" and inner[1] - inner[0] > len("$$$$"))
        found.append(Element(Category.EQUATION, _redelimited(line, is_display), start, inline=not is_display))
        if is_display:
            spans.append((start, end))
    return _blanked_all(content, spans)


def _redelimited(line: str, is_display: bool) -> str:
    """A formula in square brackets. What is in dollar pairs of the other kind than the first one gets lost."""
    parts: list[str] = []
    place = 0
    for start, end, opener in delimited(line, _DELIMITERS):
        kept = line[start + len(opener) : end - len(opener)] if (opener == "$$") == is_display else ""
        parts += [line[place:start], f"\\[{kept}\\]"]
        place = end
    return "".join(parts) + line[place:]


def _take_markdown_tables(content: str, found: list[Element]) -> str:
    if len(_markdown_tables(content + "\n")) < 2:
        return content
    content = _with_html_tables(content)
    tables = list(_HTML_TABLE.finditer(content, 0, up_to_last("</table>", content)))
    found += [Element(Category.HTML_TABLE, match[0].strip(), match.start()) for match in tables]
    return _blanked_all(content, [match.span() for match in tables])


def _markdown_tables(content: str) -> list[str]:
    return _MARKDOWN_TABLE.findall(content, 0, up_to_last("|\n", content))


def _with_html_tables(content: str) -> str:
    """Markdown with its tables as HTML; the layout of the HTML counts, since tables are matched by their source."""
    content = content.replace("\r", "") + "\n"
    end = up_to_last("|\n", content)
    content = _MARKDOWN_TABLE.sub(lambda match: _html_of(match[0]), content[:end]) + content[end:]
    return (
        _with_merged_tables(content)
        .replace("<table>", '<table border="1" >')
        .replace("<td>", '<td colspan="1" rowspan="1">')
    )


def _html_of(table: str) -> str:
    def cells(line: str, tag: str) -> list[str]:
        return [f"      <{tag}>{cell.strip()}</{tag}>" for cell in line.strip().split("|")[1:-1]]

    first, *others = table.strip().split("\n")
    lines = ["<table>", "  <thead>", "    <tr>", *cells(first, "th"), "    </tr>", "  </thead>", "  <tbody>"]
    for other in others[1:]:
        lines += ["    <tr>", *cells(other, "td"), "    </tr>"]
    return "\n".join([*lines, "  </tbody>", "</table>", ""])


def _with_merged_tables(content: str) -> str:
    """Join tables whose lines follow each other. The line directly above is lost, as are lines that look like rules."""
    kept: list[str] = []
    inside, block, last = False, "", ""
    for line in content.split("\n"):
        if "<table>" in line:
            inside = True
            block += last
        elif inside:
            if not _LOST_CELLS.search(last):
                block += "\n" + last
            if "</table>" in last and "<table>" not in line:
                inside = False
                kept.append(_merged(block))
                block = ""
        else:
            kept.append(last)
        last = line
    if last:
        if inside or "</table>" in last:
            kept.append(_merged(block + "\n" + last))
        else:
            kept.append(last)
    return "\n".join(kept)


def _merged(block: str) -> str:
    lines: list[str] = []
    for table in re.findall(r"<table>[\s\S]*?</table>", substituted(_COMMENT, "-->", "", block)):
        rows = [
            line.replace("<th>", "<td>").replace("</th>", "</td>")
            for line in table.split("\n")
            if not re.search(r"</?t(?:able|head|body)>", line)
        ]
        if len(rows) > 2:
            lines += rows
    return "\n\n<table>\n" + "\n".join(lines) + "\n</table>\n\n"


def _pieces(content: str, only_text: bool) -> list[Element]:
    pieces = content.split("\n\n")
    if len(pieces) == 1:
        pieces = content.split("\n")
    found = []
    start = 0
    for piece in pieces:
        text = "\n".join(line.strip() for line in piece.strip().split("\n") if line.strip())
        if only_text:
            found += [Element(Category.TEXT, text, start)] if text else []
        elif text.startswith("<table") and text.endswith("</table>"):
            found.append(Element(Category.HTML_TABLE, text, start))
        elif text.startswith("$") and text.endswith("$"):
            if text.replace("$", "").strip():
                found.append(Element(Category.EQUATION, text, start))
        elif text:
            found.append(Element(Category.TEXT, text, start))
        start += len(piece)  # the separators are not counted, so that starts fall behind
    return found
