"""What can be wrong with a run directory, as data."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pagemill.store.lock import Owner  # msgspec reads the annotation

MAX_EXAMPLES = 5
"""Findings of a kind that are named; all of them are counted."""


class Kind(StrEnum):
    """What is wrong; the value is what people read."""

    MALFORMED_DATABASE = "database damaged"
    """SQLite finds a fault in it, or it is missing."""
    DAMAGED_RECORD = "damaged record"
    """It cannot be decompressed, or is not a record of its page."""
    PAGE_WITHOUT_RECORD = "page without its record"
    RECORD_WITHOUT_PAGE = "record without page"
    OTHER_PAGE = "page does not agree with its record"
    """State, names or crops differ."""
    MISSING_CROP = "missing crop"
    CHANGED_CROP = "crop other than written"
    ORPHANED_CROP = "orphaned crop"
    """A crop of a page of this run that no record mentions."""
    OTHER_RESULTS = "ocr_results.jsonl does not agree with the records"
    OTHER_TEXTS = "parsed_texts.jsonl does not agree with the records"
    MISSING_DOCUMENT = "missing document"
    OTHER_DOCUMENT = "document does not agree with the records"
    ORPHANED_DOCUMENT = "orphaned document"
    """A document of this run without any record, by a name that a run gives."""
    OTHER_REPORT = "report does not agree with the records"
    OTHER_COUNTS = "run.json counts disagree"
    OTHER_DATABASE_COUNTS = "database counts disagree"
    LEFT_OVER = "left-over temporary file"
    OUT_OF_DATE = "derived files out of date"
    """A process was killed before it could write them. No damage: resuming, exporting and ``--repair`` write them."""
    UNKNOWN_FILE = "file that is not from this run"
    """No damage; ``--repair`` leaves it alone."""

    @property
    def is_damage(self) -> bool:
        """Whether a directory with such a finding is damaged."""
        return self not in {Kind.UNKNOWN_FILE, Kind.OUT_OF_DATE}


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong."""

    kind: Kind
    place: str
    """The file, relative to the run directory, with the line where there is one."""
    page_id: str | None = None
    """The page concerned, where it is known."""
    detail: str | None = None
    """What is expected and what is there."""

    def __str__(self) -> str:
        page = f" (page {self.page_id})" if self.page_id is not None else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.place}{page}{detail}"


class FindingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Findings of one kind."""

    kind: Kind
    count: int
    examples: list[Finding]
    """The first :data:`MAX_EXAMPLES`."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification found."""

    groups: list[FindingGroup]
    states: dict[str, int]
    """Pages by state; none where the database is damaged."""
    crops: int
    """Crops that the records mention."""
    documents: int
    """Documents of which there is a record."""
    in_use_by: Owner | None = None
    """Set when a process works on the directory: then only what it has committed was checked, records and crops."""
    other_version: str | None = None
    """Set when another version of pagemill wrote the run: then texts, documents and the report were only checked for
    being there, as this version may make them otherwise."""

    @property
    def waiting(self) -> int:
        """Pages that have not ended yet."""
        return self.states.get("waiting", 0) + self.states.get("running", 0)

    @property
    def damaged(self) -> bool:
        """Whether anything is wrong. Waiting pages are not."""
        return any(group.kind.is_damage for group in self.groups)
