"""Copies of datasets: what of one is here."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pagemill.errors import UsageError
from pagemill.sources import SourceOptions
from pagemill.sources.download import MANIFEST, DatasetCopy, copies, is_missing, source_of
from pagemill.sources.hub import DatasetAddress

ADDRESS = DatasetAddress("o/n")


def write(folder: Path, **more: object) -> Path:
    """A copy of one file."""
    inner = folder / "o" / "n"
    (inner / "data").mkdir(parents=True)
    (inner / "data" / "a.parquet").write_bytes(b"1234")
    (folder / "secret.pdf").write_bytes(b"1234")
    manifest: dict[str, object] = {"dataset": "o/n", "revision": None, "commit": "c" * 40}
    manifest |= {"names": ["README.md", "data/a.parquet"], "files": {"data/a.parquet": 4}}
    (inner / MANIFEST).write_text(json.dumps(manifest | more))
    return folder


def test_a_whole_copy(tmp_path: Path):
    folder = write(tmp_path)
    file = folder / "o" / "n" / "data" / "a.parquet"
    assert DatasetCopy(ADDRESS, folder).files() == [file]
    assert not is_missing(["hf://datasets/o/n"], SourceOptions(download=folder))
    assert source_of(file.parent) == f"hf://datasets/o/n@{'c' * 40}"
    assert source_of(tmp_path) is None


@pytest.mark.parametrize(
    "more",
    [
        {"files": {}},
        {"files": {"data/a.parquet": 5}},
        {"revision": "v1"},
        {"dataset": "o/other"},
        {"commit": 3},
        {"names": ["../../secret.pdf"], "files": {"../../secret.pdf": 4}},
        {"names": ["/etc/a.pdf"]},
    ],
)
def test_one_that_is_not_whole_or_not_ours(tmp_path: Path, more: dict[str, object]):
    assert DatasetCopy(ADDRESS, write(tmp_path, **more)).files() is None


def test_a_download_of_another_commit_that_was_interrupted_does_not_pass_for_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    hub = pytest.importorskip("huggingface_hub")
    hf_api = pytest.importorskip("huggingface_hub.hf_api")
    folder = write(tmp_path)
    entries = [hf_api.RepoFile(path=name, size=4, oid="0") for name in ("README.md", "data/a.parquet")]
    monkeypatch.setattr(hub.HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha="d" * 40))
    monkeypatch.setattr(hub.HfApi, "list_repo_tree", lambda *_, **__: entries)

    def interrupted(*_: object, **__: object) -> None:
        (folder / "o" / "n" / "data" / "a.parquet").write_bytes(b"5678")
        raise KeyboardInterrupt

    monkeypatch.setattr(hub, "snapshot_download", interrupted)
    with pytest.raises(KeyboardInterrupt):
        DatasetCopy(ADDRESS, folder).fetch(print)
    assert DatasetCopy(ADDRESS, folder).files() is None


@pytest.mark.parametrize("name", ["../n", "o/..", "o/ "])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str):
    with pytest.raises(UsageError, match="is not a dataset"):
        DatasetCopy(DatasetAddress(name), tmp_path)


def test_what_is_to_be_fetched(tmp_path: Path):
    options = SourceOptions(download=tmp_path)
    assert [copy.folder for copy in copies(["scans", "hf://datasets/o/n:c/test"], options)] == [tmp_path / "o" / "n"]
    assert copies(["scans"], SourceOptions()) == []
    with pytest.raises(UsageError, match="no input is one"):
        copies(["scans"], options)
