"""A dataset in a folder or behind a URL of any fsspec filesystem: object stores, web folders, SFTP."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from pagemill.errors import (
    DamagedRunError,
    MissingDependencyError,
    NetworkError,
    NoSpaceError,
    OutputError,
    PagemillError,
    is_no_space,
)
from pagemill.publishing.manifest import (
    MANIFEST,
    MAX_MANIFEST,
    Manifest,
    PublishedFile,
    Report,
    in_the_way,
    read_manifest,
)
from pagemill.publishing.public import public_source
from pagemill.whole_files import TEMPORARY_SUFFIX

_CHUNK = 4 * 2**20
_DEPTH = 2
"""Levels of a dataset: its files and its folders, which hold only files."""
_AGAIN = "Run the same command again: existing files are not sent again."
_PENDING = f"{MANIFEST}.pending"
"""Manifest of everything that may exist until the dataset is complete: new and earlier files."""


class StoredDataset:
    """A dataset in a folder or behind a URL.

    Args:
        url: A folder, or a URL that fsspec knows, such as ``s3://bucket/name``.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._filesystem: Any = None
        self._root = ""

    def check(self, run: Path) -> None:
        """Check early what would fail after hours of building the files.

        Args:
            run: The run directory.

        Raises:
            OutputError: The target is read-only, or inside the run directory.
            PagemillError: Unknown filesystem.
        """
        with self._errors():
            self._open()
            if self._is_local and Path(self._root).resolve().is_relative_to(run.resolve()):
                raise OutputError(
                    f"{self._shown} is in the run directory {run}, which is not its own dataset",
                    remedy="Choose a folder outside of it.",
                )

    def publish(self, folder: Path, manifest: Manifest, report: Report = lambda file, size: None) -> str:
        """Copy missing files and read everything back; the manifest is written last.

        Files of an earlier dataset that are not in this one are deleted.

        Args:
            folder: Folder with the files.
            manifest: Their manifest.
            report: Called with each file and 0 before it is copied, and with its size after it.

        Returns:
            The address of the dataset.

        Raises:
            MissingDependencyError: The filesystem's package is not installed.
            OutputError: The target contains something else, or cannot be written; NoSpaceError when it is full.
            NetworkError: It is unreachable; the same command resumes.
            DamagedRunError: The data read back differs from what was written.
        """
        with self._errors():
            self._open()
            published, pending = self._listed(MANIFEST), self._listed(_PENDING)
            earlier = {file.path: file for file in (*(published or ()), *(pending or ()))}
            if published is None and pending is None:
                self._refuse_foreign(manifest)
            elif foreign := in_the_way(self._files(maxdepth=_DEPTH), earlier, manifest):
                raise OutputError(
                    f"{self._shown} contains other files, such as {foreign[0]}",
                    remedy="Move them away, or choose an empty or new place.",
                )
            stale = earlier.keys() - {file.path for file in manifest.files}
            partial = replace(manifest, files=(*manifest.files, *(earlier[path] for path in sorted(stale))))
            # Before the first file: after a death in between, a later run knows which files there are ours.
            self._copy(partial.encoded(), _PENDING)
            for file in manifest.files:
                report(file, 0)
                if not self._has(file):
                    self._copy(folder / file.path, file.path)
                    if not self._has(file):
                        raise DamagedRunError(f"{file.path} differs from what was written", remedy=_AGAIN)
                report(file, file.size)
            for path in sorted(stale):
                if self._filesystem.isfile(f"{self._root}/{path}"):
                    self._filesystem.rm_file(f"{self._root}/{path}")
            # Last: readers that find the manifest find all of its files.
            self._copy((folder / MANIFEST).read_bytes(), MANIFEST)
            self._filesystem.rm_file(f"{self._root}/{_PENDING}")
        return self._shown

    @property
    def doing(self) -> str:
        """Verb for progress messages, after :meth:`check`."""
        return "writing" if self._is_local else "uploading"

    @property
    def _shown(self) -> str:
        """The address without a password."""
        return public_source(self.url) if "://" in self.url and not self.url.startswith("file:") else self.url

    def _open(self) -> None:
        from fsspec.core import url_to_fs

        if self.url.lower().startswith(("http://", "https://")):
            raise OutputError(f"{self._shown} is read-only", remedy="Name a folder, or a URL such as s3://bucket/x.")
        if self.url.lower().startswith("hf://"):
            raise OutputError(
                f"{self.url} is on the Hub", remedy="Pass it with --repo USER/NAME: one commit shows all."
            )
        try:
            self._filesystem, root = url_to_fs(self.url)
        except ImportError as error:
            raise MissingDependencyError(
                f"writing to {self._shown} needs another package ({error})", remedy="Install it with pip."
            ) from error
        self._root = str(root).rstrip("/")

    @property
    def _is_local(self) -> bool:
        from fsspec.implementations.local import LocalFileSystem

        return isinstance(self._filesystem, LocalFileSystem)

    def _listed(self, name: str) -> list[PublishedFile] | None:
        """The files of an existing manifest, none outside the target; None without a manifest."""
        self._filesystem.invalidate_cache()  # include recent writes
        try:
            with self._filesystem.open(f"{self._root}/{name}", "rb") as file:
                found = read_manifest(file.read(MAX_MANIFEST))
        except FileNotFoundError:
            return None
        if found is None:
            raise OutputError(
                f"{self._shown} contains a {name} that pagemill did not write", remedy="Choose another place."
            )
        return [
            file for file in found.files if not {"", ".", ".."} & set(file.path.split("/")) and "\\" not in file.path
        ]

    def _refuse_foreign(self, manifest: Manifest) -> None:
        """Refuse a target with foreign files."""
        ours = {file.path for file in manifest.files} | {f"{_PENDING}{TEMPORARY_SUFFIX}"}
        path = next((path for path in self._files() if path not in ours), None)  # one suffices, a bucket may be large
        if path is not None:
            raise OutputError(
                f"{self._shown} contains other files, such as {path}", remedy="Choose an empty or new place."
            )

    def _files(self, maxdepth: int | None = None) -> Iterator[str]:
        """Paths of the files in the target."""
        for folder, _, names in self._filesystem.walk(self._root, maxdepth=maxdepth):
            below = str(folder).removeprefix(self._root).strip("/")
            yield from (f"{below}/{name}" if below else name for name in sorted(names))

    def _copy(self, source: Path | bytes, path: str) -> None:
        """Write a file; on a disk it is renamed when complete, object stores are atomic."""
        target = f"{self._root}/{path}"
        written = f"{target}{TEMPORARY_SUFFIX}" if self._is_local else target
        with contextlib.suppress(FileExistsError, NotImplementedError):  # object stores have no folders
            self._filesystem.makedirs(target.rpartition("/")[0], exist_ok=True)
        if isinstance(source, bytes):
            self._filesystem.pipe_file(written, source)
        else:
            self._filesystem.put_file(str(source), written)
        if self._is_local:
            self._filesystem.mv(written, target)

    def _has(self, file: PublishedFile) -> bool:
        """Whether a file exists with the right content: it is read, since filesystems share no digest."""
        self._filesystem.invalidate_cache()  # include recent writes
        path = f"{self._root}/{file.path}"
        try:
            if self._filesystem.size(path) != file.size:
                return False
            digest = hashlib.sha256()
            with self._filesystem.open(path, "rb", cache_type="none") as opened:
                while chunk := opened.read(_CHUNK):
                    digest.update(chunk)
        except FileNotFoundError:
            return False
        return digest.hexdigest() == file.sha256

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except PagemillError:
            raise
        except Exception as error:  # each filesystem has exceptions of its own
            message = f"{self._shown} cannot be written ({type(error).__name__}: {self._message(error)})"
            if isinstance(error, OSError) and is_no_space(error):
                raise NoSpaceError(message, remedy=_AGAIN) from error
            on_disk = isinstance(error, OSError) and error.errno is not None and "://" not in self.url
            if on_disk or isinstance(error, PermissionError | ValueError):  # the latter: an unknown kind of address
                raise OutputError(message, remedy="Check your rights there, or name another place.") from error
            raise NetworkError(message, remedy=_AGAIN) from error

    def _message(self, error: Exception) -> str:
        """The message of a filesystem, without the password of the address."""
        message = str(error)
        with contextlib.suppress(ValueError):
            if password := urlsplit(self.url).password:
                message = (
                    message.replace(self.url, self._shown).replace(unquote(password), "***").replace(password, "***")
                )
        return message
