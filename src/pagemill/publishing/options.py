"""Options of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar

from pagemill.config.options import Settings, option

SHARD_BYTES = 400 * 2**20
"""Approximate size of a shard: the Hub's viewer prefers some hundred megabytes."""


class Shape(StrEnum):
    """The form of a dataset."""

    PARQUET = "parquet"
    """Rows for ``datasets.load_dataset`` and the Hub's viewer, pictures in them."""
    FILES = "files"
    """The files of the reference pipeline: JSON lines, crops (in tar shards), vectors."""


licence_option = partial(
    option,
    *("--licence", "--license"),
    results=False,
    metavar="ID",
    help="Licence of the pages, as the Hub names it, such as cc-by-4.0.",
)
token_option = partial(
    option,
    "--hf-token",
    results=False,
    environment="HF_TOKEN",
    secret=True,
    metavar="TOKEN",
    help="Token for the Hub. Prefer to set HF_TOKEN, or log in with `hf auth login`.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination(Settings):
    """The target of a dataset."""

    RESULTS: ClassVar = False

    repository: str | None = option(
        "--repo", metavar="USER/NAME", help="Dataset on the Hugging Face Hub; created if it does not exist."
    )
    url: str | None = option("--to", metavar="URL", help="Publish to a folder, or to a URL such as s3://bucket/name.")
    private: bool = option(default=False, help="Make the repository private.")
    revision: str = option(default="main", metavar="BRANCH", help="Branch of the repository.")
    hf_token: str | None = token_option()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions(Settings):
    """The content of a dataset."""

    RESULTS: ClassVar = False

    repository: str | None = None
    """Repository in the sample code of the card; see :class:`Destination`."""
    licence: str = licence_option(default="")
    title: str = option(default="", metavar="TEXT", help="Title of the dataset.", shown_default="the name of OUT")
    shape: Shape = option(
        "--format",
        default=Shape.PARQUET,
        help="Parquet including the crops, or JSON lines, crops and vectors as files.",
    )
    crops: bool = option(default=True, help="Include the crops.")
    embeddings: bool = option(default=True, help="Include the vectors.")
    page_images: bool = option(default=False, help="parquet: include the image of each page, read from its source.")
    partial: bool = option(default=False, help="Publish an unfinished run.")
    """Also a run with unreadable sources, or with outdated vectors, which are left out."""
    shard_bytes: int = SHARD_BYTES
