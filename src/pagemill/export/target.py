"""Where an export goes: a file or folder that appears whole, under its name, when it is complete."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from pagemill.errors import OutputError, unwritable
from pagemill.whole_files import TEMPORARY_SUFFIX

MANIFEST = "export.json"
"""In every exported folder: what it is made of, and the names of its files."""


@contextlib.contextmanager
def whole_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Write a file under a temporary name; it gets its own when the block ends well, and goes when it does not.

    Raises:
        OutputError: The file exists and ``overwrite`` is off, or it cannot be written; NoSpaceError when the disk is
            full.
    """
    with _output_errors(path):
        if path.is_dir():
            raise OutputError(f"{path} is a directory, and this format is one file", remedy="Pass a file with -o.")
        if path.exists() and not path.is_file():
            raise OutputError(f"{path} is not a regular file", remedy="Pass a file with -o, or - for standard output.")
        if path.exists() and not overwrite:
            raise OutputError(
                f"{path} exists already", remedy="Choose another file with -o, or replace it with --overwrite."
            )
        with _temporary(path) as temporary:
            with temporary.open("wb") as stream:
                yield stream
            temporary.replace(path)


@contextlib.contextmanager
def whole_folder(path: Path, *, overwrite: bool = False, manifest: dict[str, Any]) -> Iterator[Path]:
    """Fill a folder under a temporary name; it gets its own when the block ends well, and goes when it does not.

    Args:
        path: The folder; one that exists must be empty, or an earlier export with nothing added to it.
        overwrite: Replace an earlier export.
        manifest: Content of ``export.json``, read when the block has finished; the names of all files are added.

    Raises:
        OutputError: The folder exists and must not be replaced, or cannot be written; NoSpaceError when the disk is
            full.
    """
    with _output_errors(path):
        _refuse(path, overwrite=overwrite)
        with replaced_folder(path) as temporary:
            yield temporary
            content = {**manifest, "files": sorted(_files(temporary))}
            (temporary / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


@contextlib.contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """Fill a folder under a temporary name; it takes the place of an earlier one when the block ends well.

    Raises:
        OSError: It cannot be written.
    """
    with _temporary(path) as temporary:
        temporary.mkdir()
        yield temporary
        # Renamed rather than deleted first: a folder is there at any time, but for the moment between two renames.
        replaced = path.with_name(f"{temporary.name}-replaced")
        if path.exists():
            path.rename(replaced)
        temporary.rename(path)
        _remove(replaced)


def _refuse(path: Path, *, overwrite: bool) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise OutputError(f"{path} is a file, and this format is a folder", remedy="Pass a folder with -o.")
    # The shell would be left in a folder that is deleted.
    if Path.cwd().is_relative_to(path.resolve()):
        raise OutputError(f"{path} is in use as the current directory", remedy="Name a folder in it with -o.")
    present = set(_files(path))
    if not present:
        return
    if not overwrite:
        raise OutputError(
            f"{path} exists already",
            remedy="Choose another folder with -o, or replace an earlier export with --overwrite.",
        )
    # --overwrite replaces an export, and must not delete what somebody else has put there.
    foreign = sorted(present - _exported(path))
    if foreign:
        raise OutputError(
            f"{path} contains {foreign[0]}, which no export wrote and --overwrite would delete",
            remedy="Choose another folder with -o, or move the file away.",
        )


def _exported(folder: Path) -> set[str]:
    """Names of the files that an earlier export wrote into a folder; none where it is not an export."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
    except (FileNotFoundError, msgspec.DecodeError):
        return set()
    return {*manifest.files, MANIFEST} if manifest.generator == "pagemill" else set()


class _Manifest(msgspec.Struct):
    generator: str
    files: list[str]


def _files(folder: Path) -> Iterator[str]:
    """All files and links below a folder, relative to it, with forward slashes."""
    places = (place for place in folder.rglob("*") if place.is_symlink() or not place.is_dir())
    return (place.relative_to(folder).as_posix() for place in places)


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A name beside the target, of which nothing is left in the end; nor of exports to it that were killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f"{glob.escape(path.name)}.*{TEMPORARY_SUFFIX}*"):
        owner = left.name.removeprefix(f"{path.name}.").partition(".")[0]
        # Same pid means a recycled pid, as in containers: we have not started yet.
        if owner.isdecimal() and (int(owner) == os.getpid() or not _is_alive(int(owner))):
            _remove(left)
    # The process id keeps two exports apart that write to one place at once.
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        yield temporary
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def _output_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(
            path,
            error,
            remedy="Choose a path with write permission with -o.",
            no_space_remedy="Free some space, or export to another place with -o.",
        ) from error
