"""A document as one readable HTML page: headings, paragraphs, lists, tables with spans, figures, page anchors.

All text of a document is escaped; the markup is ours alone. There is no script, and a content security
policy lets nothing but the one style and the pictures beside the file take effect.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from pagemill._version import __version__
from pagemill.document.labels import RUNNING_TEXT, TASK_OF_LABEL, Label, Task
from pagemill.document.marks import inline_html, shown_spans
from pagemill.document.names import file_stem
from pagemill.document.page import ContentFormat, DocumentInfo, PageResult, Region, Span, Status
from pagemill.document.spans import carried, cut
from pagemill.export.formats import Content, ExportFormat
from pagemill.export.html_lists import PAGE_ANCHOR, list_html
from pagemill.export.markdown import plain_content, table_of
from pagemill.export.model_markdown import markdown_html
from pagemill.export.parts import PageRenderer, TextPart, page_parts, stream_joined
from pagemill.export.placed_text import LANGUAGE
from pagemill.late import re
from pagemill.tables.table import Table

_STYLE = files("pagemill.export") / "html_template" / "document.css"
_PARAGRAPH_CLASS = {
    Label.ABSTRACT: "abstract",
    Label.REFERENCE_CONTENT: "entry",
    Label.FIGURE_TITLE: "note",
    Label.FORMULA_NUMBER: "note",
    Label.VISION_FOOTNOTE: "note",
}
_FORMULA_CLASS = {ContentFormat.LATEX: "formula latex", ContentFormat.FORMULA_TEXT: "formula"}
_BLANK = re.compile(r"\n\s*\n")
_TO_PAGE = re.compile(r'(?<=href=")#page=(\d+)(?:&amp;top=\d+)?(?=")')
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_PAGE_WIDTH = 760
"""CSS pixels for the width of a page, by which the width of a figure is measured: about that of A4."""


@dataclass(slots=True)
class _Block(TextPart):
    """A block being written: flowing text, a list, or finished markup."""

    markup: str = ""
    style: str = ""
    marks: list[tuple[int, str]] = field(default_factory=list)
    """Starts of pages: place in the text, and markup."""
    inner: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """Blocks inside of items: as of :func:`pagemill.export.html_lists.list_html`."""

    def take_in(self, inner: _Block) -> bool:
        self.inner.setdefault(self.text.count("\n"), []).append((inner.depth, inner.html()))
        return True

    def take_up(self, rest: _Block) -> None:
        TextPart.take_up(self, rest)
        start = len(self.text) - len(rest.text)
        self.marks += [(start + place, mark) for place, mark in rest.marks]

    def add_items(self, rest: _Block) -> None:
        TextPart.add_items(self, rest)
        self.marks += [(0, mark) for _, mark in rest.marks]

    def add_rows(self, rest: _Block, table: Table) -> None:
        self.markup = self.markup.replace(_scrolled(self.table), _scrolled(table)) if self.table else self.markup
        self.table = table
        self.marks += [(0, mark) for _, mark in rest.marks]

    def html(self) -> str:
        before = "".join(mark for place, mark in self.marks if place == 0)
        if self.is_list:
            return before + list_html(self.text.split("\n"), self.spans, self.inner)
        if self.is_code:
            return f"{before}<pre>{_text(self.text)}</pre>"
        if self.markup or not self.text:
            return before + self.markup
        pieces: list[str] = []
        start = 0
        for place, mark in [*((place, mark) for place, mark in self.marks if place), (len(self.text), "")]:
            pieces += [_text(self.text[start:place], cut(self.spans, start, place)), mark]
            start = place
        opening = f'<p class="{self.style}">' if self.style else "<p>"
        return before + opening + _BLANK.sub(f"</p>\n{opening}", "".join(pieces)) + "</p>"


def write_html(
    folder: Path,
    title: str,
    documents: Iterable[tuple[str, Iterable[PageResult]]],
    info_of: Callable[[str], DocumentInfo] = lambda _: DocumentInfo(),
) -> None:
    """Write ``documents/NAME.html`` for every document, and ``index.html``, which lists them.

    Args:
        folder: A directory, with the crops of the pages in it.
        title: Heading of the list.
        documents: Document ids, each with its pages in page order.
        info_of: Gives metadata of the document.

    Raises:
        OSError: A file cannot be written.
    """
    (folder / "documents").mkdir()
    entries: list[str] = []
    for doc_id, pages in documents:
        counts: Counter[Status] = Counter()
        name = f"documents/{file_stem(doc_id)}.html"
        _write(folder / name, document_html(_counted(pages, counts), info_of(doc_id), crops_root="../"))
        count = f"{counts.total()} page{'' if counts.total() == 1 else 's'}"
        if failed := counts[Status.FAILED]:
            count += f", {failed} failed"
        entries.append(f'<li><a href="{quote(name)}">{_text(doc_id)}</a> <span>{count}</span></li>\n')
    heading = f'<main>\n<h1>{_text(title)}</h1>\n<ul class="contents">\n'
    _write(folder / "index.html", [_head(title, None), heading, *entries, "</ul>\n</main>\n</body>\n</html>\n"])


def document_html(
    pages: Iterable[PageResult], info: DocumentInfo | None = None, provisional: bool = False, *, crops_root: str = ""
) -> Iterator[str]:
    """A document as HTML, in pieces that are to be written one after the other.

    What is left out of the Markdown is left out here. Paragraphs that run over a page break are joined, with the mark
    of the page at the place of the break. ``#page-3`` is the address of page 3.

    Args:
        pages: In page order, all of one document; at least one.
        info: Metadata of the document.
        provisional: Pages of it are missing, and may follow.
        crops_root: Put before the paths of crops, such as ``../``.
    """
    stream = iter(pages)
    first = next(stream)
    info = info or DocumentInfo()
    # The metadata come first, as what is read of a page may be in another language.
    language = next((code for code in (info.language, *first.languages) if LANGUAGE.fullmatch(code)), None)
    about = {"author": info.author, "dcterms.created": info.created, "dcterms.modified": info.modified}
    yield _head(info.title or first.doc_id, language, about | {"pagemill-provisional": "yes" if provisional else ""})
    yield "<main>\n"
    numbers: list[int] = []
    yield from fragment(chain([first], stream), crops_root=crops_root, numbers=numbers)
    yield "</main>\n"
    if len(numbers) > 1:
        links = " ".join(f'<a href="#page-{number}">{number}</a>' for number in numbers)
        yield f'<nav aria-label="Pages">Pages {links}</nav>\n'
    yield "</body>\n</html>\n"


def fragment(pages: Iterable[PageResult], *, crops_root: str = "", numbers: list[int] | None = None) -> Iterator[str]:
    """The content of ``main`` of :func:`document_html`. The numbers of the pages are added to ``numbers``."""
    counted = [] if numbers is None else numbers
    parts = stream_joined((page, _marked(page, crops_root, counted)) for page in pages)
    yield from (f"{part.html()}\n" for part in parts)


def _marked(page: PageResult, crops_root: str, numbers: list[int]) -> list[_Block]:
    """The blocks of a page, the first one with the mark of the page; its number is added to ``numbers``."""
    blocks = page_parts(_Html(page, crops_root))
    # Several records may describe one page, and an id must be unique.
    if page.page_number is not None and page.page_number not in numbers[-1:]:
        numbers.append(page.page_number)
        mark = f'<span class="page" id="page-{page.page_number}" data-page="{page.page_number}"></span>'
        # An empty page keeps its anchor, as links may lead to it.
        blocks = blocks or [_Block("")]
        blocks[0].marks.append((0, mark))
    return blocks


def _write(path: Path, pieces: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
        stream.writelines(pieces)


def _counted(pages: Iterable[PageResult], counts: Counter[Status]) -> Iterator[PageResult]:
    for page in pages:
        counts[page.status] += 1
        yield page


def html_head(
    title: str, language: str | None, style: str, policy: str, about: Mapping[str, str] = MappingProxyType({})
) -> str:
    """An HTML page up to its body.

    Args:
        title: Title of the page.
        language: Its BCP-47 tag, where it is known.
        style: The text of its one style sheet.
        policy: Additional sources in the content security policy.
        about: Metadata of the document by name; what is empty is left out.
    """
    # Documents come from strangers: whatever slips through must neither load nor run anything.
    policy = f"default-src 'none'; {policy}; style-src '{source_hash(style)}'; base-uri 'none'; form-action 'none'"
    lang = f' lang="{language}"' if language else ""
    metadata = "".join(f'<meta name="{name}" content="{_text(value)}">\n' for name, value in about.items() if value)
    return (
        f'<!doctype html>\n<html{lang}>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="pagemill {__version__}">\n'
        f"{metadata}<title>{_text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


def source_hash(text: str) -> str:
    """Hash of an inline element's text as a content security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _head(title: str, language: str | None, about: Mapping[str, str] = MappingProxyType({})) -> str:
    return html_head(title, language, _STYLE.read_text(encoding="utf-8"), "img-src 'self'", about)


