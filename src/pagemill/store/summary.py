"""What a run amounts to, counted page by page; the content of ``run.json``."""

from __future__ import annotations

from datetime import datetime  # msgspec reads the annotation
from typing import Any

import msgspec

from pagemill import __version__
from pagemill.document.page import SCHEMA_VERSION, PageResult, Status

GENERATOR = "pagemill"


class RunSummary(msgspec.Struct, kw_only=True):
    """Settings and counts of a run. Grows with the number of labels and failure kinds, not with the pages."""

    generator: str = GENERATOR
    version: str = __version__
    schema_version: str = SCHEMA_VERSION
    started: datetime
    finished: datetime | None = None
    """None while the run goes on, and for ever when it was killed."""
    interrupted: bool = False
    settings: dict[str, Any] = {}
    documents: int = 0
    pages: int = 0
    failed: int = 0
    """Pages whose status is ``failed``."""
    regions: int = 0
    crops: int = 0
    regions_by_label: dict[str, int] = {}
    failures_by_kind: dict[str, int] = {}
    """Failed pages by the category of their first page-wide error."""
    warnings_by_kind: dict[str, int] = {}
    """Errors on pages that ended well (one region failed, say), by category."""
    seconds_by_stage: dict[str, float] = {}
    """Sum over pages; stages of different pages overlap, so it is work, not waiting."""

    def add(self, page: PageResult) -> None:
        """Count one page."""
        self.pages += 1
        self.regions += len(page.regions)
        self.crops += len(page.image_crops)
        for region in page.regions:
            _count(self.regions_by_label, region.label.value)
        for stage, seconds in page.timings.items():
            self.seconds_by_stage[stage] = self.seconds_by_stage.get(stage, 0.0) + seconds
        if page.status is Status.FAILED:
            self.failed += 1
            whole = [error for error in page.errors if error.region is None] or page.errors
            _count(self.failures_by_kind, whole[0].category if whole else "internal")
        else:
            for error in page.errors:
                _count(self.warnings_by_kind, error.category)


def _count(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1
