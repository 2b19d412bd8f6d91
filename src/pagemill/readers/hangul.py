"""Documents that the package dochan reads: HWP, HWPX, and spreadsheets and old Office files."""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from pagemill.document.labels import Label
from pagemill.document.marks import safe_target
from pagemill.document.page import DocumentInfo, Furniture, Mark
from pagemill.document.shown import count
from pagemill.errors import CorruptInputError
from pagemill.imaging.formats import ZIP
from pagemill.readers.base import (
    MOST_DEPTH,
    Block,
    Document,
    Inline,
    Marks,
    Part,
    Picture,
    cell,
    display_formula,
    heading,
    in_parts,
    note,
    tables,
    unread,
)
from pagemill.readers.far_cells import without_gaps
from pagemill.readers.packages import MOST_MEMBER, check_package, wrong_password, xml_root
from pagemill.tables.table import Cell

_FLAGS = (
    ("bold", Mark.BOLD),
    ("italic", Mark.ITALIC),
    ("strikeout", Mark.STRIKE),
    ("superscript", Mark.SUPERSCRIPT),
    ("subscript", Mark.SUBSCRIPT),
)
_SHOWN_LINK = re.compile(r"(.*?) ?<((?:https?://|mailto:)[^<>\s]+)>", re.DOTALL)
"""How dochan writes the link of a spreadsheet's cell."""
_SHOWN_PICTURE = re.compile(r"!\[[^\]]*\]\((?:xl/|xls/)?media/[^)]*\)|!\[[^\]]*\]\([^)]*/media/[^)]*\)")
"""How it writes the place of a picture of a spreadsheet, which is there as a picture, too."""
_COMMENT = "[comment: "
"""Likewise its comment."""
_AUTHOR = "Author: "
_RUNNING = {"Header: ": Label.HEADER, "Footer: ": Label.FOOTER}
"""How dochan writes the running heads of XLS files."""
_CHART = "Chart type: "
"""Message of dochan about the values of a chart."""
_LOCKED = "암호"
"""Part of all messages of dochan about passwords."""
_CORE = "docProps/core.xml"
_WORKBOOK = "xl/workbook.xml"
_OF_EXCEL = re.compile(r"Defined name: (_FilterDatabase|Print_Titles|Print_Area) ")
"""Names that Excel gives to the cells that it filters and prints."""
_SUMMARY = "\x05SummaryInformation"
_INFO = (_CORE, "Contents/content.hpf")
_NAMES = {"title": "title", "creator": "author", "created": "created", "modified": "modified", "language": "language"}
_HWP_NAMES = {"CreatedDate": "created", "ModifiedDate": "modified", "creator": "author"}
_MOST_INFO = 2**20
_HIDDEN = re.compile(rb"<(?:\w+:)?(row|col)\b[^<>]*\bhidden=\"(?:1|true)\"")
_UNREAD_MEMBERS = {"xl/embeddings/": "embedded object", "xl/diagrams/data": "SmartArt diagram"}
_UNREAD_ELEMENTS = {b"textart": "word art text", b"ole": "embedded object", b"comboBox": "list of choices"}
_UNREAD = re.compile(rb"<(?:\w+:)?(textart|ole|comboBox)\b")
_MEMO = b"MEMO"
_SECTION = "Contents/section"
_ESCAPED = re.compile("_x(000[9AaDd]|005[Ff])_")
"""White space and underscores as Excel writes them."""
_TOO_FAR = "dense cell limit exceeded"
"""Message of dochan about a sheet with too many cell positions, most of them possibly empty."""
_MOST_ERRORS = 20
_MOST_CELLS = 600_000
"""Cells of a sheet, including empty ones."""
_NUMBER = re.compile(r"[\d.,%\s-]+")
_PAGES = frozenset({"xlsx", "xls", "pptx", "ppt"})
"""Formats whose sections are sheets or slides."""


