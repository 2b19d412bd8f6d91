"""From detected regions and lines to a record: layout completed, tables recognized, everything assembled."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pagemill.config.modes import TablesMode
from pagemill.document.geometry import Box, area, as_array, clip, components, intersection, shared_areas, union_box
from pagemill.document.labels import FIGURES, FORMULAS, Label
from pagemill.document.page import ANNOTATION, PageError, PageResult, TextLine
from pagemill.errors import PagemillError
from pagemill.imaging.page import DecodedPage, TextLayer
from pagemill.imaging.photograph import evenly_lit, thin_strokes
from pagemill.imaging.transforms import rotate_quarter
from pagemill.imaging.types import Pixels
from pagemill.late import cv2
from pagemill.layout.base import DetectedRegion
from pagemill.layout.fallback import complete_regions
from pagemill.layout.misread import find_table, is_columns_of_text
from pagemill.layout.reading_order import reading_order
from pagemill.layout.text_blocks import rows_of as text_rows_of
from pagemill.parsing.assemble import assemble_blocks, assemble_regions
from pagemill.parsing.blocks import Block
from pagemill.parsing.bullets import restore_bullets
from pagemill.parsing.formula_zones import SOURCE as FORMULA_SOURCE
from pagemill.parsing.formula_zones import Zone, find_zones, with_zones
from pagemill.parsing.headings import is_table_title
from pagemill.parsing.inline_formulas import InlineFormulas, find_inline
from pagemill.parsing.lines import (
    around,
    corners_of,
    direction,
    lines_of_regions,
    mapped,
    moved,
    quarter_turn,
    rows_of,
    runs_across,
)
from pagemill.parsing.listings import mark_listings
from pagemill.parsing.lists import is_bulleted
from pagemill.parsing.pairs.regions import with_pairs
from pagemill.parsing.record import begun_record
from pagemill.parsing.scanned import is_measurable, scanned_blocks
from pagemill.parsing.thresholds import PARSING
from pagemill.parsing.typography.page import is_sentence, typographic_blocks
from pagemill.sources.base import PageRef
from pagemill.tables.find import find_tables
from pagemill.tables.prose import prose_share
from pagemill.tables.recognize import recognize_table
from pagemill.tables.structure_model import CheckedModel, StructureModel, TableFinder, packaged_model
from pagemill.tables.table import Table
from pagemill.tables.thresholds import TABLES
from pagemill.tables.words import is_number, usual_height


def analyse_page(
    ref: PageRef,
    page: DecodedPage,
    detected: Sequence[DetectedRegion],
    lines: Sequence[TextLine],
    tables_mode: TablesMode = TablesMode.AUTO,
    table_engine: StructureModel | None = None,
    *,
    by_typography: bool = False,
    photographed: bool = False,
    is_turned: bool = False,
) -> PageResult:
    """Build the record of a page. Computes for some milliseconds: call it on a thread.

    Args:
        ref: The page.
        page: Upright and straight; boxes are in its pixels.
        detected: Regions that the layout engine found.
        lines: All lines of text on the page.
        tables_mode: Who finds the rows and columns of tables.
        table_engine: The model for that; None: the embedded one.
        by_typography: Measure recognised lines on the pixels, and structure them as those of a text layer.
        photographed: Its pixels are those of a photograph laid flat.
        is_turned: The page was turned by a quarter, as its text runs down: what ran level there runs across now.
    """
    record = begun_record(ref, page)
    formulas: dict[int, str] = {}
    inline = InlineFormulas()
    across: list[TextLine] = []
    if len(lines) > PARSING.max_lines:
        whole = (0.0, 0.0, float(record.width), float(record.height))
        regions = [DetectedRegion(box=whole, label=Label.TEXT, score=None, source="projection")]
        message = f"the page has {len(lines)} lines of text; over {PARSING.max_lines} are listed without layout"
        record.errors.append(PageError(component="layout", category="too_large", message=message))
    else:
        lines = restore_bullets(lines, page.pixels)
        across = [line for line in lines if runs_across(line)] if is_turned else []
        level, found = _without_across(lines, detected, across)
        regions = _regions(page, found, level, table_engine, record.errors, photographed=photographed)
        if page.text_layer is not None and page.text_layer.symbols:
            regions, formulas, inline = _with_formulas(page.text_layer, regions, lines, record.errors)
        lines = [*level, *across]
    tables = _tables(regions, page.pixels, lines, tables_mode, table_engine, record.errors)
    if not across and len(lines) <= PARSING.max_lines:
        paired, tables = _paired(regions, tables, lines, page.pixels, record.errors)
        indices = {id(region): index for index, region in enumerate(paired)}  # formulas stay as they are
        formulas = {indices[id(regions[index])]: latex for index, latex in formulas.items()}
        regions = paired
    in_cells = {place for table in tables.values() for place in table.line_indices}  # heads of columns run across, too
    left = [place for place in range(len(lines) - len(across), len(lines)) if place not in in_cells]
    if left:
        apart = [lines[place] for place in left]
        turned, their_tables = _laid_across(page, apart, tables_mode, table_engine, record.errors)
        for index, table in their_tables.items():
            places = tuple(left[place] for place in table.line_indices)
            tables[len(regions) + index] = replace(table, line_indices=places)
        regions = [*regions, *turned]
    scanned = _scanned(page, regions, tables, lines, record) if by_typography else None
    if scanned is not None:
        assemble_blocks(record, *scanned)
    else:
        assemble_regions(record, regions, lines, tables, formulas, inline)
    return record


def _paired(
    regions: list[DetectedRegion],
    tables: dict[int, Table],
    lines: Sequence[TextLine],
    pixels: Pixels,
    errors: list[PageError],
) -> tuple[list[DetectedRegion], dict[int, Table]]:
    """Regions and tables with the rows of labels and numbers among the lines."""
    is_read = not any(line.engine in ("text-layer", ANNOTATION) for line in lines)  # fields of PDFs have their labels
    try:
        return with_pairs(regions, tables, lines, pixels, with_fields=is_read and not tables)
    except Exception as error:  # the regions show the structure, too
        message = f"rows are those of the layout engine: {type(error).__name__}: {error}"
        errors.append(PageError(component="analysis", category="internal", message=message))
        return regions, tables


def _scanned(
    page: DecodedPage,
    regions: Sequence[DetectedRegion],
    tables: dict[int, Table],
    lines: Sequence[TextLine],
    record: PageResult,
) -> tuple[list[Block], InlineFormulas] | None:
    """The blocks of a page of recognised lines by its measured typography; None where that does not tell."""
    formulas = any(region.label in FORMULAS for region in regions)  # they part the text around them
    if formulas or not is_measurable(lines):
        return None
    try:
        return scanned_blocks(page.pixels, regions, tables, lines, record.page_number)
    except Exception as error:  # the regions show the structure, too
        message = f"the structure comes from the layout engine: {type(error).__name__}: {error}"
        record.errors.append(PageError(component="analysis", category="internal", message=message))
        return None


def analyse_typography(
    ref: PageRef, page: DecodedPage, lines: Sequence[TextLine], detected: Sequence[DetectedRegion] = ()
) -> PageResult | None:
    """Build the record of a born-digital page by what its PDF says; None where that does not tell its structure.

    Args:
        ref: The page.
        page: Upright and straight, with a sound text layer; boxes are in its pixels.
        lines: All lines of text on the page.
        detected: Regions that a layout engine found, where it was asked: its pictures are believed.
    """
    layer = page.text_layer
    assert layer is not None
    record = begun_record(ref, page)
    inline, zones = InlineFormulas(), list[Zone]()
    if layer.symbols:
        try:
            zones = [zone for zone in find_zones(layer, lines) if zone.latex is not None]
            inline = find_inline(layer, lines, {id(line) for zone in zones for line in zone.lines})
        except Exception as error:  # the lines hold all that is said
            record.errors.append(_formulas_as_text(error))
            inline, zones = InlineFormulas(), []
    shown = [Block(box, Label.IMAGE, [], source) for box, source in _pictures(page, detected, lines)]
    shown += [block for zone in zones for block in _zone_blocks(zone)]
    displayed = {id(line) for block in shown for line in block.lines}
    text = inline.lines([line for line in lines if id(line) not in displayed])
    blocks = typographic_blocks(layer, text, shown, (record.width, record.height), record.page_number)
    if blocks is None:
        return None
    assemble_blocks(record, blocks, inline)
    record.styles = layer.styles
    return record


def _pictures(
    page: DecodedPage, detected: Sequence[DetectedRegion], lines: Sequence[TextLine]
) -> Iterator[tuple[Box, str]]:
    """Boxes of the pictures of a born-digital page, with who found them."""
    assert page.text_layer is not None
    layer = page.text_layer
    width, height = page.size
    images = [box for box in page.image_boxes if area(box) <= PARSING.picture_area * width * height]
    drawn = as_array([*images, *layer.drawings, *(box for box, _ in layer.fills)])
    found = []
    for region in detected:
        # A model takes tables, listings and slides for pictures; where nothing is drawn, or text is, there is none.
        covered = shared_areas(as_array([region.box]), drawn)[0] > PARSING.drawn * area(region.box)
        if region.label in FIGURES and covered and not _is_text(region.box, lines):
            found.append(region)
    found += _missed_pictures(found, page.image_boxes, lines, page.size)
    return ((clip(region.box, width, height), region.source) for region in found)


def _is_text(box: Box, lines: Sequence[TextLine]) -> bool:
    """Whether what is in a box is text: lines cover much of it, or most of them have several words."""
    inside = _inside(box, lines)
    if sum(intersection(box, line.box) for line in inside) >= PARSING.lettering * area(box):
        return True
    return 2 * sum(is_sentence(line.text) for line in inside) > len(inside)


def _zone_blocks(zone: Zone) -> Iterator[Block]:
    """A display formula and its number."""
    box = union_box([zone.box, *(line.box for line in zone.lines)])
    rows = rows_of([line for line in zone.lines if line is not zone.number])
    yield Block(box, Label.DISPLAY_FORMULA, rows, FORMULA_SOURCE, latex=zone.latex, text=zone.latex or "")
    if zone.number is not None:
        number = rows_of([zone.number])
        yield Block(zone.number.box, Label.FORMULA_NUMBER, number, FORMULA_SOURCE, text=zone.number.text.strip())


def _formulas_as_text(error: Exception) -> PageError:
    message = f"formulas are output as text: {type(error).__name__}: {error}"
    return PageError(component="analysis", category="internal", message=message)


def _regions(
    page: DecodedPage,
    detected: Sequence[DetectedRegion],
    lines: Sequence[TextLine],
    table_engine: StructureModel | None,
    errors: list[PageError],
    *,
    photographed: bool = False,
    press: bool = False,
) -> list[DetectedRegion]:
    """The regions that layout detection found, corrected by lines and rules of the page, and those that it missed."""
    pixels = page.pixels
    found = [region for region in detected if not _is_prose(region, pixels, lines)]
    found = [_as_table(region, pixels, lines, photographed=photographed) for region in found]
    drawn = thin_strokes(pixels, usual_height(lines)) if photographed and lines else pixels
    tables = _missed_tables(found, drawn, lines, errors)
    if isinstance(table_engine, TableFinder):
        tables += _found_tables([*found, *tables], pixels, table_engine, errors)
    found = [region for region in found if not _is_any_of(region, tables)]
    found = [part for region in found for part in _as_fields(region, pixels, lines) or [region]]
    found += tables
    if page.text_layer is not None:
        found += _missed_pictures(found, page.image_boxes, lines, page.size)
    regions = complete_regions(found, [line.box for line in lines], pixels, press=press)
    regions = [part for region in regions for part in _without_title(region, regions, lines)]
    members = lines_of_regions(regions, lines)
    return mark_listings(_without_lists(regions, members), members)


def _with_formulas(
    layer: TextLayer, regions: list[DetectedRegion], lines: Sequence[TextLine], errors: list[PageError]
) -> tuple[list[DetectedRegion], dict[int, str], InlineFormulas]:
    """Regions with the display formulas of a text layer's symbols, their LaTeX by region, and the formulas in lines."""
    of_layer = [line for line in lines if line.engine == "text-layer"]
    try:
        zones = find_zones(layer, of_layer)
        inline = find_inline(layer, of_layer, {id(line) for zone in zones for line in zone.lines})
        return *with_zones(regions, zones), inline
    except Exception as error:  # the lines hold all that is said
        errors.append(_formulas_as_text(error))
        return regions, {}, InlineFormulas()


