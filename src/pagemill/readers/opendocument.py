"""OpenDocument files (ODT, ODS, ODP), a ZIP of XML: written as HTML, which the reader of web pages reads.

Specification: https://docs.oasis-open.org/office/OpenDocument/v1.3/
"""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo, Furniture, Mark
from pagemill.errors import CorruptInputError, EncryptedError, TooLargeError
from pagemill.readers.base import Block, Document, Inline, Part, in_parts
from pagemill.readers.html import of_markup
from pagemill.readers.packages import check_package

_NAMES = {
    "urn:oasis:names:tc:opendocument:xmlns:" + name: short
    for name, short in (
        *(("text:1.0", "text"), ("table:1.0", "table"), ("drawing:1.0", "draw"), ("style:1.0", "style")),
        *(("office:1.0", "office"), ("xsl-fo-compatible:1.0", "fo"), ("svg-compatible:1.0", "svg")),
        *(("presentation:1.0", "presentation"), ("meta:1.0", "meta")),
    )
} | {"http://purl.org/dc/elements/1.1/": "dc", "http://www.w3.org/1999/xlink": "xlink"}
_SPACES = {short: name for name, short in _NAMES.items()}
_INFO = {"title": "dc:title", "author": "meta:initial-creator", "created": "meta:creation-date"}
_INFO |= {"modified": "dc:date", "language": "dc:language"}
_SILENT = frozenset(("office:forms", "text:tracked-changes", "text:table-of-content-source", "presentation:notes"))
_MARKS = (
    ("b", "fo:font-weight", ("bold", "600", "700", "800", "900")),
    ("i", "fo:font-style", ("italic", "oblique")),
    ("s", "style:text-line-through-style", ("solid", "dotted", "dash", "wave")),
)
_MOST_DEPTH = 100
_MOST_BASES = 20
"""Styles that are based on each other."""
_MOST_REPEATED = 1_000
"""Cells or rows that are alike."""
_MOST_CELLS = 600_000


def read(path: Path, password: str | None = None) -> Document:
    """Read a text, a sheet or a presentation."""
    from lxml import etree

    warnings = check_package(path)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
                raise EncryptedError("the document is encrypted", remedy="Save it without a password.")
            found = {name: f"{name}.xml" for name in ("styles", "content", "meta") if f"{name}.xml" in names}
            roots: dict[str, Any] = {key: etree.fromstring(archive.read(name), parser) for key, name in found.items()}
            members = {name: archive.read(name) for name in names if name.startswith(("Pictures/", "Object"))}
        writer = _Writer(roots, members, parser)
        parts = list(writer.parts()) or [Part()]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, etree.XMLSyntaxError) as error:
        raise CorruptInputError(f"the document is damaged: {error}", remedy="Save it again.") from error
    parts[0].warnings += warnings
    parts[0].notes += [f"{writer.hidden:,} runs of hidden text are not read"] if writer.hidden else []
    meta = roots.get("meta")
    told = {key: meta.findtext(f".//{name}", "", _SPACES) for key, name in _INFO.items()} if meta is not None else {}
    return Document(parts=parts, info=DocumentInfo(**{key: value.strip() for key, value in told.items()}))


def _name(tag: Any) -> str:
    """An element's or attribute's name with its usual prefix."""
    space, _, local = str(tag).removeprefix("{").rpartition("}")
    return f"{_NAMES.get(space, '')}:{local}"


