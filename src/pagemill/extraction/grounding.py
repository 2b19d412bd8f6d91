"""Where on a page a value is: found back in the lines that were read, or not at all.

A model may answer with what is not on the page. So a value counts as found only where the page has the same text:
exactly, as the same number or date in another notation, or, for longer texts, nearly the same with the same digits.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import unescape
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from rapidfuzz import fuzz

from pagemill.document.geometry import Box, union_box
from pagemill.document.page import ContentFormat, PageResult, Region
from pagemill.export.markdown import plain_content
from pagemill.extraction.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from pagemill.extraction.schema import Path_

_NUMBER = re.compile(r"\d[\d.,' ]*")
_WORD_BORDER = re.compile(r"[_\-]|(?<=[a-z])(?=[A-Z])")
_PLAIN_NUMBER = re.compile(r"[-+]?(\d+)(\.\d+)?")
_READINGS = tuple(
    (re.compile(rf"\d{{1,3}}({group}\d{{3}})*({point}\d+)?|\d+({point}\d+)?"), group.strip("\\"), point.strip("\\"))
    for group, point in ((",", r"\."), (r"\.", ","), (" ", r"\."), (" ", ","), ("'", r"\."), ("'", ","))
)
"""Notations of numbers: what separates thousands, and decimals. 1.234 may be over a thousand."""
_MINUS = re.compile(r"(?:^|\W)-$")
_MAYBE_MINUS = re.compile(r"(?:(?:^|[^\d\s] |[^\w\s])-|\()[^\w\s]? ?[^\w\s]?$")
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})([T ].*)?")
_DATE_PARTS = re.compile(r"\d+|[^\W\d_]+")
_MONTHS = (
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    *("janv", "fév", "mär", "avr", "mai", "juin", "juil", "août", "sept", "okt", "nov", "dez"),
    *("ene", "fev", "mar", "abr", "mag", "giu", "lug", "ago", "set", "ott", "nov", "dic"),
)
"""First letters of the months in English; German, French; Spanish, Italian, Portuguese."""
_IN_DATES = frozenset({"of", "de", "den", "the", "st", "nd", "rd", "th", "t", "년", "월", "일", "年", "月", "日"})
_LONGEST_DATE = 30
_LONGEST_ROW = 6
"""Parts of a number with spaces between its thousands: up to 10¹⁸."""
_TAG = re.compile(r"<[^<>]{0,300}>")
_MAX_NEEDLE = 2_000
"""Characters of a value that are looked for; of a longer one its beginning."""


class Place(NamedTuple):
    """A place on a page."""

    page: int
    """Index of the page among those that were searched."""
    start: int
    boxes: tuple[Box, ...]
    """In page pixels, one for each line."""
    text: str
    """Text as on the page."""
    score: float
    """Similarity to the value, 0-1."""

    @property
    def middle(self) -> float:
        """Middle of its first line, in pixels from the top."""
        return (self.boxes[0][1] + self.boxes[0][3]) / 2


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line, or a region whose lines are not known."""

    text: str
    box: Box
    words: tuple[tuple[int, int, Box], ...] = ()
    """Start and end in the text, and box, of each word."""


