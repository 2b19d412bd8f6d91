"""Bringing the derived files of a run up to date on demand, also beside a process that works on it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pagemill.errors import LockedError
from pagemill.store import paths
from pagemill.store.derived import text_lines, write_document, write_run_json
from pagemill.store.files import encoded, write_whole
from pagemill.store.lock import DERIVED_WAIT_S, RunLock, owner_of
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.rebuilding import read_run_json
from pagemill.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.store.exporters import Exporters
    from pagemill.store.lock import Owner


def refresh(path: Path, exporters: Exporters) -> Owner | None:
    """Write the files of a run directory that are derived from its database and out of date.

    Beside a process that works on the run, ``ocr_results.jsonl`` is left to that process: it grows with every page.
    A run without a report gets none.

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
        summary = reader.summary
    run_json = read_run_json(path)
    ended = summary if summary.finished or run_json is None else run_json
    try:
        directory = RunDirectory.open(
            path, exporters=exporters, identity=summary.identity, settings=summary.settings, mode=OpenMode.RESUME
        )
    except LockedError:
        _write_beside(path, exporters)
        return owner_of(path / paths.LOCK)
    with directory:
        directory.finish(interrupted=ended.interrupted or ended.finished is None, complete=False)
    return None


def _write_beside(path: Path, exporters: Exporters) -> None:
    """Write what another process that works on the run writes at its end."""
    with (
        closing(RunLock(path / paths.DERIVED_LOCK, wait_s=DERIVED_WAIT_S, wait_for_living=True)),
        RunReader.open(path) as reader,
        reader.moment(),
    ):
        lines = text_lines(reader.each_record(), exporters.embedding_text)
        write_whole(path / paths.TEXTS, (line for _, line in lines))
        for doc_id, _ in reader.documents():
            if not reader.is_written(doc_id) and next(reader.document(doc_id), None):
                write_document(path, doc_id, partial(reader.document, doc_id), exporters)
        if exporters.report is not None:
            report = exporters.report(reader.pages(), reader.preview, msgspec.to_builtins(reader.summary))
            write_whole(path / paths.REPORT, encoded(report))
        write_run_json(path, reader.summary)
