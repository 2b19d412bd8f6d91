"""The job table: one SQLite file. A job is stored in it before it is acknowledged."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pagemill.document.jobs import JobError, JobState
from pagemill.errors import OutputError
from pagemill.store.database import Database, version_of

_REMEDY = "Restore the file from a backup, or start with another --data folder."
_OTHER_FOLDER = "Choose another --data folder."
MAX_NUMBER = 2**63 - 1
"""The largest integer of SQLite."""
_APPLICATION_ID = 0x504D4A42  # PMJB
_FORMAT = 1
_TABLES = """
CREATE TABLE jobs (
    job INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, state TEXT NOT NULL,
    name TEXT NOT NULL, collection TEXT, options TEXT NOT NULL, password TEXT, bytes INTEGER NOT NULL,
    created REAL NOT NULL, started REAL, finished REAL,
    pages INTEGER, ended INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0, error TEXT,
    retry INTEGER NOT NULL DEFAULT 0, cancelled INTEGER NOT NULL DEFAULT 0, opened INTEGER NOT NULL DEFAULT 0,
    idempotency TEXT, UNIQUE (owner, idempotency)) STRICT;
CREATE INDEX jobs_unfinished ON jobs (state) WHERE finished IS NULL;
CREATE INDEX jobs_finished ON jobs (finished) WHERE finished IS NOT NULL;
CREATE TABLE documents (
    job INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, url TEXT, pages INTEGER,
    PRIMARY KEY (job, number)) STRICT, WITHOUT ROWID;
