"""Completing what a layout model found: every text line of a page gets one region, misread regions are dissolved."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from pagemill.document.geometry import areas, as_array, intersection_matrix
from pagemill.document.labels import Label
from pagemill.layout.base import DetectedRegion
from pagemill.layout.misread import find_table, is_single_column, picture_remainder, running_text
from pagemill.layout.text_blocks import group_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pagemill.document.geometry import Box
    from pagemill.imaging.types import Pixels

SOURCE = "projection"
"""``DetectedRegion.source`` of the regions found here."""

_PICTURES = frozenset({Label.IMAGE, Label.CHART, Label.HEADER_IMAGE, Label.FOOTER_IMAGE, Label.SEAL})
_FORMULAS = frozenset({Label.DISPLAY_FORMULA, Label.INLINE_FORMULA})
_FLOWING = frozenset({Label.TEXT, Label.ABSTRACT, Label.REFERENCE_CONTENT, Label.CONTENT, Label.FOOTNOTE})
_INSIDE = 0.5  # share of a line's box inside a region that makes it the region's line
_CUT = 0.25  # share from which a text region that cuts through a line takes all of it
_BIG_FORMULA = 0.1  # share of the page
_MARGIN = 0.08  # share of the page height where running heads and feet stand
_TITLE_SIZE = 1.3  # height of a heading found here, in median line heights
_MAX_TITLE_LINES = 3


@dataclass(slots=True)
class _Draft:
    """A region in the making."""

    label: Label
    box: NDArray[np.float64]
    origin: DetectedRegion | None
    """The model's region; None for one found here."""
    lines: list[int] = field(default_factory=list)


def complete_regions(
    regions: Sequence[DetectedRegion],
    lines: Sequence[Box],
    page_size: tuple[float, float],
    pixels: Pixels | None = None,
) -> list[DetectedRegion]:
    """Give every text line of the page one region and dissolve regions that the model misread.

    A "figure" that is running text, a page-filling figure, a formula over half the page and a table without columns
    are dissolved (what remains of a figure beside the text is kept when ``pixels`` show something there); real
    figures keep the labels inside them. Text regions fit their lines, fall apart at columns and at paragraph gaps;
    lines without a region are clustered into blocks, columns apart, and borderless tables among them are marked.

    Args:
        regions: What the model found, in page pixels.
        lines: Boxes of all text lines of the page, in page pixels.
        page_size: Width and height in pixels.
        pixels: The page; None leaves the remainders of dissolved figures out.

    Returns:
        Regions in no particular order. Those found here have ``source`` "projection" and score 0.
    """
    boxes = as_array(lines)
    width, height = page_size
    boxes = np.clip(np.nan_to_num(boxes), 0.0, np.array([width, height, width, height]))
    boxes = boxes[(boxes[:, 2:] - boxes[:, :2]).min(axis=1, initial=np.inf) > 0]
    if not len(boxes):
        return list(regions)
    drafts = _dissolve(regions, boxes, width * height, pixels)
    orphans = _assign(drafts, boxes)
    orphans = _adopt(drafts, boxes, orphans)
    drafts = [part for draft in drafts for part in _split(draft, boxes)]
    drafts += _cluster(boxes, orphans, page_size)
    drafts = [draft for draft in drafts if draft.lines or _stands_without_lines(draft)]
    return [_finish(draft, boxes) for draft in drafts]


def _stands_without_lines(draft: _Draft) -> bool:
    return draft.label in _PICTURES or draft.label in _FORMULAS or draft.label is Label.TABLE


def _dissolve(
    regions: Iterable[DetectedRegion], boxes: NDArray[np.float64], page_area: float, pixels: Pixels | None
) -> list[_Draft]:
    """Drafts of the model's regions without the misread ones."""
    drafts = []
    for region in regions:
        box = np.array(region.box, dtype=np.float64)
        inside = _shares(boxes, box[None])[:, 0] >= _INSIDE
        draft = _Draft(region.label, box, region)
        if region.label in (Label.IMAGE, Label.CHART):
            text = boxes[inside][running_text(box, boxes[inside], page_area)]
            if len(text):
                rest = [] if pixels is None else picture_remainder(box, text, pixels, page_area)
                drafts += [_Draft(region.label, part, region) for part in rest]
                continue
        elif region.label is Label.DISPLAY_FORMULA:
            if areas(box[None])[0] > _BIG_FORMULA * page_area and inside.sum() >= 6:
                continue
        elif region.label is Label.TABLE and is_single_column(boxes[inside]):
            draft.label = Label.TEXT
        drafts.append(draft)
    return drafts


