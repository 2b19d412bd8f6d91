"""What a dataset is to be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SHARD_BYTES = 400 * 2**20
"""Approximate size of a shard: the Hub's viewer prefers some hundred megabytes."""


class Shape(StrEnum):
    """The form of a dataset."""

    PARQUET = "parquet"
    """Rows for ``datasets.load_dataset`` and the Hub's viewer, pictures in them."""
    FILES = "files"
    """The files of the reference pipeline: JSON lines, crops (in tar shards), vectors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How the dataset is made."""

    licence: str
    """Identifier as the Hub knows it, such as ``cc-by-4.0``."""
    title: str
    repository: str | None = None
    """``USER/NAME``, for the sample code of the card."""
    shape: Shape = Shape.PARQUET
    crops: bool = True
    embeddings: bool = True
    page_images: bool = False
    """Parquet: the image of each page, too."""
    partial: bool = False
    """Also publish an unfinished run, or one with unreadable sources."""
    shard_bytes: int = SHARD_BYTES
