"""Opening the run in a directory: start one, resume one, discard one, or say why not."""

from __future__ import annotations

import errno
import os
import re
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill._version import __version__
from pagemill.document.names import file_stem
from pagemill.errors import DamagedRunError, DifferentRunError, OutputError
from pagemill.store import paths
from pagemill.store.database import Snapshots
from pagemill.store.files import output_errors, size_of, sync_directory
from pagemill.store.lock import DERIVED_WAIT_S, RunLock
from pagemill.store.rebuilding import holds_pages, rebuild_database
from pagemill.store.records import decode_page
from pagemill.store.rows import PageState
from pagemill.store.run_database import RunDatabase
from pagemill.store.summary import GENERATOR, RunSummary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_DERIVED = (paths.RUN_JSON, paths.RESULTS, paths.TEXTS, paths.REPORT)
_DATABASE_FILES = tuple(f"{paths.DATABASE}{suffix}" for suffix in ("", "-wal", "-shm"))
_EARLIER_LEDGER = f"{paths.FOLDER}/ledger.sqlite"
"""Of versions that kept the truth in ``ocr_results.jsonl``."""
_EARLIER_FILES = (
    *(f"{_EARLIER_LEDGER}{suffix}" for suffix in ("", "-wal", "-shm")),
    f"{paths.FOLDER}/previews",
    ".previews",
)
_MAX_LINE_BYTES = 64 * 2**20
_MAX_SETTING = 200
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
_DIGITS = 12
"""Of a digest, that are shown."""
_START = "Leave out --resume and --retry-failed to start one."


class OpenMode(Enum):
    """What to do with what an output directory holds."""

    AUTO = "auto"
    """Resume a run of the same settings; start one where there is none."""
    RESUME = "resume"
    """Resume; an error where there is no run."""
    FRESH = "fresh"
    """Delete what a run wrote, and start."""


class Holding(Enum):
    """What an output directory holds."""

    NOTHING = "nothing"
    RUN = "run"
    DISCARDED = "discarded"
    """The rest of a run that somebody was deleting."""
    EARLIER_VERSION = "earlier version"
    """A run of a version whose truth was in ``ocr_results.jsonl``."""
    RECORDS = "records"
    """Records without the database and the ``run.json`` of their run."""


class _Marker(msgspec.Struct):
    """What must be known of a ``run.json``, of any version."""

    generator: str
    identity: dict[str, Any] = {}


def examine(out: Path) -> Holding:
    """Find out what a directory holds; it need not exist.

    Raises:
        OutputError: It holds files by our names that do not show that they are from pagemill, or cannot be read.
    """
    with output_errors(out):
        folder = out / paths.FOLDER
        if folder.exists() and not folder.is_dir():
            raise _foreign(out, paths.FOLDER)
        for name, holding in (
            (paths.DISCARDING, Holding.DISCARDED),
            (paths.DATABASE, Holding.RUN),
            (_EARLIER_LEDGER, Holding.EARLIER_VERSION),
        ):
            if (out / name).exists():
                return holding
        present = [name for name in _DERIVED if (out / name).exists()]
        if not present:
            if not (out / paths.LOCK).exists():  # else a run was here, and what it left in the folders stays
                _refuse_foreign_results(out)
            return Holding.NOTHING
        marker = _marker(out)
        if marker is not None:
            return Holding.RUN if marker.identity else Holding.EARLIER_VERSION
        if (out / paths.LOCK).exists():
            return Holding.RUN  # one that has lost its database and its run.json
        if not (out / paths.RUN_JSON).exists() and _begins_with_a_record(out / paths.RESULTS):
            return Holding.RECORDS
        raise _foreign(out, present[0])


def require_run(out: Path) -> None:
    """Make sure that a directory holds a run of this version, be it a damaged one.

    Raises:
        OutputError: It does not, or cannot be read.
    """
    with output_errors(out):
        holding = Holding.NOTHING
        if any((out / name).exists() for name in (*_DERIVED, paths.DATABASE, paths.DISCARDING, _EARLIER_LEDGER)):
            holding = examine(out)
    if holding is Holding.EARLIER_VERSION:
        raise _earlier_version(out)
    if holding is not Holding.RUN:
        raise OutputError(f"{out} holds no run", remedy="Name a directory that pagemill parse has written to.")


def refuse(out: Path, mode: OpenMode) -> Holding:
    """Say, before anything is written, why a run cannot be opened in a directory, where that shows from outside.

    Returns:
        What the directory holds.

    Raises:
        OutputError: It holds files by our names that are not ours, the run of an earlier version, or no run to resume.
    """
    holding = examine(out)
    if mode is OpenMode.FRESH:
        return holding
    if holding is Holding.RECORDS:
        raise OutputError(
            f"{out} holds records of pagemill without the {paths.RUN_JSON} and the database of their run",
            remedy="Replace them with --fresh or choose another directory with -o.",
        )
    if holding is Holding.EARLIER_VERSION:
        raise _earlier_version(out)
    if mode is OpenMode.RESUME and holding is not Holding.RUN:
        raise OutputError(f"{out} holds no run to resume", remedy=_START)
    return holding


