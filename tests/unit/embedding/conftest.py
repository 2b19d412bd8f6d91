"""Vectors that say what they are of, and files of them to play with."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from pagemill.embedding.base import EngineIdentity, normalised
from pagemill.embedding.vectors import Part, RowKey, VectorPaths, VectorRow, VectorsInfo

DIMENSION = 8


def row(page: str, region: int | None = None, content: str = "content") -> VectorRow:
    return VectorRow(RowKey(page, region), hashlib.sha256(content.encode()).hexdigest())


def vector_of(row: VectorRow) -> np.ndarray:
    """A vector that only this row has."""
    seed = int.from_bytes(hashlib.sha256(repr(row).encode()).digest()[:8], "big")
    return normalised(np.random.default_rng(seed).normal(size=(1, DIMENSION)))[0]


def vectors_of(rows: list[VectorRow]) -> np.ndarray:
    return np.stack([vector_of(each) for each in rows])


def info(part: Part = Part.TEXT, **fields: object) -> VectorsInfo:
    identity = EngineIdentity(engine="test", model="m", dimension=DIMENSION)
    return VectorsInfo(**{"part": part, "identity": identity, "dtype": "float32"} | fields)


@pytest.fixture
def paths(tmp_path: Path) -> VectorPaths:
    return VectorPaths(tmp_path / "embeddings", Part.TEXT)
