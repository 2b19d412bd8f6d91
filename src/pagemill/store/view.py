"""A run directory as it is on the disk, for reading: its ledger without the right to change it, and its files."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Any, BinaryIO

from pagemill.errors import DamagedRunError, OutputError
from pagemill.store import paths
from pagemill.store.database import APPLICATION_ID, FORMAT, ledger_errors, other_version, require_sqlite
from pagemill.store.files import reading_errors, size_of
from pagemill.store.lines import read_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pagemill.store.rows import Span

_BUSY_S = 10.0


class LedgerView:
    """A read-only connection to a ledger, for one thread at a time.

    Raises:
        DamagedRunError: The file is no ledger that this version reads.
        OutputError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        require_sqlite()
        self._path = path
        try:
            self._connection = _connect(path, "mode=ro")
        except OutputError:
            require_no_journal(path)
            self._connection = _connect(path, "immutable=1")

    def copy_to(self, path: Path) -> None:
        """Write the ledger of this moment to a new file."""
        with ledger_errors(path), contextlib.closing(sqlite3.connect(path)) as target:
            self._connection.backup(target)

    def all(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a small answer."""
        with ledger_errors(self._path):
            return self._connection.execute(statement, parameters).fetchall()

    def one(self, statement: str) -> Any:
        """The first column of the first row."""
        return self.all(statement)[0][0]

    def each(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """One row after the other, all of one moment."""
        with ledger_errors(self._path):
            # Not "yield from": that would close the cursor of a generator left half-way, perhaps after the connection.
            for row in self._connection.execute(statement, parameters):  # noqa: UP028
                yield row

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._connection.close()


def require_no_journal(path: Path) -> None:
    """Make sure that a ledger may be read as a file that nobody changes, where SQLite cannot make its own files.

    Raises:
        OutputError: What was committed last lies in the journal, which SQLite reads only where it may write.
    """
    if size_of(path.with_name(f"{path.name}-wal")):
        raise OutputError(
            f"cannot read {path}: a process has left a journal beside it, which is read only where one may write",
            remedy="Do it as a user who may write there, or in a copy of the directory.",
        )


class RunFiles:
    """The files that a ledger speaks of at some moment: a run replaces them when it takes lines out.

    Args:
        out: The run directory.
        generation: Of the files, as the ledger counts.
        renaming: The JSONL files may still have their temporary names.

    Raises:
        OutputError: One cannot be read. One that is missing is empty.
    """

    def __init__(self, out: Path, generation: int, *, renaming: bool) -> None:
        self.generation = generation
        self.renaming = renaming
        self._out = out
        self._streams: dict[str, BinaryIO] = {}
        try:
            for name in (paths.RESULTS, paths.TEXTS, paths.PREVIEWS):
                self._open(name)
        except BaseException:
            self.close()
            raise

    def _open(self, name: str) -> None:
        for each in [name + paths.TEMPORARY_SUFFIX, name] if self.renaming and name != paths.PREVIEWS else [name]:
            with reading_errors(self._out / each), contextlib.suppress(FileNotFoundError):
                # Unbuffered: what a run has not committed may yet be taken back and written otherwise.
                self._streams[name] = (self._out / each).open("rb", buffering=0)
                return

    def read(self, name: str, span: Span) -> bytes:
        """Read a piece of a file.

        Raises:
            DamagedRunError: It is not as it was written.
            OutputError: The file cannot be read.
        """
        stream = self._streams.get(name)
        data = read_span(stream, span) if stream else None
        if data is None:
            raise DamagedRunError(
                f"{self._out / name} is damaged at byte {span.offset}",
                remedy="Mend the directory with pagemill verify --repair.",
            )
        return data

    def close(self) -> None:
        """Close the files; a second call does nothing."""
        while self._streams:
            self._streams.popitem()[1].close()


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    with ledger_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=_BUSY_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            application, version = (
                int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
            )
            if application != APPLICATION_ID:  # 0 of an empty file
                raise DamagedRunError(
                    f"{path} is no whole ledger", remedy="Mend the directory with pagemill verify --repair."
                )
            if version != FORMAT:
                raise other_version(path, version)
        except BaseException:
            connection.close()
            raise
    return connection
