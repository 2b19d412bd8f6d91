"""Completing what a layout model found: every text line of a page gets one region, misread regions are dissolved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from pagemill.document.geometry import Box, area, areas, as_array, as_boxes, components, frame_of, intersection_matrix
from pagemill.document.labels import FIGURES, FLOWING, FORMULAS, PICTURES, Label
from pagemill.imaging.types import Floats, Indices, Pixels
from pagemill.layout.base import GIVEN, DetectedRegion
from pagemill.layout.misread import (
    fills_page,
    find_table,
    free_spans,
    is_columns_of_text,
    is_no_table,
    is_panel,
    is_photograph,
    logo_label,
    page_area,
    paragraphs_in_formula,
    picture_remainder,
    running_text,
)
from pagemill.layout.text_blocks import group_lines, is_press, line_height, split_lines, text_columns
from pagemill.layout.thresholds import LAYOUT

SOURCE = "projection"
"""``DetectedRegion.source`` of the regions found here."""


class Draft(msgspec.Struct, eq=False):
    """A region in the making."""

    label: Label
    box: Floats
    """Shape (4,), page pixels."""
    origin: DetectedRegion | None
    """The model's region; None for one found from text lines."""
    lines: list[int] = []
    """Indices of its text lines."""
    background: bool = False
    """A picture behind text: its lines are regions of their own."""

    @property
    def textual(self) -> bool:
        """Whether it is nothing without text lines."""
        return self.label not in PICTURES and self.label not in FORMULAS and self.label is not Label.TABLE


def complete_regions(
    regions: Sequence[DetectedRegion],
    lines: Sequence[Box],
    pixels: Pixels,
    *,
    press: bool = False,
) -> list[DetectedRegion]:
    """Give every text line of the page one region and dissolve regions that the model misread.

    A "figure" that is running text, a page-filling figure, a formula over half the page and a table without columns
    are dissolved (what remains of a figure beside the text is kept when the page shows something there); real
    figures keep the labels inside them. Text regions fit their lines, fall apart at columns and at paragraph gaps;
    lines without a region are clustered into blocks, columns apart, and borderless tables among them are marked.

    Args:
        regions: What the model found, in page pixels.
        lines: Boxes of all text lines of the page, in page pixels.
        pixels: The page.
        press: Whether the page is known to be one of the press; otherwise its lines tell.

    Returns:
        Regions in no particular order. Those found here have ``source`` "projection" and no score.
    """
    boxes = as_array(lines)
    height, width = pixels.shape[:2]
    boxes = np.clip(boxes[np.isfinite(boxes).all(axis=1)], 0.0, np.array([width, height, width, height]))
    boxes = boxes[(boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf) > 0]
    if not len(boxes):
        return list(regions)
    columns = text_columns(boxes)
    press = press or is_press(boxes, columns)
    if press and columns:
        regions = _shown(regions, boxes, columns)
    drafts = _without_nested(_with_table_heads(_dissolve(regions, boxes, pixels)))
    orphans = _assign(drafts, boxes)
    orphans = _adopt(drafts, boxes, orphans)
    _restore_headings(drafts, boxes)
    _complete_heads(drafts, boxes, height)
    drafts = [part for draft in drafts for part in _split(draft, boxes)]
    drafts += _cluster(boxes, orphans, press=press)
    drafts = [draft for draft in drafts if draft.lines or not draft.textual]
    return [_finish(draft, boxes) for draft in drafts]


def _shown(regions: Iterable[DetectedRegion], boxes: Floats, columns: Sequence[Indices]) -> list[DetectedRegion]:
    """The pictures and tables of a page of the press. A model's regions of text run over its narrow gutters.

    Args:
        regions: What the model found.
        boxes: Lines of text.
        columns: The lines of each column of text: a region with one in it is neither picture nor table.
    """
    frames = np.array([frame_of(boxes[column]) for column in columns])
    kept = []
    for region in regions:
        shown = region.label in FIGURES or region.label is Label.TABLE
        inside = _shares(frames, np.array(region.box)[None])[:, 0] >= LAYOUT.line_inside
        if region.source == GIVEN or (shown and not inside.any()):
            kept.append(region)
    return kept


def _dissolve(regions: Iterable[DetectedRegion], boxes: Floats, pixels: Pixels) -> list[Draft]:
    """Drafts of the model's regions without the misread ones."""
    drafts = []
    for region in regions:
        box = np.array(region.box, dtype=np.float64)
        inside = boxes[_shares(boxes, box[None])[:, 0] >= LAYOUT.line_inside]
        label = logo_label(box, pixels.shape[0]) if region.label is Label.IMAGE else region.label
        draft = Draft(label, box, region)
        if region.source == GIVEN:
            drafts.append(draft)
        elif draft.label in FIGURES:
            drafts += _real_pictures(draft, inside, pixels)
        elif draft.label is Label.DISPLAY_FORMULA:
            drafts += _real_formulas(draft, inside, pixels)
        elif draft.label is not Label.TABLE or not is_columns_of_text(box, inside, pixels):
            if draft.label is Label.TABLE and is_no_table(inside):
                draft.label = Label.TEXT
            drafts.append(draft)
    return drafts


