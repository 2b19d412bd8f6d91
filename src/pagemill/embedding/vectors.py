"""Files of vectors: ``NAME.npy`` beside ``NAME.ids.parquet``, whose row *i* identifies row *i* of the array.

The ids also have the CRC-32 of every row of the array, so that an array that was replaced, sorted or truncated is
detected when it is opened.
"""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.embedding.base import EngineIdentity
from pagemill.errors import DamagedRunError, MissingInputError
from pagemill.store.files import reading_errors
from pagemill.whole_files import TEMPORARY_SUFFIX

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    from pagemill.config.arrow import pa, pq

FOLDER = "embeddings"
"""Folder in the run directory."""
METADATA = b"pagemill.embeddings"
"""Key of the Parquet metadata with the engine and model, as JSON."""
_FORMAT = 1


class StoredType(StrEnum):
    """Data type of the components."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"


class Part(StrEnum):
    """Kinds of contents, by the name of their files."""

    IMAGES = "corpus_images"
    TEXT = "corpus_ocr_text"
    REGIONS = "corpus_regions"
    CHUNKS = "corpus_chunks"
    QUERIES = "queries"

    @property
    def choice(self) -> str:
        """Its name for ``--what``."""
        return self.name.lower()

    @property
    def plural(self) -> str:
        """Its name in messages."""
        return {Part.IMAGES: "page images", Part.TEXT: "page texts"}.get(self, self.choice)

    @property
    def option(self) -> str:
        """Option of ``pagemill embed OUT`` that embeds it."""
        return " --queries FILE" if self is Part.QUERIES else f" --what {self.choice}"


class RowKey(NamedTuple):
    """Identifies what a row belongs to."""

    page_id: str
    """Id of the page, or of the query."""
    region: int | None = None
    """Index of the region in its page, for a chunk that of its first region; None for a whole page or a query."""
    chunk: str = ""
    """Id of the chunk."""

    def __str__(self) -> str:
        if self.chunk:
            return f"{self.page_id}, chunk {self.chunk}"
        return self.page_id if self.region is None else f"{self.page_id}, region {self.region}"


class VectorRow(NamedTuple):
    """A row of a file of vectors."""

    key: RowKey
    digest: str
    """SHA-256 of the content that was embedded, 64 hex digits (:mod:`pagemill.embedding.contents`)."""


class VectorsInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of all rows of a file."""

    part: Part
    identity: EngineIdentity
    dtype: StoredType
    images: bool = False
    """Whether regions with a picture were embedded with it."""
    format: int = _FORMAT

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return self.identity.dimension

    @property
    def stored(self) -> np.dtype[Any]:
        """Type of the components in the file."""
        return np.dtype(self.dtype).newbyteorder("<")


@dataclass(frozen=True, slots=True)
class VectorPaths:
    """Paths of the files of a part."""

    folder: Path
    part: Part

    @property
    def vectors(self) -> Path:
        """The array."""
        return self.folder / f"{self.part}.npy"

    @property
    def ids(self) -> Path:
        """The ids of its rows."""
        return self.folder / f"{self.part}.ids.parquet"

    @property
    def partial(self) -> Path:
        """Vectors of a run of ``pagemill embed`` that has not finished."""
        return self.folder / f"{self.part}.partial"

    def temporary(self, path: Path) -> Path:
        """Temporary name of one of these files while it is written."""
        return path.with_name(path.name + TEMPORARY_SUFFIX)


