import asyncio
import gc
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from PIL import Image

from pagemill.document.catalogue import Catalogue
from pagemill.document.identity import KnownSource
from pagemill.errors import EncryptedError, ExitCode, error_class
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo, PdfRepair
from pagemill.sources import PageRanges, SourceOptions
from pagemill.sources.base import EncodedImage, PageRef, PdfPage
from pagemill.sources.stream import MAX_PDFS, InputStream
from pagemill.sources.tables import read_rows

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


class Probe:
    """Says that each PDF has as many pages as its second line states."""

    limits = DecodeLimits()

    def __init__(self) -> None:
        self.opened: list[str] = []

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        self.opened.append(path.name)
        word = path.read_bytes().split(b"\n")[1]
        if word == b"secret" and password != "sesame":
            raise EncryptedError(f"{path.name} is encrypted", remedy="Give its password.")
        count = 2 if word == b"secret" else int(word)
        return PdfInfo(page_count=count, sizes=((595.0, 842.0),), metadata={"title": "T", "producer": "P"})

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        raise EncryptedError("its password is not known")


def png(size: tuple[int, int] = (20, 10)) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", size).save(buffer, "PNG")
    return buffer.getvalue()


def pdf(path: Path, word: str | int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(f"%PDF-1.7\n{word}\n".encode())
    return path


def code(ref: PageRef) -> ExitCode:
    assert ref.error is not None
    return error_class(ref.error.category).exit_code


async def take(*inputs: str | Path | bytes, probe: Probe | None = None, **options: object) -> list[PageRef]:
    source = InputStream(inputs, options=SourceOptions(**options), decoder=probe or Probe())  # type: ignore[arg-type]
    refs = [ref async for ref in source.pages()]
    assert source.total == len(refs)
    assert [ref.position for ref in refs] == list(range(len(refs)))
    assert len({ref.key for ref in refs}) == len(refs)
    assert source.complete == (options.get("limit") != len(refs))
    ids = [ref.page_id.casefold() for ref in refs]
    assert len(set(ids)) == len(ids)
    assert all((ref.payload is None) == (ref.error is not None) for ref in refs)
    return refs


async def test_pages_of_pdfs_in_order(tmp_path: Path):
    refs = await take(pdf(tmp_path / "b.pdf", 2), pdf(tmp_path / "a.pdf", 1))
    assert [ref.page_id for ref in refs] == ["b_1", "b_2", "a_1"]
    assert [ref.document.page_count for ref in refs] == [2, 2, 1]
    assert isinstance(refs[1].payload, PdfPage)
    assert refs[1].payload.page_index == 1
    assert refs[1].estimated_bytes == 1653 * 2339 * 3
    assert refs[0].metadata == {"title": "T"}


async def test_page_ranges(tmp_path: Path):
    path = pdf(tmp_path / "a.pdf", 5)
    refs = await take(path, pages=PageRanges.parse("2,4-"))
    assert [ref.page_number for ref in refs] == [2, 4, 5]
    assert refs[0].document.page_count == 3
    (ref,) = await take(path, pages=PageRanges.parse("9-"))
    assert ref.error is not None
    assert "has 5 pages, none of them in 9-" in ref.error.message


async def test_nothing_is_opened_before_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pagemill.sources.stream.MAX_PDFS", 0)
    for number in range(50):
        pdf(tmp_path / f"{number}.pdf", 1_000_000)
    probe = Probe()
    pages = InputStream([tmp_path], options=SourceOptions(), decoder=probe).pages()
    first = await anext(pages)
    assert first.page_id == "0_1"
    assert probe.opened == ["0.pdf"]
    await pages.aclose()  # type: ignore[attr-defined]


async def test_the_limit_ends_the_stream(tmp_path: Path):
    refs = await take(pdf(tmp_path / "a.pdf", 1000), limit=3)
    assert len(refs) == 3


async def test_duplicate_and_hostile_stems(tmp_path: Path):
    paths = [pdf(tmp_path / folder / "Report.pdf", 1) for folder in ("x", "y")]
    paths.append(pdf(tmp_path / "z" / "report.PDF", 1))
    paths.append(pdf(tmp_path / "..hidden..pdf", 1))
    refs = await take(*paths)
    assert [ref.document.doc_id for ref in refs] == ["Report", "Report-2", "report-3", "hidden"]


async def test_bad_inputs_do_not_stop_the_good_ones(tmp_path: Path):
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.pdf").write_text("hello\n1")
    (tmp_path / "cut.png").write_bytes(png()[:20])
    refs = await take(
        tmp_path / "none.pdf",
        tmp_path / "empty.png",
        tmp_path / "cut.png",
        b"junk",
        pdf(tmp_path / "locked.pdf", "secret"),
        "zzz://nowhere/x.pdf",
        pdf(tmp_path / "good.pdf", 1),
    )
    found = [(ref.page_id, ref.error.category if ref.error else None) for ref in refs]
    assert found == [
        ("none", "missing"),
        ("empty", "corrupt"),
        ("cut", "corrupt"),
        ("document", "unsupported"),
        ("locked", "encrypted"),
        ("x", "unsupported"),
        ("good_1", None),
    ]
    for ref in refs[:-1]:
        assert ref.page_number is None
        assert ref.document.page_count == 1
        assert ref.error is not None
        assert ref.error.component == "source"
        assert ref.error.remedy
    assert code(refs[4]) == ExitCode.ENCRYPTED


async def test_the_password_travels(tmp_path: Path):
    refs = await take(pdf(tmp_path / "locked.pdf", "secret"), password="sesame")
    assert len(refs) == 2
    assert isinstance(refs[0].payload, PdfPage)
    assert refs[0].payload.password == "sesame"
    assert "sesame" not in repr(refs[0])


async def test_content_decides_not_the_name(tmp_path: Path):
    (tmp_path / "photo.pdf").write_bytes(png())
    (ref,) = await take(tmp_path / "photo.pdf")
    assert isinstance(ref.payload, EncodedImage)


async def test_frames_of_a_tiff(tmp_path: Path):
    frames = [Image.new("1", (8, 8)) for _ in range(4)]
    frames[0].save(tmp_path / "fax.tif", save_all=True, append_images=frames[1:])
    refs = await take(tmp_path / "fax.tif", pages=PageRanges.parse("2-3"))
    assert [(ref.page_id, ref.payload.frame) for ref in refs] == [("fax_2", 1), ("fax_3", 2)]  # type: ignore[union-attr]
    (ref,) = await take(tmp_path / "fax.tif", limit=1)
    assert ref.payload.source == tmp_path / "fax.tif"  # type: ignore[union-attr]


async def test_a_page_of_a_tiff_that_is_too_large_leaves_the_others(tmp_path: Path):
    sizes = [(300, 300), (20, 10)]
    first, second = (Image.new("L", size) for size in sizes)
    first.save(tmp_path / "a.tif", save_all=True, append_images=[second])
    probe = Probe()
    probe.limits = DecodeLimits(max_stored_pixels=1000)
    refs = await take(tmp_path / "a.tif", probe=probe)
    assert [ref.error for ref in refs] == [None, None]


async def test_bytes(tmp_path: Path):
    refs = await take(png(), b"%PDF-1.7\n2\n")
    assert [ref.page_id for ref in refs] == ["document_1", "document-2_1", "document-2_2"]
    payload = refs[1].payload
    assert isinstance(payload, PdfPage)
    copy = payload.path
    assert copy.read_bytes() == b"%PDF-1.7\n2\n"
    del refs, payload
    gc.collect()
    for _ in range(200):  # the thread that delivered the pages holds the last one for a moment longer
        if not copy.exists():
            break
        await asyncio.sleep(0.01)
    assert not copy.exists()  # the temporary copy lives as long as its pages


async def test_remote_files():
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe({"/in/a.pdf": b"%PDF-1.7\n1\n", "/in/b.png": png(), "/in/c.png": b"", "/in/d.tif": b"II*\0broken"})
    try:
        refs = await take("memory://in")
        data = [ref.payload.source for ref in refs if isinstance(ref.payload, EncodedImage)]
    finally:
        memory.rm("/in", recursive=True)
    assert [ref.page_id for ref in refs] == ["a_1", "b_1", "c", "d"]
    assert data == [png()]


async def test_what_a_remote_filesystem_raises_fails_its_file_alone(shards: Path, monkeypatch: pytest.MonkeyPatch):
    import fsspec

    class ServerError(Exception):
        pass

    def refuse(self, path, *args, **kwargs):
        if path.endswith("b.parquet"):
            raise ServerError("503")
        if path.endswith("c.parquet"):
            raise ConnectionResetError("gone")
        return real(self, path, *args, **kwargs)

    memory = fsspec.filesystem("memory")
    real = type(memory).open
    memory.pipe({f"/in/{name}.parquet": (shards / "train-1.parquet").read_bytes() for name in "abc"})
    monkeypatch.setattr(type(memory), "open", refuse)
    try:
        refs = await take("memory://in")
    finally:
        memory.rm("/in", recursive=True)
    assert len(refs) == 5
    assert [code(ref) for ref in refs[3:]] == [ExitCode.NETWORK, ExitCode.NETWORK]
    assert [ref.error.category for ref in refs[3:] if ref.error] == ["network", "network"]


async def test_an_error_of_our_own_fails_its_input_alone(tmp_path: Path):
    class Broken(Probe):
        async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
            if path.name == "a.pdf":
                raise RuntimeError("defect")
            return await super().probe_pdf(path, password)

    first, second = await take(pdf(tmp_path / "a.pdf", 1), pdf(tmp_path / "b.pdf", 1), probe=Broken())
    assert first.error is not None
    assert first.error.category == "internal"
    assert second.error is None


@pytest.fixture
def shards(tmp_path: Path) -> Iterator[Path]:
    def write(name: str, ids: list[str | None], images: list[dict[str, object] | None]) -> None:
        table = pa.table({"id": ids, "year": [2024] * len(ids), "image": pa.array(images, IMAGE)})
        pq.write_table(table, tmp_path / name)

    good = {"bytes": png(), "path": "../../etc/passwd"}
    write("train-0.parquet", ["law_1", "law_2", "../../budget_7"], [good, None, good])
    write("train-1.parquet", ["law_3", "budget", "law_1"], [good, {"bytes": b"junk", "path": None}, good])
    return tmp_path


async def test_rows_of_a_dataset(shards: Path):
    refs = await take(shards)
    found = [(ref.page_id, ref.document.doc_id, ref.page_number, ref.error and ref.error.category) for ref in refs]
    assert found == [
        ("law_1", "law", 1, None),
        ("law_2", "law", 2, "corrupt"),
        ("_.._budget_7", "_.._budget", 7, None),
        ("law_3", "law", 3, None),
        ("budget", "train-1", 2, "unsupported"),
        ("law_1-2", "law", 1, None),
    ]
    assert refs[0].metadata == {"year": 2024, "row": 1, "shard": "train-0.parquet"}
    assert isinstance(refs[0].payload, EncodedImage)
    assert refs[0].payload.source == png()
    assert refs[1].error is not None
    assert "train-0.parquet#2" in refs[1].error.message


async def test_a_missing_column_is_one_error_a_shard(shards: Path):
    refs = await take(shards, image_column="picture")
    assert [ref.page_id for ref in refs] == ["train-0", "train-1"]
    assert code(refs[0]) == ExitCode.USAGE


async def test_the_total_is_known_while_the_stream_waits(shards: Path, tmp_path: Path):
    frames = [Image.new("1", (8, 8)) for _ in range(4)]
    frames[0].save(shards / "fax.tif", save_all=True, append_images=frames[1:])
    (shards / "broken.png").touch()
    pdf(shards / "locked.pdf", "secret")
    pdf(shards / "long.pdf", 10)
    for options, expected in (
        (SourceOptions(), 6 + 4 + 1 + 1 + 10),
        (SourceOptions(pages=PageRanges.parse("2-3")), 6 + 2 + 1 + 1 + 2),
        (SourceOptions(limit=5), 5),
    ):
        source = InputStream([shards], options=options, decoder=Probe())
        pages = source.pages()
        await anext(pages)
        async with asyncio.timeout(60):
            while source.total is None:  # noqa: ASYNC110 - the stream does not promise an event
                await asyncio.sleep(0)
        assert source.total == expected
        count = 1
        async for _ in pages:
            count += 1
        assert count == expected


@pytest.mark.parametrize(("pdfs", "total"), [(MAX_PDFS, MAX_PDFS + 1), (MAX_PDFS + 1, None)])
async def test_many_pdfs_are_not_opened_only_to_be_counted(tmp_path: Path, pdfs: int, total: int | None):
    (tmp_path / "0.png").write_bytes(png())
    for number in range(1, pdfs + 1):
        pdf(tmp_path / f"{number}.pdf", 1)
    source = InputStream([tmp_path], options=SourceOptions(), decoder=Probe())
    pages = source.pages()
    await anext(pages)
    async with asyncio.timeout(60):
        while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - the stream does not promise an event
            await asyncio.sleep(0.01)
    assert source.total == total
    await pages.aclose()


async def test_leaving_early_closes_what_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pq.write_table(pa.table({"image": pa.array([{"bytes": png(), "path": None}] * 3, IMAGE)}), tmp_path / "s.parquet")
    closed = []

    def noting(*arguments: object, **named: object) -> Iterator[object]:
        try:
            yield from read_rows(*arguments, **named)  # type: ignore[arg-type]
        finally:
            closed.append(True)

    monkeypatch.setattr("pagemill.sources.tables.read_rows", noting)
    pages = InputStream([tmp_path], options=SourceOptions(), decoder=Probe()).pages()
    await anext(pages)
    await pages.aclose()
    assert closed == [True]


async def test_a_row_with_a_tiff_of_several_frames_has_a_warning(tmp_path: Path):
    frames = [Image.new("1", (8, 8)) for _ in range(3)]
    tiffs = [io.BytesIO() for _ in range(3)]
    frames[0].save(tiffs[0], "TIFF")
    frames[0].save(tiffs[1], "TIFF", save_all=True, append_images=frames[1:])
    frames[0].save(tiffs[2], "TIFF", save_all=True, append_images=frames[1:])
    broken = tiffs[2].getvalue()[:-40]
    values = [{"bytes": data, "path": None} for data in (png(), tiffs[0].getvalue(), tiffs[1].getvalue(), broken)]
    pq.write_table(pa.table({"image": pa.array(values, IMAGE)}), tmp_path / "a.parquet")
    warnings = [ref.warning for ref in await take(tmp_path)]
    assert warnings[:2] == [None, None]
    for warning in warnings[2:]:
        assert warning is not None
        assert (warning.category, warning.message) == ("frames", "only the first of 3 frames is read; 2 left out")


async def test_image_columns_that_are_not_read_are_named_once_an_input(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("WARNING", "pagemill.sources")
    image = pa.array([{"bytes": png(), "path": None}], IMAGE)
    for name in ("a", "b"):
        pq.write_table(pa.table({"front": image, "back": image}), tmp_path / f"{name}.parquet")
    assert len(await take(tmp_path)) == 2
    (message,) = caplog.messages
    assert "images are read from the column 'front', and not from 'back'; --image-column" in message
    caplog.clear()
    await take(tmp_path, image_column="back")
    assert not caplog.messages


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())),
        *(pa.list_(pa.binary()), pa.list_(IMAGE), pa.struct([("img", IMAGE)]), pa.map_(pa.string(), pa.binary())),
    ],
)
async def test_columns_with_images_at_any_depth_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: pa.DataType
):
    caplog.set_level("WARNING", "pagemill.sources")
    columns = {"image": pa.array([png()]), "text": pa.array(["a"]), "tags": pa.array([["a"]])}
    schema = pa.schema([*((name, column.type) for name, column in columns.items()), ("more", kind)])
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch([*columns.values(), pa.nulls(1, kind)], schema=schema))
    assert len(await take(tmp_path)) == 1
    (message,) = caplog.messages
    assert "images are read from the column 'image', and not from 'more'; --image-column" in message


