"""A dataset on the Hugging Face Hub: files first, then one commit that publishes them together."""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pagemill._version import __version__
from pagemill.document.shown import count
from pagemill.errors import DamagedRunError, NetworkError, OutputError, PagemillError, lacks_extra
from pagemill.publishing.manifest import (
    MANIFEST,
    MAX_MANIFEST,
    Manifest,
    PublishedFile,
    Report,
    described,
    in_the_way,
    read_manifest,
)

_MAY_PASS = frozenset({408, 409, 412, 425, 429})
"""Statuses of requests that may succeed later: timeout, too early, concurrent commit, rate limit."""
_TOKEN = re.compile(r"hf_\w{8,}")
_AGAIN = "Run the same command again: uploaded files are not sent again."


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A dataset repository on the Hub.

    Args:
        repository: ``USER/NAME``.
        token: The user's token; None for ``HF_TOKEN`` or the Hub's own login. Neither stored nor shown.
        revision: Branch.
        private: Whether a new repository is private; an existing one must already be.
    """

    doing: ClassVar = "uploading"

    repository: str
    token: str | None = None
    revision: str = "main"
    private: bool = False

    def check(self, run: Path) -> None:
        """Check early what would fail after hours of building the files.

        Args:
            run: The run directory.

        Raises:
            MissingDependencyError: The Hub's client is not installed.
            OutputError: There is no token.
        """
        try:
            from huggingface_hub import get_token
        except ImportError as error:
            raise lacks_extra(f"publishing needs the Hub's client ({error})", "hub") from error
        if not (self.token or get_token()):
            raise OutputError("no token for the Hub", remedy=_LOGIN)

    def publish(self, folder: Path, manifest: Manifest, report: Report = lambda file, size: None) -> str:
        """Upload missing files, commit, and verify the result against the manifest, after :meth:`check`.

        The repository shows the old dataset until everything is uploaded. Files of an earlier dataset that are not in
        this one are deleted; all other files stay.

        Args:
            folder: Folder with the files.
            manifest: Their manifest.
            report: Called with each file and 0 before its upload, and with its size after it.

        Returns:
            The address of the dataset.

        Raises:
            OutputError: The Hub refuses: no token, no write permission, or a public repository instead of a private
                one.
            NetworkError: The Hub is unreachable or fails; the same command resumes.
            DamagedRunError: The dataset on the Hub differs from what was uploaded.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete, DatasetCard, HfApi
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()  # the caller owns the terminal
        api: Any = HfApi(token=self.token and self.token.strip(), library_name="pagemill", library_version=__version__)
        repository = {"repo_id": self.repository, "repo_type": "dataset"}
        with self._hub_errors():
            # First, not after hours of uploading: the Hub validates licences and other metadata.
            card = (folder / "README.md").read_text(encoding="utf-8")
            self._check_card(DatasetCard(card, ignore_metadata_errors=True))
            # None instead of False: it leaves the default of the organisation, which may be private.
            url = api.create_repo(**repository, private=self.private or None, exist_ok=True)
            self._check_visibility(api)
            if self.revision != "main":
                api.create_branch(**repository, branch=self.revision, exist_ok=True)
            before = self._listed(api)
            earlier = self._published_before(api, before)
            self._refuse_mixing(before, earlier, manifest)
            files = (*manifest.files, *described(folder, [folder / MANIFEST]))
            stale = set(before) & (earlier or set()) - {file.path for file in files}
            operations: list[Any] = [CommitOperationDelete(path) for path in sorted(stale)]
            for file in files:
                report(file, 0)
                if not _is_same(before.get(file.path), file, folder):
                    operation = CommitOperationAdd(file.path, folder / file.path)
                    # One at a time: an interrupted upload need not repeat finished files.
                    api.preupload_lfs_files(
                        **repository, additions=[operation], revision=self.revision, free_memory=False
                    )
                    operations.append(operation)
                report(file, file.size)
            if operations:
                api.create_commit(
                    **repository,
                    operations=operations,
                    commit_message=f"{count(manifest.pages, 'page')} by pagemill {__version__}",
                    revision=self.revision,
                )
            there = self._listed(api)
            wrong = [file.path for file in files if not _is_same(there.get(file.path), file, folder)]
            if wrong:
                raise DamagedRunError(
                    f"{count(len(wrong), 'file')} of {self.repository} not as uploaded, first: {wrong[0]}",
                    remedy=_AGAIN,
                )
        return str(url)

    def _check_visibility(self, api: Any) -> None:
        if self.private and not api.repo_info(self.repository, repo_type="dataset").private:
            raise OutputError(
                f"{self.repository} exists and is public",
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
                f"the Hub rejects the card: {self._without_token(str(error))}",
                remedy="Choose another --licence: https://huggingface.co/docs/hub/repositories-licenses lists them.",
            ) from error

    def _refuse_mixing(self, listed: dict[str, Any], earlier: set[str] | None, manifest: Manifest) -> None:
        """Refuse foreign files that ours would replace, or that would be read as part of the dataset."""
        if earlier is not None:
            foreign = in_the_way(listed, earlier, manifest)
        else:
            ours = {file.path for file in manifest.files}
            folders = {path.rpartition("/")[0] for path in ours} - {""}
            foreign = sorted(
                path
                for path in listed
                if (path in ours and path != "README.md") or path.rpartition("/")[0] in folders or path == MANIFEST
            )
        if foreign:
            raise OutputError(
                f"{self.repository} contains other files, such as {foreign[0]}",
                remedy="Publish under another name, on a branch of its own (--revision), or delete them there first.",
            )

    def _published_before(self, api: Any, listed: dict[str, Any]) -> set[str] | None:
        """Files of an earlier dataset of ours; None without one."""
        if MANIFEST not in listed or listed[MANIFEST].size > MAX_MANIFEST:
            return None
        with tempfile.TemporaryDirectory(prefix="pagemill-") as folder:
            path = api.hf_hub_download(
                self.repository, MANIFEST, repo_type="dataset", revision=self.revision, local_dir=folder
            )
            earlier = read_manifest(Path(path).read_bytes())
        return {file.path for file in earlier.files} if earlier else None

    @contextlib.contextmanager
    def _hub_errors(self) -> Iterator[None]:
        """Turn the client's exceptions into ours; a message never contains a token."""
        try:
            yield
        except PagemillError:
            raise
        except Exception as error:
            raise self._of_client(error) from error

    def _of_client(self, error: Exception) -> PagemillError:
        """Our error for an exception of the client or of its HTTP and transfer libraries."""
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

        if isinstance(error, OfflineModeIsEnabled | HFValidationError):  # their messages include a remedy
            return OutputError(f"the Hub's client refuses {self.repository}: {self._without_token(str(error))}")
        refused: BaseException | None = error
        while refused is not None and not isinstance(refused, HfHubHTTPError):
            refused = refused.__cause__  # the client wraps the error of an uploaded file
        if refused is None:
            reason = self._without_token(f"{type(error).__name__}: {error}")
            return NetworkError(f"the upload to the Hub failed: {reason}", remedy=_AGAIN)
        status = refused.response.status_code if refused.response is not None else None
        reason = self._without_token(refused.server_message or str(refused))
        if status in (401, 403):
            return OutputError(f"the Hub refuses to write to {self.repository}: {reason}", remedy=_LOGIN)
        if status is not None and 400 <= status < 500 and status not in _MAY_PASS:
            return OutputError(f"the Hub refuses {self.repository} ({status}): {reason}")
        return NetworkError(f"the Hub failed ({status}): {reason}", remedy=_AGAIN)

    def _without_token(self, text: str) -> str:
        if self.token and self.token.strip():
            text = text.replace(self.token.strip(), "***")
        return _TOKEN.sub("***", text)  # a token of the Hub's own login, which we do not know


_LOGIN = "Log in with: hf auth login, or set HF_TOKEN to a token that may write there."


def _is_same(entry: Any, file: PublishedFile, folder: Path) -> bool:
    """Whether the Hub's listing matches a file: by SHA-256 if it has one, otherwise by Git blob id."""
    if entry is None or entry.size != file.size:
        return False
    if entry.lfs is not None:
        return bool(entry.lfs.sha256 == file.sha256)
    data = (folder / file.path).read_bytes()
    # SHA-1 over "blob SIZE\0" and the content: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    return bool(entry.blob_id == hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest())
