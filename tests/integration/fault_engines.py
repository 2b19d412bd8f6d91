"""Engines of an imaginary package: fast ones that find and read what ``coded_pages`` draws, and break as it says.

The layout engine answers with the same three regions for every page. Detector and recognizer take the places of the
embedded ones (:func:`pagemill_process.install_engines` puts their entry points first), so that a page of pixels costs a
few milliseconds. What a page does to its engines is drawn on it, see :class:`Fault`.
"""

import ctypes
import hashlib
import os
import signal
import time
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

import numpy as np

from pagemill.document.labels import Label
from pagemill.imaging.types import Pixels
from pagemill.layout.base import DetectedRegion
from pagemill.recognition.base import DetectedLine, RecognizedText, RecognizerOffer


class Fault(IntEnum):
    """What a page makes the engine do that gets it. Drawn as a number, so none is over 31."""

    NONE = 0
    # In the layout engine, on any page:
    SEGFAULT = 1
    OOM_KILL = 2  # SIGKILL, as the kernel sends it to a process that takes too much memory
    HANG = 3
    HANG_WITH_INTERPRETER_LOCK = 4
    EXCEPTION = 5
    TRANSIENT = 6  # an exception in company and in the first call alone, and never again
    TOO_FEW_ANSWERS = 7
    SHORT_BOX = 8
    NAN_BOX = 9
    BATCH_OUT_OF_MEMORY = 10  # unless it is alone in its batch
    # In the recognition engine, on pages without a text layer:
    EMPTY_TEXT = 16
    TEXT_EXCEPTION = 17
    TEXT_TOO_FEW_ANSWERS = 18
    TEXT_NAN_CONFIDENCE = 19
    TEXT_SEGFAULT = 20


BAND = (0.0, 0.0, 1.0, 0.05)
"""Where the fault is drawn, in fractions of the page: a band of one grey."""
GREY_STEP = 8
CELLS = (0.1, 0.06, 0.9, 0.1)
"""Where pages without a text layer carry their number and fault: black and white cells, the highest bit first."""
CELL_COUNT = 20
FAULT_BITS = 5
TITLE, BODY, PICTURE = (0.08, 0.055, 0.92, 0.11), (0.08, 0.13, 0.92, 0.6), (0.1, 0.65, 0.9, 0.95)
STATE_VARIABLE = "PAGEMILL_TEST_FAULT_STATE"
"""Names the folder where transient faults note that they have happened."""
BATCH_VARIABLE = "PAGEMILL_TEST_BATCH_S"
"""Seconds that each call of the layout engine takes, as a device that is asked for a microbatch."""
CALLS_VARIABLE = "PAGEMILL_TEST_CALLS"
"""Names the folder where each process notes its calls of the layout engine: end (monotonic seconds) and pages."""
LONG_S = 3600.0


class OutOfMemoryError(RuntimeError):
    """As a GPU framework's."""


class FastLayout:
    """The same three regions for every page, or the page's fault."""

    name = "fast"
    max_batch = 4

    def detect(self, pages: Sequence[Pixels]) -> list[list[DetectedRegion]]:
        """Find the regions of every page."""
        time.sleep(float(os.environ.get(BATCH_VARIABLE, "0")))
        if folder := os.environ.get(CALLS_VARIABLE):
            with Path(folder, str(os.getpid())).open("a", encoding="ascii") as calls:
                calls.write(f"{time.monotonic()} {len(pages)}\n")
        faults = [fault_in_band(page) for page in pages]
        for page, fault in zip(pages, faults, strict=True):
            _break_down(page, fault, alone=len(pages) == 1)
        return [_regions(page, fault) for page, fault in zip(pages, faults, strict=True) if not _is_short(fault)]

    def close(self) -> None:
        """Nothing to free."""


class FastDetector:
    """Finds the one line that a coded page has."""

    name = "rapidocr"

    def detect(self, page: Pixels) -> list[DetectedLine]:
        """Find the line of cells."""
        x1, y1, x2, y2 = _scaled(CELLS, page)
        return [DetectedLine(polygon=((x1, y1), (x2, y1), (x2, y2), (x1, y2)), score=0.9)]


