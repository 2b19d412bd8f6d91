"""Names of the files in a run directory."""

from __future__ import annotations

from pathlib import Path

from pagemill.document.names import file_stem
from pagemill.late import re

RESULTS = "ocr_results.jsonl"
TEXTS = "parsed_texts.jsonl"
RUN_JSON = "run.json"
REPORT = "report.html"
CROPS = "crops"
DOCUMENTS = "documents"
EXTRACTED = "extracted"
"""Output of ``pagemill extract``: a folder for each schema, with a file for each document."""

FOLDER = ".pagemill"
"""Private to pagemill."""
DATABASE = f"{FOLDER}/run.sqlite"
"""The primary data; every other file except the crops is derived from it."""
DESCRIPTIONS = f"{FOLDER}/descriptions.sqlite"
"""Answers of a model about pictures, by request: after a kill nothing is requested again."""
LOCK = f"{FOLDER}/lock"
"""Held by the process that changes the run."""
DERIVED_LOCK = f"{FOLDER}/derived.lock"
"""Held while derived files are written: ``pagemill export OUT`` may write them beside a run."""
EMBEDDINGS_LOCK = f"{FOLDER}/embeddings.lock"
EVALUATION_LOCK = f"{FOLDER}/evaluation.lock"
"""In the folder of a benchmark's results, held by the process that scores there."""
NODES = f"{FOLDER}/nodes.json"
"""Recent pages per second by machine, while a run is on a cluster."""
EARLIER_LEDGER = f"{FOLDER}/ledger.sqlite"
"""Database of version 0.1.0, whose primary data was ``ocr_results.jsonl``."""
DISCARDING = f"{FOLDER}/discarding"
"""Marker of a run that is being deleted."""

_CROP_PATH = re.compile(rf"{CROPS}/[^/\\\0]+")
_CROP_NAME = re.compile(r"(.+)_crop_\d+\.[a-z]+")


def crop_file(out: Path, name: str) -> Path:
    """Path of a crop.

    Raises:
        ValueError: The name points anywhere but directly into ``crops/``.
    """
    base = name.removeprefix(f"{CROPS}/")
    if not _CROP_PATH.fullmatch(name) or base in {".", ".."}:
        raise ValueError(f"not the path of a crop: {name!r}")
    return out / CROPS / base


def own_file(out: Path, name: str) -> Path:
    """Path of a crop or of a document's file, from its path relative to the run directory.

    Raises:
        ValueError: The name points anywhere else.
    """
    folder, _, base = name.partition("/")
    return out / DOCUMENTS / crop_file(out, f"{CROPS}/{base}").name if folder == DOCUMENTS else crop_file(out, name)


def stem_of_crop(name: str) -> str | None:
    """The :func:`file_stem` of the page that a file in ``crops/`` belongs to; None for a name that is not ours."""
    match = _CROP_NAME.fullmatch(name)
    return match[1] if match else None


def document_names(doc_id: str) -> tuple[str, str]:
    """A document's Markdown and DocJSON, relative to the run directory."""
    stem = file_stem(doc_id)
    return f"{DOCUMENTS}/{stem}.md", f"{DOCUMENTS}/{stem}.json"


def document_files(out: Path, doc_id: str) -> tuple[Path, Path]:
    """Paths of a document's Markdown and DocJSON."""
    markdown, docjson = document_names(doc_id)
    return out / markdown, out / docjson
