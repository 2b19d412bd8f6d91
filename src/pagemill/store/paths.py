"""Names of the files in a run directory."""

from __future__ import annotations

import re
from pathlib import Path

from pagemill.document.names import file_stem

RESULTS = "ocr_results.jsonl"
TEXTS = "parsed_texts.jsonl"
RUN_JSON = "run.json"
REPORT = "report.html"
CROPS = "crops"
DOCUMENTS = "documents"

FOLDER = ".pagemill"
"""Holds what is for pagemill alone."""
LEDGER = f"{FOLDER}/ledger.sqlite"
LOCK = f"{FOLDER}/lock"
EMBEDDINGS_LOCK = f"{FOLDER}/embeddings.lock"
PREVIEWS = f"{FOLDER}/previews"

TEMPORARY_SUFFIX = ".pagemill-tmp"
"""Of a file that is not whole yet."""

_CROP_PATH = re.compile(rf"{CROPS}/[^/\\\0]+")
_CROP_NAME = re.compile(r"(.+)_\d+\.[a-z]+")


def crop_file(out: Path, name: str) -> Path:
    """Where a crop lies.

    Raises:
        ValueError: The name points anywhere but directly into ``crops/``.
    """
    base = name.removeprefix(f"{CROPS}/")
    if not _CROP_PATH.fullmatch(name) or base in {".", ".."}:
        raise ValueError(f"no path of a crop: {name!r}")
    return out / CROPS / base


def own_file(out: Path, name: str) -> Path:
    """Where a crop or a document's file lies, by its path relative to the run directory.

    Raises:
        ValueError: The name points anywhere else.
    """
    folder, _, base = name.partition("/")
    return out / DOCUMENTS / crop_file(out, f"{CROPS}/{base}").name if folder == DOCUMENTS else crop_file(out, name)


def stem_of_crop(name: str) -> str | None:
    """The :func:`file_stem` of the page that a file in ``crops/`` belongs to; None for a name that is not ours."""
    match = _CROP_NAME.fullmatch(name)
    return match[1] if match else None


def document_files(out: Path, doc_id: str) -> tuple[Path, Path]:
    """Where a document's Markdown and DocJSON lie."""
    stem = file_stem(doc_id)
    return out / DOCUMENTS / f"{stem}.md", out / DOCUMENTS / f"{stem}.json"
