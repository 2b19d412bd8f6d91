"""What an output directory holds before a run starts in it: recognise it, refuse it, or delete exactly it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from pagemill.errors import OutputError
from pagemill.store import paths
from pagemill.store.files import output_errors
from pagemill.store.records import decode_page
from pagemill.store.summary import GENERATOR

if TYPE_CHECKING:
    from pathlib import Path

    from pagemill.document.page import PageResult

_FILES = (paths.RESULTS, paths.TEXTS, paths.REPORT)  # beside run.json
_OLD_PREVIEWS = ".previews"  # of versions that had no ledger
_OWN = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "previews")  # in .pagemill/, beside the lock

_MAX_LINE_BYTES = 64 * 2**20


class Holding(Enum):
    """What an output directory holds."""

    NOTHING = "nothing"
    RUN = "run"
    EARLIER_VERSION = "earlier version"
    """A run of a version that kept no ledger."""
    RECORDS = "records"
    """Records without the ledger and the ``run.json`` of their run."""


class _Marker(msgspec.Struct):
    """What must be known of a ``run.json``, of any version."""

    generator: str
    finished: str | None = None
    pages: int = 0
    failed: int = 0
    identity: dict[str, Any] = {}


def examine(out: Path) -> Holding:
    """Find out what a directory holds; it need not be there.

    Raises:
        OutputError: It holds files by our names that do not show that they are from pagemill, or cannot be read.
    """
    with output_errors(out):
        folder = out / paths.FOLDER
        if folder.exists() and not folder.is_dir():
            raise _foreign(out, paths.FOLDER)
        if (out / paths.LEDGER).exists():
            return Holding.RUN
        present = [name for name in (paths.RUN_JSON, *_FILES) if (out / name).exists()]
        if not present:
            if not (out / paths.LOCK).exists():  # else a run was here, and what it left in the folders stays
                _refuse_foreign_results(out)
            return Holding.NOTHING
        marker = _marker(out)
        if marker is not None:
            return Holding.RUN if marker.identity else Holding.EARLIER_VERSION
        if (out / paths.LOCK).exists():
            return Holding.RUN  # one that has lost its ledger and its run.json
        if not (out / paths.RUN_JSON).exists() and _begins_with_a_record(out / paths.RESULTS):
            return Holding.RECORDS
        raise _foreign(out, present[0])


def refuse_earlier_version(out: Path) -> None:
    """Say so where a directory holds the run of a version that kept no ledger.

    Raises:
        OutputError: It does, or cannot be read.
    """
    with output_errors(out):
        if (out / paths.LEDGER).exists():
            return
        marker = _marker(out)
    if marker is not None and not marker.identity:
        raise OutputError(
            f"{out} holds a run of an earlier version of pagemill, which kept no ledger",
            remedy="Replace it with --fresh or choose another directory.",
        )


def is_fruitless(out: Path) -> bool:
    """Whether an earlier version's run ended without a single good page: nothing that anybody would miss."""
    marker = _marker(out)
    return marker is not None and marker.finished is not None and marker.failed == marker.pages


def clear(out: Path) -> None:
    """Delete what a run wrote, and nothing else: its fixed files, and the crops and documents that records name.

    Only the lock stays. A directory in which this was cut off can neither be resumed nor is it taken for a new one.

    Raises:
        OutputError: Something cannot be deleted.
    """
    with output_errors(out):
        (out / paths.RUN_JSON).unlink(missing_ok=True)  # the first to go, so that nobody resumes what is left
        for name in _OWN:
            _delete(out / paths.FOLDER / name)
        results = out / paths.RESULTS
        if results.exists():
            with results.open("rb") as lines:
                for line in lines:
                    try:
                        page = decode_page(line)
                    except msgspec.DecodeError:
                        continue  # a line cut short by a kill names nothing
                    _clear_page(out, page)
        for folder in (out / paths.CROPS, out / paths.DOCUMENTS):
            if folder.is_dir():
                for leftover in folder.glob(f"*{paths.TEMPORARY_SUFFIX}"):
                    leftover.unlink(missing_ok=True)
                if not any(folder.iterdir()):
                    folder.rmdir()
        for name in (_OLD_PREVIEWS, paths.RUN_JSON, paths.REPORT, paths.TEXTS, paths.RESULTS):
            _delete(out / name)


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


def _delete(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(path.name + paths.TEMPORARY_SUFFIX).unlink(missing_ok=True)


def _clear_page(out: Path, page: PageResult) -> None:
    for crop in page.image_crops:
        try:
            paths.crop_file(out, crop.path).unlink(missing_ok=True)
        except ValueError:
            continue  # somebody edited the record: not ours to delete
    for path in paths.document_files(out, page.doc_id):
        path.unlink(missing_ok=True)
