"""What a run directory holds, line by line and file by file, as tables of a private database.

A run may have a million pages and several crops a page: everything that is compared with something else is a row here,
and the comparisons are queries. The database lies in the system's folder for temporary files, without a name, and goes
away with its connection.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pagemill.document.identity import PageKey
from pagemill.document.names import file_stem
from pagemill.store.files import reading_errors
from pagemill.store.findings import MAX_EXAMPLES, Finding, FindingGroup, Kind
from pagemill.store.lines import Line, read_lines
from pagemill.store.paths import CROPS, DOCUMENTS, RESULTS, TEMPORARY_SUFFIX, TEXTS, crop_file
from pagemill.store.records import ParsedText, decode_page
from pagemill.store.recovery import text_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from pagemill.document.page import PageResult
    from pagemill.store.summary import Counters

_Item = TypeVar("_Item")
_CHUNK_ROWS = 1000
_CHUNK_BYTES = 2**20

_TABLES = """
CREATE TABLE rows(  -- pages that the ledger knows
    page_key TEXT PRIMARY KEY, state TEXT, page_id TEXT, doc_id TEXT, page_idx INTEGER, page_number INTEGER,
    offset INTEGER, length INTEGER, crc INTEGER, text_offset INTEGER, text_crc INTEGER,
    preview_offset INTEGER, preview_length INTEGER, preview_crc INTEGER
) WITHOUT ROWID;
CREATE INDEX rows_offset ON rows(offset);
CREATE TABLE documents(doc_id TEXT PRIMARY KEY, written INTEGER) WITHOUT ROWID;  -- that the ledger knows
CREATE TABLE dropped(file INTEGER, offset INTEGER, PRIMARY KEY (file, offset)) WITHOUT ROWID;
CREATE TABLE leftovers(path TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE lines(  -- of the records; good: no reason was found to do without it
    number INTEGER PRIMARY KEY, offset INTEGER, length INTEGER, crc INTEGER, fault TEXT, page_key TEXT, page_id TEXT,
    page_idx INTEGER, doc_id TEXT, page_number INTEGER, status TEXT, text_crc INTEGER,
    good INTEGER, named INTEGER DEFAULT 0
);
CREATE TABLE crops(line INTEGER, path TEXT, size INTEGER, sha256 TEXT);
CREATE TABLE texts(number INTEGER PRIMARY KEY, offset INTEGER, length INTEGER, crc INTEGER, fault TEXT, page_id TEXT);
CREATE TABLE files(path TEXT PRIMARY KEY, size INTEGER) WITHOUT ROWID;
CREATE TABLE names(kind TEXT, stem TEXT, PRIMARY KEY (kind, stem)) WITHOUT ROWID;  -- of files, by what they belong to
CREATE TABLE stale(doc_id TEXT PRIMARY KEY) WITHOUT ROWID;  -- documents that do not agree with their records
CREATE TABLE findings(kind TEXT, place TEXT, page_id TEXT, detail TEXT, line INTEGER);
"""
_INDICES = """
CREATE INDEX lines_key ON lines(page_key);
CREATE INDEX lines_page ON lines(page_id);
CREATE INDEX lines_document ON lines(doc_id, page_number, page_idx);
CREATE INDEX lines_torn ON lines(offset) WHERE fault IS NOT NULL;
CREATE INDEX crops_line ON crops(line);
CREATE INDEX crops_path ON crops(path);
CREATE INDEX texts_page ON texts(page_id, number);
CREATE INDEX findings_kind ON findings(kind, line);
"""


class Survey:
    """What is there, and what was found wrong with it.

    Fill it with the ``read_`` and ``list_`` methods, then :meth:`index` it, then ask :attr:`db` and :meth:`note`.

    Args:
        path: The run directory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.renaming = False
        """The files of lines were being replaced when the run was cut off: new ones may have their temporary name."""
        self.db = sqlite3.connect("", isolation_level=None, uri=True)
        self.db.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_TABLES}")

    def close(self) -> None:
        """Delete the tables."""
        self.db.close()

    def read_records(
        self, counters: Counters, embedding_text: Callable[[PageResult], str] | None, *, end: int | None = None
    ) -> None:
        """Read ``ocr_results.jsonl`` (its first ``end`` bytes) into ``lines`` and ``crops``.

        ``fault`` of a line says why it is no record of a page. Lines that the ledger has dropped are passed over.

        Args:
            counters: Counts all pages that there is a record of.
            embedding_text: Makes the text that a record should have in ``parsed_texts.jsonl``; None if the ledger
                knows what was written there.
            end: Bytes to read; None for all.

        Raises:
            OutputError: The file cannot be read. One that is missing is empty.
        """
        dropped = {offset for (offset,) in self.db.execute("SELECT offset FROM dropped WHERE file = 0")}
        for lines in _chunks(self._lines(RESULTS, end)):
            records: list[tuple[Any, ...]] = []
            crops: list[tuple[Any, ...]] = []
            for line in lines:
                if line.offset in dropped:
                    continue
                page, fault = _page(self.path, line)
                if page is None:
                    records.append((*line[:3], line.crc, fault, *(None,) * 7, 0, 0))
                    continue
                counters.add(page)
                text = zlib.crc32(text_line(page, embedding_text)) if embedding_text else None
                names = (page.page_key, page.page_id, page.page_idx, page.doc_id, page.page_number)
                records.append((*line[:3], line.crc, None, *names, page.status.value, text, 1, 0))
                crops += [(line.number, crop.path, crop.size, crop.sha256) for crop in page.image_crops]
            self._insert("lines", records)
            self._insert("crops", crops)

    def read_texts(self, *, end: int | None = None) -> None:
        """Read ``parsed_texts.jsonl`` (its first ``end`` bytes) into ``texts``.

        Raises:
            OutputError: The file cannot be read. One that is missing is empty.
        """
        dropped = {offset for (offset,) in self.db.execute("SELECT offset FROM dropped WHERE file = 1")}
        decoder = msgspec.json.Decoder(ParsedText)
        for lines in _chunks(self._lines(TEXTS, end)):
            rows: list[tuple[Any, ...]] = []
            for line in lines:
                page_id = fault = None
                try:
                    page_id = decoder.decode(line.whole()).page_id
                except ValueError as error:
                    fault = str(error)
                if line.offset not in dropped:
                    rows.append((*line[:3], line.crc, fault, page_id))
            self._insert("texts", rows)

    def list_files(self, folder: str) -> None:
        """Note the files directly in a folder, by their path in the run directory; size -1 for what is no file.

        Raises:
            OutputError: The folder cannot be read. One that is missing is empty.
        """
        path = self.path / folder
        if not path.is_dir():
            return
        with reading_errors(path), os.scandir(path) as entries:
            for chunk in _chunks(entries):
                self._insert("files", [(f"{folder}/{_name(entry)}".lstrip("/"), _size(entry)) for entry in chunk])

    def file(self, name: str) -> Path:
        """Where the lines of a file are."""
        new = self.path / f"{name}{TEMPORARY_SUFFIX}"
        return new if self.renaming and new.is_file() else self.path / name

    def index(self) -> None:
        """Make the tables quick to ask, and note which names of files belong to this run; when all is read."""
        self.db.executescript(_INDICES)
        stems = (
            (DOCUMENTS, "SELECT doc_id FROM documents UNION SELECT doc_id FROM lines WHERE fault IS NULL"),
            (CROPS, "SELECT page_id FROM rows UNION SELECT page_id FROM lines WHERE fault IS NULL"),
            ("recorded", "SELECT DISTINCT doc_id FROM lines WHERE fault IS NULL"),
        )
        for kind, query in stems:
            for chunk in _chunks(self.db.cursor().execute(query)):
                self.db.executemany(
                    "INSERT OR IGNORE INTO names VALUES (?, ?)", [(kind, file_stem(name)) for (name,) in chunk]
                )

    def belongs(self, kind: str, stem: str) -> bool:
        """Whether a file of this stem belongs to a page (``crops``), document or document with records here."""
        return bool(self.db.execute("SELECT 1 FROM names WHERE kind = ? AND stem = ?", (kind, stem)).fetchone())

    def note(self, kind: Kind, query: str, parameters: Sequence[Any] = ()) -> None:
        """Note a finding for each row of a query: place, page id, detail, and the number of the record concerned."""
        self.db.execute(f"INSERT INTO findings SELECT '{kind.value}', * FROM ({query})", parameters)

    def add(
        self, kind: Kind, place: str, page_id: str | None = None, detail: str | None = None, line: int | None = None
    ) -> None:
        """Note one finding; ``line`` is the number of the record concerned."""
        self.db.execute("INSERT INTO findings VALUES (?, ?, ?, ?, ?)", (kind.value, place, page_id, detail, line))

    def lose(self, kind: Kind) -> None:
        """The records with a finding of this kind are good no longer."""
        self.db.execute("UPDATE lines SET good = 0 WHERE number IN (SELECT line FROM findings WHERE kind = ?)", (kind,))

    def found(self, *kinds: Kind) -> Iterator[tuple[str, str | None]]:
        """Place and page id of all findings of some kinds."""
        marks = ",".join("?" * len(kinds))
        return self.db.cursor().execute(f"SELECT place, page_id FROM findings WHERE kind IN ({marks})", kinds)

    def groups(self) -> list[FindingGroup]:
        """The findings by kind, in the order of the kinds."""
        counts = dict(self.db.execute("SELECT kind, count(*) FROM findings GROUP BY kind"))
        return [
            FindingGroup(
                kind=kind,
                count=counts[kind],
                examples=[
                    Finding(kind=kind, place=place, page_id=page_id, detail=detail)
                    for place, page_id, detail in self.db.execute(
                        "SELECT place, page_id, detail FROM findings WHERE kind = ? ORDER BY rowid LIMIT ?",
                        (kind, MAX_EXAMPLES),
                    )
                ],
            )
            for kind in Kind
            if kind in counts
        ]

    def _lines(self, name: str, end: int | None) -> Iterator[Line]:
        path = self.file(name)
        if not path.exists():
            return
        with reading_errors(path), path.open("rb", buffering=_CHUNK_BYTES) as stream:
            yield from read_lines(stream, end)

    def _insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            marks = ",".join("?" * len(rows[0]))
            self.db.execute("BEGIN")
            self.db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            self.db.execute("COMMIT")


def _page(path: Path, line: Line) -> tuple[PageResult | None, str | None]:
    """The record in a line, or why there is none."""
    try:
        page = decode_page(line.whole())
        PageKey.parse(page.page_key)
        for crop in page.image_crops:
            crop_file(path, crop.path)
    except ValueError as error:  # msgspec's are some
        return None, str(error)
    return page, None


def _name(entry: os.DirEntry[str]) -> str:
    """Its name; bytes that are no UTF-8 behind a backslash, which no name of ours holds."""
    return entry.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _size(entry: os.DirEntry[str]) -> int:
    with contextlib.suppress(FileNotFoundError):  # a temporary file of a run that goes on
        if entry.is_file(follow_symlinks=False):
            return entry.stat(follow_symlinks=False).st_size
    return -1


def _chunks(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, _CHUNK_ROWS)):
        yield chunk
