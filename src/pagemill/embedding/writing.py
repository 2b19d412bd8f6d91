"""Crash-safe writing of files of vectors: no vector is lost, duplicated or assigned to another page.

New vectors are stored in ``NAME.partial``, an SQLite database in WAL mode. When it is complete, ``NAME.npy`` and
``NAME.ids.parquet`` are written from it and from the earlier files under temporary names, and replace these by two
renames; then ``NAME.partial`` is deleted. After a crash, the next writer

- continues an existing ``NAME.partial``;
- does the second rename if the new ids are still beside the new array;
- deletes new files that were not renamed, and writes them again.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pagemill.embedding.base import Vectors
from pagemill.embedding.vectors import VectorFile, VectorPaths, VectorRow, VectorsInfo, ids_table
from pagemill.errors import DamagedRunError, DifferentRunError, MissingInputError
from pagemill.store.database import database_errors, delete_database
from pagemill.store.files import output_errors, sync_directory, write_whole

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:
    from pagemill.config.arrow import pq

SYNC_EVERY_S = 5.0
"""Seconds between syncs: a power cut loses at most what was embedded since the last one."""
_ANEW = "Make the vectors again with --fresh."
_TABLES = """
PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS info (info BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (name BLOB PRIMARY KEY, vector BLOB NOT NULL, crc INTEGER NOT NULL);  -- of both
"""


class VectorWriter(contextlib.ExitStack):
    """Brings the files of a part up to date. A context manager; for one thread at a time, and one process.

    Appended vectors are kept when it is closed.

    Args:
        paths: Paths of the files.
        info: Properties of all rows.
        fresh: Delete existing vectors.

    Raises:
        DifferentRunError: The existing vectors are from another engine, or stored in another type.
        DamagedRunError: The existing vectors are damaged.
        OutputError: The folder cannot be written.
    """

    def __init__(self, paths: VectorPaths, info: VectorsInfo, *, fresh: bool = False) -> None:
        super().__init__()
        self._paths = paths
        self._info = info
        with output_errors(paths.folder):
            paths.folder.mkdir(exist_ok=True)
            _end_renames(paths)
        if fresh:
            delete_vectors(paths)
        self._published = self._open_published()
        with contextlib.ExitStack() as stack, self._partial_errors():
            self._partial = sqlite3.connect(paths.partial, check_same_thread=False)
            stack.callback(self._partial.close)
            self._new = self._read_partial()
            self.push(stack.pop_all())
        self._synced = time.monotonic()

    def has(self, row: VectorRow) -> bool:
        """Whether there is a vector of this content."""
        return row in self._new or self._place(row) is not None

    def append(self, rows: Sequence[VectorRow], vectors: Vectors) -> None:
        """Store new vectors. They survive the process at once, and a power cut after ``SYNC_EVERY_S``.

        Args:
            rows: Their rows.
            vectors: Shape (rows, dimension), normalised.

        Raises:
            OutputError: They cannot be written, and none is stored; NoSpaceError when the disk is full.
        """
        stored = np.asarray(vectors, dtype=self._info.stored)
        # With a checksum each: SQLite notices no flipped bit, and a wrong vector would be found by no reader.
        named = [_kept(_name(row), vector.tobytes()) for row, vector in zip(rows, stored, strict=True)]
        with self._partial_errors(), self._partial:
            self._partial.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", named)
        self._new.update(rows)
        # A checkpoint syncs; a commit in WAL mode does not, which makes it fast.
        if time.monotonic() - self._synced >= SYNC_EVERY_S:
            with self._partial_errors():
                self._partial.execute("PRAGMA wal_checkpoint")
            self._synced = time.monotonic()

    def publish(self, rows: list[VectorRow]) -> int:
        """Rewrite the files with exactly these rows in this order; does nothing if they have them.

        Args:
            rows: Rows with a vector (:meth:`has`), without duplicates.

        Returns:
            Number of rows of the earlier files that were removed.

        Raises:
            OutputError: A file cannot be written; the earlier ones are unchanged.
        """
        before = self._published.rows
        if before != rows or not self._paths.ids.exists():
            write_vectors(self._paths, self._info, rows, map(self._vector, rows))
        self.close()
        with output_errors(self._paths.partial):
            delete_database(self._paths.partial)
        return len({row.key for row in before} - {row.key for row in rows})

    def _vector(self, row: VectorRow) -> bytes:
        if row in self._new:
            with self._partial_errors():
                found = self._partial.execute("SELECT * FROM vectors WHERE name = ?", (_name(row),)).fetchone()
            if found is None or found != _kept(_name(row), found[1]):
                raise DamagedRunError(f"{self._paths.partial} is damaged: {row.key}", remedy=_ANEW)
            return bytes(found[1])
        index = self._place(row)
        assert index is not None
        return bytes(self._published.vectors[index])

    def _place(self, row: VectorRow) -> int | None:
        """Index of a row in the earlier files; for a chunk by its id, which determines its text."""
        return self._published.place_of(row.key) if row.key.chunk else self._published.place(row)

    def _open_published(self) -> VectorFile:
        """The earlier files; without rows if there are none."""
        try:
            published = VectorFile.open_in(self._paths)
        except MissingInputError:
            return VectorFile(self._paths, self._info, [], np.empty((0, self._info.dimension)))
        self._require(published.info)
        return published

    def _require(self, info: VectorsInfo) -> None:
        if info == self._info:
            return
        differences = self._info.identity.differences(info.identity)
        if self._info.dtype != info.dtype:
            differences.append(f"{self._info.dtype}, not {info.dtype}")
        if self._info.images != info.images:
            differences.append("regions with pictures" if self._info.images else "regions without pictures")
        raise DifferentRunError(
            f"{self._paths.folder} contains vectors of {self._info.part.plural} from other settings:"
            f" now {'; '.join(differences)}",
            remedy="Use the same engine, model and options, or embed everything again with --fresh.",
        )

    def _read_partial(self) -> set[VectorRow]:
        """Intact rows of an earlier process."""
        self._partial.executescript(_TABLES)
        info = self._partial.execute("SELECT info FROM info").fetchone()
        if info is None:
            with self._partial:
                self._partial.execute("INSERT INTO info VALUES (?)", (msgspec.json.encode(self._info),))
            return set()
        try:
            self._require(msgspec.json.decode(info[0], type=VectorsInfo))
            # A flipped bit can turn a blob into a text.
            kept = self._partial.execute("SELECT * FROM vectors WHERE typeof(name) || typeof(vector) = 'blobblob'")
            return {msgspec.msgpack.decode(row[0], type=VectorRow) for row in kept if row == _kept(row[0], row[1])}
        except msgspec.DecodeError as error:
            raise DamagedRunError(f"{self._paths.partial} is damaged: {error}", remedy=_ANEW) from error

    def _partial_errors(self) -> contextlib.AbstractContextManager[None]:
        return database_errors(self._paths.partial, repair=_ANEW)


def delete_vectors(paths: VectorPaths) -> None:
    """Delete all files of a part.

    Raises:
        OutputError: They cannot be deleted.
    """
    with output_errors(paths.folder):
        _end_renames(paths)
        paths.ids.unlink(missing_ok=True)
        paths.vectors.unlink(missing_ok=True)
        delete_database(paths.partial)


def write_vectors(paths: VectorPaths, info: VectorsInfo, rows: list[VectorRow], vectors: Iterable[bytes]) -> None:
    """Write both files of a part, replacing earlier ones.

    Args:
        paths: Paths of the files.
        info: Properties of all rows.
        rows: The rows, without duplicates.
        vectors: The stored bytes of each row.

    Raises:
        OutputError: A file cannot be written; the earlier ones are unchanged.
    """
    new_vectors, new_ids = paths.temporary(paths.vectors), paths.temporary(paths.ids)
    checksums: list[int] = []

    def array() -> Iterator[bytes]:
        head = io.BytesIO()
        about = {"descr": info.stored.str, "fortran_order": False, "shape": (len(rows), info.dimension)}
        np.lib.format.write_array_header_1_0(head, about)
        yield head.getvalue()
        for vector in vectors:
            checksums.append(zlib.crc32(vector))
            yield vector

    write_whole(new_vectors, array(), durable=True)
    table = io.BytesIO()
    pq.write_table(ids_table(info, rows, checksums), table)
    write_whole(new_ids, [table.getvalue()], durable=True)
    # Both new files must be on the disk before the first rename: after it, only the new pair is consistent.
    sync_directory(paths.folder)
    with output_errors(paths.vectors):
        new_vectors.replace(paths.vectors)
        new_ids.replace(paths.ids)
    sync_directory(paths.folder)


def _name(row: VectorRow) -> bytes:
    key = row.key if row.key.chunk else row.key[:2]  # the form of versions without chunks, whose files are continued
    return msgspec.msgpack.encode((key, row.digest))


def _kept(name: bytes, vector: bytes) -> tuple[bytes, bytes, int]:
    """A row of the table ``vectors``."""
    return name, vector, zlib.crc32(vector, zlib.crc32(name))


def _end_renames(paths: VectorPaths) -> None:
    """Complete the renames of a process that died between the two; delete files that were not renamed at all."""
    new_vectors, new_ids = paths.temporary(paths.vectors), paths.temporary(paths.ids)
    for unfinished in (paths.temporary(new_vectors), paths.temporary(new_ids)):  # from a crash while they were written
        unfinished.unlink(missing_ok=True)
    # The array is renamed first: while its new file is still here, neither file was replaced.
    if new_vectors.exists():
        new_ids.unlink(missing_ok=True)
        new_vectors.unlink()
    elif new_ids.exists():
        new_ids.replace(paths.ids)
        sync_directory(paths.folder)
