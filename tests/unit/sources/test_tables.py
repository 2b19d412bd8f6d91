import datetime
import io
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pagemill.errors import CorruptInputError, PagemillError, UnsupportedInputError, UsageError
from pagemill.imaging.formats import FileFormat
from pagemill.sources.options import SourceOptions
from pagemill.sources.shards import EndedRows, LostRows, TableWithoutImagesError
from pagemill.sources.tables import DatasetRow, count_rows, read_rows

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def table(rows: int = 3) -> pa.Table:
    return pa.table(
        {
            "id": [f"doc_{i}" for i in range(rows)],
            "score": [float("nan")] * rows,
            "day": [datetime.date(2024, 1, 2)] * rows,
            "text": ["x" * 5000] * rows,
            "title": ["t"] * rows,
            "raw": [b"binary"] * rows,
            "image": pa.array([{"bytes": b"image %d" % i, "path": f"../{i}.png"} for i in range(rows)], IMAGE),
        }
    )


def write(path: Path, content: pa.Table, file_format: FileFormat) -> Path:
    if file_format is FileFormat.PARQUET:
        pq.write_table(content, path)
    else:
        new = pa.ipc.new_stream if file_format is FileFormat.ARROW_STREAM else pa.ipc.new_file
        with new(path, content.schema) as writer:
            writer.write_table(content, max_chunksize=2)
    return path


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ARROW_FILE, FileFormat.ARROW_STREAM])
def test_rows_of_every_format(tmp_path: Path, file_format: FileFormat):
    path = write(tmp_path / "shard", table(20), file_format)
    for content in (path, path.read_bytes()):
        rows = list(read_rows(content, file_format, SourceOptions()))
        assert [row.number for row in rows] == list(range(1, 21))
        assert rows[7].data == b"image 7"
        assert rows[7].row_id == "doc_7"
        assert rows[7].metadata == {"score": None, "day": "2024-01-02", "title": "t"}
    assert count_rows(path, file_format, SourceOptions()) == 20
    path.write_bytes(path.read_bytes()[:500])
    assert count_rows(path, file_format, SourceOptions()) is None


def test_reading_stops_where_the_reader_stops(tmp_path: Path):
    rows = read_rows(write(tmp_path / "s", table(), FileFormat.PARQUET), FileFormat.PARQUET, SourceOptions())
    assert next(rows).number == 1
    rows.close()


def test_broken_rows_say_what_is_wrong(tmp_path: Path):
    values = [
        None,
        {"bytes": None, "path": "/etc/passwd"},
        {"bytes": b"", "path": None},
        {"bytes": b"ok", "path": None},
    ]
    content = pa.table({"image": pa.array(values, IMAGE)})
    rows = list(read_rows(write(tmp_path / "s", content, FileFormat.PARQUET), FileFormat.PARQUET, SourceOptions()))
    assert [row.data for row in rows] == [None, None, None, b"ok"]
    assert "path" in str(rows[1].problem)
    assert "0 bytes" in str(rows[2].problem)


def test_columns_are_chosen_by_type_and_name(tmp_path: Path):
    content = pa.table(
        {
            "thumbnail": pa.array([{"bytes": b"small", "path": None}], IMAGE),
            "page_image": pa.array([{"bytes": b"page", "path": None}], IMAGE),
            "number": [7],
        }
    )
    path = write(tmp_path / "s", content, FileFormat.PARQUET)

    def first(**options: str) -> tuple[bytes | None, str | None]:
        row = next(read_rows(path, FileFormat.PARQUET, SourceOptions(**options)))
        return row.data, row.row_id

    assert first() == (b"page", None)
    assert first(image_column="thumbnail", id_column="number") == (b"small", "7")
    for wrong in ({"image_column": "number"}, {"image_column": "none"}, {"id_column": "none"}):
        with pytest.raises(UsageError) as caught:
            first(**wrong)
        assert "page_image" in str(caught.value.remedy)


def test_a_plain_binary_column_counts_when_its_name_says_so(tmp_path: Path):
    path = write(tmp_path / "s", pa.table({"image": [b"data"]}), FileFormat.PARQUET)
    assert next(read_rows(path, FileFormat.PARQUET, SourceOptions())).data == b"data"