def _without_across(
    lines: Sequence[TextLine], detected: Sequence[DetectedRegion], across: Sequence[TextLine]
) -> tuple[Sequence[TextLine], Sequence[DetectedRegion]]:
    """Lines, and regions, without those across the page."""
    if not across:
        return lines, detected
    known = set(map(id, across))
    found = [
        region
        for region in detected
        if not (inside := _inside(region.box, lines)) or 2 * sum(id(line) in known for line in inside) <= len(inside)
    ]
    return [line for line in lines if id(line) not in known], found


def _laid_across(
    page: DecodedPage,
    across: Sequence[TextLine],
    mode: TablesMode,
    engine: StructureModel | None,
    errors: list[PageError],
) -> tuple[list[DetectedRegion], dict[int, Table]]:
    """The regions of lines across a page, laid out on the page as it was before it was turned, and their tables.

    What stands close together is one part of the page: an advert, a headline.
    """
    degrees = -round(direction(across[0]) / 90) * 90 % 360
    width, height = page.size
    lines = [moved(line, quarter_turn(degrees, width, height)) for line in across]
    upright = DecodedPage(pixels=rotate_quarter(page.pixels, degrees))
    regions = _regions(upright, [], lines, engine, errors, press=True)
    members = lines_of_regions(regions, lines)
    heights = [min((line.box[3] - line.box[1] for line in members[i]), default=0.0) for i in range(len(regions))]
    boxes = as_array(region.box for region in regions)
    gaps = (np.maximum(boxes[:, None, :2], boxes[:, :2]) - np.minimum(boxes[:, None, 2:], boxes[:, 2:])).max(axis=2)
    near = np.argwhere(gaps < PARSING.part_gap * np.minimum.outer(heights, heights)).tolist()
    order = reading_order(boxes, [region.label for region in regions], upright.size)
    parts = {int(member): part for part, group in enumerate(components(len(regions), near)) for member in group}
    tables = _tables(regions, upright.pixels, lines, mode, engine, errors)
    back = quarter_turn(360 - degrees, *upright.size)
    laid = [
        replace(regions[i], box=around(mapped(back, corners_of(regions[i].box))), polygon=None, part=parts[i])
        for i in order
    ]
    return laid, {place: tables[i] for place, i in enumerate(order) if i in tables}


