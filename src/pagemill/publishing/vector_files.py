"""The vectors of a run for its dataset."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq

from pagemill.embedding.vectors import METADATA, Part, VectorFile, VectorPaths
from pagemill.errors import MissingInputError
from pagemill.publishing.public import public_values

if TYPE_CHECKING:
    from pathlib import Path


def copy_vectors(source: Path, target: Path) -> list[str]:
    """Copy arrays, their ids, and an engine's corpus statistics; returns the names of the arrays.

    Raises:
        DamagedRunError: Arrays or ids are damaged.
    """
    arrays = []
    for part in Part:
        paths = VectorPaths(source, part)
        try:
            info = VectorFile.open_in(paths).info
        except MissingInputError:  # not every part is embedded
            continue
        shutil.copyfile(paths.vectors, target / paths.vectors.name)
        # Without a model path of this machine. Streams: pyarrow rejects paths that are not valid Unicode.
        public = msgspec.json.encode(public_values(msgspec.to_builtins(info)))
        with paths.ids.open("rb") as ids, (target / paths.ids.name).open("wb") as stream:
            table = pq.read_table(ids)
            pq.write_table(table.replace_schema_metadata({METADATA: public}), stream, compression="zstd")
        arrays.append(paths.vectors.name)
    for statistics in source.glob("*.npz"):
        shutil.copyfile(statistics, target / statistics.name)
    return arrays