@contextmanager
def inspected(out: Path, *, identity: Mapping[str, Any], mode: OpenMode) -> Iterator[RunDatabase | None]:
    """The database of a run for finding out what resuming it would do; no change to it is kept.

    Args:
        out: The directory; it need not exist.
        identity: The settings that decide about results, as far as they are known.
        mode: What is to be done with what the directory holds.

    Yields:
        None where there is no intact run to resume, so that there is work left.

    Raises:
        LockedError: Another process works on the directory.
        DifferentRunError: It holds a run with other settings.
        OutputError: It cannot be written, holds files by our names that are not ours, or no run to resume.
    """
    with output_errors(out):
        place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    holding = refuse(out, mode)
    lock = RunLock(out / paths.LOCK) if (out / paths.LOCK).exists() else None
    try:
        if mode is OpenMode.FRESH or holding is not Holding.RUN or not (out / paths.DATABASE).exists():
            yield None
            return
        try:
            run = RunDatabase(out / paths.DATABASE, discard=True)
        except DamagedRunError:  # which opening it repairs
            yield None
            return
        with closing(run):
            summary = run.summary()
            before = {name: summary.identity.get(name) for name in identity} if summary else {}
            differences = list(_differences(before, identity)) if summary else []
            if differences and not (mode is OpenMode.AUTO and run.is_fruitless()):
                raise _different(out, differences)
            yield run if summary and not differences else None
    finally:
        if lock is not None:
            lock.release()


def open_database(
    out: Path, *, identity: Mapping[str, Any], settings: Mapping[str, Any], mode: OpenMode
) -> tuple[RunDatabase, RunSummary, bool]:
    """Open the database of a directory that this process has locked: of the run that is there, or of a new one.

    Args:
        out: The directory.
        identity: The settings that decide about results.
        settings: Plain JSON values that describe the run.
        mode: What to do with what the directory holds.

    Returns:
        The database, the counts of the run so far, and whether the last process that worked on it was cut off.

    Raises:
        DifferentRunError: It holds a run with other settings.
        DamagedRunError: The database is damaged or missing, and ``run.json``, too.
        OutputError: As :func:`refuse` says, or the directory cannot be written; NoSpaceError when the disk is full.
    """
    holding = refuse(out, mode)
    run = summary = None
    if holding is Holding.RUN and mode is not OpenMode.FRESH:
        try:
            run, summary = _resume(out, identity, mode)
        except DamagedRunError:
            if mode is OpenMode.RESUME or holds_pages(out):  # else nobody would miss anything
                rebuild_database(out)
                run, summary = _resume(out, identity, mode)
    cut_off = summary is not None and summary.finished is None
    if run is None or summary is None:
        if holding is not Holding.NOTHING:
            discard(out)
        summary = RunSummary(started=datetime.now(UTC), identity=dict(identity))
        run = RunDatabase(out / paths.DATABASE)
    try:
        if not run.database.query("SELECT 1 FROM run"):
            run.begin(summary)
        run.start_session(settings)
    except BaseException:
        run.close()
        raise
    summary.settings, summary.finished, summary.interrupted = dict(settings), None, False
    summary.version = __version__
    return run, summary, cut_off


def _resume(
    out: Path, identity: Mapping[str, Any], mode: OpenMode
) -> tuple[RunDatabase, RunSummary] | tuple[None, None]:
    """Open a run that is there; None when it is as good as none."""
    if not (out / paths.DATABASE).exists():
        raise DamagedRunError(f"{out} has lost its database")
    run = RunDatabase(out / paths.DATABASE)
    try:
        summary = run.summary()
        if summary is None and (size_of(out / paths.RESULTS) or size_of(out / paths.RUN_JSON)):
            raise DamagedRunError(f"{out / paths.DATABASE} is empty")
        if summary is None and mode is OpenMode.RESUME:
            raise OutputError(f"{out} holds no run to resume", remedy=_START)
        differences = list(_differences(summary.identity, identity)) if summary else []
        if summary is None or (differences and mode is OpenMode.AUTO and run.is_fruitless()):
            run.close()
            return None, None
        if differences:
            raise _different(out, differences)
    except BaseException:
        run.close()
        raise
    return run, summary


