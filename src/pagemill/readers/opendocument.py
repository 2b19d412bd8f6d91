"""OpenDocument files (ODT, ODS, ODP), a ZIP of XML: written as HTML, which the reader of web pages reads.

Specification: https://docs.oasis-open.org/office/OpenDocument/v1.3/
"""

from __future__ import annotations

import posixpath
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import Any

from pagemill.document.labels import Label
from pagemill.document.page import DocumentInfo, Furniture, Mark
from pagemill.errors import CorruptInputError, EncryptedError, TooLargeError
from pagemill.readers.base import Block, Document, Inline, Part, Picture, in_parts, note, unread
from pagemill.readers.html import of_markup
from pagemill.readers.packages import DAMAGED, check_package, xml_root

_NAMES = {
    "urn:oasis:names:tc:opendocument:xmlns:" + name: short
    for name, short in (
        *(("text:1.0", "text"), ("table:1.0", "table"), ("drawing:1.0", "draw"), ("style:1.0", "style")),
        *(("office:1.0", "office"), ("xsl-fo-compatible:1.0", "fo"), ("svg-compatible:1.0", "svg")),
        *(("presentation:1.0", "presentation"), ("meta:1.0", "meta"), ("form:1.0", "form"), ("chart:1.0", "chart")),
    )
} | {"http://purl.org/dc/elements/1.1/": "dc", "http://www.w3.org/1999/xlink": "xlink"}
_NAMES |= {"http://www.w3.org/XML/1998/namespace": "xml", "http://www.w3.org/1998/Math/MathML": "math"}
_SPACES = {short: name for name, short in _NAMES.items()}
_INFO = {"title": "dc:title", "author": "meta:initial-creator", "created": "meta:creation-date"}
_INFO |= {"modified": "dc:date", "language": "dc:language"}
_SILENT = frozenset(("office:forms", "text:tracked-changes", "text:table-of-content-source", "presentation:notes"))
_SILENT |= {"office:binary-data", "table:shapes"}
_VALUES = ("string-value", "value", "date-value", "time-value", "boolean-value")
"""Values of a cell without text."""
_FALLBACKS = ("draw:object-ole", "draw:plugin", "draw:applet", "draw:floating-frame")
"""Contents of other programs, of which a frame also has a picture."""
_DECLARED = {"header": Label.HEADER, "footer": Label.FOOTER, "date-time": Label.FOOTER}
"""Declared texts that slides refer to by name."""
_BREAKS = {"text:s": " ", "text:tab": "\t", "text:line-break": "\n"}
_MARKS = (
    ("b", "fo:font-weight", ("bold", "600", "700", "800", "900")),
    ("i", "fo:font-style", ("italic", "oblique")),
    ("s", "style:text-line-through-style", ("solid", "dotted", "dash", "wave")),
)
_MOST_DEPTH = 100
_MOST_BASES = 20
"""Styles that are based on each other."""
_NO_FIELDS = ("form:hidden", "form:option", "form:item", "form:password")
_MOST_REPEATED = 1_000
"""Maximum repeated cells or rows."""
_MOST_CELLS = 600_000
_MOST_MARKUP = 32 * 2**20
"""Characters of HTML that rows and cells which are alike may become. Not measured."""


