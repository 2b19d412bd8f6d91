"""Writing files of vectors so that whatever ends the process, no vector is lost, doubled or given to another page.

New vectors are appended, each with its name and a checksum, to ``NAME.partial``. When all are there, ``NAME.npy`` and
``NAME.ids.parquet`` are made of these and of the earlier files, under temporary names, and take their places by two
renames; then ``NAME.partial`` goes. Whoever comes next after a death

- finds a ``NAME.partial``: goes on behind its last whole vector;
- finds new ids beside the new array: does the second rename;
- finds new files that did not come to their renames: deletes them and makes them again.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import struct
import time
import zlib
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np
import pyarrow.parquet as pq

from pagemill.embedding.vectors import VectorFile, VectorRow, VectorsInfo, checksum, ids_table
from pagemill.errors import DamagedRunError, DifferentRunError, MissingInputError
from pagemill.store.files import (
    AppendFile,
    output_errors,
    reading_errors,
    sync_directory,
    sync_file,
    write_whole,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from pagemill.embedding.base import Vectors
    from pagemill.embedding.vectors import VectorPaths

SYNC_EVERY_S = 5.0
"""A power cut loses at most what was embedded in this time."""
_MAGIC = b"pagemill vectors 1\n"
_LENGTHS = struct.Struct("<III")  # CRC-32 of all that follows, bytes of the name, bytes of the vector
_MAX_NAME = 64 * 2**10


class VectorWriter:
    """Brings the files of a part up to date. A context manager; for one thread at a time, and one process.

    Args:
        paths: Where the files are.
        info: What all rows have in common.
        fresh: Forget what is there.

    Raises:
        DifferentRunError: What is there comes from another engine, or is stored otherwise.
        DamagedRunError: What is there is damaged.
        OutputError: The folder cannot be written.
    """

    def __init__(self, paths: VectorPaths, info: VectorsInfo, *, fresh: bool = False) -> None:
        self._paths = paths
        self._info = info
        self._dtype = np.dtype(info.dtype).newbyteorder("<")
        with output_errors(paths.folder):
            paths.folder.mkdir(exist_ok=True)
        if fresh:
            self._delete_all()
        _end_renames(paths)
        self._published = self._open_published()
        try:
            self._file, self._places = self._open_partial()
        except BaseException:
            self._close_published()
            raise
        self._synced = time.monotonic()

    def has(self, row: VectorRow) -> bool:
        """Whether the vector of this very content is there."""
        return row in self._places or (self._published is not None and self._published.place(row) is not None)

    def append(self, rows: Sequence[VectorRow], vectors: Vectors) -> None:
        """Keep new vectors. They outlive the process at once, and a power cut after ``SYNC_EVERY_S``.

        Args:
            rows: What they are.
            vectors: Shape (rows, dimension), normalised.

        Raises:
            OutputError: They cannot be written, and are not there; NoSpaceError when the disk is full.
        """
        stored = np.asarray(vectors, dtype=self._dtype)
        if stored.shape != (len(rows), self._info.dimension):
            raise ValueError(f"{len(rows)} rows and vectors of shape {stored.shape}")
        pieces: list[bytes] = []
        places: dict[VectorRow, int] = {}
        size = self._file.size
        for row, vector in zip(rows, stored, strict=True):
            name, data = msgspec.msgpack.encode(row), vector.tobytes()
            crc = zlib.crc32(data, zlib.crc32(name))
            pieces += (_LENGTHS.pack(crc, len(name), len(data)), name, data)
            size += _LENGTHS.size + len(name) + len(data)
            places[row] = size - len(data)
        self._file.append(b"".join(pieces))
        self._places.update(places)
        if time.monotonic() - self._synced >= SYNC_EVERY_S:
            self.sync()

    def sync(self) -> None:
        """Wait until all that was appended is on the disk."""
        self._file.sync()
        self._synced = time.monotonic()

    def publish(self, rows: Sequence[VectorRow]) -> int:
        """Make the files anew, with these rows in this order, and no others; nothing is done where they are so.

        The array is written through a memory map, a row at a time.

        Args:
            rows: Each one is there (:meth:`has`), and none twice.

        Returns:
            How many rows of earlier files are gone.

        Raises:
            OutputError: A file cannot be written; the earlier ones are still there.
        """
        rows = list(rows)
        if len({row.key for row in rows}) != len(rows):
            raise ValueError("a row twice")
        before = self._published.rows if self._published is not None else []
        if self._published is None or before != rows:
            self.sync()
            self._write(rows)
        gone = len({row.key for row in before} - {row.key for row in rows})
        self._close_published()
        self._file.close()
        with output_errors(self._paths.partial):
            self._paths.partial.unlink(missing_ok=True)
        return gone

    def close(self) -> None:
        """Close all files; what was appended stays. A second call does nothing."""
        self._close_published()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, rows: list[VectorRow]) -> None:
        paths = self._paths
        new_vectors, new_ids = paths.temporary(paths.vectors), paths.temporary(paths.ids)
        with output_errors(paths.vectors):
            checksums = self._write_vectors(rows)
        table = io.BytesIO()
        pq.write_table(ids_table(self._info, rows, checksums), table)
        write_whole(new_ids, [table.getvalue()], durable=True)
        sync_directory(paths.folder)  # now the pair is whole; from the first rename on it is the one that counts
        with output_errors(paths.vectors):
            new_vectors.replace(paths.vectors)
            new_ids.replace(paths.ids)
        sync_directory(paths.folder)

    def _write_vectors(self, rows: list[VectorRow]) -> list[int]:
        path = self._paths.temporary(self._paths.vectors)
        shape = (len(rows), self._info.dimension)
        if not rows:
            buffer = io.BytesIO()
            np.save(buffer, np.empty(shape, dtype=self._dtype))
            path.write_bytes(buffer.getvalue())
            return []
        _reserve(path, shape, self._dtype)
        target = np.load(path, mmap_mode="r+")
        checksums = []
        with self._mapped_partial() as mapped:
            for index, row in enumerate(rows):
                target[index] = self._vector(row, mapped)
                checksums.append(checksum(target[index]))
        target.flush()
        del target
        sync_file(path)
        return checksums

    def _vector(self, row: VectorRow, mapped: memoryview) -> NDArray[Any]:
        place = self._places.get(row)
        if place is not None:
            return np.frombuffer(mapped, dtype=self._dtype, count=self._info.dimension, offset=place)
        index = self._published.place(row) if self._published is not None else None
        if self._published is None or index is None:
            raise ValueError(f"no vector of {row.key}")
        return np.asarray(self._published.vectors[index])

    @contextlib.contextmanager
    def _mapped_partial(self) -> Iterator[memoryview]:
        with contextlib.ExitStack() as stack:
            with reading_errors(self._paths.partial):
                stream = stack.enter_context(self._paths.partial.open("rb"))
                mapped = stack.enter_context(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
            yield stack.enter_context(memoryview(mapped))

    def _open_published(self) -> VectorFile | None:
        try:
            published = VectorFile.open_in(self._paths)
        except MissingInputError:
            return None
        try:
            self._require(published.info)
        except BaseException:
            published.close()
            raise
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
            f"{self._paths.folder} holds vectors of {self._info.part.plural} that were made otherwise:"
            f" now {'; '.join(differences)}",
            remedy="Give the same engine, model and options as then, or make all anew with --fresh.",
        )

    def _open_partial(self) -> tuple[AppendFile, dict[VectorRow, int]]:
        path = self._paths.partial
        header = _MAGIC + msgspec.json.encode(self._info) + b"\n"
        file = AppendFile(path)
        try:
            places: dict[VectorRow, int] = {}
            if file.size:
                end = self._read_partial(places)
                if end < file.size:  # torn by a death or a power cut
                    file.truncate(end)
            if not file.size:
                file.append(header)
        except BaseException:
            file.close()
            raise
        return file, places

    def _read_partial(self, places: dict[VectorRow, int]) -> int:
        """Find the whole vectors; give the place behind the last one, 0 where not even the header is whole."""
        path = self._paths.partial
        with reading_errors(path), path.open("rb") as stream:
            if stream.readline(len(_MAGIC)) != _MAGIC:
                return 0
            head = stream.readline(2**20)
            if not head.endswith(b"\n"):
                return 0
            try:
                info = msgspec.json.decode(head, type=VectorsInfo)
            except msgspec.DecodeError as error:
                raise DamagedRunError(
                    f"{path} is damaged: {error}", remedy="Make the vectors anew with --fresh."
                ) from error
            self._require(info)
            end = stream.tell()
            size = self._info.dimension * self._dtype.itemsize
            while len(lengths := stream.read(_LENGTHS.size)) == _LENGTHS.size:
                crc, name_bytes, vector_bytes = _LENGTHS.unpack(lengths)
                if name_bytes > _MAX_NAME or vector_bytes != size:
                    break
                name, data = stream.read(name_bytes), stream.read(vector_bytes)
                if len(data) != size or zlib.crc32(data, zlib.crc32(name)) != crc:
                    break
                row = msgspec.msgpack.decode(name, type=VectorRow)
                end += _LENGTHS.size + name_bytes + vector_bytes
                places[row] = end - vector_bytes
            return end

    def _delete_all(self) -> None:
        paths = self._paths
        for path in (paths.ids, paths.vectors, paths.partial):
            for each in (path, paths.temporary(path)):
                with output_errors(each):
                    each.unlink(missing_ok=True)

    def _close_published(self) -> None:
        if self._published is not None:
            self._published.close()
            self._published = None


def _end_renames(paths: VectorPaths) -> None:
    """Do the second rename of a process that died between the two; delete files that did not come to the first."""
    new_vectors, new_ids = paths.temporary(paths.vectors), paths.temporary(paths.ids)
    with output_errors(paths.folder):
        paths.temporary(new_ids).unlink(missing_ok=True)  # of a death while the ids were written
        if new_vectors.exists():
            new_ids.unlink(missing_ok=True)
            new_vectors.unlink()
        elif new_ids.exists():
            new_ids.replace(paths.ids)
            sync_directory(paths.folder)


def _reserve(path: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
    """Make a ``.npy`` file of this shape with all its space: a full disk is an error here, not a signal later."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    )
    left = shape[0] * shape[1] * dtype.itemsize
    zeros = bytes(min(left, 2**22))
    with path.open("wb") as stream:
        stream.write(head.getvalue())
        while left:
            left -= stream.write(zeros[:left])
