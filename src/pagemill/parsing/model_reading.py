"""How a model reads a page: in the regions that the layout engine finds, or as a whole, regions included."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pagemill import tracing
from pagemill.config.modes import ReadingMode
from pagemill.config.settings import ParseSettings
from pagemill.errors import PagemillError, error_class
from pagemill.layout.base import DetectedRegion
from pagemill.parsing.page_run import PageRun
from pagemill.parsing.record import Files, PreparedPage, preview_of
from pagemill.parsing.regions import finish_page, finish_whole_page, prepare_page, prepare_whole_page
from pagemill.recognition.base import PageReading, RegionReader

log = tracing.PageLogger(__name__)


async def read_by_model(run: PageRun, detected: Sequence[DetectedRegion] | None) -> PreparedPage:
    """Have a model read a page; ``detected`` are its regions where they are known already."""
    reader = await run.services.region_reader()
    prepare = prepare_whole_page
    read: Callable[[Any], Coroutine[Any, Any, Any]] = functools.partial(_read_page, reader)
    finish: Callable[[PreparedPage, Sequence[Any], ParseSettings], Files] = finish_whole_page
    if reader.reads is ReadingMode.REGIONS:
        prepare, read, finish = prepare_page, reader.read, finish_page
        if detected is None:
            with run.stage("layout"):
                detected = await run.services.detect_regions(run.page.pixels)
        log.info("read by the model, region by region: the layout model found %d", len(detected))
    else:
        log.info("read by the model as a whole")
    found = detected or ()
    prepared = await run.compute("preparation", prepare, run.ref, run.page, found, reader.prepare, run.settings)
    readings = await run.ask_remotely("recognition", read, prepared.requests.values(), prepared.kept_bytes)
    crops = await run.compute("analysis", finish, prepared, readings, run.settings)
    preview = prepared.preview
    if run.photograph is not None:
        preview = await run.compute("preparation", preview_of, run.ref, run.photograph.turned(0), run.settings)
    return prepared.answered(crops=crops, preview=preview)


async def _read_page(reader: RegionReader, request: Any) -> PageReading:
    """Have a whole page read; one of which nothing was read has failed."""
    reading = await reader.read_page(request)
    if reading.elements is not None:
        return reading
    assert reading.problem is not None
    error = PagemillError(reading.problem.message, remedy=reading.problem.remedy)
    error.category, error.retryable = reading.problem.category, error_class(reading.problem.category).retryable
    raise error
