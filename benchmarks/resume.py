"""Passing over an input that has ended: how long a resumed run takes to see that nothing is left to do.

Builds a folder of ``--pages`` small image files and, apart from it, dataset shards with as many rows; writes a record
of every page into a run directory; then opens the directory again and reads the input to its end, which skips all
of it. Each is timed several times in a process that has just started. The bar is 2 s for 40,781 pages.

    python benchmarks/resume.py
    python benchmarks/resume.py --pages 1000000 --only shards
"""

from __future__ import annotations

import argparse
import asyncio
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pagemill.document.page import PageResult
from pagemill.imaging.limits import DecodeLimits
from pagemill.imaging.page import PdfInfo, PdfRepair
from pagemill.readers.reading import DocumentRead
from pagemill.sources import SourceOptions
from pagemill.sources.stream import InputStream
from pagemill.store.derived import Exporters
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory

PAGES = 40_781
SHARD_ROWS = 1_000
EXPORTERS = Exporters(
    embedding_text=lambda page: "",
    document_markdown=lambda pages: "",
    document_json=lambda pages, info, provisional: "",
)


class NoPdfs:
    """Stands in for the decoding service."""

    limits = DecodeLimits()

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        """Never called: there is no PDF."""
        raise NotImplementedError

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        """Never called, either."""
        raise NotImplementedError

    async def read_document(self, path: Path, target: Path, name: str, password: str | None = None) -> DocumentRead:
        """Never called: there is no document."""
        raise NotImplementedError


def png(number: int) -> bytes:
    """A PNG of one pixel, different from all others by a text in it."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    text = chunk(b"tEXt", b"page\0%d" % number)
    return b"\x89PNG\r\n\x1a\n" + header + text + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def write_images(folder: Path, pages: int) -> None:
    """Write so many image files, dated some time back: a fresh one may still change, and is read again."""
    folder.mkdir()
    for number in range(pages):
        path = folder / f"page-{number}.png"
        path.write_bytes(png(number))
        os.utime(path, (1.6e9, 1.6e9))


def write_shards(folder: Path, pages: int) -> None:
    """Write so many rows in Parquet files, dated likewise."""
    folder.mkdir()
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for first in range(0, pages, SHARD_ROWS):
        numbers = range(first, min(first + SHARD_ROWS, pages))
        rows = pa.array([{"bytes": png(number), "path": None} for number in numbers], image)
        path = folder / f"train-{first // SHARD_ROWS:05}.parquet"
        pq.write_table(pa.table({"id": [f"report{n // 20}_{n % 20 + 1}" for n in numbers], "image": rows}), path)
        os.utime(path, (1.6e9, 1.6e9))


async def read(inputs: Path, out: Path) -> tuple[int, int]:
    """Read an input to its end with what a run directory knows, and record every page that it gives.

    Returns:
        Pages skipped, and pages given.
    """
    given = 0
    with RunDirectory.open(out, exporters=EXPORTERS, identity={}, settings={}) as directory:
        source = InputStream([inputs], options=SourceOptions(), decoder=NoPdfs(), catalogue=directory.catalogue)
        async for ref in source.pages():
            given += 1
            page = PageResult(
                page_id=ref.page_id,
                page_idx=ref.position,
                page_key=str(ref.key),
                doc_id=ref.document.doc_id,
                source=ref.document.uri,
                page_number=ref.page_number,
            )
            directory.start_page(ref.key, Place.of(page))
            directory.write_page(page)
    return source.skipped_earlier, given


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--only", choices=["images", "shards"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--read", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        start = time.perf_counter()
        skipped_earlier, given = asyncio.run(read(*options.read))
        print(f"{skipped_earlier} skipped, {given} given, {time.perf_counter() - start:.2f} s")
        return
    for name, write in (("images", write_images), ("shards", write_shards)):
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                inputs, out = Path(folder, name), Path(folder, "out")
                write(inputs, options.pages)
                for run in ("first", *["again"] * options.repeat):
                    command = [sys.executable, __file__, "--read", str(inputs), str(out)]
                    found = subprocess.run(command, check=True, capture_output=True, text=True)
                    print(f"{name:8} {run:6} {found.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