def read(path: Path, password: str | None = None) -> Document:
    """Read a file of Hangul, of Excel, or of Office before 2007."""
    from dochan import Dochan

    _widen_limits()
    _show_values()
    with path.open("rb") as file:
        is_package = file.read(4) == ZIP
    warnings = check_package(path) if is_package else []
    try:
        found = Dochan(str(path), password=password, revision_mode="final").doc
    except ValueError:  # of another kind than HWP and HWPX, which alone have it
        found = Dochan(str(path), password=password).doc
    gaps: list[str] = []
    if is_package and any(_TOO_FAR in error for error in found.errors):
        with TemporaryDirectory() as folder:
            # dochan lays a sheet out as a grid, so two cells far apart exceed its limit: read a copy without the gaps.
            gaps = without_gaps(path, copy := Path(folder, "a.xlsx"), _MOST_CELLS)
            found = Dochan(str(copy), password=password).doc if gaps else found
    errors = [error.removeprefix("ERR: ") for error in found.errors if error.startswith("ERR:")]
    reported = [error.removeprefix("WARN: ") for error in found.errors if not error.startswith("ERR:")]
    # For damage dochan does not raise: it gives what it could read, and errors, which then become warnings.
    if not any(section.elements for section in found.sections) and errors:
        if any(_LOCKED in error for error in errors):
            raise wrong_password(password)
        raise CorruptInputError(f"the file cannot be read: {'; '.join(errors[:3])}", remedy="Save it again.")
    hidden = _hidden_cells(path, found) if is_package else {}
    if found.source_format in _PAGES:
        is_named = len(found.sections) > 1
        parts = [part for section in found.sections for part in _page(section, hidden, is_named)] or [Part()]
    else:
        blocks = (block for section in found.sections for block in _blocks(section.elements))
        parts = list(in_parts(chain(blocks, _memos(path) if found.source_format == "hwpx" else ())))
    parts[0].warnings += [f"dochan: {error}" for error in errors[:_MOST_ERRORS]]
    parts[0].warnings += warnings
    parts[0].notes += [f"dochan: {each}" for each in reported[:_MOST_ERRORS]]
    parts[0].notes += [f"wide gaps between cells left out in {count(len(gaps), 'sheet')}"] if gaps else []
    parts[0].notes += unread(_left_out(path) if is_package else {})
    return Document(parts=parts, info=_info(path) if is_package else _summary(found))


def _widen_limits() -> None:
    """Read sheets of up to :data:`_MOST_CELLS` completely: of larger ones dochan returns 200 rows and a message.

    Its own limit is reached by 150,000 cells. Memory and time are bounded by the process. 200,000 cells take 11 s and
    340 MB.
    """
    from dochan.ooxml import package, xlsx

    package.MAX_XML_ELEMENTS = package.MAX_XML_NAMESPACE_BINDINGS = 10 * _MOST_CELLS
    package.MAX_XML_PART_SIZE = xlsx.MAX_XML_PART_SIZE = MOST_MEMBER
    xlsx.MAX_DENSE_TABLE_CELLS = xlsx.MAX_RANGE_CELLS = _MOST_CELLS


def _show_values() -> None:
    """Have cells show what Excel does: dochan writes their formulas behind the values. One without a value keeps it."""
    from dochan.office_binary import xls
    from dochan.ooxml import xlsx

    as_written, as_written_too = xlsx.XLSXReader._with_formula, xls._with_formula_text
    # Patched already, by an earlier file of this process.
    if as_written.__module__ == __name__:
        return

    def shown(self: Any, text: str, *rest: Any, **named: Any) -> str:
        return text or str(as_written(self, text, *rest, **named))

    xlsx.XLSXReader._with_formula = shown
    xls._with_formula_text = lambda value, formula: value or as_written_too(value, formula)


def _page(section: Any, hidden: dict[str, dict[str, int]], is_named: bool) -> Iterator[Part]:
    """A sheet or slide, in parts where it is long; of several sheets each begins with its name."""
    about = section.provenance
    name = getattr(about, "sheet", None)
    blocks = [*_blocks(section.elements)]
    if name and is_named and blocks:
        blocks = heading(Inline(name), 2) + blocks
    for part in in_parts(blocks, metadata={"sheet": name} if name else {}):
        if name and about.hidden:
            part.notes.append(f"the sheet {name!r} is hidden")
        kinds = hidden.pop(getattr(about, "path", None) or "", {})  # reported once, on the first part
        part.notes += (f"hidden in the sheet: {count(number, kind)}" for kind, number in kinds.items() if number)
        yield part


