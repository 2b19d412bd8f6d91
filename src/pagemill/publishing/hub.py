"""A dataset on the Hugging Face Hub: files first, then one commit that shows them all at once."""

from __future__ import annotations

import contextlib
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pagemill._version import __version__
from pagemill.errors import DamagedRunError, MissingDependencyError, NetworkError, OutputError, PagemillError
from pagemill.publishing.manifest import MANIFEST, MAX_MANIFEST, PublishedFile, Tell, read_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pagemill.publishing.manifest import Manifest

_MAY_PASS = frozenset({408, 409, 412, 425, 429})
"""Statuses of a request that was not wrong: too slow, too early, beside another commit, one of too many."""
_TOKEN = re.compile(r"hf_\w{8,}")
_AGAIN = "Run the same command again: what is uploaded already is not sent again."


@dataclass(frozen=True, slots=True)
class HubDataset:
    """Where to publish.

    Args:
        repository: ``USER/NAME``.
        token: Of the user; None for ``HF_TOKEN`` or the Hub's own login. It is neither stored nor shown.
        revision: Branch.
        private: Whether a repository that is made now is private; one that is there must be as wished.
    """

    repository: str
    token: str | None = None
    revision: str = "main"
    private: bool = False

    def check(self, run: Path) -> None:
        """Find out what would fail after hours of making the files.

        Args:
            run: The run directory.

        Raises:
            MissingDependencyError: The Hub's client is not installed.
            OutputError: There is no token.
        """
        try:
            from huggingface_hub import get_token
        except ImportError as error:
            raise _no_client(error) from error
        if not (self.token or get_token()):
            raise OutputError("there is no token for the Hub", remedy=_LOGIN)

    def publish(self, folder: Path, manifest: Manifest, tell: Tell | None = None) -> str:
        """Upload what is not there yet, commit, and compare what is there then with the manifest.

        A repository shows the new dataset when all of it is uploaded, and the old one until then. Files of an earlier
        one that are in this one no longer are deleted; what else is in the repository stays.

        Args:
            folder: With the files.
            manifest: Of the files.
            tell: Called with each file before it is uploaded, and with the bytes that are there then: 0, and again
                with its size when it has arrived, or was there.

        Returns:
            The address of the dataset.

        Raises:
            MissingDependencyError: The Hub's client is not installed.
            OutputError: The Hub refuses: no token, no right to write, or a repository of the other visibility.
            NetworkError: The Hub cannot be reached, or fails; the same command goes on where it stopped.
            DamagedRunError: The dataset on the Hub is not what was uploaded.
        """
        try:
            from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetCard, HfApi
            from huggingface_hub.utils.tqdm import disable_progress_bars
        except ImportError as error:
            raise _no_client(error) from error
        disable_progress_bars()  # the terminal is the caller's
        api: Any = HfApi(token=self.token and self.token.strip(), library_name="pagemill", library_version=__version__)
        repository = {"repo_id": self.repository, "repo_type": "dataset"}
        with self._hub_errors():
            # Before all else, not after hours of uploading: the Hub knows which licences and so on there are.
            card = (folder / "README.md").read_text(encoding="utf-8")
            self._check_card(DatasetCard(card, ignore_metadata_errors=True))
            # None: private where the organisation's repositories are so unless told otherwise.
            url = api.create_repo(**repository, private=self.private or None, exist_ok=True)
            self._check_visibility(api)
            if self.revision != "main":
                api.create_branch(**repository, branch=self.revision, exist_ok=True)
            before = self._listed(api)
            earlier = self._published_before(api, before)
            self._refuse_mixing(before, earlier, manifest)
            stale = set(before) & (earlier or set()) - {file.path for file in manifest.files}
            operations: list[Any] = []
            for file in manifest.files:
                if tell is not None:
                    tell(file, 0)
                if not _is_same(before.get(file.path), file, folder):
                    operation = CommitOperationAdd(file.path, folder / file.path)
                    # One at a time: each that has arrived need not be sent again when this is interrupted.
                    api.preupload_lfs_files(
                        **repository, additions=[operation], revision=self.revision, free_memory=False
                    )
                    operations.append(operation)
                if tell is not None:
                    tell(file, file.size)
            operations += [CommitOperationDelete(path) for path in sorted(stale)]
            own = folder / MANIFEST
            if operations or not _is_same(before.get(MANIFEST), _described(own), folder):
                api.create_commit(
                    **repository,
                    operations=[*operations, CommitOperationAdd(MANIFEST, own)],
                    commit_message=f"{manifest.pages} pages by pagemill {__version__}",
                    revision=self.revision,
                )
            self._verify(self._listed(api), folder, manifest)
        return str(url)

    def _check_visibility(self, api: Any) -> None:
        private = bool(api.repo_info(self.repository, repo_type="dataset").private)
        if self.private and not private:
            raise OutputError(
                f"{self.repository} is there already, and public",
                remedy="Make it private on its page, publish under another name, or leave --private out.",
            )

    def _listed(self, api: Any) -> dict[str, Any]:
        listed = api.list_repo_tree(self.repository, repo_type="dataset", revision=self.revision, recursive=True)
        return {entry.path: entry for entry in listed if hasattr(entry, "blob_id")}

    def _check_card(self, card: Any) -> None:
        try:
            card.validate(repo_type="dataset")
        except ValueError as error:
            raise OutputError(
                f"the Hub does not take the card: {self._without_token(str(error))}",
                remedy="Name another --licence: https://huggingface.co/docs/hub/repositories-licenses lists them.",
            ) from error

    def _refuse_mixing(self, listed: dict[str, Any], earlier: set[str] | None, manifest: Manifest) -> None:
        """Files of somebody else that ours would replace, or that would be read as a part of the dataset."""
        if earlier is not None:  # replacing is what was asked for
            return
        ours = {file.path for file in manifest.files}
        folders = {path.rpartition("/")[0] for path in ours} - {""}
        foreign = sorted(
            path
            for path in listed
            if (path in ours and path != "README.md") or path.rpartition("/")[0] in folders or path == MANIFEST
        )
        if foreign:
            raise OutputError(
                f"{self.repository} holds other files, {foreign[0]} for one",
                remedy="Publish under another name, on a branch of its own (--revision), or delete them there first.",
            )

    def _published_before(self, api: Any, listed: dict[str, Any]) -> set[str] | None:
        """Files that an earlier dataset of ours is made of; None where there is none."""
        if MANIFEST not in listed or listed[MANIFEST].size > MAX_MANIFEST:
            return None
        with _own_temporary_folder() as folder:
            path = api.hf_hub_download(
                self.repository, MANIFEST, repo_type="dataset", revision=self.revision, local_dir=folder
            )
            with open(path, "rb") as file:  # noqa: PTH123 - a name that the client gives
                earlier = read_manifest(file.read(MAX_MANIFEST))
        return {file.path for file in earlier.files} if earlier else None

    def _verify(self, listed: dict[str, Any], folder: Path, manifest: Manifest) -> None:
        wrong = [file.path for file in manifest.files if not _is_same(listed.get(file.path), file, folder)]
        if not _is_same(listed.get(MANIFEST), _described(folder / MANIFEST), folder):
            wrong.append(MANIFEST)
        if wrong:
            raise DamagedRunError(
                f"{len(wrong)} files of {self.repository} are not as they were uploaded, the first: {wrong[0]}",
                remedy=_AGAIN,
            )

    @contextlib.contextmanager
    def _hub_errors(self) -> Iterator[None]:
        """Turn the client's many exceptions into ours; a token never is in a message."""
        from huggingface_hub.errors import HFValidationError, LocalTokenNotFoundError, OfflineModeIsEnabled

        try:
            yield
        except PagemillError:
            raise
        except LocalTokenNotFoundError as error:
            raise OutputError("there is no token for the Hub", remedy=_LOGIN) from error
        except OfflineModeIsEnabled as error:
            raise OutputError("the Hub's client is told to stay offline", remedy="Unset HF_HUB_OFFLINE.") from error
        except HFValidationError as error:
            raise OutputError(f"{self.repository!r} is no name of a repository", remedy="As in USER/NAME.") from error
        except Exception as error:
            raise self._of_client(error) from error

    def _of_client(self, error: Exception) -> PagemillError:
        """What an exception of the client means, or of its HTTP and transfer libraries, which have no common base."""
        from huggingface_hub.errors import HfHubHTTPError

        refused: BaseException | None = error
        while refused is not None and not isinstance(refused, HfHubHTTPError):
            refused = refused.__cause__  # a failed upload of a file is wrapped
        if refused is None:
            if isinstance(error, OSError) and error.filename:  # a file of ours
                return OutputError(f"{error.filename} cannot be read: {error.strerror}", remedy=_AGAIN)
            said = self._without_token(f"{type(error).__name__}: {error}")
            return NetworkError(f"the upload to the Hub failed: {said}", remedy=_AGAIN)
        status = refused.response.status_code if refused.response is not None else None
        said = self._without_token(refused.server_message or str(refused))
        if status in (401, 403):
            return OutputError(f"the Hub refuses to write to {self.repository}: {said}", remedy=_LOGIN)
        if status is not None and 400 <= status < 500 and status not in _MAY_PASS:
            return OutputError(f"the Hub refuses {self.repository} ({status}): {said}")
        return NetworkError(f"the Hub failed ({status}): {said}", remedy=_AGAIN)

    def _without_token(self, text: str) -> str:
        if self.token and self.token.strip():
            text = text.replace(self.token.strip(), "***")
        return _TOKEN.sub("***", text)  # one of the Hub's own login


_LOGIN = "Log in with: hf auth login, or set HF_TOKEN to a token that may write there."


def _no_client(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"publishing needs the Hub's client ({error})", remedy="Install it: pip install 'pagemill[hub]'"
    )


def _is_same(entry: Any, file: PublishedFile, folder: Path) -> bool:
    """Whether what the Hub lists is this file: by SHA-256 where it keeps one, else by Git's digest."""
    if entry is None or entry.size != file.size:
        return False
    if entry.lfs is not None:
        return bool(entry.lfs.sha256 == file.sha256)
    data = (folder / file.path).read_bytes()
    # SHA-1 over "blob SIZE\0" and the content: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    return bool(entry.blob_id == hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())


def _described(path: Path) -> PublishedFile:
    data = path.read_bytes()
    return PublishedFile(path.name, len(data), hashlib.sha256(data).hexdigest())


@contextlib.contextmanager
def _own_temporary_folder() -> Iterator[str]:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="pagemill-") as folder:
        yield folder
