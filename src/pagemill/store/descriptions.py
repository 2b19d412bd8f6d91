"""Answers of a model, stored by request as they arrive, so that a killed run repeats no request."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import ExitStack
from pathlib import Path

from pagemill.store.database import database_errors, is_damage

_TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB NOT NULL) STRICT, WITHOUT ROWID"


class DescriptionStore:
    """A separate SQLite file, created on first use. If it is lost, requests are repeated. Thread-safe.

    Args:
        file: Its path in the private folder of the run directory.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None

    def get(self, key: bytes) -> bytes | None:
        """The answer stored under a key.

        Raises:
            OutputError: The file cannot be read.
        """
        with self._lock, database_errors(self._file):
            row = self._opened().execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, key: bytes, answer: bytes) -> None:
        """Store an answer.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        with self._lock, database_errors(self._file):
            self._opened().execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                # A cache: a damaged one is replaced, and costs requests, not the run.
                for suffix in ("-wal", "-shm", ""):
                    self._file.with_name(self._file.name + suffix).unlink(missing_ok=True)
                self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        with ExitStack() as opened:
            connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
            opened.callback(connection.close)
            connection.execute("PRAGMA journal_mode = WAL")
            # Without an fsync per answer: what a power cut takes is asked again.
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
            opened.pop_all()
        return connection
