"""How far a page can be relied upon: its confidence, what speaks against its text, and whether to review it.

The warnings in ``record.errors`` are the one truth: a page is to be reviewed where one of them is about what was read.
``record.signals`` are the shares that they come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pagemill.document.labels import FIGURES, TASK_OF_LABEL, Task
from pagemill.document.page import LOW_CONFIDENCE, READING, UNREAD_SCRIPT, PageResult, Status, TextLine
from pagemill.parsing.text_layer_soundness import Judgement
from pagemill.parsing.thresholds import PARSING

if TYPE_CHECKING:
    from pagemill.recognition.reader import ReadPage


def mean_confidence(texts: Iterable[tuple[float | None, str]]) -> float | None:
    """Mean over the texts whose confidence is known, weighted by length; None where none is."""
    known = [(confidence, max(1, len(text))) for confidence, text in texts if confidence is not None]
    if not known:
        return None
    return round(sum(confidence * size for confidence, size in known) / sum(size for _, size in known), 4)


def assess(record: PageResult) -> None:
    """Complete a record with how far it can be relied upon; its warnings and the signals of its reading are there."""
    record.confidence = mean_confidence((line.confidence, line.text) for line in _sure_lines(record))
    wanted = [region for region in record.regions if TASK_OF_LABEL[region.label] not in (Task.SKIP, Task.ABANDON)]
    shares = {
        LOW_CONFIDENCE: low_share(record),
        "unread": sum(region.content is None for region in wanted) / max(1, len(wanted)),
    }
    for name, share in shares.items():
        record.signals[name] = max(record.signals.get(name, 0.0), share)
    record.signals = {name: round(share, 4) for name, share in record.signals.items() if round(share, 4)}
    about_text = any(error.component in READING for error in record.errors)
    record.review = record.status is Status.DONE and about_text


def low_share(record: PageResult) -> float:
    """Share of the text that is in lines of low confidence, 0-1."""
    lines = _sure_lines(record)
    low = sum(len(line.text) for line in lines if (line.confidence or 0.0) < PARSING.low_confidence)
    return low / max(1, sum(len(line.text) for line in lines))


def _sure_lines(record: PageResult) -> list[TextLine]:
    """The lines of which it is known how sure they are, but for the lettering of pictures, on which nobody relies."""
    regions = (region for region in record.regions if region.label not in FIGURES and region.confidence is not None)
    return [line for region in regions for line in region.lines if line.confidence is not None]


def signals_of_reading(read: ReadPage) -> dict[str, float]:
    """What line recognition tells against its own reading."""
    found = len(read.lines)
    return {
        "unread": read.illegible / max(1, found + read.illegible),
        UNREAD_SCRIPT: min(1.0, (read.foreign + read.hanja) / max(1, found)),
    }


def signals_of_layer(judgement: Judgement, *, alone: bool) -> dict[str, float]:
    """How far a text layer that is used and the pixels disagree; ``alone``: what is outside of it is not read."""
    ink = judgement.ink_without_text if alone else 0.0
    return {"ink_without_text": ink, "text_without_ink": judgement.text_without_ink}