def _is_covered(box: Box, regions: Iterable[DetectedRegion]) -> bool:
    """Whether regions cover so much of a box that what it shows was found."""
    return sum(intersection(box, region.box) for region in regions) >= PARSING.region_covered * area(box)


def _missed_tables(
    detected: Sequence[DetectedRegion], pixels: Pixels, lines: Sequence[TextLine], errors: list[PageError]
) -> list[DetectedRegion]:
    """Tables with ruling lines that the layout engine did not see, neither as a table nor, surely, as a picture."""
    known = [region for region in detected if region.label is Label.TABLE and not _is_page_area(region, pixels, lines)]
    pictures = [
        region.box for region in detected if region.label in FIGURES and (region.score or 0.0) >= PARSING.sure_picture
    ]
    missed = []
    for box in find_tables(pixels, lines):
        around = [p for p in pictures if intersection(box, p) >= PARSING.table_in_picture * area(box)]
        # A grid in a picture is lettering, but for one that is the picture, with text in most of its cells.
        filled = 0.0
        if around:
            is_all = all(intersection(box, p) >= PARSING.table_is_picture * area(p) for p in around)
            filled = PARSING.table_filled if is_all else 1.1
        try:
            if not _is_covered(box, known) and _is_grid(pixels, box, lines, filled):
                missed.append(DetectedRegion(box=box, label=Label.TABLE, score=None, source="ruling-lines"))
        except Exception as error:
            place = ", ".join(f"{value:.0f}" for value in box)
            message = f"the rules at ({place}) are not taken for a table: {type(error).__name__}: {error}"
            errors.append(PageError(component="table", category="internal", message=message))
    return missed


