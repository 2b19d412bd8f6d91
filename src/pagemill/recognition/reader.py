"""Reading a page: find its lines, turn it upright, read them, find what the first engine cannot read, ask others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from difflib import SequenceMatcher
from statistics import median
from typing import NamedTuple, ParamSpec, Protocol, TypeVar

import numpy as np

from pagemill.document.geometry import Box, area, as_array, as_boxes, shared_areas
from pagemill.document.page import TextLine, Word
from pagemill.errors import LanguageError
from pagemill.imaging.leaders import without_leaders
from pagemill.imaging.photograph import line_evenly_lit
from pagemill.imaging.transforms import crop_along, crop_quad, resize, rotate_quarter
from pagemill.imaging.types import Pixels
from pagemill.recognition.base import DetectedLine, Quad, RecognizedText
from pagemill.recognition.calibration import expected_right
from pagemill.recognition.gutters import cut_at_gutters
from pagemill.recognition.handwriting import are_handwritten, shapes_of
from pagemill.recognition.ink import holds_writing, unread_share
from pagemill.recognition.languages import (
    LANGUAGE_OF_SCRIPT,
    Plan,
    remedy_for,
    script_of,
    script_share,
    scripts_of_language,
    tags_of_text,
    title_of_script,
)
from pagemill.recognition.merge import Stretch, hanja_stretches, replace, stretches
from pagemill.recognition.scripts import FIGURES, FLIPPED, script_shares
from pagemill.recognition.show_through import is_paler, without_back
from pagemill.recognition.stamps import inks_of, without_frame, without_stamps
from pagemill.recognition.verdict import (
    DOUBTFUL,
    ENOUGH_LINES,
    FOREIGN_LINE,
    POORLY_READ,
    SCRIPT_SEEN,
    UNSURE,
    Line,
    holds_ideographs,
    is_head_down,
    is_ideographic,
    is_latin,
    is_long,
    is_mostly_unread,
    is_poor_snippet,
    is_sure,
    is_unsure,
    looks_like,
    may_be_mixed,
    may_hold_more,
    mean_shares,
    quality_of,
    reads_below,
    reads_certainly,
    scripts_by_share,
    size_of,
    strange_script,
    upright_shares,
)
from pagemill.recognition.vertical import stood_up

P = ParamSpec("P")
R = TypeVar("R")
_WORTH_A_SAMPLE = 12  # lines from which it pays to find out first that a page is all Latin
_SURE_LANGUAGE = 0.6  # mean over sample lines of confidence x share of letters in the language's script
_SURE_OF_ANY_LOOKS = {"ko": _SURE_LANGUAGE}  # where looks may mislead: Thai data reads Khmer or Lao with up to 0.76
_LOOKS_SURE = 0.7  # share of a script that does not mislead: 0.76 and more of clear print, up to 0.59 of blurred Hangul
_SCRIPT_CLEAR = 0.8  # the same for a sample, where the primary's text may look good
_SCRIPT_POSSIBLE = 0.15  # share from which an engine for a script is tried
_ENGINES_TRIED = 3  # on a sample: the languages of one script among them
_SCRIPTS_OF_PAGE = 3  # in scripts that the primary does not read
_PLAIN = 0.5  # least confidence of a line that is taken for its script alone
_SURE = 0.97  # confidence from which no Hangul is read as ideographs: "구분" is read as "7是" at up to 0.955
_CROSSED = 0.99  # confidence from which no stamp crosses a line: "due: 1,2" under one was read as "dueA1" at 0.973
_PICTURE = 8  # usual heights of lines from which a "line" that reads badly is a picture
_CLEAR = 0.95  # confidence below which a line of a photograph is read again, wider
_WIDENED, _WIDENED_IDEOGRAPHS = 1.5, 1.25  # ideographs are square: wider, Hangul passes for some
_TURNED = 0.5  # letters a line by which a page reads better head down; of a blurred one noise was 0.25, text has 10
_SHORT = 4  # characters that may read well in a mirror by chance
_SYMMETRICAL = 0.65  # likeness of both readings: "XVIII MMXIX" has 0.7 and more, a line from the back up to 0.54
_LEAST_OF_STAMP = 3  # letters and digits: fewer are its frame
_IDEOGRAPHIC = frozenset({"CJK"})
_OF_FEW_SHAPES = frozenset({"CJK", "HIRAGANA", "KATAKANA", "ARABIC", "DEVANAGARI", "BENGALI", "GURMUKHI"})
"""Scripts whose lines repeat few shapes of ink: ideographs, and letters that are joined to words."""
_HALF = 0.5
_MOST_HANJA = 0.7  # share of the Chinese characters that the primary saw in a Korean line which are in its text

SAMPLES = 6
"""Lines read to decide."""

_LONG_INSIDE = 0.2  # share of a line, level before its page was turned, in long lines of the turned page: not measured
_FOUND_ALREADY = 0.5  # share of a line, found before its page was turned, in lines of the turned page
_LEVEL = 1.2  # width over height of a figure or of two characters in a level line
_TALL = 1.8  # height over width of a line that may run vertically
_SURELY_TALL = 2.5  # a single upright character ("1", "l") reaches about 2.5


class ReadingServices(Protocol):
    """What a reader asks of the runtime."""

    async def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find the lines of a page."""

    async def recognize(self, engine: str, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images with an engine, in microbatches with other pages."""

    def compute(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Run a function that computes on a thread."""


class ReadPage(NamedTuple):
    """What was read on a page."""

    lines: list[TextLine]
    """In pixels of the upright page, in no particular order; lines where nothing was legible are left out."""
    languages: tuple[str, ...] = ()
    """As requested, otherwise by the scripts: ``ko``, ``ja``, ``zh``, ``und-Latn``, ..."""
    rotation: int = 0
    """Degrees clockwise by which the page must be turned to stand upright."""
    illegible: int = 0
    """Detected lines of writing left out, those not counted that are too short for their height to be surely text."""
    quality: float | None = None
    """Mean over the lines, weighted by length, of confidence x share of the ink that was read, 0-1; None for too few
    lines. Print has over 0.8; under ``POORLY_READ`` the text is not to be relied upon."""
    hanja: int = 0
    """Lines of Korean text in which the primary engine saw Chinese characters, which the Korean engine cannot write."""
    script: str | None = None
    """A script of the page that no engine of the plan reads, a key of ``LANGUAGE_OF_SCRIPT``; its lines hold
    look-alikes."""
    foreign: int = 0
    """Lines in it."""
    named: bool = False
    """Whether the user named the languages: an installed engine may read the script if its language is named, too."""
    signs: int = 0
    """Characters of lines that run down the page of which only the ink was found."""
    stamps: int = 0
    """Lines of stamps of which no words were read: a frame, a seal, handwriting in colour."""
    mirrored: int = 0
    """Lines left out that shine through from the back of the sheet."""
    handwritten: tuple[Box, ...] = ()
    """Lines written by hand; what was read of them may look like another script."""


class PageReader:
    """Reads pages after one plan; keeps nothing between pages."""

    def __init__(self, plan: Plan, services: ReadingServices) -> None:
        self._plan = plan
        self._services = services

    async def read(self, page: Pixels, *, bends: bool = False) -> ReadPage:
        """Find and read all lines.

        Args:
            page: Its pixels.
            bends: Whether its lines may be bent, and its letters blurred, as those of photographs are.

        Raises:
            LanguageError: Languages are to be detected, and most of the page is in a script no installed engine reads.
        """
        page, stamps = await self._services.compute(without_stamps, page)
        page = await self._services.compute(without_leaders, page)
        found = await self._services.detect(page)
        rotation = 0
        before: list[DetectedLine] = []
        # Before anything is read: engines read level lines only.
        if runs_vertically(found):
            before = found
            rotation = await self._rotation(page, found, (90, 270))
            page, found = await self._turned(page, rotation)
            found = await self._with_earlier(page, found, before, rotation)
        lines, shares = await self._first_reading(page, found, bends)
        head_down = is_head_down(shares) and (reads_below(lines, UNSURE) or is_poor_snippet(lines))
        # Upside down, no reading is evidence for a script: other engines are asked once the text stands upright.
        if not head_down:
            await self._read_others(lines, shares)
        seems_turned = head_down or reads_below(lines, DOUBTFUL)
        flip = await self._rotation(page, found, (0, 180)) if seems_turned else 0
        if flip:
            rotation = (rotation + flip) % 360
            page, found = await self._turned(page, flip)
            found = await self._with_earlier(page, found, before, rotation)
            lines, shares = await self._first_reading(page, found, bends)
        if flip or head_down:
            await self._read_others(lines, shares)
        await self._read_head_down(lines)
        mirrored = await self._mirrored(lines)
        lines = [line for line in lines if line not in mirrored]
        back, front = ([line.image for line in each] for each in (mirrored, filter(is_sure, lines)))
        if len(back) >= ENOUGH_LINES and is_paler(back, front):  # it crosses other lines, too
            page = await self._services.compute(without_back, page, back, front)
            found = await self._with_earlier(page, await self._services.detect(page), before, rotation)
            lines, shares = await self._first_reading(page, found, bends)
            await self._read_others(lines, shares)
            await self._read_head_down(lines)
        for line in _pictures(lines):
            line.text = RecognizedText(text="", confidence=0.0)
        of_stamps = await self._read_stamps(rotate_quarter(stamps, rotation)) if stamps is not None else []
        words = list(filter(_holds_words, of_stamps))
        lines += words
        signs = await self._read_signs(lines) if rotation % 180 else 0
        handwritten = await self._services.compute(_handwritten, lines)
        unsure = list(filter(is_unsure, lines))
        explains = handwritten and 2 * sum(line in handwritten for line in unsure) >= len(unsure)
        script, foreign = (None, 0) if explains else self._unread_script(lines, shares)
        read = await self._services.compute(_finish, lines, self._plan, rotation)
        by_hand = tuple(_box(line.quad, 0.0, 1.0) for line in handwritten)
        read = read._replace(script=script, foreign=foreign, handwritten=by_hand)
        unread = read.stamps + len(of_stamps) - len(words)
        return read._replace(rotation=rotation, signs=signs, mirrored=len(mirrored), stamps=unread)

    async def _with_earlier(
        self, page: Pixels, found: list[DetectedLine], before: list[DetectedLine], degrees: int
    ) -> list[DetectedLine]:
        """The lines of a turned page, with those that were found before it was turned alone; none if it was not."""
        level = [line for line in before if _is_flat(line, _LEVEL)]
        tall = [line for line in before if not _is_flat(line, _LEVEL)]
        found = await self._with_tall(page, found, tall, degrees) if tall else found
        return await self._with_level(page, found, level, degrees) if level else found

    async def _with_tall(
        self, page: Pixels, found: list[DetectedLine], tall: list[DetectedLine], degrees: int
    ) -> list[DetectedLine]:
        """The lines of a turned page, with those that were found before it was turned alone, and read well.

        Large letters that lie on their side are found in pieces or not at all: headlines that run down the page.
        """
        there = [
            DetectedLine(polygon=_along(_lain(line.polygon, degrees, page), degrees), score=line.score) for line in tall
        ]
        boxes = as_array(line.box for line in found)
        shared = shared_areas(as_array(line.box for line in there), boxes)
        there = [line for line, part in zip(there, shared, strict=True) if part < _FOUND_ALREADY * area(line.box)]
        images = await self._services.compute(_cut, page, [line.polygon for line in there])
        texts = await self._services.recognize(self._plan.primary, images) if images else []
        there = [line for line, text in zip(there, texts, strict=True) if text.confidence >= UNSURE]
        inside = shared_areas(boxes, as_array(line.box for line in there))
        return [line for line, part in zip(found, inside, strict=True) if 2 * part <= area(line.box)] + there

    async def _with_level(
        self, page: Pixels, found: list[DetectedLine], level: list[DetectedLine], degrees: int
    ) -> list[DetectedLine]:
        """The lines of a turned page, with those that ran level before: headlines and tables across vertical text.

        They are detected in pieces once the page is turned, and what was found across its lines is no text: only those
        that hold no long line, and that read well, are taken.
        """
        there = [DetectedLine(polygon=_lain(line.polygon, degrees, page), score=line.score) for line in level]
        long = as_array(line.box for line in found if _is_flat(line))
        there = [
            line
            for line, shared in zip(there, shared_areas(as_array(line.box for line in there), long), strict=True)
            if shared < _LONG_INSIDE * area(line.box)
        ]
        images = await self._services.compute(_cut, page, [line.polygon for line in there])
        texts = await self._services.recognize(self._plan.primary, images) if images else []
        there = [line for line, text in zip(there, texts, strict=True) if text.confidence >= UNSURE]
        inside = shared_areas(as_array(line.box for line in found), as_array(line.box for line in there))
        return [line for line, shared in zip(found, inside, strict=True) if 2 * shared <= area(line.box)] + there

    async def _read_head_down(self, lines: list[Line]) -> None:
        """Read doubtful lines that look upside down turned: answers and folded sheets on a page that reads well."""
        doubtful = list(filter(is_unsure, lines))
        looks = await self._services.compute(lambda: [script_shares([line.image]) for line in doubtful])
        flipped = [line for line, shares in zip(doubtful, looks, strict=True) if is_head_down(shares)]
        upright = [Line(turned(line.quad, 180), rotate_quarter(line.image, 180)) for line in flipped]
        for engine in dict.fromkeys([self._plan.primary, *(line.engine for line in lines)]):
            left = [pair for pair in zip(flipped, upright, strict=True) if is_unsure(pair[0])]
            await self._read_with(engine, [line for _, line in left])
            for line, other in left:
                if is_sure(other) and not is_unsure(other):
                    line.take(other)

    async def _mirrored(self, lines: list[Line]) -> list[Line]:
        """The lines that read well in a mirror alone, on a page whose text reads well without."""
        doubtful = [line for line in lines if is_long(line) and line.text.confidence < DOUBTFUL]
        sure = list(filter(is_sure, lines))
        if len(doubtful) > 2 * len(sure):  # handwriting, another script, a page in a mirror; or a back all over it
            sample = [doubtful[index] for index in longest([line.quad for line in doubtful])]
            back = await self._in_mirror(sample) if sure else []
            if not is_paler([line.image for line in back], [line.image for line in sure]):
                return []
        return await self._in_mirror(doubtful)

    async def _in_mirror(self, lines: list[Line]) -> list[Line]:
        """Those of some lines that read well in a mirror alone."""
        found: list[Line] = []
        for engine in {line.engine: None for line in lines}:
            own = [line for line in lines if line.engine == engine]
            texts = await self._services.recognize(engine, [np.ascontiguousarray(line.image[:, ::-1]) for line in own])
            found += (line for line, text in zip(own, texts, strict=True) if reads_in_mirror_alone(line.text, text))
        return found

    async def _read_signs(self, lines: list[Line]) -> int:
        """Add the signs that the primary leaves out in lines that run down the page; how many are still missing."""
        own = [line for line in lines if line.engine == self._plan.primary]
        upright = await self._services.compute(lambda: [stood_up(line.image, line.text) for line in own])
        doubtful = [(line, found) for line, found in zip(own, upright, strict=True) if found is not None]
        texts = await self._services.recognize(self._plan.primary, [found.image for _, found in doubtful])
        lost = 0
        for (line, found), text in zip(doubtful, texts, strict=True):
            line.text, unread = found.completed(text)
            lost += unread
        return lost

    def _unread_script(self, lines: list[Line], shares: dict[str, float]) -> tuple[str | None, int]:
        """The script that no engine of the plan reads, and the number of lines in it.

        Raises:
            LanguageError: Languages are to be detected, and most of the page is in such a script.
        """
        illegible = is_mostly_unread(lines)
        least = _SCRIPT_POSSIBLE if illegible else SCRIPT_SEEN
        script = next((each for each in scripts_by_share(shares, least) if self._is_unread(each)), None)
        left = sum(line.engine == self._plan.primary or not line.text.text for line in lines)
        if left * 2 < len(lines):  # another engine has read most of it
            script = None
        if script != "HANGUL" and is_ideographic(line.text for line in lines):
            script = None
        # The detector is wrong about one page in a thousand; a page that reads well is not given up for it, nor
        # for a line or two, which may be a logo.
        poor = reads_below(lines, POORLY_READ)
        clear = script is not None and shares[script] >= _SCRIPT_CLEAR and len(lines) >= ENOUGH_LINES
        sure = script is not None and (poor or clear or script == "VIETNAMESE")
        if self._plan.languages is None and (illegible or (sure and script != "VIETNAMESE")):
            named, remedy = "a script that", "Pass its language with --lang; docs/languages.md lists what to install."
            if script is not None:
                named, remedy = f"{title_of_script(script)}, which", remedy_for([LANGUAGE_OF_SCRIPT[script]])
            raise LanguageError(f"the page is in {named} no installed engine reads", remedy=remedy)
        if sure:
            return script, len(lines)
        strange = Counter(
            script
            for line in lines
            if is_unsure(line)
            and (script := strange_script(line, self._plan, _SCRIPT_CLEAR)) is not None
            and self._is_unread(script)
        )
        script, count = strange.most_common(1)[0] if strange else (None, 0)
        return (script, count) if count >= ENOUGH_LINES else (None, 0)

    def _is_unread(self, script: str) -> bool:
        """Whether neither the primary reads a script nor any other engine of the plan."""
        return script not in self._plan.familiar and self._plan.engine_of(script) is None

    async def _turned(self, page: Pixels, degrees: int) -> tuple[Pixels, list[DetectedLine]]:
        page = await self._services.compute(rotate_quarter, page, degrees)
        return page, await self._services.detect(page)

    async def _first_reading(
        self, page: Pixels, found: list[DetectedLine], bends: bool
    ) -> tuple[list[Line], dict[str, float]]:
        """Read all lines with the primary engine, and detect the scripts of a sample by its looks."""
        found = await self._services.compute(cut_at_gutters, page, found, bends=bends)
        quads = [reading_quad(line.polygon) for line in found]
        images = await self._services.compute(_cut, page, quads)
        if bends:
            images = await self._services.compute(_straightened, page, found, images)
            images = await self._services.compute(_evenly_lit, images)
        lines = [Line(quad, image) for quad, image in zip(quads, images, strict=True)]
        await self._read_first(lines)
        if bends:
            await self._read_blurred(lines)
        lines += await self._read_inks(lines)
        sample = [lines[index].image for index in longest(quads)]
        return lines, await self._services.compute(script_shares, sample)

    async def _read_blurred(self, lines: list[Line]) -> None:
        """Read doubtful lines a second time, wider: blurred letters need more columns. The surer reading wins.

        Ideographs in the wide image of a line without are letters that were drawn out.
        """
        doubtful = [line for line in lines if is_long(line) and line.text.confidence < _CLEAR]
        images = await self._services.compute(lambda: [_widened(line) for line in doubtful])
        for engine in {line.engine for line in doubtful}:
            own = [(line, image) for line, image in zip(doubtful, images, strict=True) if line.engine == engine]
            texts = await self._services.recognize(engine, [image for _, image in own])
            unread = await self._services.compute(_unread, [image for _, image in own], texts)
            for (line, _), text, share in zip(own, texts, unread, strict=True):
                drawn_out = _holds_ideographs(text) and not _holds_ideographs(line.text)
                if text.confidence > line.text.confidence and not drawn_out:
                    line.text, line.unread = text, share

    async def _read_stamps(self, sheet: Pixels) -> list[Line]:
        """The lines of stamps that were taken off a page."""
        found = await self._services.detect(sheet)
        lines = [Line(line.polygon, crop_quad(sheet, line.polygon)) for line in found]
        await self._read_with(self._plan.primary, lines)
        return lines

    async def _read_inks(self, lines: list[Line]) -> list[Line]:
        """Read what a stamp crosses without the stamp; the lines of the stamps themselves."""
        pictures = _pictures(lines)
        doubtful = [line for line in lines if line.text.confidence < _CROSSED and line not in pictures]
        apart = await self._services.compute(lambda: [inks_of(line.image) for line in doubtful])
        crossed = [(line, inks) for line, inks in zip(doubtful, apart, strict=True) if inks is not None]
        texts, stamps = (
            [Line(inks[ink].quad_in(line.quad), inks[ink].image) for line, inks in crossed] for ink in (0, 1)
        )
        found = list[Line]()
        if crossed:
            await self._read_with(self._plan.primary, texts)
            await self._read_with(self._plan.primary, stamps)
        for (line, _), dark, stamp in zip(crossed, texts, stamps, strict=True):
            # What the primary cannot read either way is left to other engines, which read the dark ink, too.
            if dark.text.confidence < line.text.confidence and line.text.confidence >= DOUBTFUL:
                continue
            # A word in colour above a black rule is no stamp: the line is shorter without it.
            if line.text.confidence >= _SURE and len(dark.text.text) < len(line.text.text):
                continue
            if _holds_words(stamp):
                found.append(stamp)
            else:
                line.has_unread_stamp = True
            line.take(dark)
        return found

    async def _read_others(self, lines: list[Line], shares: dict[str, float]) -> None:
        """Read what the primary cannot read with the engines that can, script by script."""
        if self._plan.vietnamese and shares.get("VIETNAMESE", 0.0) >= SCRIPT_SEEN:
            texts = await self._services.recognize(self._plan.vietnamese, [line.image for line in lines])
            for line, text in zip(lines, texts, strict=True):
                if text.confidence >= _PLAIN:
                    line.text, line.engine, line.unread = text, self._plan.vietnamese, 0.0
            return
        if not self._plan.others:
            return
        # Where the sample shows no other script, only lines with ink left unread are looked at: the look costs time.
        of_page = sum(share for script, share in upright_shares(shares).items() if script not in self._plan.familiar)
        tried: set[str] = set()
        for _ in range(_SCRIPTS_OF_PAGE):
            doubtful = [line for line in lines if of_page >= SCRIPT_SEEN or may_hold_more(line)]
            await self._services.compute(_look_at, [line for line in doubtful if line.engine == self._plan.primary])
            foreign = [line for line in doubtful if line.engine == self._plan.primary and self._is_foreign(line)]
            # A page in another script has lines that the primary reads badly; a lone word may look like anything.
            if all(map(reads_certainly, foreign)):
                return
            sample = [foreign[index] for index in longest([line.quad for line in foreign])]
            language, engine, texts = await self._language_of(sample, tried)
            if language is None and is_mostly_unread(lines) and not self._looks_unread(mean_shares(sample)):
                # The page fails otherwise: blurred letters look like those of any script, but are read in one.
                language, engine, texts = await self._language_of(sample, tried, of_any_looks=True)
            if language is None:
                return
            tried.add(language)
            scripts = scripts_of_language(language)
            unsure = [
                line
                for line in lines
                if line.engine == self._plan.primary
                and (may_be_mixed(line) or line.text.confidence < _SURE or looks_like(line, scripts))
            ]
            # The sample was read to find the language; only the other lines are read now.
            rest = [line for line in unsure if line not in sample]
            texts = [*texts, *await self._services.recognize(engine, [line.image for line in rest])]
            await self._use_better(sample + rest, texts, engine, scripts)

    def _is_foreign(self, line: Line) -> bool:
        """Whether a line is in a script that the primary does not read, by the ink it left or by its looks."""
        return line.unread > FOREIGN_LINE or strange_script(line, self._plan) is not None

    async def _read_first(self, lines: list[Line]) -> None:
        """Read lines with the primary engine; with the quicker Latin one where a sample holds nothing else."""
        sample, latin = [lines[index] for index in longest([line.quad for line in lines])], self._plan.latin
        if latin is None or len(lines) < _WORTH_A_SAMPLE:
            return await self._read_with(self._plan.primary, lines)
        await self._read_with(self._plan.primary, sample)
        rest = [line for line in lines if line not in sample]
        if not all(is_latin(line) for line in sample):
            return await self._read_with(self._plan.primary, rest)
        await self._read_with(latin, rest)
        doubtful = [line for line in rest if may_hold_more(line)]
        texts = [line.text for line in doubtful]
        await self._read_with(self._plan.primary, doubtful)
        # The Latin engine may have been right: a line of signs reads badly with both.
        for line, text in zip(doubtful, texts, strict=True):
            line.text = max(text, line.text, key=lambda one: evidence([one]))
        return None

    async def _read_with(self, engine: str, lines: list[Line]) -> None:
        images = [line.image for line in lines]
        texts = await self._services.recognize(engine, images)
        unread = await self._services.compute(_unread, images, texts)
        for line, text, share in zip(lines, texts, unread, strict=True):
            line.text, line.engine, line.unread = text, engine, share

    async def _language_of(
        self, sample: list[Line], tried: set[str], *, of_any_looks: bool = False
    ) -> tuple[str | None, str, list[RecognizedText]]:
        """The language in which a sample reads best, its engine, and what it read; None when none reads it."""
        best: tuple[float, str | None, str, list[RecognizedText]] = (0.0, None, "", [])
        shares = mean_shares(sample)
        candidates = self._candidates(shares, tried)
        if of_any_looks:
            candidates = sorted(
                (other for other in self._plan.others if other not in candidates and other[0] not in tried),
                key=lambda other: -sum(shares.get(script, 0.0) for script in scripts_of_language(other[0])),
            )
        for language, engine in candidates:
            texts = await self._services.recognize(engine, [line.image for line in sample])
            scripts = scripts_of_language(language)
            each = sorted((text.confidence * script_share(text.text, scripts) for text in texts), reverse=True)
            # Of a page that looks like nothing some lines may be too blurred for any engine.
            counted = each[: (len(each) + 1) // 2] if of_any_looks else each
            score = sum(counted) / len(counted)
            if of_any_looks and score < _SURE_OF_ANY_LOOKS.get(language, DOUBTFUL):
                continue
            best = max(best, (score, language, engine, texts), key=lambda one: one[0])
            # Good enough: each further engine would be loaded only to lose.
            if score >= DOUBTFUL:
                break
        # A named language needs no proof: its engine gets every line that the primary cannot read.
        enough = best[0] >= _SURE_LANGUAGE or (self._plan.languages is not None and best[0] > 0)
        return best[1:] if enough else (None, "", [])

    def _looks_unread(self, shares: dict[str, float]) -> bool:
        """Whether lines surely look like a script that no engine of the plan reads, whichever way up."""
        whole: dict[str, float] = {}
        for script, share in shares.items():
            name = script.removeprefix(FLIPPED)
            whole[name] = whole.get(name, 0.0) + share
        sure = {name for name, share in whole.items() if share >= _LOOKS_SURE}
        return any(self._is_unread(name) for name in sure - {FIGURES})

    def _candidates(self, shares: dict[str, float], tried: set[str]) -> list[tuple[str, str]]:
        """Languages worth trying on lines that look so, with their engines: those of the likeliest scripts first."""
        untried = [other for other in self._plan.others if other[0] not in tried]
        if self._plan.languages is not None:
            return untried
        likely = scripts_by_share(shares, _SCRIPT_POSSIBLE)
        if not likely:  # no evidence for any script
            return untried[:_ENGINES_TRIED]
        ranked = [other for script in likely for other in untried if script in scripts_of_language(other[0])]
        return ranked[:_ENGINES_TRIED]

    async def _use_better(
        self, lines: list[Line], texts: list[RecognizedText], engine: str, scripts: frozenset[str]
    ) -> None:
        """Take an engine's reading where it found its script and is surer; the primary reads what stands between."""
        taken: list[tuple[Line, RecognizedText, list[Stretch]]] = []
        for line, text in zip(lines, texts, strict=True):
            surer = may_be_mixed(line) or text.confidence > line.text.confidence
            surer = surer or (looks_like(line, scripts) and text.confidence >= _PLAIN)
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
            doubtful = "HANGUL" in scripts and text.confidence < DOUBTFUL and holds_ideographs(line)
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
        upright = {degrees: sum(upright_shares(shares).values()) for degrees, shares in looks.items()}
        likeliest = max(candidates, key=upright.__getitem__)
        likely = scripts_by_share(upright_shares(looks[likeliest]), _SCRIPT_POSSIBLE)
        others = [engine for _, engine in self._candidates(looks[likeliest], set())] if self._plan.others else []
        samples: dict[int, Sequence[RecognizedText]] = {}
        for degrees in candidates:
            asked = (self._services.recognize(engine, images[degrees]) for engine in [self._plan.primary, *others])
            samples[degrees] = max(await asyncio.gather(*asked), key=evidence)
        found_in = {degrees: evidence(samples[degrees]) for degrees in candidates}
        legible = max(candidates, key=found_in.__getitem__)
        if legible == 180 and found_in[180] - found_in[0] < _TURNED * len(quads):
            legible = 0
        sure = [text for text in samples[legible] if text.confidence >= DOUBTFUL]
        is_chinese = likely[:1] != ["HANGUL"] and 2 * len(sure) > len(quads) and is_ideographic(sure)
        if not likely:
            return legible
        unread = not found_in[legible] or (self._is_unread(likely[0]) and not is_chinese)
        return likeliest if unread else legible


def _cut(page: Pixels, quads: list[Quad]) -> list[Pixels]:
    return [crop_quad(page, quad) for quad in quads]


def _straightened(page: Pixels, found: Sequence[DetectedLine], images: Sequence[Pixels]) -> list[Pixels]:
    """The images of lines, cut along their middle where it is known, without what stands above and below."""
    return [
        crop_along(page, line.middle, line.box[0], line.box[2], line.height) if line.middle else image
        for line, image in zip(found, images, strict=True)
    ]


def _evenly_lit(images: Sequence[Pixels]) -> list[Pixels]:
    return [line_evenly_lit(image) for image in images]


def _widened(line: Line) -> Pixels:
    height, width = line.image.shape[:2]
    factor = _WIDENED_IDEOGRAPHS if _holds_ideographs(line.text) else _WIDENED
    return resize(line.image, round(factor * width), height)


def _holds_ideographs(text: RecognizedText) -> bool:
    return script_share(text.text, _IDEOGRAPHIC) > 0


def _unread(images: list[Pixels], texts: list[RecognizedText]) -> list[float]:
    return [unread_share(image, text) for image, text in zip(images, texts, strict=True)]


def _pictures(lines: list[Line]) -> list[Line]:
    """Those lines that are a picture: far higher than the others, and not surely read."""
    heights = [size_of(line.quad)[1] for line in lines]
    least = _PICTURE * median(heights) if heights else 0.0
    return [line for line, height in zip(lines, heights, strict=True) if height >= least and not is_sure(line)]


def _holds_words(stamp: Line) -> bool:
    """Whether words were read on a stamp; its frame is left out of them."""
    is_read = is_sure(stamp) and sum(map(str.isalnum, stamp.text.text)) >= _LEAST_OF_STAMP
    stamp.text = without_frame(stamp.text) if is_read else stamp.text
    return is_read


def _look_at(lines: list[Line]) -> None:
    for line in lines:
        line.shares = script_shares([line.image]) if line.shares is None else line.shares


def _handwritten(lines: list[Line]) -> list[Line]:
    """The lines that are written by hand."""
    judged = sorted((line for line in lines if line.text.confidence < _SURE), key=lambda line: line.text.confidence)
    shapes = shapes_of([line.image for line in judged], [line.image for line in lines if line not in judged])
    by_hand = are_handwritten(shapes, [script_share(line.text.text, _OF_FEW_SHAPES) > _HALF for line in judged])
    return [line for line, is_hand in zip(judged, by_hand, strict=True) if is_hand]


def _finish(lines: list[Line], plan: Plan, rotation: int) -> ReadPage:
    """Turn lines into records, with the boxes of their words; on a page that was turned those across tell it."""
    legible = [line for line in lines if line.text.text]
    languages = plan.languages or tags_of_text("".join(line.text.text for line in legible))
    return ReadPage(
        lines=[_record(line, across=rotation % 180 > 0 and _runs_across(line.quad)) for line in legible],
        languages=languages,
        illegible=sum(is_long(line) and not line.text.text and holds_writing(line.image) for line in lines),
        quality=quality_of(lines),
        hanja=sum(line.hanja for line in lines),
        stamps=sum(line.has_unread_stamp for line in lines),
        named=plan.languages is not None,
    )


def _runs_across(quad: Quad) -> bool:
    (x1, y1), (x2, y2) = quad[:2]
    return abs(y2 - y1) > abs(x2 - x1)


def _record(line: Line, *, across: bool) -> TextLine:
    corners = np.asarray(line.quad)
    edges = np.abs(corners - np.roll(corners, 1, axis=0))
    backwards = corners[1, 0] < corners[0, 0]
    engine = line.engine.split(":")[0]
    return TextLine(
        text=line.text.text,
        box=_box(line.quad, 0.0, 1.0),
        polygon=line.quad if across or backwards or (edges > 1).all(axis=1).any() else None,
        confidence=expected_right(engine, line.text.confidence * (1 - line.unread)),
        engine=engine,
        words=tuple(Word(text, _box(line.quad, start, end)) for text, start, end in line.text.word_spans),
    )


def _box(quad: Quad, start: float, end: float) -> Box:
    """The box, to a tenth of a pixel, of a line from one fraction of its width to another."""
    a, b, c, d = np.asarray(quad)
    shares = np.array([[start], [end]])
    points = np.concatenate([a + (b - a) * shares, d + (c - d) * shares])
    return as_boxes(np.round([[*points.min(axis=0), *points.max(axis=0)]], 1))[0]


def reads_in_mirror_alone(read: RecognizedText, mirrored: RecognizedText) -> bool:
    """Whether a line reads well in a mirror and is another text there: letters may be symmetrical."""
    if mirrored.confidence < UNSURE or len(mirrored.text) <= _SHORT:
        return False
    first, second = ("".join(text.casefold().split()) for text in (read.text, mirrored.text[::-1]))
    return SequenceMatcher(None, first, second, autojunk=False).ratio() < _SYMMETRICAL


def _is_flat(line: DetectedLine, least: float = _TALL) -> bool:
    width, height = size_of(line.polygon)
    return width > least * height


def _lain(quad: Quad, degrees: int, page: Pixels) -> Quad:
    """Where corners lie once the page is turned clockwise by 90 or 270 degrees, in their order."""
    height, width = page.shape[:2]
    a, b, c, d = ((width - y, x) if degrees == 90 else (y, height - x) for x, y in quad)
    return (a, b, c, d)


def _along(quad: Quad, degrees: int) -> Quad:
    """The corners of a line that runs down a page which was turned by 90 or 270 degrees, from where it starts now."""
    return (*quad[3:], *quad[:3]) if degrees == 90 else (*quad[1:], quad[0])


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
