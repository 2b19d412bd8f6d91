"""Mend a run directory: what is whole stays, what is lost waits to be parsed anew."""

from __future__ import annotations

import contextlib
import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pagemill.document.identity import PageKey
from pagemill.store import paths
from pagemill.store.compaction import finish_renames
from pagemill.store.dropping import OF_PAGE, RESULTS_FILE, TEXTS_FILE, TO_WAITING, counted
from pagemill.store.files import output_errors, size_of
from pagemill.store.findings import Kind, Verdict  # msgspec reads the annotation
from pagemill.store.ledger import Ledger
from pagemill.store.lines import open_lines
from pagemill.store.lock import RunLock
from pagemill.store.opening import OpenMode
from pagemill.store.reading import RunReader
from pagemill.store.rebuilding import read_run_json, rebuild_ledger
from pagemill.store.records import decode_page
from pagemill.store.rows import Place, Span
from pagemill.store.run_directory import RunDirectory
from pagemill.store.verify import examine, require_run, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

    from pagemill.store.exporters import Exporters
    from pagemill.store.survey import Survey

_DELETED = (Kind.ORPHANED_CROP, Kind.ORPHANED_DOCUMENT, Kind.LEFT_OVER)
"""Findings that are files to be deleted."""
_ADOPTED = (Kind.RECORD_WITHOUT_ROW, Kind.OTHER_ROW)
"""Findings after which a record stays, and its row of the ledger is written anew."""
_TEXTS = (Kind.MISSING_TEXT, Kind.OTHER_TEXT)
"""Findings after which a record stays, and its text is made anew."""


def _concerned(kinds: tuple[Kind, ...]) -> str:
    """Query for the records that findings of some kinds concern."""
    return "SELECT line FROM findings WHERE line IS NOT NULL AND kind IN ({})".format(
        ", ".join(f"'{kind.value}'" for kind in kinds)
    )


_KEPT_TEXTS = f"""
SELECT texts.number FROM texts JOIN lines ON lines.page_id = texts.page_id JOIN rows USING (page_key)
WHERE lines.good AND rows.text_offset = texts.offset AND lines.number NOT IN ({_concerned(_ADOPTED + _TEXTS)})
"""
_LOST_TEXTS = f"SELECT {TEXTS_FILE}, offset, length FROM texts WHERE number NOT IN ({_KEPT_TEXTS})"
_CHANGED_DOCUMENTS = f"""
SELECT doc_id FROM stale UNION SELECT doc_id FROM lines WHERE doc_id IS NOT NULL AND
(NOT good OR number IN ({_concerned(_ADOPTED)}))
UNION SELECT doc_id FROM rows WHERE state IN ('done', 'failed') AND NOT EXISTS
(SELECT 1 FROM lines WHERE lines.good AND lines.page_key = rows.page_key)
"""
_CROPS_OF_LOST_LINES = """
SELECT path FROM crops JOIN lines ON lines.number = crops.line WHERE NOT good EXCEPT
SELECT path FROM crops JOIN lines ON lines.number = crops.line WHERE good
"""
_LOST_DOCUMENTS = "SELECT doc_id FROM lines WHERE fault IS NULL EXCEPT SELECT doc_id FROM lines WHERE good"


class Repairs(msgspec.Struct, kw_only=True):
    """What was mended, and how the directory is now."""

    ledger_rebuilt: bool = False
    lines_dropped: int = 0
    """Of ``ocr_results.jsonl``."""
    pages_reset: int = 0
    """Pages whose record was lost, and that wait for the next run."""
    rows_mended: int = 0
    """Rows of the ledger that now say what their record says."""
    texts_made: int = 0
    """Lines of ``parsed_texts.jsonl`` made anew from their records."""
    files_deleted: int = 0
    exports_made: bool = False
    """Documents that did not agree with their records, the report and ``run.json`` were made anew."""
    left: Verdict