class PageText:
    """The text of a page, in which the place of every character is known."""

    def __init__(self, index: int, page: PageResult) -> None:
        self.index = index
        self.number = page.page_number
        self.page_id = page.page_id
        self.size = (max(1, page.width), max(1, page.height))
        self._pieces = [piece for region in page.regions for piece in _pieces(region)]
        self._starts: list[int] = []
        """Start of each piece in :attr:`text`."""
        self._offsets: list[int] = []
        """Offset of each character of :attr:`text` in its piece."""
        characters: list[str] = []
        for piece in self._pieces:
            self._starts.append(len(characters))
            for offset, character in enumerate(piece.text):
                # One by one: a character may become several (a ligature), and each must lead back to its place.
                for each in _normal(character):
                    if each != " " or (characters and characters[-1] != " "):
                        characters.append(each)
                        self._offsets.append(offset)
            if characters and characters[-1] != " ":
                characters.append(" ")
                self._offsets.append(len(piece.text))
        self.text = "".join(characters)

    def places(self, value: Any) -> list[Place]:
        """Where a value is on the page, best first, then in reading order."""
        if value is None or isinstance(value, bool):
            return []
        if isinstance(value, int | float):
            return self._made(self._numbers(Decimal(str(value))))
        needle = _joined(value[:_MAX_NEEDLE])
        if not needle:
            return []
        if number := _PLAIN_NUMBER.fullmatch(needle):  # an identifier, too: neither a zero nor a sign may differ
            return self._made(self._numbers(Decimal(needle), number[1]))
        spans = [(*span, 1.0) for span in self._exact(needle)]
        if not spans and (date := _ISO_DATE.fullmatch(needle)):
            spans = list(self._dates(date))
        if not spans:
            spans = list(self._similar(needle))
        return self._made(spans)

    def beside(self, place: Place) -> str:
        """The text before a place on its row, with the row above: what labels it."""
        x1, y1, _, y2 = place.boxes[0]
        height = max(1.0, y2 - y1)
        return _joined(
            " ".join(
                piece.text[:200]
                for piece in self._pieces
                if piece.box[0] <= x1 + height and piece.box[3] > y1 - 1.5 * height and piece.box[1] < y2
            )
        )

    def _exact(self, needle: str) -> Iterator[tuple[int, int]]:
        start = self.text.find(needle)
        while start >= 0:
            end = start + len(needle)
            # Inside of a word or number it is another one; scripts without spaces have no such borders.
            if not (self._goes_on(start, -1) or self._goes_on(end - 1, 1)):
                yield start, end
            start = self.text.find(needle, start + 1)

    def _goes_on(self, place: int, step: int) -> bool:
        """Whether the word or number with the character at a place continues before it (-1) or after it (1)."""
        character, near, far = (self.text[place + each : place + each + 1] for each in (0, step, 2 * step))
        if place + step < 0:
            return False
        if character.isdecimal() and near in (".", ","):
            return place + 2 * step >= 0 and far.isdecimal()
        return _joins(character, near)

    def _numbers(self, value: Decimal, whole: str | None = None) -> Iterator[tuple[int, int, float]]:
        """Places with a number, in whatever notation; of an identifier also with the digits of its whole part."""
        digits = "".join(map(str, value.as_tuple().digits)).strip("0")
        for match in _NUMBER.finditer(self.text):
            row = match.group()
            parts = list(re.finditer(r"\S+", row))
            for first in range(len(parts)):
                for last in range(first, min(len(parts), first + _LONGEST_ROW)):  # spaces may separate thousands
                    low = parts[first].start()
                    text = row[low : parts[last].end()].rstrip(".,'")
                    if re.sub(r"\D", "", text).strip("0") != digits:  # which spares reading most of them
                        continue
                    start, end = match.start() + low, match.start() + low + len(text)
                    signs = self._signs(start, end)
                    if any(
                        sign * Decimal(read) == value and (whole is None or read.partition(".")[0] == whole)
                        for read in _readings(text)
                        for sign in signs
                    ):
                        yield start, end, 1.0

    def _signs(self, start: int, end: int) -> tuple[int, ...]:
        """The signs that the number at a place may have: a dash may also be a separator, brackets mean a debt."""
        before, after = self.text[max(0, start - 6) : start], self.text[end : end + 2]
        if _MINUS.search(before):
            return (-1,)
        maybe = _MAYBE_MINUS.search(before)
        is_minus = ")" in after if maybe and "(" in maybe.group() else maybe or after.rstrip() == "-"
        return (1, -1) if is_minus else (1,)

    def _dates(self, date: re.Match[str]) -> Iterator[tuple[int, int, float]]:
        """Places with the day, the month as number or word, and the year, in any order."""
        year, month, day = int(date[1]), int(date[2]), int(date[3])
        # `_MONTHS` has three rows of twelve, so a month is at three places.
        names = tuple(_MONTHS[index] for index in (month - 1, month + 11, month + 23)) if 1 <= month <= 12 else ()
        parts = [part for part in _DATE_PARTS.finditer(self.text) if part.group() not in _IN_DATES]
        for first, second, third in zip(parts, parts[1:], parts[2:], strict=False):
            words = [part.group() for part in (first, second, third)]
            if third.end() - first.start() > _LONGEST_DATE or sum(word.isdecimal() for word in words) < 2:
                continue
            for order in permutations(words):
                given_year, given_month, given_day = order
                if not (given_year.isdecimal() and given_day.isdecimal() and int(given_day) == day):
                    continue
                # Two digits are enough on forms: 03.07.24.
                if int(given_year) not in (year, year % 100):
                    continue
                is_month = int(given_month) == month if given_month.isdecimal() else given_month.startswith(names)
                if names and is_month:
                    yield first.start(), third.end(), 1.0
                    break

    def _similar(self, needle: str) -> Iterator[tuple[int, int, float]]:
        if not THRESHOLDS.fuzzy_characters <= len(needle) <= len(self.text):
            return
        aligned = fuzz.partial_ratio_alignment(needle, self.text, score_cutoff=100 * THRESHOLDS.same_text)
        if aligned is None or aligned.dest_end <= aligned.dest_start:
            return
        start, end = self._whole_words(aligned.dest_start, aligned.dest_end)
        found = self.text[start:end].strip()
        score = fuzz.ratio(needle, found) / 100
        # A wrong digit is a small edit and a wrong value: digits must be equal in any case.
        if score >= THRESHOLDS.same_text and re.findall(r"\d+", needle) == re.findall(r"\d+", found):
            yield start, end, score

    def _whole_words(self, start: int, end: int) -> tuple[int, int]:
        """Extend a span to the borders of its first and last word; short words that were only touched leave."""
        while start > 0 and _joins(self.text[start - 1], self.text[start]):
            start -= 1
        while end < len(self.text) and _joins(self.text[end - 1], self.text[end]):
            end += 1
        return start, end

    def _made(self, spans: Iterable[tuple[int, int, float]]) -> list[Place]:
        return [
            Place(self.index, start, tuple(_part_of(*part) for part in parts), _text_of(parts), score)
            for start, end, score in islice(spans, THRESHOLDS.max_places)
            if (parts := list(self._parts(start, end)))
        ]

    def _parts(self, start: int, end: int) -> Iterator[tuple[_Piece, int, int]]:
        """The pieces of a span, with the part of each."""
        first = bisect_right(self._starts, start) - 1
        for number in range(first, len(self._pieces)):
            here = self._starts[number]
            if here >= end:
                return
            after = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.text)
            low, high = max(start, here), min(end, after)
            if low < high:
                piece = self._pieces[number]
                yield piece, self._offsets[low], min(len(piece.text), self._offsets[high - 1] + 1)


