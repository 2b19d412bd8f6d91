"""Check that everything in a run directory is intact and consistent, without the inputs."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from pagemill._version import __version__
from pagemill.document.identity import PageKey
from pagemill.document.names import file_stem
from pagemill.document.page import PageResult
from pagemill.errors import DamagedRunError, LockedError, OutputError
from pagemill.store import paths
from pagemill.store.derived import Exporters, document_json, document_markdown, report_of, result_lines, text_lines
from pagemill.store.files import encoded, reading_errors
from pagemill.store.holding import read_run_json
from pagemill.store.lock import Owner, RunLock, owner_of  # msgspec reads the annotation
from pagemill.store.reading import HAS_RECORD, RunReader
from pagemill.store.records import decode_page, decompress
from pagemill.store.rows import PageRow, PageState
from pagemill.store.summary import Counters, RunSummary
from pagemill.whole_files import TEMPORARY_SUFFIX

_TRIES = 3
"""Checks of a directory in use before a finding is reported: the run may have changed it during the first ones."""
WITHOUT_RECORD = (
    f"p.state IN ({PageState.DONE:d}, {PageState.FAILED:d})"
    " AND NOT EXISTS (SELECT 1 FROM records r WHERE r.record = p.record)"
)
"""SQL condition on ``pages``: the record is gone."""
_COUNTED = ("pages", "failed", "regions", "crops", "regions_by_label", "failures_by_kind", "warnings_by_kind")
"""Counts that follow from the records."""
MAX_EXAMPLES = 5
"""Findings of a kind that are listed; all of them are counted."""


class Kind(StrEnum):
    """Kind of a finding; the value is shown to the user."""

    MALFORMED_DATABASE = "database damaged"
    """SQLite reports a fault, or the file is missing."""
    DAMAGED_RECORD = "damaged record"
    """It cannot be decompressed, or is not a record of its page."""
    PAGE_WITHOUT_RECORD = "page without its record"
    RECORD_WITHOUT_PAGE = "record without page"
    OTHER_PAGE = "page does not agree with its record"
    """State, names or crops differ."""
    OTHER_STRUCTURE = "structure does not agree with the records"
    """The facts of a page, or the structure that was derived from those of a document, differ."""
    MISSING_CROP = "missing crop"
    CHANGED_CROP = "crop other than written"
    ORPHANED_CROP = "orphaned crop"
    """A crop of a page of this run that no record mentions."""
    OTHER_RESULTS = "ocr_results.jsonl does not agree with the records"
    OTHER_TEXTS = "parsed_texts.jsonl does not agree with the records"
    MISSING_DOCUMENT = "missing document"
    OTHER_DOCUMENT = "document does not agree with the records"
    ORPHANED_DOCUMENT = "orphaned document"
    """A file with a document name of this run, without any record."""
    OTHER_REPORT = "report does not agree with the records"
    OTHER_COUNTS = "run.json counts disagree"
    OTHER_DATABASE_COUNTS = "database counts disagree"
    LEFT_OVER = "left-over temporary file"
    OUT_OF_DATE = "derived files out of date"
    """A process was killed before it wrote them. No damage: resuming, exporting and ``--repair`` write them."""
    UNKNOWN_FILE = "file that is not from this run"
    """No damage; ``--repair`` leaves it alone."""

    @property
    def is_damage(self) -> bool:
        """Whether a directory with such a finding is damaged."""
        return self not in {Kind.UNKNOWN_FILE, Kind.OUT_OF_DATE}


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fault."""

    kind: Kind
    place: str
    """The file, relative to the run directory, with the line where there is one."""
    page_id: str | None = None
    """The page concerned, where it is known."""
    detail: str | None = None
    """Expected and actual value."""

    def __str__(self) -> str:
        page = f" (page {self.page_id})" if self.page_id is not None else ""
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.place}{page}{detail}"


class FindingGroup(msgspec.Struct, kw_only=True):
    """Findings of one kind."""

    kind: Kind
    count: int = 0
    examples: list[Finding] = []
    """The first :data:`MAX_EXAMPLES`."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verification."""

    groups: list[FindingGroup]
    states: dict[str, int]
    """Pages by state; none where the database is damaged."""
    crops: int
    """Crops that the records mention."""
    documents: int
    """Documents with at least one record."""
    in_use_by: Owner | None = None
    """The process that is using the directory; then only its committed records and crops were checked."""
    other_version: str | None = None
    """The version of pagemill that wrote the run, if another: then texts, documents and the report were only checked
    for existence, as this version may write them differently."""

    @property
    def waiting(self) -> int:
        """Unfinished pages."""
        return self.states.get("waiting", 0) + self.states.get("running", 0)

    @property
    def damaged(self) -> bool:
        """Whether anything is damaged. Waiting pages are not damage."""
        return any(group.kind.is_damage for group in self.groups)


