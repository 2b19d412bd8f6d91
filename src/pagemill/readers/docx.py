"""Word documents (DOCX), through python-docx: its package, styles and elements."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import msgspec

from pagemill.document.labels import Label
from pagemill.document.marks import safe_target
from pagemill.document.page import DocumentInfo, Furniture, Mark
from pagemill.document.shown import count
from pagemill.errors import CorruptInputError, PagemillError
from pagemill.readers.base import (
    Block,
    Document,
    Inline,
    Marks,
    Nesting,
    Part,
    Picture,
    cell,
    displayed,
    heading,
    in_parts,
    list_item,
    note,
    tables,
    unread,
)
from pagemill.readers.charts import CHARTS, chart_blocks
from pagemill.readers.diagrams import DATA, RELATIONS, diagram_blocks
from pagemill.readers.fields import field_link, field_text
from pagemill.readers.html import of_markup, ordinal
from pagemill.readers.mail import of_web_archive
from pagemill.readers.omml import latex_of_omml
from pagemill.readers.packages import DAMAGED, check_package, refuse_strict, unlocked, without_dangling
from pagemill.readers.rich_text import of_bytes
from pagemill.readers.text import declared_charset, paragraphs, text_of
from pagemill.tables.table import Cell

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_V = "{urn:schemas-microsoft-com:vml}"
_O = "{urn:schemas-microsoft-com:office:office}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DOCUMENT = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
"""Type of an embedded document; that of its main part is longer."""
_WP = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}"

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_CONTENT = (f"{_W}t", f"{_M}t", f"{_A}t", f"{_A}blip", *CHARTS, RELATIONS)
"""Elements that select an alternative, except ink, whose picture is in the other one."""
_FORMATS = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
_GANADA = "가나다라마바사아자차카타파하"
_CIRCLED = 0x2460
_MARKS = {"b": Mark.BOLD, "i": Mark.ITALIC, "strike": Mark.STRIKE, "dstrike": Mark.STRIKE}
_THROUGH = frozenset(
    f"{_W}{name}" for name in ("ins", "moveTo", "smartTag", "sdt", "sdtContent", "customXml", "dir", "bdo")
)
_GONE = frozenset({f"{_W}del", f"{_W}moveFrom"})
_SIGNS = {"tab": "\t", "ptab": "\t", "cr": "\n", "noBreakHyphen": "‑", "softHyphen": ""}
_MOST_DEPTH = 50
"""Nested elements: tables in text boxes in tables."""
_MOST_CHAIN = 20
"""Styles that are based on each other."""
_LONGEST_FIELD = 4_000
"""Characters of an instruction."""
_MOST_CHUNKS = 3
"""Documents embedded in each other."""
_INDENT = 360
"""Twentieths of a point by which a level of a list is indented that does not say."""
_MOST_LEVELS = 9
"""Levels of the numbering of a list in Word."""
_MOST_COLUMNS = 1_000


def read(path: Path, password: str | None = None) -> Document:
    """Read a Word document."""
    return _of_package(unlocked(path, password), 0)


def _of_package(package: Path | IO[bytes], chunks: int) -> Document:
    from docx.opc.exceptions import OpcError
    from docx.opc.part import PartFactory
    from docx.package import Package

    # A hook of python-docx, for the whole process: setting it again is harmless.
    PartFactory.part_class_selector = _part_class
    warnings = check_package(package)
    # Before it is opened: python-docx does not know its names of elements.
    refuse_strict(package)
    try:
        # Not by docx.Document, which refuses templates and documents with macros.
        try:
            opened: Any = Package.open(package if not isinstance(package, Path) else str(package))
        except KeyError:
            # python-docx refuses a relation that leads nowhere, which Word ignores. Tried second: it copies the file.
            package, lost = without_dangling(package)
            warnings += [f"{count(lost, 'part')} of the file missing"] if lost else []
            opened = Package.open(package)
        opened = opened.main_document_part.document
    except (OpcError, KeyError, ValueError, SyntaxError, AttributeError) as error:
        raise CorruptInputError(f"the Word document is damaged: {error}", remedy="Save it again.") from error
    reader = _Reader(opened, chunks)
    parts = list(in_parts(reader.blocks()))
    parts[0].warnings += [*warnings, *reader.warnings]
    parts[0].notes += [*unread(reader.lost), *reader.notes]
    return Document(parts=parts, info=info_of(opened.core_properties))


def _part_class(kind: str, relation: str) -> Any:
    """The class of a part, by what it is for: python-docx goes by its type, which embedded documents have, too."""
    from docx.opc.part import Part as Bytes
    from docx.parts.document import DocumentPart
    from docx.parts.image import ImagePart

    known = {"aFChunk": Bytes, "image": ImagePart, "officeDocument": DocumentPart}
    return known.get(relation.rpartition("/")[2])


def info_of(properties: Any) -> DocumentInfo:
    """Metadata from the core properties of an Office file."""

    def time(name: str) -> str:
        try:
            value = getattr(properties, name)
        except ValueError:
            return ""
        return value.isoformat() if value else ""

    return DocumentInfo(
        title=properties.title or "",
        author=properties.author or "",
        created=time("created"),
        modified=time("modified"),
        language=properties.language or "",
    )


@dataclass(slots=True)
class _Found:
    """Content of a paragraph beside its text."""

    after: list[Block] = field(default_factory=list)
    deleted: str = ""
    formulas: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Field:
    """A field that is open."""

    instruction: str = ""
    is_result: bool = False
    """Whether its result, which is what it shows, has started."""
    inner: Inline = field(default_factory=Inline)
    """Results of fields in its instruction: shown where it has no result of its own."""


@dataclass(slots=True)
class _Level:
    """A level of a list's numbering."""

    style: str
    text: str
    start: int
    indent: int | None
    paragraphs: str | None = None
    """The style of the paragraphs on this level that do not name a level."""
    is_legal: bool = False
    """The numbers of all levels are shown as Arabic ones."""
    restarts: bool = False
    """Its numbers begin again where it is used first."""


