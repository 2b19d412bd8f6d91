"""Where Tesseract's language data is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from pagemill.config.model_files import tessdata_folders

EMBEDDED = Path(__file__).parent / "models"
"""Korean, in the wheel."""
_PREFIXES = ("/usr", "/usr/local", "/opt/homebrew", "/opt/local")
_PLACES = ("share/tesseract-ocr/*/tessdata", "share/tessdata", "share/tesseract/tessdata")
"""Locations in Debian; in Alpine, Arch, Homebrew and conda; in Fedora."""


def find_data(name: str) -> Path | None:
    """The data file of a language by Tesseract's name for it (``kor``); None where there is none."""
    return next((file for folder in _folders() if (file := folder / f"{name}.traineddata").is_file()), None)


def _folders() -> Iterator[Path]:
    """Where to look: what the user names, what comes with pagemill, what it has downloaded, the system's."""
    if chosen := os.environ.get("TESSDATA_PREFIX", ""):
        yield Path(chosen)
    yield EMBEDDED
    yield from tessdata_folders()
    program = shutil.which("tesseract")
    own = [Path(program).resolve().parent.parent] if program else []
    for prefix in dict.fromkeys([*own, Path(sys.prefix), *map(Path, _PREFIXES)]):
        for place in _PLACES:
            yield from sorted(prefix.glob(place), reverse=True)  # the newest version first
