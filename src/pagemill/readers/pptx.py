"""Presentations (PPTX), through python-pptx: one page a slide, with the places of its shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pagemill.document.labels import Label
from pagemill.document.marks import safe_target
from pagemill.document.page import Furniture, Mark
from pagemill.errors import CorruptInputError
from pagemill.readers.base import (
    DPI,
    MOST_PARTS,
    Block,
    Document,
    Inline,
    Marks,
    Part,
    Picture,
    cell,
    heading,
    list_item,
    tables,
    unread,
)
from pagemill.readers.charts import CHARTS, chart_blocks
from pagemill.readers.diagrams import DATA, RELATIONS, diagram_blocks
from pagemill.readers.docx import info_of
from pagemill.readers.html import ordinal
from pagemill.readers.omml import latex_of_omml
from pagemill.readers.packages import check_package, refuse_strict, unlocked

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_HOLDERS = frozenset({f"{_P}spTree", f"{_P}grpSp", f"{_A}p"})
"""Elements whose alternatives python-pptx would skip; those elsewhere, as in embedded objects, hold pictures."""
_CONTENT = (f"{_A}t", f"{_M}t", *CHARTS)
_EMU_PER_PIXEL = 914_400 / DPI
_MOST_DEPTH = 20
"""Groups inside of groups."""
_NUMBERS = {"alphaLc": "a", "alphaUc": "A", "romanLc": "i", "romanUc": "I"}
_BODY = frozenset({"OBJECT", "BODY", "VERTICAL_BODY", "VERTICAL_OBJECT"})
"""Placeholders whose paragraphs have bullets unless they say otherwise."""
_TITLES = frozenset({"TITLE", "CENTER_TITLE", "VERTICAL_TITLE"})
_WITH_MACROS = [f"application/vnd.ms-powerpoint.{kind}.macroEnabled.main+xml" for kind in ("slideshow", "template")]
"""Types of presentations that python-pptx does not know."""
_RUNNING = frozenset({"DATE", "FOOTER", "HEADER", "SLIDE_NUMBER"})


def read(path: Path, password: str | None = None) -> Document:
    """Read a presentation."""
    import pptx  # which registers the kinds of parts with its package
    from pptx.exc import PythonPptxError
    from pptx.opc.package import PartFactory
    from pptx.parts.presentation import PresentationPart

    package = unlocked(path, password)
    warnings = check_package(package)
    refuse_strict(package)
    try:
        # Not by pptx.Presentation, which refuses shows and templates.
        PartFactory.part_type_for |= dict.fromkeys(_WITH_MACROS, PresentationPart)
        main: Any = pptx.package.Package.open(package if not isinstance(package, Path) else str(package))
        opened = main.main_document_part.presentation
        # 10 x 7.5 inches, the default of PowerPoint.
        size = (opened.slide_width or 9_144_000, opened.slide_height or 6_858_000)
        _choose_alternatives(opened)
        parts = [_slide(slide, size) for slide, _ in zip(opened.slides, range(MOST_PARTS), strict=False)]
    except (PythonPptxError, KeyError, ValueError, SyntaxError, AttributeError) as error:
        raise CorruptInputError(f"the presentation is damaged: {error}", remedy="Save it again.") from error
    parts = parts or [Part()]
    parts[0].warnings += warnings
    return Document(parts=parts, info=info_of(opened.core_properties))


def _slide(slide: Any, size: tuple[int, int]) -> Part:
    part = Part(width=round(size[0] / _EMU_PER_PIXEL), height=round(size[1] / _EMU_PER_PIXEL))
    lost: Counter[str] = Counter()
    for ink in list(slide._element.iter(f"{_P}contentPart")):  # python-pptx fails at those without a picture
        lost["ink drawing"] += 1
        ink.getparent().remove(ink)
    shapes = list(slide.shapes)
    # Shapes are in drawing order, in which the title may come last.
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
    for shape in (*titles, *(shape for shape in shapes if shape not in titles)):
        part.blocks += _shape(shape, lost, 0)
    part.blocks += _background(slide, part.height)
    # has_notes_slide first: asking for the notes of a slide without any creates them.
    for shape in _single(slide.notes_slide.shapes, 0) if slide.has_notes_slide else ():
        if shape.has_text_frame and _placeholder(shape) in ("BODY", ""):
            part.blocks += _lines(shape.text_frame.paragraphs).blocks(label=Label.FOOTNOTE)
    for rel in slide.part.rels.values():
        if not rel.is_external and rel.reltype.rpartition("/")[2].lower() == "comments":
            part.blocks += _comments(rel.target_part)
    # A hidden slide is read: it is skipped in a show, not in the file.
    if slide._element.get("show") == "0":
        part.notes.append("the slide is hidden")
    names = [relation.get(DATA) for relation in slide._element.iter(RELATIONS)]
    lost["SmartArt diagram"] += sum(name not in slide.part.rels for name in names)
    lost["embedded object"] += len({each.get("spid") or each for each in slide._element.iter(f"{_P}oleObj")})
    part.notes += unread(lost)
    return part


def _single(shapes: Any, depth: int) -> Iterator[Any]:
    """Shapes, and those in groups."""
    for shape in shapes:
        if hasattr(shape, "shapes") and depth < _MOST_DEPTH:
            yield from _single(shape.shapes, depth + 1)
        else:
            yield shape


def _comments(source: Any) -> Iterator[Block]:
    """The comments on a slide, in the format of any version."""
    from pptx.oxml import parse_xml

    for comment in parse_xml(source.blob):
        comment_text = Inline("\n".join(each.text or "" for each in comment.iter("{*}text", f"{_A}t")))
        yield from comment_text.blocks(label=Label.ASIDE_TEXT)


def _background(slide: Any, height: int) -> Iterator[Block]:
    """The text of a slide's layout and master, which is the same on all of their slides."""
    layout = slide.slide_layout
    for above, source in ((slide, layout), (layout, layout.slide_master)):
        if above._element.get("showMasterSp") in ("0", "false"):
            return
        for shape in source.shapes:
            for block in () if shape.is_placeholder else _shape(shape, Counter(), 0):
                # Pictures of masters are logos and backgrounds, the same on each slide.
                if block.picture is None and not block.level:
                    is_head = block.box is not None and block.box[1] + block.box[3] < height
                    label = Label.HEADER if is_head else Label.FOOTER
                    yield msgspec.structs.replace(block, label=label, furniture=Furniture.PROVEN, list_item=False)