@dataclass(frozen=True, eq=False)
class VectorFile:
    """The vectors of a part, checked row by row, and memory-mapped. A context manager.

    ``vectors[i]`` belongs to ``rows[i]``; :meth:`find` returns the vector of a page or region.
    """

    paths: VectorPaths
    info: VectorsInfo
    rows: list[VectorRow]
    vectors: NDArray[Any]
    """Shape (rows, dimension), float32 or float16, each of length 1, read-only."""

    @cached_property
    def _places(self) -> dict[RowKey, int]:
        return {row.key: index for index, row in enumerate(self.rows)}

    @classmethod
    def open(cls, out: Path, part: Part) -> VectorFile:
        """Open the vectors of a run directory.

        Raises:
            MissingInputError: There are none.
            DamagedRunError: Array and ids do not match: other lengths, another row, a duplicate row.
            OutputError: They cannot be read.
        """
        return cls.open_in(VectorPaths(out / FOLDER, part))

    @classmethod
    def open_in(cls, paths: VectorPaths) -> VectorFile:
        """Open the vectors in any folder; see :meth:`open`."""
        missing = [path for path in (paths.vectors, paths.ids) if not path.exists()]
        if len(missing) == 2:
            raise MissingInputError(
                f"{paths.folder.parent} contains no vectors of {paths.part.plural}",
                remedy=f"Make them: pagemill embed {paths.folder.parent}{paths.part.option}",
            )
        if missing:
            raise _damaged(paths, f"{missing[0].name} is missing")
        info, rows, checksums = _read_ids(paths)
        vectors = _map_vectors(paths, info, len(rows))
        # Row by row, when opened: a search with vectors of other pages would give wrong answers without any error.
        for index, vector in enumerate(vectors):
            if zlib.crc32(vector.tobytes()) != checksums[index]:
                raise _damaged(paths, f"row {index} of {paths.vectors.name} is not the vector of {rows[index].key}")
        return cls(paths, info, rows, vectors)

    def find(self, page_id: str, region: int | None = None, chunk: str = "") -> NDArray[Any] | None:
        """The vector of a page, region, chunk or query; None if it has none."""
        index = self.place_of(RowKey(page_id, region, chunk))
        return None if index is None else np.asarray(self.vectors[index])

    def place_of(self, key: RowKey) -> int | None:
        """Index of a row with this key, whatever its content; None if there is none."""
        return self._places.get(key)

    def place(self, row: VectorRow) -> int | None:
        """Index of a row with this key and content; None if there is none."""
        index = self._places.get(row.key)
        return index if index is not None and self.rows[index].digest == row.digest else None

    def __len__(self) -> int:
        return len(self.rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close: the mapping ends with the array."""


def ids_table(info: VectorsInfo, rows: list[VectorRow], checksums: list[int]) -> pa.Table:
    """The content of ``NAME.ids.parquet``."""
    columns = [
        range(len(rows)),
        [row.key.page_id for row in rows],
        [row.key.region for row in rows],
        *([[row.key.chunk for row in rows]] if info.part is Part.CHUNKS else []),
        [row.digest for row in rows],
        checksums,
    ]
    schema = _schema(info.part).with_metadata({METADATA: msgspec.json.encode(info)})
    return pa.Table.from_pydict(dict(zip(schema.names, columns, strict=True)), schema)


def _schema(part: Part) -> pa.Schema:
    return pa.schema(
        {
            "row": pa.int64(),
            "query_id" if part is Part.QUERIES else "page_id": pa.string(),
            "region": pa.int32(),
            **({"chunk_id": pa.string()} if part is Part.CHUNKS else {}),
            "digest": pa.string(),
            "crc32": pa.uint32(),
        }
    )


def _read_ids(paths: VectorPaths) -> tuple[VectorsInfo, list[VectorRow], NDArray[np.uint32]]:
    try:
        with reading_errors(paths.ids), paths.ids.open("rb") as ids, pq.ParquetFile(ids) as file:
            info = msgspec.json.decode((file.schema_arrow.metadata or {})[METADATA], type=VectorsInfo)
            if (info.part, info.format) != (paths.part, _FORMAT):
                raise ValueError(f"it contains {info.part.plural}, format {info.format}")
            table = file.read()
        if not table.schema.equals(_schema(info.part)):
            raise ValueError("other columns than pagemill writes")
        if any(table.column(name).null_count for name in table.column_names if name != "region"):
            raise ValueError("a value is missing")
        names = ["region", *(["chunk_id"] if info.part is Part.CHUNKS else [])]
        keys = map(RowKey, *(column.to_pylist() for column in (table.column(1), *map(table.column, names))))
        rows = [VectorRow(key, digest) for key, digest in zip(keys, table.column("digest").to_pylist(), strict=True)]
        checksums = np.asarray(table.column("crc32").to_numpy(), dtype=np.uint32)
    except (pa.ArrowException, KeyError, msgspec.DecodeError, ValueError) as error:
        raise _damaged(paths, f"{paths.ids.name} cannot be read: {error}") from error
    # A duplicate key would make one of both vectors unreachable.
    if len({row.key for row in rows}) != len(rows):
        raise _damaged(paths, f"{paths.ids.name} names a page or region twice")
    return info, rows, checksums


def _map_vectors(paths: VectorPaths, info: VectorsInfo, count: int) -> NDArray[Any]:
    try:
        with reading_errors(paths.vectors):
            vectors = np.load(paths.vectors, mmap_mode="r" if count else None, allow_pickle=False)
        if not isinstance(vectors, np.ndarray):  # several, in a zip file
            raise ValueError("it is not an array")
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _damaged(paths, f"{paths.vectors.name} cannot be read: {error}") from error
    if vectors.shape != (count, info.dimension) or vectors.dtype != info.stored:
        shape = "x".join(map(str, vectors.shape))
        raise _damaged(
            paths,
            f"{paths.vectors.name} is {shape} {vectors.dtype}, {paths.ids.name} describes"
            f" {count}x{info.dimension} {info.dtype}",
        )
    return np.asarray(vectors)


def _damaged(paths: VectorPaths, reason: str) -> DamagedRunError:
    if paths.temporary(paths.ids).exists():  # the two files are replaced one after the other
        remedy = f"Another pagemill embed is at its end, or was cut off there: run pagemill embed {paths.folder.parent}"
    else:
        remedy = f"Make the vectors again: pagemill embed {paths.folder.parent} --fresh{paths.part.option}"
    return DamagedRunError(f"{paths.folder}: {reason}", remedy=remedy)
