"""Tables of a run's database."""

from __future__ import annotations

from pagemill.store.rows import PageState

APPLICATION_ID = 0x504D494C
"""``PMIL``: marks an SQLite file as the database of a run."""
FORMAT = 2
"""Version of the tables."""
PAGE_SIZE = 1024
"""Bytes. Records of 22 KB made of random words take 0.29 of their lines in the database, with pages of 4096 bytes 0.36;
a page costs the same time."""

TABLES = f"""
CREATE TABLE run (          -- one row; synced: the crops of all records up to this one are on the disk
    identity TEXT NOT NULL, settings TEXT NOT NULL, version TEXT NOT NULL,
    started TEXT NOT NULL, finished TEXT, interrupted INTEGER NOT NULL DEFAULT 0,
    total INTEGER, session INTEGER NOT NULL DEFAULT 0,
    synced INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE counts (       -- one row, changed by every page
    counters TEXT NOT NULL) STRICT;
CREATE TABLE sources (
    source INTEGER PRIMARY KEY, digest BLOB NOT NULL, copy INTEGER NOT NULL, uri TEXT NOT NULL, pages INTEGER,
    UNIQUE (digest, copy)) STRICT;
CREATE INDEX sources_uri ON sources (uri);
CREATE TABLE documents (    -- written: its files agree with its records, and are on the disk
    document INTEGER PRIMARY KEY, key TEXT UNIQUE, doc_id TEXT NOT NULL, name TEXT NOT NULL UNIQUE,
    uri TEXT NOT NULL, written INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX documents_written ON documents (written);
CREATE TABLE pages (        -- page 0: a source, or a part of one, that could not be read
    source INTEGER NOT NULL, page INTEGER NOT NULL,
    state INTEGER NOT NULL, alone INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0, death TEXT,
    page_id TEXT NOT NULL, name TEXT NOT NULL UNIQUE,
    document INTEGER NOT NULL, page_number INTEGER, page_idx INTEGER NOT NULL,
    category TEXT, message TEXT,
    record INTEGER, length INTEGER, crc INTEGER,
    PRIMARY KEY (source, page)) STRICT, WITHOUT ROWID;
CREATE INDEX pages_document ON pages (document);
CREATE INDEX pages_not_done ON pages (state) WHERE state <> {PageState.DONE:d};
CREATE TABLE records (      -- data: the line of ocr_results.jsonl without its newline, compressed with zstd
    record INTEGER PRIMARY KEY AUTOINCREMENT,  -- no number is used twice: readers tell by it whether a run has changed
    data BLOB NOT NULL) STRICT;
CREATE TABLE previews (     -- small page images for the report
    record INTEGER PRIMARY KEY, image BLOB NOT NULL) STRICT;
CREATE TABLE crops (
    path TEXT PRIMARY KEY, record INTEGER NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX crops_record ON crops (record);
CREATE TABLE garbage (      -- crops and documents of removed pages, to be deleted
    path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE derived (      -- a file that holds the lines of all records up to this one, in so many bytes
    name TEXT PRIMARY KEY, record INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE digests (
    path BLOB PRIMARY KEY, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE samples (time REAL PRIMARY KEY, session INTEGER NOT NULL, ended INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""