def verify(path: Path, *, exporters: Exporters, quick: bool = False) -> Verdict:
    """Check a run directory: database, records, crops, derived files, left-over files.

    Changes nothing. In a directory that another process is using, committed data is checked. Memory does not grow with
    the pages.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: Check only the size of crops, and only that documents and report exist.

    Raises:
        OutputError: There is no run in the directory, or it cannot be read.
    """
    owner, held = None, contextlib.ExitStack()
    try:
        held.enter_context(RunLock(path / paths.LOCK))
    # Without write permission there is no lock to take, and the check continues without one.
    except OutputError as error:
        owner = owner_of(path / paths.LOCK)
        if owner is None and isinstance(error, LockedError):  # the owner has just started, or just ended
            raise
    with held:
        for _ in range(_TRIES):
            verdict = Examination(path, exporters, quick=quick, owner=owner).verdict()
            if owner is None or not verdict.damaged:
                break
        return verdict


class Examination:
    """One check of a run directory, with the findings as :mod:`~pagemill.store.repair` needs them.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: See :func:`verify`.
        owner: The process that is using it; None if the caller holds the lock.
    """

    def __init__(self, path: Path, exporters: Exporters, *, quick: bool = False, owner: Owner | None = None) -> None:
        self.lost: list[int] = []
        """Numbers of records that are damaged, or whose crops are, or that belong to no page."""
        self.disagreeing: list[int] = []
        """Numbers of records whose page row differs from them."""
        self.other_facts: list[int] = []
        """Numbers of records whose stored facts differ from them."""
        self.orphans: list[str] = []
        """Files to be deleted, relative to the run directory."""
        self.stale_documents: list[str] = []
        """Documents that do not agree with their records."""
        self._path = path
        self._exporters = exporters
        self._quick = quick
        self._owner = owner
        self._compares = not quick
        self._groups: dict[Kind, FindingGroup] = {}

    def verdict(self) -> Verdict:
        """Run all checks.

        Raises:
            OutputError: There is no run in the directory, or it cannot be read.
        """
        try:
            with RunReader.open(self._path) as reader, reader.moment():
                return self._look(reader)
        except DamagedRunError as error:
            self._add(Kind.MALFORMED_DATABASE, paths.DATABASE, detail=error.message)
            return self._verdict(None, Counters(), 0)

    def found(self, *kinds: Kind) -> bool:
        """Whether there is a finding of one of these kinds."""
        return any(kind in self._groups for kind in kinds)

    def _look(self, reader: RunReader) -> Verdict:
        fault = reader.one(f"PRAGMA {'quick' if self._quick else 'integrity'}_check(1)")
        # The rest would read through a broken tree, and report its consequences as findings of their own.
        if fault != "ok":
            raise DamagedRunError(fault)
        summary = reader.summary
        self._compares = not self._quick and summary.version == __version__
        counted = self._check_records(reader)
        # What another process derives from its records is always some seconds behind them.
        if self._owner is None:
            records_lost = self.found(Kind.DAMAGED_RECORD, Kind.RECORD_WITHOUT_PAGE, Kind.PAGE_WITHOUT_RECORD)
            if not records_lost:
                self._check_lines(reader, summary)
            self._check_files(reader)
            self._check_documents(reader, summary)
            self._check_counts(summary, None if records_lost else counted)
            if summary.finished:
                self._check_report(reader, summary)
        return self._verdict(reader, counted, sum(1 for _ in reader.recorded_documents()))

    # Records, their lines and their crops.

    def _check_records(self, reader: RunReader) -> Counters:
        """Compare every record with the row of its page and with its crops."""
        counted = Counters()
        for number, data in reader.each_record():
            try:
                page = decode_page(decompress(data))
                row = reader.row(PageKey.parse(page.page_key))
            except ValueError as error:  # the base class of msgspec's errors
                page_id = reader.one("SELECT page_id FROM pages WHERE record = ?", (number,))
                self._lose(number, Kind.DAMAGED_RECORD, page_id, str(error))
                continue
            # Its page has another record: the database was damaged or edited.
            if row is None or row.record != number:
                self._lose(number, Kind.RECORD_WITHOUT_PAGE, page.page_id)
                continue
            counted.add(page)
            if not reader.has_facts_of(number, page):
                self.other_facts.append(number)
                self._add(Kind.OTHER_STRUCTURE, paths.DATABASE, page.page_id)
            crops = reader.query("SELECT path, size, sha256 FROM crops WHERE record = ?", (number,))
            if not _agree(page, row) or set(crops) != {
                (crop.path, crop.size, crop.sha256) for crop in page.image_crops
            }:
                self.disagreeing.append(number)
                self._add(Kind.OTHER_PAGE, paths.DATABASE, page.page_id)
            else:
                self._check_crops(number, page)
        for row in reader.rows(WITHOUT_RECORD):
            self._add(Kind.PAGE_WITHOUT_RECORD, paths.DATABASE, row.page_id)
        for doc_id in reader.wrong_overlays():
            self._add(Kind.OTHER_STRUCTURE, paths.DATABASE, detail=doc_id)
        return counted

    def _check_lines(self, reader: RunReader, summary: RunSummary) -> None:
        """Compare the two JSONL files with the records."""
        files = [(Kind.OTHER_RESULTS, paths.RESULTS, result_lines(reader.each_record()))]
        if summary.version == __version__:
            lines = text_lines(reader.each_record(), self._exporters.embedding_text)
            files.append((Kind.OTHER_TEXTS, paths.TEXTS, lines))
        for kind, name, expected in files:
            difference = _difference(self._path / name, (line for _, line in expected))
            if difference:
                self._add(kind if summary.finished else Kind.OUT_OF_DATE, name, detail=difference)

    def _check_crops(self, number: int, page: PageResult) -> None:
        """Check that the crops of a record exist as they were written; otherwise its page is lost."""
        for crop in page.image_crops:
            try:
                path = paths.crop_file(self._path, crop.path)
            except ValueError as error:
                self._lose(number, Kind.DAMAGED_RECORD, page.page_id, str(error))
                continue
            if not path.is_file():
                self._lose(number, Kind.MISSING_CROP, page.page_id, place=crop.path)
                continue
            with reading_errors(path), path.open("rb") as stream:
                same = os.fstat(stream.fileno()).st_size == crop.size
                if same and not self._quick:
                    same = hashlib.file_digest(stream, "sha256").hexdigest() == crop.sha256
            if not same:
                self._lose(number, Kind.CHANGED_CROP, page.page_id, place=crop.path)

    def _lose(
        self, number: int, kind: Kind, page_id: str | None, detail: str | None = None, *, place: str = paths.DATABASE
    ) -> None:
        if not self.lost or self.lost[-1] != number:
            self.lost.append(number)
        self._add(kind, place, page_id, detail)

    # Files.

    def _check_files(self, reader: RunReader) -> None:
        """Find files that no record mentions: temporary ones, those named after a page or document, and others."""
        garbage = set(reader.garbage())
        ids = (name for (name,) in reader.each("SELECT page_id FROM pages UNION ALL SELECT doc_id FROM documents"))
        odd = {file_stem(name): name for name in ids if file_stem(name) != name}  # none, as a rule

        def look_up(statement: str, stem: str) -> Any:
            """The result of a statement for the page or document whose files have this stem; None if there is none."""
            name = odd.get(stem, stem)
            return reader.one(statement, (name.casefold(), name))

        for folder in (paths.CROPS, paths.DOCUMENTS, "", paths.FOLDER):
            for name, is_file in _entries(self._path / folder):
                path = f"{folder}/{name}".lstrip("/")
                if path in garbage:
                    continue
                if is_file and name.endswith(TEMPORARY_SUFFIX):
                    self._orphan(Kind.LEFT_OVER, path)
                elif folder == paths.CROPS and reader.one("SELECT 1 FROM crops WHERE path = ?", (path,)) is None:
                    stem = (paths.stem_of_crop(name) if is_file else None) or ""
                    document, _, number = stem.rpartition("_")  # of a page that a document may have
                    if look_up(_PAGE, stem) or (number.isdecimal() and look_up(_DOCUMENT, document) is not None):
                        self._orphan(Kind.ORPHANED_CROP, path)
                    else:
                        self._add(Kind.UNKNOWN_FILE, path)
                elif folder == paths.DOCUMENTS:
                    stem, _, suffix = name.rpartition(".")
                    has_record = look_up(_DOCUMENT, stem) if is_file and suffix in {"md", "json"} else None
                    if has_record is None:
                        self._add(Kind.UNKNOWN_FILE, path)
                    elif not has_record:
                        self._orphan(Kind.ORPHANED_DOCUMENT, path)

    def _orphan(self, kind: Kind, path: str) -> None:
        self.orphans.append(path)
        self._add(kind, path)

    def _check_documents(self, reader: RunReader, summary: RunSummary) -> None:
        """Compare documents with their records; in an unfinished run only those that are marked as up to date."""
        for doc_id, written in reader.recorded_documents():
            if not (summary.finished or written):
                continue
            for name, export in zip(paths.document_names(doc_id), (document_markdown, document_json), strict=True):
                path = self._path / name
                if not path.is_file():
                    kind = Kind.MISSING_DOCUMENT
                elif self._compares and _is_other(path, encoded(export(reader, doc_id, self._exporters))):
                    kind = Kind.OTHER_DOCUMENT
                else:
                    continue
                self._add(kind, name)
                # Both files of a document may differ; it is written again once.
                if doc_id not in self.stale_documents[-1:]:
                    self.stale_documents.append(doc_id)

    def _check_report(self, reader: RunReader, summary: RunSummary) -> None:
        """Check that the report exists if page images are stored for one, and matches the records and ``run.json``."""
        path = self._path / paths.REPORT
        run_json = read_run_json(self._path)
        # Of an unfinished run the report is that of the last invocation, or there is none.
        if self._exporters.report is None or run_json is None or not run_json.finished:
            return
        if not path.is_file():
            if reader.has_previews():
                self._add(Kind.OTHER_REPORT, paths.REPORT, detail="missing")
            return
        if self._compares and _is_other(path, report_of(reader, self._exporters.report, run_json)):
            self._add(Kind.OTHER_REPORT, paths.REPORT)

    def _check_counts(self, summary: RunSummary, counted: Counters | None) -> None:
        """Compare counts; ``counted`` is None if some record was lost."""
        if counted and (wrong := _wrong_count(summary, counted, _COUNTED)):
            self._add(Kind.OTHER_DATABASE_COUNTS, paths.DATABASE, detail=wrong)
        run_json = read_run_json(self._path)
        wrong = None
        if run_json is None:
            # A run that has just started has none yet; an unfinished one gets it when it is resumed.
            if summary.finished or (self._path / paths.RUN_JSON).exists():
                wrong = "missing, or no summary of a run"
        elif summary.finished:
            wrong = _wrong_count(run_json, summary, (*_COUNTED, "skipped", "finished"))
        if wrong:
            self._add(Kind.OTHER_COUNTS, paths.RUN_JSON, detail=wrong)

    def _add(self, kind: Kind, place: str, page_id: str | None = None, detail: str | None = None) -> None:
        group = self._groups.setdefault(kind, FindingGroup(kind=kind))
        group.count += 1
        if group.count <= MAX_EXAMPLES:
            group.examples.append(Finding(kind=kind, place=place, page_id=page_id, detail=detail))

    def _verdict(self, reader: RunReader | None, counted: Counters, documents: int) -> Verdict:
        states = dict(reader.query("SELECT state, count(*) FROM pages GROUP BY state")) if reader else {}
        version = reader.summary.version if reader else __version__
        return Verdict(
            groups=[self._groups[kind] for kind in Kind if kind in self._groups],
            states={state.name.lower(): states.get(state, 0) for state in _STATES},
            crops=counted.crops,
            documents=documents,
            in_use_by=self._owner,
            other_version=None if version == __version__ else version,
        )


