import os
from pathlib import Path

import pytest

from pagemill.errors import (
    MissingDependencyError,
    MissingInputError,
    NetworkError,
    UnreadableInputError,
    UnsupportedInputError,
)
from pagemill.installation import install_extra
from pagemill.sources.items import MAX_SUFFIXES, SkippedFiles, base_name, natural_key
from pagemill.sources.locate import expand, missing_inputs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("p10.png", "p2.png", "p1.pdf", "notes.txt", ".hidden.png", "sub/x.jpg", "sub/deep/y.TIF"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def names(*inputs: str | Path | bytes, recursive: bool = False) -> list[str]:
    return [item.name for item in expand(inputs, recursive=recursive)]


def test_folders_come_in_natural_order(folder: Path):
    assert names(folder) == ["p1.pdf", "p2.png", "p10.png"]
    assert names(folder, recursive=True) == ["p1.pdf", "p2.png", "p10.png", "y.TIF", "x.jpg"]


def test_globs(folder: Path):
    assert names(f"{folder}/*.png") == ["p2.png", "p10.png"]
    assert names(f"{folder}/**/*.[jT]*") == ["y.TIF", "x.jpg"]
    (item,) = expand([f"{folder}/*.webp"], recursive=False)
    assert isinstance(item.error, MissingInputError)


def test_a_name_with_brackets_that_exists_is_no_glob(tmp_path: Path):
    (tmp_path / "scan[1].png").touch()
    assert names(str(tmp_path / "scan[1].png")) == ["scan[1].png"]


def test_input_order_is_kept(folder: Path):
    assert names(folder / "p10.png", b"bytes", folder / "p1.pdf") == ["p10.png", "document", "p1.pdf"]


def test_what_is_missing_is_an_item_with_an_error(tmp_path: Path):
    first, second = expand([tmp_path / "none.pdf", tmp_path], recursive=False)
    assert isinstance(first.error, MissingInputError)
    assert isinstance(second.error, MissingInputError)
    assert "contains no document" in second.error.message
    assert "--recursive" in str(second.error.remedy)


def test_missing_inputs(folder: Path):
    """What exists in some way is left to reading: empty folders, broken links, URLs, bytes."""
    (folder / "empty").mkdir()
    (folder / "lost.png").symlink_to(folder / "gone")
    there = [folder, folder / "empty", str(folder / "*.png"), str(folder / "lo*.png"), b"x", "s3://bucket/x", "a\0b"]
    given = [*there, folder / "none.pdf", folder / "p1.pdf" / "x.pdf", str(folder / "*.webp")]
    assert list(missing_inputs(given)) == [str(each) for each in given[len(there) :]]


def test_a_null_byte_in_a_name_is_an_error_item():
    (item,) = expand(["a\0b.pdf"], recursive=False)
    assert item.error is not None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.pdf")
    (item,) = expand([tmp_path / "pipe.pdf"], recursive=False)
    assert isinstance(item.error, UnsupportedInputError)
    (tmp_path / "real.png").touch()
    assert names(tmp_path) == ["real.png"]


def test_linked_folders_are_not_followed(tmp_path: Path):
    (tmp_path / "a.png").touch()
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    for recursive, linked in ((True, [str(tmp_path / "loop")]), (False, [])):
        skipped = SkippedFiles()
        assert [item.name for item in expand([tmp_path], recursive=recursive, skipped=skipped)] == ["a.png"]
        assert (skipped.linked_folders, skipped.by_suffix) == (linked, {})


@pytest.mark.parametrize(
    ("pattern", "recursive", "found", "linked"),
    [
        ("**/*.png", False, ["a.png", "sub/b.png"], ["sub/up"]),
        ("**", False, ["a.png", "sub/b.png"], ["sub/up"]),
        ("**", True, ["a.png", "sub/b.png"], ["sub/up"]),
        ("**/**/*.png", True, ["a.png", "sub/b.png"], ["sub/up"]),
        ("sub/*", True, ["sub/b.png"], ["sub/up"]),
        ("sub/up/**/a.png", False, ["sub/up/a.png"], ["sub/up/sub/up"]),  # named links are read
        ("*/up", True, ["sub/up/a.png", "sub/up/sub/b.png"], ["sub/up/sub/up"]),
    ],
)
def test_patterns_do_not_follow_linked_folders(
    tmp_path: Path, pattern: str, recursive: bool, found: list[str], linked: list[str]
):
    (tmp_path / "sub").mkdir()
    for name in ("a.png", "sub/b.png"):
        (tmp_path / name).touch()
    (tmp_path / "sub" / "up").symlink_to(tmp_path, target_is_directory=True)
    skipped = SkippedFiles()
    items = list(expand([f"{tmp_path}/{pattern}"], recursive=recursive, skipped=skipped))
    assert [Path(item.uri).relative_to(tmp_path).as_posix() for item in items] == found
    assert [Path(name).relative_to(tmp_path).as_posix() for name in skipped.linked_folders] == linked


def test_a_broken_link_does_not_stop_a_folder(tmp_path: Path):
    (tmp_path / "a.png").symlink_to(tmp_path / "gone")
    (tmp_path / "b.png").touch()
    (tmp_path / "c.tex").symlink_to(tmp_path / "gone")
    for given in (tmp_path, str(tmp_path / "*")):
        lost, found = expand([given], recursive=False)
        assert (lost.name, type(lost.error), found.name) == ("a.png", MissingInputError, "b.png")
        assert "broken link" in str(lost.error)


def test_an_unreadable_folder_does_not_stop_its_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("a/1.png", "b/2.png", "c/3.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()

    def scandir(path: Path):
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied")
        return real(path)

    real = os.scandir
    monkeypatch.setattr("pagemill.sources.locate.os.scandir", scandir)
    items = list(expand([tmp_path], recursive=True))
    assert [item.name for item in items] == ["1.png", "b", "3.png"]
    assert isinstance(items[1].error, UnreadableInputError)
    assert "Permission denied" in items[1].error.message


@pytest.mark.parametrize("pattern", ["*/*.png", "**/*.png", "*/[0-9].png"])
def test_a_folder_that_a_pattern_cannot_look_into_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
):
    for name in ("a/1.png", "b/2.png", "c/3.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()

    def scandir(path: str | Path):
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied")
        return real(path)

    real = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    items = list(expand([str(tmp_path / pattern)], recursive=False))
    assert sorted(item.name for item in items) == ["1.png", "3.png", "b"]
    assert [type(item.error) for item in items if item.error] == [UnreadableInputError]


@pytest.mark.parametrize("pattern", ["", "/*.png"])
def test_a_remote_folder_that_cannot_be_listed_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
):
    from fsspec.implementations.local import LocalFileSystem

    def ls(self: LocalFileSystem, path: str, *arguments: object, **options: object):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(LocalFileSystem, "ls", ls)
    (item,) = expand([f"file://{tmp_path}{pattern}"], recursive=True)
    assert isinstance(item.error, NetworkError)
    assert "Permission denied" in item.error.message


def test_urls_of_unknown_or_missing_filesystems(monkeypatch: pytest.MonkeyPatch):
    (item,) = expand(["zzz://x/y.pdf"], recursive=False)
    assert isinstance(item.error, UnsupportedInputError)
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    (item,) = expand(["hf://datasets/owner/name"], recursive=False)
    assert isinstance(item.error, MissingDependencyError)
    assert item.error.remedy == f"Install it: {install_extra('hub')}"


@pytest.mark.parametrize(
    ("url", "package"),
    [("https://example.org/a.pdf", "aiohttp"), ("s3://bucket/a.pdf", "s3fs"), ("gs://bucket/a.pdf", "gcsfs")],
)
def test_the_error_of_a_missing_filesystem_names_the_package(url: str, package: str, monkeypatch: pytest.MonkeyPatch):
    modules = __import__("sys").modules
    for name in ("fsspec.implementations.http", "s3fs", "gcsfs"):
        monkeypatch.delitem(modules, name, raising=False)
    monkeypatch.setitem(modules, package, None)
    (item,) = expand([url], recursive=False)
    assert isinstance(item.error, MissingDependencyError)
    assert package in item.error.message
    assert "pip" in str(item.error.remedy)


def test_memory_filesystem():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/books/b10.pdf": b"x", "/books/b9.pdf": b"x", "/books/sub/c.png": b"x", "/books/readme.txt": b"x"})
    try:
        assert names("memory://books") == ["b9.pdf", "b10.pdf"]
        assert names("memory://books", recursive=True) == ["b9.pdf", "b10.pdf", "c.png"]
        assert names("memory://books/b*.pdf") == ["b9.pdf", "b10.pdf"]
        (item,) = expand(["memory://books/none.pdf"], recursive=False)
        assert isinstance(item.error, MissingInputError)
        memory.pipe({"/books/b [9].pdf": b"x"})
        assert names("memory://books/b [9].pdf") == ["b [9].pdf"]  # a file, and no pattern
    finally:
        memory.rm("/books", recursive=True)


def test_base_names():
    assert base_name("https://example.org/a/b.pdf?x=1/2") == "b.pdf"
    assert base_name("C:\\scans\\c.png") == "c.png"
    assert base_name("hf://datasets/o/n/") == "n"
    assert base_name("s3://bucket") == "bucket"


def test_natural_key_sorts_numbers_by_value():
    assert sorted(["a10", "a9", "b1", "10", "9", "A1"], key=natural_key) == ["9", "10", "A1", "a9", "a10", "b1"]


@pytest.fixture
def run_below(folder: Path) -> Path:
    """A folder with documents and, below them, the output of a run."""
    for name in ("out/.pagemill/ledger.sqlite", "out/crops/p1_1_0.png", "out/documents/p1.md", "out/copy.pdf"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_the_output_of_a_run_below_the_input_is_no_input(run_below: Path, monkeypatch: pytest.MonkeyPatch):
    everything = ["p1.pdf", "p2.png", "p10.png", "y.TIF", "x.jpg"]
    assert names(run_below, recursive=True) == everything
    assert names(f"{run_below}/*", recursive=True) == ["notes.txt", *everything]
    assert sorted(names(f"{run_below}/**/*.*")) == sorted([*everything, "notes.txt"])
    monkeypatch.chdir(run_below)
    assert names(".", recursive=True) == everything
    assert names("**/*.png") == ["p2.png", "p10.png"]


def test_what_the_user_names_in_a_run_is_read(run_below: Path, monkeypatch: pytest.MonkeyPatch):
    assert names(run_below / "out/crops") == ["p1_1_0.png"]
    assert names(f"{run_below}/out/crops/*.png") == ["p1_1_0.png"]
    assert names(run_below / "out/crops/p1_1_0.png") == ["p1_1_0.png"]
    monkeypatch.chdir(run_below / "out/crops")
    assert names("*.png") == ["p1_1_0.png"]


def test_documents_in_the_folder_that_a_run_writes_into_are_read(run_below: Path, monkeypatch: pytest.MonkeyPatch):
    assert names(run_below / "out", recursive=True) == ["copy.pdf"]
    assert names(f"{run_below}/out/*", recursive=True) == ["copy.pdf"]
    monkeypatch.chdir(run_below / "out")
    assert names(".", recursive=True) == ["copy.pdf"]
    assert names("**/*.p*") == ["copy.pdf"]


def skipped_in(*inputs: str | Path, recursive: bool = True) -> dict[str, int]:
    skipped = SkippedFiles()
    list(expand(inputs, recursive=recursive, skipped=skipped))
    return dict(skipped.by_suffix)


def test_files_of_other_kinds_in_folders_are_counted_by_suffix(folder: Path):
    for name in ("a.gif", "sub/b.GIF", "sub/c.pages", "README", ".hidden.gif"):
        (folder / name).touch()
    assert skipped_in(folder) == {".gif": 2, ".pages": 1, ".txt": 1, "no suffix": 1}
    assert skipped_in(folder, recursive=False) == {".gif": 1, ".txt": 1, "no suffix": 1}
    assert skipped_in(f"{folder}/s*") == {".gif": 1, ".pages": 1}
    assert skipped_in(f"file://{folder}") == {".gif": 2, ".pages": 1, ".txt": 1, "no suffix": 1}


def test_text_about_other_files_is_none_of_the_documents_of_a_folder(tmp_path: Path):
    for name in (
        "a/b.md",
        "a/c.csv",
        "a/page.html",
        "d/scan.png",
        "d/scan.txt",
        "d/e.docx",
        "f/x.pdf",
        "f/x.md",
        "f/y.md",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "README.md").touch()
    assert names(tmp_path, recursive=True) == ["b.md", "c.csv", "page.html", "e.docx", "scan.png", "x.pdf", "y.md"]
    assert names(tmp_path / "d/scan.txt") == ["scan.txt"]


def test_suffixes_that_are_counted_apart_are_bounded(tmp_path: Path):
    for number in range(MAX_SUFFIXES + 5):
        (tmp_path / f"x.{number}").touch()
    skipped = skipped_in(tmp_path)
    assert len(skipped) == MAX_SUFFIXES + 1
    assert skipped["other"] == 5


def test_what_a_run_writes_is_not_counted(run_below: Path):
    for name in ("run.json", "ocr_results.jsonl", "report.html", "scan.gif"):
        (run_below / "out" / name).touch()
    assert skipped_in(run_below) == {".txt": 1}


@pytest.mark.parametrize("head", [b"%PDF-1.7", b"\x89PNG\r\n\x1a\n", b"PAR1"])
def test_a_file_without_a_suffix_is_read_by_its_content(tmp_path: Path, head: bytes):
    (tmp_path / "scan").write_bytes(head)
    (tmp_path / "note").write_bytes(b"text")
    assert names(tmp_path) == ["scan"]
    assert skipped_in(tmp_path) == {"no suffix": 1}


def test_the_end_of_a_name_that_shows_no_kind_is_no_suffix(tmp_path: Path):
    scans = ["Contract v1.2 final", "Scan 2026.01.05", "scan.001", "scan.pdf "]
    for name in (*scans, "copy.bak", "music.mp3"):
        (tmp_path / name).write_bytes(b"%PDF-1.7")
    (tmp_path / "log.1").write_bytes(b"text")
    assert names(tmp_path) == scans
    assert skipped_in(tmp_path) == {".bak": 1, ".mp3": 1, ".1": 1}


def test_a_file_without_a_suffix_that_cannot_be_read_may_be_a_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "scan").write_bytes(b"%PDF-1.7")

    def refuse(*_: object, **__: object):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    skipped = SkippedFiles()
    (item,) = expand([tmp_path], recursive=False, skipped=skipped)
    assert isinstance(item.error, UnreadableInputError) and not skipped.by_suffix
