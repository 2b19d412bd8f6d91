"""Paragraphs that a column or page break cut apart, joined while the parts of a document stream by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

from pagemill.document.joining import goes_on, join_pair
from pagemill.document.page import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pagemill.document.page import PageResult

_MOST_HELD = 50
"""Parts after an open paragraph beyond which it is not held back for its rest."""
_LONGEST_HELD = 100_000
"""Characters of a paragraph that is held back."""


@dataclass(slots=True)
class TextPart:
    """A piece of a document on its way out."""

    text: str
    flows: bool = False
    """Running text that may be joined with what comes before or after it."""
    open: bool = False
    """The paragraph goes on in the next flowing part."""

    def take_up(self, rest: Self) -> None:
        """Become one with the part in which this one goes on."""
        self.text = join_pair(self.text, rest.text)
        self.open = rest.open


PartT = TypeVar("PartT", bound=TextPart)


def joined(parts: Sequence[PartT]) -> list[PartT]:
    """Join each open paragraph with the flowing part in which it goes on; what stands between them comes after."""
    result: list[PartT] = []
    pending: PartT | None = None
    for part in parts:
        if not part.flows:
            result.append(part)
        elif pending is not None and goes_on(pending.text, part.text):
            pending.take_up(part)
            pending = pending if part.open else None
        else:
            result.append(part)
            pending = part if part.open else None
    return result


def stream_joined(pages: Iterable[tuple[PageResult, Sequence[PartT]]]) -> Iterator[PartT]:
    """The parts of a document, page by page, joined over page breaks.

    Only what a page leaves open is held back, and not for long: not past a page that failed, nor past many parts.
    """
    held: list[PartT] = []
    for page, own in pages:
        parts = joined([*held, *own])
        held = [] if page.status is Status.FAILED else left_open(parts)
        yield from parts[: len(parts) - len(held)]
    yield from held


def left_open(parts: list[PartT]) -> list[PartT]:
    """The last flowing part and what follows it, if its rest may come on the next page; bounded in number and size."""
    keep = next((i for i in range(len(parts) - 1, -1, -1) if parts[i].flows), None)
    if keep is None or not parts[keep].open:
        return []
    return parts[keep:] if len(parts) - keep <= _MOST_HELD and len(parts[keep].text) <= _LONGEST_HELD else []