def _place(element: Any) -> str | None:
    """The member of the package, or the stream, that an element comes from."""
    return getattr(getattr(element, "provenance", None), "path", None)


def _summary(found: Any) -> DocumentInfo:
    """Metadata of an OLE file, which dochan puts in front of the text."""
    summary = [element for section in found.sections for element in section.elements if _place(element) == _SUMMARY]
    title = next((each.text for each in summary if each.heading_level), "")
    author = next((each.text for each in summary if each.text.startswith(_AUTHOR)), "")
    return DocumentInfo(title=title, author=author.removeprefix(_AUTHOR))


def _blocks(elements: Iterable[Any]) -> Iterator[Block]:
    for element in elements:
        if _place(element) in (_CORE, _SUMMARY):
            continue  # metadata, which are not part of the text
        if _place(element) == _WORKBOOK and _OF_EXCEL.match(element.text):
            continue
        kind = type(element).__name__
        if kind == "Paragraph":
            inline = _text(element)
            level = element.heading_level
            prefix = inline.text[:8]
            if getattr(element.provenance, "source_format", "") == "xls" and prefix in _RUNNING:
                yield from Inline(inline.text[8:]).blocks(label=_RUNNING[prefix], furniture=Furniture.PROVEN)
            else:
                yield from heading(inline, level) if level else inline.blocks()
        elif kind == "Table":
            yield from _table(element)
        elif kind == "Equation":
            yield from (display_formula(element.latex),) if element.latex else ()
        elif kind == "Image":
            yield Block(label=Label.IMAGE, picture=Picture(element.image_data, element.alt_text, element.filename))
            yield from _joined(element.caption).blocks(label=Label.FIGURE_TITLE)
        elif kind == "HeaderFooter":
            label = Label.HEADER if element.type == "header" else Label.FOOTER
            yield from _joined(element.paragraphs).blocks(label=label, furniture=Furniture.PROVEN)
        elif hasattr(element, "paragraphs"):
            is_comment = element.type == "comment"
            author = getattr(element, "author", "") if is_comment else ""
            number = str(element.number or "") if not author else ""
            label = Label.ASIDE_TEXT if is_comment else Label.FOOTNOTE
            yield from note(_joined(element.paragraphs), label, number=number, author=author)


def _text(paragraph: Any) -> Inline:
    inline = Inline()
    is_of_sheet = getattr(paragraph.provenance, "source_format", "") in ("xlsx", "xls")
    for run in paragraph.runs:
        marks: Marks = tuple((mark, None) for name, mark in _FLAGS if getattr(run, name))
        if run.equation is not None and run.equation.latex:
            inline.formula(run.equation.latex)
        elif run.note_ref:
            inline.add(str(run.note_ref), [(Mark.SUPERSCRIPT, None)])
        elif target := safe_target(run.link):
            inline.add(run.text, (*marks, (Mark.LINK, target)))
        elif not (is_of_sheet and _SHOWN_PICTURE.fullmatch(run.text)):
            text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), run.text) if is_of_sheet else run.text
            shown = _SHOWN_LINK.fullmatch(text)
            if shown and safe_target(shown[2]):
                inline.add(shown[1] or shown[2], (*marks, (Mark.LINK, shown[2])))
            else:
                inline.add(text.replace("\r", ""), marks)
    return inline


def _joined(blocks: Iterable[Any], depth: int = 0) -> Inline:
    """Paragraphs as lines; the cells of tables inside of them are apart by tabs."""
    inline = Inline()
    for block in blocks:
        kind = type(block).__name__
        if kind == "Paragraph":
            text = _text(block)
        elif kind == "Table" and depth < MOST_DEPTH:
            rows = ([_joined(each.paragraphs, depth + 1).text for each in row] for row in block.rows)
            text = Inline("\n".join("\t".join(each for each in row if each) for row in rows))
        elif kind == "Equation":
            text = Inline()
            text.formula(block.latex)
        else:
            continue
        if text.text:
            inline.add_line(text)
    return inline


