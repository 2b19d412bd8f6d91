"""From what the user names to single files: folders, globs and URLs expanded, lazily and in natural order."""

from __future__ import annotations

import functools
import glob
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.errors import MissingInputError, PagemillError, UnreadableInputError, UnsupportedInputError
from pagemill.imaging.formats import HEAD_BYTES, SUFFIXES, sniff
from pagemill.sources.items import Item, SkippedFiles, base_name, is_url, natural_key
from pagemill.sources.remote import expand_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_READABLE = "PDF, PNG, JPEG, WebP, BMP, TIFF, Arrow, Parquet"
_RUN = ".pagemill"
"""A folder that holds a folder of this name is the output of a run."""
_CROPS = "crops"
"""Where a run keeps images, which are no input."""
_OUTPUT_SUFFIXES = frozenset({".csv", ".html", ".json", ".jsonl", ".md", ".pagemill-tmp"})
"""Of files that a run writes; in a run directory that is the input, too, they are not worth a word."""


def expand(
    inputs: Iterable[str | Path | bytes], *, recursive: bool, skipped: SkippedFiles | None = None
) -> Iterator[Item]:
    """Yield the files of all inputs in order. An input that is not there yields an item with its error.

    Args:
        inputs: Paths, globs, URLs and contents.
        recursive: Recurse into folders.
        skipped: Counts the files of folders that are of other kinds.
    """
    skipped = skipped or SkippedFiles()
    for origin, given in enumerate(inputs):
        if isinstance(given, bytes):
            yield Item(uri="<bytes>", name="document", origin=origin, content=given)
            continue
        text = str(given)
        try:
            if isinstance(given, str) and is_url(given):
                yield from expand_url(given, origin, recursive=recursive, skipped=skipped)
            else:
                yield from _expand_path(text, origin, recursive=recursive, skipped=skipped)
        except PagemillError as error:
            yield Item(uri=text, name=base_name(text), origin=origin, error=error)
        except (OSError, ValueError) as error:  # a null byte in a name is a ValueError
            yield _unreadable(text, origin, error)


def _unreadable(text: str, origin: int, error: OSError | ValueError) -> Item:
    reason = getattr(error, "strerror", None) or str(error)
    unreadable = UnreadableInputError(f"{text!r} cannot be read: {reason}", remedy="Check its permissions and name.")
    return Item(uri=text, name=base_name(text), origin=origin, error=unreadable)


def _expand_path(text: str, origin: int, *, recursive: bool, skipped: SkippedFiles) -> Iterator[Item]:
    path = Path(text).expanduser()
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not glob.has_magic(text):
            raise MissingInputError(f"{text!r} does not exist", remedy="Check the path.") from None
        yield from _expand_glob(path, text, origin, recursive=recursive, skipped=skipped)
        return
    if stat.S_ISDIR(mode):
        yield from _expand_folder(path, text, origin, recursive=recursive, skipped=skipped)
    elif stat.S_ISREG(mode):
        yield Item(uri=text, name=path.name, origin=origin, content=path)
    else:
        raise UnsupportedInputError(f"{text!r} is neither a file nor a folder", remedy="Save it to a file first.")


def _expand_glob(pattern: Path, text: str, origin: int, *, recursive: bool, skipped: SkippedFiles) -> Iterator[Item]:
    found = glob.glob(str(pattern), recursive=True)  # noqa: PTH207 - may be absolute
    matches = sorted(_without_runs(found, pattern), key=natural_key)
    unreadable = list(_unreadable_folders(pattern, origin))
    yield from unreadable
    if not matches and not unreadable:
        raise MissingInputError(f"nothing matches {text!r}", remedy="Check the pattern, and quote it in the shell.")
    for match in matches:
        path = Path(match)
        if os.path.isdir(path):  # noqa: PTH112 - of a path that cannot be looked up, False
            if recursive:
                yield from _walk(path, origin, recursive=True, named=False, skipped=skipped)
        elif os.path.isfile(path):  # noqa: PTH113
            yield Item(uri=match, name=path.name, origin=origin, content=path)
        else:
            yield from _lost(path, match, origin)


