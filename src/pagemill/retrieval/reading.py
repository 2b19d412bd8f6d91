"""An index opened for search: its tables and files of vectors."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from pagemill.embedding.vectors import FOLDER, VectorPaths, VectorsInfo
from pagemill.errors import DamagedRunError, DifferentRunError
from pagemill.retrieval import database
from pagemill.retrieval.building import vectors_stamp
from pagemill.retrieval.hits import IndexPart
from pagemill.store.reading import RunReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


class MappedVectors(NamedTuple):
    """The vectors of a part, with page and region of each row."""

    info: VectorsInfo
    vectors: NDArray[Any]
    """Shape (rows, dimension), memory-mapped."""
    pages: NDArray[np.int64]
    """Number of the page of each row."""
    regions: NDArray[np.int64]
    """Number of the region of each row; 0 for a whole page."""


class IndexReader:
    """A snapshot of the index of a run directory; for one thread at a time.

    Args:
        out: The run directory.
        stack: Closes the file.

    Raises:
        MissingInputError: There is no index.
        DifferentRunError: The run was started over since.
        DamagedRunError: It is damaged.
        OutputError: It cannot be read.
    """

    def __init__(self, out: Path, stack: ExitStack) -> None:
        self.path = out
        self._file = out / database.FILE
        self._connection = database.open_for_reading(self._file)
        stack.callback(self._connection.close)
        self._mapped: dict[IndexPart, MappedVectors] = {}
        stack.callback(self._mapped.clear)
        with database.index_errors(self._file):
            self._connection.execute("BEGIN")  # one snapshot, whatever is added to the index meanwhile
            state = self._connection.execute("SELECT * FROM state").fetchone()
            stored = self._connection.execute("SELECT part, info, size, content FROM vectors").fetchall()
        if state is None:
            raise DamagedRunError(f"{self._file} was never finished", remedy=f"Finish it: pagemill index {out}")
        started, *stamp, complete = state
        self._stamp, self._complete = tuple(stamp), bool(complete)
        parts = {part.vectors: part for part in IndexPart if part.vectors}
        self._stored = {
            parts[part]: (msgspec.json.decode(info, type=VectorsInfo), (size, content))
            for part, info, size, content in stored
        }
        self._require_same_run(started)

    @property
    def parts(self) -> list[IndexPart]:
        """The parts to rank by."""
        return [part for part in IndexPart if part is IndexPart.FULL_TEXT or part in self._stored]

    @property
    def vectors(self) -> dict[IndexPart, VectorsInfo]:
        """The engine of the vectors, by part."""
        return {part: info for part, (info, _) in self._stored.items()}

    @property
    def behind(self) -> str | None:
        """Why the index is not up to date; None when it is."""
        if not self._complete:
            return "the index is incomplete: indexing was interrupted, or is still running"
        with RunReader.open(self.path) as reader:
            if reader.stamp() != self._stamp:
                return "pages were parsed after the index was made"
        return None

    def query(self, statement: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""
        with database.index_errors(self._file):
            return self._connection.execute(statement, parameters).fetchall()

    def each(self, statement: str, parameters: Sequence[Any] = ()) -> Iterator[Any]:
        """The rows of a query, one at a time."""
        with database.index_errors(self._file):
            # Not "yield from": that would close the cursor of a generator left half-way, perhaps after the connection.
            for row in self._connection.execute(statement, parameters):  # noqa: UP028
                yield row

    def mapped(self, part: IndexPart) -> MappedVectors:
        """The vectors of a part, memory-mapped; the rows were verified when the index was built.

        Raises:
            DifferentRunError: They are not those of the index.
            DamagedRunError: They are damaged.
        """
        if part not in self._mapped:
            info, stamp = self._stored[part]
            files = VectorPaths(self.path / FOLDER, info.part)
            path = files.vectors
            if vectors_stamp(files) != stamp:
                raise DifferentRunError(
                    f"the vectors of {info.part.plural} have changed since the index was built",
                    remedy=f"Bring it up to date: pagemill index {self.path}",
                )
            rows = self.query("SELECT pages, regions FROM vectors WHERE part = ?", (info.part,))[0]
            pages, regions = (np.frombuffer(row, dtype="<i8") for row in rows)
            if len(pages):
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            else:
                array = np.empty((0, info.dimension), dtype=info.dtype)
            if array.shape != (len(pages), info.dimension):
                raise DamagedRunError(f"{path} does not fit the index", remedy=f"Run: pagemill index {self.path}")
            self._mapped[part] = MappedVectors(info, np.asarray(array), pages, regions)
        return self._mapped[part]

    def _require_same_run(self, started: str) -> None:
        with RunReader.open(self.path) as reader:
            if reader.summary.started.isoformat() != started:
                raise DifferentRunError(
                    f"the index of {self.path} is of an earlier run", remedy=f"Rebuild it: pagemill index {self.path}"
                )
