"""Sources that break midway: what they cannot give is a failure that no page read from them removes."""

import io
import re
import struct
from contextlib import suppress
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from decoding_run import Ended, arrow, damage_row_group, parquet, rows, run
from faulty_web import FaultyWeb
from PIL import Image
from published_run import publish

from pagemill.errors import ExitCode
from pagemill.sources import PageRanges

pytestmark = pytest.mark.integration

LAWS = [f"law_{number}" for number in range(1, 21)]


def without(*numbers: int) -> list[str]:
    return sorted(set(LAWS) - {f"law_{number}" for number in numbers})


@pytest.mark.parametrize("options", [{}, {"limit": 20}, {"skip_duplicates": True}])
def test_a_damaged_row_group_costs_its_own_rows_by_name(tmp_path: Path, options: dict[str, object]):
    shard = parquet(tmp_path / "shard.parquet", rows(20), rows_of_group=4)
    damage_row_group(shard, 2)
    for retry_failed in (False, False, True):  # the second run says what the first one said
        ended = run(tmp_path / "out", shard, retry_failed=retry_failed, **options)
        assert ended.exit_code is ExitCode.PAGES_FAILED
        assert ended.done == without(9, 10, 11, 12)
        assert sorted(ended.failed) == ["law_10", "law_11", "law_12", "law_9"]
        assert all(f"shard.parquet#{number}: " in ended.failed[f"law_{number}"] for number in range(9, 13))
        assert ended.run["missing"] == 4


def test_rows_whose_ids_are_damaged_too_are_named_by_their_numbers(tmp_path: Path):
    shard = parquet(tmp_path / "shard.parquet", rows(20), rows_of_group=4)
    damage_row_group(shard, 0, columns=("id", "image.bytes"))
    ended = run(tmp_path / "out", shard)
    assert ended.done == without(1, 2, 3, 4)
    assert sorted(ended.failed) == ["shard_1", "shard_2", "shard_3", "shard_4"]


def test_the_rows_before_the_damage_in_a_row_group_are_read(tmp_path: Path):
    shard = tmp_path / "shard.parquet"
    # A page of its own for every eight rows; the header of a later one is damaged.
    how = {"use_dictionary": False, "compression": "none", "data_page_size": 1, "write_batch_size": 8}
    pq.write_table(rows(40), shard, row_group_size=40, **how)
    data = bytearray(shard.read_bytes())
    place = len(data) * 3 // 5
    data[place : place + 800] = b"\xff" * 800
    shard.write_bytes(data)
    ended = run(tmp_path / "out", shard)
    assert 8 <= len(ended.done) < 40
    assert ended.done == sorted(f"law_{number}" for number in range(1, len(ended.done) + 1))
    assert len(ended.done) + len(ended.failed) == 40
    assert ended.exit_code is ExitCode.PAGES_FAILED


def test_more_rows_than_are_named_share_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shard = parquet(tmp_path / "shard.parquet", rows(20), rows_of_group=4)
    damage_row_group(shard, 2)
    monkeypatch.setattr("pagemill.sources.tables.MAX_NAMED", 3)
    ended = run(tmp_path / "out", shard)
    assert ended.done == without(9, 10, 11, 12)
    assert list(ended.failed) == ["shard"]
    assert "rows 9 to 12 cannot be read" in ended.failed["shard"]
    assert ended.missing == 4


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_truncated_arrow_file_gives_its_whole_batches(tmp_path: Path, stream: bool, share: float):
    shard = arrow(tmp_path / "shard.arrow", rows(20), 4, stream=stream)
    whole = shard.read_bytes()
    shard.write_bytes(whole[: int(len(whole) * share)])
    for _ in range(2):
        ended = run(tmp_path / "out", shard)
        assert ended.done == sorted(LAWS[: len(ended.done)])
        assert len(ended.done) % 4 == 0
        assert len(ended.done) >= int(20 * share) - 7
        assert list(ended.failed) == ["shard"]
        assert "unknown number of rows" in ended.failed["shard"]
        assert ended.exit_code is ExitCode.PAGES_FAILED
    shard.write_bytes(whole)  # and when the file is repaired the same command goes on
    ended = run(tmp_path / "out", shard)
    assert (ended.done, ended.failed, ended.exit_code) == (sorted(LAWS), {}, ExitCode.OK)


