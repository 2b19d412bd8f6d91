"""Images of pages with some paragraphs each."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw, ImageFont

if TYPE_CHECKING:
    from pathlib import Path

PROSE = "the mill turns slowly in spring when water is high and paper dries on racks beside the river"


def draw_pages(folder: Path, count: int) -> Path:
    """Make images of so many pages with some paragraphs each, all different."""
    folder.mkdir()
    chance = random.Random(0)
    font = ImageFont.load_default(22)
    for number in range(count):
        page = Image.new("RGB", (1000, 1400), "white")
        draw = ImageDraw.Draw(page)
        for top in range(100, 1200, 260):
            for line in range(chance.randint(3, 6)):
                draw.text(
                    (100, top + 32 * line), " ".join(chance.choices(PROSE.split(), k=12)), fill="black", font=font
                )
        page.save(folder / f"page-{number:02}.png")
    return folder
