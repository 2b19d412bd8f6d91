"""Which engine reads which language; coverage is derived from the characters an engine knows, never guessed."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pagemill.config.languages import FILES, LANGUAGES, PREFIX
from pagemill.errors import LanguageError

ALPHABETS = {code: language.letters for code, language in LANGUAGES.items()}
"""Characters a language needs, by BCP-47 primary subtag."""

_LATIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def languages_covered_by(characters: frozenset[str]) -> frozenset[str]:
    """The languages whose alphabet is wholly among the characters an engine can write."""
    if not characters >= _LATIN:
        return frozenset()
    return frozenset(
        language
        for language, alphabet in ALPHABETS.items()
        if characters.issuperset(alphabet)
        and characters.issuperset(upper for upper in map(str.upper, alphabet) if len(upper) == 1)
    )


TESSDATA_NAMES = {code: language.tessdata for code, language in LANGUAGES.items()}
"""Tesseract's file name for each language."""


LANGUAGE_OF_SCRIPT = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CYRILLIC": "ru", "DEVANAGARI": "hi", "ETHIOPIC": "am",
    "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu", "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he",
    "KANNADA": "kn", "KHMER": "km", "LAO": "lo", "MALAYALAM": "ml", "MYANMAR": "my", "SINHALA": "si", "TAMIL": "ta",
    "TELUGU": "te", "THAI": "th", "VIETNAMESE": "vi",
}  # fmt: skip
"""What the detector of scripts knows and the embedded engine does not read, each with the commonest language of it, by
which it is installed. Vietnamese is Latin script, whose accents the engine cannot write."""

_TAG_OF_SCRIPT = {
    "ARABIC": "und-Arab", "ARMENIAN": "hy", "BENGALI": "und-Beng", "CYRILLIC": "und-Cyrl", "DEVANAGARI": "und-Deva",
    "ETHIOPIC": "und-Ethi", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu", "GURMUKHI": "pa", "HANGUL": "ko",
    "HEBREW": "he", "KANNADA": "kn", "KHMER": "km", "LAO": "lo", "LATIN": "und-Latn", "MALAYALAM": "ml",
    "MYANMAR": "my", "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te", "THAI": "th",
}  # fmt: skip
"""Language tags by script alone."""


def title_of_script(script: str) -> str:
    """A script's name for people: ``Cyrillic script``."""
    return "Vietnamese (Latin script with its accents)" if script == "VIETNAMESE" else f"{script.title()} script"


@functools.lru_cache(maxsize=20_000)
def script_of(character: str) -> str | None:
    """The script of a letter: the first word of its Unicode name (``LATIN``, ``HANGUL``, ``CJK``); None for others.

    A single Korean letter outside of a syllable has none: in running text it is a misread sign.
    """
    name = unicodedata.name(character, "") if character.isalpha() else ""
    return None if name.startswith("HANGUL LETTER") else name.split(" ")[0].split("-")[0] or None


@functools.cache
def scripts_of_language(language: str) -> frozenset[str]:
    """The scripts a language is written in, from its alphabet."""
    scripts = {script_of(letter) for letter in ALPHABETS[language]} - {None}
    return frozenset(script for script in scripts if script) or frozenset({"LATIN"})


def script_share(text: str, scripts: frozenset[str]) -> float:
    """Share of the letters of a text that belong to some scripts, 0-1; 0 without letters."""
    letters = [script for script in map(script_of, text) if script]
    return sum(script in scripts for script in letters) / len(letters) if letters else 0.0


def tags_of_text(text: str) -> tuple[str, ...]:
    """Language tags by the scripts alone: ``ja``, ``zh``, ``ko``, ``und-Latn``, ..., commonest first."""
    counts = Counter(script for script in map(script_of, text) if script)
    total = sum(counts.values())
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    han = "ja" if kana > 0.1 * (counts["CJK"] + kana) else "zh"
    shares = Counter({tag: counts[script] for script, tag in _TAG_OF_SCRIPT.items()})
    shares[han] = counts["CJK"] + kana
    return tuple(tag for tag, count in shares.most_common() if count > 0.02 * total)


