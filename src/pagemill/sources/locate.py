"""Expand inputs to single files: folders, globs and URLs, lazily and in natural order."""

from __future__ import annotations

import contextlib
import functools
import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePath

import msgspec

from pagemill.errors import InputError, MissingInputError, PagemillError, UnsupportedInputError, unreadable
from pagemill.imaging.formats import HEAD_BYTES, TEXT_DOCUMENTS, FileFormat, is_document, promised, sniff
from pagemill.sources.contained import container_of, unpacked
from pagemill.sources.download import DatasetCopy, not_here
from pagemill.sources.hub import DatasetAddress
from pagemill.sources.items import Item, SkippedFiles, base_name, is_url, natural_key
from pagemill.sources.remote import expand_url

_READABLE = "PDF, PNG, JPEG, WebP, BMP, TIFF, Office, HWP, HTML, Markdown, CSV, text, mail, ZIP, Arrow, Parquet"
_RUN = ".pagemill"
"""A folder that contains a folder of this name is the output of a run."""
_CARD = "README.md"
_CROPS = "crops"
"""Where a run stores images, which are not input."""
_WRITTEN = (_CROPS, "documents")


def absolute(place: str | Path) -> Path:
    """An absolute path, without dots; links stay."""
    return Path(os.path.abspath(Path(place).expanduser()))  # noqa: PTH100 - keeps links


def folder_of(place: str | Path) -> Path:
    """The folder itself, or that of a file; of a pattern the deepest folder without wild cards."""
    path = absolute(place)
    while glob.has_magic(str(path)) and not path.exists():
        path = path.parent
    return path if path.is_dir() else path.parent


def expand(
    inputs: Iterable[str | Path | bytes],
    *,
    recursive: bool,
    skipped: SkippedFiles | None = None,
    download: Path | None = None,
) -> Iterator[Item]:
    """Yield the files of all inputs in order. A missing input yields an item with its error.

    Args:
        inputs: Paths, globs, URLs and contents.
        recursive: Recurse into folders.
        skipped: Collects what is skipped in folders.
        download: Folder with local copies of datasets on the Hub, which are read instead.
    """
    skipped = skipped or SkippedFiles()
    for item in _files(inputs, recursive, skipped, download):
        # What is inside of another file has been unpacked already.
        yield from (item,) if item.inside else unpacked(item, skipped)


def _files(
    inputs: Iterable[str | Path | bytes], recursive: bool, skipped: SkippedFiles, download: Path | None
) -> Iterator[Item]:
    for origin, given in enumerate(inputs):
        if isinstance(given, bytes):
            yield Item(uri="<bytes>", name="document", origin=origin, content=given)
            continue
        text = str(given)
        try:
            address = DatasetAddress.parse(text) if download is not None else None
            if address is not None and download is not None:
                yield from _of_copy(DatasetCopy(address, download), origin)
            elif isinstance(given, str) and is_url(given):
                yield from expand_url(given, origin, recursive=recursive, skipped=skipped)
            else:
                yield from _Search(origin, recursive, skipped, os.path.expanduser(text)).path(text)  # noqa: PTH111 - never raises
        except PagemillError as error:
            yield Item(uri=text, name=base_name(text), origin=origin, error=error)
        except (OSError, ValueError) as error:  # a null byte in a name is a ValueError
            problem = InputError(f"{text!r} cannot be read: {error}", remedy="Check the name and its permissions.")
            yield Item(uri=text, name=base_name(text), origin=origin, error=problem)


def _of_copy(copy: DatasetCopy, origin: int) -> Iterator[Item]:
    """The files of the copy of a dataset."""
    files = copy.files()
    if files is None:
        raise not_here(copy)
    for path in files:
        yield Item(uri=str(path), name=path.name, origin=origin, content=path, root=str(copy.folder))


def missing_inputs(inputs: Iterable[str | Path | bytes]) -> dict[str, MissingInputError]:
    """Local inputs without a file, with the error of each: paths that do not exist, patterns without a match."""
    missing = {}
    for given in inputs:
        text = "" if isinstance(given, bytes) else str(given)
        # URLs are looked at when their turn comes; those of the Hub by missing_on_hub.
        if not text or is_url(text) or os.path.isdir(os.path.expanduser(text)):  # noqa: PTH111, PTH112 - never raise
            continue
        first = next(expand([given], recursive=False), None)
        if first and first.uri == text and isinstance(first.error, MissingInputError):
            missing[text] = first.error
    return missing


def missing_on_hub(inputs: Iterable[str | Path | bytes]) -> dict[str, PagemillError]:
    """Inputs on the Hub whose dataset, configuration or split does not exist, with the error of each.

    If the Hub does not answer, none is reported.
    """
    missing: dict[str, PagemillError] = {}
    for given in inputs:
        if isinstance(given, str) and given.startswith("hf://"):
            first = next(expand([given], recursive=False), None)
            if first and first.uri == given and isinstance(first.error, (MissingInputError, UnsupportedInputError)):
                missing[given] = first.error
    return missing


