"""HTML and Markdown: the elements of the page in their order. Scripts do not run, and nothing is fetched."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from pagemill.document.labels import Label
from pagemill.document.marks import safe_target
from pagemill.document.page import DocumentInfo, Furniture, Mark
from pagemill.readers.base import (
    Block,
    Document,
    Inline,
    Marks,
    Picture,
    cell,
    display_formula,
    heading,
    in_parts,
    list_item,
    tables,
    unread,
)
from pagemill.readers.mathml import latex_of_mathml
from pagemill.readers.text import DECLARED, declared_charset, decoded
from pagemill.tables.html import MAX_COLUMN_SPAN
from pagemill.tables.table import Cell

_SILENT = frozenset(
    (
        *("script", "style", "template", "head", "noscript", "iframe", "object", "embed", "svg", "canvas", "dialog"),
        *("datalist", "annotation", "annotation-xml"),  # annotations of MathML are the same formula once more
    )
)
"""Elements whose text is not content of the page."""
_BLOCK = re.compile(
    "address|article|aside|blockquote|center|d[dlt]|details|dialog|div|fieldset|figcaption|figure|footer|form|h[1-6r]|"
    "header|hgroup|li|listing|main|menu|nav|[ou]l|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|xmp"
)
"""Elements that end a paragraph. All others are inline: Word invents its own in mail."""
_MARKS = {
    **dict.fromkeys(("b", "strong"), Mark.BOLD),
    **dict.fromkeys(("i", "em", "cite", "dfn", "var"), Mark.ITALIC),
    **dict.fromkeys(("s", "del", "strike"), Mark.STRIKE),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), Mark.CODE),
    "sup": Mark.SUPERSCRIPT,
    "sub": Mark.SUBSCRIPT,
}
_INLINE = frozenset(
    (
        *_MARKS,
        *("a", "abbr", "acronym", "bdi", "bdo", "big", "data", "font", "ins", "label", "mark", "output", "q", "small"),
        *("ruby", "rb", "rt", "rp", "span", "time", "u", "wbr", "button", "input", "select", "img", "picture", "math"),
    )
)
_UNTYPED = frozenset(["hidden", "password", "file", "image", "range", "color"])
"""Types of fields that show no text."""
_BESIDE_BOXES = ("li", "p", "td", "label")
"""Where a check box is one of a list or form; others switch menus."""
_HEADING = re.compile(r"h[1-6]")
_VERBATIM = ("pre", "listing", "xmp")
_LABELS = "text, foreignObject"
_FRONT = {"title": "title", "author": "author", "date": "created", "lang": "language"}
_SPACE = re.compile(r"[ \t\n\r\f]+")
_MOST_DEPTH = 200
"""Maximum nesting of elements that are read; a page has some tens."""
_FORMULA = re.compile(r"\$\$[^$]+\$\$|\$[^$\s](?:[^$]*[^$\s])?\$(?!\d)")
_DISPLAYED = re.compile(r"\s*\$\$([^$]+)\$\$\s*")
_ALONE = re.compile(r"\s*\$([^$]+)\$\s*")
"""A formula that is all of a paragraph: in Markdown, and in MathML."""
_MOST_SLOTS = 200_000
_VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)
_SELF_CLOSED = re.compile(r"<([A-Za-z][\w:.-]*+)((?:[^<>\"'/]|/(?!>)|\"[^\"<]*\"|'[^'<]*')*+)/>")
"""An empty element of XML. No attempt goes beyond the next ``<``: the time is linear."""
_SWALLOWING = re.compile(
    r"<(/?)(title|textarea|style|xmp|iframe|noembed|noframes|script|noscript|plaintext|select|svg|template|object|"
    r"dialog|datalist|canvas)\b",
    re.IGNORECASE,
)
"""Elements that hide or swallow all that follows where they are not closed."""
_DATA = re.compile(r"data:image/[\w.+-]+(;base64)?,", re.IGNORECASE)


def read_html(path: Path, password: str | None = None) -> Document:
    """A web page that was saved."""
    with path.open("rb") as file:
        charset = declared_charset(file.read(DECLARED))
    found = decoded(path, charset)
    return found.annotated(of_markup(found.text, is_xml=path.suffix.lower() == ".xhtml"))


def read_markdown(path: Path, password: str | None = None) -> Document:
    """CommonMark with tables, strikethrough and a head between ``---``."""
    from markdown_it import MarkdownIt

    read, info = decoded(path), DocumentInfo()
    text = read.text
    # Only with a key in its first line: `---` is also a horizontal rule.
    if front := re.match(r"---\n(?=[\w-]+[ \t]*:)(.*?)\n(?:---|\.\.\.)(?:\n|\Z)", text, re.DOTALL):
        text = text[front.end() :]
        found = re.findall(r"^(title|author|date|lang):[ \t]*(.+)$", front[1], re.MULTILINE)
        info = DocumentInfo(**{_FRONT[name]: value.strip().strip("\"'") for name, value in found})
    parser = MarkdownIt("commonmark", {"maxNesting": _MOST_DEPTH})  # it drops what is nested deeper
    # Before escapes: \_ and \\ of LaTeX would lose their backslash.
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.block.ruler.at("reference", _reference)
    parser.core.ruler.push("unclosed", _show_unclosed)
    document = of_markup(parser.enable(["table", "strikethrough"]).render(text), formulas=True)
    document.info = info
    return read.annotated(document)


def _formula(state: Any, silent: bool) -> bool:
    """A rule of markdown-it: LaTeX between dollars stays as it is written, with its backslashes and asterisks."""
    match = _FORMULA.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("text", "", 0).content = match[0]
    state.pos = match.end()
    return True


def _reference(state: Any, start: int, end: int, silent: bool) -> bool:
    """A rule of markdown-it: definitions of links; a footnote, ``[^1]: text``, is none, and stays as text."""
    from markdown_it.rules_block import reference

    at = state.bMarks[start] + state.tShift[start]
    return not state.src.startswith("[^", at) and reference(state, start, end, silent)


def _show_unclosed(state: Any) -> None:
    """A rule of markdown-it: tags that would swallow the text behind them are text where nothing closes them."""
    for token in state.tokens:
        closed: set[str] = set()
        # From the end: a tag is closed only by an end tag behind it.
        for child in reversed(token.children or [token]):
            if child.type not in ("html_inline", "html_block"):
                continue
            pieces, end = [], len(child.content)
            for match in reversed(list(_SWALLOWING.finditer(child.content))):
                if match[1]:
                    closed.add(match[2].lower())
                elif match[2].lower() not in closed:
                    pieces += [child.content[match.start() + 1 : end], "&lt;"]
                    end = match.start()
            child.content = child.content[:end] + "".join(reversed(pieces))


def as_html(text: str) -> str:
    """XHTML for a parser of HTML: empty elements get their end tag, CDATA sections are escaped."""
    first, *others = text.split("<![CDATA[")
    pieces = [first]
    for other in others:
        inside, end, rest = other.partition("]]>")
        pieces.append(escape(inside, quote=False) + rest if end else f"<![CDATA[{other}")
    return _SELF_CLOSED.sub(
        lambda match: match[0] if match[1].lower() in _VOID else f"<{match[1]}{match[2]}></{match[1]}>", "".join(pieces)
    )


def of_markup(
    text: str, *, formulas: bool = False, pictures: dict[str, bytes] | None = None, is_xml: bool = False
) -> Document:
    """The document that HTML describes.

    Args:
        text: HTML, or XHTML.
        formulas: Whether text between dollars is LaTeX.
        pictures: Images by their address, as in a book; others are not fetched.
        is_xml: It is XHTML, even without an XML declaration.
    """
    from selectolax.lexbor import LexborHTMLParser

    if is_xml or text.lstrip("\ufeff \t\n").startswith("<?xml"):
        # A parser of HTML takes <script/> or <title/> as open, and would swallow the rest of the page.
        text = as_html(text)
    tree = LexborHTMLParser(text)
    walk = _Walk(formulas, {} if pictures is None else pictures)
    root = tree.body or tree.root
    blocks = list(walk.blocks(root)) if root is not None else []
    parts = list(in_parts(blocks))
    parts[0].notes += unread({"hidden text element": walk.hidden, "drawing with text": walk.drawings})
    return Document(parts=parts, info=_info(tree))


def _info(tree: Any) -> DocumentInfo:
    title, root = tree.css_first("head title"), tree.root
    named = {
        str(each.attributes.get("name") or "").lower(): each.attributes.get("content") or ""
        for each in tree.css("meta")
    }
    return DocumentInfo(
        title=_SPACE.sub(" ", title.text()).strip() if title is not None else "",
        author=named.get("author", "").strip(),
        created=(named.get("date") or named.get("dcterms.created") or "").strip(),
        language=(root.attributes.get("lang") or "") if root is not None else "",
    )


class _Walk:
    """Converts elements to blocks. Content nested deeper than in any real page becomes text."""

    def __init__(self, formulas: bool, pictures: dict[str, bytes]) -> None:
        self._formulas = formulas
        self._pictures = pictures
        self.hidden = 0
        """Elements with text that the page hides."""
        self.drawings = 0

    def _is_left_out(self, node: Any) -> bool:
        if node.tag in _SILENT and not (node.tag == "dialog" and "open" in node.attributes):
            # The titles of icons are not text.
            self.drawings += node.tag == "svg" and any(each.text(deep=True).strip() for each in node.css(_LABELS))
            return True
        if not _is_hidden(node):
            return False
        self.hidden += bool(node.text(deep=True).strip())
        return True

    def blocks(
        self, node: Any, depth: int = 0, items: int = 0, item: Callable[[Any], Iterator[Block]] | None = None
    ) -> Iterator[Block]:
        """The blocks inside of an element.

        Args:
            node: The element.
            depth: Number of enclosing elements.
            items: Number of enclosing list items.
            item: Reads the items of a list, where the element is one.
        """
        inline = Inline()
        for child in node.iter(include_text=True):
            tag = child.tag
            if self._is_left_out(child):
                continue
            if tag == "-text" or (tag in _INLINE and not self._holds_blocks(child)):
                pictures: list[Any] = []
                self._collect(child, (), inline, depth, pictures)
                if pictures:
                    yield from self._flushed(inline, items)
                    inline = Inline()
                    yield from map(self._picture, pictures)
                continue
            if tag == "br":
                inline.add("\n")
                continue
            yield from self._flushed(inline, items)
            inline = Inline()
            if depth < _MOST_DEPTH:
                yield from item(child) if item and tag == "li" else self._block(child, tag, depth + 1, items)
            else:
                self._collect(child, (), inline, 0, [])
        yield from self._flushed(inline, items)

    def _block(self, node: Any, tag: str, depth: int, items: int) -> Iterator[Block]:
        if _HEADING.fullmatch(tag):
            pictures: list[Any] = []
            yield from heading(self._inline(node, pictures), int(tag[1]))
            yield from map(self._picture, pictures)
        elif tag in ("ul", "ol", "menu"):
            yield from self._list(node, tag, depth, items)
        elif tag == "table":
            yield from self._table(node, depth)
        elif tag in _VERBATIM:
            text = _preformatted(node).strip("\n")
            if text.strip():
                yield Block(label=Label.ALGORITHM, content=text, list_depth=items)
        elif tag == "figcaption":
            yield from self._inline(node).blocks(label=Label.FIGURE_TITLE)
        elif tag == "nav":  # menus of the site
            yield from self._inline(node).blocks(label=Label.HEADER, furniture=Furniture.PROVEN)
        else:
            yield from self.blocks(node, depth, items)

    def _list(self, node: Any, tag: str, depth: int, items: int) -> Iterator[Block]:
        start = node.attributes.get("start") or ""
        number = int(start) if re.fullmatch(r"-?\d{1,6}", start) else 1
        kind = node.attributes.get("type") or "1"

        def item(child: Any) -> Iterator[Block]:
            nonlocal number
            value = child.attributes.get("value") or ""
            number = int(value) if re.fullmatch(r"-?\d{1,6}", value) else number
            marker = f"{ordinal(number, kind)}." if tag == "ol" else "•"
            number += 1
            for position, block in enumerate(self.blocks(child, depth + 1, items + 1)):
                is_text = block.label is Label.TEXT and not block.list_item and not block.level
                # The marker goes to the text that an item begins with; the rest of it is inside of the item.
                yield from list_item(Inline.of(block), items, marker) if is_text and not position else (block,)

        yield from self.blocks(node, depth, items, item)

    def _table(self, node: Any, depth: int) -> Iterator[Block]:
        cells: list[Cell] = []
        pictures: list[Any] = []
        taken: set[tuple[int, int]] = set()
        row = -1
        caption = next((each for each in node.iter() if each.tag == "caption"), None)
        for line in _rows(node):
            row, column = row + 1, 0
            for each in line.iter():
                if each.tag not in ("td", "th"):
                    continue
                # As browsers do: a cell goes to the first column into which none from above reaches.
                while (row, column) in taken:
                    column += 1
                wide, high = _span(each, "colspan"), _span(each, "rowspan")
                # Spans are claims: one cell may announce millions of places.
                if len(taken) + wide * high > _MOST_SLOTS:
                    wide = high = 1
                taken.update((row + y, column + x) for y in range(high) for x in range(wide))
                cells.append(cell(self._inline(each, pictures), row, column, high, wide, header=each.tag == "th"))
                column += wide
        cells = [replace(each, row_span=min(each.row_span, row + 1 - each.row)) for each in cells]
        yield from tables(cells, _SPACE.sub(" ", caption.text()).strip() if caption is not None else "")
        yield from map(self._picture, pictures)

    def _inline(self, node: Any, pictures: list[Any] | None = None) -> Inline:
        inline = Inline()
        self._collect(node, (), inline, 0, [] if pictures is None else pictures, inside=True)
        return inline

    def _collect(
        self,
        node: Any,
        marks: Marks,
        inline: Inline,
        depth: int,
        pictures: list[Any],
        *,
        inside: bool = False,
        verbatim: bool = False,
    ) -> None:
        """Add the text of an element with its marks."""
        tag = node.tag
        if tag == "-text":
            if verbatim:
                inline.add(node.text_content or "", marks)
            else:
                self._add(node.text_content or "", marks, inline)
            return
        if self._is_left_out(node):
            return
        if tag == "br":
            inline.end_line()
            return
        if tag in ("img", "picture"):
            pictures += node.css("img")[:1]  # of the pictures for several sizes of a screen
            return
        if tag in ("input", "select"):
            self._add(_typed(node), marks, inline)
            return
        if tag == "math":
            if latex := latex_of_mathml(node):
                inline.formula(latex)
            return
        if tag in _MARKS:
            marks = (*marks, (_MARKS[tag], None))
        elif tag == "a" and safe_target(target := (node.attributes.get("href") or "").strip()):
            marks = (*marks, (Mark.LINK, target))
        if depth > _MOST_DEPTH:
            self._add(node.text(deep=True), marks, inline)
            return
        is_block = inside and depth > 0 and tag not in _INLINE
        if is_block and inline.last not in ("", "\n"):
            inline.end_line("\t" if tag in ("td", "th") else "\n")
        verbatim = verbatim or tag in _VERBATIM
        for child in node.iter(include_text=True):
            self._collect(child, marks, inline, depth + 1, pictures, inside=inside, verbatim=verbatim)
        if is_block and inline.last not in ("", "\n") and tag not in ("td", "th"):
            inline.end_line()

    def _add(self, text: str, marks: Marks, inline: Inline) -> None:
        text = _SPACE.sub(" ", text)
        if inline.last in ("", " ", "\n", "\t"):
            text = text.lstrip(" ")
        inline.add(text, marks)
        if self._formulas and _FORMULA.search(text):
            inline.has_formula = True

    def _flushed(self, inline: Inline, items: int) -> Iterator[Block]:
        pattern = _DISPLAYED if self._formulas else _ALONE
        display = pattern.fullmatch(inline.text) if self._formulas or inline.has_formula else None
        yield from (display_formula(display[1].strip()),) if display else inline.blocks(list_depth=items)

    def _holds_blocks(self, node: Any) -> bool:
        """Whether an inline element holds paragraphs or tables, as links around cards do."""
        return node.tag not in ("-text", "math", "select", "ruby") and any(
            _BLOCK.fullmatch(each.tag) for each in node.traverse()
        )

    def _picture(self, image: Any) -> Block:
        source, description = (image.attributes.get(name) or "" for name in ("src", "alt"))
        data = self._pictures.get(source)
        if data is None and (start := _DATA.match(source)):
            raw = unquote_to_bytes(source[start.end() :])
            try:
                data = base64.b64decode(raw, validate=False) if start[1] else raw
            except binascii.Error:
                data = b""
        name = source[:100] if data is None else ""
        return Block(label=Label.IMAGE, picture=Picture(data or b"", description.strip(), name))


def ordinal(number: int, kind: str) -> str:
    """A number as ``a``, ``A``, ``i``, ``I`` or ``1`` count."""
    if kind in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, rest = divmod(number - 1, 26)
            letters = chr(ord(kind) + rest) + letters
        return letters
    if kind in ("i", "I") and 0 < number < 4000:
        signs = zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
            strict=True,
        )
        text = ""
        for value, sign in signs:
            text, number = text + sign * (number // value), number % value
        return text.upper() if kind == "I" else text
    return str(number)


def _typed(node: Any) -> str:
    """What a field of a form shows."""
    if node.tag == "select":
        chosen = node.css("option[selected]") or ([] if "multiple" in node.attributes else node.css("option")[:1])
        return ", ".join(each.text(deep=True).strip() for each in chosen)
    kind = (node.attributes.get("type") or "text").lower()
    if kind in ("checkbox", "radio"):
        is_beside = node.parent is not None and node.parent.tag in _BESIDE_BOXES
        return ("☒ " if "checked" in node.attributes else "☐ ") if is_beside else ""
    return "" if kind in _UNTYPED else f" {node.attributes.get('value') or ''} "


def _preformatted(node: Any, depth: int = 0) -> str:
    """The text of an element with its spaces; ``br`` ends a line, and so do ``div`` and ``p``."""
    if depth > _MOST_DEPTH:
        return str(node.text(deep=True))
    text = ""
    for child in node.iter(include_text=True):
        if child.tag == "-text":
            text += child.text_content or ""
        elif child.tag == "br":
            text += "\n"
        elif child.tag not in _SILENT and not _is_hidden(child):
            text += _preformatted(child, depth + 1)
            text += "\n" if child.tag in ("div", "p") and not text.endswith("\n") else ""
    return text


def _rows(table: Any) -> Iterator[Any]:
    """The rows of a table, not those of tables in its cells."""
    for child in table.iter():
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from (row for row in child.iter() if row.tag == "tr")


def _span(node: Any, name: str) -> int:
    value = node.attributes.get(name) or ""
    return min(max(int(value), 1), MAX_COLUMN_SPAN) if re.fullmatch(r"\d{1,5}", value) else 1


def _is_hidden(node: Any) -> bool:
    if node.tag == "-text":
        return False
    attributes = node.attributes
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return "hidden" in attributes or "display:none" in style or attributes.get("type") == "hidden"
