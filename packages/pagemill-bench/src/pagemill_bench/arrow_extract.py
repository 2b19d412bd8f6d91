"""Page images out of a dataset's shard into files: the stored bytes as they are, or decoded and encoded again."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import pyarrow as pa
from PIL import Image

from pagemill.imaging.formats import FileFormat
from pagemill.sources.options import SourceOptions
from pagemill.sources.tables import DatasetRow, read_rows
from pagemill_bench.layout import encode_pages
from pagemill_bench.testing.drawn_pages import A4_300DPI, draw_page

Extraction = tuple[str, int, float, float, float, str]
"""Name, pages, milliseconds a page, pages per second, how many times as fast as encoding again, what became of the
files."""
RECODED = 4
"""Pages that are encoded again at most: it takes about a second for one."""
_REPEATS = 3
"""The fastest counts; encoding again takes long enough to be measured once."""
_DISTINCT = 4
_QUALITY = 95


def extraction_rows(folder: Path, *, pages: int, threads: int) -> list[Extraction]:
    """The time of each way, for pages stored as JPEG and as PNG.

    Args:
        folder: Takes the shards and the extracted files.
        pages: A4 pages at 300 dpi of a shard.
        threads: Threads of the way that uses some.
    """
    drawn = [draw_page(seed, A4_300DPI) for seed in range(_DISTINCT)]
    rows: list[Extraction] = []
    for kind in ("JPEG", "PNG"):
        distinct = encode_pages(drawn, kind)
        shard = folder / f"{kind}.arrow"
        write_shard(shard, list(islice(cycle(distinct), pages)))
        ways: list[tuple[str, Callable[[Path, Path], list[Path]], int]] = [
            ("raw bytes", _copied, pages),
            (f"raw bytes, {threads} threads", partial(_copied, threads=threads), pages),
            ("decode, encode again", partial(_recoded, kind=kind), min(pages, RECODED)),
        ]
        times = []
        for name, way, count in ways:
            seconds = math.inf
            for _ in range(1 if way is ways[-1][1] else _REPEATS):
                start = time.perf_counter()
                files = way(shard, folder)
                seconds = min(seconds, time.perf_counter() - start)
            assert len(files) == count
            same = all(file.read_bytes() == data for file, data in zip(files, cycle(distinct), strict=False))
            times.append((name, count, seconds / count, "the same" if same else "others"))
        slowest = times[-1][2]
        rows += [
            (f"{kind}: {name}", count, seconds * 1000, 1 / seconds, slowest / seconds, files)
            for name, count, seconds, files in times
        ]
    return rows


def write_shard(path: Path, images: list[bytes]) -> None:
    """A shard as the `datasets` library stores it: an Arrow stream with a column ``{bytes, path}``."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    column = pa.array([{"bytes": image, "path": None} for image in images], kind)
    batch = pa.record_batch({"image": column})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        for start in range(0, len(images), _DISTINCT):
            stream.write_batch(batch.slice(start, _DISTINCT))


def _images(shard: Path) -> Iterator[bytes]:
    """The stored images, as a run reads them."""
    for row in read_rows(shard, FileFormat.ARROW_STREAM, SourceOptions()):
        assert isinstance(row, DatasetRow)
        assert row.data is not None
        yield row.data


def _copied(shard: Path, folder: Path, threads: int = 0) -> list[Path]:
    def write(number: int, data: bytes) -> Path:
        path = folder / f"page-{number}"
        path.write_bytes(data)
        return path

    if not threads:
        return [write(number, data) for number, data in enumerate(_images(shard))]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(write, *zip(*enumerate(_images(shard)), strict=True)))


def _recoded(shard: Path, folder: Path, kind: str) -> list[Path]:
    files = []
    for number, data in enumerate(islice(_images(shard), RECODED)):
        path = folder / f"page-{number}"
        with Image.open(io.BytesIO(data)) as image:
            image.convert("RGB").save(path, kind, quality=_QUALITY)  # PNG takes no notice of the quality
        files.append(path)
    return files