def _choose_alternatives(opened: Any) -> None:
    """Put the first alternative in the place of each group of them: python-pptx skips these groups.

    PowerPoint writes so every text box that holds a formula. Where the first one has no text, as drawings in ink, the
    last one is a picture of it.
    """
    for slide in opened.slides:
        for group in list(slide._element.iter(f"{_MC}AlternateContent")):
            parent = group.getparent()
            if parent is None or parent.tag not in _HOLDERS:
                continue
            chosen = next(group.iterchildren(f"{_MC}Choice"), None)
            if chosen is None or not any(each.text or each.tag in CHARTS for each in chosen.iter(*_CONTENT)):
                chosen = next(group.iterchildren(f"{_MC}Fallback"), chosen)
            for each in list(chosen) if chosen is not None else []:
                group.addprevious(each)
            parent.remove(group)


def _placeholder(shape: Any) -> str:
    return shape.placeholder_format.type.name if shape.is_placeholder and shape.placeholder_format.type else ""


def _shape(shape: Any, lost: Counter[str], depth: int) -> Iterator[Block]:
    kind = _placeholder(shape)
    if depth > _MOST_DEPTH:
        lost["too deeply nested shape"] += 1
        return
    if kind in _RUNNING:
        label = Label.HEADER if kind == "HEADER" else Label.FOOTER
        text = _lines(shape.text_frame.paragraphs) if shape.has_text_frame else Inline()
        yield from text.blocks(label=label, furniture=Furniture.PROVEN, box=_box(shape))
        return
    for block in _content(shape, lost, kind, depth):
        yield block if block.box or depth else msgspec.structs.replace(block, box=_box(shape))


def _content(shape: Any, lost: Counter[str], kind: str, depth: int) -> Iterator[Block]:
    from pptx.oxml import parse_xml

    if hasattr(shape, "shapes"):
        for each in shape.shapes:
            yield from _shape(each, lost, depth + 1)
        return
    if getattr(shape, "has_table", False):
        yield from _table(shape.table, lost)
    elif getattr(shape, "has_chart", False):
        yield from chart_blocks(shape.chart._chartSpace)
    elif shape.has_text_frame:
        yield from _paragraphs(shape.text_frame, kind)
    else:
        for chart in shape._element.iter(CHARTS):
            if (name := chart.get(f"{_R}id")) in shape.part.rels:
                yield from chart_blocks(parse_xml(shape.part.rels[name].target_part.blob))
    for diagram in shape._element.iter(RELATIONS):
        if (name := diagram.get(DATA)) in shape.part.rels:
            yield from diagram_blocks(parse_xml(shape.part.rels[name].target_part.blob))
    description = str((shape._element.xpath(".//p:cNvPr/@descr") or [""])[0])  # lxml's own type of text otherwise
    for blip in shape._element.iter(f"{_A}blip"):
        name = blip.rEmbed if hasattr(blip, "rEmbed") else None
        related = shape.part.rels.get(name) if name else None
        target = related.target_part if related is not None and not related.is_external else None
        yield Block(
            label=Label.IMAGE,
            picture=Picture(target.blob if target else b"", description, str(target.partname) if target else "linked"),
        )


