"""Local copies of datasets on the Hub: fetched once, verified, and then read without the network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from pagemill.config.model_files import hub_errors, require_space
from pagemill.document.names import safe_name
from pagemill.errors import CorruptInputError, MissingInputError, NetworkError, UsageError
from pagemill.sources.hub import CARD, MAX_CARD, DatasetAddress, is_document
from pagemill.sources.items import natural_key
from pagemill.sources.options import SourceOptions
from pagemill.whole_files import whole_file

MANIFEST = ".pagemill-download.json"
"""Manifest in the folder of a copy. Written last: a copy without it is incomplete.

The Hub's client keeps a commit and a digest beside each file that it has fetched, but not the names of all files, from
which a configuration is chosen offline; and it compares sizes alone, where :func:`_verify` compares digests."""

_MAX_MANIFEST = 64 * 2**20
_SMALL = 10**8
_LEVELS = 4


class _Manifest(msgspec.Struct, kw_only=True):
    """The content of a copy."""

    dataset: str
    revision: str | None
    """Revision, as given by the user."""
    commit: str
    names: list[str]
    """All files of the dataset, among which configurations select."""
    files: dict[str, int]
    """Sizes of the files that were fetched and verified."""


@dataclass(slots=True)
class DatasetCopy:
    """The copy of a dataset, which may not exist yet.

    Args:
        address: The dataset, or a part of it.
        folder: Folder of all copies, with one folder per owner.
    """

    address: DatasetAddress
    folder: Path
    _manifest: _Manifest | None = field(init=False)

    def __post_init__(self) -> None:
        owner, name = self.address.name.split("/")
        # The name becomes a path: `..` and separators would lead out of the folder.
        if safe_name(owner) != owner or safe_name(name) != name:
            raise UsageError(f"{self.address.name!r} is not a dataset", remedy="Name it OWNER/NAME.")
        self.folder = self.folder.expanduser() / owner / name
        self._manifest = _read(self.folder)

    def files(self) -> list[Path] | None:
        """The files that the address names; None if they are not all here.

        Raises:
            MissingInputError: The dataset has no such configuration, split or folder.
        """
        manifest = self._manifest
        if manifest is None or (manifest.dataset, manifest.revision) != (self.address.name, self.address.revision):
            return None
        try:
            with (self.folder / CARD).open("rb") as file:
                card = file.read(MAX_CARD)
        except FileNotFoundError:
            card = b""
        wanted = [name for name in self.address.selected(manifest.names, card) if is_document(name)]
        return [self.folder / name for name in wanted] if all(map(self._is_here, wanted)) else None

    def fetch(self, note: Callable[[str], object], *, bars: bool = False) -> None:
        """Fetch and verify missing files. To resume, call it again.

        Args:
            note: Called with progress messages.
            bars: Show progress bars on standard error.

        Raises:
            MissingDependencyError: The Hub's client is not installed.
            MissingInputError: There is no such dataset, configuration or split.
            NetworkError: The download failed, or a file differs from its digest on the Hub.
            NoSpaceError: The disk has too little space.
            OutputError: The folder cannot be written.
        """
        # All names of the Hub are pinned to one commit: the branch may move while files are fetched.
        with hub_errors(self.address.name):
            from huggingface_hub import HfApi, snapshot_download
            from huggingface_hub.hf_api import RepoFile
            from huggingface_hub.utils.tqdm import disable_progress_bars

            if not bars:
                disable_progress_bars()
            hub = HfApi()
            name, revision = self.address.name, self.address.revision
            commit = str(hub.dataset_info(name, revision=revision).sha)
            tree = hub.list_repo_tree(name, repo_type="dataset", revision=commit, recursive=True)
            entries = {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
            # A repository may name files as it likes; the Hub's client writes them where they say.
            if not all(map(_is_inside, entries)):
                raise CorruptInputError(f"{name} lists files outside its folder")
            self.folder.mkdir(parents=True, exist_ok=True)
            if self._manifest is not None and self._manifest.commit != commit:
                # Before any file is replaced: an interrupted download must not look like the earlier commit.
                (self.folder / MANIFEST).unlink(missing_ok=True)
                self._manifest = None

            def fetch(names: Sequence[str]) -> None:
                patterns = [escape(name) for name in names]
                snapshot_download(
                    name, repo_type="dataset", revision=commit, local_dir=self.folder, allow_patterns=patterns
                )

            card = b""
            if CARD in entries:
                fetch([CARD])
                card = (self.folder / CARD).read_bytes()[:MAX_CARD]
            wanted = [each for each in self.address.selected(list(entries), card) if is_document(each)]
            earlier = self._manifest.files if self._manifest else {}
            known = {each: size for each, size in earlier.items() if self._is_here(each)}
            missing = [each for each in wanted if each not in known]
            size = sum(entries[each].size for each in missing)
            require_space(name, size, self.folder, option="--download")
            amount = f"{size / 1e9:.1f} GB" if size > _SMALL else f"{size / 1e6:.1f} MB"
            note(f"fetching {name}: {len(missing):,} of {len(wanted):,} files, {amount}, to {self.folder}")
            if missing:
                fetch(missing)
        for each in missing:
            _verify(self.folder / each, entries[each])
            known[each] = entries[each].size
        self._manifest = _Manifest(
            dataset=name,
            revision=revision,
            commit=commit,
            names=sorted(entries, key=natural_key),
            files=dict(sorted(known.items())),
        )
        # A manifest that was cut off would not be read, and everything fetched again.
        with whole_file(self.folder / MANIFEST) as file:
            file.write(msgspec.json.encode(self._manifest))

    def _is_here(self, name: str) -> bool:
        size = self._manifest.files.get(name) if self._manifest else None
        try:
            return size is not None and (self.folder / name).stat().st_size == size
        except OSError:
            return False


def copies(inputs: Sequence[str | Path | bytes], options: SourceOptions) -> list[DatasetCopy]:
    """The copies that ``--download`` asks for; none without it.

    Raises:
        UsageError: There is nothing to download.
    """
    if options.download is None:
        return []
    addresses = [DatasetAddress.parse(given) for given in inputs if isinstance(given, str)]
    wanted = [DatasetCopy(address, options.download) for address in addresses if address is not None]
    if not wanted:
        raise UsageError(
            "--download is for datasets on the Hub, and no input is one",
            remedy="Name one, such as hf://datasets/OWNER/NAME, or leave out --download.",
        )
    return wanted


def fetch_missing(
    inputs: Sequence[str | Path | bytes],
    options: SourceOptions,
    note: Callable[[str], object],
    *,
    bars: bool = False,
) -> None:
    """Fetch the datasets among the inputs that ``--download`` asks for, unless they are here.

    Args:
        inputs: Inputs, among them addresses of datasets.
        options: The target folder.
        note: Called with progress messages.
        bars: Show progress bars on standard error.

    Raises:
        UsageError: There is nothing to download.
        PagemillError: See :meth:`DatasetCopy.fetch`.
    """
    for copy in copies(inputs, options):
        if copy.files() is None:
            copy.fetch(note, bars=bars)


def is_missing(inputs: Sequence[str | Path | bytes], options: SourceOptions) -> bool:
    """Whether there is anything for :func:`fetch_missing` to fetch."""
    return any(copy.files() is None for copy in copies(inputs, options))


def source_of(folder: Path) -> str | None:
    """The address, with the commit, of the dataset whose copy contains a folder; None for any other folder."""
    for place in (folder, *folder.parents[: _LEVELS - 1]):
        if (manifest := _read(place)) is not None:
            return DatasetAddress(manifest.dataset, manifest.commit).root
    return None


def not_here(copy: DatasetCopy) -> MissingInputError:
    """The error for an incomplete copy."""
    return MissingInputError(f"{copy.address.root} is not in {copy.folder}", remedy="Repeat the command to fetch it.")


def _read(folder: Path) -> _Manifest | None:
    try:
        with (folder / MANIFEST).open("rb") as file:
            manifest = msgspec.json.decode(file.read(_MAX_MANIFEST), type=_Manifest)
    except (OSError, msgspec.DecodeError):
        return None
    return manifest if all(map(_is_inside, manifest.names)) else None


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def _verify(path: Path, entry: Any) -> None:
    """Compare a file with its digest on the Hub: the SHA-256 of a large file, the Git blob id of any other."""
    size = path.stat().st_size
    sha256 = entry.lfs.sha256 if entry.lfs is not None else None
    digest = hashlib.sha256() if sha256 else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    with path.open("rb") as file:
        hashlib.file_digest(file, lambda: digest)
    if (size, digest.hexdigest()) != (entry.size, sha256 or entry.blob_id):
        # Deleted, or the next attempt would take it for a finished download.
        path.unlink()
        raise NetworkError(f"{path.name} differs from its digest on the Hub", remedy="Repeat the command to fetch it.")
