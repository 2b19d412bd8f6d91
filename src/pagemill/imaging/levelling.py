"""A page laid flat, levelled: the lines of text and the rules on it show what the network left bent.

The network sees a page at 488 x 712 pixels and is off by up to a line's height where the paper has folds. Lines of text
and rules are level, and upright rules plumb: how far they are not is smoothed over the page and taken off the mesh, so
that the pixels are still interpolated once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pagemill.document.geometry import Box
from pagemill.imaging.thresholds import IMAGING
from pagemill.imaging.types import Floats, Pixels
from pagemill.imaging.unwarping import Sheet
from pagemill.late import cv2


def levelled(sheet: Sheet, flat: Pixels, lines: Sequence[Floats], text: Box, text_height: float) -> Sheet:
    """The sheet with its lines of text and its rules made level.

    Computes for 0.3 s.

    Args:
        sheet: As the network found it.
        flat: Its pixels, evenly lit.
        lines: Points along the middle of each line of text, shape (n, 2), in pixels of the flat page.
        text: Around them: beyond it the ground may have lines.
        text_height: Usual height of a line in pixels.

    Returns:
        A sheet of the same size; the same one where nothing is bent.
    """
    gray = np.asarray(cv2.cvtColor(flat, cv2.COLOR_RGB2GRAY), np.uint8)
    across = [*lines, *rule_curves(gray, text_height, text)]
    turned = (text[1], text[0], text[3], text[2])
    down = [curve[:, ::-1] for curve in rule_curves(np.ascontiguousarray(gray.T), text_height, turned)]
    size = sheet.width, sheet.height
    moves = np.stack([_moves(down, 0, size, text_height), _moves(across, 1, size, text_height)], axis=2)
    if np.abs(moves).max() < IMAGING.least_move * text_height:
        return sheet
    finer = IMAGING.mesh_finer
    rows, columns = ((nodes - 1) * finer + 1 for nodes in IMAGING.moved_nodes)
    x, y = np.meshgrid(np.arange(columns, dtype=np.float32), np.arange(rows, dtype=np.float32))
    step = np.array(size) / (columns - 1, rows - 1)
    coarse = moves.astype(np.float32)
    fine = cv2.remap(coarse, x / finer, y / finer, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    places = np.stack([x, y], axis=2) * step + fine
    nodes = sheet.place(places.reshape(-1, 2)).reshape(rows, columns, 2)
    return Sheet(nodes.astype(np.float32), sheet.width, sheet.height)


def rule_curves(gray: NDArray[np.uint8], text_height: float, within: Box) -> list[Floats]:
    """Points along the horizontal rules of a page, which may be bent.

    Args:
        gray: Shape (height, width), evenly lit.
        text_height: Usual height of a line of text in pixels.
        within: Where to look.

    Returns:
        Of each rule points from left to right, shape (n, 2), in pixels.
    """
    reach = IMAGING.rule_reach * text_height
    left, top = (max(0, math.floor(edge - reach)) for edge in within[:2])
    right, bottom = (math.ceil(edge + reach) for edge in within[2:])
    page = np.ascontiguousarray(gray[top:bottom, left:right])
    if not page.size:
        return []
    window = max(15, 2 * round(text_height) + 1)
    mean, inverted = cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV
    dark = cv2.adaptiveThreshold(page, 255, mean, inverted, window, IMAGING.rule_contrast)
    dark = cv2.morphologyEx(dark, cv2.MORPH_CLOSE, np.ones((1, 3), np.uint8))
    kernel = np.ones((1, max(8, round(IMAGING.rule_piece * text_height))), np.uint8)
    # Pieces of a sloping rule touch at corners, if at all.
    strokes = cv2.dilate(cv2.morphologyEx(dark, cv2.MORPH_OPEN, kernel), np.ones((3, 3), np.uint8))
    _, labels, stats, _ = cv2.connectedComponentsWithStats(strokes, connectivity=8)
    thickest = IMAGING.thickest_rule * text_height + 3
    curves: list[Floats] = []
    for label in (np.flatnonzero(stats[1:, cv2.CC_STAT_WIDTH] >= IMAGING.longest_letter * text_height) + 1).tolist():
        x, y, width, height, area = stats[label].tolist()
        if area > thickest * width:
            continue
        rule = labels[y : y + height, x : x + width] == label
        thick = rule.sum(axis=0)
        sure = np.flatnonzero((thick > 0) & (thick <= thickest))
        if len(sure) < width / 2:
            continue
        middles = (np.arange(height) + 0.5) @ rule[:, sure] / thick[sure]
        points = np.column_stack([left + x + sure + 0.5, top + y + middles])
        parts = np.array_split(points, max(4, round(width / text_height)))
        curves.append(np.array([part.mean(axis=0) for part in parts]))
    return curves


def _moves(curves: Sequence[Floats], axis: int, size: tuple[int, int], text_height: float) -> Floats:
    """How far points of the level page are along an axis from where they are now, on a coarse grid: shape of its nodes.

    The smoothest grid on which each curve is as far off as it is bent: linear least squares, in text heights, in which
    points that disagree with their neighbours count less each round: slanted writing, an edge in a picture.
    """
    stiff = _stiffness(axis)
    if not curves:
        return np.zeros(IMAGING.moved_nodes)
    shares, wanted, own = [], [], []
    for curve in curves:
        # Where the curve will be once it is level: where it is, squeezing the page would look like levelling it.
        level = curve.copy()
        level[:, axis] = curve[:, axis].mean()
        share, off = _shares(level, size), curve[:, axis] / text_height
        own.append(share)
        shares.append(share - share.mean(axis=0))
        wanted.append(off - off.mean())
    share, off = np.concatenate(shares), np.concatenate(wanted)
    weight = np.ones(len(off))
    for _ in range(IMAGING.fitted_rounds):
        weighted = share * weight[:, None]
        moves = np.linalg.solve(stiff + weighted.T @ share, weighted.T @ off)
        weight = 1.0 / (1.0 + ((share @ moves - off) / IMAGING.off_curve) ** 2)
    # No curve says where it should be: on the whole the page stays where it is.
    moves -= np.concatenate(own).mean(axis=0) @ moves
    return np.asarray(moves.reshape(IMAGING.moved_nodes) * text_height)


def _shares(points: Floats, size: tuple[int, int]) -> Floats:
    """What each node of the grid contributes to points, shape (points, nodes)."""
    rows, columns = IMAGING.moved_nodes
    at = np.clip(points / size, 0.0, 1.0) * (columns - 1, rows - 1)
    cell = np.minimum(at.astype(np.intp), (columns - 2, rows - 2))
    (right, below), (x, y), point = (at - cell).T, cell.T, np.arange(len(points))
    shares = np.zeros((len(points), rows * columns))
    for dx, dy, share in (
        (0, 0, (1 - right) * (1 - below)),
        (1, 0, right * (1 - below)),
        (0, 1, (1 - right) * below),
        (1, 1, right * below),
    ):
        shares[point, (y + dy) * columns + x + dx] = share
    return shares


@functools.cache
def _stiffness(axis: int) -> Floats:
    """What bends of the grid cost, and a little what stretches it along an axis; shape (nodes, nodes)."""
    count = math.prod(IMAGING.moved_nodes)
    grid = np.eye(count).reshape(*IMAGING.moved_nodes, count)
    bends = (np.diff(grid, 2, axis=0), np.diff(grid, 2, axis=1), math.sqrt(2) * np.diff(np.diff(grid, axis=0), axis=1))
    cost = IMAGING.pull * np.eye(count)
    for weight, changes in (*((IMAGING.stiff, bend) for bend in bends), (IMAGING.tight, np.diff(grid, axis=1 - axis))):
        flat = changes.reshape(-1, count)
        cost += weight**2 * flat.T @ flat
    return np.asarray(cost)