def write_qa(path: Path, **more: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"id": ["30_0"], "query": ["예산은 얼마인가?"], "answer": ["x"], "ground_truth": [[0]], **more}
    pq.write_table(pa.table(columns), path)
    return path


async def skipped(*inputs: Path, **options: object) -> tuple[list[PageRef], list[str]]:
    source = InputStream(inputs, options=SourceOptions(**options), decoder=Probe())  # type: ignore[arg-type]
    refs = [ref async for ref in source.pages()]
    assert source.total == len(refs)
    assert source.complete
    return refs, source.skipped_tables


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A dataset of three configurations: pages, queries and annotations."""
    table = pa.table({"id": ["30_0", "30_1"], "image": pa.array([{"bytes": png(), "path": "x"}] * 2, IMAGE)})
    folder = tmp_path / "dataset"
    folder.mkdir()
    pq.write_table(table, folder / "SDS-KoPub-corpus.parquet")
    write_qa(folder / "SDS-KoPub-QA.parquet")
    for shard in range(2):
        write_qa(folder / "notes" / f"annotations-0000{shard}-of-00002.parquet")
    return folder


@pytest.mark.parametrize("options", [{}, {"image_column": "image"}, {"id_column": "id"}])
async def test_tables_without_images_are_neither_pages_nor_failures(mixed: Path, options: dict[str, str]):
    refs, tables = await skipped(mixed, recursive=True, **options)
    assert [ref.page_id for ref in refs] == ["30_0", "30_1"]
    assert not [ref for ref in refs if ref.error]
    assert tables == ["notes/annotations", "SDS-KoPub-QA"]


async def test_a_table_without_images_that_is_named_or_alone_is_an_error(mixed: Path, tmp_path: Path):
    qa = mixed / "SDS-KoPub-QA.parquet"
    (named,), _ = await skipped(qa)
    (mixed / "SDS-KoPub-corpus.parquet").unlink()
    (alone,), tables = await skipped(mixed)
    assert tables == []  # it is reported once
    (_,), tables = await skipped(mixed, recursive=True)
    assert tables == ["SDS-KoPub-QA"]
    for ref in (named, alone):
        assert ref.error is not None
        assert "no column contains encoded page images" in ref.error.message
        assert code(ref) is ExitCode.INPUT
    (first, second), _ = await skipped(write_qa(tmp_path / "a.parquet"), mixed)
    assert first.error is not None
    assert second.error is not None


def write_shards(folder: Path, column: str, *shards: object) -> Path:
    """Shards of one table, each of two rows, with the given values in place of the images; None for images."""
    folder.mkdir(parents=True, exist_ok=True)
    images = pa.array([{"bytes": png(), "path": "x"}] * 2, IMAGE)
    for index, values in enumerate(shards):
        columns = {"id": [f"{index}_0", f"{index}_1"], column: images if values is None else values}
        pq.write_table(pa.table(columns), folder / f"train-{index:05}-of-{len(shards):05}.parquet")
    return folder


class EndedCatalogue(Catalogue):
    """Knows two rows of each source whose address contains ``00000`` as ended."""

    def register(self, digest: str, uri: str, skip: str | None = None) -> KnownSource:
        known = super().register(digest, uri, skip)
        return replace(known, pages=2, ended={1, 2}) if "-00000-" in uri else known


URLS = ["https://example.org/1.png"] * 2


@pytest.mark.parametrize("column", ["image", "scan"])
@pytest.mark.parametrize("order", [(None, URLS), (URLS, None), (None, [1, 2]), ([1, 2], None)])
async def test_a_shard_without_images_of_a_table_with_images_is_a_failure(
    tmp_path: Path, column: str, order: tuple[object, ...]
):
    folder = write_shards(tmp_path / "data", column, *order)
    write_qa(tmp_path / "qa.parquet")
    refs, tables = await skipped(tmp_path, recursive=True)
    (failed,) = [ref for ref in refs if ref.error]
    lost = sorted(folder.iterdir())[0 if order[1] is None else 1]
    assert failed.document.uri == str(lost)
    assert failed.missing
    assert code(failed) is ExitCode.INPUT
    assert len(refs) == 3
    assert tables == ["qa"]


@pytest.mark.parametrize(("column", "options"), [("image", {}), ("scan", {"image_column": "scan"})])
async def test_rows_of_a_shard_of_nulls_fail_alone(tmp_path: Path, column: str, options: dict[str, str]):
    refs, tables = await skipped(write_shards(tmp_path, column, pa.nulls(2), None), **options)
    assert [ref.page_id for ref in refs if ref.error] == ["0_0", "0_1"]
    assert len(refs) == 4
    assert tables == []


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
async def test_a_table_with_a_column_called_like_the_images_of_another_is_a_failure(
    tmp_path: Path, names: tuple[str, str]
):
    write_qa(tmp_path / f"{names[0]}.parquet", scan=["https://example.org/1.png"])
    write_shards(tmp_path, "scan", None)
    (tmp_path / "train-00000-of-00001.parquet").rename(tmp_path / f"{names[1]}.parquet")
    refs, tables = await skipped(tmp_path)
    assert [ref.document.uri for ref in refs if ref.error] == [str(tmp_path / f"{names[0]}.parquet")]
    assert tables == []


@pytest.mark.parametrize("name", ["train-00001-of-00002", "other"])
async def test_a_shard_without_images_stays_a_failure_beside_pages_that_have_ended(tmp_path: Path, name: str):
    (pages,) = write_shards(tmp_path, "scan", None).iterdir()
    pages.rename(tmp_path / "train-00000-of-00002.parquet")
    write_qa(tmp_path / f"{name}.parquet", scan=["https://example.org/1.png"])
    source = InputStream([tmp_path], options=SourceOptions(), decoder=Probe(), catalogue=EndedCatalogue())
    refs = [ref async for ref in source.pages()]
    assert source.skipped_earlier == 2
    assert [ref.document.uri for ref in refs if ref.error] == [str(tmp_path / f"{name}.parquet")]
    assert source.skipped_tables == []


async def test_the_limit_counts_shards_without_images(tmp_path: Path):
    write_shards(tmp_path, "image", None, URLS, URLS)
    source = InputStream([tmp_path], options=SourceOptions(limit=3), decoder=Probe())
    assert len([ref async for ref in source.pages()]) == 3


async def test_a_table_that_may_hold_images_or_is_damaged_stays_a_failure(mixed: Path):
    pq.write_table(pa.table({"scan": [b"x"], "id": ["1"]}), mixed / "a.parquet")
    pq.write_table(pa.table({"scans": [[b"x"]]}), mixed / "b.parquet")
    data = (mixed / "SDS-KoPub-QA.parquet").read_bytes()
    (mixed / "SDS-KoPub-QA.parquet").write_bytes(data[: len(data) // 2])
    with pa.OSFile(str(mixed / "c.arrow"), "wb") as file, pa.ipc.new_file(file, pa.schema([("q", pa.string())])) as new:
        new.write(pa.record_batch({"q": ["text"]}))
    (mixed / "c.arrow").write_bytes((mixed / "c.arrow").read_bytes()[:-20])
    refs, tables = await skipped(mixed)
    failed = [ref.document.uri.rsplit("/", 1)[1] for ref in refs if ref.error]
    assert failed == ["a.parquet", "b.parquet", "c.arrow", "SDS-KoPub-QA.parquet"]
    assert tables == []