def _text_of(parts: Iterable[tuple[_Piece, int, int]]) -> str:
    return " ".join(piece.text[low:high] for piece, low, high in parts).strip()


def _part_of(piece: _Piece, start: int, end: int) -> Box:
    words = [box for low, high, box in piece.words if low < end and high > start]
    if words:
        return union_box(words)
    x1, y1, x2, y2 = piece.box
    if y2 - y1 > x2 - x1 or not piece.text or "\n" in piece.text:
        return piece.box
    step = (x2 - x1) / len(piece.text)  # all characters are about as wide as each other
    return (x1 + start * step, y1, x1 + end * step, y2)


def _pieces(region: Region) -> Iterator[_Piece]:
    if region.lines:
        for line in region.lines:
            words, place = [], 0
            for word in line.words:
                if (found := line.text.find(word.text, place)) < 0:
                    continue
                place = found + len(word.text)
                words.append((found, place, word.box))
            yield _Piece(line.text, line.box, tuple(words))
    elif region.content:
        is_html = region.content_format is ContentFormat.HTML
        text = unescape(_TAG.sub(" ", region.content)) if is_html else plain_content(region)
        yield _Piece(text + "\n", region.bbox)  # the line break marks that its box covers many lines


def _normal(character: str) -> str:
    """One character as it is compared: without case and width, with one kind of space, quote and dash."""
    if character.isspace() or character in ",;|":
        return " " if character != "," else ","
    if unicodedata.category(character) == "Pd" or character == "\u2212":  # a minus has another category
        return "-"
    if character.isdecimal():
        return str(int(character))  # of any script
    return unicodedata.normalize("NFKC", character).casefold().translate(_QUOTES)


