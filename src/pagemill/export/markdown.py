"""Markdown of pages and documents.

Page numbers, running heads and feet and marginal notes stay in the record and out of the Markdown. Footnotes are part
of the author's text: they stand at the end of their page, unless they are not wanted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import indent
from typing import BinaryIO
from urllib.parse import quote

import msgspec

from pagemill.document.labels import RUNNING_TEXT, Label
from pagemill.document.marks import shown_spans
from pagemill.document.page import ContentFormat, PageResult, Region, Span
from pagemill.document.spans import carried, cut, lines_of, tidy
from pagemill.export.formats import Content, ExportFormat
from pagemill.export.html_lists import ORDINAL, without_bullet
from pagemill.export.inline_markdown import escape, marked, not_a_list
from pagemill.export.model_markdown import code_block, fenced, formula, harmless, plain, plain_line
from pagemill.export.parts import PageRenderer, TextPart, is_left_out, joined, page_parts, stream_joined
from pagemill.formulas.reading import latex_of_text
from pagemill.late import re
from pagemill.tables.table import Table

_FIGURE_NAME = re.compile(r"^\W?\w{1,20}\.?\s{0,3}[\w.\-]{0,12}\d")
_FORMULA = re.compile(r"\$[^$\n]+\$")
_FIRST_SIGN = 0xF0000
_FORMULA_SIGN = re.compile("[\U000f0000-\U000ffffd]")
"""Private characters that stand for formulas while marks are written."""
_MOST_DOLLARS = 0xFFFD
_DEEPER = 5
"""Spaces before an item below another: what ``100. `` takes up; with fewer it would be a part of that item's text."""


def page_markdown(page: PageResult, *, crops_root: str = "") -> str:
    """A page as Markdown.

    Args:
        page: The record.
        crops_root: Put before the paths of crops, such as ``../``.
    """
    return "\n\n".join(part.markdown for part in joined(page_parts(_Markdown(page, crops_root))))


def with_markdown(page: PageResult) -> PageResult:
    """The record, with its Markdown and the count of omitted furniture recomputed."""
    page.markdown = page_markdown(page)
    page.left_out = sum(bool(region.content) and is_left_out(region, page.leaves_out) for region in page.regions)
    return page


def document_markdown(pages: Iterable[PageResult], *, crops_root: str = "../") -> Iterator[str]:
    """A document as Markdown, in pieces that are to be written one after the other.

    Paragraphs that run over a page break are joined; figures and footnotes between their halves come after them.

    Args:
        pages: In page order.
        crops_root: See :func:`page_markdown`; the default fits a file one folder below the run directory.
    """
    between = ""
    for part in stream_joined((page, page_parts(_Markdown(page, crops_root))) for page in pages):
        yield between + part.markdown
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
class _Part(TextPart):
    """Running text as plain text with its marks, which may continue in another part; all else as Markdown."""

    is_plain: bool = False
    ends_in_block: bool = False
    """Whether a list ends with a block inside an item."""

    @property
    def markdown(self) -> str:
        """The part as Markdown."""
        if self.is_code:
            return fenced(self.text)
        return not_a_list(marked(self.text, self.spans)) if self.is_plain else self.text

    def take_up(self, rest: _Part) -> None:
        """Merge with the part in which this one continues."""
        # Only texts of the same kind can be joined: both become Markdown first.
        if self.is_plain != rest.is_plain:
            for part in (self, rest):
                part.text, part.spans, part.is_plain = part.markdown, (), False
        TextPart.take_up(self, rest)

    def add_items(self, rest: _Part) -> None:
        """Merge a list that layout detection cut off from this one."""
        self.text += ("\n\n" if self.ends_in_block else "\n") + rest.text
        self.ends_in_block = rest.ends_in_block

    def take_in(self, inner: _Part) -> bool:
        """Merge a block that is inside the last item of this list."""
        self.text += "\n\n" + indent(inner.markdown, " " * inner.depth * _DEEPER)
        self.ends_in_block = True
        return True

    def add_rows(self, rest: TextPart, table: Table) -> None:
        """Merge with the part of the table on the next page."""
        self.table = table
        self.text = _table_text(table)

    def indent_list(self) -> None:
        """Indent a list that is inside the items of another one."""
        self.text, self.depth = indent(self.text, " " * self.depth * _DEEPER), 0


class _Markdown(PageRenderer[_Part]):
    def failure(self, reason: str) -> _Part:
        return _Part(f"<!-- {_comment(reason)} -->")

    def picture(self, region: Region) -> _Part | None:
        name = _figure_name(region, self.captions.get(region.index, ()))
        described = "" if region.description is None else _alternative(region.description.summary)
        if (crop := self.crops.get(region.index)) is not None:
            return _Part(f"![{name}: {described}]({quote(crop)})" if described else f"![{name}]({quote(crop)})")
        if described:
            return _Part(f"{name}: {described}")
        return _Part(region_markdown(region)) if region.content else None

    def block(self, region: Region, number: str | None) -> _Part:
        is_list = region.list_item and not number
        if _is_running(region):
            return _Part(region.content or "", True, region.continues, spans=region.spans, is_plain=True)
        if region.label is Label.TABLE and (table := table_of(region)) is not None:
            return _Part(_table_text(table), table=table)
        if region.label is Label.ALGORITHM and region.content_format is ContentFormat.TEXT:
            return _Part(region.content or "", is_code=True)
        flows = region.label in RUNNING_TEXT and not region.list_item
        return _Part(region_markdown(region, number), flows, flows and region.continues, is_list)


def _is_running(region: Region) -> bool:
    """Whether a region consists of paragraphs of plain text only."""
    plain_text = region.content_format is ContentFormat.TEXT and region.label is not Label.ALGORITHM
    return plain_text and region.label in RUNNING_TEXT and not region.list_item and not region.level


