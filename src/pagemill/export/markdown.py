"""Markdown of pages and documents.

Page numbers, running heads and feet and marginal notes stay in the record and out of the Markdown. Footnotes are part
of what an author says: they stand at the end of their page, unless they are not wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from pagemill.document.labels import RUNNING_TEXT, Label
from pagemill.document.page import ContentFormat, PageResult, Region
from pagemill.export.html_lists import ORDINAL, without_bullet
from pagemill.export.model_markdown import code_block, fenced, formula, harmless, plain, plain_line
from pagemill.export.parts import PageRenderer, TextPart, is_left_out, joined, page_parts, stream_joined
from pagemill.formulas.reading import latex_of_text
from pagemill.tables.table import Table

_FIGURE_NAME = re.compile(r"^\W?\w{1,20}\.?\s{0,3}[\w.\-]{0,12}\d")
_BLOCK_START = re.compile(
    r"^( {0,3})(?=#{1,6}(?:\s|$)|>|```|~~~|[-+*]\s|[-=_*+][-=_*+ \t]*$"
    r"|-[-|: \t]*$|[|:][|: \t]*-[-|: \t]*$"  # below a table's head: the cells of a row beyond its columns are not shown
    r"|\[(?:\\[\s\S]|[^][\\]){1,999}\]:)",  # targets of links are not shown either, whose names may take several lines
    re.MULTILINE,
)
_INLINE_MARKUP = re.compile(r"(?<!\\)(\\*+)(?=<[A-Za-z/!?]|&#?[0-9A-Za-z]{1,31};)|(?<=\])(?=\()")
"""Before a tag or character reference, with the backslashes there, and between the text and the address of a link."""
_EMPHASIS = re.compile(
    r"(?<![\\*])(\*{1,3})(?=[^\s*])([^\n]*?[^\s*])(\1)(?!\*)|(?<![\w\\])(_{1,3})(?=[^\s_])([^\n]*?[^\s_])(\4)(?!\w)"
)
"""Pairs of signs that would make letters italic or bold; in prose, a sign alone stays as printed."""
_MATHEMATICS = re.compile(r"(?<!\\)\$(?=\S)[^$]*(?<=\S)\$(?!\d)")
"""Two dollars between which a reader of Markdown would see a formula."""
_DEEPER = 5
"""Spaces before an item below another: what ``100. `` takes up; with fewer it would be a part of that item's text."""


def page_markdown(page: PageResult, *, crops_root: str = "") -> str:
    """A page as Markdown.

    Args:
        page: The record.
        crops_root: Put before the paths of crops, such as ``../``.
    """
    return "\n\n".join(part.text for part in joined(page_parts(_Markdown(page, crops_root))))


def with_markdown(page: PageResult) -> PageResult:
    """The record itself, with its Markdown, and the count of what that leaves out as furniture, written anew."""
    page.markdown = page_markdown(page)
    page.left_out = sum(bool(region.content) and is_left_out(region, page.leaves_out) for region in page.regions)
    return page


def document_markdown(pages: Iterable[PageResult], *, crops_root: str = "../") -> Iterator[str]:
    """A document as Markdown, in pieces that are to be written one after the other.

    Paragraphs that run over a page break are joined; figures and footnotes between their halves come after them.

    Args:
        pages: In page order.
        crops_root: As in :func:`page_markdown`; the default fits a file one folder below the run directory.
    """
    between = ""
    for part in stream_joined((page, page_parts(_Markdown(page, crops_root))) for page in pages):
        yield between + part.text
        between = "\n\n"
    yield "\n" if between else ""


def collected_markdown(documents: Iterable[tuple[str, Iterable[PageResult]]], *, crops_root: str) -> Iterator[str]:
    """Several documents as one Markdown text, each after a comment with its id; in pieces."""
    for number, (doc_id, pages) in enumerate(documents):
        yield f"{chr(10) if number else ''}<!-- document {_comment(doc_id)} -->\n\n"
        yield from document_markdown(pages, crops_root=crops_root)


def _comment(text: str) -> str:
    return re.sub("-(?=-)", "- ", text)  # "--" may end a comment


@dataclass(slots=True)
class _Text(TextPart):
    def add_rows(self, rest: TextPart, table: Table) -> None:
        self.table = table
        self.text = _table_text(table)