def discard(out: Path) -> None:
    """Delete what a run wrote, and nothing else: its fixed files, and the crops and documents that it names.

    A process that dies in between leaves a marker; whoever opens the directory next continues. Only the lock stays.

    Raises:
        LockedError: ``pagemill export OUT`` writes derived files, and does not end.
        OutputError: Something cannot be deleted.
    """
    marker = out / paths.DISCARDING
    derived = RunLock(out / paths.DERIVED_LOCK, wait_s=DERIVED_WAIT_S, wait_for_living=True)
    with closing(derived), output_errors(out):
        marker.touch()
        sync_directory(marker.parent)
        for name in _named(out):
            try:
                paths.own_file(out, name).unlink(missing_ok=True)
            except ValueError:
                continue  # somebody edited the record: not ours to delete
        # The names go last: a process that dies before still finds the files that they name.
        for name in (*_DATABASE_FILES[::-1], *_EARLIER_FILES, paths.RUN_JSON, paths.REPORT, paths.TEXTS, paths.RESULTS):
            (out / name).unlink(missing_ok=True)
            (out / f"{name}{paths.TEMPORARY_SUFFIX}").unlink(missing_ok=True)
        for folder in (out / paths.CROPS, out / paths.DOCUMENTS):
            clear_folder(folder)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        sync_directory(out)
        marker.unlink()


def _named(out: Path) -> Iterator[str]:
    """Files that a run names."""
    try:
        yield from _named_in_database(out)
    except (DamagedRunError, OutputError):  # missing, damaged somewhere, or of another format
        yield from _named_in_records(out)


def _named_in_database(out: Path) -> Iterator[str]:
    """Files that the database names, among them crops that a page in flight may have written."""
    with closing(Snapshots(out / paths.DATABASE)) as view:
        in_flight = view.all("SELECT page_id FROM pages WHERE state = ?", (PageState.RUNNING,))
        yield from crops_of(out, {file_stem(page_id) for (page_id,) in in_flight})
        yield from (path for (path,) in view.each("SELECT path FROM crops UNION ALL SELECT path FROM garbage"))
        for (doc_id,) in view.each("SELECT doc_id FROM documents"):
            yield from paths.document_names(doc_id)


def _named_in_records(out: Path) -> Iterator[str]:
    """Files that the lines of ``ocr_results.jsonl`` name."""
    path = out / paths.RESULTS
    if not path.exists():
        return
    with path.open("rb") as lines:
        for line in lines:
            try:
                page = decode_page(line)
            except msgspec.DecodeError:
                continue  # a line cut short by a kill names nothing
            yield from (crop.path for crop in page.image_crops)
            yield from paths.document_names(page.doc_id)


def crops_of(out: Path, stems: set[str]) -> Iterator[str]:
    """Crops of pages, whether or not a record names them, by the stems of the pages' file names."""
    folder = out / paths.CROPS
    if not stems or not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if paths.stem_of_crop(entry.name) in stems:
                yield f"{paths.CROPS}/{entry.name}"


def clear_folder(folder: Path) -> None:
    """Delete files in a folder that were being written when a process died."""
    if folder.is_dir():
        for leftover in folder.glob(f"*{paths.TEMPORARY_SUFFIX}"):
            leftover.unlink(missing_ok=True)


def _earlier_version(out: Path) -> OutputError:
    return OutputError(
        f"{out} holds a run of an earlier version of pagemill, which this version cannot read",
        remedy="Replace it with --fresh or choose another directory.",
    )


def _foreign(out: Path, name: str) -> OutputError:
    return OutputError(
        f"{out} holds {name}, which pagemill did not write and would overwrite",
        remedy="Choose another directory with -o.",
    )


def _refuse_foreign_results(out: Path) -> None:
    """Refuse files in the folders of crops and documents that are named like ours, where no run has been."""
    for folder, suffixes in ((paths.DOCUMENTS, {".md", ".json"}), (paths.CROPS, {".jpg"})):
        for file in (out / folder).iterdir() if (out / folder).is_dir() else ():
            if file.suffix in suffixes:
                raise OutputError(
                    f"{out} holds {folder}/{file.name} but no run, which might overwrite it",
                    remedy="Choose another directory with -o.",
                )


def _marker(out: Path) -> _Marker | None:
    try:
        marker = msgspec.json.decode((out / paths.RUN_JSON).read_bytes(), type=_Marker)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return marker if marker.generator == GENERATOR else None


def _begins_with_a_record(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            decode_page(stream.readline(_MAX_LINE_BYTES))
    except (FileNotFoundError, msgspec.DecodeError):
        return False
    return True


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """What differs, setting by setting."""
    new = msgspec.to_builtins(new)  # as it comes back from JSON: tuples are lists
    for name in sorted(old.keys() | new.keys()):
        before, now = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(now, dict):
            yield from _differences(before, now, f"{prefix}{name}.")
        elif before != now:
            yield f"{prefix}{name} was {_shown(name, before)} and is {_shown(name, now)}"


def _different(out: Path, differences: list[str]) -> DifferentRunError:
    return DifferentRunError(
        f"{out} holds a run with other settings: {'; '.join(differences)}",
        remedy="Use the settings of that run, choose another directory with -o, or start over with --fresh.",
    )


def _shown(name: str, value: Any) -> str:
    """A setting as people know it from the command line."""
    if value is None:
        return "auto" if name == "languages" else "the default"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        text = ", ".join(value)
    else:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = _DIGEST.sub(lambda digest: digest[0][:_DIGITS], text)
    return text if len(text) <= _MAX_SETTING else f"{text[:_MAX_SETTING]}..."