class _Writer:
    def __init__(self, roots: dict[str, Any], members: dict[str, bytes], parser: Any) -> None:
        self._roots, self._members, self._parser = roots, members, parser
        self._body = roots["content"].find("office:body", _SPACES)[0]
        self._styles = {
            (_name(each.tag), each.get(f"{{{_SPACES['style']}}}name")): each
            for root in roots.values()
            for each in root.iter(
                *(f"{{{_SPACES[space]}}}{kind}" for space, kind in (("style", "style"), ("text", "list-style")))
            )
        }
        self._deleted = {
            _get(each, "text:id"): each.find("text:deletion", _SPACES)
            for each in roots["content"].iterfind(".//text:changed-region", _SPACES)
        }
        self._has_title = any(
            _get(each, "text:style-name") == "Title" for each in self._body.iterfind("text:p", _SPACES)
        )
        self._beside: list[Block] = []
        """Notes, comments and deleted text of the page."""
        self._counts: Counter[tuple[str, int]] = Counter()
        """Items so far of each numbering."""
        self._cells = self.hidden = 0

    def parts(self) -> Iterator[Part]:
        """The pages: slides, sheets, or pieces of a text."""
        kind = _name(self._body.tag)
        if kind == "office:text":
            yield from in_parts([*self._running(), *self._blocks(self._body)])
        for page in self._body.iterfind("draw:page", _SPACES):
            notes = page.find("presentation:notes", _SPACES)
            said = Inline(
                "\n".join("".join(each.itertext()) for each in notes.iterfind(".//text:p", _SPACES))
                if notes is not None
                else ""
            )
            note = said.block(label=Label.FOOTNOTE)
            part = Part(blocks=[*self._blocks(page), *([note] if note else [])])
            part.notes += ["the slide is hidden"] if self._style(page, "presentation:visibility") == "hidden" else []
            yield part
        sheets = self._body.findall("table:table", _SPACES) if kind == "office:spreadsheet" else ()
        for table in sheets:
            name = _get(table, "table:name")
            title = f"<h2>{escape(name)}</h2>" if len(sheets) > 1 else ""
            for part in in_parts(self._blocks(table, title + self._write(table, 0)), metadata={"sheet": name}):
                is_hidden = self._style(table, "table:display") == "false"
                part.notes += [f"the sheet {name!r} is hidden"] if is_hidden else []
                yield part

    def _blocks(self, node: Any, markup: str | None = None) -> list[Block]:
        markup = self._inside(node, 0) if markup is None else markup
        found = [block for part in of_markup(markup, pictures=self._members).parts for block in part.blocks]
        found, self._beside = found + self._beside, []
        return found

    def _running(self) -> Iterator[Block]:
        for kind, label in (("header", Label.HEADER), ("footer", Label.FOOTER)):
            nodes = self._roots["styles"].iterfind(f".//style:{kind}", _SPACES) if "styles" in self._roots else ()
            for text in dict.fromkeys("\n".join("".join(p.itertext()) for p in node) for node in nodes):
                block = Inline(text).block(label=label, furniture=Furniture.PROVEN)
                yield from (block,) if block else ()

    def _inside(self, node: Any, depth: int) -> str:
        if depth > _MOST_DEPTH:
            raise TooLargeError("its elements are nested too deep", remedy="Save it again.")
        pieces = [escape(node.text or "")]
        for child in node:
            is_element = isinstance(child.tag, str)  # else a comment or a reference to an entity
            pieces += (self._write(child, depth + 1) if is_element else "", escape(child.tail or ""))
        return "".join(pieces)

    def _write(self, node: Any, depth: int) -> str:
        name = _name(node.tag)
        if name in _SILENT:
            return ""
        if name in ("text:s", "text:tab", "text:line-break"):
            return "<br>" if name == "text:line-break" else " "
        if name == "table:table":
            return f"<table>{''.join(self._rows(node, depth + 1, 'td'))}</table>"
        if name == "draw:object":
            return self._formula(posixpath.normpath(f"{_get(node, 'xlink:href')}/content.xml"))
        if name in ("text:note", "office:annotation", "text:change"):
            return self._note(node, name, depth)
        inside = self._inside(node, depth + 1)
        if name == "text:h" or (name == "text:p" and _get(node, "text:style-name") == "Title"):
            level = min(int(_get(node, "text:outline-level") or 1) + self._has_title, 6) if name == "text:h" else 1
            return f"<h{level}>{inside}</h{level}>"
        if name == "draw:frame":
            return self._frame(node, inside)
        if name == "text:list":
            return self._list(node, inside)
        if name == "text:span":
            if self._style(node, "text:display") == "none":
                self.hidden += 1
                return ""
            for tag in self._marks(node):
                inside = f"<{tag}>{inside}</{tag}>"
            return inside
        tag = {"text:p": "p", "text:list-item": "li", "text:list-header": "div"}.get(name, "")
        if name == "text:a":
            return f'<a href="{escape(_get(node, "xlink:href"))}">{inside}</a>'
        start = _get(node, "text:start-value")
        value = f' value="{start}"' if tag == "li" and start.isdecimal() else ""
        return f"<{tag}{value}>{inside}</{tag}>" if tag else inside

    def _frame(self, node: Any, inside: str) -> str:
        """A frame shows the first of its contents; the others are the same for other programs."""
        said = " ".join(
            each.text or "" for each in node.iterchildren("*") if _name(each.tag) in ("svg:title", "svg:desc")
        )
        picture = node.find("draw:image", _SPACES)
        if picture is not None and node.find("draw:object", _SPACES) is None:
            source = posixpath.normpath(_get(picture, "xlink:href") or "linked")
            return f'<img src="{escape(source)}" alt="{escape(said.strip())}">'
        return f"<h2>{inside}</h2>" if _get(node, "presentation:class") == "title" else f"<div>{inside}</div>"

    def _list(self, node: Any, inside: str) -> str:
        level, style, above = 0, _get(node, "text:style-name"), node.getparent()
        while above is not None:
            is_list = _name(above.tag) == "text:list"
            level, style = level + is_list, style or (_get(above, "text:style-name") if is_list else "")
            above = above.getparent()
        shapes = self._styles.get(("text:list-style", style), ())
        shape = next((each for each in shapes if _get(each, "text:level") == str(level + 1)), None)
        if shape is None or _name(shape.tag) != "text:list-level-style-number":
            return f"<ul>{inside}</ul>"
        goes_on = _get(node, "text:continue-numbering") == "true" or _get(node, "text:continue-list")
        first = self._counts[style, level] + 1 if goes_on else 1
        self._counts[style, level] = first - 1 + sum(_name(each.tag) == "text:list-item" for each in node)
        return f'<ol type="{escape(_get(shape, "style:num-format") or "1")}" start="{first}">{inside}</ol>'

    def _rows(self, node: Any, depth: int, tag: str) -> Iterator[str]:
        for child in node.iterchildren("*"):
            name = _name(child.tag)
            if name == "table:table-header-rows":
                yield from self._rows(child, depth, "th")
            elif name in ("table:table-rows", "table:table-row-group"):
                yield from self._rows(child, depth, tag)
            elif name == "table:table-row" and (line := "".join(self._line(child, depth, tag))):
                yield f"<tr>{line}</tr>" * min(_count(child, "table:number-rows-repeated"), _MOST_REPEATED)

    def _line(self, node: Any, depth: int, tag: str) -> Iterator[str]:
        empty = 0
        for each in node.iterchildren("*"):
            many = _count(each, "table:number-columns-repeated")
            is_covered = _name(each.tag) != "table:table-cell"
            if is_covered or not (
                any(map(str.strip, each.itertext())) or each.find(".//draw:frame", _SPACES) is not None
            ):
                empty += 0 if is_covered else many  # those at the end reach to the edge of the sheet
                continue
            text = self._inside(each, depth)
            many = min(many, _MOST_REPEATED)
            self._cells += many + empty
            if self._cells > _MOST_CELLS:
                raise TooLargeError(f"its tables have over {_MOST_CELLS:,} cells", remedy="Split it.")
            spans = (_count(each, f"table:number-{kind}-spanned") for kind in ("rows", "columns"))
            yield "<td></td>" * empty + '<{0} rowspan="{2}" colspan="{3}">{1}</{0}>'.format(tag, text, *spans) * many
            empty = 0

    def _note(self, node: Any, name: str, depth: int) -> str:
        author, mark, label = node.findtext("dc:creator", "", _SPACES), "", Label.ASIDE_TEXT
        source, said = node, Inline(f"{author}: " if author else "")
        if name == "text:note":
            mark, label = node.findtext("text:note-citation", "*", _SPACES), Label.FOOTNOTE
            source = node.find("text:note-body", _SPACES)
            said.add(mark, [(Mark.SUPERSCRIPT, None)])
            said.add(" ")
        elif name == "text:change":
            source = self._deleted.get(_get(node, "text:change-id"))
        lines = (
            [each for each in source.iter() if _name(each.tag) in ("text:p", "text:h")] if source is not None else []
        )
        text = "\n".join("".join(each.itertext()) for each in lines)
        said.add(text, [(Mark.STRIKE, None)] if name == "text:change" else ())
        self._beside += [block] if text.strip() and (block := said.block(label=label)) else []
        return f"<sup>{escape(mark)}</sup>" if mark else ""

    def _formula(self, name: str) -> str:
        """A formula as LibreOffice's own language has it; it stores no LaTeX."""
        from lxml import etree

        if name not in self._members:
            return ""
        root: Any = etree.fromstring(self._members[name], self._parser)
        written = next((each.text for each in root.iter() if _name(each.tag).endswith(":annotation")), None)
        return escape(written or "")

    def _style(self, node: Any, name: str) -> str:
        """A property of an element, by its style or those that it is based on."""
        style = next((value for key, value in node.attrib.items() if _name(key).endswith(":style-name")), None)
        for _ in range(_MOST_BASES):
            found = self._styles.get(("style:style", style))
            if found is None:
                break
            if own := next((value for each in found if (value := _get(each, name))), ""):
                return own
            style = _get(found, "style:parent-style-name")
        return ""

    def _marks(self, node: Any) -> Iterator[str]:
        yield from (tag for tag, name, values in _MARKS if self._style(node, name) in values)
        raised = self._style(node, "style:text-position").split(" ")[0]
        if raised not in ("", "0%"):
            yield "sub" if raised.startswith(("sub", "-")) else "sup"


def _get(node: Any, name: str) -> str:
    space, _, local = name.partition(":")
    return str(node.get(f"{{{_SPACES[space]}}}{local}") or "")


def _count(node: Any, name: str) -> int:
    value = _get(node, name)
    return max(int(value), 1) if value.isdecimal() and len(value) < 9 else 1