class _Markdown(PageRenderer[TextPart]):
    def failure(self, reason: str) -> TextPart:
        return TextPart(f"<!-- {_comment(reason)} -->")

    def picture(self, region: Region) -> TextPart | None:
        name = _figure_name(region, self.captions.get(region.index, ()))
        described = "" if region.description is None else _alternative(region.description.summary)
        if (crop := self.crops.get(region.index)) is not None:
            return TextPart(f"![{name}: {described}]({quote(crop)})" if described else f"![{name}]({quote(crop)})")
        if described:
            return TextPart(f"{name}: {described}")
        return TextPart(region_markdown(region)) if region.content else None

    def block(self, region: Region, number: str | None) -> TextPart:
        flows = region.label in RUNNING_TEXT and not region.list_item
        is_list = region.list_item and not number
        if region.label is Label.TABLE and (table := table_of(region)) is not None:
            return _Text(_table_text(table), table=table)
        return TextPart(region_markdown(region, number), flows, flows and region.continues, is_list)


def plain_content(region: Region) -> str:
    """The content as text: what a model wrote without its marks."""
    content = region.content or ""
    return plain(content) if region.content_format is ContentFormat.MARKDOWN else content


def table_of(region: Region) -> Table | None:
    """The table that a region holds as HTML; None for other content, and for HTML that holds none."""
    from pagemill.tables.html import parse_table

    return parse_table(region.content or "") if region.content_format is ContentFormat.HTML else None


def region_markdown(region: Region, number: str | None = None) -> str:
    """The content of one region as Markdown, a formula with its number; empty when it has none."""
    content = region.content or ""
    if region.content_format is ContentFormat.HTML:
        return table_markdown(content)
    if region.content_format is ContentFormat.LATEX:
        return formula(content, number)
    if region.content_format is ContentFormat.MARKDOWN:
        if region.level:
            return f"{'#' * region.level} {harmless(plain_line(content).lstrip('#-* '))}"
        return code_block(content) if region.label is Label.ALGORITHM else harmless(content)
    if region.content_format is ContentFormat.FORMULA_TEXT:
        return formula(latex_of_text(content), number)
    if region.label is Label.ALGORITHM:
        return fenced(content)
    if region.level:
        return f"{'#' * region.level} {escape(' '.join(content.split()))}"
    if region.list_item:
        return "\n".join(_item(line) for line in content.split("\n"))
    if region.label is Label.CONTENT:
        return "  \n".join(map(escape, content.split("\n")))
    return escape(content)


def table_markdown(html: str) -> str:
    """A table as a pipe table under its caption where that loses nothing, else as HTML of rows, cells and text alone.

    What holds no table, or one beyond all measure, is given as text.
    """
    from pagemill.tables.html import parse_table

    table = parse_table(html)
    return escape(html) if table is None else _table_text(table)


def _table_text(table: Table) -> str:
    if (pipes := table.to_markdown()) is None:
        return table.to_html()
    return f"{escape(table.caption)}\n\n{pipes}" if table.caption else pipes


def escape(text: str) -> str:
    r"""Escape only what would change the structure: block markers at a line's start, tags, character references, links.

    Pictures and links are no document's to place: a reader of the Markdown would fetch them. Emphasis marks and dollars
    stay as printed but where two of them would be taken as marks; who reads the plain text must find the words as they
    are on the page.
    """
    if _MATHEMATICS.search(text):
        text = text.replace("$", r"\$")
    text = _EMPHASIS.sub(_as_printed, text)
    # A backslash before a tag is text as well: alone it would cancel ours.
    return _INLINE_MARKUP.sub(lambda place: f"{2 * (place[1] or '')}\\", _BLOCK_START.sub(r"\1\\", text))


def _as_printed(match: re.Match[str]) -> str:
    opening, text, closing = (match[i] or match[i + 3] for i in (1, 2, 3))
    return "".join(rf"\{sign}" for sign in opening) + text + "".join(rf"\{sign}" for sign in closing)


def _item(line: str) -> str:
    """A list item: bullets become dashes, numbers stay, other markers are kept as text after a dash."""
    text = line.lstrip()
    indent = " " * ((len(line) - len(text)) // 2 * _DEEPER)
    if ORDINAL.match(text):
        return indent + escape(text)
    return f"{indent}- {escape(without_bullet(text))}"


def _alternative(text: str) -> str:
    """A text in one line, as it may stand between the brackets of a picture: nothing in it can end them."""
    return escape(" ".join(text.replace("\\", "\\\\").split()).translate(str.maketrans("[]`", "()'")))


def _figure_name(region: Region, captions: Sequence[Region]) -> str:
    """``Figure 3`` where a caption says so, else what the region is."""
    match = _FIGURE_NAME.match(plain_content(captions[-1])) if captions else None
    return escape(match.group().replace("[", "").replace("]", "")) if match else region.label.value
