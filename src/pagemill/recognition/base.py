"""What recognition engines are: those that read lines of text, and those that read whole regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pagemill.config.modes import ReadingMode
from pagemill.document.geometry import Box, Point

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pagemill.document.labels import Label, Task
    from pagemill.document.page import ContentFormat
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


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about an answer that the record has to say."""

    category: str
    """Machine-readable: ``repetition``, ``truncated``, ``empty_text``, ``refused``, ``timeout``, ``network``, ..."""
    message: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionReading:
    """What a model read in a region."""

    content: str | None
    """None when the region failed; ``problem`` says why then."""
    content_format: ContentFormat
    engine: str
    """Who read it, for the record: ``vlm:glm-ocr``."""
    attempts: int = 1
    """How often the model was asked, one that refused or whose answer was no good included. From 1."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageElement:
    """Something that a model saw on a page."""

    label: Label
    boxes: tuple[Box, ...]
    """Where it stands, as shares (0-1) of the page's width and height, corners in order; several where it is spread
    over columns; none where the model did not tell."""
    content: str | None
    """None for what is not read, such as a picture."""
    content_format: ContentFormat
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReading:
    """What a model read on a page."""

    elements: tuple[PageElement, ...] | None
    """In reading order. None when the page failed; ``problem`` says why then."""
    engine: str
    """As in :attr:`RegionReading.engine`."""
    attempts: int = 1
    """As in :attr:`RegionReading.attempts`."""
    problem: Problem | None = None
    """Of the page as a whole: its answer is cut off, repeats itself, tells no places, ..."""


class RegionReader(Protocol):
    """Reads regions with a model that takes one image a request. Its methods but ``prepare`` run on the event loop.

    Work is cut in two so that a page can let its pixels go: all its regions are prepared in one go on a thread, then
    their requests are under way for seconds. An engine that reads whole pages is given the page as one request.
    """

    name: str
    reads: ReadingMode
    """Whether it is given regions (:meth:`read`) or pages (:meth:`read_page`); of an engine that does not say it, and
    need not have ``read_page`` then, regions."""
    in_flight: int
    """Requests that it can keep under way at once at most: as many regions should be ready."""

    @property
    def served_model(self) -> str | None:
        """The name by which the servers call the model, where the settings alone do not say which model that is.

        Known after :meth:`check`; it tells runs apart. An engine whose settings say all need not have this.
        """
        ...

    async def check(self) -> None:
        """Find out now what would fail for every region.

        Raises:
            PagemillError: No server answers, or none serves the model; the class and its remedy say it.
        """
        ...

    def prepare(self, crop: Pixels, task: Task) -> Any:
        """Make a region ready to be sent: shrunk to the model's budget, encoded once. Runs on a computing thread.

        Args:
            crop: The region, shape (height, width, 3), uint8 RGB; may be a view into the page, which is not kept.
            task: ``TEXT``, ``TABLE`` or ``FORMULA``; ``PAGE`` for an engine that reads pages.
        """
        ...

    async def read(self, prepared: Any) -> RegionReading:
        """Read one region. Retries, limits and server choice are inside.

        Raises:
            NetworkError: No server could be reached for so long that the page should fail and be tried again later.
        """
        ...

    async def read_page(self, prepared: Any) -> PageReading:
        """Read a page that was prepared with the task ``PAGE``. Otherwise as :meth:`read`."""
        ...

    def stop_waiting(self) -> None:
        """The run is to end: what waits for a server that is not there should soon raise ``NetworkError``.

        The page is not ended then, and is read when the run goes on. An engine that never waits need not have this.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...