class Plan(NamedTuple):
    """Which engine reads what on a page."""

    primary: str
    """Engine that reads every line first."""
    others: tuple[tuple[str, str], ...] = ()
    """Languages the primary cannot write, each with the engine that reads it."""
    languages: tuple[str, ...] | None = None
    """What the user asked for; None to find out."""
    latin: str | None = None
    """Quicker engine for pages in Latin letters alone, where the languages are to be found out."""
    vietnamese: str | None = None
    """Engine for pages of Vietnamese, which the primary reads without its accents, where the languages are to be found
    out."""
    familiar: frozenset[str] = frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"})
    """The scripts that the primary reads."""

    def engine_of(self, script: str) -> str | None:
        """The first engine that reads a script which the primary does not; None for none."""
        if script == "VIETNAMESE":
            return self.vietnamese
        return next((name for language, name in self.others if script in scripts_of_language(language)), None)


def plan(languages: Sequence[str] | None, engines: Mapping[str, frozenset[str]], primary: str) -> Plan:
    """Share the languages among engines.

    Args:
        languages: BCP-47 primary subtags; None detects the script of every page.
        engines: The languages of each installed engine; of several for a language the first is taken.
        primary: The engine that is best for what it covers. Where it has recognizers for fewer languages, named with a
            suffix after a colon, they are quicker: the first that knows all that is asked for is taken instead.

    Raises:
        LanguageError: No installed engine reads a language.
    """
    covered = engines[primary]
    quicker = [name for name in engines if name.startswith(f"{primary}:")]
    foreign = [name for name in engines if name != primary and name not in quicker]
    readers: dict[str, str] = {}
    for name in foreign:
        for language in sorted(engines[name], key=_commonest_first):
            readers.setdefault(language, name)
    if languages is None:
        others = [(language, name) for language, name in readers.items() if not same_script(language, covered)]
        latin = next((name for name in quicker if "en" in engines[name]), None)
        others.sort(key=lambda other: _commonest_first(other[0]))
        familiar = frozenset[str]().union(*map(scripts_of_language, covered))
        return Plan(primary, tuple(others), None, latin, readers.get("vi") if "vi" not in covered else None, familiar)
    asked = tuple(dict.fromkeys(primary_subtag(tag) for tag in languages))
    absent = [language for language in asked if language not in covered and language not in readers]
    if absent:
        raise LanguageError(f"no installed engine reads: {', '.join(absent)}", remedy=remedy_for(absent))
    others = [(language, readers[language]) for language in asked if language not in covered]
    # A language in a script that the primary writes too, only without its accents, is read whole by its own engine.
    for language, name in others:
        if same_script(language, covered):
            return Plan(name, tuple(other for other in others if other[1] != name), asked)
    own = covered.intersection(asked)
    first = next((name for name in quicker if own and own <= engines[name]), primary)
    return Plan(first, tuple(others), asked)


def _commonest_first(language: str) -> tuple[bool, str]:
    return language not in LANGUAGE_OF_SCRIPT.values(), language


def same_script(language: str, covered: Iterable[str]) -> bool:
    """Whether some of the covered languages are written with all scripts of a language."""
    return any(scripts_of_language(language) <= scripts_of_language(known) for known in covered)


def primary_subtag(tag: str) -> str:
    """``ko`` of ``ko-KR``, ``KO`` or ``ko_KR``."""
    return tag.strip().lower().replace("_", "-").split("-")[0]


def remedy_for(languages: Sequence[str]) -> str:
    """The shell commands that fetch Tesseract's data of languages; a note if there is none."""
    known = [TESSDATA_NAMES[language] for language in languages if language in TESSDATA_NAMES]
    if not known:
        return "Give two-letter codes such as en, ko, ja. `pagemill doctor parse` lists the scripts that are read here."
    packages = " ".join(f"tesseract-ocr-{name.replace('_', '-')}" for name in known)
    system = f"apt-get install tesseract-ocr {packages} (macOS: brew install tesseract tesseract-lang)"
    fetched = " ".join(PREFIX + name for name in known if name in FILES)
    return f"pagemill models download {fetched}, or: {system}" if fetched else system