class _Reader:
    def __init__(self, opened: Any, chunks: int) -> None:
        self._chunks = chunks
        """Documents around this one."""
        self._part = self._story = opened.part
        self._body = opened.element.body
        if self._body is None:
            raise CorruptInputError("the Word document has no body", remedy="Save it again.")
        styles = opened.styles.element.iterfind(f"{_W}style")
        self._styles = {name: style for style in styles if (name := style.get(f"{_W}styleId"))}
        self._lists: dict[str, str] = {}
        """Abstract list of each numbered list: several share one, and continue its numbers."""
        self._numbers = self._numbering()
        self._levels_of_styles = {(of, each.paragraphs): at for (of, at), each in self._numbers.items()}
        self._counts: dict[tuple[str, int], int] = {}
        self._nesting = Nesting()
        self._notes_by_id = {kind: self._note_elements(kind) for kind in ("footnote", "endnote", "comment")}
        self._numbered: Counter[str] = Counter()
        self._fields: list[_Field] = []
        """Those that are open: one may be inside of another's instruction or result."""
        self._has_title = any(self._style_name(each) == "title" for each in self._body.iter(f"{_W}p"))
        self._pending = Inline()
        """Text of a paragraph that continues in the next one."""
        self.lost: Counter[str] = Counter()
        """What is not read, by its noun."""
        self.notes: list[str] = []
        self.warnings: list[str] = []
        """Warnings of embedded documents."""

    def blocks(self) -> Iterator[Block]:
        """All blocks, running heads and feet first."""
        yield from self._running("header", Label.HEADER, Label.HEADER_IMAGE)
        yield from self._running("footer", Label.FOOTER, Label.FOOTER_IMAGE)
        yield from self._container(self._body, 0)

    def _running(self, kind: str, label: Label, picture: Label) -> Iterator[Block]:
        seen: set[object] = set()
        for part in self._related(kind):
            with self._within(part):
                after: list[Block] = []
                text = self._cell_text(_root(part), after, 1)
            for block in (*text.blocks(label=label, furniture=Furniture.PROVEN), *after):
                if block.picture is not None:
                    block = msgspec.structs.replace(block, label=picture, furniture=Furniture.PROVEN)
                if (what := block.picture or block.content) not in seen:
                    seen.add(what)
                    yield block

    def _related(self, kind: str) -> list[Any]:
        return [
            rel.target_part
            for rel in self._part.rels.values()
            if not rel.is_external and rel.reltype.endswith(f"/{kind}")
        ]

    def _note_elements(self, kind: str) -> dict[str, tuple[Any, Any]]:
        found = self._related(f"{kind}s")
        return {each.get(f"{_W}id"): (part, each) for part in found for each in _root(part).iterfind(f"{_W}{kind}")}

    def _container(self, node: Any, depth: int) -> Iterator[Block]:
        if depth > _MOST_DEPTH:
            self.lost["too deeply nested element"] += 1
            return
        for child in _children(node):
            if child.tag == f"{_W}p":
                yield from self._paragraph(child, depth)
            elif child.tag == f"{_W}tbl":
                self._nesting.end()
                yield from self._table(child, depth)
            elif child.tag in _THROUGH:
                yield from self._container(child, depth + 1)
            elif child.tag in (f"{_W}altChunk", f"{_W}subDoc"):
                yield from self._chunk(self._story.related_parts.get(child.get(f"{_R}id") or ""))
        if node.tag not in _THROUGH:
            last, self._pending = self._pending, Inline()
            yield from last.blocks()

    def _chunk(self, part: Any) -> Iterator[Block]:
        """A document that Word puts in this place when it opens the file: programs embed others so."""
        found = None
        # Damaged, or without the package that reads web pages; libraries raise all sorts.
        with suppress(ImportError, PagemillError, *DAMAGED, LookupError, SyntaxError, AttributeError, TypeError):
            found = self._embedded(part.blob, part.content_type) if part is not None else None
        self.lost["embedded document"] += found is None
        for each in found.parts if found is not None else ():
            self.notes += each.notes
            self.warnings += each.warnings
            yield from each.blocks

    def _embedded(self, data: bytes, kind: str) -> Document | None:
        kind = kind.partition(";")[0].strip()
        if kind in ("text/html", "application/xhtml+xml"):
            page = text_of(data, declared_charset(data))
            return page.annotated(of_markup(page.text, is_xml="xml" in kind))
        if kind == "text/plain":
            plain = text_of(data)
            return plain.annotated(Document(parts=[Part(blocks=list(paragraphs(plain.text)))]))
        if kind in ("application/rtf", "text/rtf"):
            return of_bytes(data)
        if kind in ("message/rfc822", "multipart/related", "application/x-mimearchive"):
            return of_web_archive(data)
        if kind.startswith(_DOCUMENT) and self._chunks < _MOST_CHUNKS:
            return _of_package(io.BytesIO(data), self._chunks + 1)
        return None

    def _paragraph(self, node: Any, depth: int) -> Iterator[Block]:
        found = _Found()
        marker = self._marker(node)
        pending, self._pending = self._pending, Inline()
        inline = self._text(node, found, depth)
        if pending.last:
            pending.extend(inline)
            inline = pending
        level = self._heading_level(node)
        if _goes_on(node):
            self._pending = inline
        elif formulas := displayed(inline.text, found.formulas):
            yield from formulas
        elif level is not None and inline.text.strip():
            self._nesting.end()
            yield from heading(inline.behind(f"{marker[1]} " if marker and marker[1] != "•" else ""), level)
        elif marker and (inline.text.strip() or (node.getparent().tag == f"{_W}tc" and marker[1].strip("•"))):
            yield from list_item(inline, self._nesting.depth(marker[0]), marker[1])
        else:
            if inline.text.strip() and not found.after:
                self._nesting.end()
            is_caption = self._style_name(node) == "caption"
            yield from inline.blocks(label=Label.FIGURE_TITLE if is_caption else Label.TEXT)
        yield from _deleted(found.deleted)
        yield from found.after

    def _text(self, node: Any, found: _Found, depth: int, marks: Marks = ()) -> Inline:
        inline = Inline()
        self._collect(node, inline, found, marks, depth)
        for each in self._fields:  # whose instruction continues below, or that nothing ends
            inline.extend(each.inner)
            each.inner = Inline()
        return inline

    def _collect(self, node: Any, inline: Inline, found: _Found, marks: Marks, depth: int) -> None:
        if depth > _MOST_DEPTH:
            self.lost["too deeply nested element"] += 1
            return
        for child in _children(node):
            tag = child.tag
            if tag == f"{_W}r":
                self._run(child, inline, found, marks, depth)
            elif tag == f"{_W}hyperlink":
                self._collect(child, inline, found, (*marks, *self._link(child)), depth + 1)
            elif tag == f"{_W}fldSimple":
                around = len(self._fields)
                self._fields.append(_Field(child.get(f"{_W}instr") or "", is_result=True))
                self._collect(child, inline, found, marks, depth + 1)
                for open_field in self._fields[around:]:  # with those that begin in it and have no end
                    inline.extend(open_field.inner)
                del self._fields[around:]
            elif tag in _THROUGH:
                self._collect(child, inline, found, marks, depth + 1)
            elif tag in _GONE:
                found.deleted += _gone(child)
            elif tag == f"{_W}subDoc":
                found.after += self._chunk(self._story.related_parts.get(child.get(f"{_R}id") or ""))
            elif tag in (f"{_M}oMath", f"{_M}oMathPara"):
                for formula in [child] if tag == f"{_M}oMath" else child.iterfind(f"{_M}oMath"):
                    if latex := latex_of_omml(formula).strip():
                        found.formulas.append(latex)
                        inline.formula(latex)
                    found.deleted += "".join(map(_gone, formula.iter(*_GONE)))

    def _run(self, run: Any, inline: Inline, found: _Found, marks: Marks, depth: int) -> None:
        own = self._run_marks(run)
        if own is None:
            return
        links = (field_link(each.instruction) for each in reversed(self._fields))
        marks = (*marks, *own, *next(filter(None, links), ()))
        paragraph = inline
        for child in _children(run):
            name = child.tag.removeprefix(_W)
            # Text in the instruction of an outer field is the result of an inner one: it is shown only if the outer
            # field, a condition for instance, has no result of its own.
            inline = next((each.inner for each in self._fields[:-1] if not each.is_result), paragraph)
            if name == "t":
                inline.add(child.text or "", marks)
            elif name in _SIGNS:
                inline.add(_SIGNS[name], marks)
            elif name == "ruby":  # the reading above would be in the middle of the word
                self.lost["ruby reading"] += 1
                for base in child.iterfind(f"{_W}rubyBase"):
                    self._collect(base, inline, found, marks, depth + 1)
            elif name == "br":
                # A page break at the start of a paragraph is not a line of it.
                if inline.last or child.get(f"{_W}type") not in ("page", "column"):
                    inline.add("\n")
            elif name == "sym":
                inline.add(_symbol(child), marks)
            elif name in ("footnoteReference", "endnoteReference", "commentReference"):
                self._note(child, name.removesuffix("Reference"), inline, found, depth)
            elif name == "fldChar":
                kind = child.get(f"{_W}fldCharType")
                if kind == "begin" and len(self._fields) < _MOST_DEPTH:
                    self._fields.append(_Field())
                elif kind == "separate" and self._fields:
                    self._fields[-1].is_result = True
                elif kind == "end" and self._fields:
                    ended = self._fields.pop()
                    text = field_text(ended.instruction)
                    inline.add(text, marks)
                    inline.extend(Inline() if ended.is_result else ended.inner)
                if (box := child.find(f"{_W}ffData/{_W}checkBox")) is not None:
                    # Without w:checked nobody has changed the box, and the default of the form holds.
                    is_set = _switch([box], "checked" if box.find(f"{_W}checked") is not None else "default")
                    inline.add("☒" if is_set else "☐", marks)
                elif (choice := child.find(f"{_W}ffData/{_W}ddList")) is not None:
                    inline.add(_choice(choice), marks)
            elif name == "instrText" and self._fields and len(self._fields[-1].instruction) < _LONGEST_FIELD:
                self._fields[-1].instruction += child.text or ""
            elif name in ("drawing", "pict", "object"):
                found.after += self._drawing(child, depth)

    def _run_marks(self, run: Any) -> Marks | None:
        """The marks of a run; None for hidden text."""
        properties = run.find(f"{_W}rPr")
        if properties is None:
            return ()
        # The run's own properties come first, then those of its style and of the styles that this one is based on.
        sources = [properties, *self._chain(_value(properties, "rStyle"), "rPr")]
        if _switch(sources, "vanish"):
            self.lost["hidden run"] += 1
            return None
        marks = {mark for name, mark in _MARKS.items() if _switch(sources, name)}
        raised = _value(_nearest(sources, "vertAlign"))
        marks |= {"superscript": {Mark.SUPERSCRIPT}, "subscript": {Mark.SUBSCRIPT}}.get(raised or "", set())
        return tuple((mark, None) for mark in sorted(marks))

    @contextmanager
    def _within(self, part: Any) -> Iterator[None]:
        """Read another part of the package, whose ids of links are its own, and whose fields and lists end with it."""
        outer = self._story, self._fields, self._nesting
        self._story, self._fields, self._nesting = part, [], Nesting()
        try:
            yield
        finally:
            self._story, self._fields, self._nesting = outer

    def _link(self, node: Any) -> Marks:
        rel = self._story.rels.get(node.get(f"{_R}id") or "")
        target = safe_target(rel.target_ref) if rel is not None and rel.is_external else None
        return ((Mark.LINK, target),) if target else ()

    def _note(self, node: Any, kind: str, inline: Inline, found: _Found, depth: int) -> None:
        part, element = self._notes_by_id[kind].get(node.get(f"{_W}id"), (None, None))
        if element is None:
            self.lost[kind] += 1
            return
        after: list[Block] = []
        with self._within(part):
            text = self._cell_text(element, after, depth + 1)
        text = next(map(Inline.of, text.blocks()), Inline())
        number = author = ""
        if kind == "comment":
            author = element.get(f"{_W}author") or ""
        elif not _is_on(node.get(f"{_W}customMarkFollows")):  # its own mark is text, here and in the note
            self._numbered[kind] += 1
            number = ordinal(self._numbered[kind], "1" if kind == "footnote" else "i")
        inline.add(number, [(Mark.SUPERSCRIPT, None)])
        label = Label.ASIDE_TEXT if kind == "comment" else Label.FOOTNOTE
        found.after += [*note(text, label, number=number, author=author), *after]

    def _drawing(self, node: Any, depth: int) -> Iterator[Block]:
        properties = node.find(f".//{_WP}docPr")
        description = (properties.get("descr") or "") if properties is not None else ""
        for blip in node.iter(f"{_A}blip", f"{_V}imagedata"):
            if _is_fallback(blip, node):  # read with its text box
                continue
            name = blip.get(f"{_R}embed") or blip.get(f"{_R}id") or ""
            part = self._story.related_parts.get(name)
            data = part.blob if part is not None else b""
            shown = (description or blip.getparent().get("alt") or "").strip()
            # A linked picture has no part, and is never fetched.
            yield Block(label=Label.IMAGE, picture=Picture(data, shown, str(part.partname) if part else "linked"))
        for chart in node.iter(CHARTS):
            part = self._story.related_parts.get(chart.get(f"{_R}id") or "")
            self.lost["chart"] += part is None
            yield from chart_blocks(_root(part)) if part is not None else ()
        for diagram in node.iter(RELATIONS):
            part = self._story.related_parts.get(diagram.get(DATA) or "")
            self.lost["SmartArt diagram"] += part is None
            yield from diagram_blocks(_root(part)) if part is not None else ()
        for art in node.iter(f"{_V}textpath", f"{_A}p"):
            text = art.get("string") or "".join(each.text or "" for each in art.iter(f"{_A}t"))
            yield from () if _is_fallback(art, node) else Inline(text).blocks()
        objects = node.iter(f"{_O}OLEObject", f"{_W}objectEmbed", f"{_W}control")
        self.lost["embedded object"] += sum(not _is_fallback(each, node) for each in objects)
        for box in node.iter(f"{_W}txbxContent"):
            if not _is_fallback(box, node):
                yield from self._container(box, depth + 1)

    def _table(self, node: Any, depth: int) -> Iterator[Block]:
        cells: list[Cell] = []
        open_cells: dict[int, int] = {}
        after: list[Block] = []
        look = node.find(f"{_W}tblPr/{_W}tblLook")
        has_head = look is not None and (
            # Older files have all bits in one hexadecimal number (0x20: the first row), newer ones a name for each.
            look.get(f"{_W}firstRow") in ("1", "true") or bool(_hex(look.get(f"{_W}val")) & 0x20)
        )
        lines: list[Any] = []
        for line in _named("tr", node):
            if line.find(f"{_W}trPr/{_W}del") is None:
                lines.append(line)
            else:
                after += _deleted("\t".join(_gone(each) for each in _named("tc", line)))
        for row, line in enumerate(lines):
            is_head = (row == 0 and has_head) or line.find(f"{_W}trPr/{_W}tblHeader") is not None
            column = _number(_value(line, "trPr", "gridBefore"), 0)
            for each in _named("tc", line):
                wide = min(max(_number(_value(each, "tcPr", "gridSpan"), 1), 1), _MOST_COLUMNS)
                merge = each.find(f"{_W}tcPr/{_W}vMerge")
                if merge is not None and merge.get(f"{_W}val") != "restart" and column in open_cells:
                    at = open_cells[column]
                    old = cells[at]
                    if old.row + old.row_span == row and old.column_span == wide:
                        # Word shows the first cell of a merged column alone, whatever text the others still hold.
                        self.lost["covered cell"] += any((text.text or "").strip() for text in each.iter(f"{_W}t"))
                        cells[at] = replace(old, row_span=old.row_span + 1)
                        column += wide
                        continue
                open_cells[column] = len(cells)
                cells.append(cell(self._cell_text(each, after, depth + 1), row, column, 1, wide, header=is_head))
                column += wide
        yield from tables(cells)
        yield from after

    def _cell_text(self, node: Any, after: list[Block], depth: int) -> Inline:
        """The text of a cell, its paragraphs in lines. Pictures and notes come behind the table."""
        inline = Inline()
        for block in self._container(node, depth):
            if block.label is Label.TABLE:
                text = Inline("\n".join("\t".join(row) for row in _plain_rows(block.content or "")))
            elif block.label in (Label.TEXT, Label.FIGURE_TITLE) or block.level:
                text = Inline.of(block)
            elif block.label is Label.DISPLAY_FORMULA:
                text = Inline()
                text.formula(block.content or "")
            else:
                after.append(block)
                continue
            inline.add_line(text)
        return inline

    def _style_of(self, node: Any) -> str | None:
        return _value(node, "pPr", "pStyle")

    def _style_name(self, node: Any) -> str:
        return (_value(self._styles.get(self._style_of(node)), "name") or "").lower()

    def _chain(self, style: str | None, properties: str) -> list[Any]:
        """The properties of a style and of those that it is based on, nearest first."""
        found: list[Any] = []
        for _ in range(_MOST_CHAIN):
            element = self._styles.get(style)
            if element is None:
                break
            found += element.iterfind(f"{_W}{properties}")
            style = _value(element, "basedOn")
        return found

    def _paragraph_properties(self, node: Any) -> list[Any]:
        return [*node.iterfind(f"{_W}pPr"), *self._chain(self._style_of(node), "pPr")]

    def _heading_level(self, node: Any) -> int | None:
        """1 for the title; headings are below it where there is one."""
        name = self._style_name(node)
        if name == "title":
            return 1
        match = _HEADING.fullmatch(name)
        outline = _value(_nearest(self._paragraph_properties(node), "outlineLvl"))
        level = int(match[1]) if match else _number(outline, 9) + 1
        return level + self._has_title if 1 <= level <= 9 else None

    def _numbering(self) -> dict[tuple[str, int], _Level]:
        found = self._related("numbering")
        if not found:
            return {}
        root = _root(found[0])
        abstract = {each.get(f"{_W}abstractNumId"): each for each in root.iterfind(f"{_W}abstractNum")}
        linked = {name.get(f"{_W}val"): each for each in abstract.values() for name in each.iterfind(f"{_W}styleLink")}
        levels: dict[tuple[str, int], _Level] = {}
        for each in root.iterfind(f"{_W}num"):
            base = abstract.get(_value(each, "abstractNumId"))
            if base is None:
                continue
            base = linked.get(_value(base, "numStyleLink"), base)  # which has the levels
            number = each.get(f"{_W}numId") or ""
            self._lists[number] = base.get(f"{_W}abstractNumId") or ""
            for level in base.iterfind(f"{_W}lvl"):
                levels[number, _number(level.get(f"{_W}ilvl"), 0)] = _level(level)
            for override in each.iterfind(f"{_W}lvlOverride"):
                at = _number(override.get(f"{_W}ilvl"), 0)
                if (level := override.find(f"{_W}lvl")) is not None:
                    levels[number, at] = _level(level)
                if override.find(f"{_W}startOverride") is not None and (number, at) in levels:
                    levels[number, at].start = _number(_value(override, "startOverride"), 1)
                    levels[number, at].restarts = True
        return levels

    def _marker(self, node: Any) -> tuple[int, str] | None:
        """The indent and the marker of a list item, as displayed; counts it."""
        properties = self._paragraph_properties(node)
        numbered = _nearest(properties, "numPr")
        number = _value(_nearest(properties, "numPr", "numId")) or "0"
        at = _number(_value(numbered, "ilvl"), 0)
        if (style := self._style_of(node)) is not None and node.find(f"{_W}pPr/{_W}numPr") is None:
            at = self._levels_of_styles.get((number, style), at)
        level = self._numbers.get((number, at))
        # The list 0 takes the numbers from a paragraph whose style has some.
        if numbered is None or number == "0" or level is None:
            return None
        of = self._lists[number]
        last = level.start - 1 if level.restarts else self._counts.get((of, at), level.start - 1)
        self._counts[of, at], level.restarts = last + 1, False
        # An item restarts the numbers of the levels below it.
        for deeper in range(at + 1, _MOST_LEVELS):
            self._counts.pop((of, deeper), None)
        own = next(filter(None, map(_left, properties)), None)
        indent = int(float(own)) if own and re.fullmatch(r"-?\d{1,9}(\.\d+)?", own) else level.indent
        indent = at * _INDENT if indent is None else indent
        if level.style in ("bullet", "none") or not level.text:
            return indent, "•" if level.style == "bullet" else ""
        text = re.sub(r"%([1-9])", lambda match: self._count(number, int(match[1]) - 1, at), level.text)
        return indent, text.strip()

    def _count(self, number: str, at: int, own: int) -> str:
        level = self._numbers.get((number, at))
        if level is None:
            return ""
        style = "decimal" if self._numbers[number, own].is_legal else level.style
        return _formatted(self._counts.get((self._lists[number], at), level.start), style)