def plain_content(region: Region) -> str:
    """The content as text, without the markup of a model."""
    content = region.content or ""
    return plain(content) if region.content_format is ContentFormat.MARKDOWN else content


def table_of(region: Region) -> Table | None:
    """The table in the HTML of a region; None for other content, and for HTML without a table."""
    from pagemill.tables.html import parse_table

    return parse_table(region.content or "") if region.content_format is ContentFormat.HTML else None


def strip_marks(page: PageResult) -> None:
    """Remove the inline marks from the regions of a record."""
    for region in page.regions:
        region.spans = ()
        region.lines = tuple(msgspec.structs.replace(line, spans=()) if line.spans else line for line in region.lines)
        table = table_of(region)
        if table is not None and any(cell.spans for cell in table.cells):
            cells = tuple(replace(cell, spans=()) for cell in table.cells)
            region.content = replace(table, cells=cells).to_html()


def region_markdown(region: Region, number: str | None = None) -> str:
    """The content of one region as Markdown, a formula with its number; empty when it has none."""
    content = region.content or ""
    if region.content_format is ContentFormat.HTML:
        return table_markdown(content)
    if region.content_format is ContentFormat.LATEX:
        return formula(content, number)
    if region.content_format is ContentFormat.MARKDOWN:
        # Each formula takes one private character while marks are written, and there are so many.
        if region.spans and content.count("$") < _MOST_DOLLARS:
            return _beside_formulas(region)
        if region.level:
            return f"{'#' * region.level} {harmless(plain_line(content).lstrip('#-* '))}"
        return code_block(content) if region.label is Label.ALGORITHM else harmless(content)
    if region.content_format is ContentFormat.FORMULA_TEXT:
        return formula(latex_of_text(content), number)
    if region.label is Label.ALGORITHM:
        return fenced(content)
    spans = shown_spans(region)
    if region.level:
        title = " ".join(content.split())
        return f"{'#' * region.level} {marked(title, carried(spans, content, title))}"
    if region.list_item:
        return "\n".join(_item(line, own) for line, own in lines_of(content, spans))
    if region.label is Label.CONTENT:
        return "  \n".join(marked(line, own) for line, own in lines_of(content, spans))
    text = marked(content, spans)
    # In running text a number at the start of a line is a year or an amount.
    return not_a_list(text) if _is_running(region) else text


def _beside_formulas(region: Region) -> str:
    """The content of a region with marks and formulas: plain text, but for what is between dollars."""
    content = region.content or ""
    text, formulas, places, end = "", list[str](), list[int](), 0
    for found in _FORMULA.finditer(content):
        places += range(len(text), len(text) + found.start() - end)
        text += content[end : found.start()]
        places += [len(text)] * len(found[0])
        text, end = text + chr(_FIRST_SIGN + len(formulas)), found.end()
        formulas.append(harmless(found[0]))
    places += range(len(text), len(text) + len(content) - end)
    inside = tidy(content, region.spans)
    spans = (msgspec.structs.replace(span, start=places[span.start], end=places[span.end - 1] + 1) for span in inside)
    text += content[end:]
    plain_region = msgspec.structs.replace(
        region, content=text, spans=tidy(text, spans), content_format=ContentFormat.TEXT
    )
    signs = {chr(_FIRST_SIGN + number): formula for number, formula in enumerate(formulas)}
    return _FORMULA_SIGN.sub(lambda sign: signs.get(sign[0], sign[0]), region_markdown(plain_region))


def table_markdown(html: str) -> str:
    """A table as a pipe table under its caption if that loses nothing, else as HTML with only rows, cells and text.

    Text without a table, or with one beyond all measure, is given as text.
    """
    from pagemill.tables.html import parse_table

    table = parse_table(html)
    return escape(html) if table is None else _table_text(table)


def _table_text(table: Table) -> str:
    if (pipes := table.to_markdown(marked)) is None:
        return table.to_html()
    return f"{escape(table.caption)}\n\n{pipes}" if table.caption else pipes


def _item(line: str, spans: tuple[Span, ...]) -> str:
    """A list item: bullets become dashes, numbers stay, other markers are kept as text after a dash."""
    text = line.lstrip()
    before = " " * ((len(line) - len(text)) // 2 * _DEEPER)
    if (ordinal := ORDINAL.match(text)) is not None:
        before, text = before + ordinal[0], text[ordinal.end() :]
    else:
        before, text = f"{before}- ", without_bullet(text)
    return before + marked(text, cut(spans, len(line) - len(text), len(line)))


def _alternative(text: str) -> str:
    """A text on one line for the brackets of a picture, without characters that would end them."""
    return escape(" ".join(text.replace("\\", "\\\\").split()).translate(str.maketrans("[]`", "()'")))


def _figure_name(region: Region, captions: Sequence[Region]) -> str:
    """``Figure 3`` if a caption has it, else the kind of region."""
    match = _FIGURE_NAME.match(plain_content(captions[-1])) if captions else None
    return escape(match.group().replace("[", "").replace("]", "")) if match else region.label.value


def _write_single(content: Content, stream: BinaryIO, crops_root: str) -> None:
    pieces = collected_markdown(content.documents(), crops_root=crops_root)
    stream.writelines(piece.encode("utf-8", "replace") for piece in pieces)


FORMAT = ExportFormat(
    ending="-markdown",
    suffix=".md",
    text=lambda pages, about: document_markdown(pages, crops_root=about.crops_root),
    to_file=_write_single,
    crops=True,
    served_as="md",
    media_type="text/markdown; charset=utf-8",
    title="Markdown",
)
