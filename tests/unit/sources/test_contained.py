"""Documents inside of archives and of mail, each of them an input of its own."""

import io
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from pagemill.errors import CorruptInputError, EncryptedError, MissingInputError, TooLargeError
from pagemill.readers.containers import Budget
from pagemill.sources import contained
from pagemill.sources.items import Item, SkippedFiles
from pagemill.sources.locate import expand


def archive(**members: str | bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        for name, text in members.items():
            made.writestr(name, text)
    return data.getvalue()


def message() -> bytes:
    made = EmailMessage()
    made["Subject"] = "a"
    made.set_content("text")
    made.add_attachment(b"a,b\n", maintype="text", subtype="csv", filename="t.csv")
    return bytes(made)


def found(path: Path | str, skipped: SkippedFiles | None = None) -> list[Item]:
    return list(expand([str(path)], recursive=False, skipped=skipped))


def test_an_archive_is_the_documents_in_it(tmp_path: Path):
    path, skipped = tmp_path / "a.zip", SkippedFiles()
    names = {"../../up.txt": "up", "sub/b.md": "# b", ".hidden.txt": "", "__MACOSX/c.txt": "", "run.exe": "", "d/": ""}
    path.write_bytes(archive(**names, **{"m.eml": message(), "c.zip": archive(**{"d.txt": "deep"})}))
    items = found(path, skipped)
    assert [(item.uri.removeprefix(str(tmp_path)), item.name) for item in items] == [
        ("/a.zip#../../up.txt", "up.txt"),
        ("/a.zip#sub/b.md", "b.md"),
        ("/a.zip#m.eml", "m.eml"),
        ("/a.zip#m.eml#t.csv", "t.csv"),
        ("/a.zip#c.zip#d.txt", "d.txt"),
    ]
    assert items[0].content == b"up"
    assert dict(skipped.by_suffix) == {".exe": 1}
    assert [item.uri for item in found(items[3].uri)] == [items[3].uri]


def test_what_cannot_be_unpacked_is_an_error_of_its_own(tmp_path: Path):
    data = bytearray(archive(**{"good.txt": "good", "bad.txt": "text to damage"}))
    data[data.index(b"text to damage")] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    good, bad = found(tmp_path / "a.zip")
    assert good.content == b"good" and good.error is None
    assert isinstance(bad.error, CorruptInputError) and "bad.txt" in bad.error.message


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"PK\x03\x04 no archive", CorruptInputError),
        (archive(), MissingInputError),
        (archive(a=b"\1"), MissingInputError),
    ],
)
def test_an_archive_without_documents_is_a_failure(tmp_path: Path, data: bytes, error: type[Exception]):
    (tmp_path / "a.zip").write_bytes(data)
    assert [type(item.error) for item in found(tmp_path / "a.zip")] == [error]


def test_encrypted_members_are_named(tmp_path: Path):
    data = bytearray(archive(**{"a.txt": "text"}))
    data[6] |= 1  # the flag in the member's head, and in the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    assert [type(item.error) for item in found(tmp_path / "a.zip")] == [EncryptedError]


def test_archives_in_archives_share_their_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    inner = archive(**{f"{number}.txt": "x" * 100 for number in range(10)})
    (tmp_path / "a.zip").write_bytes(archive(**{f"{number}.zip": inner for number in range(10)}))
    monkeypatch.setattr(contained, "Budget", lambda: Budget(files=25))
    items = found(tmp_path / "a.zip")
    assert isinstance(items[-1].error, TooLargeError) and len(items) < 30
    monkeypatch.setattr(contained, "Budget", lambda: Budget(size=5000))
    assert isinstance(found(tmp_path / "a.zip")[-1].error, TooLargeError)


def test_an_archive_that_holds_itself_ends(tmp_path: Path):
    data = archive(**{"a.txt": "text"})
    for _ in range(9):
        data = archive(**{"a.zip": data})
    (tmp_path / "a.zip").write_bytes(data)
    (item,) = found(tmp_path / "a.zip")
    assert isinstance(item.error, TooLargeError)


def test_an_office_file_under_the_name_of_an_archive_is_read_as_such(tmp_path: Path):
    (tmp_path / "a.zip").write_bytes(archive(**{"[Content_Types].xml": "", "word/document.xml": ""}))
    (item,) = found(tmp_path / "a.zip")
    assert item.content == tmp_path / "a.zip" and item.error is None


@pytest.mark.parametrize("kind", ["[Content_Types].xml", "other.bin"])
def test_documents_beside_the_parts_of_an_office_file_are_read(tmp_path: Path, kind: str):
    (tmp_path / "a.zip").write_bytes(archive(**{kind: "", "xl/workbook.xml": "", "a.txt": "text"}))
    path = tmp_path / "a.zip"
    assert len(list(expand([path.read_bytes()], recursive=False))) == len(found(path))
    names = [item.name for item in found(path)]
    assert names == ["a.zip"] * (kind != "other.bin") + ["a.txt"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_with_odd_names_are_read_and_each_has_its_address(tmp_path: Path):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as made:
        for name in ("a.txt", "a.txt", "a (2).txt", "folder.txt/", "..notes.txt"):
            made.writestr(name, name)
    (tmp_path / "a.zip").write_bytes(data.getvalue())
    items = found(tmp_path / "a.zip")
    names = ["a.txt", "a (2).txt", "a (2) (2).txt", "folder.txt/", "..notes.txt"]
    assert [item.uri.partition("#")[2] for item in items] == names
    assert [item.uri for item in found(items[1].uri)] == [items[1].uri]


def test_the_first_of_two_joined_archives_is_not_lost_silently(tmp_path: Path):
    (tmp_path / "a.zip").write_bytes(archive(**{"a.txt": "one"}) + archive(**{"b.txt": "two"}))
    second, problem = found(tmp_path / "a.zip")
    assert second.content == b"two" and isinstance(problem.error, CorruptInputError)