def _root(part: Any) -> Any:
    element = getattr(part, "element", None)
    if element is None:
        from docx.oxml.parser import parse_xml

        element = parse_xml(part.blob)
    return element


def _children(node: Any) -> Iterator[Any]:
    """The children of an element; of alternatives the first one that has text or a picture."""
    for child in node:
        if not isinstance(child.tag, str):
            continue
        if child.tag == f"{_MC}AlternateContent":
            choice = child.find(f"{_MC}Choice")
            if choice is None or next(choice.iter(_CONTENT), None) is None:
                choice = next(child.iterchildren(f"{_MC}Fallback"), choice)
            yield from _children(choice) if choice is not None else ()
        else:
            yield child


def _is_fallback(node: Any, top: Any) -> bool:
    """Whether an element is in an alternative that is not read, or in another text box."""
    while (node := node.getparent()) is not None and node is not top:
        if node.tag in (f"{_MC}Fallback", f"{_W}txbxContent"):
            return True
    return False


def _named(name: str, node: Any) -> Iterator[Any]:
    """The children of one name: rows of a table, cells of a row."""
    for child in _children(node):
        if child.tag == f"{_W}{name}":
            yield child
        elif child.tag in _THROUGH:
            yield from _named(name, child)


def _gone(node: Any) -> str:
    """The text of an element that was deleted."""
    return "".join(each.text or "" for each in node.iter(f"{_W}delText", f"{_W}t", f"{_M}t"))