def read(path: Path, password: str | None = None) -> Document:
    """Read a text, a sheet or a presentation."""
    from lxml import etree

    warnings = check_package(path)

    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            # The archive itself is not encrypted, only its members are: without this check they would be damaged XML.
            if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
                raise EncryptedError("the document is encrypted", remedy="Save it without a password.")
            found = {name: f"{name}.xml" for name in ("styles", "content", "meta") if f"{name}.xml" in names}
            # huge_tree lifts lxml's own limits: check_package has bounded the size of each member, and _MOST_DEPTH
            # bounds the depth.
            roots = {key: xml_root(archive.read(name), huge_tree=True) for key, name in found.items()}
            members: dict[str, bytes] = {}
            for name in names:
                with suppress(*DAMAGED):  # a warning names it already
                    members |= {name: archive.read(name)} if name.startswith(("Pictures/", "Object")) else {}
        writer = _Writer(roots, members)
        parts = list(writer.parts()) or [Part()]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, etree.XMLSyntaxError) as error:
        raise CorruptInputError(f"the document is damaged: {error}", remedy="Save it again.") from error
    writer.lost["form field"] += sum(map(bool, writer.fields.values()))
    parts[0].warnings += warnings
    parts[0].notes += unread(writer.lost)
    meta = roots.get("meta")
    metadata = (
        {key: meta.findtext(f".//{name}", "", _SPACES) for key, name in _INFO.items()} if meta is not None else {}
    )
    return Document(parts=parts, info=DocumentInfo(**{key: value.strip() for key, value in metadata.items()}))


def _name(tag: Any) -> str:
    """An element's or attribute's name with its usual prefix."""
    space, _, local = str(tag).removeprefix("{").rpartition("}")
    return f"{_NAMES.get(space, '')}:{local}"