_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})


def _joined(text: str) -> str:
    return " ".join("".join(map(_normal, unicodedata.normalize("NFC", text))).split())


def _joins(left: str, right: str) -> bool:
    """Whether two characters belong to one word or number."""
    return bool(left and right) and _is_word(left) and _is_word(right) and left.isdecimal() == right.isdecimal()


def _is_word(character: str) -> bool:
    # Words of Chinese, Japanese and Korean are not separated by spaces, or have endings.
    return character.isalnum() and not "\u1100" <= character <= "\uffef"


def _readings(text: str) -> set[str]:
    """The numbers that digits with points, commas and spaces may mean, in plain notation."""
    return {
        text.replace(group, "").replace(point, ".") for pattern, group, point in _READINGS if pattern.fullmatch(text)
    }


def choose_places(values: Sequence[tuple[Path_, Any]], pages: Sequence[PageText]) -> dict[Path_, Place]:
    """The place of each value that is found, where it may have several.

    Values of one entry of a list are near each other; a single value is beside its label, which resembles the name of
    the field; two values do not share a place while there is another one.

    Args:
        values: With their paths, in order.
        pages: Pages that the model has seen.
    """
    found = {path: [place for page in pages for place in page.places(value)] for path, value in values}
    chooser = _Chooser({page.index: page for page in pages})
    # Values with fewer places first: they show where the others of their entry are.
    for path in sorted(found, key=lambda path: (len(found[path]), -len(str(path)))):
        if found[path]:
            chooser.choose(path, found[path])
    return chooser.chosen


class _Chooser:
    def __init__(self, pages: dict[int, PageText]) -> None:
        self.chosen: dict[Path_, Place] = {}
        self._pages = pages
        self._taken: Counter[tuple[int, int]] = Counter()
        self._anchors: dict[Path_, Place] = {}
        """The first place that was chosen in each entry of a list."""

    def choose(self, path: Path_, places: Sequence[Place]) -> None:
        entry = _entry(path)
        anchor = self._anchors.get(entry) if entry else None
        if anchor is not None:
            best = min(places, key=lambda place: self._distance(place, anchor))
        else:
            best = min(places, key=lambda place: self._strangeness(place, path))
        self.chosen[path] = best
        self._taken[best.page, best.start] += 1
        if entry:
            self._anchors.setdefault(entry, best)

    def _distance(self, place: Place, anchor: Place) -> tuple[float, ...]:
        height = max(1.0, anchor.boxes[0][3] - anchor.boxes[0][1])
        rows = round(abs(place.middle - anchor.middle) / height)
        # Rows, not pixels: cells of one row differ by some pixels.
        return (self._taken[place.page, place.start], abs(place.page - anchor.page), rows, place.page, place.start)

    def _strangeness(self, place: Place, path: Path_) -> tuple[float, ...]:
        alike = 0.0
        if isinstance(path[-1], str):
            label = _joined(_WORD_BORDER.sub(" ", path[-1]))
            alike = fuzz.partial_ratio(label, self._pages[place.page].beside(place))
        used = self._taken[place.page, place.start]
        # Likeness in steps of ten: label matching is too coarse to decide between near equals; the first place wins.
        return (used, -place.score, -round(alike / 10), place.page, place.start)


def _entry(path: Path_) -> Path_:
    """The entry of a list that a value belongs to; empty for none."""
    last = next((index for index in range(len(path) - 1, -1, -1) if isinstance(path[index], int)), -1)
    return path[: last + 1]