def _found_tables(
    detected: Sequence[DetectedRegion], pixels: Pixels, engine: TableFinder, errors: list[PageError]
) -> list[DetectedRegion]:
    """Tables that the table engine finds and that are not known yet."""
    name = str(getattr(engine, "name", "table engine"))
    try:
        boxes = [clip(box, pixels.shape[1], pixels.shape[0]) for box in engine.find(pixels)]
    except Exception as raised:
        message = f"tables come from the layout engine alone: {type(raised).__name__}: {raised}"
        errors.append(PageError(component="table", category="engine", message=message))
        return []
    known = [region for region in detected if region.label is Label.TABLE]
    found: list[DetectedRegion] = []
    for box in boxes:
        if area(box) > 0 and not _is_covered(box, [*known, *found]):
            found.append(DetectedRegion(box=box, label=Label.TABLE, score=None, source=name))
    return found


def _is_any_of(region: DetectedRegion, tables: Sequence[DetectedRegion]) -> bool:
    """Whether a picture is one of the tables."""
    covered = max((intersection(region.box, table.box) for table in tables), default=0.0)
    return region.label in FIGURES and covered >= PARSING.table_is_picture * area(region.box)


def _is_page_area(region: DetectedRegion, pixels: Pixels, lines: Sequence[TextLine]) -> bool:
    """Whether a supposed table is columns of text with, maybe, tables in them: layout dissolves it."""
    inside = as_array(line.box for line in _inside(region.box, lines))
    return is_columns_of_text(np.array(region.box), inside, pixels)