def _unreadable_folders(pattern: Path, origin: int) -> Iterator[Item]:
    """Folders in which a pattern looks for matches and that cannot be listed: glob passes over them in silence."""
    places = set()
    for index, part in enumerate(pattern.parts):
        if glob.has_magic(part):
            folder = Path(*pattern.parts[: index + (part == "**")])
            places.update(glob.glob(os.path.join(folder, ""), recursive=True))  # noqa: PTH118, PTH207
    for place in sorted(places, key=natural_key):
        try:
            with os.scandir(place) as entries:
                next(entries, None)
        except OSError as error:
            yield _unreadable(place, origin, error)


def _lost(path: Path, uri: str, origin: int) -> Iterator[Item]:
    """The error of a name that promises a document, if there is none behind it; no item for what is no file."""
    if path.suffix.lower() not in SUFFIXES:
        return
    try:
        path.stat()
    except FileNotFoundError:
        error = MissingInputError(f"{uri!r} is a broken link", remedy="Check where it points.")
        yield Item(uri=uri, name=path.name, origin=origin, error=error)
    except OSError as error:
        yield _unreadable(uri, origin, error)


def _without_runs(matches: list[str], pattern: Path) -> Iterator[str]:
    """Matches that are in no run directory, but for one that the pattern names, as ``out/crops/*.png`` does."""
    wild = next(index for index, part in enumerate(pattern.parts) if glob.has_magic(part))
    is_run = functools.cache(_is_run)
    for match in matches:
        path = Path(match)
        *inner, named = path.parents[: len(path.parts) - wild]
        if not any(map(is_run, inner)) and not (path.parts[wild] == _CROPS and is_run(named)):
            yield match


def _is_run(folder: Path) -> bool:
    return (folder / _RUN).is_dir()


def _expand_folder(folder: Path, text: str, origin: int, *, recursive: bool, skipped: SkippedFiles) -> Iterator[Item]:
    found = False
    for item in _walk(folder, origin, recursive=recursive, named=True, skipped=skipped):
        found = True
        yield item
    if not found:
        remedy = f"pagemill reads {_READABLE}."
        raise MissingInputError(
            f"the folder {text!r} holds no document", remedy=remedy if recursive else f"{remedy} Try --recursive."
        )


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    """Whether it is a file or a link to one. What cannot be told is: reading it will say what is wrong."""
    try:
        return entry.is_file()
    except OSError:
        return True


def _begins_like_document(path: Path) -> bool:
    """Whether the content of a file is of a kind that pagemill reads, where its name does not say."""
    try:
        with path.open("rb") as file:
            return sniff(file.read(HEAD_BYTES)) is not None
    except OSError:  # it is counted as skipped
        return False


def _walk(
    folder: Path, origin: int, *, recursive: bool, named: bool, skipped: SkippedFiles, in_run: bool = False
) -> Iterator[Item]:
    """Files of a folder that are documents by suffix, or by content if they have no suffix, in natural order.

    Hidden files and linked folders are left out. Run directories are left out, too: a run that writes below its input
    would parse its own crops when it is resumed. Of one that the user has named only the crops are; ``in_run`` says
    that the folder is inside of one.
    """
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
            is_run = any(entry.name == _RUN and entry.is_dir(follow_symlinks=False) for entry in entries)
            if is_run and not named:
                return
            in_run = in_run or is_run
            visible = [
                (entry.name, entry.is_dir(follow_symlinks=False), _may_be_file(entry))
                for entry in entries
                if not entry.name.startswith(".") and not (is_run and entry.name == _CROPS)
            ]
    except OSError as error:  # of one folder: the others are read all the same
        yield _unreadable(str(folder), origin, error)
        return
    for name, is_folder, is_file in sorted(visible, key=lambda entry: natural_key(entry[0])):
        path = folder / name
        if is_folder:
            if recursive:
                yield from _walk(path, origin, recursive=True, named=False, skipped=skipped, in_run=in_run)
        elif not is_file:
            yield from _lost(path, str(path), origin)
        elif (suffix := path.suffix.lower()) in SUFFIXES or (not suffix and _begins_like_document(path)):
            yield Item(uri=str(path), name=name, origin=origin, content=path)
        elif not (in_run and suffix in _OUTPUT_SUFFIXES):
            skipped.add(name)
