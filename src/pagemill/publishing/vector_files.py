"""The vectors of a run for its dataset."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pagemill.embedding.vectors import Part, VectorFile, VectorPaths
from pagemill.errors import DamagedRunError, MissingInputError
from pagemill.publishing.public import public_values

if TYPE_CHECKING:
    from pathlib import Path

_INFO = b"pagemill.embeddings"
"""Key of the Parquet metadata under which the engine and model are told, as JSON."""


def copy_vectors(source: Path, target: Path) -> list[str]:
    """Copy arrays, what their rows are, and what an engine keeps of its corpus; gives the names of the arrays.

    Raises:
        DamagedRunError: Arrays and ids are not as they were written.
    """
    for part in Part:
        with contextlib.suppress(MissingInputError):  # not each part is embedded
            VectorFile.open_in(VectorPaths(source, part)).close()
    arrays = []
    for path in sorted(source.iterdir()):
        if path.is_file() and path.suffix in (".npy", ".npz", ".parquet"):
            if path.suffix == ".parquet":
                _copy_ids(path, target / path.name)
            else:
                shutil.copyfile(path, target / path.name)
            if path.suffix == ".npy":
                arrays.append(path.name)
    return arrays


def _copy_ids(source: Path, target: Path) -> None:
    """Copy what tells the rows of vectors. Its metadata names the model, which may be a folder of this machine."""
    try:
        with source.open("rb") as stream:
            table = pq.read_table(stream)
        metadata = dict(table.schema.metadata or {})
        if _INFO in metadata:
            metadata[_INFO] = msgspec.json.encode(public_values(msgspec.json.decode(metadata[_INFO])))
    except (pa.ArrowException, msgspec.DecodeError) as error:
        raise DamagedRunError(
            f"{source} cannot be read: {error}", remedy="Run pagemill embed again, or publish with --no-embeddings."
        ) from error
    with target.open("wb") as stream:
        pq.write_table(table.replace_schema_metadata(metadata or None), stream, compression="zstd")
