from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from synthetic_run import key_of, open_run, page, region, write, write_run

from pagemill.document.labels import Label
from pagemill.errors import InputError, PagemillError, UsageError
from pagemill.mcp import folder, local
from pagemill.mcp.documents import ParseState
from pagemill.mcp.folder import file_below
from pagemill.mcp.local import LocalDocuments
from pagemill.sources.options import PageRanges


async def nothing(_: object) -> None: ...


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "sub" / "mill.pdf").write_bytes(b"%PDF-")
    (tmp_path / "outside.pdf").write_bytes(b"%PDF-")
    return (tmp_path / "root").resolve()


def documents(root: Path) -> LocalDocuments:
    return LocalDocuments(root, root.parent / "cache")


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


def parsed(root: Path) -> str:
    """A document that was parsed earlier."""
    document = "0123456789abcdef01234567"
    run = root.parent / "cache" / "runs" / document
    pages = [page("mill", number, [region(0, Label.TEXT, f"Water wheel {number}.")]) for number in (1, 2)]
    write_run(run, pages)
    return document


async def test_pages_and_search_of_what_was_parsed_before(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = parsed(root)
    monkeypatch.setattr(local.RunReader, "source_addresses", lambda _: {"": str(root / "sub" / "mill.pdf")})
    async with documents(root) as service:
        numbers = [each.page_number async for each in service.pages(document, None)]
        assert numbers == [1, 2]
        numbers = [each.page_number async for each in service.pages(document, PageRanges.parse("2-"))]
        assert numbers == [2]
        hits = await service.search("wheel", document=None, languages=(), limit=5)
        assert [(hit.document, hit.page) for hit in hits] == [(document, 1), (document, 2)]
        assert hits[0].box is not None


async def test_a_document_that_was_cut_short_is_unfinished(root: Path) -> None:
    async with documents(root) as service:
        assert not await service.is_unfinished(parsed(root))
        with open_run(root.parent / "cache" / "runs" / ("f" * 24)) as run:
            write(run, page("mill", 1, []), 0)
            run.finish(interrupted=True, complete=False)
        assert await service.is_unfinished("f" * 24)


async def test_a_document_of_another_root_is_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = parsed(root)
    monkeypatch.setattr(local.RunReader, "source_addresses", lambda _: {"": str(root.parent / "outside.pdf")})
    async with documents(root) as service:
        with pytest.raises(UsageError, match="there is no document"):
            [each async for each in service.pages(document, None)]
        assert not await service.search("wheel", document=None, languages=(), limit=5)


@pytest.mark.parametrize("document", ["../../root", "", "f" * 24, "0123456789ABCDEF01234567"])
async def test_unknown_documents(root: Path, document: str) -> None:
    async with documents(root) as service:
        with pytest.raises(UsageError, match="there is no document"):
            [each async for each in service.pages(document, None)]


async def test_a_document_with_more_pages_than_are_parsed_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page("mill", 1, [])
    async with documents(root) as service:
        document = service._id(root / "sub" / "mill.pdf", "1-3 ")
        with open_run(root.parent / "cache" / "runs" / document) as run:
            write(run, first, 0)
            run.catalogue.counted(key_of(first).digest, key_of(first).copy, 5)
            run.finish(interrupted=False, complete=True)

        async def errors() -> list[str]:
            pages = PageRanges.parse("-3")
            found = await service.parse("sub/mill.pdf", pages=pages, languages=(), wait_s=0, tell=nothing)
            return found.errors

        assert await errors() == []
        monkeypatch.setattr(local, "MAX_PAGES", 1)
        assert await errors() == ["parsed only the first 1 of 3 pages; pass pages to parse others"]


async def test_what_the_command_says_reaches_the_caller(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; print('Error: no such engine', file=sys.stderr); sys.exit(6)"
    monkeypatch.setattr(local, "parse_command", lambda *_, **__: ([sys.executable, "-c", script], {}))
    async with documents(root) as service:
        with pytest.raises(PagemillError, match="no such engine") as error:
            await service.parse("sub/mill.pdf", pages=None, languages=(), wait_s=30, tell=nothing)
    assert error.value.exit_code == 6


async def test_a_long_document_goes_on_after_the_answer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import time; time.sleep(600)"
    monkeypatch.setattr(local, "parse_command", lambda *_, **__: ([sys.executable, "-c", script], {}))
    async with documents(root) as service:
        state = await service.parse("sub/mill.pdf", pages=None, languages=(), wait_s=0, tell=nothing)
        assert state.state is ParseState.PARSING
        with pytest.raises(UsageError, match="still being parsed"):
            [each async for each in service.pages(state.document, None)]
        with pytest.raises(UsageError, match="still being parsed"):
            await service.search("mill", document=state.document, languages=(), limit=5)
        (task,) = service._tasks.values()
    assert task.cancelled()  # the process with it, or this would wait for 600 s


def test_the_oldest_documents_are_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MAX_DOCUMENTS", 1)
    document = parsed(root)
    newer = root.parent / "cache" / "runs" / ("e" * 24)
    newer.mkdir()
    os.utime(newer.parent / document, (1, 1))
    documents(root)._forget_oldest()
    assert [each.name for each in newer.parent.iterdir()] == [newer.name]
    (newer.parent / "gone").symlink_to("nothing")  # as one that another process deletes at this moment
    documents(root)._forget_oldest()


def test_a_root_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        LocalDocuments(tmp_path / "nothing", tmp_path / "cache")


async def test_documents_and_files_are_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = parsed(root)
    monkeypatch.setattr(local.RunReader, "source_addresses", lambda _: {"": str(root / "sub" / "mill.pdf")})
    for name in ("a10.pdf", "a2.pdf", "notes.txt~", ".hidden.pdf"):
        (root / name).touch()
    (root / "out.pdf").symlink_to(root.parent / "outside.pdf")
    async with documents(root) as service:
        listed = await service.listed("")
        assert listed.files == ["a2.pdf", "a10.pdf", "sub/"]
        assert [(each.document, each.name, each.pages_finished) for each in listed.documents] == [
            (document, "mill.pdf", 2)
        ]
        assert (await service.listed("sub")).files == ["sub/mill.pdf"]
        monkeypatch.setattr(local, "MAX_FILES", 1)
        assert (await service.listed("")).files_left_out == 2
        for folder, message in (("..", "outside"), ("nowhere", "cannot be listed"), ("a2.pdf", "cannot be listed")):
            with pytest.raises(InputError, match=message):
                await service.listed(folder)


async def test_documents_of_another_folder_are_not_listed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed(root)
    monkeypatch.setattr(local.RunReader, "source_addresses", lambda _: {"": str(root.parent / "outside.pdf")})
    async with documents(root) as service:
        assert (await service.listed("")).documents == []


async def test_messages_keep_their_remedy_and_name_no_absolute_path(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"import sys; print('Error: {root}/sub/mill.pdf is locked\\n  Unlock it.', file=sys.stderr); sys.exit(5)"
    monkeypatch.setattr(local, "parse_command", lambda *_, **__: ([sys.executable, "-c", script], {}))
    async with documents(root) as service:
        with pytest.raises(PagemillError) as caught:
            await service.parse("sub/mill.pdf", pages=None, languages=(), wait_s=30, tell=nothing)
    assert (caught.value.message, caught.value.remedy) == ("sub/mill.pdf is locked", "Unlock it.")
