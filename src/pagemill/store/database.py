"""The ledger's file: one SQLite connection in WAL mode, its schema, and what its errors mean."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

from pagemill.errors import DamagedRunError, MissingDependencyError, NoSpaceError, OutputError
from pagemill.store.files import NO_SPACE_REMEDY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

APPLICATION_ID = 0x504D494C
"""``PMIL``: marks an SQLite file as a ledger of pagemill."""
FORMAT = 1
"""Version of the schema."""

_SCHEMA = """
CREATE TABLE run (          -- one row: what the run is, and what a power cut leaves of it
    identity TEXT NOT NULL, settings TEXT NOT NULL,
    started TEXT NOT NULL, finished TEXT, interrupted INTEGER NOT NULL DEFAULT 0,
    total INTEGER, session INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,  -- counts rewrites of the JSONL files
    renaming INTEGER NOT NULL DEFAULT 0,    -- a rewrite is recorded, its renames may not be done
    synced_results INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE written (      -- one row: changes with every page
    counters TEXT NOT NULL,
    results INTEGER NOT NULL DEFAULT 0, texts INTEGER NOT NULL DEFAULT 0, previews INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE sources (
    source INTEGER PRIMARY KEY, digest BLOB NOT NULL, copy INTEGER NOT NULL, uri TEXT NOT NULL, pages INTEGER,
    UNIQUE (digest, copy)) STRICT;
CREATE INDEX sources_uri ON sources (uri);
CREATE TABLE documents (
    document INTEGER PRIMARY KEY, key TEXT UNIQUE, doc_id TEXT NOT NULL, name TEXT NOT NULL UNIQUE,
    uri TEXT NOT NULL,
    -- whether its files are up to date; 2: they are, and may not be on the disk yet
    written INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX documents_unsynced ON documents (written) WHERE written <> 1;
CREATE TABLE pages (
    source INTEGER NOT NULL, page INTEGER NOT NULL,
    state INTEGER NOT NULL, alone INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0, death TEXT,
    page_id TEXT NOT NULL, name TEXT NOT NULL UNIQUE,
    document INTEGER NOT NULL, page_number INTEGER, page_idx INTEGER NOT NULL,
    category TEXT, message TEXT,
    offset INTEGER, length INTEGER, crc INTEGER,
    text_offset INTEGER, text_length INTEGER, text_crc INTEGER,
    preview_offset INTEGER, preview_length INTEGER, preview_crc INTEGER,
    PRIMARY KEY (source, page)) STRICT, WITHOUT ROWID;
CREATE INDEX pages_document ON pages (document);
CREATE INDEX pages_offset ON pages (offset) WHERE offset IS NOT NULL;
CREATE INDEX pages_without_text ON pages (offset) WHERE offset IS NOT NULL AND text_offset IS NULL;
CREATE INDEX pages_not_done ON pages (state) WHERE state <> 3;
CREATE INDEX pages_preview ON pages (preview_offset) WHERE preview_offset IS NOT NULL;
CREATE TABLE dropped (      -- lines in the JSONL files that belong to no page any more (0: results, 1: texts)
    file INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,
    PRIMARY KEY (file, offset)) STRICT, WITHOUT ROWID;
CREATE TABLE leftovers (    -- crops and documents of dropped pages, to be deleted
    path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE digests (
    path BLOB PRIMARY KEY, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE samples (time REAL PRIMARY KEY, session INTEGER NOT NULL, ended INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""

_OLDEST_SQLITE = (3, 37)
"""The first one with STRICT tables, in which no text takes the place of a number; https://sqlite.org/stricttables.html"""
_LAZY_WRITES = 256
"""Writes that may wait for a commit: they can be made again at no great cost."""
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_BUSY_S = 10.0
_NEXT_TO_NOTHING = 64 * 2**10  # bytes


@contextlib.contextmanager
def ledger_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into pagemill's.

    Raises:
        NoSpaceError: The disk is full.
        DamagedRunError: The file is no whole database.
        OutputError: It cannot be read or written for another reason.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise translated(error, path) from error


def translated(
    error: sqlite3.DatabaseError,
    path: Path,
    *,
    mend: str = "Mend the directory with pagemill verify --repair.",
    use: str = "Make sure that you may write there and that it is on a local disk.",
) -> Exception:
    """Our error for one of SQLite's; that error itself where it is a mistake of ours.

    Args:
        error: Of SQLite.
        path: The file.
        mend: The remedy when it is damaged.
        use: The remedy when it cannot be used for another reason.
    """
    code = _primary_code(error)
    if code == sqlite3.SQLITE_FULL:
        return NoSpaceError(f"cannot write {path}: the disk is full", remedy=NO_SPACE_REMEDY)
    if is_damage(error):
        return DamagedRunError(f"{path} is damaged: {error}", remedy=mend)
    if code == sqlite3.SQLITE_IOERR and is_full(path):  # so it says that its shared memory cannot grow
        return NoSpaceError(f"cannot write {path}: the disk is full", remedy=NO_SPACE_REMEDY)
    if isinstance(error, sqlite3.OperationalError):
        return OutputError(f"cannot use {path}: {error}", remedy=use)
    return error


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error says that the file is no whole database."""
    return _primary_code(error) in _DAMAGE or "malformed" in str(error)


def _primary_code(error: sqlite3.DatabaseError) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # without what an extended code adds


def is_full(path: Path) -> bool:
    """Whether next to nothing fits on the disk any more."""
    try:
        return shutil.disk_usage(path.parent).free < _NEXT_TO_NOTHING
    except OSError:
        return False


def require_sqlite() -> None:
    """Make sure that Python's SQLite is new enough: Python itself is content with far older ones.

    Raises:
        MissingDependencyError: It is not.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise MissingDependencyError(
            f"this Python has SQLite {sqlite3.sqlite_version}; pagemill needs {'.'.join(map(str, _OLDEST_SQLITE))}",
            remedy="Use a Python with a newer SQLite, one from python.org, uv or conda, say.",
        )


def other_version(path: Path, version: int) -> OutputError:
    """The error of a ledger of another version, which is neither read nor mended nor written to."""
    return OutputError(
        f"{path} is of another version of pagemill ({version}; this one reads {FORMAT})",
        remedy="Go on with that version. To parse all anew: another directory with -o, or parse --fresh.",
    )


class Database:
    """A connection that threads take turns on.

    Args:
        path: The file; made when it is not there.

    Raises:
        DamagedRunError: It is there, and no whole ledger.
        OutputError: It cannot be opened.
        MissingDependencyError: SQLite is too old.
    """

    def __init__(self, path: Path) -> None:
        require_sqlite()
        self.path = path
        self.lock = threading.RLock()
        self._lazy = 0
        with ledger_errors(path):
            self._connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        connection = self._connection
        application, version = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
        )
        is_new = application == 0 and not connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        if not is_new:
            self._recognize(application, version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # sync() does it, not some page
        if is_new:
            with self.transaction():
                for statement in _SCHEMA.split(";\n"):
                    if statement.strip():
                        connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _recognize(self, application: int, version: int) -> None:
        if application == 0:
            raise DamagedRunError(f"{self.path} is no whole ledger")
        if application != APPLICATION_ID:
            raise OutputError(f"{self.path} is not from pagemill", remedy="Choose another directory with -o.")
        if version != FORMAT:
            raise other_version(self.path, version)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of what is done inside, or nothing. What waited for a commit is committed before."""
        with self.lock, ledger_errors(self.path):
            self.flush()
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    @contextlib.contextmanager
    def lazily(self) -> Iterator[sqlite3.Connection]:
        """For writing what may be lost when the process dies soon: it waits for the next commit."""
        with self.lock, ledger_errors(self.path):
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN")
                self._lazy = 0
            yield self._connection
            self._lazy += 1
            if self._lazy >= _LAZY_WRITES:
                self.flush()

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a small answer."""
        with self.lock:
            try:
                return self._connection.execute(statement, parameters).fetchall()
            except sqlite3.DatabaseError as error:  # not the context manager: this is asked of every source
                raise translated(error, self.path) from error

    def flush(self) -> None:
        """Commit what waits for it."""
        with self.lock, ledger_errors(self.path):
            if self._connection.in_transaction:
                try:
                    self._connection.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise

    @contextlib.contextmanager
    def durable_transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that, with all before it, survives a power cut."""
        with self.lock:
            self.flush()
            with ledger_errors(self.path):
                self._connection.execute("PRAGMA synchronous = FULL")
            try:
                with self.transaction() as connection:
                    yield connection
            finally:
                with ledger_errors(self.path):
                    self._connection.execute("PRAGMA synchronous = NORMAL")

    def checkpoint(self) -> None:
        """Move what the journal holds into the database and empty it, unless somebody is reading just now."""
        with self.lock, ledger_errors(self.path):
            self.flush()
            self._connection.execute("PRAGMA busy_timeout = 0")  # nobody waits for a reader: the next one does it
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_S * 1000:.0f}")

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self.lock, ledger_errors(self.path):
            self._connection.close()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # some errors roll back by themselves
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
