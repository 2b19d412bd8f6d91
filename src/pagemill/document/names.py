"""Names of documents, pages and crops: safe as file names on every system, and unique in a run."""

from __future__ import annotations

import hashlib
import unicodedata

from pagemill.late import re

MAX_BYTES = 150
"""Bytes of a name in UTF-8, so that suffixes still fit into the 255 bytes of common file systems."""
_FORBIDDEN = re.compile(r'[/\\:*?"<>|]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def safe_name(raw: str) -> str:
    """Turn any text into a file name: letters of all scripts stay, special characters of file systems are removed.

    The result is in NFC, not empty, at most ``MAX_BYTES`` bytes in UTF-8, contains no separator, control or formatting
    character, neither starts nor ends with a dot or space, and is not a device name of Windows.
    """
    text = unicodedata.normalize("NFC", raw)
    text = "".join("_" if unicodedata.category(c) in _INVISIBLE else c for c in text)
    text = _FORBIDDEN.sub("_", text).strip(". ")
    # File systems count bytes; the cut may be within a character, which goes.
    text = text.encode("utf-8")[:MAX_BYTES].decode("utf-8", "ignore").rstrip(". ")
    # Windows opens a device by such a name, whatever its suffix.
    if _RESERVED.fullmatch(text):
        text = f"_{text}"
    return text or "document"


def file_stem(identifier: str) -> str:
    """The file name of a document or page id: the id itself where it is safe, as those made by sources are.

    An id of other provenance is cleaned and gets ten hex digits of its SHA-256, so that two never share a file.
    """
    safe = safe_name(identifier)
    if safe == identifier:
        return identifier
    return f"{safe}-{hashlib.sha256(identifier.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def crop_path(page_id: str, region: int) -> str:
    """Path of a region's crop relative to the output directory, with forward slashes."""
    return f"crops/{file_stem(page_id)}_crop_{region}.jpg"
