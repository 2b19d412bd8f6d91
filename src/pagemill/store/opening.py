"""Opening the run in a directory: start, resume or discard one, or refuse with the reason."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from pagemill.document.names import file_stem
from pagemill.errors import DamagedRunError, DifferentRunError, OutputError
from pagemill.store import paths
from pagemill.store.database import Database
from pagemill.store.files import output_errors, size_of, sync_directory
from pagemill.store.holding import Holding, examine, foreign
from pagemill.store.lock import DERIVED_WAIT_S, RunLock
from pagemill.store.rebuilding import holds_pages, rebuild_database, written_pages
from pagemill.store.rows import PageState
from pagemill.store.run_database import RunDatabase
from pagemill.store.summary import RunSummary
from pagemill.whole_files import TEMPORARY_SUFFIX

_DATABASES = (paths.DATABASE, paths.EARLIER_LEDGER, paths.DESCRIPTIONS)
_FIXED_FILES = (
    *(f"{name}{suffix}" for name in _DATABASES for suffix in ("-shm", "-wal", "")),
    *(f"{paths.FOLDER}/previews", paths.RUN_JSON, paths.REPORT, paths.TEXTS, paths.RESULTS),
)
_MAX_SETTING = 200
_START = "Leave out --resume=required and --retry-failed to start one."


class OpenMode(Enum):
    """How to treat the content of an output directory."""

    AUTO = "auto"
    """Resume a run with the same settings; start one if there is none."""
    RESUME = "resume"
    """Resume; an error if there is no run."""
    FRESH = "fresh"
    """Delete the files of a run, and start one."""


def refuse(out: Path, mode: OpenMode) -> Holding:
    """Raise if a run cannot be opened in a directory, before anything is written; checks only names of files.

    Returns:
        What the directory holds.

    Raises:
        OutputError: It holds foreign files with names that we use, the run of an earlier version, or no run to resume.
    """
    holding = examine(out, fresh=mode is OpenMode.FRESH)
    # With a lock file there was a run: its documents may be overwritten. Without one they are somebody else's.
    if holding is Holding.NOTHING and not (out / paths.LOCK).exists():
        with output_errors(out):
            for pattern in (f"{paths.DOCUMENTS}/*.md", f"{paths.DOCUMENTS}/*.json", f"{paths.CROPS}/*.jpg"):
                for file in out.glob(pattern):
                    raise foreign(out, file.relative_to(out).as_posix())
    if mode is OpenMode.RESUME and holding is not Holding.RUN:
        raise OutputError(f"{out} contains no run to resume", remedy=_START)
    return holding


@contextmanager
def inspected(out: Path, *, identity: Mapping[str, Any], mode: OpenMode) -> Iterator[RunDatabase | None]:
    """The database of a run, to find out what resuming it would do; no change is committed.

    Args:
        out: The directory; it need not exist.
        identity: The settings that change results, as far as they are known.
        mode: How to treat the content of the directory.

    Yields:
        The database; None if there is no intact run to resume, so that there is work left.

    Raises:
        LockedError: Another process is using the directory.
        DifferentRunError: It contains a run with other settings.
        OutputError: It cannot be written, holds foreign files with names that we use, or no run to resume.
    """
    with output_errors(out):
        # The directory may not exist yet: what counts is whether its nearest parent can be written.
        place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    holding = refuse(out, mode)
    with ExitStack() as opened:
        if (out / paths.LOCK).exists():
            opened.enter_context(RunLock(out / paths.LOCK))
        run = None
        if holding is Holding.RUN and mode is not OpenMode.FRESH:
            with suppress(DamagedRunError):  # a run repairs it when it opens it
                run = _run_there(out, identity, mode, trial=True)
        if run is not None:
            opened.enter_context(run)
        yield run


def open_run(
    out: Path, *, identity: Mapping[str, Any], settings: Mapping[str, Any] | None, mode: OpenMode
) -> tuple[RunDatabase, bool]:
    """Open the database of a directory that this process has locked: that of its run, or of a new one.

    Args:
        out: The directory.
        identity: The settings that change results.
        settings: See :meth:`RunDatabase.start_session`.
        mode: How to treat the content of the directory.

    Returns:
        The database, and whether the last process of the run was killed.

    Raises:
        DifferentRunError: It contains a run with other settings.
        DamagedRunError: The database is damaged or missing, and ``run.json``, too.
        OutputError: See :func:`refuse`; or the directory cannot be written; NoSpaceError when the disk is full.
    """
    holding = refuse(out, mode)
    run = None
    if holding is Holding.RUN and mode is not OpenMode.FRESH:
        try:
            run = _run_there(out, identity, mode)
        except DamagedRunError:
            # Without a single page there is nothing to save: a new database is as good.
            if mode is OpenMode.RESUME or holds_pages(out):
                rebuild_database(out)
                run = _run_there(out, identity, mode)
    # Asked before a new session begins, which resets it.
    cut_off = run is not None and run.summary.finished is None
    if run is None:
        if holding is not Holding.NOTHING:
            discard(out)
        run = RunDatabase(out / paths.DATABASE)
    with ExitStack() as opened:
        opened.callback(run.close)
        if not run.has_started:
            run.begin(RunSummary(started=datetime.now(UTC), identity=dict(identity)))
        run.start_session(settings)
        opened.pop_all()
    return run, cut_off


def _run_there(out: Path, identity: Mapping[str, Any], mode: OpenMode, *, trial: bool = False) -> RunDatabase | None:
    """Open the run of a directory; None if it may be replaced. For a trial ``identity`` may be incomplete."""
    if not (out / paths.DATABASE).exists():
        raise DamagedRunError(f"{out} has lost its database")
    with ExitStack() as opened:
        run = opened.enter_context(RunDatabase(out / paths.DATABASE, trial=trial))
        if not run.has_started:
            if size_of(out / paths.RESULTS) or size_of(out / paths.RUN_JSON):
                raise DamagedRunError(f"{out / paths.DATABASE} is empty")
            if mode is OpenMode.RESUME:
                raise OutputError(f"{out} contains no run to resume", remedy=_START)
            return None
        before = run.summary.identity
        if trial:
            before = {name: before.get(name) for name in identity}
        differences = list(_differences(before, identity))
        # A run without pages, as after a misspelt input, is replaced: nobody should need --fresh for it.
        if differences and not (mode is OpenMode.AUTO and run.is_fruitless()):
            raise DifferentRunError(
                f"{out} contains a run with other settings: {'; '.join(differences)}",
                remedy="Use the settings of that run, choose another directory with -o, or start over with --fresh.",
            )
        if differences:
            return None
        opened.pop_all()
        return run


def discard(out: Path) -> None:
    """Delete the files of a run, and nothing else: its fixed files, and the crops and documents that it names.

    A process that dies in between leaves a marker, and the next one to open the directory continues. The lock stays.

    Raises:
        LockedError: ``pagemill export OUT`` is still writing derived files after the wait.
        OutputError: Something cannot be deleted.
    """
    marker = out / paths.DISCARDING
    derived = RunLock(out / paths.DERIVED_LOCK, wait_s=DERIVED_WAIT_S)
    with derived, output_errors(out):
        marker.touch()
        sync_directory(marker.parent)
        delete_own(out, _named(out))
        # The database goes last: a process that dies before that still finds the names of the files.
        for name in _FIXED_FILES:
            (out / name).unlink(missing_ok=True)
            (out / f"{name}{TEMPORARY_SUFFIX}").unlink(missing_ok=True)
        for folder in (out / paths.CROPS, out / paths.DOCUMENTS):
            clear_folder(folder)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        sync_directory(out)
        marker.unlink()


def delete_own(out: Path, names: Iterable[str]) -> None:
    """Delete crops and files of documents by their paths relative to the run directory."""
    for name in names:
        try:
            path = paths.own_file(out, name)
        except ValueError:
            continue  # an edited record: the file is not ours to delete
        with output_errors(path):
            path.unlink(missing_ok=True)


def _named(out: Path) -> Iterator[str]:
    """Files that a run names, among them crops that a page in flight may have written."""
    try:
        with Database(out / paths.DATABASE, read_only=True) as view:
            in_flight = view.query("SELECT page_id FROM pages WHERE state = ?", (PageState.RUNNING,))
            yield from crops_of(out, (page_id for (page_id,) in in_flight))
            yield from (path for (path,) in view.each("SELECT path FROM crops UNION ALL SELECT path FROM garbage"))
            for (doc_id,) in view.each("SELECT doc_id FROM documents"):
                yield from paths.document_names(doc_id)
    except OutputError:  # missing, damaged somewhere, or of another format
        for page in written_pages(out / paths.RESULTS):
            yield from (crop.path for crop in page.image_crops)
            yield from paths.document_names(page.doc_id)


def crops_of(out: Path, page_ids: Iterable[str]) -> list[str]:
    """Crops of pages, whether or not a record names them, relative to the run directory."""
    # By one scan of the folder: a look for each page would take as long as the folder is large, each time.
    stems, folder = set(map(file_stem, page_ids)), out / paths.CROPS
    if not stems or not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [f"{paths.CROPS}/{entry.name}" for entry in entries if paths.stem_of_crop(entry.name) in stems]


def clear_folder(folder: Path) -> None:
    """Delete files in a folder that were being written when a process died."""
    for leftover in folder.glob(f"*{TEMPORARY_SUFFIX}"):
        leftover.unlink(missing_ok=True)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs, setting by setting."""
    new = msgspec.to_builtins(new)  # as it comes back from JSON: tuples are lists
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            yield from _differences(before, now, f"{prefix}{name}.")
        elif before != now:
            yield f"{prefix}{name} was {_shown(name, before)} and is {_shown(name, now)}"


def _shown(name: str, value: Any) -> str:
    """A setting as it is written on the command line."""
    if value is None:
        return "auto" if name == "languages" else "the default"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_SETTING else f"{text[:_MAX_SETTING]}..."
