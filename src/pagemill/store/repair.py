"""Update and repair a run directory: intact pages stay, lost ones wait to be parsed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pagemill.document.structure import facts_of
from pagemill.errors import LockedError
from pagemill.store import paths
from pagemill.store.derived import Exporters, report_of, text_lines, write_document, write_run_json
from pagemill.store.files import output_errors, write_whole
from pagemill.store.holding import read_run_json, require_run
from pagemill.store.lock import DERIVED_WAIT_S, Owner, RunLock, owner_of
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.rebuilding import rebuild_database
from pagemill.store.run_database import RunDatabase, recounted, remove_record
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import WITHOUT_RECORD, Examination, Kind, Verdict, verify  # msgspec reads the annotation


class Repairs(msgspec.Struct, kw_only=True):
    """Repairs that were made, and the state of the directory after them."""

    database_rebuilt: bool = False
    pages_reset: int = 0
    """Pages whose record was lost; they wait for the next run."""
    files_deleted: int = 0
    derived_written: bool = False
    """The files that are derived from the records were brought up to date."""
    left: Verdict


def repair(path: Path, *, exporters: Exporters, quick: bool = False) -> tuple[Verdict, Repairs]:
    """Repair what :func:`pagemill.store.verify.verify` finds.

    Pages whose record or crops are damaged wait for the next run. Files with names of this run that no record mentions
    are deleted; other files are not touched. A damaged database is rebuilt from what can be read of it and from
    ``ocr_results.jsonl``. Derived files that do not agree with the records are written again. If the process dies in
    between, the repair can be repeated.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: See :func:`~pagemill.store.verify.verify`.

    Returns:
        The findings before, and the repairs.

    Raises:
        LockedError: Another process is using the directory.
        DamagedRunError: The identity of the run is lost: it is in neither the database nor ``run.json``.
        OutputError: There is no run, or a file cannot be written; NoSpaceError when the disk is full.
    """
    require_run(path)
    with output_errors(path):
        (path / paths.FOLDER).mkdir(exist_ok=True)
    with RunLock(path / paths.LOCK):
        found = Examination(path, exporters, quick=quick)
        before = found.verdict()
        if not (before.damaged or found.found(Kind.OUT_OF_DATE)):
            return before, Repairs(left=before)
        rebuilt = found.found(Kind.MALFORMED_DATABASE)
        if rebuilt:
            rebuild_database(path)
            found = Examination(path, exporters, quick=quick)
            found.verdict()
        pages, garbage = _reset(path, found)
        for name in found.orphans:
            with output_errors(path / name):
                (path / name).unlink(missing_ok=True)
    refresh(path, exporters)
    left = verify(path, exporters=exporters, quick=quick)
    return before, Repairs(
        database_rebuilt=rebuilt,
        pages_reset=pages,
        files_deleted=len(found.orphans) + garbage,
        derived_written=True,
        left=left,
    )


def restructure(path: Path, exporters: Exporters, prepare: Callable[[], None]) -> None:
    """Derive the structure of all documents again from their records, and write the files that depend on it.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        prepare: Called before anything is changed, with the lock held.

    Raises:
        LockedError: Another process is using the directory.
        OutputError: There is no run, or a file cannot be written; NoSpaceError when the disk is full.
        DamagedRunError: A record is damaged; nothing was changed.
    """
    require_run(path)
    with RunLock(path / paths.LOCK), RunDatabase(path / paths.DATABASE) as run:
        prepare()
        records = [number for number, _ in run.each_record()]
        with run.transaction() as connection:
            for number in records:
                for page in run.record(number):
                    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (number, facts_of(page)))
            connection.execute("DELETE FROM overlays")
            connection.execute("DELETE FROM derived")
            connection.execute("UPDATE documents SET written = 0 WHERE written = 1")
    refresh(path, exporters)


def _reset(path: Path, found: Examination) -> tuple[int, int]:
    """Reset pages whose record is lost, and mark the derived files to be rewritten.

    Returns:
        The number of pages, and that of their files, which the next process to open the directory deletes.
    """
    with RunDatabase(path / paths.DATABASE) as run:
        summary = run.summary
        rows = [*run.rows_of(found.lost), *run.rows(WITHOUT_RECORD)]
        # The next run parses these pages again: their names stay.
        if rows:
            run.drop(summary, rows, forget=False)
        # Row and record disagree, so the row may have a wrong name: it is deleted, and the input yields the page again.
        unsure = run.rows_of(found.disagreeing)
        if unsure:
            run.drop(summary, unsure, forget=True, keep_documents=True)
        with run.transaction() as connection:
            for number in found.other_facts:
                for page in run.record(number):
                    connection.execute("UPDATE facts SET data = ? WHERE record = ?", (facts_of(page), number))
            if found.found(Kind.OTHER_STRUCTURE):
                connection.execute("DELETE FROM overlays")
                connection.execute("UPDATE documents SET written = 0 WHERE written = 1")
            for number in found.lost:  # those that belong to no page
                remove_record(connection, number)
            if found.found(Kind.OTHER_RESULTS, Kind.OTHER_TEXTS, Kind.RECORD_WITHOUT_PAGE):
                connection.execute("DELETE FROM derived")
            run.count(connection, recounted(connection))
        run.set_written(found.stale_documents, written=False)
        return len(rows) + len(unsure), sum((path / name).is_file() for name in run.garbage())


def refresh(path: Path, exporters: Exporters) -> Owner | None:
    """Write the derived files of a run directory that are out of date.

    While a process is using the run, ``ocr_results.jsonl`` is left to that process, which appends to it. A run without
    a report gets none. A run that was killed is marked as interrupted.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.

    Returns:
        The process that is using the run; None if there is none.

    Raises:
        OutputError: There is no run, or a file cannot be written; NoSpaceError when the disk is full.
        DamagedRunError: A record is damaged.
    """
    with RunReader.open(path) as reader:
        # A run that was written with --no-report keeps no previews, and must not get a report by being repaired.
        if not ((path / paths.REPORT).exists() or reader.has_previews()):
            exporters = replace(exporters, report=None)
        before = reader.summary
    # A rebuilt database does not know whether the run had finished; run.json does.
    ended = before if before.finished else read_run_json(path) or before
    try:
        directory = RunDirectory.open(
            path, exporters=exporters, identity=before.identity, settings=None, mode=OpenMode.RESUME
        )
    except LockedError:
        _write_beside(path, exporters)
        return owner_of(path / paths.LOCK)
    with directory:
        if directory.summary.finished:
            directory.write_derived()
        else:
            directory.finish(interrupted=ended.interrupted or ended.finished is None, complete=False)
    return None


def _write_beside(path: Path, exporters: Exporters) -> None:
    """Write the derived files that the process which uses the run would write at its end."""
    with (
        RunLock(path / paths.DERIVED_LOCK, wait_s=DERIVED_WAIT_S),
        RunReader.open(path) as reader,
        reader.moment(),
    ):
        # All but ocr_results.jsonl, to which the owner appends: two writers would tear its lines.
        lines = text_lines(reader.each_record(), exporters.embedding_text)
        write_whole(path / paths.TEXTS, (line for _, line in lines))
        for doc_id, written in reader.recorded_documents():
            if not written:
                write_document(reader, doc_id, exporters)
        if exporters.report is not None:
            write_whole(path / paths.REPORT, report_of(reader, exporters.report, reader.summary))
        write_run_json(path, reader.summary)
