"""The language of a page, from its script and the languages of its run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from pagemill.recognition.languages import ALPHABETS, primary_subtag, script_of, scripts_of_language

_LANGUAGES: defaultdict[str, set[str]] = defaultdict(set)
"""The languages that are read, by the scripts that they are written in."""
for _language in ALPHABETS:
    for _script in scripts_of_language(_language):
        _LANGUAGES[_script].add(_language)
_TAGS = {"LATIN": "und-Latn", "CYRILLIC": "und-Cyrl", "ARABIC": "und-Arab", "DEVANAGARI": "und-Deva"}
"""Tags of texts in scripts with several languages."""
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
    script = _main_script(text)
    if script is None:
        return "und"
    fitting = [name for name in candidates if _is_written_in(name, script)]
    if len(fitting) == 1:
        return fitting[0]
    return _TAGS.get(script) or max(_LANGUAGES[script])  # of ja and zh the latter: Japanese is written with kana, too


def is_known(language: str) -> bool:
    """Whether this is a language that a search can filter by: a code such as ``en`` or ``zh-Hant``, or ``und-Latn``."""
    return primary_subtag(language) in ALPHABETS or language.lower() in {"und", *map(str.lower, _TAGS.values())}


def may_be(tag: str, language: str) -> bool:
    """Whether a page of a language may be one of another name: the same, or one of that script.

    Args:
        tag: A result of :func:`language_of`.
        language: The filter, such as ``en``, which admits ``und-Latn``.
    """
    of_script = any(tag == each and _is_written_in(language, script) for script, each in _TAGS.items())
    return tag.lower() == language.lower() or of_script


def _is_written_in(language: str, script: str) -> bool:
    language = primary_subtag(language)
    return language in _LANGUAGES[script] or (script == "LATIN" and language not in ALPHABETS)


def _main_script(text: str) -> str | None:
    letters = Counter(script for script in map(script_of, text) if script in _LANGUAGES)
    total = letters.total()
    kana = letters["HIRAGANA"] + letters.pop("KATAKANA", 0)
    # A little kana is in Chinese texts, too, as in names of products.
    if kana and kana >= 0.1 * (kana + letters["CJK"]):
        letters["HIRAGANA"] = kana + letters.pop("CJK", 0)  # Japanese is written with both
    others = [(count, script) for script, count in letters.items() if script != "LATIN" and count >= _ENOUGH * total]
    return max(others)[1] if others else max(letters, key=letters.__getitem__, default=None)
