"""Bringing the derived files of a run up to date on demand, also beside a process that works on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pagemill.errors import LockedError
from pagemill.store import paths
from pagemill.store.derived import report_of, text_lines, write_document, write_run_json
from pagemill.store.files import write_whole
from pagemill.store.holding import read_run_json
from pagemill.store.lock import DERIVED_WAIT_S, RunLock, owner_of
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.store.derived import Exporters
    from pagemill.store.lock import Owner


def refresh(path: Path, exporters: Exporters) -> Owner | None:
    """Write the files of a run directory that are derived from its database and out of date.

    Beside a process that works on the run, ``ocr_results.jsonl`` is left to that process: it grows with every page.
    A run without a report gets none. A run that was cut off is an interrupted one afterwards.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.

    Returns:
        The process that works on the run; None when there is none.

    Raises:
        OutputError: There is no run, or a file cannot be written; NoSpaceError when the disk is full.
        DamagedRunError: A record is damaged.
    """
    with RunReader.open(path) as reader:
        if not ((path / paths.REPORT).exists() or reader.has_previews()):
            exporters = replace(exporters, report=None)
        before = reader.summary
    ended = before if before.finished else read_run_json(path) or before  # a rebuilt database does not know the end
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
    """Write what another process that works on the run writes at its end."""
    with (
        RunLock(path / paths.DERIVED_LOCK, wait_s=DERIVED_WAIT_S),
        RunReader.open(path) as reader,
        reader.moment(),
    ):
        lines = text_lines(reader.each_record(), exporters.embedding_text)
        write_whole(path / paths.TEXTS, (line for _, line in lines))
        for doc_id, written in reader.recorded_documents():
            if not written:
                write_document(reader, doc_id, exporters)
        if exporters.report is not None:
            write_whole(path / paths.REPORT, report_of(reader, exporters.report, reader.summary))
        write_run_json(path, reader.summary)