_PAGE = "SELECT 1 FROM pages WHERE name = ? AND page_id = ?"
_DOCUMENT = f"SELECT {HAS_RECORD} FROM documents d WHERE name = ? AND doc_id = ?"
_STATES = (PageState.DONE, PageState.FAILED, PageState.SKIPPED, PageState.WAITING, PageState.RUNNING)


def _difference(path: Path, expected: Iterable[bytes]) -> str | None:
    """Where a file differs from these lines; None for nowhere."""
    if not path.is_file():
        return "missing"
    number = 0
    with reading_errors(path), path.open("rb") as stream:
        for number, line in enumerate(expected, 1):
            if stream.read(len(line)) != line:
                return f"line {number}"
        return f"more than {number} lines" if stream.read(1) else None


def _is_other(path: Path, expected: Iterator[bytes]) -> bool:
    """Whether a file differs from what its records give. False if a record is damaged, which is reported by itself."""
    try:
        return _difference(path, expected) is not None
    except DamagedRunError:
        return False


def _agree(page: PageResult, row: PageRow) -> bool:
    return (page.status.value, page.page_id, page.doc_id, page.page_number, page.page_idx) == (
        *(row.state.name.lower(), row.page_id, row.doc_id, row.page_number, row.page_idx),
    )


def _entries(folder: Path) -> Iterator[tuple[str, bool]]:
    """Names in a folder, and whether each is a regular file. A missing folder counts as empty."""
    if folder.is_dir():
        with reading_errors(folder), os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name.encode("utf-8", "backslashreplace").decode()
                yield name, name == entry.name and entry.is_file(follow_symlinks=False)


def _wrong_count(stored: Counters, right: Counters, names: Iterable[str]) -> str | None:
    for name in names:
        if getattr(stored, name) != getattr(right, name):
            return f"{name} is {getattr(stored, name)} and should be {getattr(right, name)}"
    return None