class _Writer:
    def __init__(self, roots: dict[str, Any], members: dict[str, bytes]) -> None:
        self._roots, self._members = roots, members
        self._body = roots["content"].find("office:body", _SPACES)[0]
        self._styles = {
            (_name(each.tag), each.get(f"{{{_SPACES['style']}}}name")): each
            for root in roots.values()
            for each in root.iter(*map(_tag, ("style:style", "text:list-style")))
        }
        self._deleted = {
            _get(each, "text:id") or _get(each, "xml:id"): each.find("text:deletion", _SPACES)
            for each in roots["content"].iterfind(".//text:changed-region", _SPACES)
        }
        self._has_title = any(
            _get(each, "text:style-name") == "Title" for each in self._body.iterfind("text:p", _SPACES)
        )
        self._masters = {_get(design, "style:name"): design for design in self._designs("style:master-page")}
        self._declared = {
            (_name(each.tag), _get(each, "presentation:name")): _plain(each)
            for each in self._body.iterchildren(*(_tag(f"presentation:{kind}-decl") for kind in _DECLARED))
        }
        """Headers and footers of slides."""
        self._beside: list[Block] = []
        """Notes, comments and deleted text of the page."""
        self._counts: Counter[tuple[str, int]] = Counter()
        """Items so far of each numbering."""
        self.fields = {
            _get(each, "xml:id") or _get(each, "form:id") or str(number): _field(each)
            for forms in roots["content"].iterfind(".//office:forms", _SPACES)
            for number, each in enumerate(forms.iter("{*}*"))
            if _name(each.tag) not in _NO_FIELDS
        }
        """What fields of forms show, until their place in the text is found."""
        self.lost: Counter[str] = Counter()
        self._cells = self._repeated = 0

    def parts(self) -> Iterator[Part]:
        """The pages: slides, sheets, or pieces of a text."""
        kind = _name(self._body.tag)
        if kind == "office:text":
            yield from in_parts([*self._running(), *self._blocks(self._body)])
        for page in self._body.iterfind("draw:page", _SPACES):
            # Notes hold a small picture of the slide, too: their text alone is taken.
            notes = page.find("presentation:notes", _SPACES)
            own = Inline("" if notes is None else "".join(map(_plain, notes))).blocks(label=Label.FOOTNOTE)
            part = Part(blocks=[*self._of_master(page), *self._blocks(page), *own])
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
        # By way of HTML: lists, tables with spans and links then have one implementation, that of web pages.
        found = [block for part in of_markup(markup, pictures=self._members).parts for block in part.blocks]
        found, self._beside = found + self._beside, []
        return found

    def _running(self) -> Iterator[Block]:
        for kind, label in (("header", Label.HEADER), ("footer", Label.FOOTER)):
            # Left and first pages may have heads of their own, mostly equal ones: each text once.
            names = (f"style:{kind}{of}" for of in ("", "-left", "-first"))
            nodes = [design for name in names for design in self._designs(name)]
            for text in dict.fromkeys(map(_plain, nodes)):
                yield from Inline(text).blocks(label=label, furniture=Furniture.PROVEN)
            pictures = (picture for node in nodes for picture in self._pictures(node))
            yield from {picture.picture and picture.picture.name: picture for picture in pictures}.values()

    def _pictures(self, node: Any) -> Iterator[Block]:
        for each in node.iter(_tag("draw:image")):
            name = posixpath.normpath(_get(each, "xlink:href"))
            yield Block(label=Label.IMAGE, picture=Picture(self._members.get(name, b""), name=name))

    def _designs(self, name: str) -> Iterator[Any]:
        """Elements of the file of styles."""
        if "styles" in self._roots:
            yield from self._roots["styles"].iterfind(f".//{name}", _SPACES)

    def _of_master(self, page: Any) -> Iterator[Block]:
        """The header and footer of a slide, and, where its master is used first, what that shows on all slides."""
        for kind, label in _DECLARED.items():
            text = self._declared.get((f"presentation:{kind}-decl", _get(page, f"presentation:use-{kind}-name")), "")
            is_shown = self._style(page, f"presentation:display-{kind}") != "false"
            yield from Inline(text if is_shown else "").blocks(label=label, furniture=Furniture.PROVEN)
        # Popped: what a master shows on all its slides is read on the first of them only.
        master = self._masters.pop(_get(page, "draw:master-page-name"), ())
        own = (each for each in master if _name(each.tag).startswith("draw:") and not _get(each, "presentation:class"))
        yield from Inline("".join(map(_plain, own))).blocks(label=Label.HEADER, furniture=Furniture.PROVEN)

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
        if name == "text:ruby-text":  # it would be in the middle of the word
            self.lost["ruby reading"] += bool(_plain(node).strip())
            return ""
        if name in ("text:s", "text:tab", "text:line-break"):
            return "<br>" if name == "text:line-break" else " "
        if name == "table:table":
            shapes = "".join(self._inside(each, depth + 1) for each in node.iterfind("table:shapes", _SPACES))
            return f"<table>{''.join(self._rows(node, depth + 1, 'td', []))}</table>{shapes}"
        if name == "draw:frame":
            return self._frame(node, depth)
        if name == "draw:control":
            return escape(self.fields.pop(_get(node, "draw:control"), ""))
        if name in ("text:note", "office:annotation", "text:change"):
            return self._note(node, name)
        inside = self._inside(node, depth + 1)
        is_hidden = name == "text:section" and _get(node, "text:display") == "none"
        if is_hidden or (name == "text:hidden-text" and not inside and _get(node, "text:string-value")):
            self.lost["hidden run"] += 1
            return ""
        if name == "text:h" or (name == "text:p" and _get(node, "text:style-name") == "Title"):
            level = min(_count(node, "text:outline-level") + self._has_title, 6) if name == "text:h" else 1
            return f"<h{level}>{inside}</h{level}>"
        if name == "text:list":
            return self._list(node, inside)
        if name == "text:span":
            if self._style(node, "text:display") == "none":
                self.lost["hidden run"] += 1
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

    def _frame(self, node: Any, depth: int) -> str:
        """The first content of a frame that can be shown; the others are the same for other programs."""
        description = " ".join(
            each.text or "" for each in node.iterchildren("*") if _name(each.tag) in ("svg:title", "svg:desc")
        )
        lost = 0
        for each in node.iterchildren("*"):
            kind = _name(each.tag)
            if kind == "draw:image":
                data = each.findtext("office:binary-data", "", _SPACES)
                source = posixpath.normpath(_get(each, "xlink:href") or "linked")
                source = f"data:image/png;base64,{''.join(data.split())}" if data else source
                return (
                    f'<img src="{escape(source)}" alt="{escape(description.strip())}">{self._inside(each, depth + 1)}'
                )
            inside = self._object(each, depth) if kind == "draw:object" else ""
            if kind in _FALLBACKS or (kind == "draw:object" and not inside):
                lost += 1
            elif not kind.startswith("svg:"):
                if inside.startswith("<math"):
                    return inside
                inside = inside or self._write(each, depth + 1)
                return f"<h2>{inside}</h2>" if _get(node, "presentation:class") == "title" else f"<div>{inside}</div>"
        self.lost["embedded object"] += lost > 0
        return ""

    def _list(self, node: Any, inside: str) -> str:
        level, style, above = 0, _get(node, "text:style-name"), node.getparent()
        while above is not None:
            is_list = _name(above.tag) == "text:list"
            level, style = level + is_list, style or (_get(above, "text:style-name") if is_list else "")
            above = above.getparent()
        shapes = self._styles.get(("text:list-style", style), ())
        shape = next((shape for shape in shapes if _get(shape, "text:level") == str(level + 1)), None)
        if shape is None or _name(shape.tag) != "text:list-level-style-number":
            return f"<ul>{inside}</ul>"
        goes_on = _get(node, "text:continue-numbering") == "true" or _get(node, "text:continue-list")
        first = self._counts[style, level] + 1 if goes_on else 1
        self._counts[style, level] = first - 1 + sum(_name(each.tag) == "text:list-item" for each in node)
        return f'<ol type="{escape(_get(shape, "style:num-format") or "1")}" start="{first}">{inside}</ol>'

    def _rows(self, node: Any, depth: int, tag: str, spans: list[int]) -> Iterator[str]:
        """The rows of a table.

        Args:
            node: The table, or a group of its rows.
            depth: Elements around it.
            tag: Tag of its cells.
            spans: Number of rows that cells reach into, so that empty rows there are kept.
        """
        for child in node.iterchildren("*"):
            name = _name(child.tag)
            if name == "table:table-header-rows":
                yield from self._rows(child, depth, "th", spans)
            elif name in ("table:table-rows", "table:table-row-group"):
                yield from self._rows(child, depth, tag, spans)
            elif name == "table:table-row":
                cells, many = self._cells, _count(child, "table:number-rows-repeated")
                line, high = self._line(child, depth, tag)
                reach = spans.pop() if spans else 0
                if line:
                    yield self._alike(f"<tr>{line}</tr>", many, self._cells - cells, "repeated row")
                else:
                    yield "<tr></tr>" * min(many, reach)
                spans.append(max(reach - many, high - 1))

    def _line(self, node: Any, depth: int, tag: str) -> tuple[str, int]:
        """The cells of a row, and how many rows the highest of them has."""
        pieces, empty, highest = [], 0, 1
        for each in node.iterchildren("*"):
            many = _count(each, "table:number-columns-repeated")
            if _name(each.tag) != "table:table-cell":
                self.lost["covered cell"] += bool(_plain(each).strip())
                continue
            text = self._inside(each, depth)
            if not text.replace("<p></p>", "").strip():
                text = escape(next((value for name in _VALUES if (value := _get(each, f"office:{name}"))), ""))
            high, wide = (_count(each, f"table:number-{kind}-spanned") for kind in ("rows", "columns"))
            highest = max(highest, high)
            if not text and high == wide == 1:
                empty += many  # those at the end reach to the edge of the sheet
                continue
            self._cells += 1 + empty
            if self._cells > _MOST_CELLS:
                raise TooLargeError(f"its tables have over {_MOST_CELLS:,} cells", remedy="Split it.")
            markup = f'<{tag} rowspan="{high}" colspan="{wide}">{text}</{tag}>'
            pieces.append("<td></td>" * empty + self._alike(markup, many, 1, "repeated cell"))
            empty = 0
        return "".join(pieces), highest

    def _alike(self, markup: str, many: int, cells: int, what: str) -> str:
        """Rows or cells that are alike, as many as there may be; those that are left out are counted."""
        most = min((_MOST_MARKUP - self._repeated) // len(markup), (_MOST_CELLS - self._cells) // max(cells, 1) + 1)
        times = max(min(many, _MOST_REPEATED, most), 1)
        self._cells += cells * (times - 1)
        self._repeated += len(markup) * (times - 1)
        self.lost[what] += many - times
        return markup * times

    def _note(self, node: Any, name: str) -> str:
        author, mark, label, source = node.findtext("dc:creator", "", _SPACES), "", Label.ASIDE_TEXT, node
        if name == "text:note":
            mark, label = node.findtext("text:note-citation", "*", _SPACES), Label.FOOTNOTE
            source = node.find("text:note-body", _SPACES)
        elif name == "text:change":
            source = self._deleted.get(_get(node, "text:change-id"))
        if source is not None:
            text = Inline()
            text.add(_plain(source).strip(), [(Mark.STRIKE, None)] if name == "text:change" else ())
            self._beside += note(text, label, number=mark, author=author) if text.last else ()
            self._beside += self._pictures(source)
        return f"<sup>{escape(mark)}</sup>" if mark else ""

    def _object(self, node: Any, depth: int) -> str:
        """A formula, or the data of a chart."""
        from lxml import etree

        root = next(node.iterchildren("*"), None)
        if root is None:
            data = self._members.get(posixpath.normpath(f"{_get(node, 'xlink:href')}/content.xml"), b"")
            try:
                root = xml_root(data, huge_tree=True)
            except etree.XMLSyntaxError:
                return ""
        if _name(root.tag) == "math:math":
            return _markup(root)
        titles = (_plain(each).strip() for each in root.iter(*map(_tag, ("chart:title", "chart:subtitle"))))
        tables = (self._write(each, depth + 1) for each in root.iterfind(".//chart:chart/table:table", _SPACES))
        return "".join(f"<figcaption>{escape(title)}</figcaption>" for title in titles if title) + "".join(tables)

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


def _tag(name: str) -> str:
    """The full name of an element or attribute."""
    space, _, local = name.partition(":")
    return f"{{{_SPACES[space]}}}{local}"


def _get(node: Any, name: str) -> str:
    return str(node.get(_tag(name)) or "")


def _markup(node: Any) -> str:
    """A formula as a web page has it."""
    if not isinstance(node.tag, str):
        return ""
    name = str(node.tag).rpartition("}")[2]
    about = "".join(f' {key}="{escape(value)}"' for key, value in node.attrib.items() if key.isalpha())
    inside = "".join(f"{_markup(each)}{escape(each.tail or '')}" for each in node)
    return f"<{name}{about}>{escape(node.text or '')}{inside}</{name}>"


def _plain(node: Any) -> str:
    """The paragraphs of an element as lines, without what is beside them."""
    if not isinstance(node.tag, str) or (name := _name(node.tag)) in ("dc:creator", "dc:date", *_SILENT):
        return ""
    if name in _BREAKS:
        return _BREAKS[name]
    texts = [(node.text or "", ""), *((child.tail or "", _plain(child)) for child in node)]
    # White space with a line feed is the indent of the XML.
    text = "".join(inner + ("" if "\n" in outer and not outer.strip() else outer) for outer, inner in texts)
    return f"{text}\n" if name in ("text:p", "text:h") else text


def _field(node: Any) -> str:
    """What a field of a form shows."""
    name, label = _name(node.tag), _get(node, "form:label")
    if name in ("form:checkbox", "form:radio"):
        is_set = _get(node, "form:current-state") == "checked" or _get(node, "form:current-selected") == "true"
        return f"{'☒' if is_set else '☐'} {label}"
    if name == "form:listbox":
        chosen = (each for each in node if _get(each, "form:current-selected") == "true")
        return ", ".join(_get(each, "form:label") for each in chosen)
    return _get(node, "form:current-value") or _get(node, "form:value") or label


def _count(node: Any, name: str) -> int:
    value = _get(node, name)
    return max(int(value), 1) if value.isdecimal() and len(value) < 9 else 1
