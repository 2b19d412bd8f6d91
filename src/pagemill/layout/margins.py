"""Running heads and feet, logos and marginal text, told by their place on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pagemill.document.labels import Label
from pagemill.layout.drafts import FLOWING, FORMULAS, frame_of
from pagemill.layout.text_blocks import rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pagemill.layout.drafts import Draft

_BAND = 0.08  # share of the page height where running heads and feet stand
_EDGE = 0.025  # share where nothing but they stand
_WIDE_BAND = 0.12  # for rows that hold a head the model knew, or that are spread over the page
_LOGO = 0.08  # share of the page height; a larger picture at the top is a figure
_SIZE = 1.4  # largest height of a line, in median line heights; larger is a title
_MODEL_DOUBT = 0.6  # a text region of the model with a lower score may be a head after all
_VERTICAL = 4.0  # height over width of marginal text that runs upwards
_MIN_LINES = 5  # a page with fewer lines is a cover or a note and has no running heads
_HEADS = frozenset({Label.HEADER, Label.HEADER_IMAGE, Label.NUMBER, Label.FOOTER, Label.FOOTER_IMAGE})


def mark_margins(drafts: Sequence[Draft], boxes: NDArray[np.float64], page_size: tuple[float, float]) -> None:
    """Relabel drafts in the margins, in place.

    A single line at the top (bottom) of the page with nothing above (below) it and a gap to the body is a header
    (footer); so is what shares a row with one. Narrow upright text beside everything
    else is marginal text.

    Args:
        drafts: All regions of the page with their lines.
        boxes: The page's text lines, shape (n, 4), pixels.
        page_size: Width and height in pixels.
    """
    if len(boxes) < _MIN_LINES:
        return
    width, _ = page_size
    unit = float(np.median(boxes[:, 3] - boxes[:, 1]))
    for draft in drafts:
        _mark_vertical(draft, boxes, width)
    upright = [draft for draft in drafts if draft.label is not Label.ASIDE_TEXT]
    _mark_rows(upright, boxes, page_size, unit, Label.HEADER)
    _mark_rows(upright, boxes, page_size, unit, Label.FOOTER)


def logo_label(box: NDArray[np.float64], height: float) -> Label | None:
    """Header or footer image for a small picture, box of shape (4,), at the edge of the page; else None."""
    if box[3] - box[1] > _LOGO * height:
        return None
    if box[3] < _WIDE_BAND * height:
        return Label.HEADER_IMAGE
    return Label.FOOTER_IMAGE if box[1] > (1 - _WIDE_BAND) * height else None


def _mark_vertical(draft: Draft, boxes: NDArray[np.float64], width: float) -> None:
    if not draft.lines or not draft.textual or len(draft.lines) > 3:
        return
    frame = frame_of(boxes[draft.lines])
    outer = frame[2] < _WIDE_BAND * width or frame[0] > (1 - _WIDE_BAND) * width
    if outer and frame[3] - frame[1] > _VERTICAL * (frame[2] - frame[0]):
        draft.label = Label.ASIDE_TEXT


def _mark_rows(
    drafts: Sequence[Draft], boxes: NDArray[np.float64], page_size: tuple[float, float], unit: float, label: Label
) -> None:
    """Go through the rows of regions from the edge inwards as long as they are heads (feet)."""
    # Distances are measured from the edge in question, so that one rule serves both.
    width, height = page_size
    spans = []
    for draft in drafts:
        frame = frame_of(boxes[draft.lines]) if draft.lines else draft.box
        near, far = (frame[1], frame[3]) if label is Label.HEADER else (height - frame[3], height - frame[1])
        spans.append((float(near), float(far), frame, draft))
    spans.sort(key=lambda span: span[0])
    start = 0
    while start < len(spans):
        end, reach = start + 1, spans[start][1]
        while end < len(spans) and spans[end][0] < reach - 0.4 * (reach - spans[start][0]):
            reach = max(reach, spans[end][1])
            end += 1
        row = spans[start:end]
        gap = spans[end][0] - reach if end < len(spans) else height
        known = any(draft.label in _HEADS for *_, draft in row)
        extent = max(frame[2] for *_, frame, _ in row) - min(frame[0] for *_, frame, _ in row)
        pieces = sum(max(1, len(draft.lines)) for *_, draft in row)
        spread = pieces >= 3 and extent > 0.5 * width
        band = (_WIDE_BAND if known or spread else _BAND) * height
        apart = known or gap > unit or reach < _EDGE * height
        if reach > band or not apart or not all(_may_be_head(draft, boxes, unit, known or spread) for *_, draft in row):
            return
        for *_, draft in row:
            if draft.label not in _HEADS:
                draft.label = label
        start = end


def _may_be_head(draft: Draft, boxes: NDArray[np.float64], unit: float, sure: bool) -> bool:
    """Whether a region is small enough, and no text that the model is sure of."""
    if draft.label in _HEADS:
        return True
    if draft.label not in FLOWING and draft.label not in FORMULAS and draft.label is not Label.PARAGRAPH_TITLE:
        return False
    if not draft.lines or len(rows_of(boxes[draft.lines])) > (3 if sure else 2):
        return False
    size = float(np.median(boxes[draft.lines, 3] - boxes[draft.lines, 1]))
    doubtful = draft.origin is None or draft.origin.score < _MODEL_DOUBT
    return size <= _SIZE * unit and (sure or doubtful)
