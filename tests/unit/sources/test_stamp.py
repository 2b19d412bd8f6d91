"""A source that is changed while it is read is no mixture of two files under one digest."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pagemill.errors import ChangedInputError, MissingInputError
from pagemill.imaging.limits import DecodeLimits
from pagemill.sources import SourceOptions
from pagemill.sources.base import PageRef
from pagemill.sources.stream import InputStream


class Probe:
    limits = DecodeLimits()


def bmp(level: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (20, 10), level).save(buffer, "BMP")
    return buffer.getvalue()


async def first(path: Path) -> PageRef:
    stream = InputStream([path], SourceOptions(), Probe())  # type: ignore[arg-type]
    (ref,) = [ref async for ref in stream.pages()]
    return ref


async def test_a_file_that_is_rewritten_in_place_is_changed(tmp_path: Path):
    path = tmp_path / "a.bmp"
    path.write_bytes(bmp(0))
    stamp = (await first(path)).stamp
    assert stamp is not None
    stamp.check()
    before = path.stat()
    path.write_bytes(bmp(255))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(ChangedInputError, match=r"a\.bmp was changed while it was being read"):
        stamp.check()
    path.write_bytes(bmp(0) + b"\n")
    with pytest.raises(ChangedInputError):
        stamp.check()
    path.unlink()
    with pytest.raises(MissingInputError):
        stamp.check()


async def test_another_file_in_its_place_is_one_that_changed(tmp_path: Path):
    path, other = tmp_path / "a.bmp", tmp_path / "b"
    path.write_bytes(bmp(0))
    stamp = (await first(path)).stamp
    assert stamp is not None
    before = path.stat()
    other.write_bytes(bmp(255))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert other.stat().st_size == before.st_size
    other.replace(path)
    with pytest.raises(ChangedInputError):
        stamp.check()


async def test_a_file_that_was_written_again_as_it_was_is_the_same(tmp_path: Path):
    path = tmp_path / "a.bmp"
    path.write_bytes(bmp(0))
    stamp = (await first(path)).stamp
    assert stamp is not None
    path.unlink()
    path.write_bytes(bmp(0))
    os.utime(path, ns=(1, 1))
    stamp.check()


async def test_a_shard_that_is_rewritten_while_it_is_read_gives_no_row_of_another_one(tmp_path: Path):
    path = tmp_path / "a.parquet"

    def write(level: int) -> None:
        table = pa.table({"image": [bmp(level)] * 40})
        pq.write_table(table, path, row_group_size=10)

    write(0)
    stream = InputStream([path], SourceOptions(), Probe())  # type: ignore[arg-type]
    refs = []
    async for ref in stream.pages():
        refs.append(ref)
        if len(refs) == 12:
            write(255)
    *rows, failure = refs
    assert len(rows) == 12
    assert failure.error is not None
    assert failure.error.category == "changed"
    assert "a.parquet" in failure.error.message
