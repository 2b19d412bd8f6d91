"""Streams of several invocations: what ended is not given again, nothing is left out, ids stay."""

import asyncio
import hashlib
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from invocations import Pdfs, RememberingCatalogue, image, pdf, read, shard, write

from pagemill.document.identity import PageKey
from pagemill.errors import NoSpaceError, OutputError
from pagemill.sources import PageRanges
from pagemill.sources.base import PageRef


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Inputs, and the same ones moved to files of other names; copies, equal names and broken files among them."""
    folder, moved = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("moved")
    paths = [
        pdf(folder / "a" / "report.pdf", 3),
        pdf(folder / "b" / "report.pdf", 1),
        pdf(folder / "copy.pdf", 3),
        pdf(folder / "report_2.pdf", 2),
        write(folder / "photo.png", image(1)),
        write(folder / "Photo.jpg", image(2, "JPEG")),
        write(folder / "fax.tif", image(3, "TIFF", frames=4)),
        write(folder / "named.png", image(4, "TIFF", frames=3)),
        shard(folder / "train-0.parquet", ["law_1", "law_2", None, "report_2", "law_1"]),
        shard(folder / "train-1.parquet", ["law_3", "budget"], 1),
        write(folder / "empty.png", b""),
        write(folder / "noise.bin", b"noise"),
    ]
    others = []
    for number, path in enumerate(paths):
        others.append(moved / f"moved-{number}{path.suffix}")
        shutil.copy2(path, others[-1])
    return {"paths": [*paths, folder / "missing.pdf"], "moved": [*others, folder / "missing.pdf"]}


SELECTIONS = st.sampled_from([None, "1", "2-", "2-3"])
PICKS = st.lists(st.integers(0, 12), max_size=7)


def options_of(selection: str | None, limit: int | None = None) -> dict[str, object]:
    return {"pages": selection and PageRanges.parse(selection), "limit": limit}


def sit_through(catalogue: RememberingCatalogue, refs: list[PageRef], data: st.DataObject) -> set[PageKey]:
    """End some of the pages that were given, and leave others waiting; the keys of those that ended."""
    fates = data.draw(st.lists(st.integers(0, 3), min_size=len(refs), max_size=len(refs)))
    for ref, fate in zip(refs, fates, strict=True):
        if fate < 2:
            catalogue.end(ref)
        else:
            catalogue.postpone(ref, attempts=fate - 2)
    return {ref.key for ref, fate in zip(refs, fates, strict=True) if fate < 2 and ref.key.page}


@given(picks=PICKS, selection=SELECTIONS, limit=st.none() | st.integers(1, 12), data=st.data())
async def test_an_interrupted_run_gives_what_an_undisturbed_one_gives(
    corpus: dict[str, list[Path]], picks: list[int], selection: str | None, limit: int | None, data: st.DataObject
):
    inputs, options = [corpus["paths"][pick] for pick in picks], options_of(selection, limit)
    whole, _ = await read(inputs, RememberingCatalogue(), **options)
    expected = {ref.key: (ref.page_id, ref.document.doc_id, ref.position) for ref in whole}
    assert len(expected) == len(whole)

    catalogue, ended = RememberingCatalogue(), set[PageKey]()
    for first in (data.draw(st.integers(0, len(whole))), data.draw(st.integers(0, len(whole))), None):
        pdfs = Pdfs()
        refs, source = await read(inputs, catalogue, pdfs=pdfs, first=first, **options)
        found = {ref.key: (ref.page_id, ref.document.doc_id, ref.position) for ref in refs}
        assert len(found) == len(refs)
        assert found.items() <= expected.items()
        assert not found.keys() & ended
        for ref in refs:
            if (count := ref.document.page_count) is not None and ref.key.page:
                pages = [key for key in expected if key[::2] == ref.key[::2] and key.page]
                assert count == len(pages)
                assert ref.document.finished == len(ended & set(pages))
        if first is None:
            assert found.keys() | ended == expected.keys()
            assert source.skipped_earlier == len(ended)
            assert source.total == len(expected)
            assert source.complete == (limit is None or limit > len(expected))
        ended |= sit_through(catalogue, refs, data)


@given(picks=PICKS, order=st.randoms(use_true_random=False), selection=SELECTIONS, data=st.data())
async def test_moved_and_reordered_inputs_are_the_same_pages(
    corpus: dict[str, list[Path]], picks: list[int], order: object, selection: str | None, data: st.DataObject
):
    options = options_of(selection)
    whole, _ = await read([corpus["paths"][pick] for pick in picks], RememberingCatalogue(), **options)
    catalogue = RememberingCatalogue()
    given_first = data.draw(st.integers(0, len(whole)))
    met, _ = await read([corpus["paths"][pick] for pick in picks], catalogue, first=given_first, **options)
    ended = sit_through(catalogue, met, data)
    again = [*picks]
    order.shuffle(again)  # type: ignore[attr-defined]
    refs, source = await read([corpus["moved"][pick] for pick in again], catalogue, **options)
    assert Counter([ref.key for ref in refs] + list(ended)) == Counter(ref.key for ref in whole)
    assert [ref.position for ref in refs] == sorted({ref.position for ref in refs})
    assert source.skipped_earlier == len(ended)
    assert source.total == len(whole)
    ids = {ref.key: ref.page_id for ref in met}
    assert all(ref.page_id == ids[ref.key] for ref in refs if ref.key in ids)
    names = [ref.page_id.casefold() for ref in refs] + [ids[key].casefold() for key in ended]
    assert len(set(names)) == len(names)


def overwrite_unnoticed(path: Path) -> None:
    """Spoil a file without changing its size or time of modification: whoever opens it finds junk."""
    write(path, b"\0" * path.stat().st_size)


async def end_all(inputs: Sequence[str | Path | bytes], **options: object) -> RememberingCatalogue:
    catalogue = RememberingCatalogue()
    refs, _ = await read(inputs, catalogue, **options)
    for ref in refs:
        catalogue.end(ref)
    return catalogue


@pytest.mark.parametrize("selection", [None, "2-3", "1"])
async def test_files_that_have_ended_are_not_opened(tmp_path: Path, selection: str | None):
    paths = [
        pdf(tmp_path / "a.pdf", 5),
        write(tmp_path / "b.png", image(1)),
        write(tmp_path / "c.tif", image(2, "TIFF", frames=3)),
        shard(tmp_path / "d.parquet", ["x_1", "x_2", "x_3"]),
        pdf(tmp_path / "last.pdf", 3),
    ]
    options = options_of(selection)
    catalogue = await end_all(paths[:-1], **options)
    for path in paths[:-1]:
        overwrite_unnoticed(path)
    pdfs = Pdfs()
    refs, source = await read(paths, catalogue, pdfs=pdfs, **options)
    assert {ref.document.doc_id for ref in refs} == {"last"}
    assert set(pdfs.opened) == {"last.pdf"}
    assert source.total == source.skipped_earlier + len(refs)


async def test_what_ended_is_passed_over_on_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(100):
        write(tmp_path / f"{number}.png", image(1))
    catalogue = await end_all([tmp_path])
    hops = []
    real = asyncio.to_thread

    async def counted(*args: Any, **kwargs: Any) -> Any:
        hops.append(args)
        return await real(*args, **kwargs)

    monkeypatch.setattr("pagemill.sources.stream.asyncio.to_thread", counted)
    refs, source = await read([tmp_path], catalogue)
    assert not refs
    assert source.skipped_earlier == source.total == 100
    assert source.complete
    assert len(hops) == 1


async def test_a_partly_ended_document_says_how_far_it_is(tmp_path: Path):
    path = pdf(tmp_path / "a.pdf", 5)
    catalogue = RememberingCatalogue()
    refs, _ = await read([path], catalogue)
    for ref in (refs[0], refs[2]):
        catalogue.end(ref)
    catalogue.postpone(refs[3], attempts=2, death="SIGSEGV")
    refs, _ = await read([path], catalogue, limit=4)
    assert [(ref.page_id, ref.position, ref.attempts, ref.death) for ref in refs] == [
        ("a_2", 1, 0, None),
        ("a_4", 3, 2, "SIGSEGV"),
    ]
    assert (refs[0].document.page_count, refs[0].document.finished) == (4, 2)


async def test_row_groups_that_have_ended_are_not_decoded(tmp_path: Path):
    path = shard(tmp_path / "a.parquet", [f"x_{number}" for number in range(1, 9)])
    catalogue = RememberingCatalogue()
    refs, _ = await read([path], catalogue)
    for ref in refs:
        if ref.key.page in (1, 2, 3, 4, 6):
            catalogue.end(ref)
    with pq.ParquetFile(path) as file:
        end = file.metadata.row_group(2).column(0).dictionary_page_offset
    data = path.read_bytes()
    write(path, data[:4] + b"\0" * (end - 4) + data[end:])
    refs, source = await read([path], catalogue)
    assert [(ref.page_id, ref.position) for ref in refs] == [("x_5", 4), ("x_7", 6), ("x_8", 7)]
    assert source.skipped_earlier == 5


async def test_a_dataset_keeps_its_documents_when_its_first_shard_has_ended(tmp_path: Path):
    first = shard(tmp_path / "a.parquet", ["law_1", "law_2"])
    shard(tmp_path / "b.parquet", ["law_3", "law_4"])
    catalogue = RememberingCatalogue()
    refs, _ = await read([tmp_path], catalogue, first=3)
    for ref in refs:
        catalogue.end(ref)
    refs, _ = await read([tmp_path], catalogue)
    assert [(ref.page_id, ref.document.doc_id) for ref in refs] == [("law_4", "law")]
    catalogue.begin()
    refs, _ = await read([first, tmp_path / "b.parquet"], RememberingCatalogue())
    assert [ref.document.doc_id for ref in refs] == ["law", "law", "law-2", "law-2"]  # two inputs, two datasets


async def test_a_changed_file_is_another_source_at_the_same_address(tmp_path: Path):
    path = pdf(tmp_path / "a.pdf", 2)
    catalogue = await end_all([path])
    pdf(path, 3, "longer")
    refs, source = await read([path], catalogue)
    assert [ref.key.page for ref in refs] == [1, 2, 3]
    assert source.skipped_earlier == 0
    assert catalogue.calls == [(refs[0].key.digest, str(path))]
    assert refs[0].key.digest == hashlib.sha256(path.read_bytes()).hexdigest()


async def test_every_source_is_met_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    paths = [pdf(tmp_path / "b.pdf", 2), pdf(tmp_path / "a.pdf", 1), tmp_path / "none.pdf"]
    catalogue = await end_all(paths)
    monkeypatch.chdir(tmp_path)
    refs, _ = await read([path.name for path in paths], catalogue)
    assert [uri for _, uri in catalogue.calls] == [str(path) for path in paths]
    (ref,) = refs  # what cannot be read is tried again, under the id that it had
    assert (ref.page_id, ref.key.page, ref.position) == ("none", 0, 3)


async def test_copies(tmp_path: Path):
    first, second = pdf(tmp_path / "a.pdf", 2), pdf(tmp_path / "b.pdf", 2)
    refs, _ = await read([first, second], RememberingCatalogue())
    assert [(ref.key.page, ref.key.copy, ref.skip) for ref in refs] == [
        (1, 1, None),
        (2, 1, None),
        (1, 2, None),
        (2, 2, None),
    ]
    refs, _ = await read([first, second, b"junk", b"junk"], RememberingCatalogue(), skip_duplicates=True)
    assert [ref.page_id for ref in refs] == ["a_1", "a_2", "b_1", "b_2", "document", "document-2"]
    assert [ref.skip for ref in refs[:4]] == [None, None, *[f"duplicate of {first}"] * 2]
    assert refs[2].payload is refs[2].error is None
    assert all(ref.skip is None and ref.error for ref in refs[4:])


async def test_the_first_file_of_an_invocation_is_no_duplicate(tmp_path: Path):
    first, second, third = (pdf(tmp_path / name, 1) for name in ("a.pdf", "b.pdf", "c.pdf"))
    catalogue = RememberingCatalogue()
    await read([first, second, third], catalogue, skip_duplicates=True)
    refs, _ = await read([second, third], catalogue, skip_duplicates=True)
    assert [(ref.key.copy, ref.skip) for ref in refs] == [(2, None), (3, f"duplicate of {second}")]


async def test_a_catalogue_that_fails_ends_the_stream(tmp_path: Path):
    class Full(RememberingCatalogue):
        def page_id(self, wanted: str) -> str:
            raise NoSpaceError("the disk is full")

    class Lost(RememberingCatalogue):
        def remembered_digest(self, path: Path, size: int, modified_ns: int) -> str | None:
            raise OutputError("the ledger is gone")

    for catalogue in (Full(), Lost()):
        with pytest.raises(OutputError):
            await read([pdf(tmp_path / "a.pdf", 2)], catalogue)


async def test_the_limit_ends_within_rows_that_have_ended(tmp_path: Path):
    path = shard(tmp_path / "a.parquet", [f"x_{number}" for number in range(1, 9)])
    catalogue = RememberingCatalogue()
    refs, _ = await read([path], catalogue, first=4)  # nobody has counted its rows
    for ref in refs:
        catalogue.end(ref)
    refs, source = await read([path], catalogue, limit=3)
    assert (refs, source.skipped_earlier, source.total, source.complete) == ([], 3, 3, False)


@pytest.mark.parametrize("selection", [None, "2-"])
async def test_remote_files_that_have_ended_are_not_fetched(
    tmp_path: Path, selection: str | None, monkeypatch: pytest.MonkeyPatch
):
    import fsspec

    memory = fsspec.filesystem("memory")
    table = shard(tmp_path / "c.parquet", ["x_1", "x_2"]).read_bytes()
    memory.pipe({"/in/a.pdf": b"%PDF-1.7\n3\n", "/in/b.png": image(1), "/in/c.parquet": table})
    options = options_of(selection)
    try:
        catalogue = await end_all(["memory://in"], **options)
        with monkeypatch.context() as patched:
            for fetching in ("stream.copy_to_disk", "pages.read_all", "tables.read_rows", "digest.read_all"):
                patched.delattr(f"pagemill.sources.{fetching}")
            if selection is None:  # else the first bytes tell whether it is heeded
                patched.setattr(type(memory), "open", None)
            refs, source = await read(["memory://in"], catalogue, **options)
        memory.pipe({"/in/b.png": b"new"})
        changed, _ = await read(["memory://in"], catalogue, **options)
    finally:
        memory.rm("/in", recursive=True)
    assert not refs
    assert source.skipped_earlier == (6 if selection is None else 5)
    assert [(ref.key.page, ref.document.uri) for ref in changed] == [(0, "memory://in/b.png")]


async def test_a_count_that_fails_costs_no_page(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: object) -> None:  # at its first step: the stream may end before a thread has started to count
        raise RuntimeError("defect")

    monkeypatch.setattr("pagemill.sources.stream.InputStream._count", broken)
    refs, source = await read([pdf(tmp_path / "a.pdf", 2)], RememberingCatalogue())
    assert len(refs) == source.total == 2
    assert "could not be counted" in caplog.text
