"""Check that everything in a run directory is intact and agrees, without the inputs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgspec

from pagemill._version import __version__
from pagemill.document.identity import PageKey
from pagemill.document.names import file_stem
from pagemill.errors import DamagedRunError, LockedError, OutputError
from pagemill.store import paths
from pagemill.store.files import encoded, reading_errors
from pagemill.store.findings import MAX_EXAMPLES, Finding, FindingGroup, Kind, Verdict
from pagemill.store.lock import RunLock, owner_of
from pagemill.store.opening import require_run
from pagemill.store.reading import RunReader
from pagemill.store.rebuilding import read_run_json
from pagemill.store.records import decode_page, decompress, text_line
from pagemill.store.rows import PageRow, PageState
from pagemill.store.summary import Counters, RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pagemill.document.page import PageResult
    from pagemill.store.exporters import Exporters
    from pagemill.store.lock import Owner

_TRIES = 3
"""How often a directory in use is checked again when something seems wrong: the run may have changed it meanwhile."""
_COUNTED = ("pages", "failed", "regions", "crops", "regions_by_label", "failures_by_kind", "warnings_by_kind")
"""Counts that the records tell."""


def verify(path: Path, *, exporters: Exporters, quick: bool = False) -> Verdict:
    """Check a run directory: database, records, crops, derived files, left-over files.

    Changes nothing. Of a directory that another process works on, what it has committed is checked. Memory does not
    grow with the pages.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: Crops by their size only, documents and report only for being there.

    Raises:
        OutputError: There is no run in the directory, or it cannot be read.
    """
    with _idle(path) as owner:
        for _ in range(_TRIES):
            verdict = Examination(path, exporters, quick=quick, owner=owner).verdict()
            if owner is None or not verdict.damaged:
                break
        return verdict


class Examination:
    """One look at a run directory, and what :mod:`~pagemill.store.repair` must know of what was found.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: As in :func:`verify`.
        owner: The process that works on it; None if the caller makes sure that there is none.
    """

    def __init__(self, path: Path, exporters: Exporters, *, quick: bool = False, owner: Owner | None = None) -> None:
        self.lost: list[int] = []
        """Numbers of records that are damaged, or whose crops are, or that belong to no page."""
        self.disagreeing: list[int] = []
        """Numbers of records with which the row of their page does not agree."""
        self.without_record: list[PageKey] = []
        """Pages whose record is gone."""
        self.orphans: list[str] = []
        """Files to be deleted, relative to the run directory."""
        self.stale_documents: list[str] = []
        """Documents that do not agree with their records."""
        self._path = path
        self._exporters = exporters
        self._quick = quick
        self._owner = owner
        self._counts: dict[Kind, int] = {}
        self._examples: dict[Kind, list[Finding]] = {}

    def verdict(self) -> Verdict:
        """Look at everything.

        Raises:
            OutputError: There is no run in the directory, or it cannot be read.
        """
        require_run(self._path)
        try:
            with RunReader.open(self._path) as reader, reader.moment():
                return self._look(reader)
        except DamagedRunError as error:
            self._add(Kind.MALFORMED_DATABASE, paths.DATABASE, detail=error.message)
            return self._verdict(None, Counters(), 0)

    def found(self, *kinds: Kind) -> bool:
        """Whether there is a finding of one of these kinds."""
        return any(kind in self._counts for kind in kinds)

    def _look(self, reader: RunReader) -> Verdict:
        if fault := reader.fault(quick=self._quick):
            raise DamagedRunError(fault)
        summary = reader.summary
        counted = self._check_records(reader, summary)
        if self._owner is None:
            with _Stems(reader) as stems:
                self._check_files(reader, stems)
            documents = self._check_documents(reader, summary)
            self._check_counts(summary, counted)
            if summary.finished:
                self._check_report(reader, summary)
        else:
            documents = reader.recorded_documents()
        return self._verdict(reader, counted, documents)

    # Records and crops.

    def _check_records(self, reader: RunReader, summary: RunSummary) -> Counters:
        """Compare every record with the row of its page, its crops, and its lines in the two JSONL files."""
        counted = Counters()
        compare_texts = summary.version == __version__
        with (
            _LineComparison(self._path / paths.RESULTS) as results,
            _LineComparison(self._path / paths.TEXTS) as texts,
        ):
            for number, data in reader.each_record():
                try:
                    line = decompress(data)
                    page = decode_page(line)
                    row = reader.row(PageKey.parse(page.page_key))
                except ValueError as error:  # msgspec's are some
                    self._lose(number, Kind.DAMAGED_RECORD, reader.page_id_of(number), str(error))
                    continue
                if row is None or row.record != number:
                    self._lose(number, Kind.RECORD_WITHOUT_PAGE, page.page_id)
                    continue
                counted.add(page)
                if not _agree(page, row) or reader.crops_of(number) != _crops(page):
                    self.disagreeing.append(number)
                    self._add(Kind.OTHER_PAGE, paths.DATABASE, page.page_id)
                else:
                    self._check_crops(number, page)
                results.expect(line)
                if compare_texts:
                    texts.expect(text_line(page, self._exporters.embedding_text))
            for key, page_id in reader.without_record():
                self.without_record.append(key)
                self._add(Kind.PAGE_WITHOUT_RECORD, paths.DATABASE, page_id)
            if self._owner is None and not self.found(
                Kind.DAMAGED_RECORD, Kind.RECORD_WITHOUT_PAGE, Kind.PAGE_WITHOUT_RECORD
            ):
                self._compare_lines(Kind.OTHER_RESULTS, results, finished=summary.finished is not None)
                if compare_texts:
                    self._compare_lines(Kind.OTHER_TEXTS, texts, finished=summary.finished is not None)
        return counted

    def _compare_lines(self, kind: Kind, comparison: _LineComparison, *, finished: bool) -> None:
        difference = comparison.result()
        if difference is not None:
            self._add(kind if finished else Kind.OUT_OF_DATE, comparison.path.name, detail=difference)

    def _check_crops(self, number: int, page: PageResult) -> None:
        """The crops of a record are there, as they were written; else its page is lost."""
        for crop in page.image_crops:
            try:
                path = paths.crop_file(self._path, crop.path)
            except ValueError:
                self._lose(number, Kind.DAMAGED_RECORD, page.page_id, f"{crop.path!r} is no path of a crop")
                continue
            if not path.is_file():
                self._lose(number, Kind.MISSING_CROP, page.page_id, place=crop.path)
                continue
            with reading_errors(path), path.open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size != crop.size:
                    fault = f"{crop.size} bytes written, {size} there"
                elif not self._quick and hashlib.file_digest(stream, "sha256").hexdigest() != crop.sha256:
                    fault = "same size, other content"
                else:
                    continue
            self._lose(number, Kind.CHANGED_CROP, page.page_id, fault, place=crop.path)

    def _lose(
        self, number: int, kind: Kind, page_id: str | None, detail: str | None = None, *, place: str = paths.DATABASE
    ) -> None:
        if not self.lost or self.lost[-1] != number:
            self.lost.append(number)
        self._add(kind, place, page_id, detail)

    # Files.

    def _check_files(self, reader: RunReader, stems: _Stems) -> None:
        """Find files that nothing mentions: temporary ones, those named after a page or document, and others."""
        garbage = set(reader.garbage())
        for folder in (paths.CROPS, paths.DOCUMENTS, "", paths.FOLDER):
            for name, is_file in _entries(self._path / folder):
                path = f"{folder}/{name}".lstrip("/")
                if path in garbage:
                    continue
                if is_file and name.endswith(paths.TEMPORARY_SUFFIX):
                    self._orphan(Kind.LEFT_OVER, path)
                elif folder == paths.CROPS and not reader.is_crop(path):
                    if is_file and stems.own_crop(name):
                        self._orphan(Kind.ORPHANED_CROP, path)
                    else:
                        self._add(Kind.UNKNOWN_FILE, path)
                elif folder == paths.DOCUMENTS:
                    stem, _, suffix = name.rpartition(".")
                    records = stems.documents(stem) if is_file and suffix in {"md", "json"} else None
                    if records is None:
                        self._add(Kind.UNKNOWN_FILE, path)
                    elif not records:
                        self._orphan(Kind.ORPHANED_DOCUMENT, path)

    def _orphan(self, kind: Kind, path: str) -> None:
        self.orphans.append(path)
        self._add(kind, path)

    def _check_documents(self, reader: RunReader, summary: RunSummary) -> int:
        """Compare documents with their records; the number of those that have records.

        Of an unfinished run only those that are said to be up to date are compared.
        """
        compare = not self._quick and summary.version == __version__
        count = 0
        for doc_id, pages in reader.documents(on_damage=lambda _: None):
            first = next(pages, None)
            count += first is not None
            if first is None or not (summary.finished or reader.is_written(doc_id)):
                continue
            exports = (self._exporters.document_markdown, self._exporters.document_json)
            for path, export in zip(paths.document_files(self._path, doc_id), exports, strict=True):
                if not path.is_file():
                    kind = Kind.MISSING_DOCUMENT
                elif compare and not _is_same(path, export(reader.document(doc_id))):
                    kind = Kind.OTHER_DOCUMENT
                else:
                    continue
                self._add(kind, path.relative_to(self._path).as_posix())
                if doc_id not in self.stale_documents[-1:]:
                    self.stale_documents.append(doc_id)
        return count

    def _check_report(self, reader: RunReader, summary: RunSummary) -> None:
        """The report is there if page images were kept for one, and shows the records and what ``run.json`` counts."""
        path = self._path / paths.REPORT
        run_json = read_run_json(self._path)
        if self._exporters.report is None or run_json is None or not run_json.finished:
            return
        if not path.is_file():
            if reader.has_previews():
                self._add(Kind.OTHER_REPORT, paths.REPORT, detail="missing")
        elif not self._quick and summary.version == __version__:
            report = self._exporters.report(reader.pages(), reader.preview, msgspec.to_builtins(run_json))
            if not _is_same(path, report):
                self._add(Kind.OTHER_REPORT, paths.REPORT)

    def _check_counts(self, summary: RunSummary, counted: Counters) -> None:
        run_json = read_run_json(self._path)
        lost = self.found(Kind.DAMAGED_RECORD, Kind.RECORD_WITHOUT_PAGE, Kind.PAGE_WITHOUT_RECORD)
        if not lost and (wrong := _differences(summary, counted)):
            self._add(Kind.OTHER_DATABASE_COUNTS, paths.DATABASE, detail=wrong)
        if run_json is None:
            # A run that has only begun has none yet; an unfinished one gets it when it is resumed.
            if summary.finished or (self._path / paths.RUN_JSON).exists():
                self._add(Kind.OTHER_COUNTS, paths.RUN_JSON, detail="missing, or no summary of a run")
        elif summary.finished:
            wrong = None if lost else _differences(run_json, counted)
            if run_json.skipped != summary.skipped:
                wrong = wrong or f"skipped is {run_json.skipped}, the database has {summary.skipped}"
            if run_json.finished != summary.finished:
                wrong = wrong or "finished is not what the database has"
            if wrong:
                self._add(Kind.OTHER_COUNTS, paths.RUN_JSON, detail=wrong)

    def _add(self, kind: Kind, place: str, page_id: str | None = None, detail: str | None = None) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(Finding(kind=kind, place=place, page_id=page_id, detail=detail))

    def _verdict(self, reader: RunReader | None, counted: Counters, documents: int) -> Verdict:
        states = reader.counted_states() if reader else {}
        version = reader.summary.version if reader else __version__
        return Verdict(
            groups=[
                FindingGroup(kind=kind, count=self._counts[kind], examples=self._examples[kind])
                for kind in Kind
                if kind in self._counts
            ],
            states={state.name.lower(): states.get(state, 0) for state in _STATES},
            crops=counted.crops,
            documents=documents,
            in_use_by=self._owner,
            other_version=None if version == __version__ else version,
        )


_STATES = (PageState.DONE, PageState.FAILED, PageState.SKIPPED, PageState.WAITING, PageState.RUNNING)


class _LineComparison:
    """A file of lines against the lines that it should hold."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = path.open("rb") if path.is_file() else None
        self._line = 0
        self._difference = None if self._stream else "missing"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream:
            self._stream.close()

    def expect(self, line: bytes) -> None:
        """Compare the next line."""
        self._line += 1
        if self._difference is None and self._stream:
            with reading_errors(self.path):
                if self._stream.read(len(line)) != line:
                    self._difference = f"line {self._line}"

    def result(self) -> str | None:
        """Where they differ; None for nowhere."""
        if self._difference is None and self._stream and self._stream.read(1):
            self._difference = f"more than {self._line} lines"
        return self._difference


