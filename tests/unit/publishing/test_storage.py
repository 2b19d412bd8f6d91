import errno
import json

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pagemill.errors import DamagedRunError, NetworkError, NoSpaceError, OutputError
from pagemill.publishing.manifest import MANIFEST, Manifest, described
from pagemill.publishing.storage import StoredDataset

URL = "memory://mills/pages"


@pytest.fixture
def memory():
    MemoryFileSystem.store.clear()
    yield MemoryFileSystem.store
    MemoryFileSystem.store.clear()


def version(folder, *names):
    files = [folder / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(file.name.encode())
    manifest = Manifest(pages=1, files=tuple(described(folder, files)))
    (folder / MANIFEST).write_bytes(manifest.encoded())
    return folder, manifest


@pytest.fixture
def dataset(tmp_path):
    return version(tmp_path / "made", "data/a.parquet", "README.md")


def test_copied_and_reported(dataset, memory):
    told = []
    assert StoredDataset(URL).publish(*dataset, lambda file, there: told.append((file.path, there))) == URL
    assert set(memory) == {"/mills/pages/data/a.parquet", "/mills/pages/README.md", "/mills/pages/pagemill.json"}
    assert told == [("data/a.parquet", 0), ("data/a.parquet", 9), ("README.md", 0), ("README.md", 9)]


def test_a_folder_is_written_to_and_an_object_store_uploaded_to(tmp_path, memory):
    for url, doing in ((str(tmp_path / "to"), "writing"), ((tmp_path / "to").as_uri(), "writing"), (URL, "uploading")):
        target = StoredDataset(url)
        target.check(tmp_path / "run")
        assert target.doing == doing


def test_what_is_there_is_not_sent_again(dataset, memory, monkeypatch):
    StoredDataset(URL).publish(*dataset)
    sent = []
    put = MemoryFileSystem.put_file
    monkeypatch.setattr(MemoryFileSystem, "put_file", lambda self, s, t, **k: (sent.append(t), put(self, s, t, **k)))
    StoredDataset(URL).publish(*dataset)
    assert not sent  # but the manifest, which is no file


def test_files_of_an_interrupted_version_go(tmp_path, dataset, memory):
    def stop(file, there):
        if there:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StoredDataset(URL).publish(*dataset, stop)
    StoredDataset(URL).publish(*version(tmp_path / "other", "data/b.parquet"))
    assert set(memory) == {"/mills/pages/data/b.parquet", "/mills/pages/pagemill.json"}


def test_files_of_somebody_else(dataset, memory):
    with MemoryFileSystem().open("/mills/pages/data/mine.txt", "wb") as file:
        file.write(b"mine")
    with pytest.raises(OutputError, match=r"mine\.txt"):
        StoredDataset(URL).publish(*dataset)
    assert list(memory) == ["/mills/pages/data/mine.txt"]


SHARD, SECOND = "data/train-00000-of-00001.parquet", "data/train-00001-of-00002.parquet"


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (SECOND, [SHARD]),  # load_dataset would read its rows
        (SHARD, [SHARD]),  # ours would replace it: the earlier dataset had the other format
        ("parsed_texts.jsonl", ["parsed_texts.jsonl"]),
    ],
)
def test_files_of_somebody_else_in_a_dataset_of_ours(tmp_path, dataset, memory, path, names):
    StoredDataset(URL).publish(*dataset)
    MemoryFileSystem().pipe(f"/mills/pages/{path}", b"mine")
    before = dict(memory)
    with pytest.raises(OutputError, match=path) as caught:
        StoredDataset(URL).publish(*version(tmp_path / "new", *names))
    assert caught.value.remedy
    assert memory == before


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("cat.jpg", [SHARD]),
        (".gitattributes", [SHARD]),
        ("data/notes.txt", [SHARD]),
        ("data/more/train-0.parquet", [SHARD]),
        ("data/train-0/more.parquet", [SHARD]),
        (SECOND, ["parsed_texts.jsonl"]),  # the card has load_dataset read the texts alone
    ],
)
def test_other_files_in_a_dataset_of_ours_stay(tmp_path, dataset, memory, path, names):
    StoredDataset(URL).publish(*dataset)
    MemoryFileSystem().pipe(f"/mills/pages/{path}", b"mine")
    StoredDataset(URL).publish(*version(tmp_path / "new", *names))
    assert set(memory) == {f"/mills/pages/{name}" for name in (path, *names, MANIFEST)}


@pytest.mark.parametrize("path", ["../outside", "/outside", "data/../../outside", "a\\\\..\\\\b", ""])
def test_a_manifest_that_leads_out_deletes_nothing(dataset, memory, path):
    filesystem = MemoryFileSystem()
    filesystem.pipe({"/mills/outside": b"mine", "/outside": b"mine"})
    told = {"generator": "pagemill", "pages": 1, "files": [{"path": path, "size": 1, "sha256": ""}]}
    filesystem.pipe("/mills/pages/pagemill.json", json.dumps(told).encode())
    StoredDataset(URL).publish(*dataset)
    assert {"/mills/outside", "/outside"} <= set(memory)


def test_what_comes_back_otherwise(dataset, memory, monkeypatch):
    monkeypatch.setattr(MemoryFileSystem, "put_file", lambda self, source, target, **_: self.pipe(target, b"spoilt"))
    with pytest.raises(DamagedRunError):
        StoredDataset(URL).publish(*dataset)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.ENOSPC, "full"), NoSpaceError),
        (PermissionError("no"), OutputError),
        (ConnectionError("gone"), NetworkError),
        (RuntimeError("of the filesystem's own"), NetworkError),
    ],
)
def test_failures(dataset, memory, monkeypatch, error, kind):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(MemoryFileSystem, "put_file", fail)
    with pytest.raises(kind):
        StoredDataset(URL).publish(*dataset)


def test_a_password_in_the_address_is_not_shown(dataset, monkeypatch):
    def fail(url, **_):
        raise RuntimeError(f"cannot open {url}: login of miller with s%ecret refused")

    monkeypatch.setattr("fsspec.core.url_to_fs", fail)
    with pytest.raises(NetworkError) as caught:
        StoredDataset("ftp://miller:s%25ecret@mill.example/pages").publish(*dataset)
    assert "s%ecret" not in caught.value.message
    assert "s%25ecret" not in caught.value.message
    assert "ftp://mill.example/pages" in caught.value.message


def test_web_servers_are_read_only(dataset):
    with pytest.raises(OutputError, match="read"):
        StoredDataset("https://mill.example/pages").publish(*dataset)


def test_the_hub_has_a_way_of_its_own(tmp_path):
    with pytest.raises(OutputError) as caught:
        StoredDataset("hf://datasets/me/pages").check(tmp_path)
    assert "--repo" in caught.value.remedy


def test_filesystems_get_no_options_that_they_do_not_know(dataset, monkeypatch):
    """SFTP hands all of them to the connection, which refuses them."""
    asked = []

    def known(url, **options):
        asked.append(options)
        return MemoryFileSystem(), "/mills/pages"

    monkeypatch.setattr("fsspec.core.url_to_fs", known)
    StoredDataset("sftp://mill.example/pages").publish(*dataset)
    assert asked == [{}]


def test_no_such_filesystem(dataset):
    with pytest.raises(OutputError):
        StoredDataset("nowhere://x").publish(*dataset)