def _goes_on(paragraph: Any) -> bool:
    """Whether the text continues in the next paragraph: after a drop cap, or where the paragraph mark is deleted."""
    if (properties := paragraph.find(f"{_W}pPr")) is None:
        return False
    frame = properties.find(f"{_W}framePr")
    is_drop_cap = frame is not None and frame.get(f"{_W}dropCap") in ("drop", "margin")
    return is_drop_cap or properties.find(f"{_W}rPr/{_W}del") is not None


def _deleted(text: str) -> list[Block]:
    inline = Inline()
    inline.add(text.strip(), [(Mark.STRIKE, None)])
    return inline.blocks(label=Label.ASIDE_TEXT)


def _plain_rows(markup: str) -> Iterable[list[str]]:
    from pagemill.tables.html import parse_table

    table = parse_table(markup, marks=False)
    cells = table.cells if table else ()
    return ([each.text for each in cells if each.row == row] for row in range(table.rows if table else 0))


def _choice(field: Any) -> str:
    """The entry that a drop-down list of a form shows."""
    entries = [each.get(f"{_W}val") or "" for each in field.iterfind(f"{_W}listEntry")]
    at = _number(_value(field, "result"), _number(_value(field, "default"), 0))
    return entries[at] if 0 <= at < len(entries) else ""


