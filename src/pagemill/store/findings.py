"""What can be wrong with a run directory, as data."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pagemill.store.lock import Owner  # msgspec reads the annotation

MAX_EXAMPLES = 5
"""Findings of a kind that are named; all of them are counted."""


class Kind(StrEnum):
    """What is wrong; the value is what people read."""

    TORN_RECORD = "torn record"
    """A line of ``ocr_results.jsonl`` that is no page record."""
    CHANGED_RECORD = "record other than written"
    """A record whose bytes are not those that the ledger noted when it was written."""
    DOUBLED_RECORD = "page recorded twice"
    RECORD_WITHOUT_ROW = "record without ledger row"
    ROW_WITHOUT_RECORD = "ledger row without record"
    OTHER_ROW = "ledger row other than its record"
    """State, names or place in the file differ."""
    MISSING_CROP = "missing crop"
    CHANGED_CROP = "crop other than written"
    ORPHANED_CROP = "orphaned crop"
    """A crop of a page of this run that no record mentions."""
    TORN_TEXT = "torn text line"
    MISSING_TEXT = "missing text line"
    OTHER_TEXT = "text line other than its record"
    ORPHANED_TEXT = "text line without record"
    MISSING_DOCUMENT = "missing document"
    OTHER_DOCUMENT = "document does not agree with the records"
    ORPHANED_DOCUMENT = "orphaned document"
    """A document of this run without any record, by a name that a run gives."""
    OTHER_REPORT = "report does not agree with the records"
    OTHER_COUNTS = "run.json counts disagree"
    OTHER_LEDGER_COUNTS = "ledger counts disagree"
    LOST_PREVIEW = "lost preview"
    """A small page image for the report. No damage: the next report shows the page without it."""
    MALFORMED_LEDGER = "ledger malformed"
    LEFT_OVER = "left-over temporary file"
    UNKNOWN_FILE = "file that is not from this run"
    """Nothing is wrong with that; ``--repair`` leaves it alone."""

    @property
    def is_damage(self) -> bool:
        """Whether a directory with such a finding is damaged."""
        return self not in {Kind.UNKNOWN_FILE, Kind.LOST_PREVIEW}


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
    """Pages by state; of a malformed ledger, by what the records say."""
    crops: int
    """Crops that the records mention."""
    documents: int
    """Documents of which there is a record."""
    in_use_by: Owner | None = None
    """Set when a process works on the directory: then only what it has committed was checked, records, texts and crops
    but nothing that is made at the end."""
    other_version: str | None = None
    """Set when another version of pagemill wrote the run: then what is made from the records (texts, documents,
    report) was only checked for being there, as this version may make it otherwise."""

    @property
    def waiting(self) -> int:
        """Pages that have not ended yet."""
        return self.states.get("waiting", 0) + self.states.get("running", 0)

    @property
    def damaged(self) -> bool:
        """Whether anything is wrong. Pages that wait are not."""
        return any(group.kind.is_damage for group in self.groups)