def _shares(boxes: NDArray[np.float64], regions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of every line's area inside every region, shape (lines, regions)."""
    shares: NDArray[np.float64] = intersection_matrix(boxes, regions) / areas(boxes)[:, None]
    return shares


def _assign(drafts: list[_Draft], boxes: NDArray[np.float64]) -> list[int]:
    """Put every line into the smallest text region or table around it, else into the picture; returns the rest."""
    if not drafts:
        return list(range(len(boxes)))
    frames = np.array([draft.box for draft in drafts])
    shares = _shares(boxes, frames)
    picture = np.array([draft.label in _PICTURES for draft in drafts])
    textual = np.array([not _stands_without_lines(draft) for draft in drafts])
    inside = shares >= _INSIDE
    size = areas(frames)
    # Pictures only take what nothing else holds; regions that cut a line come last and by share.
    cost = np.where(inside, size[None, :] + picture[None, :] * size.sum(), np.inf)
    cut = ~inside & textual[None, :] & (shares >= _CUT)
    cost = np.where(cut, (3 - shares) * size.sum(), cost)
    orphans = []
    for line, home in enumerate(cost.argmin(axis=1)):
        if np.isfinite(cost[line, home]):
            drafts[home].lines.append(line)
        else:
            orphans.append(line)
    return orphans


def _adopt(drafts: list[_Draft], boxes: NDArray[np.float64], orphans: list[int]) -> list[int]:
    """Give orphans that are one block with lines of a single text region to that region; returns the others."""
    home = {line: draft for draft in drafts if draft.label in _FLOWING for line in draft.lines}
    titled = {line: draft for draft in drafts if draft.label is Label.PARAGRAPH_TITLE for line in draft.lines}
    free = np.zeros(len(boxes), dtype=bool)
    free[orphans + list(home) + list(titled)] = True
    left = set(orphans)
    for block in group_lines(boxes, free):
        members = [int(i) for i in block]
        strays = [i for i in members if i in left]
        owners = {id(draft): draft for draft in (home.get(i) or titled.get(i) for i in members) if draft is not None}
        if not strays or len(owners) != 1:
            continue
        owner = next(iter(owners.values()))
        rows = [i for i in strays if _in_row(boxes[i], boxes[owner.lines])]
        adopted = strays if owner.label in _FLOWING else rows
        owner.lines += adopted
        left -= set(adopted)
    return sorted(left)


def _in_row(line: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether a line stands beside one of the others, at the same height."""
    shared = np.minimum(line[3], others[:, 3]) - np.maximum(line[1], others[:, 1])
    return bool((shared > 0.5 * (line[3] - line[1])).any())


def _split(draft: _Draft, boxes: NDArray[np.float64]) -> list[_Draft]:
    """A text region cut into its columns and paragraphs; a table found inside becomes a region of its own."""
    if _stands_without_lines(draft) or len(draft.lines) < 2:
        return [draft]
    members = np.array(sorted(draft.lines), dtype=np.intp)
    parts: list[_Draft] = []
    if draft.label in _FLOWING:
        parts, members = _tables(boxes, members, draft)
    blocks = [members[block] for block in group_lines(boxes[members])] if len(members) else []
    if len(blocks) > 1 and draft.label not in _FLOWING and not _side_by_side(boxes, blocks):
        blocks = [members]
    return parts + [_part(draft, draft.label, boxes, block) for block in _joined(boxes, blocks)]


def _tables(
    boxes: NDArray[np.float64], members: NDArray[np.intp], draft: _Draft | None
) -> tuple[list[_Draft], NDArray[np.intp]]:
    """Borderless tables among lines, and the lines outside of them."""
    tables = []
    while (found := find_table(boxes[members])) is not None:
        tables.append(_part(draft, Label.TABLE, boxes, members[found]))
        members = np.delete(members, found)
    return tables, members


def _part(draft: _Draft | None, label: Label, boxes: NDArray[np.float64], block: NDArray[np.intp]) -> _Draft:
    frame = _frame(boxes[block])
    return _Draft(label, frame, None if draft is None else draft.origin, [int(i) for i in block])


def _frame(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])


def _side_by_side(boxes: NDArray[np.float64], blocks: list[NDArray[np.intp]]) -> bool:
    """Whether two blocks of two lines or more stand beside each other."""
    frames = np.array([_frame(boxes[block]) for block in blocks if len(block) >= 2]).reshape(-1, 4)
    low, high = np.maximum(frames[:, None], frames[None])[..., :2], np.minimum(frames[:, None], frames[None])[..., 2:]
    shared = high - low
    beside = (shared[..., 0] <= 0) & (shared[..., 1] > 0)
    return bool(beside.any())


def _joined(boxes: NDArray[np.float64], blocks: list[NDArray[np.intp]]) -> list[NDArray[np.intp]]:
    """Blocks whose frames overlap put together again: pieces of formulas and of ragged lines."""
    blocks = list(blocks)
    merged = True
    while merged and len(blocks) > 1:
        merged = False
        frames = np.array([_frame(boxes[block]) for block in blocks])
        shared = intersection_matrix(frames, frames)
        size = areas(frames)
        overlap = np.triu(shared > 0.3 * np.minimum(size[:, None], size[None, :]), k=1)
        for a, b in np.argwhere(overlap)[:1]:
            blocks[a] = np.concatenate([blocks[a], blocks[b]])
            del blocks[b]
            merged = True
    return blocks


def _cluster(boxes: NDArray[np.float64], orphans: list[int], page_size: tuple[float, float]) -> list[_Draft]:
    """Regions of the lines that have none."""
    if not orphans:
        return []
    drafts, rest = _tables(boxes, np.array(orphans, dtype=np.intp), None)
    free = np.zeros(len(boxes), dtype=bool)
    free[rest] = True
    unit = float(np.median(boxes[:, 3] - boxes[:, 1]))
    for block in group_lines(boxes, free):
        drafts.append(_part(None, _block_label(boxes, block, unit, page_size), boxes, block))
    return drafts


def _block_label(
    boxes: NDArray[np.float64], block: NDArray[np.intp], unit: float, page_size: tuple[float, float]
) -> Label:
    """Running head or foot, heading or text, by place and size."""
    frame = _frame(boxes[block])
    others = np.delete(boxes, block, axis=0)
    small = len(block) == 1 and frame[3] - frame[1] <= _TITLE_SIZE * unit
    if small and len(others) >= 5:
        above, below = others[others[:, 1] < frame[1] - 0.5 * unit], others[others[:, 3] > frame[3] + 0.5 * unit]
        if frame[3] < _MARGIN * page_size[1] and not len(above) and below[:, 1].min() - frame[3] > unit:
            return Label.HEADER
        if frame[1] > (1 - _MARGIN) * page_size[1] and not len(below) and frame[1] - above[:, 3].max() > unit:
            return Label.FOOTER
    size = float(np.median(boxes[block, 3] - boxes[block, 1]))
    return Label.PARAGRAPH_TITLE if size > _TITLE_SIZE * unit and len(block) <= _MAX_TITLE_LINES else Label.TEXT


def _finish(draft: _Draft, boxes: NDArray[np.float64]) -> DetectedRegion:
    """A draft as a region whose box fits its lines."""
    frame = draft.box
    if draft.lines and draft.label not in _PICTURES:
        around = _frame(boxes[draft.lines])
        frame = _frame(np.stack([around, frame])) if _stands_without_lines(draft) else around
    box = (float(frame[0]), float(frame[1]), float(frame[2]), float(frame[3]))
    if draft.origin is None:
        return DetectedRegion(box=box, label=draft.label, score=0.0, source=SOURCE)
    whole = np.allclose(frame, draft.origin.box)
    return replace(draft.origin, box=box, label=draft.label, polygon=draft.origin.polygon if whole else None)