def _switch(sources: list[Any], name: str) -> bool:
    """Whether a property is on, by the first source that defines it."""
    found = _nearest(sources, name)
    return found is not None and _is_on(_value(found) or "1")


def _is_on(value: str | None) -> bool:
    return value not in (None, "0", "false", "off")


def _level(node: Any) -> _Level:
    properties = node.find(f"{_W}pPr")
    left = None if properties is None else _left(properties)
    return _Level(
        style=_value(node, "numFmt") or "decimal",
        text=(_value(node, "lvlText") or "")[:50],
        start=_number(_value(node, "start"), 1),
        indent=int(left) if left and re.fullmatch(r"-?\d{1,6}", left) else None,
        paragraphs=_value(node, "pStyle"),
        is_legal=_switch([node], "isLgl"),
    )


def _left(properties: Any) -> str | None:
    """The indent of a paragraph, which has two names."""
    indent = properties.find(f"{_W}ind")
    return None if indent is None else indent.get(f"{_W}left") or indent.get(f"{_W}start")


def _formatted(number: int, style: str) -> str:
    if style == "decimalZero":
        return f"{number:02}"
    if style == "ganada" and 0 < number <= len(_GANADA):
        return _GANADA[number - 1]
    if style.startswith("decimalEnclosedCircle") and 0 < number <= 20:
        return chr(_CIRCLED + number - 1)
    return ordinal(number, _FORMATS.get(style, "1"))


