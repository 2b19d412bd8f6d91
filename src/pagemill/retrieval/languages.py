"""The language of a page, as far as its script and its run can tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCRIPTS = {
    "Kore": re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3]"),
    "Jpan": re.compile("[\u3041-\u30ff]"),
    "Hani": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "Cyrl": re.compile("[\u0400-\u052f]"),
    "Grek": re.compile("[\u0370-\u03ff]"),
    "Arab": re.compile("[\u0600-\u06ff]"),
    "Hebr": re.compile("[\u0590-\u05ff]"),
    "Deva": re.compile("[\u0900-\u097f]"),
    "Thai": re.compile("[\u0e00-\u0e7f]"),
    "Latn": re.compile("[A-Za-z\u00c0-\u024f]"),
}
_BY_SCRIPT = {
    "ko": "Kore",
    "ja": "Jpan",
    "zh": "Hani",
    "zh-hant": "Hani",
    "ru": "Cyrl",
    "uk": "Cyrl",
    "bg": "Cyrl",
    "el": "Grek",
    "ar": "Arab",
    "fa": "Arab",
    "he": "Hebr",
    "hi": "Deva",
    "th": "Thai",
}
_SURE = {"Kore": "ko", "Jpan": "ja", "Hani": "zh", "Grek": "el", "Hebr": "he", "Thai": "th"}
_ENOUGH = 0.25
"""Share of the letters from which a script that is written beside Latin letters decides: Korean reports are full of
Latin names and units.
"""


def language_of(text: str, candidates: Sequence[str]) -> str:
    """The language of a text, as a BCP 47 tag: by its main script, and by what its page was read as.

    Args:
        text: Of the page.
        candidates: The languages that it was read with; none where that is not known.

    Returns:
        Such as ``ko`` or ``en``; ``und-Latn`` where the script alone is known, ``und`` for a text without letters.
    """
    script = _script(text)
    if script is None:
        return "und"
    fitting = [name for name in candidates if _BY_SCRIPT.get(name.lower(), "Latn") == script]
    if len(fitting) == 1:
        return fitting[0]
    return _SURE.get(script, f"und-{script}")


def _script(text: str) -> str | None:
    letters = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS.items()}
    total = sum(letters.values())
    if not total:
        return None
    if letters["Jpan"] >= 0.1 * (letters["Jpan"] + letters["Hani"]) and letters["Jpan"]:
        letters["Jpan"] += letters.pop("Hani")  # Japanese is written with both
    others = {name: count for name, count in letters.items() if name != "Latn" and count >= _ENOUGH * total}
    return max(others, key=others.__getitem__) if others else max(letters, key=letters.__getitem__)
