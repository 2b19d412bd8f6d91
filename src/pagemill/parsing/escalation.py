"""A second reading: doubtful regions of a page read on the CPU go to a region engine, and the better reading stays.

What is doubtful, the warnings and the confidence say (:mod:`pagemill.parsing.quality`). A model may invent text, so its
answer has to be sound, of about the length of the first reading, and as like it as its confidence lets expect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import msgspec

from pagemill.document.labels import TITLES, Task
from pagemill.document.page import (
    DOUBTS,
    LAYER_MISMATCH,
    LOW_CONFIDENCE,
    READING,
    UNREAD_SCRIPT,
    UNRELIABLE,
    ContentFormat,
    PageError,
    PageResult,
    Region,
)
from pagemill.errors import PagemillError
from pagemill.export.embedding_text import region_text
from pagemill.export.model_markdown import without_heading_marks
from pagemill.formulas.check import renders
from pagemill.parsing.regions import tasks_of
from pagemill.parsing.thresholds import PARSING
from pagemill.recognition.base import RegionReading

_OF_THE_WHOLE_PAGE = frozenset({UNRELIABLE, LAYER_MISMATCH})
"""Categories of page-wide warnings about all regions; the others are about lines, whose confidence tells which."""


def to_ask(record: PageResult, least: float) -> dict[int, Task]:
    """The regions to send, with their tasks: those with errors to be expected, with a warning, or not read at all.

    All of a page where a warning is about the page as a whole.

    Args:
        record: As read so far.
        least: Characters expected to be wrong from which a region is sent.
    """
    doubted = {
        error.region
        for error in record.errors
        if error.component in READING and (error.region is not None or error.category in _OF_THE_WHOLE_PAGE)
    }
    sent = (
        region
        for region in record.regions
        if not region.content
        or doubted & {None, region.index}
        or (region.confidence is not None and expected_wrong(region) >= least)
    )
    return tasks_of(sent, footnotes=True)


def expected_wrong(region: Region) -> float:
    """Characters of a region that are expected to be wrong; 0 where nobody knows."""
    return 0.0 if region.confidence is None else (1 - region.confidence) * sum(len(line.text) for line in region.lines)


def not_asked(regions: int, why: PagemillError) -> PageError:
    """The warning about a page whose doubtful regions no server has read."""
    named = "1 doubtful region was" if regions == 1 else f"{regions} doubtful regions were"
    return PageError(
        component="recognition",
        category=why.category,
        message=f"{named} not read again: {why.message}",
        remedy=f"{why.remedy or ''} The first reading was kept; parse the page into another directory.".strip(),
    )


def keep_better(record: PageResult, readings: Mapping[int, RegionReading]) -> None:
    """Give each region the better of its two readings, and take back the doubts about those that were settled."""
    in_script = {error.region for error in record.errors if error.category in (UNREAD_SCRIPT, UNRELIABLE)}
    settled = set()
    for index, reading in readings.items():
        region = record.regions[index]
        first, second = region_text(region), region_text(_read_again(region, reading))
        region.attempts = reading.attempts
        agree = first.split() == second.split() and reading.problem is None
        if agree or not is_better(region, reading, any_script=bool(in_script & {None, index})):
            region.other_engine = reading.engine
            settled |= {index} if agree else set()
            continue
        region.other_engine, region.engine = region.engine, reading.engine
        region.content, region.content_format = reading.content, reading.content_format
        if region.label in TITLES and region.content and region.content_format is ContentFormat.MARKDOWN:
            region.content = without_heading_marks(region.content)
        # The marks of a list are in its Markdown; the lines and their confidence are of the reading that lost.
        region.lines, region.confidence, region.structure, region.list_item = (), None, None, False
        settled.add(index)
    # Other doubts about the page may be about regions that were not sent: they stay.
    of_page = _OF_THE_WHOLE_PAGE | {LOW_CONFIDENCE} if settled == set(readings) else frozenset()
    record.errors = [
        error
        for error in record.errors
        if error.category not in DOUBTS | {UNRELIABLE}
        or (error.region not in settled if error.region is not None else error.category not in of_page)
    ]


def is_better(region: Region, reading: RegionReading, *, any_script: bool = False) -> bool:
    """Whether a model's answer takes the place of the first reading.

    Args:
        region: As read first.
        reading: The model's.
        any_script: The first reading may be look-alikes of another script.
    """
    if not reading.content or reading.problem is not None:
        return False
    if reading.content_format is ContentFormat.LATEX and not renders(reading.content):
        return False
    first, second = region_text(region), region_text(_read_again(region, reading))
    least, most = PARSING.answer_length
    sizes = [sum(map(str.isalnum, text)) for text in (first, second)]
    if region.content_format is ContentFormat.FORMULA_TEXT or sizes[0] < PARSING.doubtful_length:
        return sizes[1] > 0
    if not least * sizes[0] <= sizes[1] <= most * sizes[0]:
        return False
    # Two letters side by side are right in both readings as often as a single one, squared.
    return any_script or _agreement(first, second) >= PARSING.answer_agreement * (region.confidence or 0.0) ** 2


def _agreement(first: str, second: str) -> float:
    """Share of the pairs of neighbouring letters and digits of one reading that the other one has, too, 0-1."""
    pairs, others = (Counter(pairwise(filter(str.isalnum, text.casefold()))) for text in (first, second))
    return (pairs & others).total() / max(1, pairs.total())


def _read_again(region: Region, reading: RegionReading) -> Region:
    return msgspec.structs.replace(region, content=reading.content, content_format=reading.content_format)
