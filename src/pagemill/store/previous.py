"""What an earlier run left in a directory: recognise it, refuse it, or delete exactly it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from pagemill.document.names import file_stem
from pagemill.document.page import PageResult
from pagemill.errors import OutputError
from pagemill.store.files import TEMPORARY_SUFFIX, output_errors
from pagemill.store.records import decode_page
from pagemill.store.summary import GENERATOR

if TYPE_CHECKING:
    from pathlib import Path

_FILES = ("ocr_results.jsonl", "parsed_texts.jsonl", "report.html", ".previews")  # beside run.json, which goes last
_CROP_PATH = re.compile(r"crops/[^/\\\0]+")


class _Marker(msgspec.Struct):
    """What must be known of an earlier run's ``run.json``."""

    generator: str
    finished: str | None = None
    pages: int = 0
    failed: int = 0

    @property
    def fruitless(self) -> bool:
        """It ended without a single good page: a misspelt name, say, and nothing that anybody would miss."""
        return self.finished is not None and self.failed == self.pages


def crop_file(out: Path, name: str) -> Path:
    """Where a crop lies.

    Raises:
        ValueError: The name points anywhere but directly into ``crops/``.
    """
    base = name.removeprefix("crops/")
    if not _CROP_PATH.fullmatch(name) or base in {".", ".."}:
        raise ValueError(f"no path of a crop: {name!r}")
    return out / "crops" / base


def refuse_or_clear(path: Path, *, fresh: bool) -> None:
    """Make sure that no earlier run is in the way.

    Args:
        path: An existing directory.
        fresh: Delete the earlier run: its fixed files, and the crops and documents that its records name. One that
            ended without a single good page is deleted in any case.

    Raises:
        OutputError: There is a run and ``fresh`` is off, or there are files by our names that are not from pagemill.
    """
    with output_errors(path):
        present = [name for name in ("run.json", *_FILES) if (path / name).exists()]
        if not present:
            return
        run = _run_in(path)
        if run is None:
            raise OutputError(
                f"{path} holds {present[0]}, which pagemill did not write and would overwrite",
                remedy="Choose another directory with -o.",
            )
        if not (fresh or run.fruitless):
            raise OutputError(
                f"{path} already holds the output of a run",
                remedy="Choose another directory with -o, or replace the earlier output with --fresh.",
            )
        _clear(path)


def _run_in(path: Path) -> _Marker | None:
    try:
        marker = msgspec.json.decode((path / "run.json").read_bytes(), type=_Marker)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return marker if marker.generator == GENERATOR else None


def _clear(path: Path) -> None:
    results = path / "ocr_results.jsonl"
    if results.exists():
        with results.open("rb") as lines:
            for line in lines:
                try:
                    page = decode_page(line)
                except msgspec.DecodeError:
                    continue  # a line cut short by a kill names nothing
                _clear_page(path, page)
    for folder in (path / "crops", path / "documents"):
        if folder.is_dir():
            for leftover in folder.glob(f"*{TEMPORARY_SUFFIX}"):
                leftover.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
    for name in (*_FILES, "run.json"):
        (path / name).unlink(missing_ok=True)
        (path / f"{name}{TEMPORARY_SUFFIX}").unlink(missing_ok=True)


def _clear_page(path: Path, page: PageResult) -> None:
    for crop in page.image_crops:
        try:
            crop_file(path, crop.path).unlink(missing_ok=True)
        except ValueError:
            continue  # somebody edited the record: not ours to delete
    for suffix in (".md", ".json"):
        (path / "documents" / f"{file_stem(page.doc_id)}{suffix}").unlink(missing_ok=True)
