"""What recognition engines are: those that read lines of text, and those that read whole regions."""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pagemill.config.modes import ReadingMode
from pagemill.document.geometry import Box, Point, union_box
from pagemill.document.labels import Label, Task
from pagemill.document.page import ContentFormat
from pagemill.errors import UsageError
from pagemill.imaging.types import Pixels

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Result = TypeVar("Result")
In = TypeVar("In", contravariant=True)
Out = TypeVar("Out", covariant=True)
Quad = tuple[Point, Point, Point, Point]
LONGEST_CONTENT = 2_000_000
"""Characters: far above what a page can hold, within what a record of a page may hold."""
LONGEST_FORMULA = 20_000
"""Characters."""
Content = Annotated[str, msgspec.Meta(max_length=LONGEST_CONTENT)]
Attempts = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""Number of attempts, within 32 bits for Parquet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedLine:
    """A line of text found on a page, not read yet."""

    polygon: Quad
    """Corners clockwise from the line's own top-left, in page pixels."""
    score: float
    middle: tuple[Point, ...] = ()
    """Points halfway between its upper and its lower edge, from left to right; of long level lines alone."""
    height: float = 0.0
    """Across its middle, where that is known: a bent line is lower than its polygon."""

    @property
    def box(self) -> Box:
        """Around the corners."""
        return union_box((x, y, x, y) for x, y in self.polygon)


@dataclass(frozen=True, kw_only=True)
class RecognizedText:
    """What an engine read in one line image. Empty text is a valid answer (nothing there)."""

    text: str
    confidence: float
    """Mean over characters, 0-1, finite."""
    centers: tuple[float, ...] = ()
    """Horizontal middle of each character of ``text`` as a fraction of the line width, if the engine reports it."""
    confidences: tuple[float, ...] = ()
    """Confidence of each character of ``text``, if the engine reports it."""

    @functools.cached_property
    def _spans(self) -> NDArray[np.float64]:
        """Left and right of each character as fractions of the line's width, shape (characters, 2).

        A character reaches half-way to its neighbours on the paper, which in Arabic and Hebrew come in another order
        than in the text; the outermost of the line half a mean pitch outwards.
        """
        order = np.argsort(self.centers, kind="stable")
        centers = np.asarray(self.centers)[order]
        pitch = np.diff(centers).mean() if len(centers) > 1 else 1.0
        between = (centers[1:] + centers[:-1]) / 2
        borders = np.clip([centers[0] - pitch / 2, *between, centers[-1] + pitch / 2], 0.0, 1.0)
        spans = np.empty((len(order), 2))
        spans[order] = np.column_stack([borders[:-1], borders[1:]])
        return spans

    def span_of(self, start: int, end: int) -> tuple[float, float]:
        """Left and right of characters ``start`` to ``end``; only with ``centers``."""
        spans = self._spans[start:end]
        return float(spans[:, 0].min()), float(spans[:, 1].max())

    @property
    def word_spans(self) -> list[tuple[str, float, float]]:
        """Words with their start and end as fractions of the line's width, as far as ``centers`` is known."""
        if not self.centers:
            return []
        return [(word[0], *self.span_of(word.start(), word.end())) for word in re.finditer(r"\S+", self.text)]

    def if_sure(self, least: float) -> RecognizedText:
        """Itself, or empty text of its confidence where that is lower: what is read with less is junk."""
        return self if self.confidence >= least else RecognizedText(text="", confidence=self.confidence)


class TextDetector(Protocol):
    """Finds the lines of a page. Thread-safe."""

    name: str

    def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find all lines of text on a page, in no particular order."""


class TextRecognizer(Protocol):
    """Reads line images. Thread-safe."""

    max_batch: int
    """Most lines that one call takes."""

    def recognize(self, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read line images (upright, height and width arbitrary); one answer a line, in order."""

    def close(self) -> None:
        """Free models and processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizerOffer:
    """A recognizer that an installed engine can make. An engine's entry point gives a list of these."""

    name: str
    """The engine's name, and after a colon which of its recognizers where it has several (``tesseract:ko``)."""
    languages: frozenset[str]
    """BCP-47 primary subtags that it reads well as installed (``en``, ``ko``, ``zh``, ...)."""
    create: Callable[[], TextRecognizer]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognizedFormula:
    """What an engine read in the crop of a display formula. Empty LaTeX is a valid answer (not readable)."""

    latex: Annotated[str, msgspec.Meta(max_length=LONGEST_FORMULA)]
    """Without delimiters. Used only if it renders and is no loop."""
    confidence: float | None = None
    """0-1, if the engine reports it."""


