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
"""Key of the Parquet metadata with the engine and model, as JSON."""


def copy_vectors(source: Path, target: Path) -> list[str]:
    """Copy arrays, their ids, and an engine's corpus statistics; returns the names of the arrays.

    Raises:
        DamagedRunError: Arrays or ids are damaged.
    """
    for part in Part:
        with contextlib.suppress(MissingInputError):  # not every part is embedded
            VectorFile.open_in(VectorPaths(source, part))
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
    """Copy the ids of vectors, without a model path of this machine in the metadata."""
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