class FastRecognizer:
    """Reads the number that a line of cells stands for."""

    name = "rapidocr"
    languages = frozenset({"en"})
    max_batch = 4

    def recognize(self, lines: Sequence[Pixels]) -> list[RecognizedText]:
        """Read every line, or do what its fault says."""
        codes = [read_cells(line) for line in lines]
        faults = [Fault(code % 2**FAULT_BITS) for code in codes]
        if Fault.TEXT_SEGFAULT in faults:
            ctypes.string_at(0)
        if Fault.TEXT_EXCEPTION in faults:
            raise ValueError("the recognizer lost its dictionary")
        return [
            RecognizedText(
                text="" if fault is Fault.EMPTY_TEXT else f"Coded page {code >> FAULT_BITS:05d} of the mill",
                confidence=float("nan") if fault is Fault.TEXT_NAN_CONFIDENCE else 0.98,
            )
            for code, fault in zip(codes, faults, strict=True)
            if fault is not Fault.TEXT_TOO_FEW_ANSWERS
        ]

    def close(self) -> None:
        """Nothing to free."""


def create_layout(settings: object) -> FastLayout:
    """The entry point of the layout engine."""
    return FastLayout()


def create_detector() -> FastDetector:
    """The entry point of the detector."""
    return FastDetector()


def offers() -> list[RecognizerOffer]:
    """The entry point of the recognizer."""
    return [RecognizerOffer(name="rapidocr", languages=FastRecognizer.languages, create=FastRecognizer)]


def fault_in_band(page: Pixels) -> Fault:
    """Read the fault from the grey of the band."""
    height, width = page.shape[:2]
    sample = page[round(height * 0.02) : round(height * 0.03) + 1, round(width * 0.4) : round(width * 0.6)]
    return Fault(round((255 - float(np.median(sample))) / GREY_STEP))


def read_cells(line: Pixels) -> int:
    """Read the number that a line of cells stands for."""
    height, width = line.shape[:2]
    centres = [round((index + 0.5) * width / CELL_COUNT) for index in range(CELL_COUNT)]
    return int("".join("1" if line[height // 2, x].mean() < 128 else "0" for x in centres), 2)


def _break_down(page: Pixels, fault: Fault, *, alone: bool) -> None:
    """What a page does to the whole batch that it is in."""
    match fault:
        case Fault.SEGFAULT:
            ctypes.string_at(0)
        case Fault.OOM_KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        case Fault.HANG:
            time.sleep(LONG_S)
        case Fault.HANG_WITH_INTERPRETER_LOCK:
            ctypes.PyDLL(None).sleep(round(LONG_S))
        case Fault.EXCEPTION:
            raise ValueError("the model met something it does not know")
        case Fault.TRANSIENT:
            if not alone or _is_first_time(page):
                raise ConnectionResetError("the device is busy")
        case Fault.BATCH_OUT_OF_MEMORY:
            if not alone:
                raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def _is_first_time(page: Pixels) -> bool:
    """Whether a page is met alone for the first time, in this process or an earlier one."""
    note = Path(os.environ[STATE_VARIABLE]) / hashlib.sha256(page.tobytes()).hexdigest()
    try:
        note.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _is_short(fault: Fault) -> bool:
    return fault is Fault.TOO_FEW_ANSWERS


def _regions(page: Pixels, fault: Fault) -> list[DetectedRegion]:
    labels = {TITLE: Label.DOC_TITLE, BODY: Label.TEXT, PICTURE: Label.IMAGE}
    boxes = {place: _scaled(place, page) for place in labels}
    if fault is Fault.NAN_BOX:
        boxes[BODY] = (float("nan"), *boxes[BODY][1:])
    if fault is Fault.SHORT_BOX:
        boxes[BODY] = boxes[BODY][:3]  # type: ignore[assignment]
    return [DetectedRegion(box=boxes[place], label=label, score=0.9, source="fast") for place, label in labels.items()]


def _scaled(place: tuple[float, float, float, float], page: Pixels) -> tuple[float, float, float, float]:
    height, width = page.shape[:2]
    x1, y1, x2, y2 = place
    return (x1 * width, y1 * height, x2 * width, y2 * height)