@pytest.mark.parametrize("inner", [False, True])
def test_dictionary_encoded_columns_are_read(tmp_path: Path, inner: bool):
    images = pa.array([b"page", b"page"]).dictionary_encode()
    if inner:
        images = pa.StructArray.from_arrays([images, pa.array(["a", "b"])], ["bytes", "path"])
    columns = {"id": pa.array(["1", "2"]).dictionary_encode(), "kind": pa.array(["x", "x"]).dictionary_encode()}
    path = write(tmp_path / "s", pa.table(columns | {"image": images}), FileFormat.PARQUET)
    rows = list(read_rows(path, FileFormat.PARQUET, SourceOptions()))
    assert [(row.row_id, row.data, row.metadata) for row in rows] == [
        ("1", b"page", {"kind": "x"}),
        ("2", b"page", {"kind": "x"}),
    ]


def test_a_refused_column_is_not_offered(tmp_path: Path):
    path = write(tmp_path / "s", pa.table({"image": [1], "scan": [b"data"]}), FileFormat.PARQUET)
    with pytest.raises(UsageError) as caught:
        next(read_rows(path, FileFormat.PARQUET, SourceOptions(image_column="image")))
    assert caught.value.remedy == "Name one that does with --image-column: scan."
    path = write(tmp_path / "t", pa.table({"image": [1], "text": ["a"]}), FileFormat.PARQUET)
    with pytest.raises(UsageError) as caught:
        next(read_rows(path, FileFormat.PARQUET, SourceOptions(image_column="image")))
    assert "--image-column" not in (caught.value.remedy or "") and "binary" in (caught.value.remedy or "")


def test_a_table_without_images_is_unsupported(tmp_path: Path):
    columns = {"image": [1], "page": [2], "content": ["text"], "notes": [["text"]]}  # the image is a number, too
    path = write(tmp_path / "s", pa.table(columns), FileFormat.PARQUET)
    with pytest.raises(TableWithoutImagesError, match="no column contains encoded page images") as caught:
        next(read_rows(path, FileFormat.PARQUET, SourceOptions()))
    assert isinstance(caught.value.error, UnsupportedInputError)
    assert caught.value.columns == {"content", "notes"}


@pytest.mark.parametrize(
    ("column", "options"), [("image", {}), ("Page_Images", {}), ("scan", {"image_column": "scan"})]
)
@pytest.mark.parametrize("value", ["https://example.org/1.png", ["1.png"], {"path": "1.png"}])
def test_a_column_that_should_hold_images_is_no_table_without(
    tmp_path: Path, column: str, options: dict[str, str], value: object
):
    path = write(tmp_path / "s", pa.table({"id": ["1"], column: [value]}), FileFormat.PARQUET)
    with pytest.raises(PagemillError, match="encoded page images"):
        next(read_rows(path, FileFormat.PARQUET, SourceOptions(**options)))


@pytest.mark.parametrize(("column", "options"), [("image", {}), ("scan", {"image_column": "scan"})])
def test_the_rows_of_a_column_of_nulls_have_no_image(tmp_path: Path, column: str, options: dict[str, str]):
    path = write(tmp_path / "s", pa.table({"id": ["1", "2"], column: pa.nulls(2)}), FileFormat.PARQUET)
    rows = list(read_rows(path, FileFormat.PARQUET, SourceOptions(**options)))
    assert [(row.row_id, row.problem) for row in rows] == [("1", "contains no image"), ("2", "contains no image")]


@pytest.mark.parametrize("kind", [pa.list_(IMAGE), pa.large_list(pa.binary()), pa.list_(IMAGE, 1)])
@pytest.mark.parametrize("options", [SourceOptions(), SourceOptions(image_column="images")])
def test_a_column_of_lists_of_images_says_what_to_do(tmp_path: Path, kind: pa.DataType, options: SourceOptions):
    image = {"bytes": b"page", "path": None} if kind.value_type == IMAGE else b"page"
    path = write(tmp_path / "s", pa.table({"images": pa.array([[image]], kind)}), FileFormat.PARQUET)
    with pytest.raises(PagemillError, match="'images' contains lists of images") as caught:
        next(read_rows(path, FileFormat.PARQUET, options))
    assert "its own row" in str(caught.value.remedy)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_truncated_parquet_is_corrupt(tmp_path: Path, share: float):
    data = write(tmp_path / "s", table(50), FileFormat.PARQUET).read_bytes()
    with pytest.raises(CorruptInputError):
        list(read_rows(data[: int(len(data) * share)], FileFormat.PARQUET, SourceOptions()))


