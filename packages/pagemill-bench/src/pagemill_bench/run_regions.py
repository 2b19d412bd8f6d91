"""Regions of a run as their model was asked to read them, out of the page images, which are read again."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from pagemill.app.options import ImageSources
from pagemill.app.page_images import PageImages, WantedPage
from pagemill.document.labels import TASK_OF_LABEL, Task
from pagemill.document.page import PageResult, Status
from pagemill.errors import InputError
from pagemill.imaging.transforms import crop
from pagemill.imaging.types import Pixels
from pagemill.store.reading import RunReader

_READ = (Task.TEXT, Task.TABLE, Task.FORMULA)
_REGIONS_A_PAGE = 8
"""In the mean; decides on how many pages regions are looked for."""


async def run_regions(out: Path, sources: ImageSources, *, pages: bool, most: int) -> list[tuple[Pixels, Task]]:
    """Regions of pages from the whole run, in pixels, and what is to be read in each.

    Args:
        out: The run directory.
        sources: Current location of the parsed files.
        pages: Give whole pages.
        most: Give no more.

    Raises:
        InputError: The run has no region that is read, or its sources cannot be read.
        OutputError: There is no run in the directory.
    """
    with RunReader.open(out) as reader:
        step = max(1, reader.summary.pages * (1 if pages else _REGIONS_A_PAGE) // most)
        chosen: dict[str, PageResult] = {}
        for number, page in enumerate(reader.pages()):
            is_read = pages or any(TASK_OF_LABEL[region.label] in _READ for region in page.regions)
            if number % step == 0 and page.status is Status.DONE and is_read:
                chosen[page.page_id] = page
        found: list[tuple[Pixels, Task]] = []
        async with PageImages.opened(reader, sources) as images:
            wanted = [WantedPage.of(page) for page in chosen.values()]
            async with aclosing(images.find(wanted)) as each:
                async for one in each:
                    with one:
                        pixels = await images.pixels(one)
                    found += await asyncio.to_thread(_cut, chosen[one.wanted.page_id], pixels, pages)
                    if len(found) >= most:
                        break
    if not found:
        raise InputError(f"{out} has no region to read", remedy="Name another run, or leave out --from.")
    return found[:most]


def _cut(page: PageResult, pixels: Pixels, whole: bool) -> list[tuple[Pixels, Task]]:
    if whole:
        return [(pixels, Task.PAGE)]
    tasks = [(region, TASK_OF_LABEL[region.label]) for region in page.regions]
    return [(crop(pixels, region.bbox, region.polygon).copy(), task) for region, task in tasks if task in _READ]
