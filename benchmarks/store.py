"""What the store costs: a page written, and a run opened again.

Writes ``--pages`` records of ``--record-kb`` through a run directory (start, write, sync as in a run) and the same
lines to two plain files, alternately, in the same run; prints microseconds a page and their ratio. ``--crops`` adds
crops.

Then builds databases of ``--rows`` pages of one dataset and of as many sources of one page, and times opening each and
asking what has ended. ``--derive N`` writes a run of N pages, prints the size of its database beside that of
``ocr_results.jsonl``, and times writing both JSONL files again, with the growth of memory meanwhile.

    python benchmarks/store.py
    python benchmarks/store.py --rows 40781 1000000 --pages 5000
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import statistics
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

from pagemill.app.exporters import default_exporters
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.names import crop_path
from pagemill.document.page import ImageCrop, PageResult, Region
from pagemill.store import paths
from pagemill.store.derived import Exporters, LineFile, result_lines, text_lines
from pagemill.store.rows import PageState, Place
from pagemill.store.run_database import RunDatabase
from pagemill.store.run_directory import RunDirectory

EXPORTERS = Exporters(
    embedding_text=lambda page: page.markdown,
    document_markdown=lambda pages: (page.markdown for page in pages),
    document_json=lambda pages, info, provisional: (page.markdown for page in pages),
)
DIGEST = hashlib.sha256(b"benchmark").hexdigest()
CROP_BYTES = 30_000
_LETTERS = random.Random(0)
VOCABULARY = ["".join(_LETTERS.choices("abcdefghijklmnopqrstuvwxyz", k=_LETTERS.randint(2, 10))) for _ in range(8_000)]
WEIGHTS = list(accumulate(1 / rank for rank in range(1, len(VOCABULARY) + 1)))
"""Words as frequent as those of a language, so that records compress as those of real pages do."""


def make_page(
    number: int, kilobytes: int, crops: int, dice: random.Random
) -> tuple[PageResult, list[tuple[str, bytes]]]:
    """A record of about that size, like those of a page of text, and its crops."""
    regions = [
        Region(
            index=index,
            label=Label.TEXT,
            bbox_2d=(50, 10 * index, 950, 10 * index + 9),
            bbox=tuple(round(dice.uniform(0, 2200), 1) for _ in range(4)),  # type: ignore[arg-type]
            confidence=round(dice.random(), 4),
            content=" ".join(dice.choices(VOCABULARY, cum_weights=WEIGHTS, k=60)),
        )
        for index in range(max(1, kilobytes * 1024 // 800))
    ]
    page_id = f"page_{number}"
    files = [(crop_path(page_id, index), dice.randbytes(CROP_BYTES)) for index in range(crops)]
    page = PageResult(
        page_id=page_id,
        page_idx=number,
        page_key=str(PageKey(DIGEST, number + 1)),
        doc_id="page",
        source="benchmark.parquet",
        page_number=number + 1,
        regions=regions,
        markdown="\n\n".join(region.content or "" for region in regions[:8]),
        timings={"decode": 0.1, "layout": 0.2, "recognition": 0.5},
        image_crops=[
            ImageCrop(
                path=path,
                bbox=(0, 0, 1, 1),
                label=Label.IMAGE,
                region=0,
                size=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
            )
            for path, content in files
        ],
    )
    return page, files


def time_writing(folder: Path, pages: int, kilobytes: int, crops: int) -> None:
    """Print what a page costs in a run directory and as plain lines."""
    from pagemill.store.records import encode_line, text_line

    dice = random.Random(1)
    begun: list[float] = []
    ended: list[float] = []
    plain: list[float] = []
    record_bytes = 0
    out = folder / "run"
    with (
        RunDirectory.open(out, exporters=EXPORTERS, identity={"benchmark": 1}, settings={}) as run,
        (folder / "records").open("ab", buffering=0) as records,
        (folder / "texts").open("ab", buffering=0) as texts,
    ):
        begin = time.perf_counter()
        for number in range(pages):
            page, files = make_page(number, kilobytes, crops, dice)
            start = time.perf_counter()
            run.start_page(PageKey(DIGEST, number + 1), Place.of(page))
            noted = time.perf_counter()
            run.write_page(page, files)
            begun.append(noted - start)
            ended.append((middle := time.perf_counter()) - noted)
            records.write(line := encode_line(page))
            texts.write(text_line(page, EXPORTERS.embedding_text))
            for path, content in files:
                (folder / Path(path).name).write_bytes(content)
            plain.append(time.perf_counter() - middle)
            record_bytes += len(line)
        whole = time.perf_counter() - begin
        start = time.perf_counter()
        run.sync()
        sync_s = time.perf_counter() - start
    print(f"{pages} pages of {record_bytes / pages / 1024:.0f} KB, {crops} crops each, in {whole:.1f} s")
    for name, seconds in (("page begins", begun), ("page ends", ended), ("plain files", plain)):
        print(
            f"  {name}: fastest {min(seconds) * 1e6:.0f} us, median {statistics.median(seconds) * 1e6:.0f} us, "
            f"mean {statistics.fmean(seconds) * 1e6:.0f} us, worst {max(seconds) * 1e3:.1f} ms"
        )
    stored = statistics.fmean(begun) + statistics.fmean(ended)
    overhead = stored - statistics.fmean(plain)
    ratio = stored / statistics.fmean(plain)
    print(f"  the store adds {overhead * 1e6:.0f} us a page (mean); ratio {ratio:.2f}; last sync {sync_s * 1e3:.1f} ms")


def build(out: Path, rows: int, *, sources: int) -> None:
    """Write a finished run of ``rows`` pages in so many sources straight into a database; its records are tiny."""
    with RunDirectory.open(out, exporters=EXPORTERS, identity={"benchmark": 1}, settings={}) as run:
        run.finish()
    per_source = rows // sources
    database = RunDatabase(out / paths.DATABASE)
    with database.transaction() as connection:
        connection.executemany(
            "INSERT INTO sources (source, digest, copy, uri, pages) VALUES (?, ?, 1, ?, ?)",
            (
                (source, hashlib.sha256(b"%d" % source).digest(), f"/data/scan_{source}.png", per_source)
                for source in range(1, sources + 1)
            ),
        )
        connection.executemany(
            "INSERT INTO documents (document, key, doc_id, name, uri, written) VALUES (?, ?, ?, ?, ?, 1)",
            ((n, f"key {n}", f"scan_{n}", f"scan_{n}", f"/data/scan_{n}.png") for n in range(1, sources + 1)),
        )
        connection.executemany(
            "INSERT INTO pages (source, page, state, attempts, page_id, name, document, page_number, page_idx, record,"
            " length, crc) VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    *(index // per_source + 1, index % per_source + 1, PageState.DONE),
                    *(f"scan_{index}_1", f"scan_{index}_1", index // per_source + 1, index % per_source + 1, index),
                    *(index + 1, 20_000, 1),
                )
                for index in range(per_source * sources)
            ),
        )
        connection.executemany("INSERT INTO records VALUES (?, x'00')", ((n,) for n in range(1, rows + 1)))
        connection.execute("UPDATE derived SET record = ?, bytes = ?", (rows, rows * 20_000))
    database.checkpoint()
    database.close()
    os.truncate(out / paths.RESULTS, rows * 20_000)


def time_opening(folder: Path, rows: int, *, sources: int) -> None:
    """Print how long it takes to open a run and to learn of every page that it has ended."""
    out = folder / f"{rows} in {sources}"
    build(out, rows, sources=sources)
    size = (out / paths.DATABASE).stat().st_size / 2**20
    per_source = rows // sources
    start = time.perf_counter()
    with RunDirectory.open(out, exporters=EXPORTERS, identity={"benchmark": 1}, settings={}) as run:
        opened = time.perf_counter() - start
        start, busy = time.perf_counter(), time.process_time()
        ended = 0
        for source in range(1, sources + 1):
            known = run.catalogue.register(hashlib.sha256(b"%d" % source).hexdigest(), f"/data/scan_{source}.png")
            ended += sum(page in known.ended for page in range(1, per_source + 1))
        met, busy = time.perf_counter() - start, time.process_time() - busy
    assert ended == per_source * sources
    print(
        f"{rows} pages in {sources} sources ({size:.0f} MB): opened in {opened:.2f} s, asked for in {met:.2f} s "
        f"({busy:.2f} s of the processor), together {opened + met:.2f} s"
    )
    shutil.rmtree(out)


def time_deriving(folder: Path, pages: int, kilobytes: int) -> None:
    """Print the size of a database and what deriving both JSONL files from it takes."""
    out, dice = folder / "derived", random.Random(2)
    exporters = default_exporters(report=False)
    options: dict[str, Any] = {"exporters": exporters, "identity": {"benchmark": 1}, "settings": {}}
    with RunDirectory.open(out, **options) as run:
        for number in range(pages):
            run.write_page(make_page(number, kilobytes, 0, dice)[0])
    size, lines = (out / paths.DATABASE).stat().st_size, (out / paths.RESULTS).stat().st_size
    print(f"{pages} pages: database {size / 2**20:.0f} MiB, {size / lines:.3f} of {paths.RESULTS}")
    run_database = RunDatabase(out / paths.DATABASE)
    before, start, busy = peak_mib(), time.perf_counter(), time.process_time()
    for name, make in (
        (paths.RESULTS, result_lines),
        (paths.TEXTS, lambda records: text_lines(records, exporters.embedding_text)),
    ):
        file = LineFile(out / name, run_database, make)
        file.distrust()
        file.update()
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    run_database.close()
    growth = peak_mib() - before
    print(f"  both JSONL files in {seconds:.1f} s ({busy:.1f} s of the processor), memory + {growth:.0f} MiB")


def peak_mib() -> float:
    """Peak resident memory of this process (Linux)."""
    return int(Path("/proc/self/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--record-kb", type=int, default=20)
    parser.add_argument("--crops", type=int, default=0, help="of 30 KB each")
    parser.add_argument("--rows", type=int, nargs="*", default=[40_781])
    parser.add_argument("--derive", type=int, metavar="N", help="pages of a run whose JSONL files are derived")
    parser.add_argument("--folder", type=Path, help="where to write; the system's folder for temporary files otherwise")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        time_writing(folder, arguments.pages, arguments.record_kb, arguments.crops)
        if arguments.derive:
            time_deriving(folder, arguments.derive, arguments.record_kb)
        for rows in arguments.rows:
            time_opening(folder, rows, sources=1)
            time_opening(folder, rows, sources=rows)


if __name__ == "__main__":
    main()