def _real_pictures(draft: Draft, inside: Floats, pixels: Pixels) -> list[Draft]:
    """A picture, or what is a picture of it."""
    if draft.label is Label.IMAGE and is_panel(draft.box, inside, pixels):
        return []
    text = inside[running_text(draft.box, inside, pixels)]
    if not len(text):
        return [draft]
    if fills_page(draft.box, pixels):
        # A photograph with words across it stays a picture; a photographed page is its text.
        draft.background = is_photograph(draft.box, inside)
        return [draft] if draft.background else []
    return [Draft(draft.label, part, draft.origin) for part in picture_remainder(draft.box, text, pixels)]


def _real_formulas(draft: Draft, inside: Floats, pixels: Pixels) -> list[Draft]:
    """A formula without the paragraphs that the model put into it; none where it spans much of the page."""
    if area(draft.box) > LAYOUT.big_formula * page_area(pixels) and len(inside) > 1:
        return []
    if len(inside) == 1 and draft.origin and (draft.origin.score or 0.0) < LAYOUT.formula_doubt:
        draft.label = Label.TEXT
    text = paragraphs_in_formula(draft.box, inside)
    if not text.any():
        return [draft]
    rest = inside[~text]
    centre = (rest[:, 1] + rest[:, 3]) / 2
    parts = [
        rest[(centre > top) & (centre < bottom)] for top, bottom in free_spans(draft.box[1], draft.box[3], inside[text])
    ]
    return [Draft(draft.label, frame_of(part), draft.origin) for part in parts if len(part)]


def _with_table_heads(drafts: list[Draft]) -> list[Draft]:
    """Tables with the "formulas" that lie across their upper edge: rows of slanted or stacked column heads."""
    tables = [draft for draft in drafts if draft.label is Label.TABLE]
    kept = []
    for draft in drafts:
        if draft.label is Label.DISPLAY_FORMULA:
            x1, y1, x2, y2 = draft.box
            heads = [t for t in tables if t.box[0] <= (x1 + x2) / 2 <= t.box[2] and y1 < t.box[1] < y2 < t.box[3]]
            if heads:
                heads[0].box = frame_of(np.stack([heads[0].box, draft.box]))
                continue
        kept.append(draft)
    return kept


def _without_nested(drafts: list[Draft]) -> list[Draft]:
    """Without text regions inside tables: the cells are the table's to read."""
    tables = np.array([draft.box for draft in drafts if draft.label is Label.TABLE]).reshape(-1, 4)
    if not len(tables):
        return drafts
    return [d for d in drafts if not d.textual or _shares(d.box[None], tables).max() < LAYOUT.nested]


def _shares(boxes: Floats, regions: Floats) -> Floats:
    """Share of every line's area inside every region, shape (lines, regions)."""
    return intersection_matrix(boxes, regions) / areas(boxes)[:, None]


def _assign(drafts: list[Draft], boxes: Floats) -> list[int]:
    """Put every line into the smallest text region or table around it, else into the picture; returns the rest."""
    if not drafts:
        return list(range(len(boxes)))
    frames = np.array([draft.box for draft in drafts])
    shares = _shares(boxes, frames)
    picture = np.array([draft.label in PICTURES for draft in drafts])
    grows = np.array([draft.textual or draft.label is Label.TABLE for draft in drafts])
    background = np.array([draft.background for draft in drafts])
    inside = (shares >= LAYOUT.line_inside) & ~background
    size = areas(frames)
    # Pictures only take what nothing else holds; regions that cut a line come last and by share.
    cost = np.where(inside, size + picture * size.sum(), np.inf)
    cut = ~inside & grows & (shares >= LAYOUT.line_cut)
    cost = np.where(cut, (3 - shares) * size.sum(), cost)
    held = np.isfinite(cost).any(axis=1)
    for line in np.flatnonzero(held).tolist():
        drafts[cost[line].argmin()].lines.append(line)
    return np.flatnonzero(~held).tolist()


def _adopt(drafts: list[Draft], boxes: Floats, orphans: list[int]) -> list[int]:
    """Give orphans that are one block with lines of a single text region to that region; returns the others."""
    home = {i: draft for draft in drafts if draft.label in {*FLOWING, Label.PARAGRAPH_TITLE} for i in draft.lines}
    free = np.zeros(len(boxes), dtype=bool)
    free[[*orphans, *home]] = True
    left = set(orphans)
    for block in group_lines(boxes, free):
        adopted = [i for i in block.tolist() if i in left]
        owners = {home[i] for i in block.tolist() if i in home}
        if len(owners) == 1:
            (owner,) = owners
            if owner.label not in FLOWING:
                adopted = [i for i in adopted if _in_row(boxes[i], boxes[owner.lines])]
            owner.lines += adopted
            left -= set(adopted)
    return sorted(left)


