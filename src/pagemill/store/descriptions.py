"""Answers of a model, stored by request as they arrive, so that a killed run repeats no request."""

from __future__ import annotations

import threading
from pathlib import Path

from pagemill.errors import DamagedRunError
from pagemill.store.database import Database, delete_database

_TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer BLOB NOT NULL) STRICT, WITHOUT ROWID"


class _Answers(Database):
    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        # Without an fsync per answer: what a power cut takes is asked again.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(_TABLE)


class DescriptionStore:
    """A separate SQLite file, created on first use. If it is lost, requests are repeated. Thread-safe.

    Args:
        file: Its path in the private folder of the run directory.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._answers: _Answers | None = None

    def get(self, key: bytes) -> bytes | None:
        """The answer stored under a key.

        Raises:
            OutputError: The file cannot be read.
        """
        answer: bytes | None = self._opened().one("SELECT answer FROM answers WHERE key = ?", (key,))
        return answer

    def put(self, key: bytes, answer: bytes) -> None:
        """Store an answer.

        Raises:
            OutputError: The file cannot be written; NoSpaceError when the disk is full.
        """
        self._opened().change("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, answer))

    def close(self) -> None:
        """Close the file. Idempotent."""
        if self._answers is not None:
            self._answers.close()
            self._answers = None

    def _opened(self) -> _Answers:
        with self._lock:
            if self._answers is None:
                try:
                    self._answers = _Answers(self._file)
                except DamagedRunError:
                    # A cache: a damaged one is replaced, and costs requests, not the run.
                    delete_database(self._file)
                    self._answers = _Answers(self._file)
            return self._answers