def _as_table(
    region: DetectedRegion, pixels: Pixels, lines: Sequence[TextLine], *, photographed: bool = False
) -> DetectedRegion:
    """A "formula" or "picture" that is nothing but a table, as that table; others as they are."""
    if region.label not in (Label.DISPLAY_FORMULA, Label.IMAGE):
        return region
    inside = _inside(region.box, lines)
    if len(inside) > PARSING.max_lines:
        return region
    boxes = as_array(line.box for line in inside)
    found = find_table(boxes) if len(inside) else None
    if found is None or not _is_tabular([inside[i].text for i in found]):
        return region
    # Statements have rules over their sums; boxes with words and lines between them are a diagram.
    amounts = sum(is_number(inside[i].text) for i in found)
    numbers = len(found) >= PARSING.ruled_cells and 2 * amounts > len(found)
    ruled = numbers or region.label is Label.DISPLAY_FORMULA
    if not _is_text_alone(region, pixels, boxes, ruled=ruled, photographed=photographed):
        return region
    # Heads that span columns stand above; a caption is alone in its row.
    members = set(found.tolist())
    cells = [row for row in text_rows_of(boxes) if len(row) > 1 or members.intersection(row.tolist())]
    box = union_box(inside[i].box for row in cells for i in row.tolist())
    return replace(region, label=Label.TABLE, box=box, polygon=None)


def _is_tabular(texts: Sequence[str]) -> bool:
    """Whether texts are those of cells: words and numbers, not the letters and signs of a matrix."""
    told = sum(sum(map(str.isalnum, text)) >= PARSING.cell_characters for text in texts)
    return told >= PARSING.cells_told * len(texts)


def _as_fields(region: DetectedRegion, pixels: Pixels, lines: Sequence[TextLine]) -> list[DetectedRegion]:
    """The rows of a supposed picture that is the fields of a form: text that begins below each other, in frames."""
    inside = _inside(region.box, lines) if region.label in FIGURES else []
    if len(inside) < PARSING.least_fields or len(inside) > PARSING.max_lines:
        return []
    boxes = as_array(line.box for line in inside)
    rows = text_rows_of(boxes)
    height = float(np.median(boxes[:, 3] - boxes[:, 1]))
    ends = (np.array([boxes[row, 0].min() for row in rows]), np.array([-boxes[row, 2].max() for row in rows]))
    below = max(int((starts < starts.min() + height).sum()) for starts in ends)
    if below < PARSING.least_fields or below < PARSING.fields_below * len(rows):
        return []
    x1, y1, x2, y2 = map(int, region.box)
    ink = _ink(pixels[y1:y2, x1:x2]).astype(np.uint8)
    strokes = cv2.morphologyEx(ink, cv2.MORPH_OPEN, np.ones((1, int(4 * height)), np.uint8))
    level: NDArray[np.bool_] = np.asarray(strokes.max(axis=1) > 0)
    frames = int((level[1:] & ~level[:-1]).sum())  # columns of text have upright rules alone
    if frames < below or not _is_text_alone(region, pixels, boxes, ruled=True):
        return []
    return [
        replace(region, label=Label.TEXT, box=union_box(inside[i].box for i in row.tolist()), polygon=None)
        for row in rows
    ]