class _Stems:
    """Which names of files belong to pages and documents of a run; a table in a temporary database."""

    def __init__(self, reader: RunReader) -> None:
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("CREATE TABLE stems (kind, stem, records, PRIMARY KEY (kind, stem)) WITHOUT ROWID")
        self._db.execute("BEGIN")
        for table, names in (("crops", reader.page_ids()), ("documents", reader.document_ids())):
            self._db.executemany(
                "INSERT OR REPLACE INTO stems VALUES (?, ?, ?)",
                ((table, file_stem(name), records) for name, records in names),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def documents(self, stem: str) -> int | None:
        """How many records a document has whose files have this stem, at most 1; None for none of this run."""
        return self._records("documents", stem)

    def own_crop(self, name: str) -> bool:
        """Whether a file is named as a crop of a page of this run, or of a page that one of its documents may have."""
        stem = paths.stem_of_crop(name)
        if stem is None:
            return False
        document, _, number = stem.rpartition("_")
        return self._records("crops", stem) is not None or (
            number.isdecimal() and self._records("documents", document) is not None
        )

    def _records(self, kind: str, stem: str) -> int | None:
        row = self._db.execute("SELECT records FROM stems WHERE kind = ? AND stem = ?", (kind, stem)).fetchone()
        return row[0] if row else None


def _agree(page: PageResult, row: PageRow) -> bool:
    return (page.status.value, page.page_id, page.doc_id, page.page_number, page.page_idx) == (
        *(row.state.name.lower(), row.page_id, row.doc_id, row.page_number, row.page_idx),
    )


def _crops(page: PageResult) -> set[tuple[str, int, str]]:
    return {(crop.path, crop.size, crop.sha256) for crop in page.image_crops}


def _entries(folder: Path) -> Iterator[tuple[str, bool]]:
    """Names in a folder, and whether each is a file; links are none. A folder that is missing is empty."""
    if folder.is_dir():
        with reading_errors(folder), os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name.encode("utf-8", "backslashreplace").decode()
                yield name, name == entry.name and entry.is_file(follow_symlinks=False)


def _differences(told: Counters, counted: Counters) -> str | None:
    for name in _COUNTED:
        if getattr(told, name) != getattr(counted, name):
            return f"{name} is {getattr(told, name)}, the records have {getattr(counted, name)}"
    return None


@contextlib.contextmanager
def _idle(path: Path) -> Iterator[Owner | None]:
    """Lock the directory, or tell who works on it. Without the right to write, nobody is kept from it."""
    lock = None
    owner = None
    if (path / paths.FOLDER).is_dir():
        try:
            lock = RunLock(path / paths.LOCK)
        except LockedError:
            owner = owner_of(path / paths.LOCK)
            if owner is None:  # it has just come, or just gone
                raise
        except OutputError:
            owner = owner_of(path / paths.LOCK)
            if owner is not None and owner.alive() is False:
                owner = None
    try:
        yield owner
    finally:
        if lock is not None:
            lock.release()


def _is_same(path: Path, text: str | bytes | Iterable[str]) -> bool:
    """Whether a file holds a text; so it is taken where a damaged record, which is reported by itself, ends that."""
    try:
        with reading_errors(path), path.open("rb") as stream:
            return all(stream.read(len(chunk)) == chunk for chunk in encoded(text)) and not stream.read(1)
    except DamagedRunError:
        return True