_LOOK = "Check the name, or give the file alone to read everything in it."


def _is_meant(item: Item, text: str, container: Item) -> bool:
    """Whether an address means an item, or the file that it begins with cannot be opened."""
    return item.uri == text or (item.error is not None and item.uri == container.uri)


class _Search(msgspec.Struct, frozen=True):
    """Looks for the files of one input."""

    origin: int
    recursive: bool
    skipped: SkippedFiles
    root: str
    """The input."""

    def path(self, text: str) -> Iterator[Item]:
        """The files of a path or glob."""
        path = Path(os.path.expanduser(text))  # noqa: PTH111 - the method raises for an unknown user
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if (container := container_of(text, self.origin)) is not None:
                inside = [each for each in unpacked(container, self.skipped) if _is_meant(each, text, container)]
                if not inside:
                    name = text[len(container.uri) + 1 :]
                    raise MissingInputError(f"{container.uri!r} does not contain {name!r}", remedy=_LOOK) from None
                yield from inside
                return
            if not glob.has_magic(text):
                raise MissingInputError(f"{text!r} does not exist", remedy="Check the path.") from None
            yield from self._glob(path, text)
            return
        if stat.S_ISDIR(mode):
            yield from self._folder(path, text)
        elif stat.S_ISREG(mode):
            yield Item(uri=text, name=path.name, origin=self.origin, content=path)
        else:
            raise UnsupportedInputError(f"{text!r} is neither a file nor a folder", remedy="Save it to a file first.")

    def _file(self, path: Path, uri: str) -> Item:
        return Item(uri=uri, name=path.name, origin=self.origin, content=path, root=self.root)

    def _broken(self, uri: str, error: PagemillError) -> Item:
        return Item(uri=uri, name=base_name(uri), origin=self.origin, error=error)

    def _glob(self, pattern: Path, text: str) -> Iterator[Item]:
        patterns = list(self._plain(pattern))
        found = {match for plain in patterns for match in glob.glob(str(plain))}  # noqa: PTH207 - may be absolute
        matches = sorted(_without_runs(found, pattern), key=natural_key)
        broken = [self._broken(place, error) for place, error in _unreadable_folders(patterns)]
        yield from broken
        if not matches and not broken:
            raise MissingInputError(f"nothing matches {text!r}", remedy="Check the pattern, and quote it in the shell.")
        given: set[str] = set()
        # Natural order puts a folder before its files, which the pattern may match as well: each is yielded once.
        for match in matches:
            for item in self._match(Path(match), by_name=not glob.has_magic(pattern.name)):
                if item.uri not in given:
                    given.add(item.uri)
                    yield item

    def _match(self, path: Path, *, by_name: bool) -> Iterator[Item]:
        """What a pattern matches: a file, or with ``recursive`` the files of a folder."""
        if os.path.isdir(path):  # noqa: PTH112 - of a path that cannot be looked up, False
            if self.recursive and (by_name or not path.is_symlink()):
                yield from self._walk(path)
            elif self.recursive:
                self._skip_link(path)
        elif os.path.isfile(path):  # noqa: PTH113
            yield self._file(path, str(path))
        else:
            yield from self._lost(path)

    def _plain(self, pattern: Path) -> Iterator[Path]:
        """A pattern without ``**``: one for each folder that it stands for.

        :func:`glob.glob` would follow linked folders: one that leads back multiplies all files.
        """
        if "**" not in pattern.parts:
            yield pattern
            return
        place = pattern.parts.index("**")
        after = pattern.parts[place + 1 :] or ("*",)
        for top in glob.glob(os.path.join(Path(*pattern.parts[:place]), "")):  # noqa: PTH118, PTH207 - folders alone
            for folder in self._folders(Path(top)):
                yield from self._plain(Path(glob.escape(str(folder)), *after))

    def _folders(self, top: Path) -> Iterator[Path]:
        """A folder and those below it, without hidden and linked ones."""
        yield top
        with contextlib.suppress(OSError), os.scandir(top) as entries:  # _unreadable_folders names it
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    yield from self._folders(top / entry.name)
                elif os.path.isdir(entry.path):  # noqa: PTH112
                    self._skip_link(top / entry.name)

    def _skip_link(self, path: Path) -> None:
        if str(path) not in self.skipped.linked_folders:
            self.skipped.linked_folders.append(str(path))

    def _lost(self, path: Path) -> Iterator[Item]:
        """The error for a path with the suffix of a document that cannot be opened; nothing for other paths."""
        if promised(path) is None:
            return
        uri = str(path)
        try:
            path.stat()
        except FileNotFoundError:
            yield self._broken(uri, MissingInputError(f"{uri!r} is a broken link", remedy="Check where it points."))
        except OSError as error:
            yield self._broken(uri, unreadable(repr(uri), error))

    def _folder(self, folder: Path, text: str) -> Iterator[Item]:
        found = False
        for item in self._walk(folder, named=True):
            found = True
            yield item
        if not found:
            remedy = f"pagemill reads {_READABLE}." + ("" if self.recursive else " Try --recursive.")
            raise MissingInputError(f"the folder {text!r} contains no document", remedy=remedy)

    def _walk(self, folder: Path, *, named: bool = False) -> Iterator[Item]:
        """Files of a folder that are documents by suffix, or by content if they have no suffix, in natural order.

        Skips hidden files, text about other files of its folder, and linked folders, as a link may lead back to its own
        folder. Skips run directories, too: a run that writes below its input would otherwise parse its own crops when
        it is resumed. In a run directory that the user names, only crops and documents are skipped.
        """
        try:
            with os.scandir(folder) as scanned:
                entries = sorted(scanned, key=lambda entry: natural_key(entry.name))
                folders = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
        except OSError as error:  # an error of this folder alone: the others are read
            yield self._broken(str(folder), unreadable(repr(str(folder)), error))
            return
        is_run = _RUN in folders
        # Found on the way, not named by the user: its crops would be parsed as if they were documents.
        if is_run and not named:
            return
        is_about = _texts_about_others((entry.name for entry in entries), in_run=is_run)
        for entry in entries:
            name, path = entry.name, folder / entry.name
            if name.startswith(".") or (is_run and name in _WRITTEN):
                continue
            if name in folders:
                if self.recursive:
                    yield from self._walk(path)
            elif not (entry.is_file(follow_symlinks=False) or os.path.isfile(path)):  # noqa: PTH113
                if self.recursive and os.path.isdir(path):  # noqa: PTH112
                    self._skip_link(path)
                yield from self._lost(path)
            elif promised(path) is not None and not is_about(name):
                yield self._file(path, str(path))
            # The end of the name is not the suffix of any format: the first bytes decide.
            elif not _names_a_kind(path.suffix):
                yield from self._by_content(path)
            else:
                self.skipped.add(name)

    def _by_content(self, path: Path) -> Iterator[Item]:
        """A file without a suffix, if its content starts like a document; an error if it cannot be read."""
        try:
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
                is_one = sniff(head) is not None or is_document(head, path.name)
        except OSError as error:
            yield self._broken(str(path), unreadable(repr(str(path)), error))
            return
        if is_one:
            yield self._file(path, str(path))
        else:
            self.skipped.add(path.name)


