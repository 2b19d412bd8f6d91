"""A dataset in a folder or behind a URL of any fsspec filesystem: object stores, web folders, SFTP."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pagemill.errors import (
    DamagedRunError,
    MissingDependencyError,
    NetworkError,
    NoSpaceError,
    OutputError,
    PagemillError,
)
from pagemill.publishing.manifest import MANIFEST, MAX_MANIFEST, PublishedFile, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pagemill.publishing.manifest import Manifest

_CHUNK = 4 * 2**20
_AGAIN = "Run the same command again: what is there already is not sent again."
_UNFINISHED = ".pagemill-tmp"


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """Where to publish.

    Args:
        url: A folder, or a URL that fsspec knows, such as ``s3://bucket/name``.
    """

    url: str

    def publish(self, folder: Path, manifest: Manifest, tell: Callable[[PublishedFile], None] | None = None) -> str:
        """Copy what is not there yet and read all of it back; the manifest comes last.

        Files of an earlier dataset of ours that are in this one no longer are deleted.

        Args:
            folder: With the files.
            manifest: Of the files.
            tell: Called with each file that is there.

        Returns:
            The address of the dataset.

        Raises:
            MissingDependencyError: The filesystem's package is not installed.
            OutputError: The place holds something else, or cannot be written; NoSpaceError when it is full.
            NetworkError: It cannot be reached; the same command goes on where it stopped.
            DamagedRunError: What is read back is not what was written.
        """
        with self._errors():
            filesystem, root = self._filesystem()
            earlier = self._earlier(filesystem, root)
            self._refuse_foreign(filesystem, root, manifest, earlier)
            for file in manifest.files:
                target = f"{root}/{file.path}"
                if not _is_same(filesystem, target, file):
                    self._copy(filesystem, folder / file.path, target)
                    if not _is_same(filesystem, target, file):
                        raise DamagedRunError(f"{file.path} is not there as it was written", remedy=_AGAIN)
                if tell is not None:
                    tell(file)
            self._copy(filesystem, folder / MANIFEST, f"{root}/{MANIFEST}")
            for path in sorted(earlier - {file.path for file in manifest.files}):
                if filesystem.isfile(f"{root}/{path}"):
                    filesystem.rm_file(f"{root}/{path}")
        return self.url

    def _filesystem(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        try:
            # Listings are asked for anew: what was written a moment ago counts.
            filesystem, root = url_to_fs(self.url, use_listings_cache=False)
        except ImportError as error:
            raise MissingDependencyError(
                f"writing to {self.url} needs another package ({error})", remedy="Install it with pip."
            ) from error
        except ValueError as error:
            raise OutputError(f"{self.url!r}: {error}", remedy="Name a folder or a URL of a known kind.") from error
        return filesystem, str(root).rstrip("/")

    def _earlier(self, filesystem: Any, root: str) -> set[str]:
        """Paths of the files of a dataset of ours that is there already; none that leads out of the place."""
        try:
            with filesystem.open(f"{root}/{MANIFEST}", "rb") as file:
                found = read_manifest(file.read(MAX_MANIFEST))
        except FileNotFoundError:
            return set()
        if found is None:
            raise OutputError(f"{self.url} holds a {MANIFEST} that is not ours", remedy="Choose another place.")
        return {file.path for file in found.files if ".." not in file.path.split("/") and not file.path.startswith("/")}

    def _refuse_foreign(self, filesystem: Any, root: str, manifest: Manifest, earlier: set[str]) -> None:
        """A place with files of somebody else is not written to."""
        try:
            present = {str(path).removeprefix(root).lstrip("/") for path in filesystem.find(root)}
        except FileNotFoundError:
            return
        ours = {file.path for file in manifest.files} | earlier | {MANIFEST}
        foreign = sorted(path for path in present - ours if not path.endswith(_UNFINISHED))
        if foreign and not earlier:
            raise OutputError(
                f"{self.url} holds other files, {foreign[0]} for one", remedy="Choose an empty or new place."
            )

    def _copy(self, filesystem: Any, source: Path, target: str) -> None:
        """Copy a file; on a disk it gets its name when it is whole, object stores do so by themselves."""
        local = "file" in (filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,))
        written = f"{target}{_UNFINISHED}" if local else target
        with contextlib.suppress(FileExistsError, NotImplementedError):  # object stores have no folders
            filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
        filesystem.put_file(str(source), written)
        if local:
            filesystem.mv(written, target)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except PagemillError:
            raise
        except PermissionError as error:
            raise OutputError(f"{self.url} cannot be written: {error}", remedy="Check your rights there.") from error
        except OSError as error:
            import errno

            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoSpaceError(f"{self.url} is full: {error.strerror}", remedy=_AGAIN) from error
            if error.errno is not None and "://" not in self.url:
                raise OutputError(f"{self.url} cannot be written: {error}") from error
            raise NetworkError(f"{self.url} cannot be written: {error}", remedy=_AGAIN) from error
        except Exception as error:  # each filesystem has exceptions of its own
            raise NetworkError(
                f"{self.url} cannot be written ({type(error).__name__}: {error})", remedy=_AGAIN
            ) from error


def _is_same(filesystem: Any, path: str, file: PublishedFile) -> bool:
    """Whether a file is there and has the content: it is read, as filesystems agree on no digest."""
    try:
        if filesystem.size(path) != file.size:
            return False
        digest = hashlib.sha256()
        with filesystem.open(path, "rb", cache_type="none") as opened:
            while chunk := opened.read(_CHUNK):
                digest.update(chunk)
    except FileNotFoundError:
        return False
    return digest.hexdigest() == file.sha256
