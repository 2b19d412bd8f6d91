"""Keyword arguments of the Python API, from the declarations of options: ``scripts/public_api.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from pagemill.config.describing import DescribeSettings
from pagemill.config.recognition import RecognitionSettings


class StreamKeywords(TypedDict, total=False):
    """Types of the keyword arguments of :func:`pagemill.stream`."""

    pages: str | None
    password: str | None
    recursive: bool
    limit: int | None
    image_column: str | None
    id_column: str | None
    download: str | Path | None
    skip_duplicates: bool
    languages: Sequence[str] | None
    text_layer: str | None
    structure: str | None
    photographs: str | None
    tables: str | None
    furniture: str | None
    inline_marks: bool
    read_images: bool
    table_engine: str
    table_model: str | None
    recognition: RecognitionSettings | None
    describing: DescribeSettings | None
    page_timeout_s: float
    layout_engine: str
    layout_model: str | Path | None
    threads: int
    decoders: int
    decoder_memory_gib: float
    pages_in_flight: int
    layout_batch: int
    schedule: str | None
    max_attempts: int


class ParseKeywords(StreamKeywords, total=False):
    """Types of the keyword arguments of :func:`pagemill.parse`."""

    crops: bool