def test_an_arrow_stream_that_is_cut_between_two_batches_is_not_whole(tmp_path: Path):
    shard = arrow(tmp_path / "shard.arrow", rows(20), 4, stream=True)
    data = shard.read_bytes()
    with pa.BufferReader(data) as file:
        reader = pa.ipc.open_stream(file)
        for _ in range(3):
            reader.read_next_batch()
        place = file.tell()
    shard.write_bytes(data[:place])
    ended = run(tmp_path / "out", shard)
    assert ended.done == sorted(LAWS[:12])
    assert "no end mark" in ended.failed["shard"]
    shard.write_bytes(data + b"more")
    assert "after the end" in run(tmp_path / "out", shard).failed["shard"]


@pytest.mark.parametrize("listed", [0, 3])
def test_record_batches_that_the_footer_of_an_arrow_file_does_not_list_are_lost_rows(tmp_path: Path, listed: int):
    shard = arrow(tmp_path / "shard.arrow", rows(20), 4, stream=False)
    data = bytearray(shard.read_bytes())
    footer = len(data) - 10 - int.from_bytes(data[-10:-6], "little")
    places = [at for at in range(footer, len(data) - 10, 4) if data[at : at + 4] == b"\5\0\0\0"]
    (place,) = (at for at in places if batches_listed(with_count(data, at, 4)) == 4)
    shard.write_bytes(with_count(data, place, listed))
    ended = run(tmp_path / "out", shard)
    assert ended.exit_code is (ExitCode.PAGES_FAILED if listed else ExitCode.INPUT)
    assert len(ended.done) == 4 * listed
    assert f"its footer lists {listed} of the 5 record batches" in ended.failed["shard"]


def batches_listed(data: bytes) -> int | None:
    with suppress(pa.ArrowException, OSError):
        return int(pa.ipc.open_file(pa.BufferReader(data)).num_record_batches)
    return None


def with_count(data: bytearray, place: int, count: int) -> bytes:
    return bytes(data[:place]) + count.to_bytes(4, "little") + data[place + 4 :]


