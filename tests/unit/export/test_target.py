import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pagemill.errors import NoSpaceError, OutputError
from pagemill.export.target import whole_file, whole_folder

MANIFEST: dict[str, Any] = {"generator": "pagemill", "format": "html"}


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def export_to(path: Path, *files: str, overwrite: bool = False) -> None:
    with whole_folder(path, overwrite=overwrite, manifest=MANIFEST) as folder:
        for name in files:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("x")


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.jsonl"
    with whole_file(target) as stream:
        stream.write(b"half")
        assert not target.exists()
    assert target.read_bytes() == b"half"
    assert names(tmp_path / "new") == ["a.jsonl"]


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_what_killed_exports_left_behind_goes(tmp_path: Path, dead: int) -> None:
    alive = os.getppid()
    for owner in (dead, os.getpid(), alive):
        (tmp_path / f"a.jsonl.{owner}.pagemill-tmp").write_text("half")
        (tmp_path / f"a.{owner}.pagemill-tmp").mkdir()
        (tmp_path / f"a.{owner}.pagemill-tmp" / "half").touch()
    (tmp_path / f"b.jsonl.{dead}.pagemill-tmp").write_text("of another export")
    (tmp_path / "a.jsonl.x.pagemill-tmp").write_text("not ours")
    with whole_file(tmp_path / "a.jsonl") as stream:
        stream.write(b"whole")
    export_to(tmp_path / "a", "1")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [
            *("a", "a.jsonl", f"a.{alive}.pagemill-tmp", f"a.jsonl.{alive}.pagemill-tmp"),
            *(f"b.jsonl.{dead}.pagemill-tmp", "a.jsonl.x.pagemill-tmp"),
        ]
    )


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with pytest.raises(RuntimeError), whole_file(target, overwrite=True) as stream:
        stream.write(b"new")
        raise RuntimeError
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_an_existing_file_is_kept_without_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "a"
    target.write_text("old")
    with pytest.raises(OutputError, match="exists already"), whole_file(target):
        pytest.fail("must not get here")
    with whole_file(target, overwrite=True) as stream:
        stream.write(b"new")
    assert target.read_text() == "new"


def test_a_file_does_not_replace_a_folder_nor_a_folder_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="is a directory"), whole_file(tmp_path / "folder", overwrite=True):
        pytest.fail("must not get here")
    with pytest.raises(OutputError, match="is a file"):
        export_to(tmp_path / "file", overwrite=True)


def test_a_full_disk_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    for whole in (whole_file(tmp_path / "a"), whole_folder(tmp_path / "b", manifest=MANIFEST)):
        with pytest.raises(NoSpaceError), whole:
            raise OSError(errno.ENOSPC, "No space left on device")
    assert names(tmp_path) == []


def test_a_folder_appears_whole_with_a_list_of_its_files(tmp_path: Path) -> None:
    target = tmp_path / "html"
    export_to(target, "index.html", "crops/a.jpg")
    assert json.loads((target / "export.json").read_text()) == {**MANIFEST, "files": ["crops/a.jpg", "index.html"]}
    assert names(tmp_path) == ["html", "html/crops", "html/crops/a.jpg", "html/export.json", "html/index.html"]


def test_a_failure_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "html"
    export_to(target, "old.html")
    with pytest.raises(RuntimeError), whole_folder(target, overwrite=True, manifest=MANIFEST) as folder:
        (folder / "new.html").write_text("x")
        raise RuntimeError
    assert names(tmp_path) == ["html", "html/export.json", "html/old.html"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    export_to(tmp_path / "html", "a.html")
    assert names(tmp_path / "html") == ["a.html", "export.json"]


def test_an_earlier_export_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "html"
    export_to(target, "old.html")
    with pytest.raises(OutputError, match="exists already"):
        export_to(target, "new.html")
    export_to(target, "new.html", overwrite=True)
    assert names(tmp_path) == ["html", "html/export.json", "html/new.html"]


@pytest.mark.parametrize("manifest", [None, "{", '{"generator": "other", "files": ["mine.txt"]}', "[]"])
def test_a_folder_that_no_export_wrote_is_never_replaced(tmp_path: Path, manifest: str | None) -> None:
    target = tmp_path / "thesis"
    target.mkdir()
    (target / "mine.txt").write_text("x")
    if manifest is not None:
        (target / "export.json").write_text(manifest)
    with pytest.raises(OutputError, match="which no export wrote"):
        export_to(target, "a.html", overwrite=True)
    assert (target / "mine.txt").exists()


def test_a_file_that_was_put_into_an_export_is_not_deleted(tmp_path: Path) -> None:
    target = tmp_path / "html"
    export_to(target, "a.html", "crops/a.jpg")
    (target / "crops" / "notes.txt").write_text("x")
    with pytest.raises(OutputError, match=r"crops/notes\.txt"):
        export_to(target, "a.html", overwrite=True)
    assert (target / "crops" / "notes.txt").exists()


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OutputError, match="not a regular file"), whole_file(tmp_path / "pipe", overwrite=True):
        pass
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", [".", ".."])
def test_the_current_directory_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "empty" / "empty").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "empty" / "empty")
    with pytest.raises(OutputError, match="current directory"):
        export_to(Path(name), "1")
    assert names(tmp_path) == ["empty", "empty/empty"]


def test_a_link_to_a_folder_is_not_ours(tmp_path: Path) -> None:
    export_to(tmp_path / "a", "1")
    (tmp_path / "a" / "link").symlink_to(tmp_path)
    with pytest.raises(OutputError, match="link, which no export wrote"):
        export_to(tmp_path / "a", "1", overwrite=True)
