"""Reading a page: find its lines, turn it upright, read them, find what the first engine cannot read, ask others."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from pagemill.document.geometry import as_boxes
from pagemill.document.page import TextLine, Word
from pagemill.errors import LanguageError
from pagemill.imaging.transforms import crop_quad, rotate_quarter
from pagemill.recognition.base import RecognizedText
from pagemill.recognition.ink import holds_writing, unread_share
from pagemill.recognition.languages import (
    LANGUAGE_OF_SCRIPT,
    remedy_for,
    script_of,
    script_share,
    scripts_of_language,
    tags_of_text,
    title_of_script,
)
from pagemill.recognition.merge import hanja_stretches, replace, stretches
from pagemill.recognition.scripts import FIGURES, FLIPPED, script_shares

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pagemill.document.geometry import Box
    from pagemill.imaging.types import Pixels
    from pagemill.recognition.base import DetectedLine, Quad
    from pagemill.recognition.languages import Plan
    from pagemill.recognition.merge import Stretch

P = ParamSpec("P")
R = TypeVar("R")

_FOREIGN_LINE = 0.3  # share of a line's ink left unread that hints at another script
_SOME_FOREIGN = 0.08  # the same where the page is known to hold the other script
_TRACE_OF_FOREIGN = 0.03  # the same for a figure with one syllable behind it
_LONG = 3  # line heights
_FOREIGN_PAGE = 0.6  # share of the text, by length, that makes a page illegible
_ENOUGH_LINES = 3
_WORTH_A_SAMPLE = 12  # lines from which it pays to find out first that a page is all Latin
_SURE_LANGUAGE = 0.6  # mean over sample lines of confidence x share of letters in the language's script
_SCRIPT_SEEN = 0.5  # share of a script that the primary cannot read, in a line's image or in those of a sample
_SCRIPT_CLEAR = 0.8  # the same for a sample, where the primary's text may look good
_SCRIPT_POSSIBLE = 0.15  # share from which an engine for a script is tried
_ENGINES_TRIED = 3  # on a sample: the languages of one script among them
_SCRIPTS_OF_PAGE = 3  # in scripts that the primary does not read
_HEAD_DOWN = 0.6  # share of a sample that stands upside down
_PLAIN = 0.5  # least confidence of a line that is taken for its script alone
_LATIN = frozenset({"LATIN"})
_STRAY = 0.05  # share of other letters in a line that is all Latin: misread signs
_UNSURE = 0.9  # confidence of a figure whose last syllable was read as a sign
_SURE = 0.97  # confidence from which no Hangul is read as ideographs: "구분" is read as "7是" at up to 0.955
_DOUBTFUL = 0.8  # confidence under which a reading needs a second look
_IDEOGRAPHIC = frozenset({"CJK"})
_CHINESE_OR_JAPANESE = frozenset({"CJK", "HIRAGANA", "KATAKANA"})
_MOST_HANJA = 0.7  # share of the Chinese characters that the primary saw in a Korean line which are in its text
_IDEOGRAPHS = 2  # in a line that the Korean engine is not sure of; a single one is Hangul misread, in one of 60 lines
POORLY_READ = 0.82
"""Quality of a page under which its text is not to be relied upon: pages of scripts of which the engine reads Latin
look-alikes (Thai, Hebrew, Armenian, Khmer) have 0.36 to 0.78, print and legible handwriting 0.87 and more."""

SAMPLES = 6
"""Lines read to decide."""

_TALL = 1.8  # height over width of a line that may run vertically
_SURELY_TALL = 2.5  # a single upright character ("1", "l") reaches about 2.5

_NOT_READ = RecognizedText(text="", confidence=0.0)


class ReadingServices(Protocol):
    """What a reader asks of the runtime."""

    async def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find the lines of a page."""
        ...

    async def recognize(self, engine: str, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images with an engine, in microbatches with other pages."""
        ...

    def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run a function that computes on a thread."""
        ...


class ReadPage(NamedTuple):
    """What was read on a page."""

    lines: list[TextLine]
    """In pixels of the upright page, in no particular order; lines where nothing was legible are left out."""
    languages: tuple[str, ...] = ()
    """As asked for, else what the scripts tell: ``ko``, ``ja``, ``zh``, ``und-Latn``, ..."""
    rotation: int = 0
    """Degrees clockwise by which the page must be turned to stand upright."""
    illegible: int = 0
    """Detected lines of writing left out, those not counted that are too short for their height to be surely text."""
    quality: float | None = None
    """Mean over the lines, weighted by length, of confidence x share of the ink that was read, 0-1; None for too few
    lines to tell. Print has over 0.8; under ``POORLY_READ`` the text is not to be relied upon."""
    hanja: int = 0
    """Lines of Korean text in which the primary engine saw Chinese characters, which the Korean engine cannot write."""
    script: str | None = None
    """A script of the page that no engine reads, a key of ``LANGUAGE_OF_SCRIPT``; its lines hold look-alikes."""
    foreign: int = 0
    """Lines in it."""


@dataclass(slots=True, eq=False)
class _Line:
    """A line on its way through the engines."""

    quad: Quad
    image: Pixels
    text: RecognizedText = _NOT_READ
    engine: str = ""
    unread: float = 0.0
    hanja: bool = False
    shares: dict[str, float] | None = None
    """As of :func:`script_shares`, where somebody asked."""


class PageReader:
    """Reads pages after one plan; keeps nothing between pages."""

    def __init__(self, plan: Plan, services: ReadingServices) -> None:
        self._plan = plan
        self._services = services

    async def read(self, page: Pixels) -> ReadPage:
        """Find and read all lines.

        Raises:
            LanguageError: Languages are to be detected, and most of the page is in a script no installed engine reads.
        """
        found = await self._services.detect(page)
        rotation = 0
        if runs_vertically(found):
            rotation = await self._rotation(page, found, (90, 270))
            page, found = await self._turned(page, rotation)
        lines, shares = await self._first_reading(page, found)
        head_down = _head_down(shares) and _reads_below(lines, _UNSURE)
        if not head_down:
            await self._read_others(lines, shares)
        seems_turned = head_down or _reads_below(lines, _DOUBTFUL)
        flip = await self._rotation(page, found, (0, 180)) if seems_turned else 0
        if flip:
            rotation = (rotation + flip) % 360
            page, found = await self._turned(page, flip)
            lines, shares = await self._first_reading(page, found)
        if flip or head_down:
            await self._read_others(lines, shares)
        script, foreign = self._unread_script(lines, shares)
        return await self._services.compute(_finish, lines, self._plan, rotation, script, foreign)

    def _unread_script(self, lines: list[_Line], shares: dict[str, float]) -> tuple[str | None, int]:
        """The script that no engine of the plan reads, and the number of lines in it.

        Raises:
            LanguageError: Languages are to be detected, and most of the page is in such a script.
        """
        illegible = _is_foreign(lines)
        least = _SCRIPT_POSSIBLE if illegible else _SCRIPT_SEEN
        script = next((each for each in _by_share(shares, least) if self._is_unread(each)), None)
        left = sum(line.engine == self._plan.primary or not line.text.text for line in lines)
        if left * 2 < len(lines):  # another engine has read most of it
            script = None
        if script != "HANGUL" and _is_ideographic(lines):  # on its side in vertical lines, it looks like other scripts
            script = None
        # What the detector says of one page in a thousand is wrong; a page that reads well is not given up for it, nor
        # for a line or two, which may be a logo.
        poor = _reads_below(lines, POORLY_READ)
        clear = script is not None and shares[script] >= _SCRIPT_CLEAR and len(lines) >= _ENOUGH_LINES
        sure = script is not None and (poor or clear or script == "VIETNAMESE")
        if self._plan.languages is None and (illegible or (sure and script != "VIETNAMESE")):
            named, remedy = "a script that", "Name its language with --lang; docs/languages.md says what to install."
            if script is not None:
                named, remedy = f"{title_of_script(script)}, which", remedy_for([LANGUAGE_OF_SCRIPT[script]])
            raise LanguageError(f"the page is in {named} no installed engine reads", remedy=remedy)
        if sure:
            return script, len(lines)
        strange = Counter(
            script
            for line in lines
            if _is_long(line)
            and (line.unread > _FOREIGN_LINE or line.text.confidence < _DOUBTFUL)
            and (script := _strange_script(line, self._plan, _SCRIPT_CLEAR)) is not None
            and self._is_unread(script)
        )
        script, count = strange.most_common(1)[0] if strange else (None, 0)
        return (script, count) if count >= _ENOUGH_LINES else (None, 0)

    def _is_unread(self, script: str) -> bool:
        """Whether neither the primary reads a script nor any other engine of the plan."""
        return script not in self._plan.familiar and self._plan.engine_of(script) is None

    async def _turned(self, page: Pixels, degrees: int) -> tuple[Pixels, list[DetectedLine]]:
        page = await self._services.compute(rotate_quarter, page, degrees)
        return page, await self._services.detect(page)

    async def _first_reading(self, page: Pixels, found: list[DetectedLine]) -> tuple[list[_Line], dict[str, float]]:
        """Read all lines with the primary engine, and tell the scripts of a sample by its looks."""
        quads = [reading_quad(line.polygon) for line in found]
        images = await self._services.compute(_cut, page, quads)
        lines = [_Line(quad, image) for quad, image in zip(quads, images, strict=True)]
        await self._read_first(lines)
        sample = [lines[index].image for index in longest(quads)]
        return lines, await self._services.compute(script_shares, sample)

    async def _read_others(self, lines: list[_Line], shares: dict[str, float]) -> None:
        """Read what the primary cannot read with the engines that can, script by script."""
        if self._plan.vietnamese and shares.get("VIETNAMESE", 0.0) >= _SCRIPT_SEEN:
            texts = await self._services.recognize(self._plan.vietnamese, [line.image for line in lines])
            for line, text in zip(lines, texts, strict=True):
                if text.confidence >= _PLAIN:
                    line.text, line.engine, line.unread = text, self._plan.vietnamese, 0.0
            return
        if not self._plan.others:
            return
        of_page = sum(share for script, share in _upright(shares).items() if script not in self._plan.familiar)
        tried: set[str] = set()
        for _ in range(_SCRIPTS_OF_PAGE):
            doubtful = [line for line in lines if of_page >= _SCRIPT_SEEN or _may_hold_more(line)]
            await self._services.compute(_look_at, [line for line in doubtful if line.engine == self._plan.primary])
            foreign = [line for line in doubtful if line.engine == self._plan.primary and self._is_foreign(line)]
            if not foreign:
                return
            sample = [foreign[index] for index in longest([line.quad for line in foreign])]
            language, engine, texts = await self._language_of(sample, tried)
            if language is None:
                return
            tried.add(language)
            scripts = scripts_of_language(language)
            unsure = [
                line
                for line in lines
                if line.engine == self._plan.primary
                and (_may_be_mixed(line) or line.text.confidence < _SURE or _looks(line, scripts))
            ]
            rest = [line for line in unsure if line not in sample]
            texts = [*texts, *await self._services.recognize(engine, [line.image for line in rest])]
            await self._take(sample + rest, texts, engine, scripts)

    def _is_foreign(self, line: _Line) -> bool:
        """Whether a line is in a script that the primary does not read, by the ink it left or by its looks."""
        return line.unread > _FOREIGN_LINE or _strange_script(line, self._plan) is not None

    async def _read_first(self, lines: list[_Line]) -> None:
        """Read lines with the primary engine; with the quicker Latin one where a sample holds nothing else."""
        sample, latin = [lines[index] for index in longest([line.quad for line in lines])], self._plan.latin
        if latin is None or len(lines) < _WORTH_A_SAMPLE:
            return await self._read_with(self._plan.primary, lines)
        await self._read_with(self._plan.primary, sample)
        rest = [line for line in lines if line not in sample]
        if not all(_is_latin(line) for line in sample):
            return await self._read_with(self._plan.primary, rest)
        await self._read_with(latin, rest)
        doubtful = [line for line in rest if _may_hold_more(line)]
        texts = [line.text for line in doubtful]
        await self._read_with(self._plan.primary, doubtful)
        for line, text in zip(doubtful, texts, strict=True):
            line.text = max(text, line.text, key=lambda one: evidence([one]))
        return None

    async def _read_with(self, engine: str, lines: list[_Line]) -> None:
        images = [line.image for line in lines]
        texts = await self._services.recognize(engine, images)
        unread = await self._services.compute(_unread, images, texts)
        for line, text, share in zip(lines, texts, unread, strict=True):
            line.text, line.engine, line.unread = text, engine, share

    async def _language_of(self, sample: list[_Line], tried: set[str]) -> tuple[str | None, str, list[RecognizedText]]:
        """The language in which a sample reads best, its engine, and what it read; None when none reads it."""
        best: tuple[float, str | None, str, list[RecognizedText]] = (0.0, None, "", [])
        for language, engine in self._candidates(_mean_shares(sample), tried):
            texts = await self._services.recognize(engine, [line.image for line in sample])
            scripts = scripts_of_language(language)
            score = sum(text.confidence * script_share(text.text, scripts) for text in texts) / len(texts)
            best = max(best, (score, language, engine, texts), key=lambda one: one[0])
            if score >= _DOUBTFUL:
                break
        # A named language needs no proof: its engine gets every line that the primary cannot read.
        enough = best[0] >= _SURE_LANGUAGE or (self._plan.languages is not None and best[0] > 0)
        return best[1:] if enough else (None, "", [])

    def _candidates(self, shares: dict[str, float], tried: set[str]) -> list[tuple[str, str]]:
        """Languages worth trying on lines that look so, with their engines: those of the likeliest scripts first."""
        untried = [other for other in self._plan.others if other[0] not in tried]
        if self._plan.languages is not None:
            return untried
        likely = _by_share(shares, _SCRIPT_POSSIBLE)
        if not likely:  # nothing to go by
            return untried[:_ENGINES_TRIED]
        ranked = [other for script in likely for other in untried if script in scripts_of_language(other[0])]
        return ranked[:_ENGINES_TRIED]

    async def _take(
        self, lines: list[_Line], texts: list[RecognizedText], engine: str, scripts: frozenset[str]
    ) -> None:
        """Take an engine's reading where it found its script and is surer; the primary reads what stands between."""
        taken: list[tuple[_Line, RecognizedText, list[Stretch]]] = []
        for line, text in zip(lines, texts, strict=True):
            surer = _may_be_mixed(line) or text.confidence > line.text.confidence
            surer = surer or (_looks(line, scripts) and text.confidence >= _PLAIN)
            if surer and script_share(text.text, scripts) > 0:
                parts = stretches(text, scripts)
                if "HANGUL" in scripts:
                    hanja = hanja_stretches(text, line.text)
                    taken_up = {index for part in hanja for index in range(part.start, part.end)}
                    parts = [part for part in parts if taken_up.isdisjoint(range(part.start, part.end))]
                    parts = sorted([*parts, *hanja])
                taken.append((line, text, parts))
        cuts = [stretch.cut(line.image) for line, _, parts in taken for stretch in parts]
        again = iter(await self._services.recognize(self._plan.primary, cuts) if cuts else [])
        for line, text, parts in taken:
            doubtful = "HANGUL" in scripts and text.confidence < _DOUBTFUL and _holds_ideographs(line)
            seen = script_share(line.text.text, _IDEOGRAPHIC) * len(line.text.text)
            line.text, line.engine, line.unread = replace(text, [(part, next(again)) for part in parts]), engine, 0.0
            written = sum(script_of(character) == "CJK" for character in line.text.text)
            line.hanja = doubtful and written < _MOST_HANJA * seen

    async def _rotation(self, page: Pixels, found: list[DetectedLine], candidates: tuple[int, ...]) -> int:
        """The candidate rotation in which a sample of lines reads best, or looks best where no engine reads it."""
        quads = [found[index].polygon for index in longest([line.polygon for line in found])]
        images: dict[int, list[Pixels]] = {}
        looks: dict[int, dict[str, float]] = {}
        for degrees in candidates:
            images[degrees] = await self._services.compute(_cut, page, [turned(quad, degrees) for quad in quads])
            looks[degrees] = await self._services.compute(script_shares, images[degrees])
        upright = {degrees: sum(_upright(shares).values()) for degrees, shares in looks.items()}
        likeliest = max(candidates, key=upright.__getitem__)
        likely = _by_share(_upright(looks[likeliest]), _SCRIPT_POSSIBLE)
        if likely and self._is_unread(likely[0]):
            return likeliest
        others = [engine for _, engine in self._candidates(looks[likeliest], set())] if self._plan.others else []
        samples: dict[int, Sequence[RecognizedText]] = {}
        for degrees in candidates:
            asked = (self._services.recognize(engine, images[degrees]) for engine in [self._plan.primary, *others])
            samples[degrees] = max(await asyncio.gather(*asked), key=evidence)
        return max(candidates, key=lambda degrees: evidence(samples[degrees]))


def _cut(page: Pixels, quads: list[Quad]) -> list[Pixels]:
    return [crop_quad(page, quad) for quad in quads]


def _unread(images: list[Pixels], texts: list[RecognizedText]) -> list[float]:
    return [unread_share(image, text) for image, text in zip(images, texts, strict=True)]


def _look_at(lines: list[_Line]) -> None:
    for line in lines:
        line.shares = script_shares([line.image]) if line.shares is None else line.shares


def _mean_shares(lines: list[_Line]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for line in lines:
        total.update({script: share / len(lines) for script, share in (line.shares or {}).items()})
    return dict(total)


def _upright(shares: dict[str, float]) -> dict[str, float]:
    """The shares of text that stands on its feet."""
    return {script: share for script, share in shares.items() if script[0] != FLIPPED and script != FIGURES}


def _head_down(shares: dict[str, float]) -> bool:
    """Whether most of a sample seems to stand upside down."""
    return sum(share for script, share in shares.items() if script[0] == FLIPPED) >= _HEAD_DOWN


def _by_share(shares: dict[str, float], least: float) -> list[str]:
    """The scripts of which there is enough, the commonest first."""
    upright = _upright(shares)
    return sorted((script for script, share in upright.items() if share >= least), key=lambda each: -upright[each])


def _strange_script(line: _Line, plan: Plan, least: float = _SCRIPT_SEEN) -> str | None:
    """The script that a line seems to be in, where the primary does not read it and its reading is not surely good."""
    if line.engine != plan.primary or line.shares is None:
        return None
    seen = next(iter(_by_share(line.shares, least)), None)
    return seen if seen not in plan.familiar and seen != "VIETNAMESE" else None


def _looks(line: _Line, scripts: frozenset[str]) -> bool:
    """Whether a line seems to be in one of the scripts."""
    return line.shares is not None and any(line.shares.get(script, 0.0) >= _SCRIPT_SEEN for script in scripts)


def _is_latin(line: _Line) -> bool:
    """Whether a line read with all scripts holds Latin letters alone; a stray sign of another is a misreading."""
    letters = sum(script_of(character) is not None for character in line.text.text)
    return not _may_hold_more(line) and letters > 0 and script_share(line.text.text, _LATIN) >= 1 - _STRAY


def _may_hold_more(line: _Line) -> bool:
    """Whether a line on a page that holds another script may hold some of it."""
    return line.unread > _SOME_FOREIGN or line.text.confidence < _DOUBTFUL


def _may_be_mixed(line: _Line) -> bool:
    """Whether a line of a page in another script may end in some of it, as ``30,000원`` does."""
    return line.unread > _TRACE_OF_FOREIGN or line.text.confidence < _UNSURE


def _holds_ideographs(line: _Line) -> bool:
    """Whether the primary engine saw Chinese characters in a line; in one that runs down the page they mean nothing."""
    (left, top), (right, bottom) = line.quad[:2]
    ideographs = sum(script_of(character) == "CJK" for character in line.text.text)
    return ideographs >= _IDEOGRAPHS and abs(right - left) > abs(bottom - top)


def _reads_below(lines: list[_Line], least: float) -> bool:
    """Whether the quality of a text is surely too low."""
    quality = _quality(lines)
    return quality is not None and quality < least


def _quality(lines: list[_Line]) -> float | None:
    """As :attr:`ReadPage.quality`."""
    return _mean(lines, [line.text.confidence * (1 - line.unread) for line in lines])


def _is_foreign(lines: list[_Line]) -> bool:
    """Whether most of the text, by length, is unread."""
    long = [line for line in lines if _is_long(line)]
    return (_mean(long, [line.unread for line in long]) or 0.0) > _FOREIGN_PAGE


def _is_ideographic(lines: list[_Line]) -> bool:
    """Whether what was read is mostly Chinese or Japanese, which nothing but Hangul is mistaken for."""
    return script_share("".join(line.text.text for line in lines), _CHINESE_OR_JAPANESE) > _SCRIPT_SEEN


def _mean(lines: list[_Line], values: list[float]) -> float | None:
    """Mean weighted by the lengths of lines; None for too few of them."""
    lengths = [size_of(line.quad)[0] for line in lines]
    return float(np.average(values, weights=lengths)) if len(lines) >= _ENOUGH_LINES and any(lengths) else None


def _is_long(line: _Line) -> bool:
    """Whether it has the shape of a line of text; photographs give scraps, and blobs as large as themselves."""
    length, height = size_of(line.quad)
    return length > _LONG * height


def _finish(lines: list[_Line], plan: Plan, rotation: int, script: str | None, foreign: int) -> ReadPage:
    """Turn lines into records, with the boxes of their words."""
    legible = [line for line in lines if line.text.text]
    languages = plan.languages or tags_of_text("".join(line.text.text for line in legible))
    return ReadPage(
        lines=[_record(line) for line in legible],
        languages=languages,
        rotation=rotation,
        illegible=sum(_is_long(line) and not line.text.text and holds_writing(line.image) for line in lines),
        quality=_quality(lines),
        hanja=sum(line.hanja for line in lines),
        script=script,
        foreign=foreign,
    )


def _record(line: _Line) -> TextLine:
    corners = np.asarray(line.quad)
    edges = np.abs(corners - np.roll(corners, 1, axis=0))
    return TextLine(
        text=line.text.text,
        box=_box(line.quad, 0.0, 1.0),
        polygon=line.quad if (edges > 1).all(axis=1).any() else None,
        confidence=round(line.text.confidence, 4),
        engine=line.engine.split(":")[0],
        words=tuple(Word(text, _box(line.quad, start, end)) for text, start, end in line.text.word_spans),
    )


def _box(quad: Quad, start: float, end: float) -> Box:
    """The box, to a tenth of a pixel, of a line from one fraction of its width to another."""
    a, b, c, d = np.asarray(quad)
    shares = np.array([[start], [end]])
    points = np.concatenate([a + (b - a) * shares, d + (c - d) * shares])
    return as_boxes(np.round([[*points.min(axis=0), *points.max(axis=0)]], 1))[0]


def size_of(quad: Quad) -> tuple[float, float]:
    """Length of the top edge and of the left edge, in pixels."""
    return math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])