class _Html(PageRenderer[_Block]):
    """A figure or table and its captions, each on the side on which it stands in reading order, are one block."""

    def failure(self, reason: str) -> _Block:
        return _markup(f'<p class="failed">{_text(reason[0].upper() + reason[1:])}</p>')

    def picture(self, region: Region) -> _Block | None:
        body = ""
        if (crop := self.crops.get(region.index)) is not None:
            width, height = region.bbox[2] - region.bbox[0], region.bbox[3] - region.bbox[1]
            scale = _PAGE_WIDTH / max(self.page.width, 1)
            size = f'width="{max(1, round(width * scale))}" height="{max(1, round(height * scale))}"'
            shown = region.label.value if region.description is None else region.description.summary
            body = f'<img src="{quote(crop)}" {size} alt="{_text(shown)}" loading="lazy">'
        elif region.description is not None:
            body = _paragraphs(region.description.summary)
        elif region.content:
            body = _paragraphs(plain_content(region))
        return self._figure(region, body) if body or region.index in self.captions else None

    def block(self, region: Region, number: str | None) -> _Block | None:
        if region.label is Label.TABLE:
            block = self._figure(region, _table(region))
            block.table = table_of(region)
            return block
        if region.caption_of is not None and _has_figure(self.page.regions[region.caption_of]):
            return None
        content = plain_content(region)
        spans = _spans(region, content)
        if region.label is Label.FOOTNOTE:
            return _markup(f"<aside>{_paragraphs(content, spans)}</aside>")
        if region.content_format is ContentFormat.HTML:  # a table where layout saw text
            return _markup(_table(region))
        if region.content_format in _FORMULA_CLASS:
            tag = f" \\tag{{{number}}}" if number else ""
            return _markup(f'<pre class="{_FORMULA_CLASS[region.content_format]}">{_text(content + tag)}</pre>')
        if region.label is Label.ALGORITHM:
            return _Block(content, is_code=True)
        if region.level:
            level = min(region.level, 6)
            title = " ".join(content.split())
            anchor = f' id="{_text(region.anchor)}"' if region.anchor else ""
            return _markup(f"<h{level}{anchor}>{_text(title, carried(spans, content, title))}</h{level}>")
        # One line has no blocks, and is shown like the text that was read by other engines.
        if region.content_format is ContentFormat.MARKDOWN and "\n" in (region.content or "").strip():
            return _markup(markdown_html(_CONTROL.sub("", region.content or "")))
        if region.list_item:
            return _Block(content, is_list=True, spans=spans)
        if region.label is Label.CONTENT:
            return _markup(f"<p>{_text(content, spans).replace(chr(10), '<br>' + chr(10))}</p>")
        flows = region.label in RUNNING_TEXT
        style = _PARAGRAPH_CLASS.get(region.label, "")
        return _Block(content, flows, flows and region.continues, spans=spans, style=style)

    def _figure(self, region: Region, body: str) -> _Block:
        pieces: dict[int, str] = {}
        for each in self.captions.get(region.index, ()):
            content = plain_content(each)
            pieces[each.index] = f"<figcaption>{_text(content, _spans(each, content))}</figcaption>"
        pieces[region.index] = body
        return _markup(f"<figure>{''.join(pieces[index] for index in sorted(pieces))}</figure>")