def _value(node: Any, *path: str) -> str | None:
    """The value of an element, or of one inside of it; None where there is none."""
    found = node.find("/".join(_W + name for name in path)) if path and node is not None else node
    return None if found is None else found.get(f"{_W}val")


def _nearest(sources: Iterable[Any], *path: str) -> Any:
    """A property, from the first of several sources that has it."""
    inside = "/".join(_W + name for name in path)
    return next((found for source in sources if (found := source.find(inside)) is not None), None)


def _number(value: str | None, default: int) -> int:
    return int(value) if value and re.fullmatch(r"-?\d{1,9}", value) else default


def _hex(text: str | None) -> int:
    return int(text, 16) if text and re.fullmatch(r"[0-9A-Fa-f]{1,8}", text) else 0


_BOXES = {
    "wingdings": {0x6F: "☐", 0x71: "☐", 0x72: "☐", 0xA8: "☐", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑"},
    "wingdings 2": {0x4F: "✗", 0x50: "✓", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐"},
}
"""Check boxes in fonts of symbols, by their code, which Word adds to 0xF000."""


def _symbol(node: Any) -> str:
    """A symbol of a font; those of private fonts have no character of their own."""
    code = _hex(node.get(f"{_W}char"))
    if box := _BOXES.get((node.get(f"{_W}font") or "").lower(), {}).get(code & 0xFF):
        return box
    return chr(code) if 0x20 <= code < 0xD800 else "•" if code else ""
