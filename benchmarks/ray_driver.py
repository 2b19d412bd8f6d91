"""What the driver of a run on a cluster bears: records a second, and references planned, resumed and shown as progress.

``writer``: units of 16 pages, as workers send them, are decoded and written into a run directory by the code of a run:
records of ``--record-kb``, ``--crops`` crops of ``--crop-kb``. ``--ray`` has the units made by actors of a local Ray
cluster, so that they come through its object store. Prints pages a second, by tenths of the run, and memory.

``plan``: Parquet shards with ``--references`` rows in all are planned: ids read, names given, units made, none sent.
``--journal`` also notes each page as begun, as a run does. Then every page is marked as finished, and the same input is
planned again, as by a resumed run, and the progress read as by ``pagemill status``. Prints seconds and memory.

    python benchmarks/ray_driver.py writer --pages 2000
    python benchmarks/ray_driver.py plan --references 10000000
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import store
from pagemill.app.status import read_status
from pagemill.cluster.units import UNIT_PAGES, UnitPageResult, UnitResult, decode_result, encode, make_unit
from pagemill.document.identity import PageKey
from pagemill.imaging.limits import DecodeLimits
from pagemill.sources.options import SourceOptions
from pagemill.sources.stream import InputStream
from pagemill.store import paths
from pagemill.store.reading import RunReader
from pagemill.store.records import decode_page, encode_line
from pagemill.store.rows import PageState, Place
from pagemill.store.run_directory import RunDirectory
from store import EXPORTERS, make_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pagemill.imaging.page import PdfInfo, PdfRepair
    from pagemill.readers.reading import DocumentRead
    from pagemill.sources.base import PageRef

_SHARDS = 100
_DIFFERENT = 8
"""Units that are made; the others are these, with other numbers."""


class UnitMaker:
    """Encoded units of made-up pages, of which no two have the same key."""

    def __init__(self, kilobytes: int, crops: int) -> None:
        dice = random.Random(3)
        self._pages = [make_page(0, kilobytes, crops, dice) for _ in range(_DIFFERENT)]

    def __call__(self, number: int) -> bytes:
        """The unit of a number."""
        pages = []
        for index in range(number * UNIT_PAGES, (number + 1) * UNIT_PAGES):
            page, files = self._pages[index % _DIFFERENT]
            page.page_key, page.page_idx = str(PageKey(store.DIGEST, index + 1)), index
            page.page_id, page.page_number = f"page_{index}", index + 1
            crops = [(f"crops/page_{index}_crop_{at}.jpg", data) for at, (_, data) in enumerate(files)]
            page.image_crops = [
                type(crop)(**{name: getattr(crop, name) for name in crop.__struct_fields__} | {"path": path})
                for crop, (path, _) in zip(page.image_crops, crops, strict=True)
            ]
            line = encode_line(page)
            pages.append(UnitPageResult(record=line, crops=crops, preview=None, retryable=False, unserved=False))
        return encode(UnitResult(number=number, node="here", pages=pages))


def memory_mib() -> float:
    """Resident memory of this process that no file backs, now (Linux)."""
    return int(Path("/proc/self/status").read_text(encoding="ascii").split("RssAnon:")[1].split()[0]) / 1024


def through_ray(make: UnitMaker, units: int) -> Iterator[bytes]:
    """The units, made by two actors of a cluster on this machine."""
    import ray
    from ray.data import ActorPoolStrategy

    class Making:
        def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
            return {"result": make(int(row["id"]))}

    from pagemill.cluster.connection import connect

    connect("local")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.target_max_block_size = 1
    made = ray.data.range(units, override_num_blocks=units).map(Making, compute=ActorPoolStrategy(size=2), num_cpus=0.5)
    for batch in made.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from batch.column("result").to_pylist()


def time_writer(folder: Path, pages: int, kilobytes: int, crops: int, *, ray: bool) -> None:
    """Print the rate of the writer and its memory."""
    make, units = UnitMaker(kilobytes, crops), pages // UNIT_PAGES
    results = through_ray(make, units) if ray else map(make, range(units))
    tenth = max(1, units // 10)
    seconds, busy, done, sizes = 0.0, 0.0, 0, []
    with RunDirectory.open(folder / "run", exporters=EXPORTERS, identity={"benchmark": 1}, settings={}) as run:
        first = time.perf_counter()
        while batch := list(islice(results, 1)):
            start, started = time.perf_counter(), time.process_time()
            for sent in decode_result(batch[0]).pages:
                page = decode_page(sent.record)
                run.start_page(PageKey.parse(page.page_key), Place.of(page))
                run.write_page(page, sent.crops)
            seconds += time.perf_counter() - start
            busy += time.process_time() - started
            done += 1
            if done % tenth == 0:
                sizes.append(memory_mib())
                rate = tenth * UNIT_PAGES / (time.perf_counter() - first)
                print(f"  {done * UNIT_PAGES} pages, {rate:.0f} pages/s, memory {sizes[-1]:.0f} MiB", flush=True)
                first = time.perf_counter()
        start = time.perf_counter()
        run.sync()
        seconds += time.perf_counter() - start
    written = done * UNIT_PAGES
    how = "through Ray" if ray else "without Ray"
    print(
        f"{written} pages, records of {kilobytes} KB, {crops} crops of {store.CROP_BYTES / 1000:.0f} KB, {how}: "
        f"{written / seconds:.0f} pages/s while writing, {busy / written * 1000:.2f} ms "
        f"of the processor a page; memory {sizes[1]:.0f} MiB after a fifth, {sizes[-1]:.0f} in the end"
    )


class _NoPdf:
    limits = DecodeLimits()

    async def probe_pdf(self, path: Path, password: str | None = None) -> PdfInfo:
        raise NotImplementedError

    async def repair_pdf(self, path: Path, target: Path, password: str | None = None) -> PdfRepair:
        raise NotImplementedError

    async def read_document(self, path: Path, target: Path, name: str, password: str | None = None) -> DocumentRead:
        raise NotImplementedError


def write_shards(folder: Path, references: int) -> None:
    """Shards with ids, and images that nobody reads."""
    folder.mkdir()
    rows = references // _SHARDS
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for shard in range(_SHARDS):
        ids = pa.array([f"document-{shard:03d}-{row // 20:07d}_{row % 20}" for row in range(rows)])
        images = pa.nulls(rows, kind)
        pq.write_table(pa.table({"id": ids, "image": images}), folder / f"shard-{shard:03d}.parquet")


async def plan(shards: Path, run: RunDirectory, *, journal: bool) -> tuple[int, int]:
    """Plan as the driver does; the pages that were given, and those skipped."""
    stream = InputStream([shards], options=SourceOptions(), decoder=_NoPdf(), catalogue=run.catalogue, planning=True)
    writer = ThreadPoolExecutor(1)
    loop = asyncio.get_running_loop()
    unit: list[PageRef] = []
    given = number = 0

    def note(refs: list[PageRef]) -> None:
        for ref in refs:
            place = Place(ref.page_id, ref.document.doc_id, ref.document.uri, ref.page_number, ref.position)
            run.start_page(ref.key, place)

    async for ref in stream.pages():
        unit.append(ref)
        given += 1
        if len(unit) == UNIT_PAGES:
            encode(make_unit(number, unit))
            if journal:
                await loop.run_in_executor(writer, note, unit)
            else:  # names of pages that are noted are in the database; the others are kept in memory
                run.catalogue._run.new_names.clear()
                run.catalogue._run.new_documents.clear()
            unit, number = [], number + 1
        if given % 1_000_000 == 0:
            print(f"  {given:,} planned, memory {memory_mib():.0f} MiB", flush=True)
    return given, stream.skipped_earlier


def finish_all(out: Path, shards: Path) -> None:
    """Mark all rows of the shards as finished, straight in the database."""
    with sqlite3.connect(out / paths.DATABASE) as connection:
        connection.execute("DELETE FROM pages")
        number = 0
        sources = connection.execute("SELECT source FROM sources ORDER BY uri").fetchall()
        connection.execute(
            "INSERT INTO documents (key, doc_id, name, uri, written) VALUES ('key', 'all', 'all', 'all', 1)"
        )
        (document,) = connection.execute("SELECT max(document) FROM documents").fetchone()
        for (source,), shard in zip(sources, sorted(shards.iterdir()), strict=True):
            rows = pq.read_metadata(shard).num_rows
            connection.executemany(
                "INSERT INTO pages (source, page, state, attempts, page_id, name, document, page_number, page_idx,"
                " record, length, crc) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, 20000, 1)",
                (
                    (source, row, int(PageState.DONE), f"p{at}", f"p{at}", document, row, at, at + 1)
                    for row, at in ((row, number + row - 1) for row in range(1, rows + 1))
                ),
            )
            connection.execute("UPDATE sources SET pages = ? WHERE source = ?", (rows, source))
            number += rows


def time_planning(folder: Path, references: int, *, journal: bool) -> None:
    """Print what planning, resuming and progress cost."""
    shards, out = folder / "shards", folder / "run"
    write_shards(shards, references)
    options: dict[str, Any] = {"exporters": EXPORTERS, "identity": {"benchmark": 1}, "settings": {}}
    before = memory_mib()
    with RunDirectory.open(out, **options) as run:
        start = time.perf_counter()
        given, _ = asyncio.run(plan(shards, run, journal=journal))
        seconds = time.perf_counter() - start
    what = "planned and noted as begun" if journal else "planned"
    print(
        f"{given:,} references {what} in {seconds:.0f} s, {given / seconds:,.0f} a second; "
        f"memory {memory_mib():.0f} MiB"
    )
    finish_all(out, shards)
    start = time.perf_counter()
    with RunDirectory.open(out, **options) as run:
        opened = time.perf_counter() - start
        given, skipped = asyncio.run(plan(shards, run, journal=False))
    seconds = time.perf_counter() - start
    print(
        f"resumed: opened in {opened:.1f} s, {skipped:,} finished pages skipped and {given} given in {seconds:.1f} s; "
        f"memory {memory_mib():.0f} MiB, {before:.0f} before all"
    )
    start = time.perf_counter()
    with RunReader.open(out) as reader:
        read_status(reader)
    print(f"progress of {references:,} pages read in {time.perf_counter() - start:.2f} s")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["writer", "plan"])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--record-kb", type=int, default=21)
    parser.add_argument("--crops", type=int, default=8)
    parser.add_argument("--crop-kb", type=int, default=60)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--references", type=int, default=1_000_000)
    parser.add_argument("--journal", action="store_true")
    parser.add_argument("--folder", type=Path, help="where to write; the system's folder for temporary files otherwise")
    arguments = parser.parse_args()
    store.CROP_BYTES = arguments.crop_kb * 1000
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        if arguments.what == "writer":
            time_writer(Path(name), arguments.pages, arguments.record_kb, arguments.crops, ray=arguments.ray)
        else:
            time_planning(Path(name), arguments.references, journal=arguments.journal)


if __name__ == "__main__":
    main()