def runs_vertically(lines: Sequence[DetectedLine]) -> bool:
    """Whether most of the text, by length, stands on its side."""
    flat = tall = 0.0
    for line in lines:
        width, height = size_of(line.polygon)
        if width > _TALL * height:
            flat += width
        elif height > _TALL * width:
            tall += height
    return tall > 2 * flat


def reading_quad(quad: Quad) -> Quad:
    """Start a line that stands on its side at its bottom left: most such text (axis labels, margins) runs upwards."""
    width, height = size_of(quad)
    return (quad[3], quad[0], quad[1], quad[2]) if height > _SURELY_TALL * width else quad


def turned(quad: Quad, degrees: int) -> Quad:
    """The corners named as they lie once the page is turned clockwise by a multiple of 90 degrees."""
    steps = degrees // 90 % 4
    a, b, c, d = quad[-steps:] + quad[:-steps] if steps else quad
    return (a, b, c, d)


def longest(quads: Sequence[Quad], count: int = SAMPLES) -> list[int]:
    """Indices of the longest lines, the middle half of them skipped over evenly when there are many."""
    order = sorted(range(len(quads)), key=lambda index: -max(size_of(quads[index])))
    pool = order[: 4 * count]
    step = max(1, len(pool) // count)
    return pool[::step][:count]


def evidence(texts: Sequence[RecognizedText]) -> float:
    """How much legible text a sample holds: letters and digits weighted by the square of their line's confidence."""
    return sum(
        text.confidence**2 * sum(character.isdigit() or script_of(character) is not None for character in text.text)
        for text in texts
    )
