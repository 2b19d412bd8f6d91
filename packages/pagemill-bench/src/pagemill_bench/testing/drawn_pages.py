"""Pages drawn from a seed: text, tables, pictures, noise, at sizes from a thumbnail to an A4 scan at 300 dpi."""

from __future__ import annotations

import cv2
import numpy as np

from pagemill.imaging.types import Pixels

A4_300DPI = (2480, 3508)
"""Width and height of the reference workload's pages in pixels."""

_LINE = 48
"""Pixels from one line of a region to the next."""
_WORDS = (
    *("the", "report", "year", "of", "budget", "and", "table", "page", "total", "plan", "city", "public", "service"),
    *("section", "2024", "in", "by", "support", "1,250", "area", "policy", "for", "with", "data", "office", "37%"),
)

_SIZES = (A4_300DPI, (1654, 2339), (2339, 1654), (1240, 1754), (900, 1200), (600, 300), (64, 1000))
_LETTERS = list("abcdefghijklmnopqrstuvwxyz    ")


def draw_page(seed: int, size: tuple[int, int] | None = None) -> Pixels:
    """One page.

    Args:
        seed: Decides everything that is drawn.
        size: Width and height in pixels; None takes one of several by the seed.
    """
    random = np.random.default_rng(seed)
    width, height = size or _SIZES[seed % len(_SIZES)]
    page = np.full((height, width, 3), random.integers(225, 256), dtype=np.uint8)
    columns = int(random.integers(1, 4))
    gutter = width // 20
    column_width = (width - gutter) // columns - gutter
    for column in range(columns):
        left, top = gutter + column * (column_width + gutter), gutter
        while column_width > 8 and top < height - gutter:
            block = min(int(random.integers(height // 12 + 1, height // 4 + 2)), height - gutter - top)
            _draw_block(page, random, (left, top, left + column_width, top + block))
            top += block + gutter // 2 + 1
    if seed % 3 == 0:  # a scan
        grain = random.integers(-12, 13, size=(height, width, 1), dtype=np.int16)
        page = np.clip(page.astype(np.int16) + grain, 0, 255).astype(np.uint8)
    return page


def _draw_block(page: Pixels, random: np.random.Generator, box: tuple[int, int, int, int]) -> None:
    """Fill a box with lines of text (mostly), a ruled table or a picture."""
    left, top, right, bottom = box
    kind = random.random()
    if kind < 0.15:
        ramp = np.linspace(random.integers(0, 128), random.integers(128, 256), right - left)
        page[top:bottom, left:right] = ramp[None, :, None] * random.uniform(0.4, 1.0, size=3)
    elif kind < 0.3:
        page[top:bottom, np.linspace(left, right - 1, random.integers(3, 8), dtype=int)] = 0
        page[np.linspace(top, bottom - 1, random.integers(3, 12), dtype=int), left:right] = 0
    else:
        scale = float(random.uniform(0.4, 1.4)) * max(0.4, page.shape[1] / 1600)
        step = max(6, int(36 * scale))
        for y in range(top + step, bottom, step):
            text = "".join(random.choice(_LETTERS, size=max(1, int((right - left) / (19 * scale)))))
            cv2.putText(page, text, (left, y), cv2.FONT_HERSHEY_SIMPLEX, scale, (20, 20, 20), max(1, round(2 * scale)))


def draw_region(seed: int, *, table: bool = False) -> Pixels:
    """A text block or a ruled table as a layout model cuts it out of a page at 300 dpi: shape (height, width, 3).

    The mean size is about 812 x 400 pixels, as in the reference corpus; the text is made of words.

    Args:
        seed: Decides size and content.
        table: Draw a table.
    """
    random = np.random.default_rng(seed)
    width, height = int(random.integers(400, 1225)), int(_LINE * 25 ** random.random())
    region = np.full((height, width, 3), 250, dtype=np.uint8)
    columns = max(2, width // 240) if table else 1
    cell = width // columns
    for top in range(0, height - _LINE + 1, _LINE):
        for left in range(0, columns * cell, cell):
            text = ""
            while len(text) < cell // 20 - 8:
                text += f"{random.choice(_WORDS)} "
            place = (left + 8, top + _LINE - 14)
            cv2.putText(region, text, place, cv2.FONT_HERSHEY_SIMPLEX, 1.1, (20, 20, 20), 2, cv2.LINE_AA)
        if table:
            region[top : top + 2] = 0
    if table:
        for left in range(0, columns * cell, cell):
            region[:, left : left + 2] = 0
    return region