def _is_text(name: str) -> bool:
    return PurePath(name).suffix.lower() in TEXT_DOCUMENTS


def _texts_about_others(names: Iterable[str], *, in_run: bool) -> Callable[[str], bool]:
    """A predicate for files of a folder that are text about other files there, or written by a run.

    These are dataset cards, text beside page images or shards, and text with the stem of another document.
    """
    kinds = {PurePath(name): promised(name) for name in names}
    stems = {path.stem for path, kind in kinds.items() if kind is not None and not _is_text(path.name)}
    beside = any(kind is not None and (kind.is_image or kind.is_table) for kind in kinds.values())

    def is_about(name: str) -> bool:
        if in_run and promised(name) is FileFormat.DOCUMENT:
            return True
        return _is_text(name) and (beside or name == _CARD or PurePath(name).stem in stems)

    return is_about


def _names_a_kind(suffix: str) -> bool:
    """Whether a suffix names a format, unlike the ends of ``scan.001`` and ``Contract v1.2 final``."""
    return any(map(str.isalpha, suffix)) and not any(map(str.isspace, suffix))


def _unreadable_folders(patterns: Iterable[Path]) -> Iterator[tuple[str, PagemillError]]:
    """Folders of patterns that cannot be listed, which glob skips silently."""
    places = set()
    for pattern in patterns:
        for index, part in enumerate(pattern.parts):
            if glob.has_magic(part):
                places.update(glob.glob(os.path.join(Path(*pattern.parts[:index]), "")))  # noqa: PTH118, PTH207
    for place in sorted(places, key=natural_key):
        try:
            with os.scandir(place) as entries:
                next(entries, None)
        except OSError as error:
            yield place, unreadable(repr(place), error)


def _without_runs(matches: Iterable[str], pattern: Path) -> Iterator[str]:
    """Matches outside run directories, except in one that the pattern names, as in ``out/crops/*.png``."""
    wild = next(index for index, part in enumerate(pattern.parts) if glob.has_magic(part))
    is_run = functools.cache(lambda folder: (folder / _RUN).is_dir())
    for match in matches:
        path = Path(match)
        *inner, named = path.parents[: len(path.parts) - wild]
        if not any(map(is_run, inner)) and not (path.parts[wild] in _WRITTEN and is_run(named)):
            yield match