class FormulaRecognizer(Protocol):
    """Reads crops of display formulas. Thread-safe."""

    max_batch: int
    """Most crops that one call takes."""

    def recognize(self, crops: Sequence[Pixels]) -> list[RecognizedFormula]:
        """Read crops, one answer each, in order: shape (height, width, 3), uint8 RGB, any size, views of the page."""

    def close(self) -> None:
        """Free models and processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaOffer:
    """A formula recognizer that an installed engine can make. An engine's entry point gives a list of these."""

    name: str
    """For the record, such as ``pp-formulanet-plus-s``."""
    create: Callable[[], FormulaRecognizer]
    """Loads the model; called when the first formula is to be read."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of an answer, for the record."""

    category: str
    """Machine-readable: ``repetition``, ``truncated``, ``empty_text``, ``refused``, ``timeout``, ``network``, ..."""
    message: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionReading:
    """What a model read in a region."""

    content: Content | None
    """None if the region failed; ``problem`` then has the reason."""
    content_format: ContentFormat
    engine: str
    """Who read it, for the record: ``vlm:glm-ocr``."""
    attempts: Attempts = 1
    """How often the model was asked, one that refused or whose answer was no good included. From 1."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageElement:
    """Something that a model saw on a page."""

    label: Label
    boxes: tuple[Box, ...]
    """Where it stands, as shares (0-1) of the page's width and height, corners in order; several where it is spread
    over columns; empty if the model did not report them."""
    content: Content | None
    """None for what is not read, such as a picture."""
    content_format: ContentFormat
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReading:
    """What a model read on a page."""

    elements: tuple[PageElement, ...] | None
    """In reading order. None if the page failed; ``problem`` then has the reason."""
    engine: str
    """See :attr:`RegionReading.engine`."""
    attempts: Attempts = 1
    """See :attr:`RegionReading.attempts`."""
    problem: Problem | None = None
    """Problem of the whole page: its answer is truncated, repeats itself, has no positions, ..."""


class Batcher(Protocol[In, Out]):
    """Collects single items and computes them in batches."""

    limit: int
    """Most items in a batch, as far as memory allows."""

    async def submit(self, item: In) -> Out:
        """Compute one item in some batch; raises what the model raised for this very item."""

    async def close(self) -> None:
        """Drop what is waiting, and wait for the batch that is being computed."""


class Batching(Protocol):
    """What the runtime lends an engine that computes in this process: a thread, and microbatches on it."""

    async def run(self, function: Callable[[], Result]) -> Result:
        """Call a function on the engine's thread."""

    def unwanted(self) -> bool:
        """Whether nobody waits any more for what this thread computes, which had better end.

        Asked by ``call`` of :meth:`batcher`, at least every few seconds: a batch that goes on 10 s after its last page
        was given up counts as one that hangs.
        """

    def batcher(
        self,
        call: Callable[[Sequence[Item]], Sequence[Answer]],
        *,
        max_batch: int,
        size: Callable[[Item], float],
        fill_s: float,
    ) -> Batcher[Item, Answer]:
        """Microbatches of like size on the engine's thread.

        Args:
            call: Computes the answers of a batch, one an item, in order. If it runs out of memory, batches are halved;
                a batch that raises is bisected.
            max_batch: Most items in a batch.
            size: Of an item.
            fill_s: Longest time that an item waits for a batch to fill while nothing is computed.
        """


class RegionReader(ABC):
    """Base class of region engines: read regions, or whole pages, with a model that takes one image per request.

    Work is in two steps so that a page can release its pixels: all its regions are prepared in one call on a computing
    thread, then their requests are in flight for seconds. All other methods run on the event loop. A subclass for
    regions implements :meth:`prepare` and :meth:`read`; one for whole pages sets :attr:`reads` and implements
    :meth:`prepare` and :meth:`read_page`.
    """

    name: str
    reads: ReadingMode = ReadingMode.REGIONS
    """Whether it is given regions (:meth:`read`) or pages (:meth:`read_page`)."""
    in_flight: int = 1
    """The most requests that it keeps in flight: as many regions should be ready."""

    @property
    def served_model(self) -> str | None:
        """The model's name on the servers, known after :meth:`check`; a run is resumed only with the same name.

        None, the default: the engine does not know, and the name in the settings counts. Empty: any usual name of the
        model, which the settings determine.
        """
        return None

    def attach(self, batching: Batching) -> None:
        """Take the runtime's help for computing in this process; called once, before :meth:`check`.

        Does nothing by default: engines that ask servers need none.
        """
        return

    async def check(self) -> None:
        """Find out now what would fail for every region; called before the first read. Does nothing by default.

        Raises:
            PagemillError: No server answers, or none serves the model; with a remedy.
        """
        return

    @abstractmethod
    def prepare(self, crop: Pixels, task: Task) -> Any:
        """Prepare a region for its request: shrink it to the model's budget, encode it once. On a computing thread.

        Args:
            crop: The region, shape (height, width, 3), uint8 RGB; may be a view into the page, so do not keep it.
            task: ``TEXT``, ``TABLE`` or ``FORMULA``; ``PAGE`` for an engine that reads pages.
        """

    async def read(self, prepared: Any) -> RegionReading:
        """Read one region, with retries, limits and the choice of a server.

        Raises:
            NetworkError: No server was reachable for so long that the page should fail and be retried later.
        """
        raise UsageError(f"{self.name} does not read regions", remedy="Use --reading pages.")

    async def read_page(self, prepared: Any) -> PageReading:
        """Read a page that was prepared with the task ``PAGE``. Otherwise as :meth:`read`."""
        raise UsageError(f"{self.name} does not read whole pages", remedy="Use --reading regions.")

    def stop_waiting(self) -> None:
        """The run is ending: reads that wait for an unreachable server should soon raise ``NetworkError``.

        Their pages are read when the run is resumed. Does nothing by default.
        """
        return

    async def aclose(self) -> None:
        """Close connections. Does nothing by default."""
        return