@pytest.mark.parametrize("file_format", [FileFormat.ARROW_FILE, FileFormat.ARROW_STREAM])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_truncated_arrow_gives_its_whole_batches_and_says_so(tmp_path: Path, file_format: FileFormat, share: float):
    data = write(tmp_path / "s", table(50), file_format).read_bytes()
    *rows, lost = read_rows(data[: int(len(data) * share)], file_format, SourceOptions())
    assert [row.number for row in rows if isinstance(row, DatasetRow)] == list(range(1, 2 * int(25 * share) + 1))
    assert isinstance(lost, LostRows)
    assert (lost.count, type(lost.error)) == (None, CorruptInputError)


def test_rows_that_have_ended_are_not_lost_again(tmp_path: Path):
    path = tmp_path / "s"
    pq.write_table(table(20), path, row_group_size=4, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    with pq.ParquetFile(path) as file:
        start = file.metadata.row_group(2).column(6).data_page_offset
    data[start : start + 16] = b"\xff" * 16
    given = list(read_rows(bytes(data), FileFormat.PARQUET, SourceOptions(), {10, 11, *range(17, 21)}))
    assert [row.number for row in given if isinstance(row, DatasetRow) and row.lost] == [9, 12]
    assert sum(row.count for row in given if isinstance(row, EndedRows)) == 6


def test_file_objects_work(tmp_path: Path):
    import fsspec

    from pagemill.sources.items import RemoteFile

    memory = fsspec.filesystem("memory")
    buffer = io.BytesIO()
    pq.write_table(table(), buffer)
    memory.pipe("/shard.parquet", buffer.getvalue())
    try:
        remote = RemoteFile(filesystem=memory, path="/shard.parquet")
        assert len(list(read_rows(remote, FileFormat.PARQUET, SourceOptions()))) == 3
    finally:
        memory.rm("/shard.parquet")


def test_a_parquet_page_that_fails_its_checksum_loses_its_rows(tmp_path: Path):
    path = tmp_path / "shard"
    pq.write_table(table(6), path, row_group_size=3, compression="none", use_dictionary=False, write_page_checksum=True)
    data = path.read_bytes()
    assert [row.data for row in read_rows(data, FileFormat.PARQUET, SourceOptions())][4] == b"image 4"
    flipped = data.replace(b"image 4", b"imagf 4")
    rows = list(read_rows(flipped, FileFormat.PARQUET, SourceOptions()))
    assert [row.data for row in rows] == [b"image 0", b"image 1", b"image 2", None, None, None]
    assert [row.row_id for row in rows] == [f"doc_{number}" for number in range(6)]
    assert all("cannot be read" in row.problem for row in rows[3:])


@pytest.mark.skipif(sys.platform == "darwin", reason="all names are UTF-8 there")
@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ARROW_FILE, FileFormat.ARROW_STREAM])
def test_a_file_whose_name_is_no_utf_8(tmp_path: Path, file_format: FileFormat):
    path = tmp_path / os.fsdecode(b"shard \xff")
    write(tmp_path / "shard", table(20), file_format).rename(path)
    assert len(list(read_rows(path, file_format, SourceOptions()))) == 20
    assert count_rows(path, file_format, SourceOptions()) == 20


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ARROW_FILE, FileFormat.ARROW_STREAM])
@pytest.mark.parametrize("named", [None, "image"])
def test_dictionary_encoded_images_are_read(tmp_path: Path, file_format: FileFormat, named: str | None):
    images = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int8()), pa.array([b"a", b"b"], pa.binary()))
    path = write(tmp_path / "shard", pa.table({"image": images}), file_format)
    rows = list(read_rows(path, file_format, SourceOptions(image_column=named)))
    assert [row.data for row in rows] == [b"b", b"a", b"b"]
