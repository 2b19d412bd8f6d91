"""Counts of a run, updated page by page: the content of ``run.json``."""

from __future__ import annotations

from datetime import datetime  # msgspec reads the annotation
from typing import Any

import msgspec

from pagemill._version import __version__
from pagemill.document.page import SCHEMA_VERSION, PageResult, Status

GENERATOR = "pagemill"


class Counters(msgspec.Struct, kw_only=True):
    """Counts of a run. Grows with the number of labels and kinds, not with the pages."""

    documents: int = 0
    """Documents whose files are up to date; counted on request."""
    pages: int = 0
    """Pages with a record: done or failed."""
    failed: int = 0
    """Pages whose status is ``failed``."""
    missing: int = 0
    """Lower bound of the pages and rows that sources announced and did not yield; failed records represent them."""
    skipped: int = 0
    """Pages that were skipped permanently, and have no record."""
    regions: int = 0
    crops: int = 0
    regions_by_label: dict[str, int] = {}
    failures_by_kind: dict[str, int] = {}
    """Failed pages by the category of their first page-wide error."""
    warnings_by_kind: dict[str, int] = {}
    """Errors on pages that are done, such as one failed region, by category."""
    review: int = 0
    """Pages marked for review."""
    skipped_by_kind: dict[str, int] = {}
    """Skipped pages by reason; ``duplicate of a`` and ``duplicate of b`` are one kind."""
    seconds_by_stage: dict[str, float] = {}
    """Sum over pages; stages of different pages overlap, so it is work, not waiting."""

    def add_skipped(self, reason: str, pages: int = 1) -> None:
        """Count skipped pages; a negative number subtracts."""
        self.skipped += pages
        _count(self.skipped_by_kind, reason.split(" of ")[0], pages)

    def counters(self) -> str:
        """The counts alone, as JSON."""
        return msgspec.json.encode({name: getattr(self, name) for name in Counters.__struct_fields__}).decode()

    def restore(self, counters: Counters) -> None:
        """Replace the counts by those of another object."""
        for name in Counters.__struct_fields__:
            value = getattr(counters, name)
            setattr(self, name, dict(value) if isinstance(value, dict) else value)

    def add(self, page: PageResult, sign: int = 1) -> None:
        """Count one page; ``sign`` -1 subtracts it."""
        self.pages += sign
        self.regions += sign * len(page.regions)
        self.crops += sign * len(page.image_crops)
        self.missing += sign * page.missing
        self.review += sign * page.review
        for region in page.regions:
            _count(self.regions_by_label, region.label.value, sign)
        for stage, seconds in page.timings.items():
            # Rounded: sums of floats that are added and subtracted again would never get back to 0.
            self.seconds_by_stage[stage] = round(self.seconds_by_stage.get(stage, 0.0) + sign * seconds, 6)
        if page.status is Status.FAILED:
            self.failed += sign
            _count(self.failures_by_kind, failure_kind(page), sign)
        else:
            for error in page.errors:
                _count(self.warnings_by_kind, error.category, sign)


class RunSummary(Counters, kw_only=True):
    """Settings and counts of a run, over all its invocations."""

    generator: str = GENERATOR
    version: str = __version__
    schema_version: str = SCHEMA_VERSION
    started: datetime
    """Start of the first invocation."""
    finished: datetime | None = None
    """None while the run is in progress, and if it was killed."""
    interrupted: bool = False
    settings: dict[str, Any] = {}
    """Settings of the last invocation."""
    identity: dict[str, Any] = {}
    """The settings that change results: a run is only resumed with the same ones."""


def failure_kind(page: PageResult) -> str:
    """Category of the first page-wide error of a failed page."""
    whole = [error for error in page.errors if error.region is None] or page.errors
    return whole[0].category if whole else "internal"


def _count(counts: dict[str, int], key: str, number: int) -> None:
    count = counts.get(key, 0) + number
    # A kind with no page left would be listed with 0 for ever.
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