@pytest.mark.parametrize("stream", [True, False])
def test_a_damaged_batch_of_an_arrow_file_costs_its_own_rows(tmp_path: Path, stream: bool):
    shard = arrow(tmp_path / "shard.arrow", rows(20), 4, stream=stream, compression="zstd")
    data = bytearray(shard.read_bytes())
    place = data.index(b"\x28\xb5\x2f\xfd", len(data) // 2)  # a compressed buffer of a batch in the middle
    data[place : place + 4] = b"\xff" * 4
    shard.write_bytes(data)
    for _ in range(2):
        ended = run(tmp_path / "out", shard)
        assert ended.exit_code is ExitCode.PAGES_FAILED
        assert len(ended.done) == 16
        assert ended.missing >= (1 if stream else 4)  # a stream does not say how many rows a damaged batch has


def test_a_value_that_python_cannot_hold_costs_nothing(tmp_path: Path):
    table = rows(4).append_column("day", pa.array([0, 2**62, 1, 2], pa.timestamp("s")))
    ended = run(tmp_path / "out", arrow(tmp_path / "shard.arrow", table, 4, stream=True))
    assert (len(ended.done), ended.failed) == (4, {})


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(fsspec.config.conf, "http", {"block_size": 256})  # small files in many requests
    (tmp_path / "web").mkdir()
    with FaultyWeb(tmp_path / "web") as web:
        yield web


def test_a_server_that_fails_midway_costs_rows_that_the_next_run_reads(tmp_path: Path, web: FaultyWeb):
    # Noise, as the footer is read together with the 64 KB before it.
    parquet(web.folder / "shard.parquet", rows(20, noise=120), rows_of_group=4)
    with pq.ParquetFile(web.folder / "shard.parquet") as file:
        chunk = file.metadata.row_group(2).column(1)
        web.broken = range(chunk.data_page_offset, chunk.data_page_offset + 1)
    out = tmp_path / "out"
    for _ in range(2):
        ended = run(out, web.url("shard.parquet"))
        assert ended.exit_code is ExitCode.PAGES_FAILED
        assert ended.missing + len(ended.done) == 20
        assert set(without(9, 10, 11, 12)) >= set(ended.done) >= {"law_1", "law_4", "law_20"}
        assert list(ended.failed) == ["shard"]
        assert "500" in ended.failed["shard"]
    web.broken = range(0)
    ended = run(out, web.url("shard.parquet"))
    assert (ended.done, ended.failed, ended.exit_code) == (sorted(LAWS), {}, ExitCode.OK)
    assert ended.run["missing"] == 0


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_that_fails_within_an_arrow_file(tmp_path: Path, web: FaultyWeb, stream: bool):
    shard = arrow(web.folder / "shard.arrow", rows(20), 4, stream=stream)
    web.broken = range(shard.stat().st_size // 2, shard.stat().st_size // 2 + 1)
    ended = run(tmp_path / "out", web.url("shard.arrow"))
    assert ended.exit_code in (ExitCode.PAGES_FAILED, ExitCode.NETWORK)
    assert list(ended.failed) == ["shard"]
    web.broken = range(0)
    ended = run(tmp_path / "out", web.url("shard.arrow"))
    assert (ended.done, ended.failed, ended.exit_code) == (sorted(LAWS), {}, ExitCode.OK)


def test_a_limited_run_later_does_not_remove_the_failure(tmp_path: Path):
    shard = arrow(tmp_path / "shard.arrow", rows(20), 4, stream=True)
    shard.write_bytes(shard.read_bytes()[:-200])
    out = tmp_path / "out"
    assert run(out, shard, limit=6).exit_code is ExitCode.OK  # nothing that was asked for is missing
    assert run(out, shard).exit_code is ExitCode.PAGES_FAILED
    assert run(out, shard, limit=6).exit_code is ExitCode.PAGES_FAILED


@pytest.mark.slow
def test_a_run_that_lacks_rows_is_published_only_as_a_part(tmp_path: Path):
    shard = parquet(tmp_path / "shard.parquet", rows(8), rows_of_group=4)
    damage_row_group(shard, 1)
    out, target = tmp_path / "out", ("--to", str(tmp_path / "published"), "--licence", "cc0-1.0")
    ended: Ended = run(out, shard)
    assert ended.run["missing"] == 4
    published = publish(out, *target)
    assert (published.returncode, "--partial" in published.stderr) == (ExitCode.OUTPUT, True)
    assert not (tmp_path / "published").exists()
    assert publish(out, *target, "--partial").returncode == 0


def fax(path: Path, pages: int = 5) -> Path:
    first, *others = [Image.new("L", (30 + number, 20)) for number in range(pages)]
    first.save(path, save_all=True, append_images=others)
    return path


@pytest.mark.parametrize("share", [0.3, 0.45, 0.7])
def test_a_truncated_tiff_gives_the_pages_before_the_cut(tmp_path: Path, share: float):
    path = fax(tmp_path / "fax.tiff")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    for _ in range(2):
        ended = run(tmp_path / "out", path)
        assert ended.exit_code is ExitCode.PAGES_FAILED
        assert ended.done == [f"fax_{number}" for number in range(1, len(ended.done) + 1)]
        assert len(ended.done) >= int(5 * share) - 1
        assert "is read up to page" in ended.failed["fax"]
        assert ended.run["missing"] >= 1
    assert run(tmp_path / "first", path, pages=PageRanges.parse("1")).exit_code is ExitCode.OK
    path.write_bytes(whole)
    ended = run(tmp_path / "out", path)
    assert (len(ended.done), ended.failed, ended.exit_code) == (5, {}, ExitCode.OK)


def test_a_broken_frame_in_the_middle_fails_alone(tmp_path: Path):
    path = fax(tmp_path / "fax.tiff")
    data = bytearray(path.read_bytes())
    strips = struct.pack("<HHI", 273, 4, 1)  # where the pixels are
    places = [match.start() for match in re.finditer(re.escape(strips), bytes(data))]
    struct.pack_into("<I", data, places[2] + len(strips), len(data) + 1)
    path.write_bytes(data)
    ended = run(tmp_path / "out", path)
    assert ended.done == ["fax_1", "fax_2", "fax_4", "fax_5"]
    assert list(ended.failed) == ["fax_3"]


def test_a_row_with_a_tiff_whose_directory_is_cut_fails_alone(tmp_path: Path):
    buffer = io.BytesIO()
    Image.new("L", (60, 20), 255).save(buffer, "TIFF", compression="tiff_deflate")
    data = buffer.getvalue()
    (first,) = struct.unpack_from("<I", data, 4)
    (entries,) = struct.unpack_from("<H", data, first)
    table = rows(3)
    images = table["image"].to_pylist()
    images[1]["bytes"] = data[: first + 2 + 12 * entries - 5]
    table = table.set_column(1, "image", pa.array(images, table["image"].type))
    ended = run(tmp_path / "out", parquet(tmp_path / "shard.parquet", table, rows_of_group=3))
    assert ended.exit_code is ExitCode.PAGES_FAILED
    assert (ended.done, list(ended.failed)) == (["law_1", "law_3"], ["law_2"])
