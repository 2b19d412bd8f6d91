"""File names made from identifiers that nobody vouches for (page ids of datasets, document stems)."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_BYTES = 120
"""Longest name in UTF-8 bytes; with suffixes it stays well below the 255 that common filesystems allow."""

_HASHED = re.compile(r"-[0-9a-f]{10}$")


def safe_name(identifier: str) -> str:
    """Turn an identifier into a file name: no separators, no leading dot, bounded, unique also where case is ignored.

    A name that is safe as it stands is kept. Any other one is cleaned and gets ten hex digits of the identifier's
    SHA-256, so that two identifiers never share a name, not even on filesystems that fold case or normalise Unicode.
    """
    cleaned = _clean(identifier)
    if cleaned and cleaned == identifier == identifier.casefold() and not _HASHED.search(identifier):
        return identifier
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{cleaned}-{digest}" if cleaned else f"page-{digest}"


def document_stem(doc_id: str) -> str:
    """File stem of a document: the id itself, which sources promise to be unique and safe, or a safe name for it."""
    return doc_id if doc_id and _clean(doc_id) == doc_id else safe_name(doc_id)


def crop_path(page_id: str, region: int, suffix: str = ".jpg") -> str:
    """Path of a region's crop relative to the output directory, with forward slashes."""
    return f"crops/{safe_name(page_id)}_{region}{suffix}"


def _clean(identifier: str) -> str:
    normal = unicodedata.normalize("NFC", identifier)
    kept = "".join(c if c.isalnum() or c in "._-" else "_" for c in normal).lstrip(".")
    return kept.encode("utf-8", "ignore")[:MAX_BYTES].decode("utf-8", "ignore").rstrip(".")
