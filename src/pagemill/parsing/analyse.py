"""From detected regions and lines to a record: layout completed, tables recognized, everything assembled."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pagemill.config.modes import TablesMode
from pagemill.document.geometry import area, as_array, intersection
from pagemill.document.labels import FIGURES, Label
from pagemill.document.page import PageError
from pagemill.errors import PagemillError
from pagemill.export.markdown import page_markdown
from pagemill.layout.base import DetectedRegion
from pagemill.layout.fallback import complete_regions
from pagemill.layout.misread import is_columns_of_text
from pagemill.parsing.assemble import assemble_regions
from pagemill.parsing.bullets import restore_bullets
from pagemill.parsing.formula_zones import find_zones, with_zones
from pagemill.parsing.inline_formulas import InlineFormulas, find_inline
from pagemill.parsing.lines import lines_of_regions, rows_of
from pagemill.parsing.listings import mark_listings
from pagemill.parsing.lists import is_bulleted
from pagemill.parsing.record import begun_record
from pagemill.parsing.thresholds import PARSING
from pagemill.tables.find import find_tables
from pagemill.tables.recognize import recognize_table
from pagemill.tables.structure_model import packaged_model

if TYPE_CHECKING:
    from collections import defaultdict
    from collections.abc import Sequence

    from pagemill.document.geometry import Box
    from pagemill.document.page import PageResult, TextLine
    from pagemill.imaging.page import DecodedPage
    from pagemill.imaging.types import Pixels
    from pagemill.sources.base import PageRef
    from pagemill.tables.table import Table


def analyse_page(
    ref: PageRef,
    page: DecodedPage,
    detected: Sequence[DetectedRegion],
    lines: Sequence[TextLine],
    tables_mode: TablesMode = TablesMode.AUTO,
) -> PageResult:
    """Build the record of a page. Computes for some milliseconds: call it on a thread.

    Args:
        ref: The page.
        page: Upright and straight; boxes are in its pixels.
        detected: Regions that the layout engine found.
        lines: All lines of text on the page.
        tables_mode: Who finds the rows and columns of tables.
    """
    record = begun_record(ref, page)
    size = float(record.width), float(record.height)
    if len(lines) > PARSING.max_lines:
        regions = [DetectedRegion(box=(0.0, 0.0, *size), label=Label.TEXT, score=None, source="projection")]
        message = f"the page has {len(lines)} lines of text; over {PARSING.max_lines} are not laid out, only listed"
        record.errors.append(PageError(component="layout", category="too_large", message=message))
    else:
        lines = restore_bullets(lines, page.pixels)
        detected = [*detected, *_missed_tables(detected, page.pixels, lines)]
        if page.text_layer is not None:
            detected += _missed_pictures(detected, page.image_boxes, lines, size)
        regions = complete_regions(detected, [line.box for line in lines], page.pixels)
        members = lines_of_regions(regions, lines)
        regions = mark_listings(_without_lists(regions, members), members)
    formulas: dict[int, str] = {}
    inline = InlineFormulas()
    if page.text_layer is not None and page.text_layer.symbols and len(lines) <= PARSING.max_lines:
        of_layer = [line for line in lines if line.engine == "text-layer"]
        try:
            zones = find_zones(page.text_layer, of_layer)
            inline = find_inline(page.text_layer, of_layer, {id(line) for zone in zones for line in zone.lines})
            regions, formulas = with_zones(regions, zones)
        except Exception as error:  # the lines hold all that is said
            message = f"formulas are given as text: {type(error).__name__}: {error}"
            record.errors.append(PageError(component="analysis", category="internal", message=message))
    tables = _tables(regions, page.pixels, lines, tables_mode, record.errors)
    assemble_regions(record, regions, lines, tables, formulas, inline)
    record.markdown = page_markdown(record)
    return record


def _missed_tables(
    detected: Sequence[DetectedRegion], pixels: Pixels, lines: Sequence[TextLine]
) -> list[DetectedRegion]:
    """Tables with ruling lines that the layout engine did not see, neither as a table nor, surely, as a picture."""
    known = [
        region.box for region in detected if region.label is Label.TABLE and not _is_page_area(region, pixels, lines)
    ]
    pictures = [
        region.box for region in detected if region.label in FIGURES and (region.score or 0.0) >= PARSING.sure_picture
    ]
    return [
        DetectedRegion(box=box, label=Label.TABLE, score=None, source="ruling-lines")
        for box in find_tables(pixels, lines)
        if sum(intersection(box, other) for other in known) < PARSING.region_covered * area(box)
        and max((intersection(box, other) for other in pictures), default=0.0) < PARSING.table_in_picture * area(box)
        and _is_grid(pixels, box, lines)
    ]


def _is_page_area(region: DetectedRegion, pixels: Pixels, lines: Sequence[TextLine]) -> bool:
    """Whether a supposed table is columns of text with, maybe, tables in them: layout dissolves it."""
    inside = [line.box for line in lines if intersection(line.box, region.box) > PARSING.line_in_table * area(line.box)]
    return is_columns_of_text(np.array(region.box), as_array(inside), pixels)


def _is_grid(pixels: Pixels, box: Box, lines: Sequence[TextLine]) -> bool:
    """Whether rules have text in two rows and columns at least: lined paper and frames do not."""
    try:
        table = recognize_table(pixels, box, lines)
    except Exception:  # told when the table is recognized for good
        return True
    told = [cell for cell in table.cells if cell.text] if table is not None else []
    return len({cell.row for cell in told}) > 1 and len({cell.column for cell in told}) > 1


def _without_lists(
    regions: Sequence[DetectedRegion], members: defaultdict[int, list[TextLine]]
) -> list[DetectedRegion]:
    """Tables of bullets and texts are lists."""
    return [
        replace(region, label=Label.TEXT)
        if region.label is Label.TABLE and region.source != "ruling-lines" and is_bulleted(rows_of(members[i]))
        else region
        for i, region in enumerate(regions)
    ]


def _missed_pictures(
    detected: Sequence[DetectedRegion],
    image_boxes: Sequence[Box],
    lines: Sequence[TextLine],
    page_size: tuple[float, float],
) -> list[DetectedRegion]:
    """Images that a PDF page places and that the layout engine did not see: not backgrounds, rules or icons."""
    smallest = PARSING.picture_side * min(page_size)
    found = []
    for box in image_boxes:
        if (
            min(box[2] - box[0], box[3] - box[1]) >= smallest
            and area(box) <= PARSING.picture_area * page_size[0] * page_size[1]
            and sum(intersection(box, region.box) for region in detected) < PARSING.region_covered * area(box)
            and sum(intersection(box, line.box) for line in lines) < PARSING.lettering * area(box)
            and not _is_banner(box, lines)
        ):
            found.append(DetectedRegion(box=box, label=Label.IMAGE, score=None, source="pdf-image"))
    return found


def _is_banner(box: Box, lines: Sequence[TextLine]) -> bool:
    """Whether an image is the ground of a single line of text, such as a heading's bar."""
    inside = [line.box for line in lines if intersection(box, line.box) > PARSING.line_in_banner * area(line.box)]
    return bool(inside) and box[3] - box[1] < PARSING.banner_height * max(other[3] - other[1] for other in inside)


