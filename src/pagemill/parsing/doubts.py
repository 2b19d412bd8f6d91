"""What a record says about text that is not to be relied upon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pagemill.document.geometry import Box, area
from pagemill.document.labels import FIGURES, FORMULAS
from pagemill.document.page import (
    LAYER_MISMATCH,
    LOW_CONFIDENCE,
    UNREAD_SCRIPT,
    UNRELIABLE,
    ContentFormat,
    PageError,
    PageResult,
    Region,
    TextLine,
)
from pagemill.document.shown import count
from pagemill.imaging.page import TextLayer
from pagemill.late import re
from pagemill.parsing.formula_reading import unread_formulas
from pagemill.parsing.lines import is_mostly_vertical
from pagemill.parsing.quality import low_share
from pagemill.parsing.text_layer_soundness import UNSOUND, Judgement, is_unmapped
from pagemill.parsing.thresholds import PARSING
from pagemill.recognition.languages import LANGUAGE_OF_SCRIPT, remedy_for, title_of_script
from pagemill.recognition.verdict import POORLY_READ

if TYPE_CHECKING:
    from pagemill.recognition.reader import ReadPage

_LOST = re.compile("[\ufffd\\w]\ufffd")
"""Several characters without Unicode values, or one in a word, as a ligature; one that stands alone may be a bullet."""

_SAID = 60
"""Characters of what is left out that a note shows."""
_COMPARE = "Compare the text with the page, or recognize the pixels: --text-layer never."
_of_layer = partial(PageError, component="text_layer", category=LAYER_MISMATCH, remedy=_COMPARE)
_of_reading = partial(PageError, component="recognition")
_unread = partial(_of_reading, category="empty_text")


def left_out_notes(layer: TextLayer | None) -> list[str]:
    """What a text layer holds that is no text of the page: what nobody sees of it, and watermarks."""
    notes = []
    for what, lines in (("watermark", layer.watermarks), ("text that nobody sees", layer.unseen)) if layer else ():
        if lines:
            said = " ".join(lines[0].text.split())[:_SAID]
            notes.append(f"{what} left out: «{said}»" + (f" and {len(lines) - 1} more lines" if len(lines) > 1 else ""))
    return notes


def notes_of(read: ReadPage) -> list[str]:
    """What recognition left out: lines that show through from the back, and coloured ink over lines without words."""
    notes = []
    if read.mirrored:
        notes.append(f"left out: {count(read.mirrored, 'line')} shining through from the back")
    if read.stamps:
        notes.append(f"coloured ink over {count(read.stamps, 'line')} not read")
    return notes


def doubts_of(read: ReadPage, lines: Sequence[TextLine], record: PageResult) -> Iterator[PageError]:
    """What to say about a page or region whose text is not to be relied upon, or lines that could not be read."""
    if read.illegible > min(1, len(lines)):  # one beside others may be a logo
        found = "1 line of text was" if read.illegible == 1 else f"{read.illegible} lines of text were"
        yield _unread(message=f"{found} found, but nothing could be read in any")
    if read.hanja:
        where = "1 line" if read.hanja == 1 else f"{read.hanja} lines"
        yield _of_reading(
            category=UNREAD_SCRIPT,
            message=f"{where} of Korean text with Chinese characters (Hanja), which no engine reads in Korean text",
            remedy="Compare the text with the page, or read it with a model: --recognition-engine vlm.",
        )
    if read.signs:
        found = "1 sign was" if read.signs == 1 else f"{read.signs} signs were"
        yield _of_reading(category=LOW_CONFIDENCE, message=f"{found} found in vertical lines and could not be read")
    doubtful = list(filter(_is_doubtful, record.regions))
    yield from map(_doubt, doubtful)
    enough = sum(len(line.text) for line in read.lines) >= PARSING.sample
    if enough and not doubtful and (share := low_share(record)) >= PARSING.low_share:
        yield _of_reading(
            category=LOW_CONFIDENCE,
            message=f"{share:.0%} of the text is in lines that are doubtful: compare it with the page",
        )
    if read.script is not None:
        is_most = read.foreign * 2 >= len(read.lines)
        where = "most of the page" if is_most else "1 line" if read.foreign == 1 else f"{read.foreign} lines"
        language = LANGUAGE_OF_SCRIPT[read.script]
        why, remedy = "no installed engine reads", remedy_for([language])
        if read.named:
            why, remedy = (
                "the named languages do not use",
                f"Add {language} to --lang. If it is not installed: {remedy}",
            )
        yield _of_reading(
            category=UNRELIABLE if is_most else UNREAD_SCRIPT,
            message=f"{where} in {title_of_script(read.script)}, which {why}",
            remedy=remedy,
        )
    elif read.handwritten:
        yield from _handwriting(read, record)
    elif lines and read.quality is not None and read.quality < POORLY_READ:
        yield _of_reading(
            category=UNRELIABLE,
            message=f"the text is not reliable (quality {read.quality:.2f} of 1): another script or a bad scan",
            remedy="Install the language of the page and pass it with --lang (docs/languages.md).",
        )


def _handwriting(read: ReadPage, record: PageResult) -> Iterator[PageError]:
    """Name the regions that hold handwriting. Formulas and the lettering of logos may look like it."""
    tell = partial(_of_reading, remedy="Read it with a model: --recognition-engine vlm.")
    what = "handwritten, which engines for print read badly: compare the text with the page"
    if read.handwritten and len(read.handwritten) * 2 >= len(read.lines):
        yield tell(category=UNRELIABLE, message=f"most of the page looks {what}")
        return
    for index, lines in Counter(_holder(box, record) for box in read.handwritten).items():
        if index is None or record.regions[index].label not in FIGURES | FORMULAS:
            said = f"{count(lines, 'line')} look{'s' * (lines == 1)} {what}"
            yield tell(category=LOW_CONFIDENCE, message=said, region=index)


def _holder(box: Box, record: PageResult) -> int | None:
    """The index of the smallest region that holds the middle of a box."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    around = [
        each for each in record.regions if each.bbox[0] <= x <= each.bbox[2] and each.bbox[1] <= y <= each.bbox[3]
    ]
    return min(around, key=lambda each: area(each.bbox)).index if around else None