def _spans(region: Region, text: str) -> tuple[Span, ...]:
    """The marks of a region's content as they are in its plain text."""
    return carried(shown_spans(region), region.content or "", text)


def _has_figure(region: Region) -> bool:
    return TASK_OF_LABEL[region.label] is Task.SKIP or (region.label is Label.TABLE and bool(region.content))


def _markup(markup: str) -> _Block:
    return _Block("", markup=markup)


def _table(region: Region) -> str:
    """A table rebuilt from rows, cells, spans and text; other markup becomes text."""
    table = table_of(region)
    return _scrolled(table) if table else f'<div class="scroll"><pre>{_text(region.content or "")}</pre></div>'


def _scrolled(table: Table) -> str:
    body = _TO_PAGE.sub(rf"{PAGE_ANCHOR}\1", table.to_html())
    return f'<div class="scroll">{body}</div>'


def _paragraphs(text: str, spans: tuple[Span, ...] = ()) -> str:
    return f"<p>{_BLANK.sub('</p><p>', _text(text, spans))}</p>"


def _text(text: str, spans: tuple[Span, ...] = ()) -> str:
    clean = _CONTROL.sub("", text)
    return inline_html(clean, carried(spans, text, clean), pages=PAGE_ANCHOR) if spans else escape(clean)


def _write_folder(content: Content, folder: Path) -> None:
    documents = ((doc_id, content.with_crops(folder, pages)) for doc_id, pages in content.documents())
    write_html(folder, content.name, documents, lambda doc_id: content.about(doc_id).info)


FORMAT = ExportFormat(
    ending="-html",
    suffix=".html",
    text=lambda pages, about: document_html(pages, about.info, about.is_provisional, crops_root=about.crops_root),
    to_folder=_write_folder,
    crops=True,
    served_as="html",
    media_type="text/html; charset=utf-8",
    title="HTML",
)
