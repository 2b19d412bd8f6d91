"""What a text recognition engine on the CPU is: lines of a page found, then read in microbatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pagemill.document.geometry import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.imaging.types import Pixels

Quad = tuple[Point, Point, Point, Point]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedLine:
    """A line of text found on a page, not read yet."""

    polygon: Quad
    """Corners clockwise from the line's own top-left, in page pixels."""
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizedText:
    """What an engine read in one line image. Empty text is a valid answer (nothing there)."""

    text: str
    confidence: float
    """Mean over characters, 0-1, finite."""
    word_spans: tuple[tuple[str, float, float], ...] = ()
    """Words with their start and end as fractions of the line image's width, where the engine tells."""
    centers: tuple[float, ...] = ()
    """Horizontal middle of each character of ``text`` as a fraction of the line width, where the engine tells."""


class TextDetector(Protocol):
    """Finds the lines of a page. Thread-safe."""

    name: str

    def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find all lines of text on a page, in no particular order."""
        ...


class TextRecognizer(Protocol):
    """Reads line images. Thread-safe."""

    name: str
    languages: frozenset[str]
    """BCP-47 primary subtags this engine reads well as installed (``en``, ``ko``, ``zh``, ...)."""
    max_batch: int
    """Most lines that one call takes."""

    def recognize(self, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images (upright, height and width arbitrary); one answer a line, in order."""
        ...

    def close(self) -> None:
        """Free models and processes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizerOffer:
    """A recognizer that an installed engine can make. An engine's entry point gives a list of these."""

    name: str
    """The engine's name, and after a colon which of its recognizers where it has several (``tesseract:ko``)."""
    languages: frozenset[str]
    """As in :attr:`TextRecognizer.languages`."""
    create: Callable[[], TextRecognizer]
