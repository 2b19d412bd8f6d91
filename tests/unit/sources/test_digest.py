import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import text_digest
from pagemill.imaging.formats import FileFormat
from pagemill.sources.digest import Identifier, StoppedError
from pagemill.sources.items import Item, RemoteFile

PNG = b"\x89PNG\r\n\x1a\n and the rest"


class Digests(Catalogue):
    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[Path, int, int], str] = {}

    def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
        return self.kept.get((path, size, modified_ns))

    def remember_digest(self, path: Path, size: int, modified_ns: int, digest: str) -> None:
        self.kept[path, size, modified_ns] = digest


def item(content: Path | bytes | RemoteFile, name: str = "") -> Item:
    return Item(uri=f"u/{name}", name=name or getattr(content, "name", "document"), origin=0, content=content)


def aged(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    os.utime(path, (1.6e9, 1.6e9))
    return path


def test_the_digest_of_a_file_is_remembered_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    catalogue = Digests()
    path = aged(tmp_path / "a.png", PNG)
    first = Identifier(catalogue, 0).identify(item(path))
    assert (first.digest, first.file_format) == (hashlib.sha256(PNG).hexdigest(), FileFormat.PNG)
    aged(path, PNG[:-1] + b"!")
    monkeypatch.chdir(tmp_path)
    assert Identifier(catalogue, 0).identify(item(Path("a.png"))).digest == first.digest  # size and time have stayed
    os.utime(path, (1.6e9, 1.6e9 + 1))
    assert Identifier(catalogue, 0).identify(item(path)).digest == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("name", "data"),
    [("fresh.png", PNG), ("lying.pdf", PNG), ("lying.tif", PNG), ("no-suffix", PNG), ("text.png", b"text")],
)
def test_digests_that_are_not_remembered(tmp_path: Path, name: str, data: bytes):
    """Of files that may change in the same tick of the clock, and of those whose name does not tell what they are."""
    catalogue = Digests()
    path = aged(tmp_path / name, data)
    if name == "fresh.png":
        os.utime(path)
    assert Identifier(catalogue, 0).identify(item(path)).digest == hashlib.sha256(data).hexdigest()
    assert not catalogue.kept


def test_an_image_that_is_another_kind_of_image_is_remembered(tmp_path: Path):
    catalogue = Digests()
    Identifier(catalogue, 0).identify(item(aged(tmp_path / "photo.jpg", PNG)))
    assert catalogue.kept


def test_a_file_that_changes_while_it_is_read_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    catalogue, path = Digests(), aged(tmp_path / "a.png", PNG)
    real = Identifier._digest

    def slow(identifier: Identifier, file: Any) -> str:
        found = real(identifier, file)
        os.utime(path, (1.6e9, 1.6e9 + 5))
        return found

    monkeypatch.setattr(Identifier, "_digest", slow)
    Identifier(catalogue, 0).identify(item(path))
    assert not catalogue.kept


def test_a_digest_can_be_stopped(tmp_path: Path):
    identifier = Identifier(Digests(), 0)
    identifier.stopped = True
    with pytest.raises(StoppedError):
        identifier.identify(item(aged(tmp_path / "a.png", PNG)))


def test_bytes():
    found = Identifier(Digests(), 0).identify(item(PNG))
    assert (found.digest, found.file_format) == (hashlib.sha256(PNG).hexdigest(), FileFormat.PNG)


class Remote:
    """A filesystem of one file."""

    def __init__(self, data: bytes, **info: object) -> None:
        self.data = data
        self.more = info

    def info(self, path: str) -> dict[str, object]:
        return {"name": path, "size": len(self.data), "type": "file", **self.more}

    def cat_file(self, path: str, start: int, end: int) -> bytes:
        return self.data[start:end]

    def open(self, path: str, mode: str) -> Any:
        import io

        return io.BytesIO(self.data)


def identify(filesystem: Remote, name: str = "a.png") -> str:
    found = Identifier(Digests(), 1000).identify(item(RemoteFile(filesystem=filesystem, path=f"/{name}"), name))
    assert len(found.digest) == 64
    return found.digest


def test_remote_files_are_distinguished_by_what_their_filesystem_says():
    first = identify(Remote(PNG, ETag="x", LastModified="today"))
    assert identify(Remote(PNG, ETag="x", LastModified="tomorrow")) == first
    assert identify(Remote(PNG, ETag="y")) != first
    assert identify(Remote(PNG + b"!", ETag="x")) != first
    assert identify(Remote(PNG, ETag="x"), "b.png") != first


def test_a_remote_file_of_known_content_is_that_content():
    content = hashlib.sha256(PNG).hexdigest()
    assert identify(Remote(b"", lfs={"sha256": content})) == content
    assert identify(Remote(b"", lfs={"sha256": "../../x"}, blob_id="b")) != "../../x"


@pytest.mark.parametrize("data", [PNG, b"%PDF-1.7\n"])
def test_remote_files_of_which_nothing_is_known_are_fetched(data: bytes):
    found = Identifier(Digests(), 1000).identify(item(RemoteFile(filesystem=Remote(data), path="/a"), "a"))
    assert found.digest == hashlib.sha256(data).hexdigest()
    content = found.item.content
    assert (content if isinstance(content, bytes) else Path(str(content)).read_bytes()) == data
    table = identify(Remote(b"PAR1" + bytes(50)))
    assert table == identify(Remote(b"PAR1" + b"x" * 50))  # by address and size alone


def test_any_name_has_a_digest():
    assert text_digest("bad\udcff") != text_digest("bad")
