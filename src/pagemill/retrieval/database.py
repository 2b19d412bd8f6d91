"""The index file: an SQLite database with two full-text tables, and its errors."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from pagemill.errors import DamagedRunError, MissingDependencyError, MissingInputError
from pagemill.retrieval import tokens
from pagemill.store.database import require_no_journal, require_sqlite, translated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = "index"
"""Of the run directory."""
FILE = f"{FOLDER}/index.sqlite"
LOCK = f"{FOLDER}/lock"
APPLICATION_ID = 0x504D4958
"""``PMIX``."""
FORMAT = 3000 + tokens.VERSION
"""Version of the schema and of the tokens."""
_BUSY_S = 10.0

_SCHEMA = f"""
CREATE TABLE state (         -- one row: what the index was made of
    run_started TEXT NOT NULL, records_size INTEGER NOT NULL, records_end INTEGER NOT NULL,
    complete INTEGER NOT NULL) STRICT;
CREATE TABLE pages (
    page INTEGER PRIMARY KEY, page_id TEXT NOT NULL UNIQUE, doc_id TEXT NOT NULL, source TEXT NOT NULL,
    page_number INTEGER, language TEXT NOT NULL, words BLOB NOT NULL,  -- SHA-256 of the words, for near-duplicates
    text_digest TEXT, image_digest TEXT,                               -- of what is embedded
    crc INTEGER NOT NULL, length INTEGER NOT NULL) STRICT;             -- of the record's line
CREATE INDEX pages_doc_id ON pages (doc_id);
CREATE INDEX pages_words ON pages (words);
CREATE TABLE regions (
    id INTEGER PRIMARY KEY, page INTEGER NOT NULL, region INTEGER NOT NULL, label TEXT NOT NULL,
    bbox TEXT NOT NULL, crop TEXT, text TEXT NOT NULL,
    text_digest TEXT, picture_digest TEXT, UNIQUE (page, region)) STRICT;
CREATE INDEX regions_label ON regions (label, page);  -- all that a filter by label asks
CREATE TABLE vectors (       -- the files of vectors as they were, and what each row is of
    part TEXT PRIMARY KEY, info BLOB NOT NULL, size INTEGER NOT NULL, content INTEGER NOT NULL,
    pages BLOB NOT NULL, regions BLOB NOT NULL) STRICT;
CREATE VIRTUAL TABLE page_words USING fts5(words, content='', tokenize='{tokens.TOKENIZER}');
CREATE VIRTUAL TABLE region_words USING fts5(words, label, content='', tokenize='{tokens.TOKENIZER}');
INSERT INTO region_words (region_words, rank) VALUES ('rank', 'bm25(1.0, 0.0)');  -- a label selects and weighs nothing
"""


def label_token(label: str) -> str:
    """A region's label as one token of ``region_words``."""
    return "".join(character for character in label if character.isalnum())


@contextlib.contextmanager
def index_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into pagemill's.

    Raises:
        NoSpaceError: The disk is full.
        DamagedRunError: The file is not an intact index.
        OutputError: It cannot be read or written for another reason.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise translated(error, path, repair=_anew(path), use="Make sure that you may read and write there.") from error


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open an index, created if missing; a damaged one, or one of another version, is rebuilt.

    Raises:
        OutputError: It cannot be written.
        MissingDependencyError: This SQLite has no full-text search.
    """
    _require_full_text()
    with index_errors(path):
        try:
            connection = _connect(path, "mode=rwc")
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            connection = None
        if connection is None or _version(connection) not in {(0, 0), (APPLICATION_ID, FORMAT)}:
            if connection is not None:
                connection.close()
            delete(path)
            connection = _connect(path, "mode=rwc")
        try:
            if _version(connection) == (0, 0):
                connection.executescript(
                    f"PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
                    f" PRAGMA user_version = {FORMAT}; COMMIT"
                )
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open an existing index.

    Raises:
        MissingInputError: There is no index.
        OutputError: It cannot be read; DamagedRunError if it is damaged or of another version.
    """
    out = path.parent.parent
    if not path.is_file():
        raise MissingInputError(f"{out} has no search index", remedy=f"Build it: pagemill index {out}")
    require_sqlite()
    _require_full_text()
    with index_errors(path):
        try:
            connection = _connect(path, "mode=ro")
        except sqlite3.OperationalError:  # SQLite may not create its own files there
            require_no_journal(path)
            connection = _connect(path, "immutable=1")
        version = _version(connection)
        if version != (APPLICATION_ID, FORMAT):
            connection.close()
            raise _damaged(path, "it was made by another version of pagemill, or never finished")
    return connection


def delete(path: Path) -> None:
    """Delete an index and SQLite's files beside it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection) -> tuple[int, int]:
    application, version = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    return application, version


def _require_full_text() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE texts USING fts5(words)")
        except sqlite3.OperationalError as error:
            raise MissingDependencyError(
                "SQLite of this Python has no full-text search (FTS5)",
                remedy="Use a Python whose SQLite has it: one from python.org, uv, conda or a Linux distribution.",
            ) from error


def _damaged(path: Path, reason: str) -> DamagedRunError:
    return DamagedRunError(f"{path} is damaged: {reason}", remedy=_anew(path))


def _anew(path: Path) -> str:
    return f"Rebuild it: pagemill index {path.parent.parent}"