def _table(table: Any) -> Iterator[Block]:
    cells: list[Cell] = []
    after: list[Block] = []
    for row, line in enumerate(table.rows):
        for column, each in enumerate(line):
            if each.is_merged_away:
                continue
            at = (row if each.row is None else each.row, column if each.col is None else each.col)
            text = _joined(each.paragraphs)
            if text.text.endswith("]") and (start := text.text.rfind(_COMMENT)) >= 0:
                after += Inline(text.text[start + len(_COMMENT) : -1]).blocks(label=Label.ASIDE_TEXT)
                text.text = text.text[:start].rstrip()
            cells.append(cell(text, *at, each.row_span, each.col_span))
            kinds = ("Image", "Footnote", "Comment")
            after += _blocks(block for block in each.paragraphs if type(block).__name__ in kinds)
    caption = _joined(table.caption).text
    caption = "" if caption.startswith(_CHART) else caption
    first = [each for each in cells if each.row == 0]
    filled = [each.text for each in first if each.text.strip()]
    # Neither format says which row is the head: one of words in most columns is. Sheets have empty columns.
    if len(filled) > 1 and 2 * len(filled) >= len(first) and not any(_NUMBER.fullmatch(each) for each in filled):
        cells = [replace(each, header=each.row == 0) for each in cells]
    yield from tables(cells, caption)
    yield from after


def _memos(path: Path) -> Iterator[Block]:
    """The comments of a HWPX, which dochan leaves out."""
    with zipfile.ZipFile(path) as archive:
        for name in sorted(archive.namelist()):
            if not name.startswith(_SECTION) or _MEMO not in (data := archive.read(name)):
                continue
            root = xml_root(data, recover=True)
            for memo in root.iterfind(".//{*}fieldBegin[@type='MEMO']") if root is not None else ():
                lines = ("".join(map(str, each.itertext("{*}t"))) for each in memo.iter("{*}p"))
                yield from Inline("\n".join(filter(None, lines))).blocks(label=Label.ASIDE_TEXT)


def _left_out(path: Path) -> dict[str, int]:
    """Parts of a package that dochan omits silently: their number, by noun."""
    counts = Counter[str]()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            counts.update(noun for start, noun in _UNREAD_MEMBERS.items() if name.startswith(start))
            if name.startswith(_SECTION):
                counts.update(_UNREAD_ELEMENTS[each] for each in _UNREAD.findall(archive.read(name)))
    return counts


def _hidden_cells(path: Path, found: Any) -> dict[str, dict[str, int]]:
    """How many rows and columns are hidden, by the sheet's member of the package."""
    names = [getattr(section.provenance, "path", None) for section in found.sections]
    counted: dict[str, dict[str, int]] = {}
    with zipfile.ZipFile(path) as archive:
        members = set(archive.namelist())
        for name in names:
            if found.source_format == "xlsx" and name in members:
                kinds = [match[1] for match in _HIDDEN.finditer(archive.read(name))]
                counted[name] = {"row": kinds.count(b"row"), "column": kinds.count(b"col")}
    return counted


def _info(path: Path) -> DocumentInfo:
    """Metadata of a package."""
    from lxml import etree

    found: dict[str, str] = {}

    with zipfile.ZipFile(path) as archive:
        for name in _INFO:
            if name not in archive.namelist() or archive.getinfo(name).file_size > _MOST_INFO:
                continue
            root = xml_root(archive.read(name), recover=True)
            for each in root.iter(etree.Element) if root is not None else ():
                local = etree.QName(each).localname
                key = _HWP_NAMES.get(each.get("name") or "") if local == "meta" else _NAMES.get(local)
                if key and each.text and key not in found:
                    found[key] = each.text.strip()
    return msgspec.convert(found, DocumentInfo)