def _is_text_alone(
    region: DetectedRegion, pixels: Pixels, boxes: NDArray[np.float64], *, ruled: bool, photographed: bool = False
) -> bool:
    """Whether a region shows nothing but its lines of text, and rules where there may be some."""
    x, y = int(region.box[0]), int(region.box[1])
    shown = pixels[y : int(region.box[3]), x : int(region.box[2])]
    if not shown.size:
        return False
    # What is left of a shadow, where the light of the whole page was estimated, would be ink.
    ink = _ink(evenly_lit(shown) if photographed else shown)
    if ruled:
        drawn, long = ink.astype(np.uint8), 2 * int(np.median(boxes[:, 3] - boxes[:, 1]))
        thick = max(3, long // 6)  # the bars of a chart are no rules
        drawn[cv2.morphologyEx(drawn, cv2.MORPH_OPEN, np.ones((thick, thick), np.uint8)) > 0] = 0
        for rule in (np.ones((1, long), np.uint8), np.ones((long // 2, 1), np.uint8)):  # frames are as high as a line
            rules = cv2.morphologyEx(drawn, cv2.MORPH_OPEN, rule)
            ink &= cv2.dilate(rules, np.ones((3, 3), np.uint8)) == 0
    for x1, y1, x2, y2 in boxes - np.array([x, y, x, y]):
        margin = (y2 - y1) / 4
        ink[max(0, int(y1 - margin)) : int(y2 + margin) + 1, max(0, int(x1 - margin)) : int(x2 + margin) + 1] = False
    return float(ink.mean()) < PARSING.text_alone


def _ink(shown: Pixels) -> NDArray[np.bool_]:
    """What is drawn on the ground, shape (height, width)."""
    levels = shown.astype(np.int16)
    drawn: NDArray[np.bool_] = np.abs(levels - np.median(levels, axis=(0, 1))).max(axis=2) > PARSING.ink
    return drawn


def _inside(box: Box, lines: Sequence[TextLine]) -> list[TextLine]:
    return [line for line in lines if intersection(line.box, box) > PARSING.line_in_table * area(line.box)]


def _without_title(
    region: DetectedRegion, regions: Sequence[DetectedRegion], lines: Sequence[TextLine]
) -> Iterator[DetectedRegion]:
    """A table without its title in the first or last row, which is a region of its own; others as they are."""
    inside = _inside(region.box, lines) if region.label is Label.TABLE else []
    rows = text_rows_of(as_array(line.box for line in inside)) if 2 < len(inside) <= PARSING.max_lines else []
    x1, y1, x2, y2 = region.box
    for row, beside in ((rows[0], rows[1]), (rows[-1], rows[-2])) if len(rows) > 2 else ():
        title, next_to = (union_box(inside[i].box for i in each.tolist()) for each in (row, beside))
        parts = sorted(inside[i].box for i in row.tolist())
        if any(right[0] - left[2] > title[3] - title[1] for left, right in pairwise(parts)):
            continue  # cells
        if not is_table_title(" ".join(inside[i].text.strip() for i in row.tolist())):
            continue
        if title[1] < next_to[1]:
            y1 = max(y1, (title[3] + next_to[1]) / 2)
        else:
            y2 = min(y2, (next_to[3] + title[1]) / 2)
        if not any(other.label is not Label.TABLE and _is_covered(title, [other]) for other in regions):
            yield replace(region, label=Label.FIGURE_TITLE, box=title, polygon=None)
    yield region if (y1, y2) == region.box[1::2] else replace(region, box=(x1, y1, x2, y2), polygon=None)


def _is_prose(region: DetectedRegion, pixels: Pixels, lines: Sequence[TextLine]) -> bool:
    """Whether a supposed table is running text, in columns or not, that rules do not divide into rows."""
    if region.label is not Label.TABLE or prose_share(_inside(region.box, lines)) < TABLES.prose:
        return False
    table = recognize_table(pixels, region.box, lines)
    return table is None or table.method != "rules" or table.rows < TABLES.ruled_prose_rows


def _is_grid(pixels: Pixels, box: Box, lines: Sequence[TextLine], filled: float = 0.0) -> bool:
    """Whether rules have text in two rows and columns at least, and in a share of cells: paper and frames do not."""
    table = recognize_table(pixels, box, lines)
    told = [cell for cell in table.cells if cell.text] if table is not None else []
    rows = len({cell.row for cell in told})
    if prose_share(_inside(box, lines)) >= TABLES.prose and rows < TABLES.ruled_prose_rows:
        return False
    enough = table is not None and len(told) >= filled * len(table.cells)
    return enough and rows > 1 and len({cell.column for cell in told}) > 1


def _without_lists(
    regions: Sequence[DetectedRegion], members: defaultdict[int, list[TextLine]]
) -> list[DetectedRegion]:
    """Tables of bullets and texts are lists; those that only the places of lines suggested may be running text."""
    return [
        replace(region, label=Label.TEXT)
        if region.label is Label.TABLE
        and region.source != "ruling-lines"
        and (is_bulleted(rows_of(members[i])) or (region.score is None and prose_share(members[i]) >= TABLES.prose))
        else region
        for i, region in enumerate(regions)
    ]


def _missed_pictures(
    detected: Sequence[DetectedRegion], image_boxes: Sequence[Box], lines: Sequence[TextLine], size: tuple[int, int]
) -> list[DetectedRegion]:
    """Images that a PDF page places and that the layout engine did not see: not backgrounds, rules or icons."""
    width, height = size
    return [
        DetectedRegion(box=box, label=Label.IMAGE, score=None, source="pdf-image")
        for box in image_boxes
        if min(box[2] - box[0], box[3] - box[1]) >= PARSING.picture_side * min(width, height)
        and area(box) <= PARSING.picture_area * width * height
        and not _is_covered(box, detected)
        and sum(intersection(box, line.box) for line in lines) < PARSING.lettering * area(box)
        and not _is_banner(box, lines)
    ]


def _is_banner(box: Box, lines: Sequence[TextLine]) -> bool:
    """Whether an image is the ground of a single line of text, such as a heading's bar."""
    inside = [line.box for line in lines if intersection(box, line.box) > PARSING.line_in_banner * area(line.box)]
    return bool(inside) and box[3] - box[1] < PARSING.banner_height * max(other[3] - other[1] for other in inside)


def _tables(
    regions: Sequence[DetectedRegion],
    pixels: Pixels,
    lines: Sequence[TextLine],
    mode: TablesMode,
    engine: StructureModel | None,
    errors: list[PageError],
) -> dict[int, Table]:
    """Recognize each table region.

    A table on which the model breaks is recognized without it; one that breaks all the same stays a region of text
    lines. The errors say so.
    """
    tables: dict[int, Table] = {}
    for index, region in enumerate(regions):
        if region.label is not Label.TABLE:
            continue
        place = ", ".join(f"{value:.0f}" for value in region.box)
        try:
            table = _recognized(pixels, region, lines, mode, engine, f"the table at ({place})", errors)
            if table is not None:
                tables[index] = table
        except Exception as error:
            message = f"the table at ({place}) is output as text lines: {type(error).__name__}: {error}"
            errors.append(PageError(component="table", category="internal", message=message))
    return tables


def _recognized(
    pixels: Pixels,
    region: DetectedRegion,
    lines: Sequence[TextLine],
    mode: TablesMode,
    engine: StructureModel | None,
    name: str,
    errors: list[PageError],
) -> Table | None:
    """A table, or None where there are not two columns."""
    if mode is not TablesMode.RULES:
        try:
            model_first = mode is TablesMode.MODEL
            model = packaged_model if engine is None else lambda: CheckedModel(engine)
            return recognize_table(pixels, region.box, lines, model, prefer_model=model_first)
        except Exception as raised:
            error = raised if isinstance(raised, PagemillError) else PagemillError(f"{type(raised).__name__}: {raised}")
            message = f"{name} is recognized without the table model: {error.message}"
            errors.append(PageError(component="table", category=error.category, message=message, remedy=error.remedy))
    return recognize_table(pixels, region.box, lines)