def _box(shape: Any) -> tuple[float, float, float, float] | None:
    sides = (shape.left, shape.top, shape.width, shape.height)
    if any(side is None for side in sides) or sides[2] <= 0 or sides[3] <= 0:
        return None
    left, top, width, height = (side / _EMU_PER_PIXEL for side in sides)
    return left, top, left + width, top + height


def _paragraphs(frame: Any, kind: str) -> Iterator[Block]:
    counts: dict[int, int] = {}
    for paragraph in frame.paragraphs:
        inline = _text(paragraph)
        if kind in _TITLES:
            yield from heading(inline, 1 if kind == "CENTER_TITLE" else 2)
        elif (marker := _marker(paragraph, kind, counts)) and inline.text.strip():
            yield from list_item(inline, paragraph.level, marker)
        else:
            yield from inline.blocks()


def _marker(paragraph: Any, kind: str, counts: dict[int, int]) -> str:
    """The bullet or number before a paragraph; empty for one without."""
    properties, level = paragraph._p.pPr, paragraph.level
    own = [child.tag.removeprefix(_A) for child in properties] if properties is not None else []
    if "buAutoNum" in own:
        node = properties.find(f"{_A}buAutoNum")
        style, start = node.get("type") or "", node.get("startAt") or "1"
        counts[level] = counts.get(level, int(start) - 1 if start.isdecimal() else 0) + 1
        number = ordinal(counts[level], next((sign for name, sign in _NUMBERS.items() if style.startswith(name)), "1"))
        return (
            f"({number})" if style.endswith("ParenBoth") else f"{number})" if style.endswith("ParenR") else f"{number}."
        )
    for deeper in [count for count in counts if count >= level]:
        del counts[deeper]
    return "•" if "buChar" in own or "buBlip" in own or (kind in _BODY and "buNone" not in own) else ""


def _text(paragraph: Any) -> Inline:
    inline = Inline()
    links = {run._r: _address(run) for run in paragraph.runs}
    for child in paragraph._p.iter(f"{_A}r", f"{_A}br", f"{_A}fld", f"{_M}oMath"):
        if child.tag == f"{_A}br":
            inline.add("\n")
        elif child.tag == f"{_M}oMath":
            inline.formula(latex_of_omml(child))
        else:
            inline.add("".join(each.text or "" for each in child.iterfind(f"{_A}t")), _marks(child, links.get(child)))
    return inline


def _address(run: Any) -> str | None:
    """The target of a link; None for one to another slide, whose relationship is empty."""
    with suppress(KeyError):
        address: str | None = run.hyperlink.address
        return address
    return None


def _marks(run: Any, address: str | None) -> Marks:
    properties = run.find(f"{_A}rPr")
    marks: list[tuple[Mark, str | None]] = [(Mark.LINK, target)] if (target := safe_target(address)) else []
    if properties is not None:
        marks += [
            (mark, None)
            for name, mark in (("b", Mark.BOLD), ("i", Mark.ITALIC))
            if properties.get(name) in ("1", "true")
        ]
        raised = properties.get("baseline") or "0"
        if raised.lstrip("-").isdecimal() and int(raised):
            marks.append((Mark.SUPERSCRIPT if int(raised) > 0 else Mark.SUBSCRIPT, None))
        if properties.get("strike") in ("sngStrike", "dblStrike"):
            marks.append((Mark.STRIKE, None))
    return tuple(marks)


def _table(table: Any, lost: Counter[str]) -> Iterator[Block]:
    cells = []
    for row, line in enumerate(table.rows):
        for column, each in enumerate(line.cells):
            if each.is_spanned:
                lost["covered cell"] += bool(each.text_frame.text.strip())
                continue
            span = (each.span_height, each.span_width) if each.is_merge_origin else (1, 1)
            cells.append(
                cell(_lines(each.text_frame.paragraphs), row, column, *span, header=row == 0 and table.first_row)
            )
    yield from tables(cells)


def _lines(paragraphs: Iterable[Any]) -> Inline:
    inline = Inline()
    for paragraph in paragraphs:
        inline.add_line(_text(paragraph))
    return inline