"""


class JobFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a job."""

    number: int
    """From 1."""
    name: str
    """Name given by the client; never used as a path."""
    file: str
    """In the folder of inputs: four digits, and a suffix of ours."""
    url: str | None = None
    """Where it is fetched from."""
    pages: int | None = None
    """Pages of it, once the job has finished."""

    @property
    def id(self) -> str:
        """The id of the document in the run."""
        return f"{self.number:04}"


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the table."""

    job: int
    id: str
    owner: str
    state: JobState
    name: str
    collection: str | None
    options: dict[str, Any]
    password: str | None
    bytes: int
    """Bytes of the inputs; with those of the results once the job has finished."""
    created: float
    """Seconds since 1970, as all times here."""
    started: float | None
    finished: float | None
    pages: int | None
    """In the input, where known."""
    ended: int
    """Pages that ended, failed ones included."""
    failed: int
    error: JobError | None
    retry: int
    """1: failed pages are to be parsed again. 2: a process has started with that."""
    cancelled: bool
    """A cancellation was requested."""
    opened: bool
    """A process has opened its run."""
    idempotency: str | None

    @property
    def has_ended(self) -> bool:
        """Whether it is in a final state."""
        return self.finished is not None


_COLUMNS = JobRow.__struct_fields__
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM jobs"


def new_id() -> str:
    """An unguessable id for a job, also the name of its folder."""
    return secrets.token_hex(10)


class JobTable(Database):
    """The jobs. Thread-safe; the calls wait for the disk, so they are made on threads.

    Args:
        file: The database; created when it is missing.

    Raises:
        OutputError: It cannot be opened, or belongs to another version.
        DamagedRunError: It is damaged.
    """

    def __init__(self, file: Path) -> None:
        super().__init__(file, repair=_REMEDY)

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("PRAGMA journal_mode = WAL")
        # A job is acknowledged when its row is committed: the commit has to survive a power cut.
        connection.execute("PRAGMA synchronous = FULL")
        self.file.chmod(0o600)  # it holds passwords of documents
        application, version = version_of(connection)
        has_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if has_tables and application != _APPLICATION_ID:
            raise OutputError(f"{self.file} belongs to another program", remedy=_OTHER_FOLDER)
        if version == 0:
            self._create(_TABLES.split(";\n"), _APPLICATION_ID, _FORMAT)
        elif version != _FORMAT:
            raise OutputError(f"{self.file} was written by another version of pagemill", remedy=_OTHER_FOLDER)

    def create(
        self,
        *,
        id: str,
        owner: str,
        name: str,
        collection: str | None,
        options: dict[str, Any],
        password: str | None,
        size: int,
        documents: Sequence[JobFile],
        idempotency: str | None,
    ) -> JobRow:
        """Store a new job durably. Its files are on the disk already.

        Returns:
            The job; an earlier one of the same owner with the same idempotency key, if there is one.
        """
        with self.transaction() as connection:
            # In the transaction: of two requests with one key that arrive together, one finds the job of the other.
            earlier = self._one("owner = ? AND idempotency = ?", (owner, idempotency)) if idempotency else None
            if earlier is not None:
                return earlier
            job = connection.execute(
                "INSERT INTO jobs (id, owner, state, name, collection, options, password, bytes, created, idempotency)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING job",
                (
                    *(id, owner, JobState.QUEUED, _plain(name), collection, msgspec.json.encode(options).decode()),
                    *(password, size, time.time(), idempotency),
                ),
            ).fetchone()[0]
            connection.executemany(
                "INSERT INTO documents (job, number, name, file, url) VALUES (?, ?, ?, ?, ?)",
                [(job, document.number, _plain(document.name), document.file, document.url) for document in documents],
            )
            row = self.get(id)
        assert row is not None
        return row

    def get(self, id: str, owner: str | None = None) -> JobRow | None:
        """A job; None where there is none, or where it is not the owner's."""
        row = self._one("id = ?", (id,))
        return row if row is not None and owner in (None, row.owner) else None

    def by_idempotency(self, owner: str, key: str) -> JobRow | None:
        """The job that an owner has sent with an idempotency key."""
        return self._one("owner = ? AND idempotency = ?", (owner, key))

    def documents(self, job: int) -> list[JobFile]:
        """The files of a job, in order."""
        columns = JobFile.__struct_fields__
        rows = self.query(f"SELECT {', '.join(columns)} FROM documents WHERE job = ? ORDER BY number", (job,))
        return [JobFile(**dict(zip(columns, row, strict=True))) for row in rows]

    def find(
        self,
        owner: str,
        *,
        state: JobState | None = None,
        collection: str | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[JobRow]:
        """Jobs of an owner, the newest first.

        Args:
            owner: Owner of the jobs.
            state: Only jobs in this state.
            collection: Only jobs of this collection.
            limit: Maximum number of jobs.
            before: Only jobs that are older than the one of this number.
        """
        conditions, values = ["owner = ?"], [owner]
        for condition, value in (("state = ?", state), ("collection = ?", collection), ("job < ?", before)):
            if value is not None:
                conditions.append(condition)
                values.append(value)  # type: ignore[arg-type]
        where = " AND ".join(conditions)
        return self._rows(f"{where} ORDER BY job DESC LIMIT ?", (*values, limit))

    def unfinished(self) -> list[JobRow]:
        """Jobs that wait or run, the oldest first."""
        return self._rows("finished IS NULL ORDER BY job")

    def count_unfinished(self) -> dict[str, int]:
        """Jobs that wait or run, by owner."""
        return dict(self.query("SELECT owner, count(*) FROM jobs WHERE finished IS NULL GROUP BY owner"))

    def collections(self, owner: str) -> list[tuple[str, int, int]]:
        """Name, jobs and readable pages of the collections of an owner, by name."""
        return self.query(
            "SELECT collection, count(*), sum(ended - failed) FROM jobs WHERE owner = ? AND collection IS NOT NULL"
            " GROUP BY collection ORDER BY collection",
            (owner,),
        )

    def count_states(self) -> dict[str, int]:
        """Jobs by state."""
        return dict(self.query("SELECT state, count(*) FROM jobs GROUP BY state"))

    def ids(self) -> set[str]:
        """Ids of all jobs."""
        return {id for (id,) in self.query("SELECT id FROM jobs")}

    def ended(self) -> list[tuple[str, float, int]]:
        """Id, end and bytes of the jobs that have finished, the one that ended first before all others."""
        return self.query("SELECT id, finished, bytes FROM jobs WHERE finished IS NOT NULL ORDER BY finished")

    def stored_bytes(self) -> int:
        """Bytes of all jobs."""
        return int(self.one("SELECT ifnull(sum(bytes), 0) FROM jobs"))

    def start(self, id: str) -> None:
        """Mark a job as running."""
        self._change(id, "state = ?, started = ifnull(started, ?)", (JobState.RUNNING, time.time()))

    def opened(self, id: str) -> None:
        """Record that the run of a job is open, and its failed pages, if retried, are queued."""
        self._change(id, "opened = 1, retry = min(2, 2 * retry)")

    def requeue(self, id: str, *, pages: int | None, ended: int, failed: int) -> None:
        """Put a running job back into the queue."""
        self._change(id, "state = ?, pages = ?, ended = ?, failed = ?", (JobState.QUEUED, pages, ended, failed))

    def end(
        self,
        row: JobRow,
        state: JobState,
        *,
        pages: int | None,
        ended: int,
        failed: int,
        size: int,
        error: JobError | None,
        document_pages: Mapping[str, int],
    ) -> None:
        """Store the end of a job."""
        encoded = None if error is None else msgspec.json.encode(error).decode()
        with self.transaction() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, finished = ?, pages = ?, ended = ?, failed = ?, bytes = ?, error = ?,"
                " cancelled = 0 WHERE job = ?",
                (state, time.time(), pages, ended, failed, size, encoded, row.job),
            )
            connection.executemany(
                "UPDATE documents SET pages = ? WHERE job = ? AND number = ?",
                # Rows of datasets give documents ids of their own, which belong to no file of the job.
                [(count, row.job, int(id)) for id, count in document_pages.items() if id.isdecimal()],
            )

    def cancel(self, id: str) -> None:
        """Record that a job should be cancelled."""
        self._change(id, "cancelled = 1")

    def retry(self, id: str, password: str | None = None) -> bool:
        """Queue the failed pages of a finished job again, with a password if given; False if it is not finished."""
        with self.transaction() as connection:
            changed = connection.execute(
                "UPDATE jobs SET state = ?, finished = NULL, error = NULL, retry = opened, cancelled = 0,"
                " password = ifnull(?, password)"
                " WHERE id = ? AND finished IS NOT NULL",
                (JobState.QUEUED, password, id),
            )
            return changed.rowcount > 0

    def remove(self, id: str) -> bool:
        """Remove a job from the table, before its folder is deleted; False if it is not finished."""
        with self.transaction() as connection:
            removed = connection.execute(
                "DELETE FROM jobs WHERE id = ? AND finished IS NOT NULL RETURNING job", (id,)
            ).fetchone()
            if removed is not None:
                connection.execute("DELETE FROM documents WHERE job = ?", removed)
            return removed is not None

    def _change(self, id: str, assignments: str, values: Sequence[Any] = ()) -> None:
        self.change(f"UPDATE jobs SET {assignments} WHERE id = ?", (*values, id))

    def _one(self, where: str, values: Sequence[Any]) -> JobRow | None:
        return next(iter(self._rows(where, values)), None)

    def _rows(self, where: str, values: Sequence[Any] = ()) -> list[JobRow]:
        return [_row(row) for row in self.query(f"{_SELECT} WHERE {where}", values)]


def _row(row: Sequence[Any]) -> JobRow:
    values = dict(zip(_COLUMNS, row, strict=True))
    for name in ("options", "error"):
        values[name] = None if values[name] is None else msgspec.json.decode(values[name])
    return msgspec.convert(values, JobRow, strict=False)  # SQLite has neither booleans nor enumerations


def _plain(text: str) -> str:
    """The text without what UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
