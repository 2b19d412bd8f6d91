import os
from pathlib import Path

import pytest

from pagemill.errors import InputError, UsageError
from pagemill.mcp import folder
from pagemill.mcp.folder import entries_of, file_below, folder_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "sub" / "mill.pdf").write_bytes(b"%PDF-")
    (tmp_path / "outside.pdf").write_bytes(b"%PDF-")
    return (tmp_path / "root").resolve()


@pytest.mark.parametrize("name", ["sub/mill.pdf", "sub/../sub/mill.pdf", "ABSOLUTE", "link.pdf"])
def test_files_below_the_root(root: Path, name: str) -> None:
    (root / "link.pdf").symlink_to(root / "sub" / "mill.pdf")
    name = name.replace("ABSOLUTE", str(root / "sub" / "mill.pdf"))
    assert file_below(root, name) == root.resolve() / "sub" / "mill.pdf"


@pytest.mark.parametrize(
    "name",
    [
        "../outside.pdf",
        "sub/../../outside.pdf",
        "/etc/passwd",
        "../not-there.pdf",
        "link.pdf",
        "folder/outside.pdf",
        "../root-2/mill.pdf",
    ],
)
def test_no_file_outside_the_root(root: Path, name: str) -> None:
    """A file that is outside is refused in the same words as one that does not exist there."""
    (root / "link.pdf").symlink_to(root.parent / "outside.pdf")
    (root / "folder").symlink_to(root.parent)
    (root.parent / "root-2").mkdir()
    (root.parent / "root-2" / "mill.pdf").touch()
    with pytest.raises(InputError, match="outside the folder that may be read"):
        file_below(root, name)


@pytest.mark.parametrize("name", ["nothing.pdf", "a\0b", "loop", "x" * 5000])
def test_names_of_nothing(root: Path, name: str) -> None:
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(InputError, match="cannot be opened"):
        file_below(root, name)


def test_neither_folders_nor_pipes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(InputError, match="is a folder") as error:
        file_below(root, "sub")
    assert "mill.pdf" in str(error.value.remedy)
    with pytest.raises(InputError, match="is not a file"):
        file_below(root, "pipe")
    monkeypatch.setattr(folder, "MAX_BYTES", 4)
    with pytest.raises(InputError, match="GiB"):
        file_below(root, "sub/mill.pdf")


def test_a_root_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        folder_of(tmp_path / "nothing")


def test_documents_and_folders_are_listed_in_natural_order(root: Path) -> None:
    for name in ("a10.pdf", "a2.pdf", "notes.txt~", ".hidden.pdf"):
        (root / name).touch()
    (root / "out.pdf").symlink_to(root.parent / "outside.pdf")
    assert entries_of(root, "") == ["a2.pdf", "a10.pdf", "sub/"]
    assert entries_of(root, "sub") == ["sub/mill.pdf"]
    for name, message in (("..", "outside"), ("nowhere", "cannot be listed"), ("a2.pdf", "cannot be listed")):
        with pytest.raises(InputError, match=message):
            entries_of(root, name)
