"""Languages of the drawn pages: their fonts, their words, and sentences composed of them by seed."""

from __future__ import annotations

import functools
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pagemill.errors import MissingDependencyError

if TYPE_CHECKING:
    from random import Random

WORDS = Path(__file__).with_name("words")

LANGUAGES = ("ko", "en", "zh", "zh-Hant", "ja", "de", "fr", "es", "vi", "ar", "he", "hi", "th", "ru")

_LATIN = ("Liberation Serif", "Liberation Sans", "DejaVu Serif", "DejaVu Sans", "Noto Serif", "Noto Sans")

FONTS: dict[str, tuple[str, ...]] = {
    "ko": ("NanumGothic", "NanumMyeongjo", "Noto Sans CJK KR", "Noto Serif CJK KR", "UnBatang"),
    "zh": ("Noto Sans CJK SC", "Noto Serif CJK SC"),
    "zh-Hant": ("Noto Sans CJK TC", "Noto Serif CJK TC"),
    "ja": ("Noto Sans CJK JP", "Noto Serif CJK JP", "IPAMincho"),
    "en": (*_LATIN, "Latin Modern Roman"),
    "de": _LATIN,
    "fr": _LATIN,
    "es": _LATIN,
    "vi": ("Noto Serif", "Noto Sans", "DejaVu Serif", "DejaVu Sans"),
    "ar": ("Noto Naskh Arabic", "Noto Sans Arabic", "Amiri"),
    "he": ("Noto Sans Hebrew", "Noto Serif Hebrew", "David CLM"),
    "hi": ("Noto Sans Devanagari", "Noto Serif Devanagari", "Lohit Devanagari"),
    "th": ("Noto Sans Thai", "Noto Serif Thai", "Garuda", "Norasi"),
    "ru": _LATIN,
}
"""Families that a page of a language may be set in."""

CODE_FONTS = ("DejaVu Sans Mono", "Liberation Mono")
MATH_FONTS = ("Latin Modern Math", "DejaVu Math TeX Gyre")

_PACKAGES = {
    "Nanum": "fonts-nanum",
    "Noto Sans CJK": "fonts-noto-cjk",
    "Noto Serif CJK": "fonts-noto-cjk",
    "Noto": "fonts-noto-core",
    "Un": "fonts-unfonts-core",
    "IPA": "fonts-ipafont-mincho",
    "Liberation": "fonts-liberation",
    "DejaVu Math": "fonts-dejavu-extra",
    "DejaVu": "fonts-dejavu-core",
    "Latin Modern": "fonts-lmodern",
    "Amiri": "fonts-hosny-amiri",
    "David": "culmus",
    "Lohit": "fonts-lohit-deva",
    "Garuda": "fonts-thai-tlwg",
    "Norasi": "fonts-thai-tlwg",
}
"""Debian package by the start of a family's name."""


@dataclass(frozen=True, slots=True)
class Language:
    """Phrases of one language."""

    code: str
    openings: tuple[str, ...]
    subjects: tuple[str, ...]
    predicates: tuple[str, ...]
    titles: tuple[str, ...]
    headings: tuple[str, ...]
    items: tuple[str, ...]
    columns: tuple[str, ...]
    fields: tuple[str, ...]
    names: tuple[str, ...]
    points: tuple[str, ...]
    remarks: tuple[str, ...]
    terms: dict[str, str]
    hanja: tuple[str, ...] = ()
    shops: tuple[str, ...] = ()
    goods: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    courses: tuple[str, ...] = ()
    dishes: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    """These six are there in the languages of the pages of forms."""

    @property
    def right_to_left(self) -> bool:
        """The script runs from right to left."""
        return self.code in ("ar", "he")

    @property
    def space(self) -> str:
        """What stands between words and sentences."""
        return "" if self.code in ("zh", "zh-Hant", "ja") else " "

    def sentence(self, random: Random) -> str:
        """One sentence."""
        subject = random.choice(self.subjects)
        inner = "" if self.code == "th" else self.space
        if random.random() < 0.7:
            text = random.choice(self.openings) + self.space + subject
        elif self.code == "de":  # the phrases hold the verb second: without an opening it would come first
            text = random.choice(("Zugleich", "Danach", "Inzwischen", "Vorerst")) + " " + subject
        else:
            text = subject[0].upper() + subject[1:]
        text += inner + random.choice(self.predicates)
        return self.fill(text, random) + {"zh": "。", "zh-Hant": "。", "ja": "。", "hi": "।", "th": ""}.get(
            self.code, "."
        )

    def fill(self, text: str, random: Random) -> str:
        """Put numbers where the phrase asks for them."""
        decimal = "." if self.code in ("ko", "en", "zh", "zh-Hant", "ja", "ar", "he", "hi", "th") else ","
        return (
            text.replace("{n}", str(random.randint(3, 480)))
            .replace("{p}", f"{random.randint(1, 48)}{decimal}{random.randint(1, 9)}")
            .replace("{y}", str(random.randint(2019, 2034)))
        )

    def paragraph(self, random: Random, sentences: int) -> str:
        """Some sentences in a row; no two the same."""
        made: list[str] = []
        while len(made) < sentences:
            if (sentence := self.sentence(random)) not in made:
                made.append(sentence)
        return self.space.join(made)


@functools.cache
def language(code: str) -> Language:
    """The words of a language.

    Args:
        code: One of `LANGUAGES`.
    """
    values = tomllib.loads((WORDS / f"{code}.toml").read_text(encoding="utf-8"))
    terms = values.pop("terms")
    return Language(code=code, terms=terms, **{name: tuple(phrases) for name, phrases in values.items()})


@functools.cache
def _installed() -> frozenset[str]:
    try:
        done = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise MissingDependencyError(
            "drawing pages needs fc-list", remedy="Install it: apt-get install fontconfig"
        ) from error
    return frozenset(name.strip() for line in done.stdout.splitlines() for name in line.split(","))


def check_font(family: str) -> str:
    """The family, if it is installed.

    Raises:
        MissingDependencyError: It is not; the message names the Debian package.
    """
    if family not in _installed():
        start = max((name for name in _PACKAGES if family.startswith(name)), key=len)
        raise MissingDependencyError(
            f"drawing pages needs the font {family}", remedy=f"Install it: apt-get install {_PACKAGES[start]}"
        )
    return family
