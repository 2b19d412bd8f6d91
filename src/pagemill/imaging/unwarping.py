"""Photographs of pages unwarped: what is bent, folded or seen at an angle is laid flat, and places are mapped back.

UVDoc (Verhoeven, Magne and Sorkine-Hornung, "UVDoc: Neural Grid-based Document Unwarping", SIGGRAPH Asia 2023) predicts
for a mesh over the flat page where each of its nodes lies in the photograph.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.checkpoints.onnx_session import cpu_session
from pagemill.document.geometry import Box
from pagemill.errors import MissingDependencyError
from pagemill.imaging.thresholds import IMAGING
from pagemill.imaging.transforms import crop, resize, rotate_quarter
from pagemill.imaging.types import Floats, Indices, Pixels
from pagemill.installation import reinstall
from pagemill.late import cv2

NAME = "uvdoc"
"""Name of the network in records."""
MODEL = Path(__file__).parent / "models" / "uvdoc.onnx"
"""Put here by the build (MIT, see NOTICE)."""
_INPUT_WIDTH, _INPUT_HEIGHT = 488, 712
_STRIP = 256
"""Rows that are made flat at once: their maps take 8 bytes a pixel."""


class Sheet(msgspec.Struct, frozen=True, eq=False):
    """Where each point of a flat page lies in the photograph that it was taken from."""

    nodes: NDArray[np.float32]
    """Shape (rows, columns, 2): x and y in the photograph, of a mesh from edge to edge of the flat page."""
    width: int
    """Pixels of the flat page."""
    height: int

    def place(self, points: Floats) -> Floats:
        """Points of the flat page, shape (n, 2), in the photograph; those beside it at its nearest edge."""
        rows, columns = self.nodes.shape[:2]
        last = np.array([columns - 1, rows - 1], dtype=np.float64)
        at = np.clip(np.asarray(points, dtype=np.float64) / (self.width, self.height) * last, 0, last)
        cell = np.minimum(at.astype(np.intp), (last - 1).astype(np.intp))
        (right, below), (x, y) = (at - cell).T[:, :, None], cell.T
        upper = self.nodes[y, x] * (1 - right) + self.nodes[y, x + 1] * right
        lower = self.nodes[y + 1, x] * (1 - right) + self.nodes[y + 1, x + 1] * right
        placed: Floats = upper * (1 - below) + lower * below
        return placed

    def flatten(self, photograph: Pixels) -> Pixels:
        """The flat page."""
        rows, columns = self.nodes.shape[:2]
        flat = np.empty((self.height, self.width, 3), dtype=np.uint8)
        (left, right_share), (above, below_share) = _cells(columns, self.width), _cells(rows, self.height)
        for top in range(0, self.height, _STRIP):
            y, down = above[top : top + _STRIP], below_share[top : top + _STRIP, None, None]
            lines = self.nodes[y] * (1 - down) + self.nodes[y + 1] * down
            places = lines[:, left] * (1 - right_share[:, None]) + lines[:, left + 1] * right_share[:, None]
            places -= np.float32(0.5)  # from pixel corners, from which boxes count, to centres, from which OpenCV does
            flat[top : top + _STRIP] = cv2.remap(
                photograph, places[..., 0], places[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
            )
        return flat


def _cells(nodes: int, pixels: int) -> tuple[Indices, NDArray[np.float32]]:
    """For the middle of each pixel the node before it, of evenly spaced ones, and its share of the way to the next.

    OpenCV would interpolate a mesh in steps of 1/32 of its cells, which are more than a pixel.
    """
    at = (np.arange(pixels) + 0.5) * ((nodes - 1) / pixels)
    before = np.minimum(at.astype(np.intp), nodes - 2)
    return before, (at - before).astype(np.float32)


def find_sheet(photograph: Pixels, area: Box) -> Sheet | None:
    """Find a page in its photograph. Computes for 0.4 s; up to three times as long where the page is far away.

    Args:
        photograph: Shape (height, width, 3), uint8 RGB.
        area: The part of it that is looked at.

    Returns:
        The page, at the resolution that it has in the photograph; None where none is seen.

    Raises:
        MissingDependencyError: The package was built without the network.
    """
    whole = area
    for _ in range(IMAGING.looks):
        nodes = _mesh(photograph, area)
        # The network sees the photograph at its own small size: a page that is far away is looked at again from nearby.
        share = _share(nodes, area)
        if share < IMAGING.least_sheet:
            return None
        if share >= IMAGING.close_up:
            break
        area = _nearer(nodes, area)
    nodes = _with_border(nodes)
    columns, rows = (float(np.quantile(_lengths(nodes, axis), 0.75)) for axis in (1, 0))
    # What is foreshortened is widened, so that no letter has fewer pixels than in the photograph.
    shape = _aspect(nodes, whole, columns / rows)
    if max(shape * rows / columns, columns / rows / shape) > IMAGING.least_slant:
        columns, rows = max(columns, shape * rows), max(rows, columns / shape)
    growth = IMAGING.largest_growth * photograph.shape[0] * photograph.shape[1] / max(columns * rows, 1.0)
    scale = min(1.0, math.sqrt(growth))
    return Sheet(nodes, max(1, round(columns * scale)), max(1, round(rows * scale)))


def _mesh(photograph: Pixels, area: Box) -> NDArray[np.float32]:
    """The mesh over the page in an area of the photograph, in pixels of the photograph."""
    looked_at = crop(photograph, area)
    height, width = looked_at.shape[:2]
    lies = width > height  # the network is made for pages that stand
    nodes = _predicted(rotate_quarter(looked_at, 90) if lies else looked_at)
    if lies:  # turned by 90 degrees clockwise, x of the photograph grows with y and y falls with x
        nodes = np.stack([nodes[..., 1], 1 - nodes[..., 0]], axis=2).transpose(1, 0, 2)[::-1]
    left, top = math.floor(area[0]), math.floor(area[1])
    return nodes * np.array((width - 1, height - 1), np.float32) + np.array((left + 0.5, top + 0.5), np.float32)


def _nearer(nodes: NDArray[np.float32], area: Box) -> Box:
    """The part of an area around a mesh."""
    low, high = nodes.min(axis=(0, 1)), nodes.max(axis=(0, 1))
    margin = IMAGING.surroundings * (high - low)
    (left, top), (right, bottom) = (low - margin).tolist(), (high + margin).tolist()
    return (max(left, area[0]), max(top, area[1]), min(right, area[2]), min(bottom, area[3]))


def _predicted(photograph: Pixels) -> NDArray[np.float32]:
    """The mesh, shape (45, 31, 2), in shares of the photograph's width and height."""
    small = resize(photograph, _INPUT_WIDTH, _INPUT_HEIGHT).astype(np.float16) / np.float16(255)
    (nodes, *_) = _session().run(None, {"input": small.transpose(2, 0, 1)[None]})
    shares: NDArray[np.float32] = (nodes[0].astype(np.float32).transpose(1, 2, 0) + 1) / 2
    return shares