def doubts_of_layer(judgement: Judgement, *, alone: bool) -> Iterator[PageError]:
    """What to say about a text layer that is used all the same."""
    said = []
    if judgement.verdict == UNSOUND:
        said.append("it has no visible text, or text that means nothing")
    if judgement.text_without_ink > PARSING.text_without_ink:
        said.append(f"{judgement.text_without_ink:.0%} of its text is at places where the page shows nothing")
    if alone and judgement.ink_without_text > PARSING.unread_ink:
        said.append(f"{judgement.ink_without_text:.0%} of the page's text-like ink is outside of it")
    if said:
        yield _of_layer(message=f"the text layer may not say what the page shows: {'; '.join(said)}")


def lost_lines(count: int) -> Iterator[PageError]:
    """What to say about lines of an unsound text layer where nothing was read."""
    if count:
        found = "1 line of the text layer was" if count == 1 else f"{count} lines of the text layer were"
        yield _unread(
            message=f"{found} not taken, and recognition read nothing there",
            remedy="Compare the text with the page, use the layer (--text-layer always), or read it with a model.",
        )


def unmapped_characters(lines: Sequence[TextLine]) -> Iterator[PageError]:
    """What to say about lines of a text layer that are given although they have characters without Unicode values."""
    count = sum(bool(_LOST.search(line.text)) or is_unmapped(line) for line in lines)
    if count:
        found = "1 line of the text layer has" if count == 1 else f"{count} lines of the text layer have"
        yield _of_layer(message=f"{found} characters without Unicode values, which are output as U+FFFD")


def unsaid_text(reason: str, remedy: str | None = None) -> PageError:
    """What to say where the page shows text that its sound text layer does not have, and that was not read either."""
    return _unread(message=f"text outside of the text layer was not read: {reason}", remedy=remedy or _COMPARE)


def plain_formulas(record: PageResult) -> Iterator[PageError]:
    """What to say about formulas of which only the signs are known, line by line."""
    for region in unread_formulas(record):
        yield _of_reading(
            category=LOW_CONFIDENCE,
            message="the formula is output as plain characters on one line: compare it with its picture",
            remedy="Recognize formulas with a model: pagemill models download cpu-best, or --recognition-engine vlm.",
            region=region.index,
        )


def _is_doubtful(region: Region) -> bool:
    """Whether what was read in a region is probably wrong. Nobody relies on formulas and the lettering of pictures."""
    return (
        region.confidence is not None
        and region.confidence < PARSING.low_confidence
        and region.label not in FIGURES
        and region.content_format is not ContentFormat.FORMULA_TEXT
        and sum(map(str.isalnum, region.content or "")) >= PARSING.doubtful_length
    )


def _doubt(region: Region) -> PageError:
    vertical = is_mostly_vertical(region.lines)
    what = "it may be vertical text, not read beside horizontal text" if vertical else "compare it with the page"
    return _of_reading(
        category=UNREAD_SCRIPT if vertical else LOW_CONFIDENCE,
        message=f"the text of the region is doubtful (confidence {region.confidence:.2f} of 1): {what}",
        region=region.index,
    )
