"""The section path of a region: the headings above it, from the title down."""

from __future__ import annotations

from pagemill.document.labels import TASK_OF_LABEL, TITLES, Label, Task
from pagemill.document.page import ContentFormat, Region

LONGEST_HEADING = 200
"""Characters of a heading in a path, which stands with every region below it; real ones are shorter."""
_DEFAULT_LEVEL = 2


def heading_level(region: Region) -> int | None:
    """Level of a heading with a text, 1 for a title; None for what is no heading."""
    if region.label not in TITLES or not (region.content or "").strip():
        return None
    return region.level or (1 if region.label is Label.DOC_TITLE else _DEFAULT_LEVEL)


class Sections:
    """Follows the headings of one document, whose regions are given one by one in reading order, over its pages."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def path(self, region: Region) -> tuple[str, ...]:
        """The headings above a region, outermost first; above a heading those of lower levels. Furniture has none."""
        level = heading_level(region)
        if level is not None:
            while self._open and self._open[-1][0] >= level:
                self._open.pop()
        elif TASK_OF_LABEL[region.label] is Task.ABANDON and region.label is not Label.FOOTNOTE:
            return ()
        path = tuple(heading for _, heading in self._open)
        if level is not None:
            self._open.append((level, _heading(region)))
        return path


def _heading(region: Region) -> str:
    text = " ".join((region.content or "").split())
    if region.content_format is ContentFormat.MARKDOWN:
        text = text.strip("#*_` ")
    return text if len(text) <= LONGEST_HEADING else f"{text[: LONGEST_HEADING - 1]}…"