def _session() -> Any:
    """The network, loaded."""
    if not MODEL.is_file():
        raise MissingDependencyError(
            "the photograph cannot be unwarped: pagemill was built without its unwarping model",
            remedy=f"Install it again: {reinstall()}; or parse photographs as they are: --photographs never.",
        )
    return cpu_session(MODEL, fixed_shape=True)


def _share(nodes: NDArray[np.float32], area: Box) -> float:
    """Share of an area that a mesh covers; 0 for one that is not finite, or folded over: it is of no page."""
    if not np.isfinite(nodes).all():
        return 0.0
    across, down = np.diff(nodes, axis=1)[:-1], np.diff(nodes, axis=0)[:, :-1]
    cells = across[..., 0] * down[..., 1] - across[..., 1] * down[..., 0]
    whole = (area[2] - area[0]) * (area[3] - area[1])
    return float(cells.sum()) / max(whole, 1.0) if (cells > 0).all() else 0.0


def _with_border(nodes: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mesh continued straight on every side."""
    for _ in range(IMAGING.border):
        nodes = np.concatenate([2 * nodes[:1] - nodes[1:2], nodes, 2 * nodes[-1:] - nodes[-2:-1]], axis=0)
        nodes = np.concatenate([2 * nodes[:, :1] - nodes[:, 1:2], nodes, 2 * nodes[:, -1:] - nodes[:, -2:-1]], axis=1)
    return nodes


def _aspect(nodes: NDArray[np.float32], whole: Box, seen: float) -> float:
    """Width over height of the page itself: seen from a slant, one of its sides is foreshortened.

    Args:
        nodes: Of its mesh.
        whole: The photograph, in whose middle the camera looked.
        seen: Width over height as it looks; the answer differs by no more than ``IMAGING.largest_slant``.
    """
    rows, columns = nodes.shape[:2]
    u, v = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
    middle = ((whole[0] + whole[2]) / 2, (whole[1] + whole[3]) / 2)
    focal = IMAGING.focal_length * max(whole[2] - whole[0], whole[3] - whole[1])
    rays = (nodes.reshape(-1, 2).astype(np.float64) - middle) / focal
    plane, _ = cv2.findHomography(np.column_stack([u.ravel(), v.ravel()]), rays)
    if plane is None:
        return seen
    across, down = np.linalg.norm(plane[:, :2], axis=0)
    most = IMAGING.largest_slant
    return float(np.clip(across / max(down, 1e-9), seen / most, seen * most))


def _lengths(nodes: NDArray[np.float32], axis: int) -> NDArray[np.float32]:
    """Lengths in the photograph of the mesh's rows (axis 1) or columns (axis 0)."""
    lengths: NDArray[np.float32] = np.linalg.norm(np.diff(nodes, axis=axis), axis=2).sum(axis=axis)
    return lengths
