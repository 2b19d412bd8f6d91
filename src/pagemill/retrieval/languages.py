"""The language of a page, from its script and the languages of its run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_TABLE = {
    "Kore": ("\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3", ("ko",)),
    "Jpan": ("\u3041-\u30ff", ("ja",)),
    "Hani": ("\u3400-\u4dbf\u4e00-\u9fff", ("zh", "ja")),
    "Cyrl": ("\u0400-\u052f", ("be", "bg", "kk", "mk", "mn", "ru", "sr", "uk")),
    "Grek": ("\u0370-\u03ff", ("el",)),
    "Arab": ("\u0600-\u06ff", ("ar", "fa", "ur")),
    "Hebr": ("\u0590-\u05ff", ("he",)),
    "Deva": ("\u0900-\u097f", ("hi", "mr", "ne")),
    "Beng": ("\u0980-\u09ff", ("bn",)),
    "Guru": ("\u0a00-\u0a7f", ("pa",)),
    "Gujr": ("\u0a80-\u0aff", ("gu",)),
    "Taml": ("\u0b80-\u0bff", ("ta",)),
    "Telu": ("\u0c00-\u0c7f", ("te",)),
    "Knda": ("\u0c80-\u0cff", ("kn",)),
    "Mlym": ("\u0d00-\u0d7f", ("ml",)),
    "Thai": ("\u0e00-\u0e7f", ("th",)),
    "Laoo": ("\u0e80-\u0eff", ("lo",)),
    "Mymr": ("\u1000-\u109f", ("my",)),
    "Geor": ("\u10a0-\u10ff", ("ka",)),
    "Khmr": ("\u1780-\u17ff", ("km",)),
    "Armn": ("\u0530-\u058f", ("hy",)),
    "Latn": ("A-Za-z\u00c0-\u024f", ()),
}
"""Codes of ISO 15924, the Unicode blocks of their letters, and languages in them, likeliest first; all others use Latin
letters. The script determines a language if it is the only one here, and Chinese, since Japanese is hardly ever written
without kana.
"""
_SCRIPTS = {script: re.compile(f"[{characters}]") for script, (characters, _) in _TABLE.items()}
_LANGUAGES = {script: names for script, (_, names) in _TABLE.items() if names}
_NOT_LATIN = frozenset(name for names in _LANGUAGES.values() for name in names)
_LATIN = (
    *("af", "az", "bs", "ca", "cs", "cy", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu"),
    *("id", "is", "it", "la", "lt", "lv", "ms", "mt", "nb", "nl", "no", "pl", "pt", "ro", "sk", "sl", "sq", "sv"),
    *("sw", "tl", "tr", "uz", "vi"),
)
LANGUAGES = tuple(sorted({*_NOT_LATIN, *_LATIN}))
"""Languages that a search can filter by: those that pages are read in."""
_ALONE = {script: names[0] for script, names in _LANGUAGES.items() if len(names) == 1 or script == "Hani"}
_ENOUGH = 0.25
"""Share of letters from which a script mixed with Latin letters decides: Korean reports are full of Latin names and
units.
"""


def language_of(text: str, candidates: Sequence[str]) -> str:
    """The language of a text, as a BCP 47 tag: by its main script and the languages of its page.

    Args:
        text: Text of the page.
        candidates: Languages that it was read with; empty if unknown.

    Returns:
        A tag such as ``ko`` or ``en``; ``und-Latn`` if only the script is known, ``und`` without letters.
    """
    script = _script(text)
    if script is None:
        return "und"
    fitting = [name for name in candidates if _is_written_in(name, script)]
    if len(fitting) == 1:
        return fitting[0]
    return _ALONE.get(script, f"und-{script}")


def is_known(language: str) -> bool:
    """Whether this is a language that a search can filter by: a code such as ``en`` or ``zh-Hant``, or ``und-Latn``."""
    primary, _, rest = language.lower().partition("-")
    if primary == "und":
        return not rest or rest.title() in _SCRIPTS
    return primary in LANGUAGES


def may_be(tag: str, language: str) -> bool:
    """Whether a page of a language may be one of another name: the same, or one of that script.

    Args:
        tag: As :func:`language_of` gives it.
        language: The filter, such as ``en``, which admits ``und-Latn``.
    """
    if tag.lower() == language.lower():
        return True
    script = tag.removeprefix("und-")
    return script in _SCRIPTS and _is_written_in(language, script)


def _is_written_in(language: str, script: str) -> bool:
    primary = language.lower().partition("-")[0]  # of zh-Hant: zh
    return primary in _LANGUAGES[script] if script in _LANGUAGES else primary not in _NOT_LATIN


def _script(text: str) -> str | None:
    letters = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS.items()}
    total = sum(letters.values())
    if not total:
        return None
    if letters["Jpan"] >= 0.1 * (letters["Jpan"] + letters["Hani"]) and letters["Jpan"]:
        letters["Jpan"] += letters.pop("Hani")  # Japanese is written with both
    others = {name: count for name, count in letters.items() if name != "Latn" and count >= _ENOUGH * total}
    return max(others, key=others.__getitem__) if others else max(letters, key=letters.__getitem__)