def _in_row(line: Floats, others: Floats) -> bool:
    """Whether a line stands beside one of the others, at the same height."""
    shared = np.minimum(line[3], others[:, 3]) - np.maximum(line[1], others[:, 1])
    return bool((shared > LAYOUT.same_row * (line[3] - line[1])).any())


def _restore_headings(drafts: list[Draft], boxes: Floats) -> None:
    """Turn a "header" back into a heading: above all other lines, flush with the text close below."""
    for draft in drafts:
        if draft.label is not Label.HEADER or len(draft.lines) != 1:
            continue
        others = np.delete(boxes, draft.lines, axis=0)
        if not len(others):
            continue
        line, following = boxes[draft.lines[0]], others[others[:, 1].argmin()]
        size, gap = line[3] - line[1], following[1] - line[3]
        flush = min(abs(following[0] - line[0]), abs(following[2] - line[2])) < size  # right-to-left pages, too
        if 0 < gap < LAYOUT.heading_gap * size and flush:
            draft.label = Label.PARAGRAPH_TITLE


def _complete_heads(drafts: list[Draft], boxes: Floats, height: float) -> None:
    """Mark the other pieces of a running head: single lines at the top in one row with a header."""
    heads = [line for draft in drafts if draft.label is Label.HEADER for line in draft.lines]
    for draft in drafts:
        if draft.label is Label.TEXT and len(draft.lines) == 1:
            line = boxes[draft.lines[0]]
            if line[3] < LAYOUT.head_band * height and _in_row(line, boxes[heads]):
                draft.label = Label.HEADER


def _split(draft: Draft, boxes: Floats) -> list[Draft]:
    """A text region cut into its columns and paragraphs; a table found inside becomes a region of its own."""
    if draft.label not in FLOWING or len(draft.lines) < 2:
        return [draft]
    tables, members = _tables(boxes, np.array(sorted(draft.lines), dtype=np.intp), draft.origin)
    blocks = split_lines(boxes, members) if len(members) else []
    return tables + [_part(draft.origin, draft.label, boxes, block) for block in _joined(boxes, blocks)]


def _tables(boxes: Floats, members: Indices, origin: DetectedRegion | None) -> tuple[list[Draft], Indices]:
    """Borderless tables among lines, and the lines outside of them."""
    tables = []
    while (found := find_table(boxes[members])) is not None:
        tables.append(_part(origin, Label.TABLE, boxes, members[found]))
        members = np.delete(members, found)
    return tables, members


def _part(origin: DetectedRegion | None, label: Label, boxes: Floats, block: Indices) -> Draft:
    return Draft(label, frame_of(boxes[block]), origin, block.tolist())


def _joined(boxes: Floats, blocks: list[Indices]) -> list[Indices]:
    """Blocks whose frames overlap put together again: pieces of formulas and of ragged lines."""
    while len(blocks) > 1:
        frames = np.array([frame_of(boxes[block]) for block in blocks])
        size = areas(frames)
        overlap = intersection_matrix(frames, frames) > LAYOUT.blocks_overlap * np.minimum.outer(size, size)
        pairs = np.argwhere(np.triu(overlap, k=1)).tolist()
        if not pairs:
            break
        # All that touch at once: pair by pair, a page of many overlapping lines would take the cube of their number.
        blocks = [np.concatenate([blocks[i] for i in group]) for group in components(len(blocks), pairs)]
    return blocks


def _cluster(boxes: Floats, orphans: list[int], *, press: bool) -> list[Draft]:
    """Regions of the lines that have none; no tables among them on a page of the press, whose columns share rows."""
    if not orphans:
        return []
    drafts, rest = list[Draft](), np.array(orphans, dtype=np.intp)
    if not press:
        drafts, rest = _tables(boxes, rest, None)
    free = np.zeros(len(boxes), dtype=bool)
    free[rest] = True
    unit = line_height(boxes)
    blocks = group_lines(boxes, free, press=press)
    for block in blocks if press else _joined(boxes, blocks):
        title = line_height(boxes[block]) > LAYOUT.title_size * unit
        drafts.append(_part(None, Label.PARAGRAPH_TITLE if title else Label.TEXT, boxes, block))
    return drafts


def _finish(draft: Draft, boxes: Floats) -> DetectedRegion:
    """A draft as a region whose box fits its lines."""
    frame = draft.box
    if draft.lines and draft.label not in PICTURES:
        around = frame_of(boxes[draft.lines])
        frame = around if draft.textual else frame_of(np.stack([around, frame]))
    (box,) = as_boxes(frame[None])
    if draft.origin is None:
        return DetectedRegion(box=box, label=draft.label, score=None, source=SOURCE)
    whole = np.allclose(frame, draft.origin.box)
    return replace(draft.origin, box=box, label=draft.label, polygon=draft.origin.polygon if whole else None)
