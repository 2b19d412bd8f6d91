"""Connections to a run's database, SQLite in WAL mode, with SQLite's errors turned into ours."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from pagemill.errors import DamagedRunError, MissingDependencyError, NoSpaceError, OutputError
from pagemill.store.files import NO_SPACE_REMEDY, size_of
from pagemill.store.rows import PageState

REPAIR = "Repair the directory with pagemill verify --repair."
_OLDEST_SQLITE = (3, 37)
"""The first version with STRICT tables, which reject text in a number column: https://sqlite.org/stricttables.html"""
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
_DAMAGE_TEXTS = ("malformed", "unsupported file format")
_BUSY_S = 10.0
_NEARLY_FULL_BYTES = 64 * 2**10

APPLICATION_ID = 0x504D494C
"""``PMIL``: marks an SQLite file as the database of a run."""
FORMAT = 3
"""Version of the tables; no two have the same."""
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
    record INTEGER PRIMARY KEY AUTOINCREMENT,  -- no number is used twice: readers detect a changed run by it
    data BLOB NOT NULL) STRICT;
CREATE TABLE previews (     -- small page images for the report
    record INTEGER PRIMARY KEY, image BLOB NOT NULL) STRICT;
CREATE TABLE crops (
    path TEXT PRIMARY KEY, record INTEGER NOT NULL, size INTEGER NOT NULL, sha256 TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX crops_record ON crops (record);
CREATE TABLE garbage (      -- crops and documents of removed pages, to be deleted
    path TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE derived (      -- a file with the lines of all records up to this one, and its size in bytes
    name TEXT PRIMARY KEY, record INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE digests (
    path BLOB PRIMARY KEY, size INTEGER NOT NULL, modified_ns INTEGER NOT NULL, digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE samples (time REAL PRIMARY KEY, session INTEGER NOT NULL, ended INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE facts (        -- data: pagemill.document.structure.facts_of the record
    record INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
CREATE TABLE overlays (     -- structure of a document; digest: of the facts that it was derived from
    document INTEGER PRIMARY KEY, digest BLOB NOT NULL, data BLOB NOT NULL) STRICT;
CREATE TABLE about (        -- data: metadata of the document, as JSON; name: as in documents
    name TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""
_STATEMENTS = [statement.strip() for statement in TABLES.split(";\n") if statement.strip()]


@contextlib.contextmanager
def database_errors(path: Path, *, repair: str = REPAIR) -> Iterator[None]:
    """Turn SQLite's errors into pagemill's; ``repair`` is the remedy when the file is damaged.

    Raises:
        NoSpaceError: The disk is full.
        DamagedRunError: The file is not an intact database.
        OutputError: It cannot be read or written for another reason.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = _primary_code(error)
        # When the shared memory of WAL mode cannot grow, SQLite reports a full disk as SQLITE_IOERR.
        if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and is_full(path)):
            raise NoSpaceError(f"cannot write {path}: the disk is full", remedy=NO_SPACE_REMEDY) from error
        if is_damage(error):
            raise DamagedRunError(f"{path} is damaged: {error}", remedy=repair) from error
        if isinstance(error, sqlite3.OperationalError):
            raise OutputError(
                f"cannot use {path}: {error}",
                remedy="Check the write permissions and that it is on a local disk.",
            ) from error
        raise  # a defect of ours


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error means that the file is not an intact database."""
    return _primary_code(error) in _DAMAGE or any(text in str(error) for text in _DAMAGE_TEXTS)


def _primary_code(error: sqlite3.DatabaseError) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF  # without what an extended code adds


def is_full(path: Path) -> bool:
    """Whether the disk has less than 64 KiB left."""
    try:
        return shutil.disk_usage(path.parent).free < _NEARLY_FULL_BYTES
    except OSError:
        return False


def require_sqlite() -> None:
    """Check that Python's SQLite is new enough: Python itself accepts far older versions.

    Raises:
        MissingDependencyError: It is too old.
    """
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise MissingDependencyError(
            f"this Python has SQLite {sqlite3.sqlite_version}; pagemill needs {'.'.join(map(str, _OLDEST_SQLITE))}",
            remedy="Use a Python with a newer SQLite, for example from python.org, uv or conda.",
        )


class Database:
    """A connection to an SQLite database, usually that of a run, shared by threads under a lock. A context manager.

    Args:
        file: The database; created when it is missing.
        read_only: Others may write at the same time. Every answer is a snapshot; until an iterator is exhausted, other
            answers come from the same snapshot.
        trial: Never commit, to find out what a run would do.
        accept: Raises for the database of another program or version; by default for all but that of a run.
        repair: The remedy when the file is damaged.

    Raises:
        DamagedRunError: The file exists and is not an intact database.
        OutputError: It cannot be opened.
        MissingDependencyError: SQLite is too old.
    """

    def __init__(
        self,
        file: Path,
        *,
        read_only: bool = False,
        trial: bool = False,
        accept: Callable[[sqlite3.Connection, Path], None] | None = None,
        repair: str = REPAIR,
    ) -> None:
        require_sqlite()
        self.file = file
        self.lock = threading.RLock()
        self._trial = trial
        self._accept = accept or _recognize
        self._errors = functools.partial(database_errors, file, repair=repair)
        try:
            self._open("mode=ro" if read_only else "mode=rwc", read_only=read_only)
        except OutputError as error:
            if not read_only or isinstance(error, NoSpaceError):
                raise
            # Even a reader writes shared memory in WAL mode. On a read-only medium SQLite can only read the file as one
            # that never changes, which ignores the journal: so there must be none.
            require_no_journal(file)
            self._open("mode=ro&immutable=1", read_only=True)

    def _open(self, mode: str, *, read_only: bool) -> None:
        with self._errors():
            self._connection = sqlite3.connect(
                f"{self.file.absolute().as_uri()}?{mode}",
                uri=True,
                timeout=_BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                if read_only:
                    self._accept(self._connection, self.file)
                else:
                    self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        """Set up a connection for writing, with the tables of a run; other databases have their own."""
        connection = self._connection
        is_new = not _statements_of(connection)
        if not is_new:
            self._accept(connection, self.file)
        connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        connection.execute("PRAGMA journal_mode = WAL")
        # Without an fsync per commit; sync() makes commits durable every few seconds.
        connection.execute("PRAGMA synchronous = NORMAL")
        # A checkpoint takes as long as what has gathered in the journal: sync() does it, not whichever page is next.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if is_new:
            self._create(_STATEMENTS, APPLICATION_ID, FORMAT)
        if self._trial:
            connection.execute("BEGIN")

    def _create(self, statements: Sequence[str], application: int, version: int) -> None:
        """Create tables, and mark the file as one of an application, in a format."""
        with self.transaction() as connection:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {application}")
            connection.execute(f"PRAGMA user_version = {version}")

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a small answer."""
        with self.lock, self._errors():
            return self._connection.execute(statement, parameters).fetchall()

    def one(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        """The first column of the first row; None without a row."""
        return next((row[0] for row in self.query(statement, parameters)), None)

    def each(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows of an answer one by one, from one snapshot."""
        with self._errors():
            # Not "yield from": closing a generator half-way would close the cursor, perhaps after the connection.
            for row in self._connection.execute(statement, parameters):  # noqa: UP028
                yield row

    @contextlib.contextmanager
    def moment(self) -> Iterator[None]:
        """A block in which all answers come from one snapshot."""
        with self._errors():
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            with self._errors():
                self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction; rolled back on an exception."""
        with self.lock, self._errors():
            if self._trial:
                yield self._connection
                return
            # Immediate: a transaction that reads first and writes later fails if another process wrote in between.
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # some errors roll back by themselves
                    with contextlib.suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                raise

    def change(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        """A transaction of one statement."""
        with self.transaction() as connection:
            connection.execute(statement, parameters)

    @contextlib.contextmanager
    def durable_transaction(self) -> Iterator[sqlite3.Connection]:
        """A transaction that survives a power cut, as do all before it."""
        with self.lock, self._errors():
            self._connection.execute("PRAGMA synchronous = FULL")
            try:
                with self.transaction() as connection:
                    yield connection
            finally:
                self._connection.execute("PRAGMA synchronous = NORMAL")

    def checkpoint(self) -> None:
        """Move the journal into the database and truncate it, unless a reader is active."""
        with self.lock, self._errors():
            # Do not wait for readers: the next checkpoint will do.
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.OperationalError as error:
                if _primary_code(error) != sqlite3.SQLITE_LOCKED:  # an iterator of our own that is not exhausted
                    raise
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {_BUSY_S * 1000:.0f}")

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self.lock, self._errors():
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _recognize(connection: sqlite3.Connection, path: Path) -> None:
    """Check that a file is the database of a run in a format that this version reads.

    Raises:
        DamagedRunError: It is empty, or its header is lost or damaged.
        OutputError: It is from another program, or another version of pagemill.
    """
    application, version = version_of(connection)
    if (application, version) == (APPLICATION_ID, FORMAT):
        return
    # Our tables under another number: the header is damaged.
    if application == 0 or _statements_of(connection) in ([], _STATEMENTS):
        raise DamagedRunError(f"{path} is not an intact database of a run", remedy=REPAIR)
    if application != APPLICATION_ID:
        raise OutputError(f"{path} is not a database of pagemill", remedy="Choose another directory with -o.")
    raise OutputError(
        f"{path} was written by another version of pagemill (format {version}; this version reads {FORMAT})",
        remedy="Continue with that version. To parse again: choose another directory with -o, or parse --fresh.",
    )


def _statements_of(connection: sqlite3.Connection) -> list[str]:
    """The SQL statements that created the tables and indices of a database."""
    return [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")]


def version_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Application id and format of a database; zeros for a new one."""
    application, version = (
        int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
    )
    return application, version


def delete_database(path: Path) -> None:
    """Delete a database with SQLite's files beside it; there may be none."""
    # The database last: SQLite would take a journal that was left behind for one of the next file of that name.
    for suffix in ("-wal", "-shm", "-journal", ""):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def require_no_journal(path: Path) -> None:
    """Check that a database has no journal, so that it can be read where SQLite cannot create files.

    Raises:
        OutputError: The last commits are in the journal, which SQLite reads only where it may write.
    """
    if size_of(path.with_name(f"{path.name}-wal")):
        raise OutputError(
            f"cannot read {path}: a process has left a journal beside it, which can only be read with write access",
            remedy="Run as a user who can write there, or on a copy of the directory.",
        )