def _tables(
    regions: Sequence[DetectedRegion],
    pixels: Pixels,
    lines: Sequence[TextLine],
    mode: TablesMode,
    errors: list[PageError],
) -> dict[int, Table]:
    """Recognize each table region.

    A table on which the model breaks is recognized without it; one that breaks all the same stays a region of text
    lines. The errors say so.
    """
    tables: dict[int, Table | None] = {}
    for index, region in enumerate(regions):
        if region.label is not Label.TABLE:
            continue
        place = ", ".join(f"{value:.0f}" for value in region.box)
        try:
            tables[index] = _recognized(pixels, region, lines, mode, f"the table at ({place})", errors)
        except Exception as error:
            message = f"the table at ({place}) is given as text lines: {type(error).__name__}: {error}"
            errors.append(PageError(component="table", category="internal", message=message))
    return {index: table for index, table in tables.items() if table is not None}


def _recognized(
    pixels: Pixels,
    region: DetectedRegion,
    lines: Sequence[TextLine],
    mode: TablesMode,
    name: str,
    errors: list[PageError],
) -> Table | None:
    """A table, or None where there are not two columns."""
    if mode is not TablesMode.RULES:
        try:
            model_first = mode is TablesMode.MODEL
            return recognize_table(pixels, region.box, lines, packaged_model, prefer_model=model_first)
        except Exception as raised:
            error = raised if isinstance(raised, PagemillError) else PagemillError(f"{type(raised).__name__}: {raised}")
            message = f"{name} is recognized without the table model: {error.message}"
            errors.append(PageError(component="table", category=error.category, message=message, remedy=error.remedy))
    return recognize_table(pixels, region.box, lines)
