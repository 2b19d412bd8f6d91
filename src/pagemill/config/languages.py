"""Languages and their characters, and Tesseract's files for them: ``languages.toml``."""

from __future__ import annotations

from pathlib import Path

import msgspec

PREFIX = "tessdata:"
"""Before Tesseract's name of a language: the name of a model."""
URL = "https://github.com/tesseract-ocr/tessdata_fast/raw/4.1.0/{}.traineddata"


class Language(msgspec.Struct, frozen=True):
    """A language, as in ``languages.toml``."""

    letters: str
    tessdata: str
    bytes: int = 0
    sha256: str = ""


LANGUAGES = msgspec.toml.decode(Path(__file__).with_name("languages.toml").read_bytes(), type=dict[str, Language])
"""By BCP-47 primary subtag."""
FILES = dict(
    sorted((language.tessdata, (language.bytes, language.sha256)) for language in LANGUAGES.values() if language.sha256)
)
"""Bytes and sha256 of the files that can be fetched, by Tesseract's name."""
