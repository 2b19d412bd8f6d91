"""What the end of a run costs: documents, the report, ``run.json``, and the last sync.

Writes runs of ``--pages`` records as the store writes them, each as one document of all pages and as a document a
page; then ends each in a process that has just started, and again with all documents deleted, so that they are made
again. Prints the seconds of the end, the peak memory of the process before and in it, and the most that the
database's journal took. Memory and journal must not grow with the pages; the ratio of the largest run to the smallest
is the last line of each kind.

    python benchmarks/run_end.py
    python benchmarks/run_end.py --pages 1000 5000 --record-kb 4
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from pagemill.app.exporters import default_exporters
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.page import PageResult, Region
from pagemill.store import paths
from pagemill.store.database import Database
from pagemill.store.opening import OpenMode
from pagemill.store.run_directory import PREVIEW_PAGES, RunDirectory

IDENTITY = {"benchmark": "run end"}
KINDS = ("one document", "a document a page")
PREVIEW = b"\xff\xd8" + b"preview" * 2_000
SAMPLE_S = 0.005


def make_page(number: int, kilobytes: int, *, one_document: bool) -> PageResult:
    """A record of about that size, like that of a page of text."""
    doc_id = "whole" if one_document else f"scan_{number:06}"
    page_number = number + 1 if one_document else 1
    dice = random.Random(number % 97)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 10))) for _ in range(60)]
    regions = [
        Region(
            index=index,
            label=Label.TEXT,
            bbox_2d=(50, 10 * index, 950, 10 * index + 9),
            bbox=(85.0, 22.0 * index, 1615.0, 22.0 * index + 20),
            content=" ".join(words),
        )
        for index in range(max(1, kilobytes * 1024 // 1000))
    ]
    return PageResult(
        page_id=f"{doc_id}_{page_number}",
        page_idx=number,
        page_key=str(PageKey(hashlib.sha256(doc_id.encode()).hexdigest(), page_number)),
        doc_id=doc_id,
        source=f"{doc_id}.pdf",
        page_number=page_number,
        width=1700,
        height=2200,
        regions=regions,
        markdown="\n\n".join(region.content or "" for region in regions),
    )


def write_run(out: Path, pages: int, kilobytes: int, *, one_document: bool) -> None:
    """Write a run up to its end. Its documents are said to be up to date and are empty: they only have to be there."""
    with open_run(out, OpenMode.FRESH) as run:
        for number in range(pages):
            page = make_page(number, kilobytes, one_document=one_document)
            run.write_page(page, preview=PREVIEW if number < PREVIEW_PAGES else None)
    database = Database(out / paths.DATABASE)
    with database.transaction() as connection:
        for (doc_id,) in connection.execute("UPDATE documents SET written = 1 RETURNING doc_id").fetchall():
            for file in paths.document_files(out, doc_id):
                file.touch()
    database.close()


def open_run(out: Path, mode: OpenMode = OpenMode.RESUME) -> RunDirectory:
    """Open the run with the formats of the command line."""
    return RunDirectory.open(out, exporters=default_exporters(), identity=IDENTITY, settings={}, mode=mode)


def end_run(out: Path) -> dict[str, Any]:
    """End a run; what that took."""
    journal = out / ".pagemill" / "run.sqlite-wal"
    ended = threading.Event()
    largest = 0

    def watch() -> None:
        nonlocal largest
        while not ended.wait(SAMPLE_S):
            largest = max(largest, journal.stat().st_size)

    with open_run(out) as run:
        before = peak_mib()
        watching = threading.Thread(target=watch)
        watching.start()
        start, busy = time.perf_counter(), time.process_time()
        try:
            run.finish(complete=False)
        finally:
            seconds, cpu_s = time.perf_counter() - start, time.process_time() - busy
            ended.set()
            watching.join()
    return {"seconds": seconds, "cpu_s": cpu_s, "before": before, "peak": peak_mib(), "journal": largest / 2**20}


def peak_mib() -> float:
    """Peak resident memory of this process (Linux)."""
    return int(Path("/proc/self/status").read_text(encoding="ascii").split("VmHWM:")[1].split()[0]) / 1024


def ended(out: Path) -> dict[str, Any]:
    """End a run in a process of its own."""
    command = [sys.executable, __file__, "--end", str(out)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[5_000, 40_781])
    parser.add_argument("--record-kb", type=int, default=8)
    parser.add_argument("--folder", type=Path, help="where to write; the system's folder for temporary files otherwise")
    parser.add_argument("--end", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.end:
        print(json.dumps(end_run(options.end)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for kind in KINDS:
            measure(Path(name), kind, options.pages, options.record_kb)


def measure(folder: Path, kind: str, counts: list[int], kilobytes: int) -> None:
    """Print a table: a row a size, the documents there or to be made again."""
    print(f"{kind}\n{'pages':>8} {'documents':>10} {'s':>7} {'CPU s':>7} {'MiB before':>11} {'peak':>7} {'journal':>8}")
    peaks: dict[str, list[float]] = {"there": [], "missing": []}
    for pages in counts:
        out = folder / "run"
        write_run(out, pages, kilobytes, one_document=kind == KINDS[0])
        for state, each in peaks.items():
            if state == "missing":
                shutil.rmtree(out / "documents")
            took = ended(out)
            each.append(took["peak"])
            print(
                f"{pages:8,} {state:>10} {took['seconds']:7.2f} {took['cpu_s']:7.2f} {took['before']:11.0f}"
                f" {took['peak']:7.0f} {took['journal']:8.1f}",
                flush=True,
            )
        shutil.rmtree(out)
    ratios = ", ".join(f"{peak[-1] / peak[0]:.2f} ({state})" for state, peak in peaks.items())
    print(f"peak memory, largest to smallest: {ratios}")


if __name__ == "__main__":
    main()
