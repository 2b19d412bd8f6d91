"""The index file: an SQLite database with two full-text tables."""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pagemill.errors import DamagedRunError, MissingDependencyError, MissingInputError
from pagemill.retrieval import tokens
from pagemill.store.database import Database, delete_database, is_damage, version_of

T = TypeVar("T")

FOLDER = "index"
"""Folder in the run directory."""
FILE = f"{FOLDER}/index.sqlite"
LOCK = f"{FOLDER}/lock"
APPLICATION_ID = 0x504D4958
"""``PMIX``."""
FORMAT = 7000 + tokens.VERSION
"""Version of the schema and of the tokens."""
DESCRIPTION_WEIGHT = 0.5
"""Weight of a word in a model's description; one on the page weighs 1. Not measured."""
_BUSY_S = 10.0

_SCHEMA = f"""
CREATE TABLE runs (          -- one, without a name, in the index of a run directory
    run TEXT PRIMARY KEY, owner TEXT NOT NULL, collection TEXT NOT NULL, started TEXT NOT NULL,
    stamp TEXT NOT NULL) STRICT;                                       -- of the records; empty until all are added
CREATE INDEX runs_owner ON runs (owner, collection);
CREATE TABLE pages (
    page INTEGER PRIMARY KEY, run TEXT NOT NULL, page_id TEXT NOT NULL, doc_id TEXT NOT NULL, source TEXT NOT NULL,
    page_number INTEGER, language TEXT NOT NULL, words BLOB NOT NULL,  -- SHA-256 of the words, for near-duplicates
    text_digest TEXT, image_digest TEXT,                               -- of what is embedded
    crc INTEGER NOT NULL, length INTEGER NOT NULL,                     -- of the record's line
    about TEXT NOT NULL,                                               -- title and author, with a document's first page
    vector BLOB, UNIQUE (run, page_id)) STRICT;                        -- half precision; in an index of several runs
CREATE INDEX pages_doc_id ON pages (doc_id);
CREATE INDEX pages_words ON pages (words);
CREATE TABLE regions (
    id INTEGER PRIMARY KEY, page INTEGER NOT NULL, region INTEGER NOT NULL, label TEXT NOT NULL,
    bbox TEXT NOT NULL, crop TEXT, text TEXT NOT NULL, description TEXT NOT NULL,
    text_digest TEXT, picture_digest TEXT, UNIQUE (page, region)) STRICT;
CREATE INDEX regions_label ON regions (label, page);  -- all that a filter by label asks
CREATE TABLE vectors (       -- the files of vectors as they were, and what each row is of
    part TEXT PRIMARY KEY, info BLOB NOT NULL, stamp TEXT NOT NULL,
    pages BLOB NOT NULL, regions BLOB NOT NULL) STRICT;
CREATE VIRTUAL TABLE page_words USING fts5(words, description, content='', tokenize='{tokens.TOKENIZER}');
CREATE VIRTUAL TABLE region_words USING fts5(words, label, description, content='', tokenize='{tokens.TOKENIZER}');
INSERT INTO page_words (page_words, rank) VALUES ('rank', 'bm25(1.0, {DESCRIPTION_WEIGHT})');
INSERT INTO region_words (region_words, rank)           -- a label selects and weighs nothing
    VALUES ('rank', 'bm25(1.0, 0.0, {DESCRIPTION_WEIGHT})');
"""


def label_token(label: str) -> str:
    """A region's label as one token of ``region_words``."""
    return "".join(character for character in label if character.isalnum())


def repair(path: Path) -> str:
    """The remedy when an index is damaged."""
    return f"Rebuild it: pagemill index {path.parent.parent}"


@contextlib.contextmanager
def open_for_writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open an index, created if missing.

    Raises:
        sqlite3.DatabaseError: It is damaged, or of another version.
        MissingDependencyError: This SQLite has no full-text search.
    """
    require_full_text()
    with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_S)) as connection:
        version = version_of(connection)
        # A new file. All in one transaction, so that a process that is killed leaves no half of a schema.
        if version == (0, 0):
            connection.executescript(
                f"PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
                f" PRAGMA user_version = {FORMAT}; COMMIT"
            )
        elif version != (APPLICATION_ID, FORMAT):
            raise sqlite3.DatabaseError("unsupported file format")  # the words of SQLite for one that it cannot read
        connection.execute("PRAGMA synchronous = NORMAL")
        yield connection


def open_for_reading(path: Path) -> Database:
    """Open an existing index.

    Raises:
        MissingInputError: There is no index.
        OutputError: It cannot be read; DamagedRunError if it is damaged or of another version.
    """
    out = path.parent.parent
    if not path.is_file():
        raise MissingInputError(f"{out} has no search index", remedy=f"Build it: pagemill index {out}")
    return Database(path, read_only=True, accept=_accept, repair=repair(path))


def rebuilt_if_damaged(path: Path, work: Callable[[], T]) -> T:
    """Run a call on an index; if the index is damaged, delete it and run the call again on a new one."""
    try:
        return work()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        delete_database(path)  # an index can be made again from its runs
        return work()


def _accept(connection: sqlite3.Connection, path: Path) -> None:
    if version_of(connection) != (APPLICATION_ID, FORMAT):
        raise DamagedRunError(
            f"{path} was written by another version of pagemill, or never finished", remedy=repair(path)
        )


@functools.cache
def require_full_text() -> None:
    """Raise a MissingDependencyError where this SQLite has no full-text search."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE texts USING fts5(words)")
        except sqlite3.OperationalError as error:
            raise MissingDependencyError(
                "SQLite of this Python has no full-text search (FTS5)",
                remedy="Use a Python whose SQLite has it: one from python.org, uv, conda or a Linux distribution.",
            ) from error
