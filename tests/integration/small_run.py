"""A run directory of made-up documents, written and resumed as a run does it but without parsing anything."""

import contextlib
import hashlib
import random
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from pagemill.app.exporters import default_exporters
from pagemill.document.identity import PageKey
from pagemill.document.labels import Label
from pagemill.document.names import crop_path
from pagemill.document.page import ImageCrop, PageError, PageResult, Region, Status
from pagemill.store.rows import Place
from pagemill.store.run_directory import RunDirectory

DOCUMENTS: Mapping[str, int] = {"alpha": 7, "beta": 1, "gamma": 12}
"""Documents by name, with their number of pages."""
SETTINGS = {"languages": ["en"]}
RESULTS, TEXTS, DATABASE = "ocr_results.jsonl", "parsed_texts.jsonl", ".pagemill/run.sqlite"


def digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def page_of(
    name: str, number: int, position: int, *, doc_id: str, page_id: str
) -> tuple[PageResult, list[tuple[str, bytes]]]:
    """A page with its crops, always the same for the same arguments. Every seventh page of a document fails."""
    chance = random.Random(f"{name}/{number}")
    regions = [
        Region(
            index=index,
            label=Label.IMAGE if index and chance.random() < 0.5 else Label.TEXT,
            bbox_2d=(0, 100 * index, 1000, 100 * index + 90),
            bbox=(0.0, 10.0 * index, 100.0, 10.0 * index + 9),
            content=" ".join(chance.choices(("mill", "stone", "wheel", "Mühle", "곡식", "flour"), k=30)),
        )
        for index in range(chance.randint(1, 4))
    ]
    crops = []
    listed = []
    for region in regions:
        if region.label is Label.IMAGE:
            region.content = None
            data = chance.randbytes(chance.randint(50, 3000))
            path = crop_path(page_id, region.index)
            crops.append((path, data))
            listed.append(
                ImageCrop(
                    path=path,
                    bbox=region.bbox_2d,
                    label=region.label,
                    region=region.index,
                    size=len(data),
                    sha256=hashlib.sha256(data).hexdigest(),
                )
            )
    failed = number % 7 == 0
    page = PageResult(
        page_id=page_id,
        page_idx=position,
        page_key=str(PageKey(digest(name), number)),
        doc_id=doc_id,
        source=f"{name}.pdf",
        page_number=number,
        width=100,
        height=140,
        regions=[] if failed else regions,
        markdown="" if failed else "\n\n".join(region.content or "" for region in regions),
        image_crops=[] if failed else listed,
        status=Status.FAILED if failed else Status.DONE,
        errors=[PageError(component="layout", category="timeout", message="too slow")] if failed else [],
        timings={"layout": chance.random()},
    )
    return page, [] if failed else crops


def write_run(
    out: Path,
    documents: Mapping[str, int] = DOCUMENTS,
    *,
    stop_after: int | None = None,
    sync_every: int = 5,
    report: bool = True,
    on_page: Callable[[int], None] | None = None,
    on_sync: Callable[[], None] | None = None,
) -> int:
    """Start or resume a run over documents; the number of pages that were written.

    Args:
        out: The run directory.
        documents: As :data:`DOCUMENTS`.
        stop_after: Pages after which the run is drained, as by Ctrl-C.
        sync_every: Pages after which the files are flushed.
        report: Write ``report.html``.
        on_page: Called with the number of pages that are written, after each.
        on_sync: Called when the files are flushed.
    """
    written = position = 0
    with RunDirectory.open(out, exporters=default_exporters(report), identity=SETTINGS, settings=SETTINGS) as run:
        for name, count in documents.items():
            known = run.catalogue.register(digest(name), f"{name}.pdf")
            run.catalogue.counted(digest(name), known.copy, count)
            doc_id = run.catalogue.document_id(digest(name), name)
            for number in range(1, count + 1):
                position += 1
                if number in known.ended:
                    continue
                if written == stop_after:
                    run.finish(interrupted=True, complete=False)
                    return written
                waiting = known.waiting.get(number)
                page_id = waiting.page_id if waiting else run.catalogue.page_id(f"{doc_id}_{number}")
                page, crops = page_of(name, number, position - 1, doc_id=doc_id, page_id=page_id)
                run.start_page(PageKey(digest(name), number), Place.of(page))
                run.write_page(page, crops, f"preview of {page_id}".encode() * 20)
                written += 1
                if written % sync_every == 0:
                    run.sync()
                    if on_sync:
                        on_sync()
                if on_page:
                    on_page(written)
            run.finish_document(doc_id)
        run.set_total(position)
        run.finish(interrupted=False, complete=True)
    return written


def damage_record(out: Path, page_id: str) -> None:
    """Change a bit in the middle of a stored record."""
    with contextlib.closing(sqlite3.connect(out / DATABASE)) as connection, connection:
        record, data = connection.execute(
            "SELECT record, data FROM pages JOIN records USING (record) WHERE page_id = ?", (page_id,)
        ).fetchone()
        damaged = bytearray(data)
        damaged[len(damaged) // 2] ^= 1
        connection.execute("UPDATE records SET data = ? WHERE record = ?", (bytes(damaged), record))


def in_database(out: Path, statement: str) -> None:
    """Change the database of a run."""
    with contextlib.closing(sqlite3.connect(out / DATABASE)) as connection, connection:
        connection.execute(statement)


def edit(path: Path, change: Callable[[list[bytes]], object]) -> None:
    """Change the lines of a file."""
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


def records_of(out: Path) -> set[bytes]:
    """The lines of all records: they hold the crops' digests, so two runs with the same are the same."""
    lines = (out / "ocr_results.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == len(set(lines))
    return set(lines)