class _Mended(NamedTuple):
    lines: int
    pages: int
    rows: int
    texts: int


def repair(path: Path, *, exporters: Exporters, quick: bool = False) -> tuple[Verdict, Repairs]:
    """Mend what :func:`pagemill.store.verify.verify` finds.

    Lines that are no records, doubled ones, and those of pages whose crops are not whole are dropped; such pages wait
    for the next run. Files that belong to this run by their names, and that nothing mentions, are deleted; others are
    not touched. The ledger is made to say what the records say, and made anew where it is not whole. Texts, documents,
    report and ``run.json`` are made from the records where they do not agree with them. A process that dies in between
    leaves a directory that can be mended again.

    Args:
        path: The run directory.
        exporters: The formats that the run was written with.
        quick: As in :func:`~pagemill.store.verify.verify`.

    Returns:
        What was found before, and what was done.

    Raises:
        LockedError: Another process works on the directory.
        DamagedRunError: Neither the ledger nor ``run.json`` says what run this is.
        OutputError: There is no run, or a file cannot be written; NoSpaceError when the disk is full.
    """
    require_run(path)
    with _locked(path):
        with examine(path, exporters=exporters, quick=quick) as found:
            before, facts = found.verdict, found.facts
        if not before.damaged:
            return before, Repairs(left=before)
        if facts is None:
            rebuild_ledger(path)
        elif facts.renaming:
            with contextlib.closing(Ledger(path / paths.LEDGER)) as ledger:
                finish_renames(path, ledger)
        with examine(path, exporters=exporters, quick=quick) as found:
            only_files = all(group.kind in _DELETED or not group.kind.is_damage for group in found.verdict.groups)
            mended = _Mended(0, 0, 0, 0) if only_files else _mend(found.survey)
            deleted = _delete(found.survey)
    exports_made = facts is None or not only_files
    if exports_made:
        _make_exports(path, exporters)
    return before, Repairs(
        ledger_rebuilt=facts is None,
        lines_dropped=mended.lines,
        pages_reset=mended.pages,
        rows_mended=mended.rows,
        texts_made=mended.texts,
        files_deleted=deleted,
        exports_made=exports_made,
        left=verify(path, exporters=exporters, quick=quick),
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with output_errors(path):
        (path / paths.FOLDER).mkdir(exist_ok=True)
    lock = RunLock(path / paths.LOCK)
    try:
        yield
    finally:
        lock.release()


def _mend(survey: Survey) -> _Mended:
    """Make the ledger say what the good records say, and that all other lines are to be cut out, in one transaction.

    The next one that opens the directory cuts them out and makes the texts that are missing.
    """
    out, db = survey.path, survey.db
    with contextlib.closing(Ledger(out / paths.LEDGER)) as ledger:
        summary = ledger.summary()
        assert summary is not None
        with open_lines(out / paths.RESULTS) as results, ledger.database.transaction() as connection:
            rows = _adopt(survey, ledger, connection, results)
            pages = connection.executemany(
                f"UPDATE pages SET {TO_WAITING} {OF_PAGE}",
                _keys(
                    survey,
                    "SELECT page_key FROM rows WHERE state IN ('done', 'failed') AND NOT EXISTS"
                    " (SELECT 1 FROM lines WHERE lines.good AND lines.page_key = rows.page_key)",
                ),
            ).rowcount
            texts = connection.executemany(
                f"UPDATE pages SET text_offset = NULL, text_length = NULL, text_crc = NULL {OF_PAGE}",
                _keys(survey, f"SELECT page_key FROM lines WHERE good AND number IN ({_concerned(_TEXTS)})"),
            ).rowcount
            lines = connection.executemany(
                "INSERT OR REPLACE INTO dropped VALUES (?, ?, ?)",
                db.cursor().execute(f"SELECT {RESULTS_FILE}, offset, length FROM lines WHERE NOT good"),
            ).rowcount
            connection.executemany(
                "INSERT OR REPLACE INTO dropped VALUES (?, ?, ?)",
                db.cursor().execute(_LOST_TEXTS),
            )
            connection.executemany(
                "UPDATE pages SET preview_offset = NULL, preview_length = NULL, preview_crc = NULL WHERE name = ?",
                ((page_id.casefold(),) for _, page_id in survey.found(Kind.LOST_PREVIEW) if page_id is not None),
            )
            connection.executemany(
                "UPDATE documents SET written = 0 WHERE name = ?",
                ((doc_id.casefold(),) for (doc_id,) in db.cursor().execute(_CHANGED_DOCUMENTS)),
            )
            summary.restore(counted(connection, results))
            sizes = size_of(out / paths.RESULTS), size_of(out / paths.TEXTS), size_of(out / paths.PREVIEWS)
            ledger.count(connection, summary, sizes)
    return _Mended(max(lines, 0), max(pages, 0), rows, max(texts, 0))


def _adopt(survey: Survey, ledger: Ledger, connection: sqlite3.Connection, results: BinaryIO) -> int:
    """Write the rows of records that have none, or another one; their number."""
    taken: list[int] = []
    adopted = 0
    for number, offset, length, crc, *preview in survey.db.cursor().execute(
        "SELECT number, lines.offset, lines.length, lines.crc, preview_offset, preview_length, preview_crc"
        f" FROM lines LEFT JOIN rows USING (page_key) WHERE good AND number IN ({_concerned(_ADOPTED)})"
    ):
        results.seek(offset)
        page = decode_page(results.read(length))
        key = PageKey.parse(page.page_key)
        place = Place.of(page)
        try:
            ledger.end_page(connection, key, place, page)
        except sqlite3.IntegrityError:  # another page has this id
            taken.append(number)
            continue
        span = None if preview[0] is None else Span(*preview)
        ledger.note_lines(connection, key, record=Span(offset, length, crc), text=None, preview=span)
        adopted += 1
    survey.db.executemany("UPDATE lines SET good = 0 WHERE number = ?", [(number,) for number in taken])
    return adopted


def _keys(survey: Survey, query: str) -> Iterator[tuple[int, bytes, int]]:
    """Keys of pages as :data:`~pagemill.store.dropping.OF_PAGE` wants them."""
    for (text,) in survey.db.cursor().execute(query):
        key = PageKey.parse(text)
        yield key.page, bytes.fromhex(key.digest), key.copy


def _delete(survey: Survey) -> int:
    """Delete what belongs to this run and nothing mentions; the number of files."""
    orphaned = (place for place, _ in survey.found(*_DELETED))
    crops = (path for (path,) in survey.db.cursor().execute(_CROPS_OF_LOST_LINES))
    documents = (
        file.relative_to(survey.path).as_posix()
        for (doc_id,) in survey.db.cursor().execute(_LOST_DOCUMENTS)
        for file in paths.document_files(survey.path, doc_id)
    )
    deleted = 0
    for name in (*orphaned, *crops, *documents):
        with output_errors(survey.path / name), contextlib.suppress(FileNotFoundError):
            (survey.path / name).unlink()
            deleted += 1
    return deleted


def _make_exports(path: Path, exporters: Exporters) -> None:
    """Make the documents that are not up to date, the report if the run had one, and ``run.json``."""
    with RunReader.open(path) as reader:
        summary = reader.summary
        had_report = (path / paths.REPORT).exists() or next(reader.rows("preview_offset IS NOT NULL"), None) is not None
    run_json = read_run_json(path)
    ended = summary if summary.finished or run_json is None else run_json
    with RunDirectory.open(
        path,
        exporters=exporters if had_report else replace(exporters, report=None),
        identity=summary.identity,
        settings=summary.settings,
        mode=OpenMode.RESUME,
    ) as directory:
        directory.finish(interrupted=ended.interrupted or ended.finished is None, complete=False)
